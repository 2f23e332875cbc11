"""What `muster docs` tells: values for the command line, and the objects of --json."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muster.app.documents.bind_numbers import BindingDecision
from muster.app.documents.number_bindings import Binding
from muster.app.documents.text_audit import NUMBER_STATES, NumberFinding


@dataclass(frozen=True, slots=True)
class NumberSpot:
    line: int
    column: int
    text: str


@dataclass(frozen=True, slots=True)
class BoundNumber:
    """A number that is bound."""

    spot: NumberSpot
    binding: Binding
    now: str  # "": no result agrees; now, earlier
    old: bool = False  # it was bound before


@dataclass(frozen=True, slots=True)
class AmbiguousNumber:
    """A number that stays unbound unless somebody says which it is."""

    spot: NumberSpot
    why: str
    candidates: tuple[str, ...]  # names of quantities
    decision: BindingDecision
    around: str  # its line


@dataclass(frozen=True, slots=True)
class MissedNumber:
    spot: NumberSpot
    why: str


@dataclass(frozen=True, slots=True)
class BindResult:
    """What `docs bind` found in one text."""

    path: Path
    sidecar: Path
    fixed: tuple[BoundNumber, ...]
    ambiguous: tuple[AmbiguousNumber, ...]
    untraced: tuple[MissedNumber, ...]
    lost: tuple[MissedNumber, ...]  # bound before, and not found again
    written: bool


@dataclass(frozen=True, slots=True)
class ChangedNumber:
    spot: NumberSpot
    new: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UpdateResult:
    path: Path
    changes: tuple[ChangedNumber, ...]
    unchanged: int
    diff: tuple[str, ...]
    kept: Path | None = None  # where the old version lies
    left: tuple[MissedNumber, ...] = ()  # what a person should look at


@dataclass(frozen=True, slots=True)
class SpreadWarning:
    """The first ± of a text that nowhere says what it stands for, and how many there are. A warning, no error."""

    spot: NumberSpot
    count: int

    @property
    def why(self) -> str:
        many = f"{self.count} numbers have a ±" if self.count != 1 else "a number has a ±"
        return f"{many}, and nothing says what it is: sd, standard error or an interval"


@dataclass(frozen=True, slots=True)
class AuditResult:
    path: Path
    findings: tuple[tuple[NumberSpot, NumberFinding], ...]
    unlabelled: SpreadWarning | None = None

    @property
    def counts(self) -> dict[str, int]:
        return {state: sum(finding.state == state for _, finding in self.findings) for state in NUMBER_STATES}

    @property
    def wrong(self) -> bool:
        return bool(self.counts["stale"] or self.counts["disagrees"])


def bind_result_as_json(bound: BindResult, *, dry_run: bool) -> dict[str, Any]:
    return {
        "file": str(bound.path),
        "sidecar": str(bound.sidecar),
        "dry_run": dry_run,
        "bound": [
            _number_spot_as_json(each.spot)
            | {"keys": list(each.binding.keys), "by": each.binding.by, "note": each.binding.note}
            | {"agrees": each.now or "no", "new": not each.old}
            for each in bound.fixed
        ],
        "ambiguous": [
            _number_spot_as_json(each.spot) | {"because": each.why, "candidates": list(each.candidates)}
            for each in bound.ambiguous
        ],
        "untraced": [_number_spot_as_json(each.spot) | {"because": each.why} for each in bound.untraced],
        "lost": [{"text": each.spot.text, "because": each.why} for each in bound.lost],
    }


def update_results_as_json(updated: Sequence[UpdateResult], *, dry_run: bool) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        "updated": [
            {"file": str(each.path)}
            | _number_spot_as_json(change.spot)
            | {"new": change.new, "keys": list(change.keys)}
            for each in updated
            for change in each.changes
        ],
        "unchanged": sum(each.unchanged for each in updated),
        "kept": [str(each.kept) for each in updated if each.kept],
        "look_at": [
            {"file": str(each.path)} | _number_spot_as_json(left.spot) | {"because": left.why}
            for each in updated
            for left in each.left
        ],
    }


def audit_result_as_json(audited: AuditResult) -> dict[str, Any]:
    return {
        "file": str(audited.path),
        "counts": audited.counts,
        "numbers": [
            _number_spot_as_json(spot)
            | {"state": each.state, "keys": list(each.keys), "should": each.should or None}
            | {"because": each.because, "bound": each.bound, "candidates": list(each.candidates)}
            for spot, each in audited.findings
        ],
        "unlabelled": _spread_warning_as_json(audited.unlabelled) if audited.unlabelled else None,
    }


def _spread_warning_as_json(unsaid: SpreadWarning) -> dict[str, Any]:
    return _number_spot_as_json(unsaid.spot) | {"count": unsaid.count, "because": unsaid.why}


def _number_spot_as_json(spot: NumberSpot) -> dict[str, Any]:
    return {"line": spot.line, "column": spot.column, "text": spot.text}
