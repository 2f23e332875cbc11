"""Rules as a proposer: each parent by itself, the rules that fire for it, else the default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from muster.ports.proposer import Board, Proposals
from muster.rounds.evaluating import Metrics
from muster.rounds.rules import Default, Rule, Ruling, rulings
from muster.rounds.tried import Tried


@dataclass(frozen=True, slots=True)
class RuleProposer:
    rules: tuple[Rule, ...]
    default: Default | None = None

    def propose(self, board: Board) -> Proposals:
        if not self.rules and not self.default:
            return Proposals(why=("the campaign has neither rules nor a default to propose anything by",))
        tried = {each.digest: each.name for each in board.record.variants}
        return Proposals(tuple((each.variant.name, self._rulings(board, each, tried)) for each in board.parents))

    def explain(self, board: Board, of: Tried) -> tuple[Ruling, ...]:
        """What each rule says about a run, with the numbers; as it said when its children were made."""
        others = [each for each in board.record.variants if each.parent != of.variant.name]
        return self._rulings(board, of, {each.digest: each.name for each in others})

    def _rulings(self, board: Board, of: Tried, tried: Mapping[str, str]) -> tuple[Ruling, ...]:
        every = {key for each in board.tried for run in each.runs for key in run.summaries}
        fired: dict[str, int] = {}
        for each in board.record.lineage(of.variant.name):
            fired[each.by] = fired.get(each.by, 0) + 1
        return tuple(rulings(self.rules, self.default, Metrics(of.summaries, every), of.text, of.kind, fired, tried))
