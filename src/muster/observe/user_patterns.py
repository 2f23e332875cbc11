"""Regular expressions of users on lines of runs: a pattern that explodes on some line is given up, not waited for.

While `re` searches nothing else of this process runs, and it can't be interrupted. A pattern that by its form takes at
most quadratic time is tried here, its time being watched from line to line. Any other one is tried by a process that is
started at its first line and ends with this one; where the kernel ends it for its time, the pattern is too slow, which
is remembered for a while.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import re
import threading
import time
from collections.abc import Sequence
from typing import Any

from muster.observe.pattern_child import MOST_HITS, Hit, hits_in

LONGEST = 8192  # characters of a line that are looked at
SECONDS = 1.0  # of processor time that are spent on a pattern at once, and
PER_SECOND = 2_000_000  # characters that it must do in one more
PATIENCE_S = 30.0  # for an answer, on a machine that is busy
REMEMBERED_S = 600.0
_WATCHED = 64  # short lines between two looks at the clock
_SHORT = 400  # characters

_slow: dict[str, tuple[float, str]] = {}  # regex -> when that was found, and what to say


class TooSlow(OSError):
    """The pattern took too long; `strerror` says so. What it was to read can't be read with it."""


class UserPattern:
    """May be used from several threads."""

    def __init__(self, regex: str) -> None:
        self.regex = re.compile(regex)
        self.group: str | int = "step" if "step" in self.regex.groupindex else min(1, self.regex.groups)
        self._spent = 0.0
        self._length = 0

    def hits(self, texts: Sequence[str], most: int = MOST_HITS) -> list[list[Hit]]:
        """Of each line its last hits, or with `most=1` its first. Lines are cut. Raises TooSlow."""
        self.refuse_slow()
        regex = self.regex.pattern
        try:
            return self._here(texts, most) if _is_tame(regex) else _apart(regex, self.group, texts, most)
        except TooSlow as slow:
            _slow[regex] = (time.monotonic(), str(slow.strerror))
            raise

    def refuse_slow(self) -> None:
        """Raises TooSlow where it was found to be too slow a while ago."""
        known = _slow.get(self.regex.pattern)
        if known and time.monotonic() - known[0] < REMEMBERED_S:
            raise TooSlow(errno.ETIME, known[1])

    def _here(self, texts: Sequence[str], most: int) -> list[list[Hit]]:
        found: list[list[Hit]] = []
        began, unwatched = time.thread_time(), 0
        for text in texts:
            found.append(hits_in(text[-LONGEST:], self.regex, self.group, most))
            self._length += len(text)
            unwatched += 1
            if unwatched >= _WATCHED or len(text) > _SHORT:
                unwatched, now = 0, time.thread_time()
                self._spent, began = self._spent + now - began, now
                if self._spent > SECONDS + self._length / PER_SECOND:
                    raise _too_slow(self.regex.pattern)
        self._spent += time.thread_time() - began
        return found


@functools.lru_cache(512)
def _is_tame(regex: str) -> bool:
    from muster.domain.pattern_cost import LONGEST as COUNTED
    from muster.domain.pattern_cost import ways

    return ways(regex) <= 2 * COUNTED


def _too_slow(regex: str) -> TooSlow:
    shown = regex if len(regex) <= 60 else regex[:57] + "..."
    return TooSlow(errno.ETIME, f"the pattern {shown!r} is too slow: {SECONDS:.0f} s is not enough for a few lines")


# -- the process


class _Child:
    def __init__(self) -> None:
        import atexit
        import subprocess
        import sys
        from pathlib import Path

        script = Path(__file__).with_name("pattern_child.py")
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, cwd="/", bufsize=0,
        )  # fmt: skip
        atexit.register(self.end)

    def ask(self, asked: Any) -> list[list[Hit]] | None:
        """None: it was ended, or did not answer."""
        import marshal

        data = marshal.dumps(asked)
        until = time.monotonic() + PATIENCE_S
        try:
            assert self.process.stdin is not None
            _write(self.process.stdin.fileno(), len(data).to_bytes(8, "little") + data, until)
            size = int.from_bytes(self._read(8, until), "little")
            found: list[list[Hit]] = marshal.loads(self._read(size, until))
        except (OSError, EOFError, ValueError):
            return None
        return found

    def _read(self, count: int, until: float) -> bytes:
        import os
        import select

        assert self.process.stdout is not None
        fd = self.process.stdout.fileno()
        data = bytearray()
        while len(data) < count:
            if not select.select([fd], [], [], max(0.0, until - time.monotonic()))[0]:
                raise EOFError
            piece = os.read(fd, count - len(data))
            if not piece:
                raise EOFError
            data += piece
        return bytes(data)

    def end(self) -> None:
        import atexit

        atexit.unregister(self.end)
        with contextlib.suppress(OSError):
            self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self.process.wait()


def _write(fd: int, data: bytes, until: float) -> None:
    import os
    import select

    os.set_blocking(fd, False)
    view = memoryview(data)
    while view:
        if not select.select([], [fd], [], max(0.0, until - time.monotonic()))[1]:
            raise EOFError
        with contextlib.suppress(BlockingIOError):
            view = view[os.write(fd, view) :]


_lock = threading.Lock()
_child: list[_Child] = []  # one, once it was needed


def _apart(regex: str, group: str | int, texts: Sequence[str], most: int) -> list[list[Hit]]:
    lines = [text[-LONGEST:] for text in texts]
    seconds = SECONDS + sum(map(len, lines)) / PER_SECOND
    with _lock:
        if not _child or _child[0].process.poll() is not None:
            end_child()
            _child.append(_Child())
        found = _child[0].ask((regex, group, most, lines, seconds))
        if found is None:
            end_child()
            raise _too_slow(regex)
    return found


def end_child() -> None:
    """It is started anew where it is needed again."""
    while _child:
        _child.pop().end()
