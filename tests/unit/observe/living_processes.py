"""Real processes to look at. Each ends when its standard input is closed, at the latest when the test does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from muster.files.process_identity import read_process

T = TypeVar("T")
SPIN = "print('up', flush=True)\nwhile True: pass"
# a shim that adopts, its run, and a grandchild of the run whose parent has ended; all wait for the end of stdin
FAMILY = """
import ctypes, json, os
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
reader, writer = os.pipe()
main = os.fork()
if main == 0:
    middle = os.fork()
    if middle == 0:
        orphan = os.fork()
        if orphan:
            os.write(writer, b"%d\\n" % orphan)
            os._exit(0)
    else:
        os.waitpid(middle, 0)
        child = os.fork()
        if child:
            who = {"main": os.getpid(), "child": child, "orphan": int(os.read(reader, 32)), "shim": os.getppid()}
            print(json.dumps(who), flush=True)
while os.read(0, 1): pass
try:
    while True: os.wait()
except ChildProcessError:
    os._exit(0)
"""
HEADLESS = """
import ctypes, os, threading
def rest():
    os.read(0, 1)
    os._exit(0)
threading.Thread(target=rest).start()
print('up', flush=True)
ctypes.CDLL(None).pthread_exit(None)
"""


def ticks(pid: int) -> int:
    found = read_process(pid)
    assert found
    return found.ticks


def until(true: Callable[[], T], what: str, patience_s: float = 30.0) -> T:
    deadline = time.monotonic() + patience_s
    while not (found := true()):
        assert time.monotonic() < deadline, f"not in time: {what}"
    return found


@contextmanager
def started(*argv: str) -> Iterator[subprocess.Popen[bytes]]:
    run = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield run
    finally:
        assert run.stdin
        assert run.stdout
        run.stdin.close()
        go_on(run.pid)
        if argv[-1] == SPIN:
            run.kill()
        run.stdout.read()  # to its end: nobody who has it open is left
        run.stdout.close()
        run.wait()


@contextmanager
def python(code: str) -> Iterator[tuple[subprocess.Popen[bytes], Any]]:
    """A script, and the first line that it wrote."""
    with started(sys.executable, "-I", "-S", "-c", code) as run:
        assert run.stdout
        line = run.stdout.readline().decode().strip()
        yield run, (json.loads(line) if line.startswith("{") else line)


def stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)


def go_on(pid: int) -> None:
    os.kill(pid, signal.SIGCONT)
