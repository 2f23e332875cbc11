"""Plans the pictures of a staged training and draws one after another. A picture that fails is noted, and the others
are drawn all the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from matplotlib.figure import Figure

from muster.app.facts.drawing.figure_context import drawable_names, figure_file_names
from muster.app.facts.drawing.figure_page import Picture, apply_figure_style, is_drawable_text, save_figure_files
from muster.app.gates.gate_timeline import draw_gate_timeline, timeline_pages
from muster.app.gates.picture_captions import StageCaptions
from muster.app.gates.picture_sheet import (
    LabelMark,
    PictureFrame,
    StageBackground,
    join_touching_marks,
    looks_of_stages,
    shorten_drawable_name,
)
from muster.app.gates.stage_bands import WrongLabel, find_wrong_labels, row_edges, stage_bands_behind
from muster.app.gates.stage_figures import draw_stage_events, draw_stage_warnings, stage_types_in_trace
from muster.app.gates.staged_artifacts import GateTrace, ScheduleTrace, StagedArtifacts, StageEvents, StageLabel
from muster.app.gates.survival_figure import draw_survival, group_survival_curves

MOST_NAMED_LABELS = 12  # labels that contradict, in the notes


class PictureJob(NamedTuple):
    name: str
    title: str
    caption: Callable[[], str]
    make: Callable[[], Figure]
    rests_on: tuple[str, ...]  # files


class StagedScene:
    """What all pictures of one training share."""

    def __init__(
        self, artifacts: StagedArtifacts, language: str, of: str = "", version: str = "", mark: str = ""
    ) -> None:
        self.artifacts = artifacts
        self.say = StageCaptions(language)
        self.of = of
        self.version = version
        self.mark = mark
        self.wrong = find_wrong_labels(artifacts)
        schedule = artifacts.schedule
        types = {name: None for labels in artifacts.labels.values() for _, name in labels}
        if schedule:
            declared = schedule.schedule.types if schedule.schedule else ()
            types = dict.fromkeys([*declared, *stage_types_in_trace(schedule)]) | types
        if artifacts.events:
            types |= dict.fromkeys(artifacts.events.totals)
        self.looks = looks_of_stages(types)
        self.names = {name: look.name for name, look in self.looks.items()}

    def stages(self, *files: str) -> StageBackground:
        """Behind a picture of these files' rows."""
        rows = [(file, self.artifacts.labels[file]) for file in files]
        at = [iteration for _, labels in rows for iteration, _ in labels]
        schedule = self.artifacts.schedule
        run = schedule.iterations if schedule and schedule.iterations else 0
        low, high = min([1, *at]) if run or min(at) <= 0.2 * max(at) else min(at), max([run, *at])
        bands = stage_bands_behind(self.artifacts, max((labels for _, labels in rows), key=_count_labelled_rows), high)
        air = max(0.5, 0.01 * (high - low))
        wrong = list(self._wrong(rows, high - low))
        marks = join_touching_marks(mark for mark, _ in wrong)
        return StageBackground(bands, self.looks, marks, [each for _, each in wrong], low - air, high + air)

    def _wrong(
        self, rows: Sequence[tuple[str, Sequence[StageLabel]]], whole: float
    ) -> Iterator[tuple[LabelMark, WrongLabel]]:
        """What several files say alike is marked once."""
        marked: set[StageLabel] = set()
        for file, labels in rows:
            at = [iteration for iteration, _ in labels]
            spans = dict(zip(at, row_edges(at), strict=True))
            for each in self.wrong:
                label = (each.found.row.iteration, each.found.row.stage)
                if each.file == file and label not in marked:
                    marked.add(label)
                    yield LabelMark(*_narrow_mark_span(spans[label[0]], whole), label[1]), each

    def frame(self, *files: str) -> PictureFrame:
        named = shorten_drawable_name(self.of, 48)
        foot = f"{named}: {', '.join(files)}" if named else ", ".join(files)
        return PictureFrame(foot if is_drawable_text(foot) else named, self.version, self.mark)

    def caption(self, what: str, wrong: Sequence[object]) -> Callable[[], str]:
        return partial(self.say.caption, what, self.artifacts, bool(wrong), self.names)

    def described(self, job: PictureJob) -> str:
        hashes = self.artifacts.hashes
        rests = [f"{file} sha256 {hashes[file][:16]}" if file in hashes else file for file in job.rests_on]
        return "; ".join(part for part in (self.mark, self.of, *rests, f"muster {self.version}".strip()) if part)


def _count_labelled_rows(labels: Sequence[StageLabel]) -> int:
    return sum(bool(stage) for _, stage in labels)


def _narrow_mark_span(span: tuple[float, float], whole: float) -> tuple[float, float]:
    """A mark no wider than it must be, and never too narrow to be seen."""
    middle, half = (span[0] + span[1]) / 2, min((span[1] - span[0]) / 2, max(0.5, 0.025 * whole))
    half = max(half, 0.004 * whole)
    return middle - half, middle + half


def draw_planned_pictures(
    scene: StagedScene, kinds: Sequence[str], into: dict[str, bytes], captions: dict[str, str]
) -> tuple[list[str], list[str]]:
    notes = [scene.say.note(each) for each in scene.artifacts.notes]
    flagged = scene.say.contradictions(scene.wrong)
    for name, jobs in plan_staged_pictures(scene):
        try:
            for job in jobs():
                with apply_figure_style():
                    picture = Picture(job.name, job.title, scene.described(job), "", (), job.make())
                    saved = save_figure_files(picture, kinds)
                captions[job.name] = scene.say.marked(scene.mark, job.caption())
                into |= {f"{job.name}.{kind}": data for kind, data in saved.items()}
        except Exception as error:  # a text without this picture is better than none
            notes.append(scene.say("undrawn", name=name, why=f"{type(error).__name__}: {error}"))
    more = len(flagged) - MOST_NAMED_LABELS
    named = [*flagged[:MOST_NAMED_LABELS], *([scene.say("more_labels", count=more)] if more > 0 else [])]
    return [*notes, *named], flagged


def figures_of_plan(scene: StagedScene) -> Iterator[tuple[str, Figure]]:
    """Not saved, for whoever looks at what is on the axes."""
    for _, jobs in plan_staged_pictures(scene):
        with apply_figure_style():
            yield from [(job.name, job.make()) for job in jobs()]


def plan_staged_pictures(scene: StagedScene) -> Iterator[tuple[str, Callable[[], Iterable[PictureJob]]]]:
    """What there is data for, and how it is drawn."""
    artifacts = scene.artifacts
    for gate, name in zip(artifacts.gates, _names_of_timelines(artifacts.gates), strict=True):
        yield name, partial(_plan_gate_timeline, scene, gate, name)
    if artifacts.events and sum(artifacts.events.totals.values()) > 0:
        yield "stage_events", partial(_plan_stage_events, scene, artifacts.events)
    if artifacts.schedule and artifacts.schedule.rows:
        yield "stage_warnings", partial(_plan_stage_warnings, scene, artifacts.schedule)
    if group_survival_curves(artifacts.series):
        yield "survival", partial(_plan_survival_figure, scene)


def _names_of_timelines(gates: Sequence[GateTrace]) -> list[str]:
    if len(gates) == 1:
        return ["gate_timeline"]
    alike = Counter(gate.name for gate in gates)
    names = [gate.name if alike[gate.name] == 1 else f"{gate.name}_{at}" for at, gate in enumerate(gates, start=1)]
    return [f"gate_timeline_{each}" for each in figure_file_names(name.replace(".", "_") for name in names).values()]


def _plan_gate_timeline(scene: StagedScene, gate: GateTrace, name: str) -> Iterator[PictureJob]:
    stages = scene.stages(gate.file)
    for page in timeline_pages(gate):
        make = partial(draw_gate_timeline, gate, page, stages, scene.frame(gate.file))
        names = scene.names | drawable_names("key", page.keys, is_drawable_text)
        caption = partial(scene.say.gate, gate, scene.artifacts, bool(stages.wrong), names)
        yield PictureJob(f"{name}{page.ending}", f"Gate timeline: {gate.name}{page.part}", caption, make, (gate.file,))


def _plan_stage_events(scene: StagedScene, counted: StageEvents) -> Iterator[PictureJob]:
    wrong = [each for each in scene.wrong if each.file == counted.file]
    make = partial(draw_stage_events, counted, scene.looks, wrong, scene.frame(counted.file))
    yield PictureJob("stage_events", "Events by stage", scene.caption("stage_events", wrong), make, (counted.file,))


def _plan_stage_warnings(scene: StagedScene, trace: ScheduleTrace) -> Iterator[PictureJob]:
    stages = scene.stages(trace.file)
    make = partial(draw_stage_warnings, trace, stages, scene.frame(trace.file))
    yield PictureJob(
        "stage_warnings", "Stages that run out", scene.caption("stage_warnings", stages.wrong), make, (trace.file,)
    )


def _plan_survival_figure(scene: StagedScene) -> Iterator[PictureJob]:
    series = scene.artifacts.series
    files = tuple(each.file for each in series)
    stages = scene.stages(*files)
    make = partial(draw_survival, series, stages, scene.frame(*files))
    yield PictureJob("survival", "Survival and first death", scene.caption("survival", stages.wrong), make, files)
