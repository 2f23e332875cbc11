"""Which proposer a loop has."""

from __future__ import annotations

from pathlib import Path

from muster.acts.loop_settings import LoopSettings
from muster.acts.propose_rules import RuleProposer
from muster.ports.proposer import Proposer


def proposer_of(settings: LoopSettings, root: Path) -> Proposer:  # noqa: ARG001
    return RuleProposer(settings.rules, settings.default)
