"""The figures of a run as bytes, by their names; the journal writes them beside itself and refers to them."""

from __future__ import annotations

from muster.report.journal.facts import Run


def pictures(run: Run, language: str) -> dict[str, bytes]:  # noqa: ARG001
    """`gate_timeline.png` -> its bytes. Nothing is drawn here yet: only pictures that the run left are referred to."""
    return {}
