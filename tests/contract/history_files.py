"""Histories as each format writes them, so that every reader is asked for the same rows."""

from __future__ import annotations

import csv
import io
import json
import math
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from muster.readers.records.history_parts import HistoryChain
from muster.readers.records.json_history import JsonlHistory, WholeJsonHistory, rows_of_trainer_state
from muster.readers.records.metric_reader import MetricReader
from muster.readers.records.record_frames import masked_crc
from muster.readers.records.tensorboard import TensorboardHistory
from muster.readers.records.text_history import CsvHistory, PrintedHistory
from muster.readers.records.wandb_records import WandbHistory

Row = dict[str, Any]  # its step under "step"; numbers, or objects with numbers in them
Held = dict[str, list[tuple[float, float]]]  # key -> (step, value)


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


# -- W&B


def framed(records: Sequence[bytes]) -> bytes:
    """As wandb's store does: blocks of 32 KiB."""
    out = bytearray(b":W&B\xe1\xbe\x00")
    for record in records:
        rest, first = record, True
        while True:
            left = 32768 - len(out) % 32768
            if left < 7:
                out += bytes(left)
                continue
            piece, rest = rest[: left - 7], rest[left - 7 :]
            kind = (1 if first else 4) if not rest else (2 if first else 3)
            body = bytes([kind]) + piece
            out += struct.pack("<IH", zlib.crc32(body), len(piece)) + body
            first = False
            if not rest:
                break
    return bytes(out)


def items(row: Row, parts: tuple[str, ...] = ()) -> bytes:
    out = b""
    for key, value in row.items():
        if isinstance(value, dict):
            out += items(value, (*parts, key))
        else:
            names = b"".join(field(2, part.encode()) for part in (*parts, key))
            out += field(1, names + field(16, json.dumps(value).encode()))
    return out


def history_record(number: int, row: Row) -> bytes:
    step = int(row["step"])
    body = items(row) + field(2, b"\x08" + varint(step) if step else b"")
    return b"\x08" + varint(number) + field(2, body)


def wandb_bytes(rows: Sequence[Row], exit_code: int | None = None) -> bytes:
    records = [b"\x08\x01" + field(17, field(1, b"abc"))]
    for number, row in enumerate(rows):
        records.append(history_record(3 * number + 2, row))
        records += [b"\x08" + varint(3 * number + more) + field(3, items(row)) for more in (3, 4)]
    if exit_code is not None:
        records.append(b"\x08\x7f" + field(18, b"\x08" + varint(exit_code) + b"\x10\x2a"))
    return framed(records)


# -- TensorBoard


def event(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc(length)) + data + struct.pack("<I", masked_crc(data))


def scalar(step: int, tag: str, value: float, wall: float = 1.7e9) -> bytes:
    number = field(1, tag.encode()) + b"\x15" + struct.pack("<f", value)
    stepped = b"\x10" + varint(step) if step else b""
    return event(b"\x09" + struct.pack("<d", wall) + stepped + field(5, field(1, number)))


def board_bytes(rows: Sequence[Row]) -> bytes:
    out = event(b"\x09" + struct.pack("<d", 1.7e9) + field(3, b"brain.Event:2"))
    for row in rows:
        out += b"".join(scalar(int(row["step"]), key, value) for key, value in flat(row) if key != "step")
    return out


# -- texts


def jsonl_bytes(rows: Sequence[Row]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def csv_bytes(rows: Sequence[Row]) -> bytes:
    names = list(dict.fromkeys(key for row in rows for key, _ in flat(row)))
    out = io.StringIO()
    table = csv.DictWriter(out, names, lineterminator="\n")
    table.writeheader()
    table.writerows(dict(flat(row)) for row in rows)
    return out.getvalue().encode()


def stdout_bytes(rows: Sequence[Row]) -> bytes:
    lines = [" ".join(f"{key}={value!r}" for key, value in flat(row)) for row in rows]
    return "".join(f"INFO 2026-01-01 12:00:00 train.py:12 {line} (fine)\n" for line in lines).encode()


def hf_bytes(rows: Sequence[Row]) -> bytes:
    return json.dumps({"epoch": 1.0, "log_history": list(rows), "max_steps": 9}).encode()


def flat(row: Row, before: str = "") -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    for key, value in row.items():
        found += flat(value, f"{before}{key}.") if isinstance(value, dict) else [(f"{before}{key}", value)]
    return found


@dataclass(frozen=True)
class Format:
    name: str
    encode: Callable[[Sequence[Row]], bytes]
    make: Callable[[str], MetricReader]
    counts_step: bool = True  # the step is a key of its own
    unicode_keys: bool = True

    def expected(self, rows: Sequence[Row]) -> Held:
        held: Held = {}
        for row in rows:
            for key, value in flat(row):
                if key != "step" or self.counts_step:
                    held.setdefault(key, []).append((float(row["step"]), float(value)))
        return held


def chained(form: str, part: Any) -> Callable[[str], MetricReader]:
    return lambda path: HistoryChain.of_file(path, form, part)


FORMATS = (
    Format("wandb", wandb_bytes, chained("wandb", WandbHistory)),
    Format("tensorboard", board_bytes, chained("tensorboard", TensorboardHistory), counts_step=False),
    Format("jsonl", jsonl_bytes, chained("jsonl", JsonlHistory)),
    Format("csv", csv_bytes, chained("csv", CsvHistory)),
    Format("stdout", stdout_bytes, chained("stdout", PrintedHistory), unicode_keys=False),
    Format("hf", hf_bytes, lambda path: WholeJsonHistory(path, "hf", rows_of_trainer_state)),
)


def take(reader: MetricReader, held: Held) -> None:
    """What is new, added to what is held; a replaced file is held alone."""
    for rows in reader.read():
        if rows.fresh:
            held.clear()
        for key, (steps, values) in rows.columns.items():
            assert len(steps) == len(values)
            held.setdefault(key, []).extend(zip(steps, values, strict=True))


def read(reader: MetricReader) -> Held:
    held: Held = {}
    take(reader, held)
    return held


def same(one: Held, two: Held) -> bool:
    return told(one) == told(two)


def told(held: Held) -> dict[str, list[tuple[str, str]]]:
    return {key: [(repr(float(step)), "nan" if math.isnan(value) else repr(float(value))) for step, value in values]
            for key, values in held.items() if values}  # fmt: skip
