"""The warm process that forks shims. Where it is missing or gone, shims are executed instead."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from muster.ports.write_files import umask_of_caller

SHIM = str(Path(__file__).with_name("shim.py"))
PYTHON = [sys.executable, "-I", "-S", SHIM]


class Warm:
    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def spawn(self, folder: str, fds: Sequence[int]) -> None:
        """Asks for a shim; returns before it runs. A request that is lost is noticed by the missing `started`."""
        for _ in range(2):
            server = self._socket or self._start()
            try:
                socket.send_fds(server, [folder.encode()], list(fds))
                return
            except OSError:
                self.close()
        _execute(folder, fds)

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [*PYTHON, "serve", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
                umask=umask_of_caller(),
            )
        self._socket = ours
        return ours

    def kill(self) -> None:
        """With its spare, which shares its process group; shims have sessions of their own and live on."""
        if self._process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self.close()

    def close(self) -> None:
        """It ends by itself when the socket closes; the shims it forked live on."""
        if self._socket:
            self._socket.close()
            self._socket = None
        if self._process:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=5)
            self._process = None


def _execute(folder: str, fds: Sequence[int]) -> None:
    command = [*PYTHON, "run", folder, ",".join(map(str, fds))]
    umask = umask_of_caller()
    subprocess.Popen(command, pass_fds=fds, stdin=subprocess.DEVNULL, start_new_session=True, cwd="/", umask=umask)
