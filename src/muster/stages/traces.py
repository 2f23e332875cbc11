"""The files that a staged training leaves behind, as texts: the script writes them, nothing here does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from muster.stages.alarms import Alarm, Watch
from muster.stages.curriculum import Curriculum
from muster.stages.decision import Decision
from muster.stages.errors import SpecError
from muster.stages.rows import Row, settled
from muster.stages.schedule import Schedule
from muster.stages.settings import GateSettings


class Trace(NamedTuple):
    """`gate_trace.jsonl`: the settings of its head, and its rows as they were observed and as they were decided."""

    settings: GateSettings | None
    name: str
    rows: list[Row]
    decided: list[dict[str, Any]]
    skipped: int  # lines that could not be read


def head(settings: GateSettings, name: str = "gate") -> str:
    """The first line of `gate_trace.jsonl`."""
    import json

    return json.dumps({"gate": name, "settings": settings.mapping()}, ensure_ascii=False)


def lines(settings: GateSettings, decisions: Iterable[Decision], name: str = "gate") -> str:
    return "".join(f"{line}\n" for line in (head(settings, name), *(each.line() for each in decisions)))


def upto(text: str, iteration: int, key: str = "iteration") -> str:
    """What a run that resumes at `iteration` keeps of a file of rows: nothing later, and no torn line."""
    kept = []
    for line, row in _objects(text):
        if row is not None:
            at = row.get(key)
            if not isinstance(at, int | float) or isinstance(at, bool) or at <= iteration:
                kept.append(f"{line}\n")
    return "".join(kept)


def read_trace(text: str) -> Trace:
    settings, name, skipped = None, "", 0
    decided: list[dict[str, Any]] = []
    for _, row in _objects(text):
        if row is None:
            skipped += 1
        elif isinstance(row.get("settings"), Mapping) and "iteration" not in row:
            settings, name = _settings(row["settings"]), str(row.get("gate", ""))
            skipped += settings is None
        elif isinstance(row.get("iteration"), int) and isinstance(row.get("values"), Mapping):
            while decided and decided[-1]["iteration"] >= row["iteration"]:
                decided.pop()
            decided.append(row)
        else:
            skipped += 1
    rows = [Row(each["iteration"], each["values"], str(each.get("stage") or "")) for each in decided]
    return Trace(settings, name, settled(rows), decided, skipped)


def schedule_trace(
    schedule: Schedule, iterations: int, *, reached: int | None = None, curriculum: Curriculum | None = None,
    watch: Watch | None = None,
) -> dict[str, Any]:  # fmt: skip
    """What `schedule_trace.json` holds of a run that has come as far as `reached`."""
    alarm = Alarm(watch) if watch else None
    end = iterations if reached is None else min(reached, iterations)
    trace = []
    for at in range(1, end + 1):
        ratios = schedule.remaining_ratio(at, iterations)
        if alarm:
            alarm.observe(at, ratios)
        row: dict[str, Any] = {"iteration": at, "stage": schedule.stage_at(at).type}
        if curriculum:
            row["value"] = curriculum.value_at(at)
        row |= {
            "remaining": schedule.remaining(at, iterations),
            "remaining_ratio": {name: round(ratio, 6) for name, ratio in ratios.items()},
            "warn_duration": alarm.durations() if alarm else {},
        }
        trace.append(row)
    return {
        "iterations": iterations,
        "schedule": schedule.text(),
        "curriculum": curriculum.text() if curriculum else None,
        "stages": [{"from": s.first, "to": s.last, "type": s.type, "source": s.source} for s in schedule.stages],
        "reinjections_by_type": schedule.reinjections(end),
        "warnings": [each.row(alarm.watch.ratio) for each in alarm.events] if alarm else [],
        "trace": trace,
    }  # fmt: skip


def stage_summary(counts: Iterable[tuple[int, str, int, int]], what: str = "first-step deaths") -> dict[str, Any]:
    """What `stage_summary.json` holds. `counts`: iteration, stage, events, and of how many."""
    events: dict[str, int] = {}
    by_iteration = []
    for iteration, stage, count, of in counts:
        events[stage] = events.get(stage, 0) + count
        by_iteration.append({"iteration": iteration, "stage": stage, "count": count, "of": of})
    total = sum(events.values())
    share = {stage: round(count / total, 6) for stage, count in events.items()} if total else {}
    return {"what": what, "events": events, "share": share, "by_iteration": by_iteration}


def _settings(written: Mapping[str, Any]) -> GateSettings | None:
    """None: another version wrote them. The rows can be read all the same."""
    try:
        return GateSettings.of(written)
    except SpecError:
        return None


def _objects(text: str) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Line by line; None: it is no object. The last line may be torn. (`splitlines` would split within a text too.)"""
    import json

    for line in text.split("\n"):
        if line.strip():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                row = None
            yield line, row if isinstance(row, dict) else None
