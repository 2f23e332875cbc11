"""JSON of whatever text people and file systems hand in: what is no Unicode is spelled out, never refused."""

from __future__ import annotations

from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode


def encode(value: object) -> bytes:
    """A lone surrogate, which stands for a byte that is no UTF-8, becomes `\\udcff`: no line may fail on it."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode(_spelled_out(msgspec.to_builtins(value)))


def _spelled_out(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_spelled_out(key): _spelled_out(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_spelled_out(each) for each in value]
    return value
