"""`.muster/launched`: which attempts a shim was asked for, and who they turned out to be.

One line each, appended before the shim is asked for. It is not in the attempt's folder: whoever deletes that one does
not make a living run look as if it had never been started. Never synced: it matters only while the machine is up.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from pathlib import Path

import msgspec

from muster.domain.attempt import Attempt
from muster.domain.sighting import Identity
from muster.execute.slots import SlotHouse, home, own_home
from muster.ports.no_json import NO_JSON
from muster.ports.plain_files import NotPlain, open_plain
from muster.ports.write_files import open_to_append, write_atomically


class _Line(msgspec.Struct, omit_defaults=True):
    token: str
    identity: Identity | None = None


_decoder = msgspec.json.Decoder(_Line)


class LaunchBook:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = -1
        self._known: dict[str, Identity | None] = {}
        self._read: tuple[int, int] = (0, 0)  # inode, and how far

    def note(self, token: str, identity: Identity | None = None) -> None:
        self._known[token] = identity or self._known.get(token)
        line: dict[str, object] = {"token": token}
        if identity:
            line["identity"] = asdict(identity)
        self._append(msgspec.json.encode(line) + b"\n")

    def _append(self, line: bytes) -> None:
        if self._fd < 0 or os.fstat(self._fd).st_nlink == 0:  # somebody deleted it: what is known is written anew
            known = b"" if self._fd < 0 else b"".join(map(_encode, self._known.items()))
            self.close()
            self._fd = open_to_append(self.path, flags=os.O_RDWR)
            line = known or (b"\n" + line if self._torn() else line)
        if os.write(self._fd, line) < len(line):
            self.close()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))

    def _torn(self) -> bool:
        """A write that a full disk cut off must not spoil the next line."""
        size = os.fstat(self._fd).st_size
        return size > 0 and os.pread(self._fd, 1, size - 1) != b"\n"

    def known(self) -> dict[str, Identity | None]:
        """By token; what others wrote since is read as far as it goes. Raises OSError where it can't be told."""
        with contextlib.suppress(FileNotFoundError), open(open_plain(str(self.path)), "rb") as file:
            inode = os.fstat(file.fileno()).st_ino
            at = self._read[1] if self._read[0] == inode else 0
            file.seek(at)
            data = file.read()
            for line in data.splitlines():
                with contextlib.suppress(*NO_JSON):  # cut off
                    found = _decoder.decode(line)
                    self._known[found.token] = found.identity or self._known.get(found.token)
            self._read = (inode, at + data.rfind(b"\n") + 1)
        return self._known

    def keep_only(self, tokens: Collection[str]) -> None:
        """What is over is forgotten; for a controller that begins, which is the only one to write.

        It makes the book before it claims anything. Where the book is gone and attempts are open, somebody deleted it,
        and each of them may have been launched.
        """
        try:
            deleted, known = not self.path.exists(), self.known()
        except NotPlain:
            deleted, known = True, {}
        except OSError:  # it stays as it is, until it can be read
            return
        self._known = {token: known.get(token) for token in tokens if deleted or token in known}
        with contextlib.suppress(OSError):
            write_atomically(self.path, b"".join(map(_encode, self._known.items())))
            self._read = (0, 0)
            self.close()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _encode(entry: tuple[str, Identity | None]) -> bytes:
    token, identity = entry
    return msgspec.json.encode(_Line(token, identity)) + b"\n"


class LocalTraces:
    """What is known of this campaign's attempts on this machine. Only who was given the book writes into it."""

    def __init__(self, state: Path, book: LaunchBook | None = None) -> None:
        self.state = state
        self.book = book or LaunchBook(state / "launched")
        self.remembers = book is not None
        self.claimed_elsewhere: Callable[[Attempt], bool] = lambda _: False

    def launched(self, token: str) -> bool:
        return token in self.book.known()

    def identity(self, token: str) -> Identity | None:
        return self.book.known().get(token)

    def saw(self, token: str, identity: Identity) -> None:
        if self.remembers:
            with contextlib.suppress(OSError):
                self.book.note(token, identity)

    def refuges(self, token: str) -> Sequence[str]:
        return refuges(self.state, token)

    def holds_slot(self, attempt: Attempt, for_s: float = 0.0) -> bool:
        house = SlotHouse(home() / "slots")
        held = (name for name in attempt.slots if (who := house.holder(name)) and who.token == attempt.token)
        return any(house.signed_for_s(name) >= for_s for name in held)

    def elsewhere(self, attempt: Attempt) -> bool:
        return self.claimed_elsewhere(attempt)


def refuges(state: Path, token: str) -> tuple[str, ...]:
    """Beside the attempts, and on the disk of $MUSTER_HOME, which may be another one."""
    return (str(state / "lost" / token), str(own_home() / "lost" / token))
