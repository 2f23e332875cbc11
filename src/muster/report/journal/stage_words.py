"""What happened in which stage: events by stage, iterations by stage, stages that began again."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from muster.report.journal.facts import Run
from muster.report.journal.wording import Wording
from muster.report.record_wording import code, plain


def stages_body(run: Run, w: Wording) -> str:
    told = [*_events(run, w), *_schedule(run, w)]
    if not told:
        return ""
    sources = [code(each) for each in (run.summary_source, run.schedule_source) if each]
    return "\n".join(f"- {each}" for each in [*told, w("stages.source", source=w.list(sources))])


def _events(run: Run, w: Wording) -> Iterator[str]:
    counts = whole_numbers((run.summary or {}).get("events"))
    total = sum(counts.values())
    if total:
        what = plain(str((run.summary or {}).get("what") or w("stages.what")))
        shown = [
            w("stages.event", stage=plain(stage), n=count, share=f"{100 * count / total:.1f}")
            for stage, count in sorted(counts.items(), key=lambda each: -each[1])
        ]
        yield w("stages.events", what=what[:1].upper() + what[1:], counts=w.list(shown), n=total)


def _schedule(run: Run, w: Wording) -> Iterator[str]:
    schedule = run.schedule or {}
    again = whole_numbers(schedule.get("reinjections_by_type"))
    ran = iterations_by_stage(schedule)
    if ran:
        yield w("stages.run", counts=_listed(ran, w))
    if any(again.values()):
        yield w("stages.again", counts=_listed(again, w))


def iterations_by_stage(schedule: Mapping[str, Any]) -> dict[str, int]:
    """As far as the run went."""
    stages, total = schedule.get("stages"), schedule.get("iterations")
    found: dict[str, int] = {}
    for each in stages if isinstance(stages, list) else ():
        span = whole_numbers({name: each.get(name) for name in ("from", "to")}) if isinstance(each, Mapping) else {}
        if len(span) == 2:
            last = min(span["to"], total) if isinstance(total, int) else span["to"]
            kind = str(each.get("type", "?"))
            found[kind] = found.get(kind, 0) + max(0, last - span["from"] + 1)
    return {kind: count for kind, count in found.items() if count}


def whole_numbers(found: Any) -> dict[str, int]:
    if not isinstance(found, Mapping):
        return {}
    numbers = {str(key): value for key, value in found.items() if isinstance(value, int | float)}
    return {key: int(value) for key, value in numbers.items() if not isinstance(value, bool) and math.isfinite(value)}


def _listed(counts: Mapping[str, int], w: Wording) -> str:
    return w.list([f"{plain(kind)} {count}" for kind, count in counts.items()])
