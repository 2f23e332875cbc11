"""A campaign of a test: its folder, its home, and `muster` in it as a person or an assistant runs it."""

from __future__ import annotations

import errno
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from muster.hosts.local.guard_keeper import living_guard_pid
from warm_muster import run_muster

PATIENCE_S = 30.0

NVML = """\
import os, sys
class NVMLError(Exception): pass
class _Memory: used = 0
def nvmlInit(): pass
def nvmlShutdown(): pass
def nvmlDeviceGetCount():
    at = "muster.bootstrap.controller_process" in sys.orig_argv
    return int(os.environ["FAKE_GPUS"].split()[at])
def nvmlDeviceGetHandleByIndex(index): return index
def nvmlDeviceGetName(index): return "made up"
def nvmlDeviceGetComputeRunningProcesses(index): return []
def nvmlDeviceGetMemoryInfo(index): return _Memory
def nvmlSystemGetDriverVersion(): return "550.54.15"
def nvmlSystemGetCudaDriverVersion_v2(): return 12040
"""


def until(true: Callable[[], Any], what: str = "") -> Any:
    """Waits for an event; the only sleeping that tests do."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := true()):
        assert time.monotonic() < deadline, f"waited in vain for {what or true}"
        time.sleep(0.02)
    return found


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class Camp:
    until = staticmethod(until)
    alive = staticmethod(alive)

    def __init__(self, root: Path, home: Path) -> None:
        self.root = root
        self._background: list[subprocess.Popen[bytes]] = []
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("MUSTER_")}
        self.environment |= {"MUSTER_HOME": str(home), "MUSTER_GRACE_S": "2", "MUSTER_LANG": "en", "NO_COLOR": "1"}

    def write(self, text: str) -> None:
        (self.root / "campaign.yaml").write_text(text)

    def has_gpus(self, count: int, controller: int | None = None) -> None:
        """A made-up NVML tells of so many; `controller`: what the controller is told instead."""
        folder = self.root.parent / "nvml"
        folder.mkdir(exist_ok=True)
        (folder / "pynvml.py").write_text(NVML)
        told = f"{count} {count if controller is None else controller}"
        self.environment |= {"PYTHONPATH": str(folder), "FAKE_GPUS": told}

    def __call__(self, *args: str, code: int | None = None) -> subprocess.CompletedProcess[str]:
        """`muster ARGS` in the campaign's folder."""
        done = run_muster(args, self.root, self.environment, timeout_s=90)
        if code is not None:
            assert done.returncode == code, (args, done.returncode, done.stdout, done.stderr)
        return done

    def background(self, *args: str, **more: Any) -> subprocess.Popen[bytes]:
        started = subprocess.Popen(
            [sys.executable, "-m", "muster", *args], cwd=self.root, env=self.environment, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, **more,
        )  # fmt: skip
        self._background.append(started)
        return started

    def on_a_terminal(self, *args: str) -> tuple[int, int]:
        """Its pid and its screen. Ctrl-C reaches it even if whoever runs the tests ignores it, as `nohup ... &` does."""
        pid, screen = pty.fork()
        if pid == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.chdir(self.root)
            os.execve(sys.executable, [sys.executable, "-m", "muster", *args], self.environment)
        return pid, screen

    def json(self, *args: str, code: int | None = None) -> Any:
        return json.loads(self(*args, "--json", code=code).stdout)

    def cells(self) -> dict[str, str]:
        return {cell["cell"]: cell["verdict"] for cell in self.json("status")["cells"]}

    def folder(self, cell: str, n: int = 1) -> Path:
        return self.root / ".muster" / "attempts" / cell / str(n)

    def started(self, cell: str, n: int = 1) -> int:
        """Waits until the run has said its first word; its pid."""
        log, identity = self.folder(cell, n) / "stdout.log", self.folder(cell, n) / "identity.json"
        until(lambda: log.exists() and log.read_bytes().startswith(b"started"), f"the start of {cell}@{n}")
        return int(json.loads(identity.read_text())["pid"])

    def ended(self, cell: str, n: int = 1) -> Any:
        path = self.folder(cell, n) / "exit.json"
        until(path.exists, f"the end of {cell}@{n}")
        return json.loads(path.read_text())

    def gates(self, *names: object) -> None:
        for name in names:
            os.mkfifo(self.root / f"gate-{name}")

    def open(self, name: object, word: str = "0") -> None:
        """Lets a run go on: waits for it at its gate and says the word."""

        def say() -> bool:
            try:
                fd = os.open(self.root / f"gate-{name}", os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                if error.errno != errno.ENXIO:  # nobody reads yet
                    raise
                return False
            os.write(fd, f"{word}\n".encode())
            os.close(fd)
            return True

        until(say, f"somebody at gate {name}")

    def controller(self) -> int | None:
        try:
            pid = int(json.loads((self.root / ".muster" / "controller.lock").read_text())["pid"])
        except (OSError, ValueError, KeyError):
            return None
        return pid if alive(pid) else None

    def decisions(self, kind: str) -> list[dict[str, Any]]:
        lines = (self.root / ".muster" / "decisions.jsonl").read_text().splitlines()
        return [decision for line in lines if (decision := json.loads(line))["kind"] == kind]

    def pids(self) -> list[int]:
        """Every process that the campaign has written down."""
        found = [json.loads(path.read_text()) for path in self.root.glob(".muster/attempts/**/identity.json")]
        return [pid for who in found for pid in (who["pid"], who["shim_pid"])]

    def clean_up(self) -> None:
        if not (self.root / ".muster").exists():
            return
        for started in self._background:  # a test that failed half-way has not waited for it
            with started:
                started.kill()
        self("down", "--runs", "--because", "the test is over", "--timeout", "20s")
        left = [
            pid
            for pid in (*self.pids(), self.controller(), living_guard_pid(self.root / ".muster"))
            if pid and alive(pid)
        ]
        deadline = time.monotonic() + 5
        while (left := [pid for pid in left if alive(pid)]) and time.monotonic() < deadline:
            time.sleep(0.02)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        assert not left, f"left alive: {left}"
