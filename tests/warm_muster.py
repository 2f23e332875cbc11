"""`muster ARGS` in a process of its own that is forked from a warm one: most of a short command is its imports.

The command is a real process, with its own folder, environment, umask and pipes; it ends as `python -m muster` ends. Only
what it imports is there already. COLD=1 starts each command anew, as `make test-all` does; so does whatever needs a new
interpreter: variables that are read when Python or a module is loaded, or that others read in /proc/PID/environ.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

LOADED = ("MUSTER_CRASH_AT", "MUSTER_STALE_S", "MUSTER_ATTEMPT")  # read when a module is loaded, or by others in /proc
EITHER = ("NO_COLOR", "PWD", "PYTEST_CURRENT_TEST", "OLDPWD", "_")  # they may differ from those of the warm process
COLD = {"simulator", "muster.hosts.local.shim", "muster.hosts.local.guard"}
HEAVY = ("matplotlib.figure", "matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg",
         "matplotlib.backends.backend_pdf", "scipy.stats", "yaml")  # fmt: skip

Done = subprocess.CompletedProcess[str]


def run_muster(words: Sequence[str], cwd: Path | str, env: Mapping[str, str], timeout_s: float) -> Done:
    """As subprocess.run does, with what it printed as text."""
    if not Path(cwd).is_dir() or _needs_a_new_interpreter(env) or not _lock.acquire(blocking=False):
        command = [sys.executable, "-m", "muster", *words]
        return subprocess.run(command, cwd=cwd, env=dict(env), capture_output=True, text=True, timeout=timeout_s)
    try:
        return _warm().run(words, str(cwd), env, timeout_s)
    finally:
        _lock.release()


def _needs_a_new_interpreter(env: Mapping[str, str]) -> bool:
    if os.environ.get("COLD") or any(name in env for name in LOADED):
        return True
    there = _kept[0].env if _kept else os.environ
    return any(
        env.get(name) != there.get(name)
        for name in env.keys() | there.keys()
        if not name.startswith("MUSTER_") and name not in EITHER
    )


class _Warm:
    """The warm process of this test process; it goes with it."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.socket, theirs = socket.socketpair()
        command = [sys.executable, "-P", __file__, str(theirs.fileno())]
        self.env = {name: text for name, text in os.environ.items() if not name.startswith("MUSTER_")}
        self.process = subprocess.Popen(
            command, env=self.env, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            pass_fds=[theirs.fileno()],
        )  # fmt: skip
        theirs.close()

    def run(self, words: Sequence[str], cwd: str, env: Mapping[str, str], timeout_s: float) -> Done:
        umask = os.umask(0o077)
        os.umask(umask)
        asked = json.dumps({"words": [*words], "cwd": cwd, "env": dict(env), "umask": umask}).encode()
        pipes = [os.pipe() for _ in range(2)]
        socket.send_fds(self.socket, [len(asked).to_bytes(4, "big")], [0, *(there for _, there in pipes)])
        self.socket.sendall(asked)
        for _, there in pipes:
            os.close(there)
        pid = self._number()
        try:
            told = _read_all([here for here, _ in pipes], timeout_s)
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            self._number()
            raise subprocess.TimeoutExpired(["muster", *words], timeout_s) from None
        finally:
            for here, _ in pipes:
                os.close(here)
        code = os.waitstatus_to_exitcode(self._number())
        out, err = (_text(data) for data in told)
        return subprocess.CompletedProcess(["muster", *words], code, out, err)

    def _number(self) -> int:
        data = self.socket.recv(4, socket.MSG_WAITALL)
        assert len(data) == 4, "the warm process has gone"
        return int.from_bytes(data, "big")

    def end(self) -> None:
        self.socket.close()
        self.process.communicate(timeout=10)


_lock = threading.Lock()
_kept: list[_Warm] = []


def _warm() -> _Warm:
    if not _kept or _kept[0].owner != os.getpid():
        _kept[:] = [_Warm()]
    return _kept[0]


def end_warm() -> None:
    for each in _kept:
        each.end()
    _kept.clear()


def _text(data: bytes) -> str:
    return data.decode().replace("\r\n", "\n").replace("\r", "\n")


def _read_all(fds: Sequence[int], timeout_s: float) -> list[bytes]:
    """To the end of each: whoever keeps one open is waited for, too."""
    deadline = time.monotonic() + timeout_s
    read = {fd: bytearray() for fd in fds}
    with selectors.DefaultSelector() as waiting:
        for fd in fds:
            waiting.register(fd, selectors.EVENT_READ)
        while waiting.get_map():
            if not (ready := waiting.select(max(deadline - time.monotonic(), 0))):
                raise TimeoutError
            for key, _ in ready:
                data = os.read(key.fd, 1 << 16)
                read[key.fd] += data
                if not data:
                    waiting.unregister(key.fd)
    return [bytes(read[fd]) for fd in fds]


# -- the warm process


def serve(asking: socket.socket) -> None:
    _load()
    gc.freeze()
    while True:
        size, fds, _, _ = socket.recv_fds(asking, 4, 3)
        if len(size) < 4:
            return
        asked = json.loads(asking.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL))
        pid = os.fork()
        if pid == 0:
            asking.close()
            _become(asked, fds)
        for fd in fds:
            os.close(fd)
        with contextlib.suppress(OSError):
            asking.sendall(pid.to_bytes(4, "big"))
            asking.sendall(os.waitpid(pid, 0)[1].to_bytes(4, "big"))


def _load() -> None:
    import muster

    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a process with threads is not forked
    for name in HEAVY:
        importlib.import_module(name)
    del os.environ["OPENBLAS_NUM_THREADS"]
    for each in pkgutil.walk_packages(muster.__path__, "muster."):
        if (
            not any(each.name == cold or each.name.startswith(f"{cold}.") for cold in COLD)
            and "__main__" not in each.name
        ):
            with contextlib.suppress(ImportError):  # of an extra that is not installed
                importlib.import_module(each.name)


def _become(asked: dict[str, Any], fds: Sequence[int]) -> NoReturn:
    for fd, there in zip(fds, range(3), strict=True):
        os.dup2(fd, there)
        os.close(fd)
    os.umask(asked["umask"])
    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir(asked["cwd"])
    import muster
    from muster.faces.cli import main

    sys.argv[:] = [str(Path(muster.__file__).with_name("__main__.py")), *asked["words"]]
    code = 0
    try:
        main()
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    # as the interpreter ends, less the clearing of all that was loaded before the fork: it was never ours
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = 120
    gc.collect()  # what the command had open is closed by now: a database without its -wal, as a test may look for
    os._exit(code)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
