"""Steps in the records of W&B and TensorBoard: only the newest ones are looked at, and nothing heavy is imported.

Both are flushed late: a healthy run's newest step may be as old as the delays here say.
"""

from __future__ import annotations

import math
import os
import struct
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import suppress

from muster.readers.records.growing_file import READ_BLOCK, TAIL_BYTES, FileTail, GrowingFile
from muster.readers.records.record_frames import (
    WANDB_BLOCK_BYTES,
    WANDB_HEADER_BYTES,
    WANDB_IDENT,
    EventFrames,
    NotProtobuf,
    WandbFrames,
    masked_crc,
)
from muster.readers.records.row_steps import LogPattern, parse_number
from muster.readers.records.tensorboard import read_scalar_event
from muster.readers.records.text_steps import JsonlStepReader, PrintedStepReader, StepReader, TableStepReader
from muster.readers.records.wandb_records import WANDB_STEP_KEY, exit_record_in, history_record_in, read_history_row

WANDB_DELAY_S = 20.0  # it writes every 15 s, or when 32 KiB are full; and a poll
TENSORBOARD_DELAY_S = 130.0  # writers flush every 120 s unless they are told otherwise


class RecordStepReader(StepReader):
    """One file of records. The first look at a large one begins near its end."""

    def __init__(self, path: str, key: str, scale: float = 1.0, stage_key: str | None = None) -> None:
        super().__init__(FileTail(path), key, scale, stage_key)
        self._growing = GrowingFile(path)

    def look(self) -> None:
        growing, tail = self._growing, self.tail
        with growing.opened() as replaced:
            tail.exists, tail.size = growing.exists, growing.size
            if replaced:
                self.fitted, self.unfit, self.ended = False, 0, None
                self._begin(0)
            if not growing.exists:
                return
            if growing.offset == 0 and growing.size > TAIL_BYTES:
                self._begin(growing.size - TAIL_BYTES)
            self._read_on()

    @abstractmethod
    def _begin(self, offset: int) -> None:
        """Anew, at the first record behind the offset."""

    @abstractmethod
    def _read_on(self) -> None: ...

    def _take(self, text: bytes) -> None:
        """Records are taken one by one."""

    def _unfit_told(self, name: str) -> str:
        return f"0 of {self.unfit} rows of {name} hold a number at '{self.key}'"


class WandbStepReader(RecordStepReader):
    def __init__(self, path: str, key: str = WANDB_STEP_KEY, scale: float = 1.0, stage_key: str | None = None) -> None:
        super().__init__(path, key, scale, stage_key)
        self._frames = WandbFrames()

    def _begin(self, offset: int) -> None:
        self._frames = WandbFrames(max(WANDB_HEADER_BYTES, offset // WANDB_BLOCK_BYTES * WANDB_BLOCK_BYTES))

    def _read_on(self) -> None:
        growing, frames = self._growing, self._frames
        if growing.at(0, len(WANDB_IDENT)) != WANDB_IDENT:
            return
        bodies: list[bytes] = []
        while frames.at < growing.size:
            before = frames.at
            for data, start, end in frames.records(growing.at(before, READ_BLOCK), growing.size):
                if (body := history_record_in(data, start, end)) is not None:
                    bodies.append(body)
                else:
                    self.ended = exit_record_in(data, start, end) or self.ended
            if frames.at == before:
                break
        if frames.whole > growing.offset:
            growing.go_on(frames.whole)
        self._take_newest(bodies)

    def _take_newest(self, bodies: list[bytes]) -> None:
        newest = True
        for body in reversed(bodies):
            try:
                step, items = read_history_row(body)
            except NotProtobuf:
                continue
            if newest:
                self._note(items)
                newest = False
            told = step if self.key == WANDB_STEP_KEY else parse_number(dict(items).get(self.key, b""))
            if told is not None and math.isfinite(told):
                self._found(told)
                return
        self._not_found(len(bodies))

    def _note(self, items: list[tuple[str, bytes]]) -> None:
        odd = (key for key, text in items if (value := parse_number(text)) is not None and not math.isfinite(value))
        self.non_finite = next(odd, "")
        stage = dict(items).get(self.stage_key or "")
        if stage:
            self.stage = stage.decode("utf-8", "replace").strip('"')


class TensorboardStepReader(RecordStepReader):
    """The step of the newest event that holds a number."""

    def __init__(self, path: str, key: str = "step", scale: float = 1.0, stage_key: str | None = None) -> None:
        super().__init__(path, key, scale, stage_key)
        self._frames = EventFrames(checked=False)

    def _begin(self, offset: int) -> None:
        self._frames = EventFrames(offset, checked=False)

    def _read_on(self) -> None:
        growing, frames = self._growing, self._frames
        found = False
        while frames.at < growing.size:
            before = frames.at
            data = growing.at(before, READ_BLOCK)
            places = frames.events(data, growing.size)
            found |= self._take_newest(data, places)
            if frames.at == before:
                break
        if frames.at > growing.offset:
            growing.go_on(frames.at)
        if found:
            self._found(self.logged or 0.0)

    def _take_newest(self, data: bytes, places: list[tuple[int, int]]) -> bool:
        for start, end in reversed(places):
            (checksum,) = struct.unpack_from("<I", data, end)
            if masked_crc(data[start:end]) != checksum:
                continue
            try:
                event = read_scalar_event(data[start:end])
            except NotProtobuf:
                continue
            if event.values:
                self.logged = float(event.step)
                odd = (tag for tag, value in event.values if not math.isfinite(value))
                self.non_finite = next(odd, "")
                return True
        return False


# -- by kind


_READERS: Mapping[str, type[StepReader]] = {
    "jsonl": JsonlStepReader,
    "csv": TableStepReader,
    "wandb": WandbStepReader,
    "tensorboard": TensorboardStepReader,
}


def open_step_reader(
    kind: str, path: str, key: str | None, scale: float = 1.0, stage_key: str | None = None
) -> StepReader:
    """`key`: the key or column that counts, or the regex of a log. Raises KeyError where the kind holds no steps."""
    if kind == "stdout":
        return PrintedStepReader(path, LogPattern.of(key or ""), scale, stage_key)
    return _READERS[kind](path, key or (WANDB_STEP_KEY if kind == "wandb" else "step"), scale, stage_key)  # type: ignore[arg-type]


def read_last_step(path: str, kind: str, key: str | None) -> float | None:
    """The newest step in a file of a run that has ended.

    None: there is none, or the file is missing. Raises OSError where the file is there and can't be read.
    """
    reader = open_step_reader(kind, path, key)
    look_at_whole_file(reader)
    return reader.logged


def look_at_whole_file(reader: StepReader) -> None:
    """Of a run that has ended; what is a folder holds no step. Raises OSError."""
    with suppress(IsADirectoryError):
        reader.look()
        reader.finish()


def files_with_steps(kind: str, path: str) -> list[str]:
    """That a path of a campaign file stands for."""
    return {"wandb": wandb_record_files, "tensorboard": tensorboard_files}.get(kind, lambda only: [only])(path)


def wandb_record_files(path: str) -> list[str]:
    """A `.wandb` file, its folder, or a folder with W&B runs: then those of the newest run."""
    if os.path.isfile(path):  # noqa: PTH113
        return [path]
    names = _names_in_folder(path)
    records = [os.path.join(path, name) for name in names if name.endswith(".wandb")]  # noqa: PTH118
    if records:
        return sorted(records)
    inner = [name for name in names if name.startswith(("run-", "offline-run-"))]
    if inner:
        newest = max(inner, key=lambda name: name.removeprefix("offline-"))
        return wandb_record_files(os.path.join(path, newest))  # noqa: PTH118
    return wandb_record_files(os.path.join(path, "wandb")) if "wandb" in names else []  # noqa: PTH118


def tensorboard_files(path: str, deepest: int = 3) -> list[str]:
    """An event file, or all of a folder and the folders in it."""
    if os.path.isfile(path):  # noqa: PTH113
        return [path]
    return sorted(_tensorboard_files_below(path, deepest))


def _tensorboard_files_below(folder: str, deepest: int) -> Iterator[str]:
    for name in _names_in_folder(folder):
        path = os.path.join(folder, name)  # noqa: PTH118
        if ".tfevents." in name:
            yield path
        elif deepest and os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114
            yield from _tensorboard_files_below(path, deepest - 1)


def _names_in_folder(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208
    except (FileNotFoundError, NotADirectoryError):
        return []
