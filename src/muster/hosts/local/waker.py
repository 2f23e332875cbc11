"""Sleeps on the bell (a FIFO that shims and commands ring) and on the pidfds of runs and shims."""

from __future__ import annotations

import os
import select
from collections.abc import Iterable
from pathlib import Path

from muster.engine.ports.executor import WakeReason
from muster.model.attempt import AttemptKey

ENDED_PROCESS = -1  # in place of the pidfd of a process that has ended


class LocalWaker:
    def __init__(self, bell: Path) -> None:
        if not bell.exists():
            try:
                os.mkfifo(bell, 0o600)
            except FileExistsError:
                pass
        # our own writer: no end-of-file
        self._bell = os.open(bell, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._poll = select.poll()
        self._poll.register(self._bell, select.POLLIN)
        self._fds: dict[int, AttemptKey] = {}  # pidfd -> attempt
        self._watched: dict[AttemptKey, dict[int, int]] = {}  # attempt -> pid -> pidfd
        self._missed: set[AttemptKey] = set()
        self._attended: set[int] = set()  # pidfds of others
        self._rest = b""

    def watch(self, key: AttemptKey, pids: Iterable[int]) -> None:
        known = self._watched.setdefault(key, {})
        for pid in pids:
            if pid in known:
                continue
            try:
                fd = os.pidfd_open(pid)
            except ProcessLookupError:
                known[pid] = ENDED_PROCESS
                self._missed.add(key)  # it ended between the look and now: another look must follow
                continue
            except OSError:
                continue  # no descriptor to be had: the poll looks after it
            known[pid] = fd
            self._fds[fd] = key
            self._poll.register(fd, select.POLLIN)

    def attend(self, pidfd: int) -> None:
        """Wake once, too, when this process ends; it is no attempt's. Whoever opened it closes it, after `ignore`."""
        self._attended.add(pidfd)
        self._poll.register(pidfd, select.POLLIN)

    def ignore(self, pidfd: int) -> None:
        if pidfd in self._attended:
            self._attended.remove(pidfd)
            self._poll.unregister(pidfd)

    def forget(self, key: AttemptKey) -> None:
        for fd in self._watched.pop(key, {}).values():
            self._drop(fd)

    def _drop(self, fd: int) -> None:
        if self._fds.pop(fd, None) is not None:
            self._poll.unregister(fd)
            os.close(fd)

    def _fired(self, fd: int) -> AttemptKey:
        """A pidfd fires once and for ever: close it, but remember the pid, so that it is not opened again."""
        key = self._fds[fd]
        known = self._watched.get(key, {})
        known.update({pid: ENDED_PROCESS for pid, number in known.items() if number == fd})
        self._drop(fd)
        return key

    def wait(self, timeout_s: float) -> WakeReason:
        attempts, self._missed = self._missed, set()
        log = False
        for fd, _ in self._poll.poll(0 if attempts else max(0, int(timeout_s * 1000 + 0.999))):
            if fd in self._attended:
                self.ignore(fd)
                continue
            if fd != self._bell:
                attempts.add(self._fired(fd))
                continue
            for line in self._ring():
                cell, _, n = line.partition("\t")
                if n.isdigit():
                    attempts.add((cell, int(n)))
                else:
                    log = True
        return WakeReason(frozenset(attempts), log)

    def _ring(self) -> list[str]:
        data = self._rest
        try:
            while chunk := os.read(self._bell, 65536):
                data += chunk
        except BlockingIOError:
            pass
        *lines, self._rest = data.split(b"\n")
        return [line.decode("utf-8", "replace") for line in lines]

    def close(self) -> None:
        for key in list(self._watched):
            self.forget(key)
        os.close(self._bell)
