"""Mends decisions.jsonl: lines that can't be read are set aside, and what was lost is put back in its order."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from muster.domain.decision import Decision
from muster.domain.terminal_text import blanked
from muster.ports.no_json import NO_JSON
from muster.ports.write_files import open_to_append, write_atomically
from muster.store.log import FileLog
from muster.store.text import decode_decision, encode


@dataclass(frozen=True, slots=True)
class Mended:
    entries: tuple[tuple[int, int, Decision], ...]  # begin, end, decision
    torn: tuple[str, ...] = ()  # "line 12: {..."
    restored: int = 0


@dataclass(frozen=True, slots=True)
class _Line:
    data: bytes  # as it stands in the file: a newer version's fields must survive
    decision: Decision
    begin: int = -1

    @property
    def key(self) -> bytes:
        """Without `ref`: of a decision that stands in the log twice the database keeps it once."""
        return encode(replace(self.decision, ref=None))


def mend_log(folder: Path, seen: Sequence[Decision], first: Sequence[Decision], *, change: bool = True) -> Mended:
    """`seen` are the decisions that the database has folded, `first` those to begin a lost log with.

    A log without a fault is left as it is, byte for byte.
    """
    path = folder / "decisions.jsonl"
    fd = FileLog(path).open_locked() if change else os.open(_existing(path), os.O_RDONLY)
    try:
        good, bad = _read(fd)
        whole, restored = _merged(good, seen)
        if not any(line.decision.kind == "campaign" for line in whole):
            whole = [*map(_line, first), *whole]
        if change:
            os.fsync(fd)  # what a crash left unsynced must not be in the database before it is in the log
        if bad or len(whole) != len(good):
            if change:
                _set_aside(path.with_suffix(".torn"), [line for _, line in bad])
                _rewrite(path, whole)
            whole = _placed(whole)
    finally:
        os.close(fd)
    entries = tuple((line.begin, line.begin + len(line.data) + 1, line.decision) for line in whole)
    return Mended(entries, tuple(f"line {number}: {_shown(line)}" for number, line in bad), restored)


def _existing(path: Path) -> str:
    return str(path) if path.exists() else os.devnull


def _line(decision: Decision) -> _Line:
    return _Line(encode(decision), decision)


def _read(fd: int) -> tuple[list[_Line], list[tuple[int, bytes]]]:
    """The decisions, and (line number, bytes) of what is none. A last line without its end never took effect."""
    blocks: list[bytes] = []
    while block := os.pread(fd, 1 << 24, sum(map(len, blocks))):
        blocks.append(block)
    lines = b"".join(blocks).split(b"\n")
    good: list[_Line] = []
    bad: list[tuple[int, bytes]] = []
    begin = 0
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                decision = decode_decision(line)
                if number == len(lines):
                    bad.append((number, line))
                else:
                    good.append(_Line(line, decision, begin))
            except NO_JSON:
                bad.append((number, line))
        begin += len(line) + 1
    return good, bad


def _merged(good: Sequence[_Line], seen: Sequence[Decision]) -> tuple[list[_Line], int]:
    """The log's decisions with those that only the database knows, in its order; how many these are."""
    known = list(map(_line, seen))
    here: dict[bytes, list[_Line]] = {}
    for line in good:
        here.setdefault(line.key, []).append(line)
    missing = Counter(line.key for line in known) - Counter(line.key for line in good)
    restored = sum(missing.values())
    if not restored:
        return list(good), 0
    folded = [here[line.key].pop(0) if here.get(line.key) else line for line in known]
    beyond = sorted((line for lines in here.values() for line in lines), key=lambda line: line.begin)
    return [*folded, *beyond], restored


def _placed(lines: Sequence[_Line]) -> list[_Line]:
    placed, at = [], 0
    for line in lines:
        placed.append(_Line(line.data, line.decision, at))
        at += len(line.data) + 1
    return placed


def _set_aside(path: Path, lines: Sequence[bytes]) -> None:
    if not lines:
        return
    with open(open_to_append(path), "ab") as torn:
        torn.write(b"".join(line + b"\n" for line in lines))
        torn.flush()
        os.fsync(torn.fileno())


def _rewrite(path: Path, lines: Sequence[_Line]) -> None:
    write_atomically(path, b"".join(line.data + b"\n" for line in lines), sync=True)


def _shown(line: bytes) -> str:
    clean = blanked(line.decode("utf-8", "replace"), "?")
    return clean if len(clean) <= 80 else clean[:79] + "…"
