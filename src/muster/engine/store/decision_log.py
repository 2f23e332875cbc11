"""`decisions.jsonl`: appended and fsynced before anything takes effect. The database is folded from it. Texts are
written without secrets; damaged lines are set aside and what was lost is put back in its order.

Names, paths, hashes, tokens and what is executed are not masked: they are no texts.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from muster.files.atomic_write import open_to_append, sync_folder, write_atomically
from muster.files.crash_points import reach_crash_point
from muster.files.json_codec import JSON_ERRORS, decode_decision, encode_json_bytes
from muster.files.known_secrets import register_state_secrets, secret_mask_function
from muster.files.safe_open import open_plain_file
from muster.files.state_folder import locate_campaign
from muster.model.campaign_location import relativize_decision_paths
from muster.model.decision import Decision
from muster.text.phrases import Phrase, english_text, phrase, phrase_as_data
from muster.text.terminal_text import replace_unprintable

TEXT_KEYS = frozenset(
    (
        "reason",
        "reasons",
        "note",
        "reading",
        "detail",
        "lines",
        "advice",
        "contributing",
        "text",
        "message",
        "messages",
        "because",
        "why",
        "trouble",
        "error",
        "told",
        "stopped",
        "retry_cause",
    )
)
TextMask = Callable[[str], str]


def mask_decisions(decisions: Sequence[Decision]) -> list[Decision]:
    mask = secret_mask_function()
    return [mask_decision(each, mask) for each in decisions]


def mask_decision(decision: Decision, mask: TextMask) -> Decision:
    texts = TEXT_KEYS | {"command"} if decision.kind == "finish" else TEXT_KEYS  # it is executed as the campaign has it
    decision = _with_phrase(decision)
    reason, data = mask(decision.reason), _mask_decision_data(decision.data, texts, mask)
    if reason == decision.reason and data == decision.data:
        return decision
    return replace(decision, reason=reason, data=data)


def _mask_decision_data(value: Any, texts: frozenset[str], mask: TextMask, *, told: bool = False) -> Any:
    if isinstance(value, str):
        return mask(value) if told else value
    if isinstance(value, Mapping):
        return {
            key: _drop_phrases_with_secrets(each, mask)
            if key == "phrases"
            else _mask_decision_data(each, texts, mask, told=key in texts)
            for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        return type(value)([_mask_decision_data(each, texts, mask, told=told) for each in value])
    return value


def _with_phrase(decision: Decision) -> Decision:
    """Its reason in English; if it is a phrase, its code and parameters, too."""
    if not isinstance(decision.reason, Phrase):
        return decision
    reason = english_text(decision.reason)
    return replace(
        decision, reason=reason, data={**decision.data, "phrases": {reason: phrase_as_data(decision.reason)}}
    )


def _drop_phrases_with_secrets(value: Any, mask: TextMask) -> Any:
    """Codes and parameters of texts: where anything of them must be hidden, the English texts alone are kept."""
    text = encode_json_bytes(value).decode()
    return value if mask(text) == text else {}


LOCK_PATIENCE_S = 2.0
TAIL_BLOCK = 1 << 16  # bytes that are read at once, from the end, to find a torn line


def _decode_log_lines(data: bytes, offset: int) -> Iterator[tuple[int, int, Decision]]:
    *whole, _torn = data.split(b"\n")  # a last line without its end was torn by a crash: it never took effect
    for line in whole:
        begin, offset = offset, offset + len(line) + 1
        if line.strip():
            yield begin, offset, decode_decision(line)


class FileDecisionLog:
    def __init__(self, path: Path) -> None:
        self.path = path
        register_state_secrets(path.parent)

    def append(self, decisions: Sequence[Decision]) -> tuple[int, int]:
        """Paths below the campaign's folder are written relative to it: the folder may move. Texts without secrets."""
        where, told = locate_campaign(self.path.parent), mask_decisions(decisions)
        data = b"".join(
            encode_json_bytes(replace(each, data=relativize_decision_paths(each.data, where))) + b"\n" for each in told
        )
        fd = self.open_locked()
        try:
            begin = self._cut_torn_line(fd)
            try:
                if os.write(fd, data) != len(data):
                    raise OSError(28, os.strerror(errno.ENOSPC), str(self.path))
                reach_crash_point("log.append")
                os.fsync(fd)
            except OSError:
                os.ftruncate(fd, begin)  # all of it or none: a half line would be cut away anyway
                raise
            reach_crash_point("log.fsync")
            if begin == 0:
                sync_folder(self.path.parent)
            return begin, begin + len(data)
        finally:
            os.close(fd)

    def sync(self) -> int:
        fd = self.open_locked()  # nobody is in the middle of an append, which may yet take its lines back
        try:
            size = os.fstat(fd).st_size
            os.fsync(fd)
            reach_crash_point("log.fsync")
            return size
        finally:
            os.close(fd)

    def open_locked(self) -> int:
        """The log, locked; not one that fsck has replaced while we waited for the lock."""
        while True:
            fd = open_to_append(self.path, flags=os.O_RDWR)
            try:
                self._lock(fd)
                if os.fstat(fd).st_nlink:
                    return fd
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)

    def _lock(self, fd: int) -> None:
        """Appending takes a moment; whoever holds it longer was stopped in the middle and may never go on."""
        deadline = time.monotonic() + LOCK_PATIENCE_S
        while True:
            try:
                return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    text = phrase("store.log_lock_held")
                    raise BlockingIOError(errno.EAGAIN, text, str(self.path)) from None
                time.sleep(0.002)

    def size(self) -> int:
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def _cut_torn_line(self, fd: int) -> int:
        """Cuts off a line that a crash tore; keeps what was torn beside the log. Returns the length."""
        size = os.fstat(fd).st_size
        if size == 0 or os.pread(fd, 1, size - 1) == b"\n":
            return size
        whole, torn_part = _find_torn_line(fd, size)
        with open(open_to_append(self.path.with_suffix(".torn")), "ab") as torn:
            torn.write(torn_part + b"\n")
        os.ftruncate(fd, whole)
        return whole

    def read(self, offset: int, end: int | None = None) -> Iterator[tuple[int, int, Decision]]:
        try:
            with open(open_plain_file(str(self.path)), "rb") as file:
                file.seek(offset)
                data = file.read() if end is None else file.read(max(0, end - offset))
        except FileNotFoundError:
            return
        yield from _decode_log_lines(data, offset)


def _find_torn_line(fd: int, size: int) -> tuple[int, bytes]:
    """Where the last whole line ends, and what follows. From the end: one read of a large file ends before its end."""
    found = b""
    while len(found) < size:
        begin = max(0, size - len(found) - TAIL_BLOCK)
        block = os.pread(fd, size - len(found) - begin, begin)
        if begin + len(block) != size - len(found):
            raise OSError(errno.EIO, phrase("store.end_unreadable"))
        newline = block.rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1, block[newline + 1 :] + found
        found = block + found
    return 0, found


class InMemoryDecisionLog:
    """For the simulator and the contract tests."""

    def __init__(self) -> None:
        self.data = b""

    def append(self, decisions: Sequence[Decision]) -> tuple[int, int]:
        begin = len(self.data)
        self.data += b"".join(encode_json_bytes(decision) + b"\n" for decision in decisions)
        return begin, len(self.data)

    def sync(self) -> int:
        return len(self.data)

    def size(self) -> int:
        return len(self.data)

    def read(self, offset: int, end: int | None = None) -> Iterator[tuple[int, int, Decision]]:
        yield from _decode_log_lines(self.data[offset:end], offset)


@dataclass(frozen=True, slots=True)
class RepairedLog:
    entries: tuple[tuple[int, int, Decision], ...]  # begin, end, decision
    torn: tuple[str, ...] = ()  # "line 12: {..."
    restored: int = 0


@dataclass(frozen=True, slots=True)
class _LogLine:
    data: bytes  # as it stands in the file: a newer version's fields must survive
    decision: Decision
    begin: int = -1

    @property
    def key(self) -> bytes:
        """Without `ref`: of a decision that stands in the log twice the database keeps it once."""
        return encode_json_bytes(replace(self.decision, ref=None))


def repair_log(
    folder: Path, seen: Sequence[Decision], first: Sequence[Decision], *, change: bool = True
) -> RepairedLog:
    """`seen` are the decisions that the database has folded, `first` those to begin a lost log with.

    A log without a fault is left as it is, byte for byte.
    """
    path = folder / "decisions.jsonl"
    fd = FileDecisionLog(path).open_locked() if change else os.open(_existing_log_path(path), os.O_RDONLY)
    try:
        good, bad = _read_log_lines(fd)
        whole, restored = _merge_log_lines(good, seen)
        if not any(line.decision.kind == "campaign" for line in whole):
            whole = [*map(_make_log_line, first), *whole]
        if change:
            os.fsync(fd)  # what a crash left unsynced must not be in the database before it is in the log
        if bad or len(whole) != len(good):
            if change:
                _set_lines_aside(path.with_suffix(".torn"), [line for _, line in bad])
                _rewrite_log(path, whole)
            whole = _place_log_lines(whole)
    finally:
        os.close(fd)
    entries = tuple((line.begin, line.begin + len(line.data) + 1, line.decision) for line in whole)
    return RepairedLog(
        entries,
        tuple(phrase("store.torn_line", number=number, text=_shorten_torn_line(line)) for number, line in bad),
        restored,
    )


def _existing_log_path(path: Path) -> str:
    return str(path) if path.exists() else os.devnull


def _make_log_line(decision: Decision) -> _LogLine:
    return _LogLine(encode_json_bytes(decision), decision)


def _read_log_lines(fd: int) -> tuple[list[_LogLine], list[tuple[int, bytes]]]:
    """The decisions, and (line number, bytes) of what is none. A last line without its end never took effect."""
    blocks: list[bytes] = []
    while block := os.pread(fd, 1 << 24, sum(map(len, blocks))):
        blocks.append(block)
    lines = b"".join(blocks).split(b"\n")
    good: list[_LogLine] = []
    bad: list[tuple[int, bytes]] = []
    begin = 0
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                decision = decode_decision(line)
                if number == len(lines):
                    bad.append((number, line))
                else:
                    good.append(_LogLine(line, decision, begin))
            except JSON_ERRORS:
                bad.append((number, line))
        begin += len(line) + 1
    return good, bad


def _merge_log_lines(good: Sequence[_LogLine], seen: Sequence[Decision]) -> tuple[list[_LogLine], int]:
    """The log's decisions with those that only the database knows, in its order; how many these are."""
    known = list(map(_make_log_line, seen))
    here: dict[bytes, list[_LogLine]] = {}
    for line in good:
        here.setdefault(line.key, []).append(line)
    missing = Counter(line.key for line in known) - Counter(line.key for line in good)
    restored = sum(missing.values())
    if not restored:
        return list(good), 0
    folded = [here[line.key].pop(0) if here.get(line.key) else line for line in known]
    beyond = sorted((line for lines in here.values() for line in lines), key=lambda line: line.begin)
    return [*folded, *beyond], restored


def _place_log_lines(lines: Sequence[_LogLine]) -> list[_LogLine]:
    placed, at = [], 0
    for line in lines:
        placed.append(_LogLine(line.data, line.decision, at))
        at += len(line.data) + 1
    return placed


def _set_lines_aside(path: Path, lines: Sequence[bytes]) -> None:
    if not lines:
        return
    with open(open_to_append(path), "ab") as torn:
        torn.write(b"".join(line + b"\n" for line in lines))
        torn.flush()
        os.fsync(torn.fileno())


def _rewrite_log(path: Path, lines: Sequence[_LogLine]) -> None:
    write_atomically(path, b"".join(line.data + b"\n" for line in lines), sync=True)


def _shorten_torn_line(line: bytes) -> str:
    clean = replace_unprintable(line.decode("utf-8", "replace"), "?")
    return clean if len(clean) <= 80 else clean[:79] + "…"
