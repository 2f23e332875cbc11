"""How far a living run is: one mark per declared source of progress. A look costs what is new since the last one."""

# Paths are texts here: globs are no paths, and this runs for every run every few seconds.
# ruff: noqa: PTH118, PTH120

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from muster.domain.campaign import Job, Progress
from muster.domain.cell import Cell
from muster.domain.order import Order
from muster.domain.reading import Mark
from muster.domain.template import render
from muster.observe import outputs
from muster.observe.proof import path_values
from muster.observe.sources import Awaited, Checkpoints, Files, Mute, Printed, Recorded, Source, Written
from muster.observe.window import began_at

_NO_STAGES: Mapping[str, str] = MappingProxyType({})
_RECORDS = ("wandb", "tensorboard")


class ProgressReader:
    """Reads the progress of one attempt. `stage_key`: for a source's path, the key or column that names the stage."""

    def __init__(self, job: Job, cell: Cell, order: Order, stage_key: Mapping[str, str] = _NO_STAGES) -> None:
        self.job = job
        self.order = order
        self.stage_key = stage_key
        self.output: str | None = None  # where the run writes, once it is known
        self._certain = False  # that the output is its own
        self._values = {name: glob.escape(value) for name, value in path_values(job, cell, order).items()}
        self._signals = _signals(job.progress)
        self._base: str | None = None
        self._sources: list[Source] = []

    def look(self) -> tuple[Mark, ...]:
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

    def _owns(self, declared: Progress) -> bool:
        """Its logs, and what it writes where no other attempt does; one that resumes may bring old rows along."""
        return declared.kind == "stdout" or (self.order.output == self.order.out and self.order.resumed_from is None)

    def _find_output(self) -> None:
        """A trainer that names its own folder makes it late; one that was only touched since may be another run's."""
        order = self.order
        if not outputs.is_glob(order.output):
            self.output = order.output if os.path.lexists(order.output) else None
            return
        if self._certain and self.output and os.path.lexists(self.output):
            return
        since, slack = began_at(order), outputs.slack_of(order)
        there = outputs.there_of(order)
        found = outputs.candidates(order.output, since, slack_s=slack, there=there)
        self.output = found[0].path if found else None
        made = since is not None and bool(found) and found[0].first >= since - slack
        self._certain = made and os.path.normpath(found[0].path) not in there

    def _folder(self) -> str | None:
        """What paths are relative to; None: the run has not made it yet."""
        if self.output is not None:
            return outputs.folder_of(self.output)
        return None if outputs.is_glob(self.order.output) else self.order.output

    def _source(self, at: int) -> Source:
        declared, signal = self.job.progress[at], self._signals[at]
        try:
            if declared.kind == "stdout":
                return self._printed(declared, signal, at)
            return self._written(declared, signal)
        except KeyError as error:
            return Mute(declared, signal, f"'{declared.path}' asks for {{{error.args[0]}}}, which has no value here")
        except Exception as error:  # a pattern that no regex can be made of
            return Mute(declared, signal, f"'{declared.path}' can't be used: {error}")

    def _printed(self, declared: Progress, signal: str, at: int) -> Source:
        if self._sources and isinstance(self._sources[at], Printed):
            return self._sources[at]  # what was printed does not depend on the output
        return Printed(declared, signal, os.path.dirname(self.order.out), self.stage_key.get(declared.path))

    def _written(self, declared: Progress, signal: str) -> Source:
        path = render(declared.path, self._values)
        if self._base is None:
            return Awaited(declared, signal, self.order.output)
        pattern = os.path.join(glob.escape(self._base), path)
        if declared.kind == "files":
            return Files(declared, signal, pattern)
        if declared.kind == "checkpoint":
            return Checkpoints(declared, signal, pattern)
        source = Recorded if declared.kind in _RECORDS else Written
        return source(declared, signal, pattern, self.stage_key.get(declared.path))


def _signals(sources: tuple[Progress, ...]) -> list[str]:
    """Names as declared. A second source of the same name gets a number: their counts must not be mixed."""
    seen: Counter[str] = Counter()
    names = []
    for source in sources:
        name = "stdout" if source.kind == "stdout" else source.path
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return names
