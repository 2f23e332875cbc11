"""The text of a new version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from muster.report.journal.following import Carried, Settled
from muster.report.journal.scan import uncommented
from muster.report.journal.wording import Wording


def name_of(version: int) -> str:
    return f"dev_v{version}"


@dataclass(frozen=True, slots=True)
class Before:
    """What a new version starts from."""

    version: int
    points: Sequence[Carried]
    settled: Settled
    missing: Sequence[int] = ()  # versions that should lie between the two


def compose(version: int, before: Before | None, language: str, now: datetime) -> str:
    """With plain newlines."""
    w = Wording(language)
    observed = w("section.observations")
    if before:
        observed = w("section.observations_after", last=name_of(before.version))
    points = before.points if before else ()
    parts = [
        [f"# {name_of(version)}"],
        [f"## {w('section.start')}", *_start(before, w, now)],
        [f"## {observed}", *(_observations(points) or [_hint(w, "observations")])],
        [f"## {w('section.plan')}", *_plan(points, w), _hint(w, "plan")],
        [f"## {w('section.findings')}", _hint(w, "findings")],
        [f"## {w('section.record')}", _hint(w, "record")],
        [f"## {w('section.learning')}", _hint(w, "learning")],
    ]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _hint(w: Wording, key: str) -> str:
    return f"<!-- {w(f'hint.{key}')} -->"


def _start(before: Before | None, w: Wording, now: datetime) -> Iterator[str]:
    when = {"date": f"{now:%Y-%m-%d}", "zone": zone_of(now)}
    if before is None:
        yield f"- {w('new.first', **when)}"
    else:
        yield f"- {w('new.after', last=name_of(before.version), told=_counts(before, w), **when)}"
        if before.missing:
            yield f"- {w('new.missing', names=w.list([f'{name_of(each)}.md' for each in before.missing]))}"
    yield f"- {w('new.goal')}".rstrip()


def _counts(before: Before, w: Wording) -> str:
    kinds = {
        "fresh": sum(not each.carried for each in before.points),
        "carried": sum(bool(each.carried) for each in before.points),
        "done": len(before.settled.done),
        "dropped": len(before.settled.dropped),
    }
    told = [w(f"new.counts.{kind}", n=n) for kind, n in kinds.items() if n]
    return w.list(told) if before.points else w.list([w("new.counts.none"), *told])


def zone_of(now: datetime) -> str:
    """UTC, UTC+8, UTC-3:30."""
    offset = now.utcoffset()
    minutes = round(offset.total_seconds() / 60) if offset else 0
    hours, rest = divmod(abs(minutes), 60)
    sign = "-" if minutes < 0 else "+"
    return "UTC" if not minutes else f"UTC{sign}{hours}" + (f":{rest:02d}" if rest else "")


def _observations(points: Sequence[Carried]) -> list[str]:
    told = [each for each in points if each.observed]
    return [line for number, each in enumerate(told, 1) for line in _item(f"{number}.", f"{each.id} {each.observed}")]


def _plan(points: Sequence[Carried], w: Wording) -> Iterator[str]:
    for each in points:
        count = w("carried", n=each.carried, since=each.id.version) if each.carried else ""
        gap = "" if count.endswith("）") or not count else " "
        lead = f" {count}{gap}" if count.startswith("(") else count or " "
        yield from _item("- [ ]", f"{each.id}{lead}{each.planned}", "- ")


def _item(marker: str, text: str, hanging: str = "") -> list[str]:
    first, *more = uncommented(text).split("\n")
    depth = " " * len(hanging or f"{marker} ")
    return [f"{marker} {first}", *(f"{depth}{line}".rstrip() for line in more)]
