"""Will the disk last until the campaign ends, and which logs grow without end? From what the looks at it add up to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from muster.acts.clean import size_words
from muster.domain.state import CampaignState
from muster.domain.wording import span
from muster.judge.history import History

FEWEST = 5  # samples, before a trend is one
SOON_S = 12 * 3600.0  # where nothing tells when the campaign ends: told if the disk is full by then
LARGE_LOG = 1 << 30  # bytes of both logs of a run that people hear of


@dataclass(frozen=True, slots=True)
class DiskView:
    free: int
    rate: float  # bytes a second that it loses
    over_s: float  # how long that was measured
    full_in_s: float
    ends_in_s: float | None  # None: nothing tells

    @property
    def too_small(self) -> bool:
        return self.full_in_s < (SOON_S if self.ends_in_s is None else self.ends_in_s)


@dataclass(frozen=True, slots=True)
class LargeLog:
    name: str  # "cell@n"
    bytes: int
    rate: float  # bytes a second since it began


def disk_view(samples: Sequence[tuple[float, int]], ends_in_s: float | None) -> DiskView | None:
    """None: too little is known, or it does not get less.

    The largest single drop is left out: one download, or another disk that has become the smallest, is no trend.
    """
    if len(samples) < FEWEST:
        return None
    (began, first), (ended, last) = samples[0], samples[-1]
    drops = [before - after for (_, before), (_, after) in pairwise(samples)]
    lost = first - last - max(0, *drops)
    if lost <= 0 or ended <= began:
        return None
    rate = lost / (ended - began)
    return DiskView(last, rate, ended - began, last / rate, ends_in_s)


def ends_in_s(state: CampaignState) -> float | None:
    """By the durations of siblings, with as many at a time as run now."""
    from muster.plan.order import estimate  # it loads `statistics`, and most looks have no use for it

    return estimate(state, max(1, len(state.open_attempts))).wall_seconds


def large_logs(histories: Mapping[str, History], boot: float) -> tuple[LargeLog, ...]:
    found = [
        LargeLog(name, each.vitals.out_bytes, each.vitals.out_bytes / max(1.0, boot - each.began))
        for name, each in histories.items()
        if each.vitals.out_bytes and each.vitals.out_bytes >= LARGE_LOG
    ]
    return tuple(sorted(found, key=lambda each: -each.bytes))


def disk_lines(view: DiskView | None, logs: Sequence[LargeLog], cut: bool) -> Iterator[str]:
    if view and view.too_small:
        end = "when the campaign ends is not known" if view.ends_in_s is None else (
            f"the campaign needs about {span(view.ends_in_s)} more"
        )  # fmt: skip
        yield (
            f"the disk will be full in about {span(view.full_in_s)}: {size_words(view.free)} are left, and it lost "
            f"{size_words(view.rate * 3600)} an hour in the last {span(view.over_s)}; {end}. "
            "`muster clean` shows what can go"
        )
    for each in logs[:5]:
        cell, _, n = each.name.rpartition("@")
        hint = "`logs: {max: 1G}` in campaign.yaml would keep their beginning and their end"
        yield (
            f"{cell} attempt {n} writes much: its logs have {size_words(each.bytes)}, "
            f"{size_words(each.rate)} a second{'; they are cut' if cut else '; ' + hint}"
        )


def disk_json(view: DiskView | None) -> dict[str, Any] | None:
    if view is None:
        return None
    return {
        "free": view.free,
        "bytes_per_s": round(view.rate, 1),
        "full_in_s": round(view.full_in_s, 1),
        "ends_in_s": None if view.ends_in_s is None else round(view.ends_in_s, 1),
        "too_small": view.too_small,
    }


def logs_json(logs: Sequence[LargeLog]) -> list[dict[str, Any]]:
    split = [(each.name.rpartition("@"), each) for each in logs]
    return [
        {"cell": cell, "attempt": int(n), "bytes": each.bytes, "bytes_per_s": round(each.rate, 1)}
        for (cell, _, n), each in split
    ]
