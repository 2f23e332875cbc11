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

from muster.readers.pattern_child import MOST_HITS, PatternHit, find_pattern_hits

LONGEST_SEARCHED_LINE = 8192  # characters of a line that are looked at
PATTERN_SECONDS = 1.0  # of processor time that are spent on a pattern at once, and
CHARACTERS_PER_SECOND = 2_000_000  # characters that it must do in one more
CHILD_PATIENCE_S = 30.0  # for an answer, on a machine that is busy
REMEMBERED_S = 600.0
_WATCHED = 64  # short lines between two looks at the clock
_SHORT = 400  # characters

_slow_patterns: dict[str, tuple[float, str]] = {}  # regex -> when that was found, and what to say


class PatternTooSlow(OSError):
    """The pattern took too long; `strerror` says so. What it was to read can't be read with it."""


class UserPattern:
    """May be used from several threads."""

    def __init__(self, regex: str) -> None:
        self.regex = re.compile(regex)
        self.group: str | int = "step" if "step" in self.regex.groupindex else min(1, self.regex.groups)
        self._spent = 0.0
        self._length = 0

    def hits(self, texts: Sequence[str], most: int = MOST_HITS) -> list[list[PatternHit]]:
        """Of each line its last hits, or with `most=1` its first. Lines are cut. Raises TooSlow."""
        self.refuse_slow()
        regex = self.regex.pattern
        try:
            return (
                self._here(texts, most) if _is_tame_pattern(regex) else _hits_by_child(regex, self.group, texts, most)
            )
        except PatternTooSlow as slow:
            _slow_patterns[regex] = (time.monotonic(), str(slow.strerror))
            raise

    def refuse_slow(self) -> None:
        """Raises TooSlow where it was found to be too slow a while ago."""
        known = _slow_patterns.get(self.regex.pattern)
        if known and time.monotonic() - known[0] < REMEMBERED_S:
            raise PatternTooSlow(errno.ETIME, known[1])

    def _here(self, texts: Sequence[str], most: int) -> list[list[PatternHit]]:
        found: list[list[PatternHit]] = []
        began, unwatched = time.thread_time(), 0
        for text in texts:
            found.append(find_pattern_hits(text[-LONGEST_SEARCHED_LINE:], self.regex, self.group, most))
            self._length += len(text)
            unwatched += 1
            if unwatched >= _WATCHED or len(text) > _SHORT:
                unwatched, now = 0, time.thread_time()
                self._spent, began = self._spent + now - began, now
                if self._spent > PATTERN_SECONDS + self._length / CHARACTERS_PER_SECOND:
                    raise _slow_pattern_error(self.regex.pattern)
        self._spent += time.thread_time() - began
        return found


@functools.lru_cache(512)
def _is_tame_pattern(regex: str) -> bool:
    from muster.text.regex_cost import LONGEST_MATCHED_LINE, count_regex_ways

    return count_regex_ways(regex) <= 2 * LONGEST_MATCHED_LINE


def _slow_pattern_error(regex: str) -> PatternTooSlow:
    shown = regex if len(regex) <= 60 else regex[:57] + "..."
    return PatternTooSlow(
        errno.ETIME, f"the pattern {shown!r} is too slow: {PATTERN_SECONDS:.0f} s is not enough for a few lines"
    )


# -- the process


class _PatternProcess:
    def __init__(self) -> None:
        import atexit
        import subprocess
        import sys
        from pathlib import Path

        script = Path(__file__).with_name("pattern_child.py")
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            bufsize=0,
        )
        atexit.register(self.end)

    def ask(self, asked: Any) -> list[list[PatternHit]] | None:
        """None: it was ended, or did not answer."""
        import marshal

        data = marshal.dumps(asked)
        until = time.monotonic() + CHILD_PATIENCE_S
        try:
            assert self.process.stdin is not None
            _write_until(self.process.stdin.fileno(), len(data).to_bytes(8, "little") + data, until)
            size = int.from_bytes(self._read(8, until), "little")
            found: list[list[PatternHit]] = marshal.loads(self._read(size, until))
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


def _write_until(fd: int, data: bytes, until: float) -> None:
    import os
    import select

    os.set_blocking(fd, False)
    view = memoryview(data)
    while view:
        if not select.select([], [fd], [], max(0.0, until - time.monotonic()))[1]:
            raise EOFError
        with contextlib.suppress(BlockingIOError):
            view = view[os.write(fd, view) :]


_child_lock = threading.Lock()
_pattern_children: list[_PatternProcess] = []  # one, once it was needed


def _hits_by_child(regex: str, group: str | int, texts: Sequence[str], most: int) -> list[list[PatternHit]]:
    lines = [text[-LONGEST_SEARCHED_LINE:] for text in texts]
    seconds = PATTERN_SECONDS + sum(map(len, lines)) / CHARACTERS_PER_SECOND
    with _child_lock:
        if not _pattern_children or _pattern_children[0].process.poll() is not None:
            end_pattern_child()
            _pattern_children.append(_PatternProcess())
        found = _pattern_children[0].ask((regex, group, most, lines, seconds))
        if found is None:
            end_pattern_child()
            raise _slow_pattern_error(regex)
    return found


def end_pattern_child() -> None:
    """It is started anew where it is needed again."""
    while _pattern_children:
        _pattern_children.pop().end()
