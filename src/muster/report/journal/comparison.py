"""This version against the last one: better, worse, or within the noise of the last evaluations."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from muster.report.journal.facts import Evaluations, GateTrace, Run
from muster.report.journal.shown import number, table
from muster.report.journal.wording import Wording
from muster.report.numbers import Format, column_format
from muster.report.record_wording import code
from muster.rounds.summary import direction_of
from muster.stats.compare import Difference, difference, holm
from muster.stats.sample import Sample

RECENT = 4  # evaluations at the end of each run
LEAST = 3  # with fewer there is no spread to judge by
ALPHA = 0.05
MOST = 16
_HIGHER = ("survival", "alive")
# how an evaluation was made, not what came of it
_MADE = re.compile(r"(?:^|_)(?:episodes?|seeds?|fish|envs?|time|timestamp|seconds|phase|probe)(?:$|_)", re.I)


@dataclass(frozen=True, slots=True)
class Compared:
    key: str
    before: Sample
    now: Sample
    difference: Difference
    reading: str  # better | worse | higher | lower | noise | few | same


def comparison_body(now: Run, before: Run, against: str, w: Wording) -> str:
    if now.evaluations is None or before.evaluations is None:
        return w("comparison.nothing", last=against)
    rows = compare(now.evaluations, before.evaluations, directions([*now.gates, *before.gates]))
    if not rows:
        return w("comparison.no_common", last=against)
    forms = {each.key: column_format([each.before, each.now]) for each in rows}
    shown = [_row(each, forms[each.key], w) for each in rows[:MOST]]
    head = [w("head.metric"), against, w("head.this"), w("head.difference"), w("head.reading")]
    notes = [f"- {each}" for each in _notes(rows, before, against, w)]
    return "\n\n".join([_summary(rows, w), table(head, shown, words=1), "\n".join(notes)])


def compare(now: Evaluations, before: Evaluations, better: Mapping[str, str]) -> list[Compared]:
    """Keys that both have, by their last few evaluations."""
    keys = [key for key in now.keys if key in before.keys and not _MADE.search(key)]
    pairs = [(key, _recent(before, key), _recent(now, key)) for key in keys]
    found = [(key, old, new, difference(new, old)) for key, old, new in pairs if old.n and new.n]
    judged = {key: each.p for key, old, new, each in found if min(old.n, new.n) >= LEAST}
    rejected = {key: told for key, (_, told) in holm(judged, ALPHA).items()}
    return [
        Compared(
            key, old, new, each, _reading(each, old, new, rejected.get(key, False), better.get(key) or _known(key))
        )
        for key, old, new, each in found
    ]


def _recent(found: Evaluations, key: str) -> Sample:
    values = [(at, value) for at, value in found.column(key) if math.isfinite(value)][-RECENT:]
    return Sample("", "", key, {f"{place}:{at}": value for place, (at, value) in enumerate(values)})


def _reading(each: Difference, old: Sample, new: Sample, rejected: bool, better: str | None) -> str:
    if each.estimate == 0 and not each.se:
        return "same"
    if min(old.n, new.n) < LEAST:
        return "few"
    if not (rejected or _apart(each, old, new)):
        return "noise"
    up = each.estimate > 0
    if better is None:
        return "higher" if up else "lower"
    return "better" if up == (better == "higher") else "worse"


def _apart(each: Difference, old: Sample, new: Sample) -> bool:
    """Neither has any spread, and they differ."""
    return each.p is None and old.sd == 0 and new.sd == 0 and each.estimate != 0


def _known(key: str) -> str | None:
    return "higher" if any(word in key.lower() for word in _HIGHER) else direction_of(key)


def directions(gates: Sequence[GateTrace]) -> dict[str, str]:
    """What is better, as the criteria of a gate tell it: a success at least so high, a failure below that."""
    found: dict[str, str] = {}
    for trace in gates:
        for row in trace.rows[:1]:
            for each in row.get("criteria") or ():
                if isinstance(each, Mapping) and each.get("bound") in ("min", "above", "max", "below"):
                    up = (each["bound"] in ("min", "above")) == (each.get("side") == "success")
                    found.setdefault(str(each.get("key")), "higher" if up else "lower")
    return found


def _row(each: Compared, form: Format, w: Wording) -> list[str]:
    interval = each.difference.interval()
    told = form.signed(each.difference.estimate)
    if interval and min(each.before.n, each.now.n) >= LEAST:
        told += f" {form.interval(interval)}"
    return [each.key, _sample(each.before, form), _sample(each.now, form), told, w(f"reading.{each.reading}")]


def _sample(sample: Sample, form: Format) -> str:
    spread = f" ± {form.spread(sample.sd)}" if sample.sd is not None and sample.n >= LEAST else ""
    return f"{form(sample.mean)}{spread}"


def _summary(rows: Sequence[Compared], w: Wording) -> str:
    kinds = ("better", "worse", "higher", "lower", "noise", "same", "few")
    by = {kind: [code(each.key) for each in rows if each.reading == kind] for kind in kinds}
    told = [w(f"comparison.{kind}", keys=w.list(keys)) for kind, keys in by.items() if keys]
    return ("；" if w.language == "zh" else "; ").join(told) + ("。" if w.language == "zh" else ".")


def _notes(rows: Sequence[Compared], before: Run, against: str, w: Wording) -> Iterator[str]:
    used = [each.before.n for each in rows] + [each.now.n for each in rows]
    yield w("comparison.how", n=max(used), m=sum(min(each.before.n, each.now.n) >= LEAST for each in rows))
    yield w("comparison.limits")
    if any(each.reading in ("higher", "lower") for each in rows):
        yield w("comparison.direction")
    if len(rows) > MOST:
        yield w("comparison.cut", n=len(rows) - MOST)
    if before.evaluations:
        source = w("comparison.text", last=against) if not before.folder else code(before.evaluations.source)
        yield w("comparison.source", last=against, source=source, n=len(before.evaluations.rows))


def last_values(found: Evaluations) -> dict[str, str]:
    """Of the last evaluation."""
    return {key: number(value) for key, value in found.rows[-1].values.items()} if found.rows else {}
