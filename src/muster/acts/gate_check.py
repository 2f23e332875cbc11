"""Whether a campaign's gates and schedules can do what they are meant to do, before a run is paid for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from muster.domain.campaign import Campaign
from muster.domain.errors import Mistake
from muster.stages.curriculum import Curriculum
from muster.stages.findings import NOTE
from muster.stages.lint import Facts, lint
from muster.stages.rows import Row
from muster.stages.schedule import Schedule
from muster.stages.settings import GateSettings

_PLACES = {
    "curriculum_length": "curriculum", "schedule_too_long": "schedule", "schedule_too_short": "schedule",
    "runs_out": "schedule", "shared_file": "schedule", "label": "schedule",
}  # fmt: skip
PastRows = Callable[[str], Sequence[Sequence[Row]]]  # of the gate of this name: what each past run wrote


def gate_mistakes(campaign: Campaign, past: PastRows = lambda _: ()) -> Iterator[Mistake]:
    """Warnings and notes: each has a defined outcome when it runs, though hardly the one that was meant."""
    for name, gate in (campaign.gates or {}).items():
        for each in lint(facts_of(campaign, gate)._replace(runs=past(name))):
            if each.code == "adds_up":
                continue
            place = _PLACES.get(each.code)
            path = f"gates.{name}.{place}" if place else f"gates.{name}"
            yield Mistake(each.message, hint=each.hint, path=path, level="note" if each.level == NOTE else "warning")


def missing_files(campaign: Campaign, root: str) -> Iterator[Mistake]:
    """Tail seeds that a schedule draws from, as the job would find them from its folder."""
    for name, gate in (campaign.gates or {}).items():
        job = next((each for each in campaign.jobs if each.name == gate["job"]), None)
        if not gate.get("schedule") or job is None:
            continue
        base = Path(job.cwd or root)
        lacking = [each for each in dict.fromkeys(s.source for s in Schedule.of(gate["schedule"]).stages)
                   if not (base / each).exists()]  # fmt: skip
        if lacking:
            what = f"tail seeds that are not there: {', '.join(lacking)}"
            yield Mistake(what, path=f"gates.{name}.schedule", hint=f"looked in {base}", level="warning")


def facts_of(campaign: Campaign, gate: Mapping[str, Any]) -> Facts:
    """`gate`: as `spec` read it."""
    steps = next((job.steps for job in campaign.jobs if job.name == gate["job"]), None)
    return rule_facts(gate, steps)


def rule_facts(rules: Mapping[str, Any], steps: int | None = None) -> Facts:
    """A step of the job is taken for an iteration, unless the gate says how many of those there are."""
    return Facts(
        GateSettings.of(rules),
        Schedule.of(rules["schedule"]) if rules.get("schedule") else None,
        Curriculum.of(rules["curriculum"]) if rules.get("curriculum") else None,
        rules.get("iterations") or steps,
        rules.get("every"),
    )
