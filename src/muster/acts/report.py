"""`muster report`: what it made, as one object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muster.acts.accepted import flags_json
from muster.report.analysis import Analysis


def as_json(analysis: Analysis, reason: str, table: Sequence[Any], files: Sequence[str], documents: dict[str, Any]
            ) -> dict[str, Any]:  # fmt: skip
    """The object of `muster report --json`: a contract."""
    facts = analysis.facts
    return {
        "verdict": analysis.decision.verdict,
        "config": analysis.decision.config,
        "reason": reason,
        "k": facts.k,
        "n": facts.n,
        "missing": [each.cell for each in facts.missing],
        "flags": flags_json(analysis.flags),
        "table": list(table),
        "documents": documents,
        "files": list(files),
    }
