"""Readers of histories against the packages that people read them with, on the same files in the same run.

Times are of the CPU: all of it runs in one thread, and the machine may be shared.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROWS, KEYS = 200_000, 10
HUGE_BYTES = 2_000_000_000
Say = Callable[[str, str, str, bool], None]

MEASURE = """
import sys
from muster.readers.records.logged_runs import discover_runs as discover
from muster.readers.records.logged_runs import RunMeter as Meter
(run,) = discover(sys.argv[1]).runs
meter = Meter(run.feeds())
meter.look()
count = max(summary.count for summary in meter.measured().keys.values())
peak = open("/proc/self/status").read().split("VmHWM:")[1].split()[0]  # what it was before exec does not count
print(count, int(peak) / 1024)
"""


def import_numpy() -> None:
    importlib.import_module("numpy")  # not a part of the time


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    found = work()
    return time.process_time() - began, found


def measured(path: Path) -> Any:
    """With all summaries, as `muster metrics` reads it; may be asked to look again."""
    from muster.readers.records.logged_runs import RunMeter, discover_runs

    (run,) = discover_runs(str(path)).runs
    meter = RunMeter(run.feeds())
    meter.look()
    return meter


def again(meter: Any, first: float) -> float:
    """What a second look costs, in percent of the first."""
    return timed(meter.look)[0] / first * 100


# -- W&B


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


class WandbFile:
    """As wandb writes it: a history record and two summaries for each row, keys in another order each time."""

    def __init__(self, path: Path) -> None:
        self.path, self.at, self.step = path, 7, 0
        self.random = random.Random(1)
        path.write_bytes(b":W&B\xe1\xbe\x00")

    def add(self, rows: int) -> None:
        with self.path.open("ab") as file:
            for _ in range(rows):
                for record in self._records():
                    self._write(file, record)
                self.step += 1

    def _records(self) -> Iterator[bytes]:
        step, number = self.step, 3 * self.step + 1
        items = [(f"train/m{key}", repr(self.random.random())) for key in range(KEYS)]
        items += [("_step", str(step)), ("_runtime", f"{step / 100:.6f}"), ("_timestamp", f"{1.79e9 + step:.6f}")]
        self.random.shuffle(items)
        body = b"".join(field(1, field(2, key.encode()) + field(16, value.encode())) for key, value in items)
        yield b"\x08" + varint(number) + field(2, body + field(2, b"\x08" + varint(step) if step else b""))
        runtime = field(1, field(2, b"_wandb") + field(2, b"runtime") + field(16, b"2"))
        yield b"\x08" + varint(number + 1) + field(3, runtime)
        yield b"\x08" + varint(number + 2) + field(3, body)

    def _write(self, file: Any, record: bytes) -> None:
        first = True
        while True:
            left = 32768 - self.at % 32768
            if left < 7:
                file.write(bytes(left))
                self.at += left
                continue
            piece, record = record[: left - 7], record[left - 7 :]
            kind = (1 if first else 4) if not record else (2 if first else 3)
            chunk = bytes([kind]) + piece
            file.write(struct.pack("<IH", zlib.crc32(chunk), len(piece)) + chunk)
            self.at += 6 + len(chunk)
            first = False
            if not record:
                return


def wandb_records(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        at, pieces = len(file.read(7)), []
        while True:
            left = 32768 - at % 32768
            if left < 7:
                at += len(file.read(left))
                continue
            head = file.read(7)
            if len(head) < 7:
                return
            _, length, kind = struct.unpack("<IHB", head)
            data = file.read(length)
            at += 7 + length
            pieces = [data] if kind <= 2 else [*pieces, data]
            if kind in (1, 4):
                yield b"".join(pieces)


def by_protobuf(path: Path) -> int:
    from wandb.proto import wandb_internal_pb2 as protobuf

    columns: dict[str, list[float]] = {}
    for data in wandb_records(path):
        record = protobuf.Record.FromString(data)
        if record.WhichOneof("record_type") == "history":
            for item in record.history.item:
                columns.setdefault(item.key or ".".join(item.nested_key), []).append(json.loads(item.value_json))
    return len(columns["_step"])


def wandb(say: Say) -> None:
    importlib.import_module("wandb.proto.wandb_internal_pb2")  # not a part of the time
    path = Path(tempfile.mkdtemp()) / "run-bench.wandb"
    made = WandbFile(path)
    made.add(ROWS)
    import_numpy()
    ours, meter = timed(lambda: measured(path))
    theirs, count = timed(lambda: by_protobuf(path))
    same = count == meter.measured().keys["train/m0"].count == ROWS
    figure = f"{ours:.2f} s = {theirs / ours:.1f} x faster than {theirs:.2f} s ({path.stat().st_size / 1e6:.0f} MB)"
    say(f".wandb, {ROWS} rows x {KEYS}, all summaries", figure, ">= 3 x protobuf + json", same and theirs / ours >= 3)
    made.add(ROWS // 100)
    share = again(meter, ours)
    say("second pass over it after 1 % more", f"{share:.1f} % of the first", "about 1 % (<= 3 %)", share <= 3)


# -- TensorBoard


def write_events(path: Path) -> None:
    from muster.readers.records.record_frames import masked_crc

    with path.open("wb") as file:
        for number in range(ROWS):
            value = field(1, f"train/m{number % KEYS}".encode()) + b"\x15" + struct.pack("<f", number / 7)
            wall, step = struct.pack("<d", 1.79e9 + number), number // KEYS
            data = b"\x09" + wall + (b"\x10" + varint(step) if step else b"") + field(5, field(1, value))
            length = struct.pack("<Q", len(data))
            file.write(length + struct.pack("<I", masked_crc(length)) + data + struct.pack("<I", masked_crc(data)))


def by_accumulator(path: Path) -> int:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(path), size_guidance={"scalars": 0})
    found.Reload()
    return sum(len(found.Scalars(tag)) for tag in found.Tags()["scalars"])


def tfevents(say: Say) -> None:
    importlib.import_module("tensorboard.backend.event_processing.event_accumulator")  # not a part of the time
    path = Path(tempfile.mkdtemp()) / "events.out.tfevents.1.bench"
    write_events(path)
    import_numpy()
    ours, meter = timed(lambda: measured(path))
    theirs, count = timed(lambda: by_accumulator(path))
    same = count == sum(summary.count for summary in meter.measured().keys.values()) == ROWS
    figure = f"{ours:.2f} s = {theirs / ours:.1f} x faster than {theirs:.2f} s ({path.stat().st_size / 1e6:.0f} MB)"
    say(f"TensorBoard, {ROWS} scalars, all summaries", figure, ">= 5 x EventAccumulator", same and theirs / ours >= 5)


# -- JSONL


def jsonl_rows(rows: int, seed: int = 1) -> bytes:
    values = random.Random(seed)
    lines = [{"step": step, **{f"train/m{key}": values.gauss(0, 1) for key in range(11)}} for step in range(rows)]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def raw_msgspec(path: Path) -> int:
    import msgspec

    decode, count = msgspec.json.Decoder().decode, 0
    for line in path.read_bytes().split(b"\n")[:-1]:
        count += len(decode(line)) > 0
    return count


def histories(say: Say) -> None:
    path = Path(tempfile.mkdtemp()) / "metrics.jsonl"
    path.write_bytes(jsonl_rows(ROWS))
    size = path.stat().st_size / 1e6
    import_numpy()
    ours, meter = min((timed(lambda: measured(path)) for _ in range(3)), key=lambda each: each[0])
    raw = min(timed(lambda: raw_msgspec(path))[0] for _ in range(3))
    same = meter.measured().keys["train/m0"].count == ROWS
    figure = f"{size / ours:.0f} MB/s = {raw / ours:.2f} x msgspec's {size / raw:.0f} MB/s ({size:.0f} MB)"
    say("JSONL, all summaries", figure, ">= 0.5 x msgspec into dicts", same and raw / ours >= 0.5)
    _against_pandas(say, path, ours)
    with path.open("ab") as file:
        file.write(jsonl_rows(ROWS // 100, seed=2))
    share = again(meter, ours)
    say("second pass over it after 1 % more", f"{share:.1f} % of the first", "about 1 % (<= 3 %)", share <= 3)
    _memory(say, path)


def _against_pandas(say: Say, path: Path, ours: float) -> None:
    try:
        import pandas
    except ImportError:
        return
    theirs, _ = timed(lambda: pandas.read_json(path, lines=True))
    say("JSONL against pandas.read_json", f"{theirs / ours:.1f} x faster than {theirs:.2f} s", "> 1 x", theirs > ours)


def _memory(say: Say, path: Path) -> None:
    """Whatever the length: the same rows over and over."""
    huge = path.with_name("huge.jsonl")
    data = path.read_bytes()
    copies = -(-HUGE_BYTES // len(data))
    with huge.open("wb") as file:
        for _ in range(copies):
            file.write(data)
    path.unlink()
    done = subprocess.run([sys.executable, "-c", MEASURE, str(huge)], capture_output=True, text=True, check=False)
    size = huge.stat().st_size / 1e9
    os.unlink(huge)  # noqa: PTH108
    count, peak = (float(each) for each in (done.stdout.split() or ("0", "inf")))
    good = peak < 80 and count >= copies * ROWS
    say(f"memory for a history of {size:.1f} GB", f"{peak:.0f} MB ({count:.0f} rows)", "< 80 MB", good)
