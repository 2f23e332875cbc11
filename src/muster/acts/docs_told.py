"""What `muster docs` tells: values for the command line, and the objects of --json."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muster.report.documents.audit import STATES, Finding
from muster.report.documents.bind import Decision
from muster.report.documents.sidecar import Binding


@dataclass(frozen=True, slots=True)
class Spot:
    line: int
    column: int
    text: str


@dataclass(frozen=True, slots=True)
class Fixed:
    """A number that is bound."""

    spot: Spot
    binding: Binding
    now: str  # "": no result agrees; now, earlier
    old: bool = False  # it was bound before


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """A number that stays unbound unless somebody says which it is."""

    spot: Spot
    why: str
    candidates: tuple[str, ...]  # names of quantities
    decision: Decision
    around: str  # its line


@dataclass(frozen=True, slots=True)
class Missed:
    spot: Spot
    why: str


@dataclass(frozen=True, slots=True)
class Bound:
    """What `docs bind` found in one text."""

    path: Path
    sidecar: Path
    fixed: tuple[Fixed, ...]
    ambiguous: tuple[Ambiguous, ...]
    untraced: tuple[Missed, ...]
    lost: tuple[Missed, ...]  # bound before, and not found again
    written: bool


@dataclass(frozen=True, slots=True)
class Changed:
    spot: Spot
    new: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Updated:
    path: Path
    changes: tuple[Changed, ...]
    unchanged: int
    diff: tuple[str, ...]
    kept: Path | None = None  # where the old version lies
    left: tuple[Missed, ...] = ()  # what a person should look at


@dataclass(frozen=True, slots=True)
class Unsaid:
    """The first ± of a text that nowhere says what it stands for, and how many there are. A warning, no error."""

    spot: Spot
    count: int

    @property
    def why(self) -> str:
        many = f"{self.count} numbers have a ±" if self.count != 1 else "a number has a ±"
        return f"{many}, and nothing says what it is: sd, standard error or an interval"


@dataclass(frozen=True, slots=True)
class Audited:
    path: Path
    findings: tuple[tuple[Spot, Finding], ...]
    unlabelled: Unsaid | None = None

    @property
    def counts(self) -> dict[str, int]:
        return {state: sum(finding.state == state for _, finding in self.findings) for state in STATES}

    @property
    def wrong(self) -> bool:
        return bool(self.counts["stale"] or self.counts["disagrees"])


def bound_json(bound: Bound, *, dry_run: bool) -> dict[str, Any]:
    return {
        "file": str(bound.path),
        "sidecar": str(bound.sidecar),
        "dry_run": dry_run,
        "bound": [
            _spot_json(each.spot)
            | {"keys": list(each.binding.keys), "by": each.binding.by, "note": each.binding.note}
            | {"agrees": each.now or "no", "new": not each.old}
            for each in bound.fixed
        ],
        "ambiguous": [
            _spot_json(each.spot) | {"because": each.why, "candidates": list(each.candidates)}
            for each in bound.ambiguous
        ],
        "untraced": [_spot_json(each.spot) | {"because": each.why} for each in bound.untraced],
        "lost": [{"text": each.spot.text, "because": each.why} for each in bound.lost],
    }


def updated_json(updated: Sequence[Updated], *, dry_run: bool) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        "updated": [
            {"file": str(each.path)} | _spot_json(change.spot) | {"new": change.new, "keys": list(change.keys)}
            for each in updated
            for change in each.changes
        ],
        "unchanged": sum(each.unchanged for each in updated),
        "kept": [str(each.kept) for each in updated if each.kept],
        "look_at": [
            {"file": str(each.path)} | _spot_json(left.spot) | {"because": left.why}
            for each in updated
            for left in each.left
        ],
    }


def audited_json(audited: Audited) -> dict[str, Any]:
    return {
        "file": str(audited.path),
        "counts": audited.counts,
        "numbers": [
            _spot_json(spot)
            | {"state": each.state, "keys": list(each.keys), "should": each.should or None}
            | {"because": each.because, "bound": each.bound, "candidates": list(each.candidates)}
            for spot, each in audited.findings
        ],
        "unlabelled": _unsaid_json(audited.unlabelled) if audited.unlabelled else None,
    }


def _unsaid_json(unsaid: Unsaid) -> dict[str, Any]:
    return _spot_json(unsaid.spot) | {"count": unsaid.count, "because": unsaid.why}


def _spot_json(spot: Spot) -> dict[str, Any]:
    return {"line": spot.line, "column": spot.column, "text": spot.text}
