"""Sentences that claim something, and the chain that says what each of them rests on."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

from muster.app.campaign.stamp import ReportClaim
from muster.app.facts.report_analysis import ReportAnalysis
from muster.app.facts.report_facts import Measurement, ResultColumn
from muster.stats.red_flags import FlagPlace, RedFlag
from muster.text.catalogue import Catalogue
from muster.text.escape_markup import escape_markdown

_CLAIM_WIDTH = 90  # columns of a claim in the table of evidence
_LONG_WORD = 20


@dataclass(frozen=True, slots=True)
class ReportStatement:
    text: str  # plain; escaped by whoever writes it down
    cells: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


def statement_about_columns(
    analysis: ReportAnalysis, text: str, configs: Iterable[str], columns: Iterable[ResultColumn]
) -> ReportStatement:
    """It rests on these configs in these columns."""
    columns = tuple(dict.fromkeys(columns))
    cells = dict.fromkeys(cell for config in configs for column in columns for cell in analysis.cells(config, column))
    return ReportStatement(text, tuple(cells), tuple(column.name for column in columns))


def statement_about_all_cells(analysis: ReportAnalysis, text: str) -> ReportStatement:
    """It rests on everything that was measured."""
    return ReportStatement(text, tuple(each.cell for each in analysis.facts.measured))


def cells_behind_flags(analysis: ReportAnalysis, flags: Iterable[RedFlag]) -> tuple[str, ...]:
    """The cells that flags are about: those that are named, or those of the place where it was seen."""
    found: dict[str, None] = {}
    for flag in flags:
        place = flag.place
        seen = [each.cell for each in analysis.facts.measured if place and _lies_in_flag_place(each, place)]
        found.update(dict.fromkeys(flag.cells if place is None else seen))
    return tuple(found)


def _lies_in_flag_place(each: Measurement, place: FlagPlace) -> bool:
    asked = ((place.splits, each.head), (place.seeds, each.seed), (place.configs, each.config))
    return (not place.metric or place.metric in each.results) and all(not names or one in names for names, one in asked)


class EvidenceChain:
    """Numbers the claims of one text in the order in which they are made."""

    def __init__(self) -> None:
        self._claims: list[ReportClaim] = []

    @property
    def claims(self) -> tuple[ReportClaim, ...]:
        return tuple(self._claims)

    def mark(self, made: ReportStatement) -> str:
        """`[E3]`; one sentence has one mark, however often it is told."""
        for known in self._claims:
            if known.text == made.text:
                return f"[{known.id}]"
        self._claims.append(ReportClaim(f"E{len(self._claims) + 1}", made.text, made.cells, made.columns))
        return f"[{self._claims[-1].id}]"

    def tell(self, made: ReportStatement) -> str:
        """The sentence in Markdown, with its mark; what rests on no cell is no claim."""
        return f"{escape_markdown(made.text)} {self.mark(made)}" if made.cells else escape_markdown(made.text)

    def table(self, w: Catalogue, path: str) -> str:
        """What each claim rests on, and the command that walks on from there."""
        names = ("id", "claim", "cells", "columns", "command")
        lines = [
            f"| {' | '.join(w(f'evidence.{name}') for name in names)} |",
            "| --- | --- | ---: | --- | --- |",
            *(_evidence_table_row(claim, path) for claim in self._claims),
        ]
        return "\n".join([w("evidence.about"), "", *lines])


def _evidence_table_row(claim: ReportClaim, path: str) -> str:
    text = _cut_claim_text(claim.text)
    columns = escape_markdown(", ".join(claim.columns)) or "—"
    return (
        f"| {claim.id} | {escape_markdown(text)} | {len(claim.cells)} | {columns} | `muster trace {path} "
        f"--claim {claim.id}` |"
    )


def _cut_claim_text(text: str) -> str:
    """As much as fits, to the end of a word where the language has spaces."""
    widths = accumulate(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)
    room = sum(width <= _CLAIM_WIDTH for width in widths)
    if room == len(text):
        return text
    head, _, tail = text[:room].rpartition(" ")
    return f"{head.rstrip(' ,;:(') if head and len(tail) < _LONG_WORD else text[:room]}…"
