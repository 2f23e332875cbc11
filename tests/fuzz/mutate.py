"""Makes hostile inputs out of honest ones. Each is made anew from the name of its reader and a number."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

SIZES = ((8 << 10, 100), (64 << 10, 12), (1 << 20, 2), (4 << 20, 1))  # bytes that an input may have, and how often
LARGE = SIZES[-1][0]
BUDGET = 6  # changes of one input at most
BIG_INTS = (0, 1, 7, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 1 << 31, (1 << 31) - 1, (1 << 32) - 1, 1 << 40,
            (1 << 63) - 1, 1 << 63, (1 << 64) - 1)  # fmt: skip
NUMBERS = (b"0", b"-0", b"-1", b"1e308", b"1e999", b"-1e999", b"NaN", b"Infinity", b"1e-400", b"0x10", b"1_0", b"007",
           b"9007199254740993", b"18446744073709551616", b"1" + b"0" * 400, b"9" * 5000, b"1e99999999999", b"0.1.2",
           b"\xd9\xa3", b"\xc2\xb2", b"1,000", b"+5", b".5", b"5.", b"1e", b"9" * 19)  # fmt: skip
SNIPPETS = (b"\0", b"\0" * 512, b"\n", b"\r", b"\r\n", b"\x1b[2J\x1b]0;x\x07", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80",
            b"\xef\xbb\xbf", b"\xff\xfe", b"\xe2\x80\xa8", b"\xe2\x80\xae", b"\\ud800", b"\\u0000", b"\"", b"'", b"`", b"```", b"<!--",
            b"-->", b"$", b"${x}", b"{", b"}", b"{}", b"[", b"]", b"(", b")", b"|", b"\\", b"/", b"../", b",", b";", b":", b"=", b"@",
            b"*", b"**", b"&a ", b"*a", b"!!", b"? ", b"- ", b"\t", b" ", b"#", b"%", b"true", b"null", b"None", b"\xe5\x90\x84",
            b"__class__", b"0" * 100, b"a" * 3000, b"x" * 30000)  # fmt: skip
OPENERS = ((b"[", b"]"), (b"{\"a\":", b"}"), (b"(", b")"), (b"{a: ", b"}"), (b"- ", b""), (b"> ", b""), (b"not ", b""),
           (b"-", b""), (b"a.", b"b"), (b"[[", b"]]"), (b"{x", b"}"), (b"\\textbf{", b"}"), (b"<", b">"), (b"*", b"*"), (b"'", b"'"),
           (b"\"", b"\""), (b"?", b""), (b"  ", b""), (b"#", b""), (b"- - ", b""), (b"&a [", b"]"), (b"(-", b")"),
           (b"lambda:", b"0"), (b"{'a':", b"0}"), (b"a=", b"1"), (b"$(", b")"))  # fmt: skip
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


@dataclass(frozen=True)
class Codec:
    """How a container holds its parts: a change of a part then has the lengths and checksums that belong to it."""

    split: Callable[[bytes], list[bytes]]
    join: Callable[[list[bytes], Random], bytes]


def hostile(seeds: Sequence[bytes], rng: Random, words: Sequence[bytes] = (), codec: Codec | None = None) -> bytes:
    """One input. It may be honest, now and then: that, too, must be read."""
    (most,) = rng.choices([size for size, _ in SIZES], [often for _, often in SIZES])
    data = rng.choice(list(seeds))
    if codec is not None and rng.randrange(2):
        parts = codec.split(data)
        for _ in range(rng.randint(1, 3)):
            _change_part(parts, rng, seeds, words, most)
        data = codec.join(parts, rng)
        if rng.randrange(4):
            return data[:LARGE]
    for _ in range(rng.randint(1, BUDGET)):
        data = rng.choice(CHANGES)(data, rng, seeds, words, most)[:most]
    return data


def _change_part(parts: list[bytes], rng: Random, seeds: Sequence[bytes], words: Sequence[bytes], most: int) -> None:
    if not parts:
        return
    at = rng.randrange(len(parts))
    how = rng.randrange(10)
    if how == 0:
        del parts[at]
    elif how == 1:
        parts.insert(at, rng.choice(parts))
    elif how == 2:
        parts[:] = (parts * rng.randint(2, 50))[: max(1, most // (1 + sum(map(len, parts))))] or parts
    elif how == 3:
        rng.shuffle(parts)
    else:
        parts[at] = rng.choice(CHANGES)(parts[at], rng, seeds, words, most)[:most]


# -- changes: (data, rng, seeds, words, most) -> data


def _flip(data: bytes, rng: Random, *_: object) -> bytes:
    out = bytearray(data)
    for _each in range(rng.choice((1, 1, 2, 8, 64)) if out else 0):
        at = rng.randrange(len(out))
        out[at] = rng.choice((out[at] ^ 1 << rng.randrange(8), rng.randrange(256), 0, 255))
    return bytes(out)


def _truncate(data: bytes, rng: Random, *_: object) -> bytes:
    return data[: rng.randrange(len(data) + 1)] if rng.randrange(4) else data[rng.randrange(len(data) + 1) :]


def _span(data: bytes, rng: Random, most: int = 1 << 12) -> tuple[int, int]:
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + rng.choice((1, 2, 4, 8, 30, 100, 1000, most)))


def _delete(data: bytes, rng: Random, *_: object) -> bytes:
    start, end = _span(data, rng)
    return data[:start] + data[end:]


def _splice(data: bytes, rng: Random, seeds: Sequence[bytes], *_: object) -> bytes:
    other = rng.choice(list(seeds))
    start, end = _span(other, rng)
    at = rng.randrange(len(data) + 1)
    if rng.randrange(2):
        return data[:at] + other[start:]
    return data[:at] + other[start:end] + data[at:]


def _repeat(data: bytes, rng: Random, seeds: Sequence[bytes], words: Sequence[bytes], most: int) -> bytes:
    start, end = _span(data, rng)
    piece = data[start:end] or b"0"
    room = max(1, (most - len(data)) // len(piece))
    return data[:start] + piece * rng.choice((2, 3, 10, min(room, 300), min(room, 30_000), room)) + data[end:]


def _length(data: bytes, rng: Random, *_: object) -> bytes:
    """A field of a fixed size, or a varint, somewhere: the fields of lengths lie near the beginning."""
    value = rng.choice(BIG_INTS) + rng.choice((0, 0, 1, -1, 16))
    form = rng.choice(("<B", "<H", "<I", "<Q", ">I", ">Q", "varint"))
    if form == "varint":
        rest, out = value & (1 << 64) - 1, bytearray()
        while rest > 127:
            out.append(rest & 127 | 128)
            rest >>= 7
        field = bytes([*out, rest])
    else:
        size = struct.calcsize(form)
        field = struct.pack(form, value & (1 << 8 * size) - 1)
    at = rng.choice(
        (0, 1, 2, 4, 6, 7, 8, 10, 12, rng.randrange(64), rng.randrange(len(data) + 1), max(0, len(data) - 22))
    )
    return data[:at] + field + data[at + len(field) :]


def _number(data: bytes, rng: Random, *_: object) -> bytes:
    found = list(_NUMBER.finditer(data))
    if not found:
        return data + rng.choice(NUMBERS)
    for each in rng.sample(found, min(len(found), rng.choice((1, 1, 2, 5))))[:1]:
        data = data[: each.start()] + rng.choice(NUMBERS) + data[each.end() :]
    return data


def _nest(data: bytes, rng: Random, seeds: Sequence[bytes], words: Sequence[bytes], most: int) -> bytes:
    left, right = rng.choice(OPENERS)
    times = min(rng.choice((20, 60, 200, 300, 450, 600, 900, 1100, 5000, 100_000)), most // (len(left) + len(right)))
    start, end = _span(data, rng, 60)
    inner = rng.choice((data[start:end], b"1", b""))
    closed = right * times if rng.randrange(3) else b""
    return data[:start] + left * times + inner + closed + data[end:]


def _insert(data: bytes, rng: Random, seeds: Sequence[bytes], words: Sequence[bytes], most: int) -> bytes:
    for _each in range(rng.choice((1, 1, 3, 20))):
        at = rng.randrange(len(data) + 1)
        piece = rng.choice(list(words)) if words and rng.randrange(3) else rng.choice(SNIPPETS)
        data = data[:at] + piece + data[at + rng.choice((0, 0, len(piece))) :]
    return data


def _lines(data: bytes, rng: Random, seeds: Sequence[bytes], words: Sequence[bytes], most: int) -> bytes:
    lines = data.split(b"\n")
    how = rng.randrange(5)
    if how == 0:
        rng.shuffle(lines)
    elif how == 1:
        at = rng.randrange(len(lines))
        count = max(1, min(rng.choice((5, 100, 3000)), most // (1 + len(lines[at]))))
        lines[at:at] = [lines[at]] * count
    elif how == 2:
        return rng.choice((b"", b" ", b"\r", b",", b";")).join(lines)
    elif how == 3:
        del lines[rng.randrange(len(lines))]
    else:
        lines = [each for each in lines for _ in range(rng.choice((1, 1, 2)))]
    return b"\n".join(lines)


def _grow(data: bytes, rng: Random, seeds: Sequence[bytes], words: Sequence[bytes], most: int) -> bytes:
    """Up to its limit: what is quadratic shows."""
    word = rng.choice([*words, *SNIPPETS, *(each[: rng.randint(1, 40)] for each in seeds)]) or b"a"
    two = rng.choice((b"", b" ", b"\n", b",", b"=", b"."))
    times = max(1, (most - len(data)) // (len(word) + len(two)))
    at = rng.randrange(len(data) + 1)
    return data[:at] + (word + two) * times + data[at:]


CHANGES: tuple[Callable[..., bytes], ...] = (
    _flip, _truncate, _delete, _splice, _repeat, _length, _number, _nest, _insert, _insert, _lines, _grow,
)  # fmt: skip
