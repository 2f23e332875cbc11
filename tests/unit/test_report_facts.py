"""A campaign's state as the facts of a report: columns, what counts, what is missing, what was made how."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from muster.app.campaign.campaign_digests import jobs_behind_results
from muster.app.campaign.campaign_status import ControllerStatus, Status, build_status
from muster.app.facts.build_report_facts import ReportInputs, build_report_facts
from muster.app.facts.cell_provenance import find_cell_making
from muster.app.facts.report_analysis import clear_explained_losses, declared_seeds_of_config, find_red_flags
from muster.app.facts.report_facts import ResultColumn
from muster.model.attempt import Attempt, CellRecord, Outcome
from muster.model.campaign import AxisValue
from muster.model.campaign_state import CampaignState, Intent
from muster.model.cell import Cell, list_campaign_cells
from muster.model.errors import UsageError
from muster.model.provenance import CheckpointOrigin, MetricRange, ResultOrigins
from muster.model.verdict import VerdictState
from muster.spec import read_campaign
from muster.stats.red_flags import AcceptedFlag, FlagAcceptance

TEXT = """\
muster: 1
campaign: c
axes: {config: [base, new], seed: [0, 1], split: {id: {}, ood: {proxy: a proxy}}}
jobs:
  prepare: {axes: [seed], command: a}
  train: {axes: [config, seed], needs: [prepare], command: b, results: {risk: {json: r.json, key: risk}}}
  eval: {axes: [config, seed, split], needs: [train], command: c, results: {score: {json: r.json, key: score}}}
  plots: {axes: [], needs: [eval], command: d}
decision: {primary: {metric: score, split: ood, better: lower}, baseline: base, limit: {metric: risk, max: 2}}
"""


def attempt(cell: str, **results: float) -> Attempt:
    outcome = Outcome(VerdictState.DONE, started=100.0, ended=3700.0, duration_s=3600.0, results=results)
    return Attempt(cell, 1, f"token of {cell}", 1, (), "hash", "", 0.0, "", outcome=outcome)


def status(text: str = TEXT, done: Any = lambda _: {}) -> Status:
    """`done(cell)`: its results, or None where it is not done."""
    campaign = read_campaign(text, file="campaign.yaml", folder="/home/me/c").campaign
    cells = {}
    for at, cell in enumerate(list_campaign_cells(campaign)):
        results = done(cell)
        cells[cell.id] = CellRecord(cell, at, attempts=() if results is None else (attempt(cell.id, **results),))
    state = CampaignState(campaign, "h", "", Intent(), 1, (), cells)
    return build_status(state, {}, ControllerStatus(False), wall=0.0, boot=0.0, boot_id="")


def all_done(cell: Any) -> dict[str, float]:
    return {"train": {"risk": 1.0}, "eval": {"score": 2.0}}.get(cell.job, {})


def test_columns_heads_and_the_plan() -> None:
    facts = build_report_facts(status(done=all_done), ReportInputs({}))
    assert facts.columns[:2] == (ResultColumn("ood", "score"), ResultColumn("train", "risk"))
    assert set(facts.columns) == {
        ResultColumn("ood", "score"),
        ResultColumn("train", "risk"),
        ResultColumn("id", "score"),
    }
    assert facts.plan is not None
    assert (facts.plan.procedure.higher, facts.plan.procedure.limit, facts.plan.procedure.at_most) == (False, 2.0, True)
    assert facts.proxies == {"ood": "a proxy"}
    assert (facts.configs, facts.seeds) == (("base", "new"), ("0", "1"))


def test_a_note_makes_no_proxy_of_a_split() -> None:
    noted = TEXT.replace("id: {}", "id: {note: the rooms of the training}")
    facts = build_report_facts(status(noted, all_done), ReportInputs({}))
    assert facts.proxies == {"ood": "a proxy"}
    assert facts.split_notes == {"id": "the rooms of the training"}


def test_the_order_that_was_asked_for() -> None:
    asked = TEXT + "report: {columns: [id/score, train/risk]}\n"
    assert build_report_facts(status(asked, all_done), ReportInputs({})).columns == (
        ResultColumn("id", "score"),
        ResultColumn("train", "risk"),
    )


def test_what_counts_and_what_is_missing() -> None:
    def done(cell: Any) -> dict[str, float] | None:
        return None if cell.job == "plots" or cell.id.endswith(("new/1", "new/1/id", "new/1/ood")) else all_done(cell)

    facts = build_report_facts(status(done=done), ReportInputs({}))
    assert [each.cell for each in facts.missing] == ["train/new/1", "eval/new/1/id", "eval/new/1/ood"]
    assert (facts.k, facts.n, facts.mark) == (9, 12, "PARTIAL 9/12")
    assert jobs_behind_results(status().state.campaign) == {"prepare", "train", "eval"}


def test_all_is_evaluated_and_not_all_that_it_rests_on_is_there() -> None:
    facts = build_report_facts(
        status(done=lambda cell: None if cell.job == "prepare" else all_done(cell)), ReportInputs({})
    )
    assert [each.cell for each in facts.missing] == ["prepare/0", "prepare/1"]
    assert (facts.k, facts.n) == (12, 14)


def test_what_exclude_takes_out() -> None:
    text = TEXT.replace(
        "axes: [config, seed, split], needs", "axes: [config, seed, split], exclude: [{config: new, seed: 1}], needs"
    )
    facts = build_report_facts(status(text, all_done), ReportInputs({}))
    assert facts.excluded == (("new", "1", "id"), ("new", "1", "ood"))


def test_a_file_that_was_touched_since_is_held_against_the_record() -> None:
    touched = ResultOrigins(values={"score": 2.5}, rewritten=frozenset({"score"}))
    facts = build_report_facts(
        status(done=all_done), ReportInputs({"eval/base/0/id": touched, "train/base/0": ResultOrigins(values={})})
    )
    by_cell = {each.cell: each for each in facts.measured}
    assert by_cell["eval/base/0/id"].results == {"score": 2.0}
    assert by_cell["eval/base/0/id"].now == {"score": 2.5}
    assert by_cell["train/base/0"].now == {}
    assert by_cell["eval/base/0/ood"].now is None


def test_a_file_that_nobody_touched_is_read_as_declared_today() -> None:
    """The key of a result was fixed after its cells were done."""
    facts = build_report_facts(
        status(done=all_done), ReportInputs({"eval/base/0/id": ResultOrigins(values={"score": 2.5})})
    )
    by_cell = {each.cell: each for each in facts.measured}
    assert (by_cell["eval/base/0/id"].results, by_cell["eval/base/0/id"].now) == ({"score": 2.5}, None)


def test_a_done_cell_without_a_declared_result_is_missing() -> None:
    """It was declared after some cells were done."""

    def done(cell: Any) -> dict[str, float]:
        return {} if cell.id == "eval/base/0/id" else all_done(cell) | {"old": 1.0}

    facts = build_report_facts(status(done=done), ReportInputs({}))
    assert [each.cell for each in facts.missing] == ["eval/base/0/id"]
    assert "has no score" in facts.missing[0].reason
    assert (facts.k, facts.n) == (11, 12)
    assert all("old" not in each.results for each in facts.measured)


def test_what_is_no_longer_declared_is_told() -> None:
    found = status(done=all_done)
    gone = found.state.cells["eval/new/1/id"].cell
    seed = AxisValue("7", 7)
    cell = Cell(
        "eval/new/7/id", "eval", tuple((axis, seed if axis == "seed" else value) for axis, value in gone.values)
    )
    found.state.cells[cell.id] = CellRecord(cell, 99, declared=False, attempts=(attempt(cell.id, score=1.0),))
    facts = build_report_facts(found, ReportInputs({}))
    assert [(each.cell, each.state, each.reason) for each in facts.missing] == [
        ("eval/new/7/id", "WITHDRAWN", "it was DONE; withdrawn since")
    ]
    assert (facts.k, facts.n, facts.seeds, facts.gone_seeds) == (12, 13, ("0", "1", "7"), ("7",))
    assert declared_seeds_of_config(facts, "new", "id") == ("0", "1", "7")
    assert declared_seeds_of_config(facts, "base", "id") == ("0", "1")
    (flag,) = [flag for flag in find_red_flags(facts) if flag.code == "withdrawn"]
    word = AcceptedFlag("withdrawn", flag.cells, FlagAcceptance("me", "", "the disk was bad"), None, flag.parts)
    explained = clear_explained_losses(replace(facts, accepted_flags=(word,)))
    assert (facts.partial, explained.partial, explained.mark, explained.missing) == (True, False, "", facts.missing)


def test_a_split_that_is_called_like_a_job_and_two_jobs_with_splits() -> None:
    text = TEXT.replace("split: {id: {}, ood: {proxy: a proxy}}", "split: [train, ood]")
    heads = {each.head for each in build_report_facts(status(text, all_done), ReportInputs({})).measured}
    assert heads == {"train", "eval/train", "eval/ood"}
    two = TEXT.replace(
        "  plots:",
        "  hard: {axes: [config, seed, split], command: e, results: {score: {json: r.json, key: score}}}\n  plots:",
    )
    two = two.replace("split: ood, better", "split: ood, job: hard, better")
    facts = build_report_facts(
        status(two, lambda cell: {"score": 3.0} if cell.job == "hard" else all_done(cell)), ReportInputs({})
    )
    assert facts.plan is not None
    assert facts.plan.primary == ResultColumn("hard/ood", "score")
    assert {"eval/id", "hard/id"} <= {each.head for each in facts.measured}


def test_a_price_of_one_more_seed() -> None:
    facts = build_report_facts(status(done=all_done), ReportInputs({}, seed_price=7.0))
    assert facts.price is not None
    assert (facts.price.hours, facts.price.money) == (4.0, 7.0)  # to prepare, to train, to evaluate twice


def test_nothing_to_report() -> None:
    with pytest.raises(UsageError):
        build_report_facts(
            status("muster: 1\ncampaign: c\naxes: {seed: [0]}\njobs: {train: {axes: [seed], command: a}}\n"),
            ReportInputs({}),
        )


# -- how it was made


def made(tmp_path: Path, config: dict[str, Any], **origins: ResultOrigins) -> Any:
    (tmp_path / "config.json").write_text(json.dumps(config))
    found = status(done=all_done)
    records = {}
    for cell in found.cells:
        record = cell.record
        outcome = Outcome(VerdictState.DONE, ended=3700.0, output=str(tmp_path))
        records[record.cell.id] = CellRecord(
            record.cell,
            record.position,
            attempts=(Attempt(record.cell.id, 1, "t", 1, (), "", "", 0.0, "", outcome=outcome),),
        )
    named = {name.replace("__", "/"): each for name, each in origins.items()}
    return {each.cell: each for each in find_cell_making(found.state.campaign, records, named, {})}


def test_settings_label_and_steps_are_read_from_the_runs_own_config(tmp_path: Path) -> None:
    config = {
        "config": "new",
        "lr": 1,
        "batch": 2,
        "width": 3,
        "depth": 4,
        "name": "x",
        "logdir": "/home/me",
        "run": {"steps": 9},
    }
    found = made(tmp_path, config, train__base__0=ResultOrigins(), eval__base__0__id=ResultOrigins())
    train = found["train/base/0"]
    assert (train.label, train.steps, train.trained) == ("new", 9.0, True)
    assert train.settings is not None
    other = made(
        tmp_path,
        config | {"name": "y", "logdir": "/elsewhere"},
        train__base__0=ResultOrigins(),
        eval__base__0__id=ResultOrigins(),
    )
    assert other["train/base/0"].settings == train.settings
    third = made(tmp_path, config | {"lr": 5}, train__base__0=ResultOrigins(), eval__base__0__id=ResultOrigins())
    assert third["train/base/0"].settings != train.settings
    evaluation = found["eval/base/0/id"]
    assert (evaluation.settings, evaluation.trained) == (None, False)


def test_the_checkpoint_that_was_evaluated(tmp_path: Path) -> None:
    saved = CheckpointOrigin("/home/me/model", "aa", saved=3600.0, share=0.99)
    users = {"eval__base__0__id": ResultOrigins(evaluated="aa"), "eval__base__0__ood": ResultOrigins(evaluated="bb")}
    found = made(tmp_path, {}, train__base__0=ResultOrigins(checkpoint=saved), **users)
    assert found["train/base/0"].checkpoint == "aa"
    assert found["train/base/0"].another == ("eval/base/0/ood",)
    assert found["train/base/0"].written_after == ()
    later = CheckpointOrigin("/home/me/model", "aa", saved=9999.0)
    found = made(tmp_path, {}, train__base__0=ResultOrigins(checkpoint=later), eval__base__0__id=ResultOrigins())
    assert found["train/base/0"].written_after == ("eval/base/0/id",)


A, B, C, D = (letter * 40 for letter in "abcd")


@pytest.mark.parametrize(
    ("commits", "english", "chinese"),
    [
        ([A, A], A, A),
        ([None, None], "not recorded", "没有记录"),
        ([A, B, A], "2 commits: aaaaaaa and bbbbbbb", "2 个提交：aaaaaaa 和 bbbbbbb"),
        ([A, B, C, D], "4 commits: aaaaaaa, bbbbbbb, ccccccc and 1 more", None),
        ([A, None, None], f"{A} (known for 1 of 3 cells)", f"{A}（3 个单元中有 1 个已知）"),
        ([B, None, A], "2 commits: bbbbbbb and aaaaaaa (known for 2 of 3 cells)", None),
    ],
)
def test_the_code_is_named_where_it_is_known(commits: list[str | None], english: str, chinese: str | None) -> None:
    code = {f"eval/base/{at}/id": {"commit": each} if each else {} for at, each in enumerate(commits)}
    assert build_report_facts(status(done=all_done), ReportInputs({}, code=code)).code == english
    if chinese is not None:
        in_chinese = TEXT.replace("campaign: c", "campaign: c\nlanguage: zh")
        assert build_report_facts(status(in_chinese, all_done), ReportInputs({}, code=code)).code == chinese


def test_a_checkpoint_that_was_put_back_is_the_same(tmp_path: Path) -> None:
    later = CheckpointOrigin("/home/me/model", "aa", saved=9999.0)
    named = made(
        tmp_path, {}, train__base__0=ResultOrigins(checkpoint=later), eval__base__0__id=ResultOrigins(evaluated="aa")
    )
    assert named["train/base/0"].written_after == ()


# -- best and last


BEST = TEXT.replace("limit: {metric: risk, max: 2}}", "limit: {metric: risk, max: 2}, checkpoint: {best: score}}")


def flagged(text: str, **found: Any) -> list[tuple[str, tuple[str, ...]]]:
    flags = find_red_flags(build_report_facts(status(text, all_done), ReportInputs(**found)))
    return [(flag.code, flag.cells) for flag in flags if "best_" in flag.code]


def test_the_best_of_the_evaluations_on_the_way_is_the_last_one() -> None:
    origins = {
        "train/base/0": ResultOrigins(tested={"score": MetricRange(1.0, 9.0, lowest=9.0, highest=5.0)}),
        "train/base/1": ResultOrigins(tested={"score": MetricRange(1.0, 9.0, lowest=5.0, highest=9.0)}),
        "train/new/0": ResultOrigins(tested={"score": MetricRange(1.0, 9.0, lowest=None, highest=1.0)}),
        "train/new/1": ResultOrigins(tested={"other": MetricRange(1.0, 9.0, lowest=9.0, highest=9.0)}),
    }
    assert ("best_at_an_end", ("train/base/0",)) in flagged(BEST, origins=origins)  # lower is better
    assert [cells for code, cells in flagged(BEST, origins=origins) if code == "best_at_an_end"] == [("train/base/0",)]
    assert not flagged(TEXT, origins=origins)  # the last checkpoint is evaluated: nothing was chosen


def test_a_result_that_is_taken_at_the_best_row() -> None:
    series = "score: {jsonl: e.jsonl, key: score}, cost: {jsonl: e.jsonl, key: cost, reduce: {at: {best: score}}}"
    text = TEXT.replace("results: {score: {json: r.json, key: score}}", f"results: {{{series}}}")
    text = text.replace("limit: {metric: risk, max: 2}", "limit: {metric: cost, split: ood, max: 2}")
    origins = {
        "eval/new/0/ood": ResultOrigins(
            values={"score": 1.0, "cost": 1.0}, picked={"cost": MetricRange(1.0, 7.0, 1.0, 3.0)}
        ),
        "eval/new/1/ood": ResultOrigins(
            values={"score": 1.0, "cost": 1.0}, picked={"cost": MetricRange(1.0, 7.0, 3.0, 1.0)}
        ),
    }
    assert ("best_at_an_end", ("eval/new/0/ood",)) in flagged(text, origins=origins)
    assert ("best_beside_last", ()) in flagged(text, origins=origins)  # the score is that of the last row
    both = text.replace("key: score}, cost", "key: score, reduce: min}, cost")
    assert ("best_beside_last", ()) not in flagged(both, origins=origins)


def test_some_evaluated_the_best_checkpoint_and_others_the_last() -> None:
    cells = [f"eval/{config}/{seed}/{split}" for config in ("base", "new") for seed in "01" for split in ("id", "ood")]
    origins = dict.fromkeys(cells, ResultOrigins())
    mixed = {cell: ["/best.pt" if "new/1" in cell else "/checkpoints/last/model.pt"] for cell in cells}
    assert flagged(TEXT, origins=origins, named=mixed) == [("best_and_last", ("eval/new/1/id", "eval/new/1/ood"))]
    assert not flagged(TEXT, origins=origins, named={cell: ["/best.pt"] for cell in cells})
    unknown = {cell: ["/best.pt" if "new/1" in cell else "/model.pt"] for cell in cells}
    assert not flagged(TEXT, origins=origins, named=unknown)
    told = origins | {
        cells[0]: ResultOrigins(named="/home/me/last_runs/best_model.pt"),
        cells[1]: ResultOrigins(named="final.pt"),
    }
    assert flagged(TEXT, origins=told) == [("best_and_last", (cells[0],))]


def test_a_split_that_is_called_best_is_a_declaration() -> None:
    text = TEXT.replace("split: {id: {}, ood: {proxy: a proxy}}", "split: [best, last]").replace(
        "split: ood, better", "split: best, better"
    )
    cells = [
        f"eval/{config}/{seed}/{split}" for config in ("base", "new") for seed in "01" for split in ("best", "last")
    ]
    named = {cell: [f"/{cell.rpartition('/')[2]}.pt"] for cell in cells}
    assert not flagged(text, origins=dict.fromkeys(cells, ResultOrigins()), named=named)


def test_units_that_are_mixed_are_flagged() -> None:
    def done(cell: Any) -> dict[str, float]:
        percent = {"new/0/ood": 85.0, "new/1/ood": 0.875, "base/0/ood": 40.5}.get(cell.id.removeprefix("eval/"), 43.25)
        return {"success": percent} if cell.job == "eval" else all_done(cell)

    flags = find_red_flags(build_report_facts(status(TEXT.replace("score", "success"), done), ReportInputs({})))
    told = [(flag.level, flag.cells) for flag in flags if flag.code == "mixed_units"]
    assert told == [("ERROR", ("eval/new/1/ood", "eval/new/0/ood"))]
