"""Texts of a decision without secrets, as they go into the log: what a run, a program or a person said.

Names, paths, hashes, tokens and what is executed are no texts, and stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from muster.domain.decision import Decision
from muster.ports.known_secrets import masking

TEXTS = frozenset(
    ("reason", "reasons", "note", "reading", "detail", "lines", "advice", "contributing", "text", "message", "messages",
     "because", "why", "trouble", "error", "told", "stopped", "retry_cause")
)  # fmt: skip
Mask = Callable[[str], str]


def masked_decisions(decisions: Sequence[Decision]) -> list[Decision]:
    mask = masking()
    return [masked_decision(each, mask) for each in decisions]


def masked_decision(decision: Decision, mask: Mask) -> Decision:
    texts = TEXTS | {"command"} if decision.kind == "finish" else TEXTS  # it is executed as the campaign has it
    reason, data = mask(decision.reason), _data(decision.data, texts, mask)
    if reason == decision.reason and data == decision.data:
        return decision
    return replace(decision, reason=reason, data=data)


def _data(value: Any, texts: frozenset[str], mask: Mask, *, told: bool = False) -> Any:
    if isinstance(value, str):
        return mask(value) if told else value
    if isinstance(value, Mapping):
        return {key: _data(each, texts, mask, told=key in texts) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([_data(each, texts, mask, told=told) for each in value])
    return value
