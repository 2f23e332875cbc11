"""How far a living run is: one mark per declared source of progress. A look costs what is new since the last one."""

# ruff: noqa: PTH118, PTH120, PTH119
# Paths are texts here: globs are no paths, and this runs for every run every few seconds.

from __future__ import annotations

import glob
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from muster.model.attempt import Order
from muster.model.attempt_snapshot import ProgressMark
from muster.model.campaign import DeclaredProgress, Job
from muster.model.cell import Cell
from muster.readers.file_watches import CheckpointWatch, ChunkWatch
from muster.readers.output_files import (
    folder_of_output,
    is_glob_pattern,
    newest_paths_first,
    output_candidates,
    slack_of,
    there_of,
    why_glob_is_unreadable,
)
from muster.readers.proof import placeholder_values_of_cell
from muster.readers.records.row_steps import LogPattern
from muster.readers.records.text_steps import JsonlStepReader, PrintedStepReader, StepReader, TableStepReader
from muster.readers.run_times import attempt_began_at
from muster.text.command_template import render_template

_MOST_SOURCE_PATHS = 8  # of one glob that are read: the newest ones
_ATTEMPT_LOG_NAMES = ("stdout.log", "stderr.log")  # Python's logging and progress bars go to stderr


class SourceAbstains(Exception):
    """The source can't be read; the message says why."""


class ProgressSource(ABC):
    """One declared source. What it said last stands while it can't be read."""

    def __init__(self, declared: DeclaredProgress, signal: str) -> None:
        self.declared = declared
        self.last = ProgressMark(signal, declared.kind, None, "nothing yet", declared.every_s)

    def look(self) -> ProgressMark:
        """Never raises."""
        try:
            self.last = self._read()
        except SourceAbstains as abstains:
            return replace(self.last, trouble=str(abstains))
        except OSError as error:
            return replace(self.last, trouble=_describe_unreadable_file(self.declared.path, error))
        except Exception as error:  # a run may leave anything behind, and the other sources must still be read
            trouble = f"{self.declared.path} can't be read: {type(error).__name__}: {error}"
            return replace(self.last, trouble=trouble)
        return self.last

    @abstractmethod
    def _read(self) -> ProgressMark: ...

    def _despite(self, trouble: str, mark: ProgressMark) -> ProgressMark:
        """What could be read counts if it shows an advance; if not, the advance may be in what could not."""
        if trouble and not (mark.count or 0.0) > (self.last.count or 0.0):
            raise SourceAbstains(trouble)
        return mark


class MuteSource(ProgressSource):
    """One that can't be read at all."""

    def __init__(self, declared: DeclaredProgress, signal: str, why: str) -> None:
        super().__init__(declared, signal)
        self.why = why

    def _read(self) -> ProgressMark:
        raise SourceAbstains(self.why)


class AwaitedSource(ProgressSource):
    """One whose folder is not there yet."""

    def __init__(self, declared: DeclaredProgress, signal: str, output: str) -> None:
        super().__init__(declared, signal)
        self.output = output

    def _read(self) -> ProgressMark:
        if trouble := why_glob_is_unreadable(self.output):
            raise SourceAbstains(trouble)
        return replace(self.last, reading=f"nothing yet: no folder fits {self.output} since the start")


class FileCountSource(ProgressSource):
    def __init__(self, declared: DeclaredProgress, signal: str, pattern: str) -> None:
        super().__init__(declared, signal)
        self.watch = ChunkWatch(pattern)

    def _read(self) -> ProgressMark:
        found = self.watch.look()
        if not found.count:
            nothing = f"nothing yet: no file fits {self.declared.path}"
            return self._despite(found.trouble, replace(self.last, reading=nothing))
        files = "1 file" if found.present == 1 else f"{found.present} files"
        newest = f", newest {os.path.basename(found.newest)}" if found.newest else f" left of {self.declared.path}"
        return self._despite(found.trouble, replace(self.last, count=float(found.count), reading=files + newest))


class CheckpointSource(ProgressSource):
    def __init__(self, declared: DeclaredProgress, signal: str, pattern: str) -> None:
        super().__init__(declared, signal)
        self.watch = CheckpointWatch(pattern)

    def _read(self) -> ProgressMark:
        found = self.watch.look()
        if found.trouble:
            raise SourceAbstains(found.trouble)
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


class StepSource(ProgressSource):
    """Files with steps in them. Of several the highest of their newest steps counts."""

    def __init__(self, declared: DeclaredProgress, signal: str, make: Callable[[str], StepReader]) -> None:
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

    def _read(self) -> ProgressMark:
        self._readers = {path: self._readers.get(path) or self._make(path) for path in self._paths()}
        readers = list(self._readers.values())
        trouble = ""
        for reader in readers:
            try:
                reader.look()
            except OSError as error:
                trouble = _describe_unreadable_file(self._name(reader), error)
        return self._despite(trouble, self._mark(readers))

    def _mark(self, readers: list[StepReader]) -> ProgressMark:
        best = max((each for each in readers if each.step is not None), key=lambda each: each.step or 0.0, default=None)
        if best is None:
            unfit = sum(reader.unfit for reader in readers)
            stands = self.last.count is not None  # its file is gone
            reading = self.last.reading if stands else self._nothing(readers)
            return replace(
                self.last, reading=reading, unfit=unfit, non_finite=_first_field_of_readers(readers, "non_finite")
            )
        return replace(
            self.last,
            count=best.step,
            reading=self._told(best),
            stage=best.stage or _first_field_of_readers(readers, "stage"),
            unfit=best.unfit,
            non_finite=best.non_finite,
        )

    def _told(self, reader: StepReader) -> str:
        if reader.scale == 1.0:
            step = f"step {_step_number_text(reader.logged)}"
        else:
            step = f"step {reader.step:.6g}" if abs(reader.step or 0) < 100 else f"step {reader.step:.0f}"
            step += f" ({_step_number_text(reader.logged)} x {reader.scale:g})"
        if not reader.tail.exists:
            return f"{step}; {self._name(reader)} does not exist any more"
        return step if reader.fitted else f"{step}, before {self._name(reader)} was replaced"


class PrintedSource(StepSource):
    """What the run prints."""

    def __init__(self, declared: DeclaredProgress, signal: str, folder: str, stage: str | None) -> None:
        pattern = LogPattern.of(declared.path)
        super().__init__(declared, signal, lambda path: PrintedStepReader(path, pattern, declared.scale, stage))
        self.folder = folder

    def _paths(self) -> list[str]:
        return [os.path.join(self.folder, name) for name in _ATTEMPT_LOG_NAMES]

    def _nothing(self, readers: list[StepReader]) -> str:
        if unfit := sum(reader.unfit for reader in readers):
            return f"0 of {unfit} lines fit its pattern"
        if endless := next((reader for reader in readers if reader.tail.overlong), None):
            return endless.nothing(self._name(endless))
        return "nothing yet: no whole line was printed"


class RecordSource(StepSource):
    """Files of records that W&B or TensorBoard write. A run that was resumed goes on in another file."""

    def __init__(self, declared: DeclaredProgress, signal: str, pattern: str, stage: str | None) -> None:
        from muster.readers.records.record_steps import TENSORBOARD_DELAY_S, WANDB_DELAY_S, open_step_reader

        wandb = declared.kind == "wandb"
        make = lambda path: open_step_reader(declared.kind, path, declared.step, declared.scale, stage)  # noqa: E731
        super().__init__(declared, signal, make)
        self.last = replace(self.last, delay_s=WANDB_DELAY_S if wandb else TENSORBOARD_DELAY_S)
        self.pattern = pattern

    def _paths(self) -> list[str]:
        found = newest_paths_first(self.pattern)
        if not found and (trouble := why_glob_is_unreadable(self.pattern)):
            raise SourceAbstains(trouble)
        from muster.readers.records.record_steps import files_with_steps

        files = [file for path in found[:_MOST_SOURCE_PATHS] for file in files_with_steps(self.declared.kind, path)]
        return files[-_MOST_SOURCE_PATHS:]

    def _mark(self, readers: list[StepReader]) -> ProgressMark:
        ended = readers[-1].ended if readers else None
        return replace(super()._mark(readers), ended=ended.code if ended else None)

    def _told(self, reader: StepReader) -> str:
        ended = reader.ended
        return super()._told(reader) + (f"; its W&B record ends with exit code {ended.code}" if ended else "")

    def _nothing(self, readers: list[StepReader]) -> str:
        if not readers:
            return f"nothing yet: no records in {self.declared.path}"
        told = max(readers, key=lambda reader: reader.unfit)
        if told.unfit:
            return told.nothing(self._name(told))
        return f"nothing yet: no row in {self._name(told)}; it is written up to {self.last.delay_s:.0f} s late"


class WrittenSource(StepSource):
    """Files that the run writes."""

    def __init__(self, declared: DeclaredProgress, signal: str, pattern: str, stage: str | None) -> None:
        reader = JsonlStepReader if declared.kind == "jsonl" else TableStepReader
        super().__init__(declared, signal, lambda path: reader(path, declared.step or "step", declared.scale, stage))
        self.pattern = pattern

    def _paths(self) -> list[str]:
        if not is_glob_pattern(self.pattern):
            return [self.pattern]
        found = newest_paths_first(self.pattern)[:_MOST_SOURCE_PATHS]
        if not found and (trouble := why_glob_is_unreadable(self.pattern)):
            raise SourceAbstains(trouble)
        return found

    def _name(self, reader: StepReader) -> str:
        return super()._name(reader) if is_glob_pattern(self.declared.path) else self.declared.path

    def _nothing(self, readers: list[StepReader]) -> str:
        if not readers:
            return f"nothing yet: {self.declared.path} does not exist"
        told = max(readers, key=lambda reader: reader.unfit)
        return told.nothing(self._name(told))


def _first_field_of_readers(readers: list[StepReader], field: str) -> str:
    return next((found for reader in readers if (found := str(getattr(reader, field)))), "")


def _describe_unreadable_file(name: str, error: OSError) -> str:
    return f"{name} can't be read: {error.strerror or error}"


def _step_number_text(value: float | None) -> str:
    return "none" if value is None else f"{value:.0f}" if value == int(value) else f"{value:.10g}"


_NO_STAGE_KEYS: Mapping[str, str] = MappingProxyType({})
_RECORD_SOURCE_KINDS = ("wandb", "tensorboard")


class ProgressReader:
    """Reads the progress of one attempt. `stage_key`: for a source's path, the key or column that names the stage."""

    def __init__(self, job: Job, cell: Cell, order: Order, stage_key: Mapping[str, str] = _NO_STAGE_KEYS) -> None:
        self.job = job
        self.order = order
        self.stage_key = stage_key
        self.output: str | None = None  # where the run writes, once it is known
        self._certain = False  # that the output is its own
        self._values = {
            name: glob.escape(value) for name, value in placeholder_values_of_cell(job, cell, order).items()
        }
        self._signals = _unique_signal_names(job.progress)
        self._base: str | None = None
        self._sources: list[ProgressSource] = []

    def look(self) -> tuple[ProgressMark, ...]:
        """One mark per source, in declared order. Never raises."""
        try:
            self._find_output()
        except OSError:
            pass  # what was found before stands; what is wrong, the sources will say
        base = self._folder()
        if base != self._base or not self._sources:
            self._base = base
            self._sources = [self._source(at) for at in range(len(self.job.progress))]
        marks = zip(self.job.progress, self._sources, strict=True)
        return tuple(replace(source.look(), own=self._owns(declared)) for declared, source in marks)

    def _owns(self, declared: DeclaredProgress) -> bool:
        """Its logs, and what it writes where no other attempt does; one that resumes may bring old rows along."""
        return declared.kind == "stdout" or (self.order.output == self.order.out and self.order.resumed_from is None)

    def _find_output(self) -> None:
        """A trainer that names its own folder makes it late; one that was only touched since may be another run's."""
        order = self.order
        if not is_glob_pattern(order.output):
            self.output = order.output if os.path.lexists(order.output) else None
            return
        if self._certain and self.output and os.path.lexists(self.output):
            return
        since, slack = attempt_began_at(order), slack_of(order)
        there = there_of(order)
        found = output_candidates(order.output, since, slack_s=slack, there=there)
        self.output = found[0].path if found else None
        made = since is not None and bool(found) and found[0].first >= since - slack
        self._certain = made and os.path.normpath(found[0].path) not in there

    def _folder(self) -> str | None:
        """What paths are relative to; None: the run has not made it yet."""
        if self.output is not None:
            return folder_of_output(self.output)
        return None if is_glob_pattern(self.order.output) else self.order.output

    def _source(self, at: int) -> ProgressSource:
        declared, signal = self.job.progress[at], self._signals[at]
        try:
            if declared.kind == "stdout":
                return self._printed(declared, signal, at)
            return self._written(declared, signal)
        except KeyError as error:
            return MuteSource(
                declared, signal, f"'{declared.path}' asks for {{{error.args[0]}}}, which has no value here"
            )
        except Exception as error:  # a pattern that no regex can be made of
            return MuteSource(declared, signal, f"'{declared.path}' can't be used: {error}")

    def _printed(self, declared: DeclaredProgress, signal: str, at: int) -> ProgressSource:
        if self._sources and isinstance(self._sources[at], PrintedSource):
            return self._sources[at]  # what was printed does not depend on the output
        return PrintedSource(declared, signal, os.path.dirname(self.order.out), self.stage_key.get(declared.path))

    def _written(self, declared: DeclaredProgress, signal: str) -> ProgressSource:
        path = render_template(declared.path, self._values)
        if self._base is None:
            return AwaitedSource(declared, signal, self.order.output)
        pattern = os.path.join(glob.escape(self._base), path)
        if declared.kind == "files":
            return FileCountSource(declared, signal, pattern)
        if declared.kind == "checkpoint":
            return CheckpointSource(declared, signal, pattern)
        source = RecordSource if declared.kind in _RECORD_SOURCE_KINDS else WrittenSource
        return source(declared, signal, pattern, self.stage_key.get(declared.path))


def _unique_signal_names(sources: tuple[DeclaredProgress, ...]) -> list[str]:
    """Names as declared. A second source of the same name gets a number: their counts must not be mixed."""
    seen: Counter[str] = Counter()
    names = []
    for source in sources:
        name = "stdout" if source.kind == "stdout" else source.path
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return names
