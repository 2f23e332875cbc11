"""Tries patterns of users on lines, as a process of its own: `re` can't be interrupted, a process can be ended.

Run by path, as `python -I -S pattern_child.py`: nothing of Muster is imported. Each request and each answer is a length
and that many bytes of marshal. The kernel ends the process where a request takes too much processor time or memory, and
it ends by itself when nobody asks any more.
"""

from __future__ import annotations

import marshal
import os
import re
import resource
import signal
import sys

MOST_HITS = 64  # of a line, the last ones
CHILD_MEMORY = 1 << 30
PatternHit = tuple[object, bool, dict[str, object]]  # the group, whether it ends the line, groups with a name


def find_pattern_hits(text: str, pattern: re.Pattern[str], group: str | int, most: int) -> list[PatternHit]:
    """The first one alone where `most` is 1; else the last ones, in the order of the line."""
    found: list[PatternHit] = []
    named = bool(pattern.groupindex)
    for match in pattern.finditer(text):
        found.append((match.group(group), match.end(group) == len(text), match.groupdict() if named else {}))
        if most == 1:
            break
        if len(found) > 2 * most:
            del found[:-most]
    return found[-most:]


def _read_request_bytes(count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = os.read(0, count - len(data))
        if not piece:
            raise SystemExit(0)
        data += piece
    return data


def _answer_request() -> None:
    regex, group, most, lines, seconds = marshal.loads(
        _read_request_bytes(int.from_bytes(_read_request_bytes(8), "little"))
    )
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    pattern = re.compile(regex)
    found = [find_pattern_hits(line, pattern, group, most) for line in lines]
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    told = marshal.dumps(found)
    told = len(told).to_bytes(8, "little") + told
    while told:
        told = told[os.write(1, told) :]


def main() -> None:
    for name in (signal.SIGINT, signal.SIGHUP):  # meant for the command; its end ends this
        signal.signal(name, signal.SIG_IGN)
    signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_AS, (CHILD_MEMORY, CHILD_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.setrecursionlimit(5000)
    while True:
        _answer_request()


if __name__ == "__main__":
    main()
