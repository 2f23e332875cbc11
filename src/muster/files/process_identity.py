"""What /proc says about processes: identity, state, the token in an environment."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from muster.model.attempt_snapshot import LARGEST_PID


@dataclass(frozen=True, slots=True)
class ProcessState:
    pid: int
    state: str  # R S D T Z ...
    ticks: int  # start time


@dataclass(frozen=True, slots=True)
class TokenCarrier:
    """A process with the token of an attempt in its environment."""

    pid: int
    home: str | None  # its MUSTER_HOME; None: the usual one of whoever started it


def read_process(pid: int) -> ProcessState | None:
    """None: there is no such process."""
    if not _is_possible_pid(pid):
        return None
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            fields = os.read(fd, 4096).rpartition(b")")[2].split()
        finally:
            os.close(fd)
    except (FileNotFoundError, ProcessLookupError):
        return None
    state = fields[0].decode()
    if state == "Z" and int(fields[17]) > 1:  # only its main thread has ended: a CUDA process takes seconds to end
        try:
            state = _state_of_working_thread(pid)
        except (FileNotFoundError, ProcessLookupError):
            return None
    return ProcessState(pid, state, int(fields[19]))


def is_hidden_process(pid: int) -> bool:
    """It is there, but /proc does not show it to us; whether it is the one we know can't be told."""
    if not _is_possible_pid(pid):
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return read_process(pid) is None  # it may have been born, or have died, in between


def _is_possible_pid(pid: int) -> bool:
    """Files say it that others may write: 0 and less mean whole groups, and system calls refuse what is larger."""
    return 0 < pid <= LARGEST_PID


def _state_of_working_thread(pid: int) -> str:
    """The state of a thread that lives, in a process whose main thread has ended."""
    for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
        try:
            with open(f"/proc/{pid}/task/{thread}/stat", "rb") as file:
                state = file.read().rpartition(b")")[2].split()[0].decode()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state not in "ZX":
            return state
    return "Z"


def read_boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def read_pid_namespace() -> int:
    return Path("/proc/self/ns/pid").stat().st_ino


def read_init_ticks() -> int:
    """0: /proc hides process 1 from us."""
    try:
        found = read_process(1)
    except OSError:
        return 0
    return found.ticks if found else 0


def carriers_of_tokens(tokens: set[str]) -> dict[str, list[int]]:
    """Live processes that carry one of the tokens in their environment: one pass over /proc for all of them."""
    found: dict[str, list[int]] = {token: [] for token in tokens}
    wanted = {b"MUSTER_ATTEMPT=" + token.encode(): token for token in tokens}
    for pid, environment in _environments_with_token():
        for variable in environment.split(b"\0"):
            token = wanted.get(variable)
            if token and is_alive(pid):
                found[token].append(pid)
    return found


def all_token_carriers() -> dict[str, list[TokenCarrier]]:
    """Live processes that carry any token at all: runs of every campaign. Raises OSError where /proc can't be read."""
    found: dict[str, list[TokenCarrier]] = {}
    for pid, environment in _environments_with_token():
        words = dict(word.partition(b"=")[::2] for word in environment.split(b"\0"))
        token, home = words.get(b"MUSTER_ATTEMPT"), words.get(b"MUSTER_HOME")
        if token and is_alive(pid):
            told = TokenCarrier(pid, None if home is None else os.fsdecode(home))
            found.setdefault(os.fsdecode(token), []).append(told)
    return found


def muster_home_of_process(pid: int) -> str | None:
    """Its MUSTER_HOME; None: the usual one, or it can't be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            words = dict(word.partition(b"=")[::2] for word in file.read().split(b"\0"))
    except OSError:
        return None
    home = words.get(b"MUSTER_HOME")
    return None if home is None else os.fsdecode(home)


def _environments_with_token() -> Iterator[tuple[int, bytes]]:
    """Of the processes that carry a token and may be read: those of other users are none of ours.

    Raises OSError where we can't look for another reason: whom we could not read may carry it.
    """
    for name in os.listdir("/proc"):  # noqa: PTH208 - thousands of Path objects for nothing
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                environment = file.read()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if b"MUSTER_ATTEMPT=" in environment:
            yield int(name), environment


def is_alive(pid: int) -> bool:
    """Whether it is there and has not ended, reaped or not."""
    found = read_process(pid)
    return found is not None and found.state not in "ZX"


def kill_exact_process(pid: int, ticks: int, held: Path | None = None) -> None:
    """SIGKILL to the process of that pid and start time and to no other, however pids are reused.

    `held`: the lock that names it. A process that does not have this very file open is spared: anybody may have
    written its name into a state that was brought here, and hold the lock himself.
    """
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if _process_start_ticks(pid) == ticks and (held is None or process_has_open(pid, held)):
            signal.pidfd_send_signal(fd, signal.SIGKILL)
    except OSError:
        pass
    finally:
        os.close(fd)


def is_flock_taken(fd: int) -> bool:
    """Whether somebody else holds the lock of this file. Closes the descriptor."""
    import fcntl

    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(fd)


def is_lock_held(path: str | os.PathLike[str]) -> bool:
    """Whether anyone holds the lock of this file, without taking it."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return is_flock_taken(fd)
    except OSError:  # it can't be told
        return True


def process_has_open(pid: int, path: Path) -> bool:
    """Whether this process has this very file open; not where we may not look."""
    try:
        facts, opened = path.lstat(), [each.path for each in os.scandir(f"/proc/{pid}/fd")]
    except OSError:
        return False
    return any(_is_same_file(each, facts) for each in opened)


def _is_same_file(path: str, facts: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(path), facts)  # noqa: PTH116
    except OSError:  # closed meanwhile
        return False


def _process_start_ticks(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return None
