"""Parts of the JSON that `status`, `why` and `look` share: the cadence of a signal, and a change of a verdict. A
public contract.
"""

from __future__ import annotations

from typing import Any

from muster.model.verdict import SignalRhythm, Verdict


def cadence_as_json(verdict: Verdict) -> dict[str, Any] | None:
    return {rhythm.signal: _rhythm_as_json(rhythm) for rhythm in verdict.rhythms} or None


def verdict_change_as_json(verdict: Verdict, boot: float) -> dict[str, Any] | None:
    """When it would change if nothing happened."""
    if verdict.turns is None:
        return None
    return {"in_s": round(max(0.0, verdict.turns - boot), 1), "into": verdict.into}


def _rhythm_as_json(rhythm: SignalRhythm) -> dict[str, Any]:
    return {name: _round_if_float(getattr(rhythm, name)) for name in SignalRhythm.__slots__ if name != "signal"}


def _round_if_float(value: Any) -> Any:
    return round(value, 3) if isinstance(value, float) else value
