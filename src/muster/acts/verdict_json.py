"""What `why` and `look` tell of a verdict in JSON: a contract."""

from __future__ import annotations

from typing import Any

from muster.domain.verdict import Rhythm, Verdict


def cadence_json(verdict: Verdict) -> dict[str, Any] | None:
    return {rhythm.signal: _rhythm(rhythm) for rhythm in verdict.rhythms} or None


def turns_json(verdict: Verdict, boot: float) -> dict[str, Any] | None:
    """When it would change if nothing happened."""
    if verdict.turns is None:
        return None
    return {"in_s": round(max(0.0, verdict.turns - boot), 1), "into": verdict.into}


def _rhythm(rhythm: Rhythm) -> dict[str, Any]:
    return {name: _rounded(getattr(rhythm, name)) for name in Rhythm.__slots__ if name != "signal"}


def _rounded(value: Any) -> Any:
    return round(value, 3) if isinstance(value, float) else value
