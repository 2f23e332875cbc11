"""As much of the protobuf wire format as event files need: varints, and the fields of a message."""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_FIXED = {FIXED64: 8, FIXED32: 4}
_LONGEST = 10  # bytes of a varint


class NotProtobuf(ValueError):
    """Bytes that are no message."""


def varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """(the number, where it ends)."""
    value = shift = 0
    while at < end and shift < 7 * _LONGEST:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise NotProtobuf("a number does not end")


def signed(value: int) -> int:
    """An int64 as protobuf writes it."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """(field, wire type, start, end) of each; of a varint `start` is its value. Raises NotProtobuf."""
    while at < end:
        tag, at = varint(data, at, end)
        number, kind = tag >> 3, tag & 7
        if not number:
            raise NotProtobuf("there is no field 0")
        if kind == VARINT:
            value, at = varint(data, at, end)
            yield number, kind, value, at
            continue
        if kind == BYTES:
            length, at = varint(data, at, end)
        elif kind in _FIXED:
            length = _FIXED[kind]
        else:
            raise NotProtobuf(f"there is no wire type {kind}")
        if at + length > end:
            raise NotProtobuf("a field goes beyond its message")
        yield number, kind, at, at + length
        at += length
