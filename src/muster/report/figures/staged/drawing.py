"""Picture after picture; what goes wrong with one is noted, and the others are drawn all the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from matplotlib.figure import Figure

from muster.report.figures.names import file_names, shown
from muster.report.figures.sheet import Picture, drawable, files, style
from muster.report.figures.staged import events, survival, timeline, warned
from muster.report.figures.staged.artifacts import Events, GateTrace, Label, ScheduleTrace, StagedArtifacts
from muster.report.figures.staged.ground import Frame, Mark, Stages, joined, looks_of, short
from muster.report.figures.staged.labels import Wrong, bands_of, contradictions, edges
from muster.report.figures.staged.words import Say

MOST_NAMED = 12  # labels that contradict, in the notes


class Job(NamedTuple):
    name: str
    title: str
    caption: Callable[[], str]
    make: Callable[[], Figure]
    rests_on: tuple[str, ...]  # files


class Scene:
    """What all pictures of one training share."""

    def __init__(
        self, artifacts: StagedArtifacts, language: str, of: str = "", version: str = "", mark: str = ""
    ) -> None:
        self.artifacts = artifacts
        self.say = Say(language)
        self.of = of
        self.version = version
        self.mark = mark
        self.wrong = contradictions(artifacts)
        schedule = artifacts.schedule
        types = {name: None for labels in artifacts.labels.values() for _, name in labels}
        if schedule:
            declared = schedule.schedule.types if schedule.schedule else ()
            types = dict.fromkeys([*declared, *warned.types_of(schedule)]) | types
        if artifacts.events:
            types |= dict.fromkeys(artifacts.events.totals)
        self.looks = looks_of(types)
        self.names = {name: look.name for name, look in self.looks.items()}

    def stages(self, *files: str) -> Stages:
        """Behind a picture of these files' rows."""
        rows = [(file, self.artifacts.labels[file]) for file in files]
        at = [iteration for _, labels in rows for iteration, _ in labels]
        schedule = self.artifacts.schedule
        run = schedule.iterations if schedule and schedule.iterations else 0
        low, high = min([1, *at]) if run or min(at) <= 0.2 * max(at) else min(at), max([run, *at])
        bands = bands_of(self.artifacts, max((labels for _, labels in rows), key=_labelled), high)
        air = max(0.5, 0.01 * (high - low))
        wrong = list(self._wrong(rows, high - low))
        marks = joined(mark for mark, _ in wrong)
        return Stages(bands, self.looks, marks, [each for _, each in wrong], low - air, high + air)

    def _wrong(self, rows: Sequence[tuple[str, Sequence[Label]]], whole: float) -> Iterator[tuple[Mark, Wrong]]:
        """What several files say alike is marked once."""
        marked: set[Label] = set()
        for file, labels in rows:
            at = [iteration for iteration, _ in labels]
            spans = dict(zip(at, edges(at), strict=True))
            for each in self.wrong:
                label = (each.found.row.iteration, each.found.row.stage)
                if each.file == file and label not in marked:
                    marked.add(label)
                    yield Mark(*_thin(spans[label[0]], whole), label[1]), each

    def frame(self, *files: str) -> Frame:
        named = short(self.of, 48)
        foot = f"{named}: {', '.join(files)}" if named else ", ".join(files)
        return Frame(foot if drawable(foot) else named, self.version, self.mark)

    def caption(self, what: str, wrong: Sequence[object]) -> Callable[[], str]:
        return partial(self.say.caption, what, self.artifacts, bool(wrong), self.names)

    def described(self, job: Job) -> str:
        hashes = self.artifacts.hashes
        rests = [f"{file} sha256 {hashes[file][:16]}" if file in hashes else file for file in job.rests_on]
        return "; ".join(part for part in (self.mark, self.of, *rests, f"muster {self.version}".strip()) if part)


def _labelled(labels: Sequence[Label]) -> int:
    return sum(bool(stage) for _, stage in labels)


def _thin(span: tuple[float, float], whole: float) -> tuple[float, float]:
    """A mark no wider than it must be, and never too narrow to be seen."""
    middle, half = (span[0] + span[1]) / 2, min((span[1] - span[0]) / 2, max(0.5, 0.025 * whole))
    half = max(half, 0.004 * whole)
    return middle - half, middle + half


def drawn(
    scene: Scene, kinds: Sequence[str], into: dict[str, bytes], captions: dict[str, str]
) -> tuple[list[str], list[str]]:
    notes = [scene.say.note(each) for each in scene.artifacts.notes]
    flagged = scene.say.contradictions(scene.wrong)
    for name, jobs in plan(scene):
        try:
            for job in jobs():
                with style():
                    picture = Picture(job.name, job.title, scene.described(job), "", (), job.make())
                    saved = files(picture, kinds)
                captions[job.name] = scene.say.marked(scene.mark, job.caption())
                into |= {f"{job.name}.{kind}": data for kind, data in saved.items()}
        except Exception as error:  # a text without this picture is better than none
            notes.append(scene.say("undrawn", name=name, why=f"{type(error).__name__}: {error}"))
    more = len(flagged) - MOST_NAMED
    named = [*flagged[:MOST_NAMED], *([scene.say("more_labels", count=more)] if more > 0 else [])]
    return [*notes, *named], flagged


def figures_of(scene: Scene) -> Iterator[tuple[str, Figure]]:
    """Not saved, for whoever looks at what is on the axes."""
    for _, jobs in plan(scene):
        with style():
            yield from [(job.name, job.make()) for job in jobs()]


def plan(scene: Scene) -> Iterator[tuple[str, Callable[[], Iterable[Job]]]]:
    """What there is data for, and how it is drawn."""
    artifacts = scene.artifacts
    for gate, name in zip(artifacts.gates, _gate_names(artifacts.gates), strict=True):
        yield name, partial(_of_gate, scene, gate, name)
    if artifacts.events and sum(artifacts.events.totals.values()) > 0:
        yield "stage_events", partial(_of_events, scene, artifacts.events)
    if artifacts.schedule and artifacts.schedule.rows:
        yield "stage_warnings", partial(_of_schedule, scene, artifacts.schedule)
    if survival.groups_of(artifacts.series):
        yield "survival", partial(_of_series, scene)


def _gate_names(gates: Sequence[GateTrace]) -> list[str]:
    if len(gates) == 1:
        return ["gate_timeline"]
    alike = Counter(gate.name for gate in gates)
    names = [gate.name if alike[gate.name] == 1 else f"{gate.name}_{at}" for at, gate in enumerate(gates, start=1)]
    return [f"gate_timeline_{each}" for each in file_names(name.replace(".", "_") for name in names).values()]


def _of_gate(scene: Scene, gate: GateTrace, name: str) -> Iterator[Job]:
    stages = scene.stages(gate.file)
    for page in timeline.pages(gate):
        make = partial(timeline.draw, gate, page, stages, scene.frame(gate.file))
        names = scene.names | shown("key", page.keys, drawable)
        caption = partial(scene.say.gate, gate, scene.artifacts, bool(stages.wrong), names)
        yield Job(f"{name}{page.ending}", f"Gate timeline: {gate.name}{page.part}", caption, make, (gate.file,))


def _of_events(scene: Scene, counted: Events) -> Iterator[Job]:
    wrong = [each for each in scene.wrong if each.file == counted.file]
    make = partial(events.draw, counted, scene.looks, wrong, scene.frame(counted.file))
    yield Job("stage_events", "Events by stage", scene.caption("stage_events", wrong), make, (counted.file,))


def _of_schedule(scene: Scene, trace: ScheduleTrace) -> Iterator[Job]:
    stages = scene.stages(trace.file)
    make = partial(warned.draw, trace, stages, scene.frame(trace.file))
    yield Job(
        "stage_warnings", "Stages that run out", scene.caption("stage_warnings", stages.wrong), make, (trace.file,)
    )


def _of_series(scene: Scene) -> Iterator[Job]:
    series = scene.artifacts.series
    files = tuple(each.file for each in series)
    stages = scene.stages(*files)
    make = partial(survival.draw, series, stages, scene.frame(*files))
    yield Job("survival", "Survival and first death", scene.caption("survival", stages.wrong), make, files)
