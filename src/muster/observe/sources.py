"""The declared sources of progress, each of which makes one mark at a look."""

# Paths are texts here: globs are no paths, and this runs for every run every few seconds.
# ruff: noqa: PTH118, PTH119

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace

from muster.domain.campaign import Progress
from muster.domain.reading import Mark
from muster.observe import outputs
from muster.observe.matches import newest_first
from muster.observe.metrics.jsonl import JsonlReader
from muster.observe.metrics.reader import StepReader
from muster.observe.metrics.stdout import LogReader
from muster.observe.metrics.table import TableReader
from muster.observe.probes.checkpoint import CheckpointWatch
from muster.observe.probes.files import ChunkWatch
from muster.observe.steps import LogPattern

_MOST_FILES = 8  # of one glob that are read: the newest ones
_LOGS = ("stdout.log", "stderr.log")  # Python's logging and progress bars go to stderr


class Abstains(Exception):
    """The source can't be read; the message says why."""


class Source(ABC):
    """One declared source. What it said last stands while it can't be read."""

    def __init__(self, declared: Progress, signal: str) -> None:
        self.declared = declared
        self.last = Mark(signal, declared.kind, None, "nothing yet", declared.every_s)

    def look(self) -> Mark:
        """Never raises."""
        try:
            self.last = self._read()
        except Abstains as abstains:
            return replace(self.last, trouble=str(abstains))
        except OSError as error:
            return replace(self.last, trouble=_unreadable(self.declared.path, error))
        except Exception as error:  # a run may leave anything behind, and the other sources must still be read
            trouble = f"{self.declared.path} can't be read: {type(error).__name__}: {error}"
            return replace(self.last, trouble=trouble)
        return self.last

    @abstractmethod
    def _read(self) -> Mark: ...

    def _despite(self, trouble: str, mark: Mark) -> Mark:
        """What could be read counts if it shows an advance; if not, the advance may be in what could not."""
        if trouble and not (mark.count or 0.0) > (self.last.count or 0.0):
            raise Abstains(trouble)
        return mark


class Mute(Source):
    """One that can't be read at all."""

    def __init__(self, declared: Progress, signal: str, why: str) -> None:
        super().__init__(declared, signal)
        self.why = why

    def _read(self) -> Mark:
        raise Abstains(self.why)


class Awaited(Source):
    """One whose folder is not there yet."""

    def __init__(self, declared: Progress, signal: str, output: str) -> None:
        super().__init__(declared, signal)
        self.output = output

    def _read(self) -> Mark:
        if trouble := outputs.unreadable(self.output):
            raise Abstains(trouble)
        return replace(self.last, reading=f"nothing yet: no folder fits {self.output} since the start")


class Files(Source):
    def __init__(self, declared: Progress, signal: str, pattern: str) -> None:
        super().__init__(declared, signal)
        self.watch = ChunkWatch(pattern)

    def _read(self) -> Mark:
        found = self.watch.look()
        if not found.count:
            nothing = f"nothing yet: no file fits {self.declared.path}"
            return self._despite(found.trouble, replace(self.last, reading=nothing))
        files = "1 file" if found.present == 1 else f"{found.present} files"
        newest = f", newest {os.path.basename(found.newest)}" if found.newest else f" left of {self.declared.path}"
        return self._despite(found.trouble, replace(self.last, count=float(found.count), reading=files + newest))


class Checkpoints(Source):
    def __init__(self, declared: Progress, signal: str, pattern: str) -> None:
        super().__init__(declared, signal)
        self.watch = CheckpointWatch(pattern)

    def _read(self) -> Mark:
        found = self.watch.look()
        if found.trouble:
            raise Abstains(found.trouble)
        told = []
        if found.broken:
            told.append(f"{os.path.basename(found.broken)} is no whole checkpoint: {found.reason}")
        if found.whole:
            held = f", {found.step}" if found.step else ""
            told.append(f"{os.path.basename(found.whole)} opens ({found.how}){held}")
        if not told:
            what = f"{self.declared.path} does not exist"
            told.append(f"{what} any more" if found.count else f"nothing yet: {what}")
        step = found.step.value if found.step and found.step.unit == "step" else None
        count = float(found.count) if found.count else None
        return replace(self.last, count=count, reading="; ".join(told), held=step)


class Steps(Source):
    """Files with steps in them. Of several the highest of their newest steps counts."""

    def __init__(self, declared: Progress, signal: str, make: Callable[[str], StepReader]) -> None:
        super().__init__(declared, signal)
        self._make = make
        self._readers: dict[str, StepReader] = {}

    @abstractmethod
    def _paths(self) -> list[str]: ...

    @abstractmethod
    def _nothing(self, readers: list[StepReader]) -> str:
        """Why there is no step, in words."""

    def _name(self, reader: StepReader) -> str:
        return os.path.basename(reader.tail.path)

    def _read(self) -> Mark:
        self._readers = {path: self._readers.get(path) or self._make(path) for path in self._paths()}
        readers = list(self._readers.values())
        trouble = ""
        for reader in readers:
            try:
                reader.look()
            except OSError as error:
                trouble = _unreadable(self._name(reader), error)
        return self._despite(trouble, self._mark(readers))

    def _mark(self, readers: list[StepReader]) -> Mark:
        best = max((each for each in readers if each.step is not None), key=lambda each: each.step or 0.0, default=None)
        if best is None:
            unfit = sum(reader.unfit for reader in readers)
            stands = self.last.count is not None  # its file is gone
            reading = self.last.reading if stands else self._nothing(readers)
            return replace(self.last, reading=reading, unfit=unfit, non_finite=_first(readers, "non_finite"))
        return replace(
            self.last,
            count=best.step,
            reading=self._told(best),
            stage=best.stage or _first(readers, "stage"),
            unfit=best.unfit,
            non_finite=best.non_finite,
        )

    def _told(self, reader: StepReader) -> str:
        if reader.scale == 1.0:
            step = f"step {_number(reader.logged)}"
        else:
            step = f"step {reader.step:.6g}" if abs(reader.step or 0) < 100 else f"step {reader.step:.0f}"
            step += f" ({_number(reader.logged)} x {reader.scale:g})"
        if not reader.tail.exists:
            return f"{step}; {self._name(reader)} does not exist any more"
        return step if reader.fitted else f"{step}, before {self._name(reader)} was replaced"


class Printed(Steps):
    """What the run prints."""

    def __init__(self, declared: Progress, signal: str, folder: str, stage: str | None) -> None:
        pattern = LogPattern.of(declared.path)
        super().__init__(declared, signal, lambda path: LogReader(path, pattern, declared.scale, stage))
        self.folder = folder

    def _paths(self) -> list[str]:
        return [os.path.join(self.folder, name) for name in _LOGS]

    def _nothing(self, readers: list[StepReader]) -> str:
        if unfit := sum(reader.unfit for reader in readers):
            return f"0 of {unfit} lines fit its pattern"
        if endless := next((reader for reader in readers if reader.tail.overlong), None):
            return endless.nothing(self._name(endless))
        return "nothing yet: no whole line was printed"


class Recorded(Steps):
    """Files of records that W&B or TensorBoard write. A run that was resumed goes on in another file."""

    def __init__(self, declared: Progress, signal: str, pattern: str, stage: str | None) -> None:
        from muster.observe.metrics import record_steps as records
        from muster.observe.metrics.wandb import OWN_STEP

        wandb = declared.kind == "wandb"
        reader = records.WandbSteps if wandb else records.BoardSteps
        key = declared.step or (OWN_STEP if wandb else "step")
        super().__init__(declared, signal, lambda path: reader(path, key, declared.scale, stage))
        self.last = replace(self.last, delay_s=records.WANDB_DELAY_S if wandb else records.BOARD_DELAY_S)
        self.pattern = pattern
        self._files = records.wandb_files if wandb else records.board_files

    def _paths(self) -> list[str]:
        found = newest_first(self.pattern)
        if not found and (trouble := outputs.unreadable(self.pattern)):
            raise Abstains(trouble)
        return [file for path in found[:_MOST_FILES] for file in self._files(path)][-_MOST_FILES:]

    def _mark(self, readers: list[StepReader]) -> Mark:
        ended = getattr(readers[-1], "ended", None) if readers else None
        return replace(super()._mark(readers), ended=ended.code if ended else None)

    def _told(self, reader: StepReader) -> str:
        ended = getattr(reader, "ended", None)
        return super()._told(reader) + (f"; its W&B record ends with exit code {ended.code}" if ended else "")

    def _nothing(self, readers: list[StepReader]) -> str:
        if not readers:
            return f"nothing yet: no records in {self.declared.path}"
        told = max(readers, key=lambda reader: reader.unfit)
        if told.unfit:
            return told.nothing(self._name(told))
        return f"nothing yet: no row in {self._name(told)}; it is written up to {self.last.delay_s:.0f} s late"


class Written(Steps):
    """Files that the run writes."""

    def __init__(self, declared: Progress, signal: str, pattern: str, stage: str | None) -> None:
        reader = JsonlReader if declared.kind == "jsonl" else TableReader
        super().__init__(declared, signal, lambda path: reader(path, declared.step or "step", declared.scale, stage))
        self.pattern = pattern

    def _paths(self) -> list[str]:
        if not outputs.is_glob(self.pattern):
            return [self.pattern]
        found = newest_first(self.pattern)[:_MOST_FILES]
        if not found and (trouble := outputs.unreadable(self.pattern)):
            raise Abstains(trouble)
        return found

    def _name(self, reader: StepReader) -> str:
        return super()._name(reader) if outputs.is_glob(self.declared.path) else self.declared.path

    def _nothing(self, readers: list[StepReader]) -> str:
        if not readers:
            return f"nothing yet: {self.declared.path} does not exist"
        told = max(readers, key=lambda reader: reader.unfit)
        return told.nothing(self._name(told))


def _first(readers: list[StepReader], field: str) -> str:
    return next((found for reader in readers if (found := str(getattr(reader, field)))), "")


def _unreadable(name: str, error: OSError) -> str:
    return f"{name} can't be read: {error.strerror or error}"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.0f}" if value == int(value) else f"{value:.10g}"
