"""`muster gates check` and `muster gates replay`: what was found and decided, as values, words and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muster.domain.wording import counted
from muster.stages.decision import Decision
from muster.stages.findings import ERROR, Finding
from muster.stages.flags import Settings
from muster.stages.lint import Facts, lint
from muster.stages.replay import Otherwise, absent, conclusion, opened_at, otherwise, replay, without
from muster.stages.rows import Row
from muster.stages.settings import GateSettings


@dataclass(frozen=True, slots=True)
class Replayed:
    """A gate over the rows of a finished run."""

    settings: GateSettings
    decisions: Sequence[Decision]
    strangers: Sequence[str] = ()  # stages that it names, and no row is of
    left_out: Sequence[str] = ()  # keys that no row has: their criteria could not be judged
    otherwise: Sequence[Otherwise] = ()
    differs: Sequence[int] = ()  # iterations at which the run itself decided otherwise

    @property
    def opens(self) -> int | None:
        return opened_at(self.decisions)

    @property
    def conclusion(self) -> str:
        if self.left_out and not self.decisions:
            return "there is nothing to decide on: no row has a key of its criteria"
        return conclusion(self.decisions)


def replayed(
    settings: GateSettings, rows: Sequence[Row], *, strict: bool = False, decided: Mapping[int, str] | None = None
) -> Replayed:
    """`strict`: a key that no row has keeps its criterion from being met, as it did in the run. `decided`: by whom
    the run was decided, state by iteration."""
    left_out = [] if strict else absent(settings, rows)
    judged = without(settings, left_out)
    decisions = replay(judged, rows) if judged.success or judged.failure else []
    shut = opened_at(decisions) is None
    changes = [*otherwise(judged, rows)] if decisions and shut else []
    differs = [each.iteration for each in decisions if decided and decided.get(each.iteration) != each.state]
    labels = {row.stage for row in rows if row.stage}
    strangers = [stage for stage in settings.stages() if labels and stage not in labels]
    return Replayed(judged, decisions, strangers, left_out, changes, differs)


@dataclass(frozen=True, slots=True)
class GateCheck:
    """One gate, or one flag line."""

    name: str
    facts: Facts
    findings: Sequence[Finding]
    replayed: Replayed | None = None

    @property
    def contradicts(self) -> bool:
        return any(each.level == ERROR for each in self.findings)


def check_facts(name: str, facts: Facts) -> GateCheck:
    seen = replayed(facts.gate, facts.runs[-1]) if facts.gate and facts.runs else None
    return GateCheck(name, facts, lint(facts), seen)


def flag_facts(settings: Settings, iterations: int | None = None) -> Facts:
    return Facts(
        settings.gate, settings.schedule, settings.curriculum, iterations or settings.iterations,
        settings.evaluations.interval,
    )  # fmt: skip


def outline(facts: Facts) -> Iterator[str]:
    """What was read, so that a misreading is seen."""
    if facts.iterations:
        every = f", an evaluation every {facts.interval}" if facts.interval else ""
        yield f"run: {counted(facts.iterations, 'iteration')}{every}"
    if facts.curriculum:
        each = ", ".join(f"{lesson.value:g} for {lesson.iterations}" for lesson in facts.curriculum.lessons)
        yield f"curriculum (value:iterations): {each}; {facts.curriculum.total} in all"
    if facts.schedule:
        yield f"schedule (iterations:path): {', '.join(map(str, facts.schedule.stages))}; {facts.schedule.total} in all"
    if facts.gate:
        yield from _gate_outline(facts.gate)


def _gate_outline(gate: GateSettings) -> Iterator[str]:
    for side, criteria in (("success", gate.success), ("failure", gate.failure)):
        for each in criteria:
            stages = "; ".join(f"{stage}: {_bounds(each.by_stage[stage].mapping())}" for stage in each.by_stage)
            yield f"{side}: {each.key} {_bounds(each.limits.mapping())}{f' ({stages})' if stages else ''}"
    borne = ", ".join(f"{stage} {count}" for stage, count in gate.tolerance.items()) or "none"
    yield f"advances after {counted(gate.required, 'success', 'successes')} in a row; failures borne in a row: {borne}"


def _bounds(written: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in written.items())


def as_json(check: GateCheck) -> dict[str, Any]:
    facts = check.facts
    return {
        "gate": check.name,
        "iterations": facts.iterations,
        "interval": facts.interval,
        "curriculum": facts.curriculum.mappings() if facts.curriculum else None,
        "schedule": facts.schedule.mappings() if facts.schedule else None,
        "settings": facts.gate.mapping() if facts.gate else None,
        "findings": [each._asdict() for each in check.findings],
        "replay": replay_json(check.replayed) if check.replayed else None,
    }


def replay_json(found: Replayed) -> dict[str, Any]:
    return {
        "settings": found.settings.mapping(),
        "opens": found.opens,
        "conclusion": found.conclusion,
        "left_out": list(found.left_out),
        "otherwise": [{"what": each.what, "opens": each.opens} for each in found.otherwise],
        "differs": list(found.differs),
        "decisions": [each.row() for each in found.decisions],
    }
