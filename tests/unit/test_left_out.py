"""Seeds that are not there: which of them count, what they were lost to, and how often each config failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from scipy.stats import fisher_exact as by_scipy

from muster.app.campaign.campaign_digests import jobs_behind_results
from muster.app.campaign.campaign_status import ControllerStatus, build_status
from muster.app.facts.lost_cells import LostCells, find_lost_cells
from muster.app.facts.past_campaigns import BegunAttempt, CampaignSnapshot, PastCampaigns
from muster.engine.plan.retry import is_unrelated_death
from muster.model.attempt import Attempt, CellRecord, Outcome
from muster.model.campaign import Campaign
from muster.model.campaign_state import CampaignState, Intent
from muster.model.cell import list_campaign_cells
from muster.model.verdict import Cause, Evidence, VerdictState
from muster.spec import read_campaign
from muster.stats.flags_of_provenance import flag_losses
from muster.stats.red_flags import ConfigFailures
from muster.stats.samples import fisher_exact_p

TEXT = """\
muster: 1
campaign: c
axes: {config: [base, new], seed: [0, 1, 2, 3]}
jobs:
  train: {axes: [config, seed], command: a}
  eval: {axes: [config, seed], needs: [train], command: b, results: {score: {json: r.json, key: s}}}
decision: {primary: {metric: score, better: higher}, baseline: base}
"""
CUT = TEXT.replace("[0, 1, 2, 3]", "[0, 1, 2]")
EXCLUDED = TEXT.replace("eval: {", "eval: {exclude: [{config: new, seed: 3}], ").replace(
    "train: {", "train: {exclude: [{config: new, seed: 3}], "
)
DIVERGED, REBOOTED = Cause("non_finite"), Cause("host_reboot")
Ends = Mapping[str, Sequence[Cause | None]]  # cell -> how its attempts ended; None: DONE


def campaign(text: str) -> Campaign:
    return read_campaign(text, file="campaign.yaml", folder="/home/me/c").campaign


def attempts(cell: str, ends: Sequence[Cause | None]) -> tuple[Attempt, ...]:
    """Each by another definition. What was DONE and is not the last was redone."""
    outcomes = [Outcome(VerdictState.DONE if each is None else VerdictState.DEAD, cause=each) for each in ends]
    return tuple(
        Attempt(cell, n, f"t{n}", 1, (), f"h{n}-1", "", 0.0, "", outcome=outcome,
                superseded="odd" if outcome.cause is None and n < len(ends) else None)
        for n, outcome in enumerate(outcomes, 1)
    )  # fmt: skip


def found(then: str, now: str, ends: Ends, stepped: bool | None = True, given_up: str = "", **more: Any) -> LostCells:
    """All cells ran and are DONE, but for `ends`; then the file was changed."""
    before, after = campaign(then), campaign(now)
    declared = {cell.id for cell in list_campaign_cells(after)}
    cells = {}
    for at, cell in enumerate(list_campaign_cells(before)):
        made = attempts(cell.id, ends.get(cell.id, [None]))
        gone = cell.id not in declared
        cells[cell.id] = CellRecord(cell, at, not gone, attempts=made, given_up="no" if cell.id == given_up else None)
    begun = tuple(BegunAttempt(name, 1, "then") for name, record in cells.items() if record.attempts)
    state = CampaignState(after, "h", "", Intent(), 1, (), {**cells, **more.get("cells", {})})
    status = build_status(state, {}, ControllerStatus(False), wall=0.0, boot=0.0, boot_id="")
    past = PastCampaigns(begun, {"then": CampaignSnapshot(campaign(more.get("first", then)))}.get)
    return find_lost_cells(
        status, past, jobs_behind_results(after), lambda cell: cell.job, frozenset(), dict.fromkeys(cells, stepped)
    )


def kinds(out: LostCells) -> dict[str, tuple[str, str]]:
    return {each.cell: (each.kind, each.how) for each in out.lost}


def test_a_seed_that_died_stays_whether_it_is_excluded_or_cut() -> None:
    ends: Ends = {"train/new/3": [DIVERGED], "eval/new/3": []}
    assert kinds(found(TEXT, EXCLUDED, ends)) == {
        "train/new/3": ("failed", "excluded"),
        "eval/new/3": ("failed", "excluded"),
    }
    out = found(TEXT, CUT, ends)
    assert kinds(out) == {
        "eval/base/3": ("completed", "withdrawn"),
        "train/new/3": ("failed", "withdrawn"),
        "eval/new/3": ("failed", "withdrawn"),
    }
    told = {each.cell: each.reason for each in out.lost}
    assert told["eval/new/3"] == "it never started; train/new/3: it died of non_finite; withdrawn since"
    assert out.failures == (ConfigFailures("base", 0, 4), ConfigFailures("new", 1, 4, ("eval/new/3",)))


def test_a_machine_that_failed_is_no_failure_of_the_method() -> None:
    ends: Ends = {"train/new/3": [REBOOTED], "eval/new/3": []}
    out = found(TEXT, EXCLUDED, ends)
    assert {kind for kind, _ in kinds(out).values()} == {"unrelated"}
    assert [each.failed for each in out.failures] == [0, 0]
    both = found(TEXT, EXCLUDED, {**ends, "train/new/3": [DIVERGED, REBOOTED]})
    assert {kind for kind, _ in kinds(both).values()} == {"failed"}, (
        "the gravest of its deaths counts, by any definition"
    )


def test_a_result_that_was_seen_is_not_lost_to_a_machine() -> None:
    assert kinds(found(TEXT, EXCLUDED, {"eval/new/3": [None, REBOOTED]}))["eval/new/3"] == ("completed", "excluded")
    assert kinds(found(TEXT, EXCLUDED, {"eval/new/3": [None, DIVERGED]}))["eval/new/3"] == ("failed", "excluded")


LACKING = Evidence("result score", "proof", "score: r.json has no 's'", "fails")
SHORT = Evidence("steps", "proof", "step 7 of 100", "fails")


def unread(cell: str, *bad: Evidence) -> CellRecord:
    """Its command ended with exit 0, and its proof lacks these."""
    (at, own), *_ = [(at, own) for at, own in enumerate(list_campaign_cells(campaign(TEXT))) if own.id == cell]
    outcome = Outcome(VerdictState.DEAD, Cause("early_exit"), exit_code=0, evidence=bad)
    return CellRecord(own, at, attempts=(Attempt(cell, 1, "t", 1, (), "h-1", "", 0.0, "", outcome=outcome),))


def test_a_wrong_key_of_results_is_no_failure_of_the_method() -> None:
    every = [cell.id for cell in list_campaign_cells(campaign(TEXT)) if cell.job == "eval"]
    out = found(TEXT, TEXT, {}, cells={cell: unread(cell, LACKING) for cell in every})
    assert out.failures == (), "not one result was ever read: nothing is known of the method"
    short = found(TEXT, TEXT, {}, cells={cell: unread(cell, LACKING, SHORT) for cell in every})
    assert [each.failed for each in short.failures] == [4, 4], "these ended early, too"
    one = found(TEXT, TEXT, {}, cells={"eval/new/3": unread("eval/new/3", LACKING)})
    assert one.failures[1] == ConfigFailures("new", 1, 4, ("eval/new/3",)), "others show that the key is right"


def test_what_was_taken_out_is_told_with_its_values() -> None:
    done = attempts("eval/new/3", [None])[0]
    seen = replace(done, outcome=Outcome(VerdictState.DONE, results={"score": 0.125}))
    record = CellRecord(
        next(cell for cell in list_campaign_cells(campaign(TEXT)) if cell.id == "eval/new/3"),
        9,
        False,
        attempts=(seen,),
    )
    out = found(TEXT, EXCLUDED, {}, cells={"eval/new/3": record})
    (flag,) = flag_losses(out.lost, (), "base", ())
    assert flag.message == "1 cell was done and is taken out or lost again: eval/new/3 (score 0.125)"


def test_a_seed_that_was_given_up_and_what_rests_on_it() -> None:
    ends: Ends = {"train/new/3": [REBOOTED], "eval/new/3": []}
    out = found(TEXT, TEXT, ends, given_up="train/new/3")
    assert [(each.cell, each.kind, each.how) for each in out.settled] == [
        ("train/new/3", "unrelated", "given_up"),
        ("eval/new/3", "unrelated", "given_up"),
    ]
    assert not found(TEXT, TEXT, ends).settled, "it is still to be run again"


def test_what_was_declared_later_and_never_ran_is_not_counted() -> None:
    never: Ends = {name: [] for name in ("train/base/3", "eval/base/3", "train/new/3", "eval/new/3")}
    assert set(kinds(found(TEXT, CUT, never))) == set(never), "declared when the first run began"
    assert not found(TEXT, CUT, never, first=CUT).lost


def test_a_config_that_is_compared_no_more_leaves_no_hole() -> None:
    out = found(TEXT, TEXT.replace("[base, new]", "[base]"), {"eval/new/3": [DIVERGED]})
    assert (out.lost, out.dropped) == ((), ("eval/new/3", "eval/new/0", "eval/new/1", "eval/new/2")), "the failed first"


@pytest.mark.parametrize(
    ("kind", "detail", "stepped", "unrelated"),
    [
        ("host_reboot", "", True, True),
        ("disk_full", "", True, True),
        ("never_started", "", None, True),
        ("non_finite", "", False, False),
        ("early_exit", "", False, False),
        ("timeout", "", True, False),
        ("stalled", "", True, False),
        ("cuda_oom", "", True, False),
        ("cuda_oom", "", False, True),
        ("user_stop", "", True, False),
        ("user_stop", "", None, False),
        ("exception", "ModuleNotFoundError, train.py:3", None, True),
        ("exception", "ModuleNotFoundError, train.py:3", True, False),
        ("exception", "RuntimeError, train.py:3", None, False),
        ("exception", "RuntimeError, train.py:3", False, True),
        ("unknown", "", None, False),
    ],
)
def test_which_causes_have_to_do_with_the_outcome(
    kind: str, detail: str, stepped: bool | None, unrelated: bool
) -> None:
    assert is_unrelated_death(Outcome(VerdictState.DEAD, cause=Cause(kind, detail)), stepped) == unrelated


@pytest.mark.parametrize("table", [(4, 10, 0, 10), (0, 10, 4, 10), (3, 5, 1, 7), (5, 5, 0, 5), (0, 3, 0, 3)])
def test_fisher_as_scipy_has_it(table: tuple[int, int, int, int]) -> None:
    a, n, b, m = table
    assert fisher_exact_p(a, n, b, m) == pytest.approx(by_scipy([[a, n - a], [b, m - b]])[1])


def test_seeds_that_have_not_ended_are_in_no_rate() -> None:
    """new has not begun, and a machine took one seed of base: neither says anything about the method."""
    ends: dict[str, list[Cause | None]] = {f"{job}/new/{seed}": [] for job in ("train", "eval") for seed in range(4)}
    ends |= {"train/base/0": [REBOOTED], "eval/base/0": [], "train/base/1": [DIVERGED], "eval/base/1": []}
    out = found(TEXT, TEXT, ends)
    assert out.failures == (ConfigFailures("base", 1, 3, ("eval/base/1",)),)
    (flag,) = flag_losses((), out.failures, "base", ())
    assert flag.message.startswith("base failed on 1 of 3 seeds: ")


def test_failure_rates_are_compared_with_the_baseline() -> None:
    rates = [ConfigFailures("base", 2, 10), ConfigFailures("new", 0, 10), ConfigFailures("other", 3, 10)]
    assert [flag.message.partition(":")[0] for flag in flag_losses((), rates, "base", ())] == [
        "base failed on 2 of 10 seeds, new on none (Fisher exact p = 0.47)",
        "other failed on 3 of 10 seeds, base on 2 of 10 (Fisher exact p = 1)",
    ]
    assert not flag_losses((), [ConfigFailures("base", 0, 5), ConfigFailures("new", 0, 5)], "base", ())
    (alone,) = flag_losses((), [ConfigFailures("new", 1, 3)], "", ())
    assert alone.message == "new failed on 1 of 3 seeds: a mean over the survivors is too good"
    assert not alone.acceptable
