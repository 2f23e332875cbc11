"""The objects of `muster loop propose --json` and `loop explain --json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from muster.acts.next_round import Next
from muster.acts.tried import Tried
from muster.domain.variants import Variant
from muster.report.resumed import resumed_text
from muster.rounds.evaluating import as_json
from muster.rounds.rules import Ruling


def next_json(found: Next, variants: Sequence[Variant]) -> dict[str, Any]:
    return {
        "round": found.round,
        "stopped": found.stopped or None,
        "parents": list(found.parents),
        "proposed": [asdict(each) for each in variants],
        "rules": {name: [_ruling(each) for each in rulings] for name, rulings in found.rulings},
    }


def rulings_json(of: Tried, rulings: Sequence[Ruling]) -> dict[str, Any]:
    return {
        "variant": asdict(of.variant),
        "runs": [
            {
                "cell": run.cell,
                "verdict": run.verdict,
                "readable": run.readable,
                "because": run.unread or run.why or None,
                "history": resumed_text(run.resumed) if run.resumed else None,
            }
            for run in of.runs
        ],
        "rules": [_ruling(each) for each in rulings],
    }


def _ruling(each: Ruling) -> dict[str, Any]:
    return {
        "rule": each.rule,
        "reason": each.reason,
        "outcome": each.outcome,
        "because": each.because,
        "trace": as_json(each.trace) if each.trace else None,
        "edits": list(each.proposal.edits) if each.proposal else [],
    }
