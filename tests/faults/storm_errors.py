"""Errors of system calls, file by file: EIO, ENOSPC or EMFILE for the next call that touches a kind of file.

A filter in the kernel (seccomp with a listener) asks the server below before every call that opens, writes, syncs,
links or renames; the server lets it pass or answers with an error. All that a filtered process starts is filtered too:
controllers, guards, shims under `python -I -S`, SQLite inside them, the shell of a run. This needs no compiler, no
package and no root, only Linux 5.5 on x86_64; where it can't be had, `why_no_errors` says why.
"""

import ctypes
import errno
import fcntl
import json
import os
import platform
import select
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

AT_FDCWD = 0xFFFFFF9C
# call -> (number on x86_64, where its file is: an argument that is a descriptor, or (folder's, path's) arguments)
CALLS: dict[str, tuple[int, int | tuple[int | None, int]]] = {
    "open": (2, (None, 0)),
    "openat": (257, (0, 1)),
    "write": (1, 0),
    "pwrite": (18, 0),
    "fsync": (74, 0),
    "fdatasync": (75, 0),
    "ftruncate": (77, 0),
    "rename": (82, (None, 1)),
    "renameat": (264, (2, 3)),
    "renameat2": (316, (2, 3)),
    "link": (86, (None, 1)),
    "linkat": (265, (2, 3)),
    "mkdir": (83, (None, 0)),
    "mkdirat": (258, (0, 1)),
}
NAMES = {number: name for name, (number, _) in CALLS.items()}
ERRORS = {"EIO": errno.EIO, "ENOSPC": errno.ENOSPC, "EMFILE": errno.EMFILE}
OPENING = ("open", "openat")  # the only calls that can want a new descriptor

# what a file is for, by how its path ends; a partial file `.NAME.PID` is the file it becomes
KINDS = {
    "decisions.jsonl": ("/decisions.jsonl",),
    "campaign.db": ("/campaign.db",),
    "campaign.db-wal": ("/campaign.db-wal", "/campaign.db-shm", "/campaign.db-journal"),
    "controller.lock": ("/controller.lock",),
    "controller.log": ("/controller.log",),
    "intent": ("/intent",),
    "watch.json": ("/watch.json", "/watch"),
    "status tables": ("/reports/status/",),
    "launched": ("/launched", "/.launched.new"),
    "code.json": ("/code.json",),
    "place": ("/place",),
    "ballast": ("/ballast",),
    "bell": ("/bell",),
    "environment": ("/env/",),
    "campaign": ("/.muster/campaigns/",),
    "register": ("/campaigns/",),
    "attempt.json": ("/attempt.json",),
    "started": ("/started",),
    "identity.json": ("/identity.json",),
    "execing": ("/execing",),
    "exit.json": ("/exit.json",),
    "shim.lock": ("/shim.lock",),
    "tree.lock": ("/tree.lock",),
    "stop": ("/stop", "/stopping.jsonl"),
    "output": ("/stdout.log", "/stderr.log"),
    "slot": ("/slots/",),
    "guard": ("/guard.lock", "/guard.json"),
}


def kind_of(path: str) -> str | None:
    """The kind of a file of Muster; None: it is somebody else's."""
    folder, _, name = path.rpartition("/")
    if name.startswith(".") and name.rpartition(".")[2].isdecimal():
        name = name[1:].rpartition(".")[0]
    for kind, endings in KINDS.items():
        if f"/{name}" in endings or any(f"{folder}/".endswith(each) for each in endings if each.endswith("/")):
            return kind
    return None


@dataclass
class Fault:
    """The next `times` calls that touch a file of this kind fail, if they come before `until`."""

    number: int
    error: str
    kind: str
    times: int
    until: float  # monotonic
    calls: tuple[str, ...] = ()  # (): any

    def hits(self, call: str, path: str) -> bool:
        return (not self.calls or call in self.calls) and kind_of(path) == self.kind


# -- the filter


class _Instruction(ctypes.Structure):
    _fields_ = [("code", ctypes.c_ushort), ("yes", ctypes.c_ubyte), ("no", ctypes.c_ubyte), ("k", ctypes.c_uint)]


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.POINTER(_Instruction))]


_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ASK, _X86_64 = 0x7FFF0000, 0x7FC00000, 0xC000003E
_SECCOMP, _SET_FILTER, _NEW_LISTENER, _NO_NEW_PRIVILEGES = 317, 1, 8, 38
_RECEIVE, _ANSWER = 0xC0502100, 0xC0182101
_CONTINUE = 1
_libc = ctypes.CDLL(None, use_errno=True)


def install_filter() -> int:
    """From here on this process and its children are asked about; returns the descriptor that is asked."""
    numbers = [number for number, _ in CALLS.values()]
    lines = [_Instruction(_LOAD, 0, 0, 4), _Instruction(_EQUAL, 0, len(numbers) + 1, _X86_64)]
    lines.append(_Instruction(_LOAD, 0, 0, 0))
    lines += [_Instruction(_EQUAL, len(numbers) - at, 0, number) for at, number in enumerate(numbers)]
    lines += [_Instruction(_RETURN, 0, 0, _ALLOW), _Instruction(_RETURN, 0, 0, _ASK)]
    program = _Program(len(lines), (_Instruction * len(lines))(*lines))
    if os.geteuid() != 0:
        _libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    listener = int(_libc.syscall(_SECCOMP, _SET_FILTER, _NEW_LISTENER, ctypes.byref(program)))
    if listener < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return listener


def why_no_errors() -> str:
    """Why not, if not."""
    if platform.machine() != "x86_64" or sys.platform != "linux":
        return f"errors are injected on Linux x86_64 only, not on {sys.platform} {platform.machine()}"
    code = "import sys; sys.path.insert(0, sys.argv[1]); import storm_errors; storm_errors.install_filter()"
    tried = subprocess.run(
        [sys.executable, "-c", code, str(Path(__file__).parent)], capture_output=True, text=True, check=False
    )
    return f"the kernel lets nobody ask: {tried.stderr.strip()[-200:]}" if tried.returncode else ""


# -- the harness's side


@dataclass
class Errors:
    """Arms faults and tells which of them were reached."""

    folder: str  # nothing outside it fails
    server: subprocess.Popen[bytes]
    control: socket.socket
    door: socket.socket
    armed: dict[int, Fault] = field(default_factory=dict)
    reached: list[tuple[Fault, str, str]] = field(default_factory=list)  # fault, call, path

    @classmethod
    def start(cls, folder: str) -> "Errors":
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        door, inside = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, inside:
            fds = (theirs.fileno(), inside.fileno())
            command = [sys.executable, "-S", __file__, *map(str, fds), folder]
            server = subprocess.Popen(command, pass_fds=fds, stdin=subprocess.DEVNULL, env={})
        return cls(folder, server, control, door)

    def filtered(self) -> Callable[[], None]:
        """For `preexec_fn`: the started process and all that it starts are asked about."""

        def enter() -> None:
            listener = install_filter()
            socket.send_fds(self.door, [b"listener"], [listener])
            os.close(listener)

        return enter

    def arm(self, error: str, kind: str, times: int, seconds: float) -> Fault:
        calls = OPENING if error == "EMFILE" else ()
        fault = Fault(len(self.armed), error, kind, times, time.monotonic() + seconds, calls)
        self.armed[fault.number] = fault
        self.control.send(json.dumps(fault.__dict__).encode())
        return fault

    def collect(self) -> list[tuple[Fault, str, str]]:
        """What was reached since the last time."""
        found = []
        while select.select([self.control], [], [], 0)[0]:
            data = self.control.recv(65536)
            if not data:
                raise AssertionError(f"the server of errors is gone: {self.server.poll()}")
            told = json.loads(data)
            found.append((self.armed[told["number"]], told["call"], told["path"]))
        self.reached += found
        return found

    def calm(self) -> None:
        self.control.send(b"null")

    def close(self) -> None:
        self.control.close()
        self.door.close()
        self.server.wait(timeout=20)


# -- the server's side


class Server:
    def __init__(self, control: socket.socket, door: socket.socket, folder: str) -> None:
        self.control, self.door, self.folder = control, door, folder
        self.faults: list[Fault] = []
        self.poll = select.poll()
        for each in (control, door):
            self.poll.register(each, select.POLLIN)

    def run(self) -> None:
        while True:
            for fd, event in self.poll.poll():
                if fd == self.control.fileno():
                    if not self._obey():
                        return
                elif fd == self.door.fileno():
                    self._admit()
                elif event & select.POLLIN:
                    self._answer(fd)
                else:  # the last of its processes is gone
                    self.poll.unregister(fd)
                    os.close(fd)

    def _obey(self) -> bool:
        data = self.control.recv(65536)
        told = json.loads(data) if data else None
        if told:
            self.faults.append(Fault(**told))
        elif data:
            self.faults.clear()
        return bool(data)

    def _admit(self) -> None:
        data, fds, _, _ = socket.recv_fds(self.door, 16, 1)
        if not data:
            self.poll.unregister(self.door)
        for fd in fds:
            self.poll.register(fd, select.POLLIN)

    def _answer(self, listener: int) -> None:
        asked = bytearray(80)
        try:
            fcntl.ioctl(listener, _RECEIVE, asked)
        except OSError:  # it was killed while it waited
            return
        number, pid, _, call, _, _, *words = struct.unpack("QIIiIQ6Q", asked)
        error = self._error(pid, NAMES[call], words) if self.faults else 0
        try:
            fcntl.ioctl(listener, _ANSWER, bytearray(struct.pack("QqiI", number, 0, -error, 0 if error else _CONTINUE)))
        except OSError:  # killed, or interrupted by a signal and asked again
            pass

    def _error(self, pid: int, call: str, words: list[int]) -> int:
        now = time.monotonic()
        self.faults = [fault for fault in self.faults if fault.until > now and fault.times > 0]
        path = path_of(pid, call, words) if self.faults else ""
        if not path.startswith(self.folder):
            return 0
        for fault in self.faults:
            if fault.hits(call, path):
                fault.times -= 1
                self.control.send(json.dumps({"number": fault.number, "call": call, "path": path}).encode())
                return ERRORS[fault.error]
        return 0


def path_of(pid: int, call: str, words: list[int]) -> str:
    """The file that a call is about, as it is known to the process that calls; "" where it can't be read."""
    where = CALLS[call][1]
    try:
        if isinstance(where, int):
            return read_link(f"/proc/{pid}/fd/{words[where] & 0xFFFFFFFF}")
        folder, name = where
        path = _text(pid, words[name])
        if path.startswith("/"):
            return path
        fd = AT_FDCWD if folder is None else words[folder] & 0xFFFFFFFF
        base = read_link(f"/proc/{pid}/cwd" if fd == AT_FDCWD else f"/proc/{pid}/fd/{fd}")
        return f"{base}/{path}"
    except (OSError, OverflowError):
        return ""


def read_link(path: str) -> str:
    return str(Path(path).readlink())


def _text(pid: int, address: int) -> str:
    fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
    try:  # not across a page that may not be there
        data = os.pread(fd, 4096 - address % 4096, address)
        if b"\0" not in data:
            data += os.pread(fd, 4096, address + len(data))
        return os.fsdecode(data.partition(b"\0")[0])
    finally:
        os.close(fd)


def serve(words: list[str]) -> Any:
    control, door = (socket.socket(fileno=int(word)) for word in words[:2])
    Server(control, door, words[2]).run()


if __name__ == "__main__":
    serve(sys.argv[1:])
