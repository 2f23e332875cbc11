"""The proposer: what was tried comes in, and what the next round should try comes out, each with its reason.

A proposer says the same whenever it is asked the same: it may be killed at any instant, and whoever begins again must
not propose another round. What it draws by chance it draws from a seed and the number of the round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from muster.model.variant import LoopRecord
from muster.rules.proposal_rules import Ruling
from muster.rules.rank_variants import TriedVariant


@dataclass(frozen=True, slots=True)
class ProposerInput:
    """All that a proposer is told."""

    record: LoopRecord
    tried: Sequence[TriedVariant]  # every variant of every round
    parents: Sequence[TriedVariant]  # those that the next round builds on, by `keep:`
    by: str = ""  # the expression that ranks
    better: str = "higher"

    @property
    def round(self) -> int:
        """The one that is proposed."""
        return self.record.round + 1

    def named(self, name: str) -> TriedVariant:
        return next(each for each in self.tried if each.variant.name == name)


@dataclass(frozen=True, slots=True)
class Proposals:
    """`rulings`: of each parent what was considered, the best first. Configs tried before may be among them."""

    rulings: tuple[tuple[str, tuple[Ruling, ...]], ...] = ()
    why: tuple[str, ...] = ()  # why there are none, beyond what the rulings tell


class Proposer(Protocol):
    def propose(self, board: ProposerInput) -> Proposals:
        """Raises MusterError where it can't: nothing is proposed then, and nothing is decided."""

    def explain(self, board: ProposerInput, of: TriedVariant) -> tuple[Ruling, ...]:
        """What it makes of one variant, with the numbers."""


@dataclass
class FakeProposer:
    """Proposals that are held in memory."""

    proposals: Proposals
    asked: list[ProposerInput] = field(default_factory=list)

    def propose(self, board: ProposerInput) -> Proposals:
        self.asked.append(board)
        return self.proposals

    def explain(self, board: ProposerInput, of: TriedVariant) -> tuple[Ruling, ...]:  # noqa: ARG002
        return dict(self.proposals.rulings).get(of.variant.name, ())
