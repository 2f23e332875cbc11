"""Sentences of a report, and what each of them rests on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a report and what it rests on: `muster trace` walks on from here."""

    id: str  # E1, as it stands in the text
    text: str
    cells: tuple[str, ...]
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Text:
    """A written report with its claims."""

    body: str
    claims: tuple[Claim, ...] = ()
