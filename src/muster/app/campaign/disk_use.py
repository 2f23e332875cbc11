"""Disk use of a campaign: which leftovers `muster clean` may delete, whether the disk lasts until the end, which logs
grow large. Pure.

By a rule each, and never anything that a result rests on.
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from muster.engine.judge.signal_history import SignalHistory
from muster.engine.ports.store import LoggedDecision
from muster.model.attempt import Attempt, AttemptKey, CellRecord
from muster.model.campaign import Job
from muster.model.campaign_state import CampaignState
from muster.model.decision import Decision
from muster.text.number_format import format_file_size
from muster.text.phrases import join_phrases, phrase
from muster.text.sentences import format_duration

# in the order that they are shown in
LEFTOVER_KINDS = {
    "superseded": "campaign.leftovers_superseded",
    "failed": "campaign.leftovers_failed",
    "environment": "campaign.leftovers_environment",
    "diff": "campaign.leftovers_diff",
    "snapshot": "campaign.leftovers_snapshot",
    "temporary": "campaign.leftovers_temporary",
    "backup": "campaign.leftovers_backup",
}


@dataclass(frozen=True, slots=True)
class Leftover:
    """Something that can go. Its paths are absolute, lie below `.muster`, and are all that is deleted for it."""

    kind: str
    paths: tuple[str, ...]
    bytes: int
    age_s: float  # since anything of it was written
    attempt: Attempt | None = None

    @property
    def name(self) -> str:
        return (
            phrase("campaign.attempt_of_cell", cell=self.attempt.cell, n=self.attempt.n)
            if self.attempt
            else self.paths[0].rpartition("/")[2]
        )


def find_spare_attempts(records: Iterable[CellRecord], needed: Collection[AttemptKey]) -> Iterator[tuple[str, Attempt]]:
    """(kind, attempt) of those that nothing rests on. `needed`: places of what counts, is stamped, or is resumed from.

    Of a cell that is not DONE everything stays: it may be resumed, accepted, read again.
    """
    for record in records:
        if record.completed is None or record.open is not None:
            continue
        for attempt in record.attempts:
            if attempt.completed or attempt.open or attempt.adopted or attempt.place in needed:
                continue
            yield "superseded" if attempt.superseded is not None else "failed", attempt


class KeptPaths:
    """Paths that must stay; there may be as many as there are files of results."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.sorted = sorted(set(paths))

    def touches(self, path: str) -> bool:
        """Whether it is one of them, lies in one of them, or holds one of them."""
        above = [path]
        while (parent := above[-1].rpartition("/")[0]) and parent != above[-1]:
            above.append(parent)
        return any(self._has(each) for each in above) or self._has(f"{path}/", begins=True)

    def _has(self, path: str, *, begins: bool = False) -> bool:
        at = bisect_left(self.sorted, path)
        return at < len(self.sorted) and (self.sorted[at].startswith(path) if begins else self.sorted[at] == path)


def describe_leftover(found: Leftover) -> str:
    return phrase("campaign.leftover_outputs_and_logs", kind=found.kind, size=format_leftover_size(found.bytes))


def build_clean_decisions(person: Any, chosen: Sequence[Leftover], inside: Any) -> list[Decision]:
    """One that names all the files that belong to no attempt, and one for each attempt: `why` tells it of its cell."""
    loose = [found for found in chosen if found.attempt is None]
    total = sum(found.bytes for found in chosen)
    what = join_phrases(", ", (phrase("count.leftover", n=len(chosen)), format_leftover_size(total)))
    first = {"bytes": total, "leftovers": len(chosen), "paths": [inside(path) for each in loose for path in each.paths]}
    found = [person("clean", what, data=first)]
    for each in chosen:
        if each.attempt is not None:
            data = {"kind": each.kind, "bytes": each.bytes, "paths": [inside(path) for path in each.paths]}
            found.append(
                person("clean", describe_leftover(each), cell=each.attempt.cell, attempt=each.attempt.n, data=data)
            )
    return found


def describe_cleaning(events: Iterable[LoggedDecision], n: int) -> str | None:
    """Of one cell's events: `cleaned on 2026-02-23 by ada@box`; None: attempt n was not."""
    for event in events:
        decision = event.decision
        if decision.kind == "clean" and decision.attempt == n and not event.void:
            return phrase("campaign.cleaned_on", at=decision.at[:10], who=decision.who)
    return None


def format_leftover_size(count: float) -> str:
    return format_file_size(count, kilo="kB")


def clean_as_json(
    found: Sequence[Leftover], *, deleted: bool, refused: Mapping[str, str], freed: int
) -> dict[str, Any]:
    """The object of `muster clean --json`."""
    return {
        "muster": 1,
        "deleted": deleted,
        "bytes": sum(each.bytes for each in found),
        "freed": freed,
        "leftovers": [
            {
                "kind": each.kind,
                "cell": each.attempt.cell if each.attempt else None,
                "attempt": each.attempt.n if each.attempt else None,
                "bytes": each.bytes,
                "age_s": round(each.age_s, 1),
                "paths": list(each.paths),
            }
            for each in found
        ],
        "refused": [{"name": name, "why": why} for name, why in refused.items()],
    }


def format_clean_lines(found: Sequence[Leftover], most: int) -> Iterator[str]:
    for kind, code in LEFTOVER_KINDS.items():
        group = sorted((each for each in found if each.kind == kind), key=lambda each: -each.bytes)
        if group:
            size = f"{format_leftover_size(sum(each.bytes for each in group)):>9}  "
            yield join_phrases("", (size, phrase(code), f": {len(group)}"))
            for each in group[:most]:
                yield phrase(
                    "campaign.leftover_written_ago",
                    size=format_leftover_size(each.bytes),
                    name=each.name,
                    age=format_duration(each.age_s),
                )
            if len(group) > most:
                yield join_phrases("", (" " * 15, phrase("campaign.more_leftovers", n=len(group) - most)))


FEWEST_SAMPLES = 5  # samples, before a trend is one
FULL_SOON_S = 12 * 3600.0  # where nothing tells when the campaign ends: told if the disk is full by then
LARGE_LOG = 1 << 30  # bytes of both logs of a run that people hear of


@dataclass(frozen=True, slots=True)
class DiskOutlook:
    free: int
    rate: float  # bytes a second that it loses
    over_s: float  # how long that was measured
    full_in_s: float
    ends_in_s: float | None  # None: nothing tells

    @property
    def too_small(self) -> bool:
        return self.full_in_s < (FULL_SOON_S if self.ends_in_s is None else self.ends_in_s)


@dataclass(frozen=True, slots=True)
class LargeLog:
    name: str  # "cell@n"
    bytes: int
    rate: float  # bytes a second since it began


def build_disk_outlook(samples: Sequence[tuple[float, int]], ends_in_s: float | None) -> DiskOutlook | None:
    """None: too little is known, or it does not get less.

    The largest single drop is left out: one download, or another disk that has become the smallest, is no trend.
    """
    if len(samples) < FEWEST_SAMPLES:
        return None
    (began, first), (ended, last) = samples[0], samples[-1]
    drops = [before - after for (_, before), (_, after) in pairwise(samples)]
    lost = first - last - max(0, *drops)
    if lost <= 0 or ended <= began:
        return None
    rate = lost / (ended - began)
    return DiskOutlook(last, rate, ended - began, last / rate, ends_in_s)


def estimate_campaign_end_s(state: CampaignState) -> float | None:
    """By the durations of siblings, with as many at a time as run now."""
    from muster.engine.plan.scheduling import (
        estimate_remaining,
    )  # it loads `statistics`, and most looks have no use for it

    return estimate_remaining(state, max(1, len(state.open_attempts))).wall_seconds


def find_large_logs(histories: Mapping[str, SignalHistory], boot: float) -> tuple[LargeLog, ...]:
    found = [
        LargeLog(name, each.vitals.out_bytes, each.vitals.out_bytes / max(1.0, boot - each.began))
        for name, each in histories.items()
        if each.vitals.out_bytes and each.vitals.out_bytes >= LARGE_LOG
    ]
    return tuple(sorted(found, key=lambda each: -each.bytes))


def format_disk_lines(view: DiskOutlook | None, logs: Sequence[LargeLog], cut: bool) -> Iterator[str]:
    if view and view.too_small:
        end = (
            phrase("campaign.campaign_end_unknown")
            if view.ends_in_s is None
            else (phrase("campaign.campaign_needs_more_time", duration=format_duration(view.ends_in_s)))
        )
        yield (
            phrase(
                "campaign.disk_full_soon",
                full_in=format_duration(view.full_in_s),
                free=format_leftover_size(view.free),
                rate=format_leftover_size(view.rate * 3600),
                span=format_duration(view.over_s),
                end=end,
            )
        )
    for each in logs[:5]:
        cell, _, n = each.name.rpartition("@")
        told = phrase(
            "campaign.attempt_writes_much",
            cell=cell,
            n=int(n),
            size=format_leftover_size(each.bytes),
            rate=format_leftover_size(each.rate),
        )
        yield join_phrases("; ", (told, phrase("campaign.logs_are_cut" if cut else "campaign.logs_max_would_cut")))


def disk_outlook_as_json(view: DiskOutlook | None) -> dict[str, Any] | None:
    if view is None:
        return None
    return {
        "free": view.free,
        "bytes_per_s": round(view.rate, 1),
        "full_in_s": round(view.full_in_s, 1),
        "ends_in_s": None if view.ends_in_s is None else round(view.ends_in_s, 1),
        "too_small": view.too_small,
    }


def large_logs_as_json(logs: Sequence[LargeLog]) -> list[dict[str, Any]]:
    split = [(each.name.rpartition("@"), each) for each in logs]
    return [
        {"cell": cell, "attempt": int(n), "bytes": each.bytes, "bytes_per_s": round(each.rate, 1)}
        for (cell, _, n), each in split
    ]


_TEMPLATE_START = re.compile(r"[{*?\[]")  # where a template or a glob begins


def find_output_folders(state: CampaignState, root: str) -> tuple[str, ...]:
    """Absolute; the part of each output that is the same for all cells, and every folder that was adopted."""
    jobs = (*state.campaign.jobs, *state.former_jobs)
    found = dict.fromkeys(_fixed_output_folder(job, root) for job in jobs)
    for record in state.cells.values():
        for attempt in record.attempts:
            if attempt.adopted and attempt.outcome and attempt.outcome.output:
                found[attempt.outcome.output] = None
    return tuple(each for each in found if each not in ("/", ""))


def _fixed_output_folder(job: Job, root: str) -> str:
    """`runs/*_{config}_{seed}` -> runs; `{out}` is a folder of the attempt."""
    opens = _TEMPLATE_START.search(job.output)
    if "{out}" in job.output:
        return f"{root}/.muster/attempts"
    fixed = posixpath.dirname(job.output[: opens.start()]) if opens else job.output
    return posixpath.normpath(posixpath.join(job.cwd or root, fixed))
