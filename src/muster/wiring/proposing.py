"""Which proposer a loop has, and the study that a search leaves for people to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from muster.acts.loop_settings import LoopSettings
from muster.acts.next_round import Next
from muster.acts.propose_rules import RuleProposer
from muster.domain.errors import MusterError
from muster.domain.variants import Variant
from muster.ports.proposer import Board, Proposer
from muster.ports.write_files import make_private_folder, write_atomically
from muster.rounds.texts import read_config

STUDY = Path("loop") / "optuna.log"  # in the campaign's `.muster`


def proposer_of(settings: LoopSettings, root: Path) -> Proposer:
    if settings.search:
        from muster.acts.propose_search import SearchProposer

        return SearchProposer(settings.search)
    if settings.entry:
        from muster.acts.entry_point import EntryPoint
        from muster.acts.propose_entry import EntryPointProposer

        return EntryPointProposer(EntryPoint(settings.entry, root))
    return RuleProposer(settings.rules, settings.default)


def write_study(state: Path, settings: LoopSettings, board: Board, found: Next) -> None:
    """For optuna-dashboard: what was tried, and the next round as running. Nobody here reads it."""
    from muster.acts.propose_search import SearchProposer
    from muster.acts.study import missing

    if settings.search is None or (found.stopped and missing(settings.search.sampler)[0]):
        return
    proposed: dict[str, list[tuple[Variant, Any]]] = {}
    for each in found.proposed:
        tree = read_config(each.text, each.kind).tree
        proposed.setdefault(each.variant.parent or "", []).append((each.variant, tree))
    path = state / STUDY
    try:
        make_private_folder(path.parent)
        write_atomically(path, SearchProposer(settings.search).journal(board, proposed))
    except OSError as error:
        raise MusterError(
            f"the study can't be written: {error.strerror}", where=str(path), hint="nothing was proposed; mend it"
        ) from None
