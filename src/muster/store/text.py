"""JSON of what people and file systems hand in: what is no Unicode is spelled out. A decision is read within bounds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from muster.domain.decision import LARGEST, Decision

MOST_DEPTH = 200  # of what a decision says; what looks at all of it does so recursively
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Decision).decode


def encode(value: object) -> bytes:
    """A lone surrogate, which stands for a byte that is no UTF-8, becomes `\\udcff`: no line may fail on it."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode(_spelled_out(msgspec.to_builtins(value)))


def decode_decision(line: bytes) -> Decision:
    """Raises one of NO_JSON also for what no Muster writes: numbers that no database holds, and endless nesting."""
    decision = _decode(line)
    if max(abs(decision.attempt or 0), abs(decision.epoch or 0)) > LARGEST:
        raise msgspec.ValidationError("a number that no attempt and no epoch has")
    if line.count(b"{") + line.count(b"[") > MOST_DEPTH and _depth(decision.data) > MOST_DEPTH:
        raise msgspec.ValidationError("it is nested too deep")
    return decision


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level:
        depth += 1
        level = [inner for each in level for inner in _inside(each)]
    return depth


def _inside(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _spelled_out(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_spelled_out(key): _spelled_out(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_spelled_out(each) for each in value]
    return value
