"""Seeds that were run again: how often, what they gave, and whether the method had failed on them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from muster.app.campaign.campaign_status import ControllerStatus, Status, build_status
from muster.app.facts.lost_cells import find_recovered_cells, find_redone_cells
from muster.model.attempt import Attempt, CellRecord, Outcome
from muster.model.campaign_state import CampaignState, Intent
from muster.model.cell import list_campaign_cells
from muster.model.verdict import Cause, VerdictState
from muster.spec import read_campaign
from muster.stats.flags_of_values import flag_declaration
from muster.stats.red_flags import DeclaredMetrics, RedoneCell

TEXT = """\
muster: 1
campaign: c
axes: {config: [base, new], seed: [0]}
jobs:
  eval: {axes: [config, seed], command: b, results: {score: {json: r.json, key: s}}}
decision: {primary: {metric: score, better: higher}, baseline: base}
"""
NEW = "eval/new/0"


def status(*told: tuple[str, float | None]) -> Status:
    """Of `new`: each attempt's definition and score; None: it diverged. All but the last one were redone."""
    campaign = read_campaign(TEXT, file="campaign.yaml", folder="/home/me/c").campaign
    cells = {cell.id: CellRecord(cell, at) for at, cell in enumerate(list_campaign_cells(campaign))}
    cells[NEW] = CellRecord(cells[NEW].cell, 1, attempts=tuple(_attempts(told)))
    state = CampaignState(campaign, "h", "", Intent(), 1, (), cells)
    return build_status(state, {}, ControllerStatus(False), wall=0.0, boot=0.0, boot_id="")


def _attempts(told: Sequence[tuple[str, float | None]]) -> list[Attempt]:
    found = []
    for n, (hash_, score) in enumerate(told, 1):
        if score is None:
            outcome, superseded = Outcome(VerdictState.DEAD, cause=Cause("non_finite")), None
        else:
            outcome = Outcome(VerdictState.DONE, results={"score": score})
            superseded = f"reason {n}" if n < len(told) else None
        found.append(Attempt(NEW, n, f"t{n}", 1, (), hash_, "", 0.0, "", outcome=outcome, superseded=superseded))
    return found


@pytest.mark.parametrize(
    ("attempts", "redone"),
    [
        ([("a-1", 1.0)], []),
        ([("a-1", 1.0), ("a-1", 2.0)], [RedoneCell(NEW, "reason 1", (1.0, 2.0))]),
        ([("a-1", 1.0), ("b-1", 2.0)], []),  # a new definition made it due
        ([("a-1", 1.0), ("b-1", 2.0), ("c-1", 3.0)], [RedoneCell(NEW, "reason 1; reason 2", (1.0, 2.0, 3.0))]),
    ],
)
def test_every_redo_counts(attempts: list[tuple[str, float | None]], redone: list[RedoneCell]) -> None:
    assert list(find_redone_cells(status(*attempts), "score")) == redone


def test_every_result_that_was_seen_is_told() -> None:
    redone = find_redone_cells(status(("a-1", 1.0), ("a-1", 0.5), ("a-1", 2.25)), "score")
    (flag,) = flag_declaration(DeclaredMetrics(redone=tuple(redone)), [])
    assert flag.message == "1 cell was run again after being DONE (eval/new/0: 1 -> 0.5 -> 2.25): reason 1; reason 2"


def test_a_seed_that_is_tried_until_it_does_not_diverge_is_told() -> None:
    assert list(find_recovered_cells(status(("a-1", None), ("a-1", 2.0)))) == [NEW]
    assert not list(find_recovered_cells(status(("a-1", None), ("b-1", 2.0)))), "another definition was tried"
    assert not list(find_recovered_cells(status(("a-1", None))))
    (flag,) = flag_declaration(DeclaredMetrics(recovered=(NEW,)), [])
    assert (flag.level, flag.code, flag.cells) == ("WARN", "recovered", (NEW,))
