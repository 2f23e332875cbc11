"""What of a campaign's state can go: by a rule each, and never what something that counts rests on."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muster.domain.attempt import Attempt, CellRecord
from muster.domain.decision import Decision
from muster.domain.wording import counted, span
from muster.ports.store import Event

# in the order that they are shown in
KINDS = {
    "superseded": "outputs and logs of attempts that `muster redo` has superseded",
    "failed": "outputs and logs of attempts that failed, of cells that are DONE since",
    "environment": "environments that no decision and no attempt names",
    "diff": "kept code that no attempt names",
    "snapshot": "campaigns that were written down and never taken in",
    "temporary": "files that a killed process left half written",
    "backup": "what `muster fsck` set aside",
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
        return f"{self.attempt.cell} attempt {self.attempt.n}" if self.attempt else self.paths[0].rpartition("/")[2]


def spare_attempts(records: Iterable[CellRecord], needed: Collection[tuple[str, int]]) -> Iterator[tuple[str, Attempt]]:
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


class Kept:
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


def clean_reason(found: Leftover) -> str:
    return f"{found.kind}: {size_words(found.bytes)} of outputs and logs"


def clean_decisions(person: Any, chosen: Sequence[Leftover], inside: Any) -> list[Decision]:
    """One that names all the files that belong to no attempt, and one for each attempt: `why` tells it of its cell."""
    loose = [found for found in chosen if found.attempt is None]
    total = sum(found.bytes for found in chosen)
    what = f"{counted(len(chosen), 'leftover')}, {size_words(total)}"
    first = {"bytes": total, "leftovers": len(chosen), "paths": [inside(path) for each in loose for path in each.paths]}
    found = [person("clean", what, data=first)]
    for each in chosen:
        if each.attempt is not None:
            data = {"kind": each.kind, "bytes": each.bytes, "paths": [inside(path) for path in each.paths]}
            found.append(person("clean", clean_reason(each), cell=each.attempt.cell, attempt=each.attempt.n, data=data))
    return found


def cleaned_words(events: Iterable[Event], n: int) -> str | None:
    """Of one cell's events: `cleaned on 2026-02-23 by ada@box`; None: attempt n was not."""
    for event in events:
        decision = event.decision
        if decision.kind == "clean" and decision.attempt == n and not event.void:
            return f"cleaned on {decision.at[:10]} by {decision.who}"
    return None


def size_words(count: float) -> str:
    """Bytes for people: `312 B`, `4.0 kB`, `1.2 GB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def as_json(found: Sequence[Leftover], *, deleted: bool, refused: Mapping[str, str], freed: int) -> dict[str, Any]:
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


def clean_lines(found: Sequence[Leftover], most: int) -> Iterator[str]:
    for kind, words in KINDS.items():
        group = sorted((each for each in found if each.kind == kind), key=lambda each: -each.bytes)
        if group:
            yield f"{size_words(sum(each.bytes for each in group)):>9}  {words}: {len(group)}"
            for each in group[:most]:
                yield f"{size_words(each.bytes):>13}  {each.name}, written {span(each.age_s)} ago"
            if len(group) > most:
                yield f"{'':>13}  and {len(group) - most} more"
