"""A loop's variants as an axis: of its job, behind the job's own axes."""

from __future__ import annotations

from dataclasses import replace

from muster.engine.plan.cell_command import AttemptContext, cell_placeholder_values
from muster.model.campaign import Axis, AxisValue, Campaign, DeclaredLoop, Job
from muster.model.cell import list_campaign_cells
from muster.model.variant import LoopRecord, Variant, add_variants_to_campaign

MODE = Axis("mode", (AxisValue("x", "x"), AxisValue("y", "y")))
JOBS = (Job("train", ("mode",), ("train", "{config_file}")), Job("eval", ("variant",), ("eval",), needs=("train",)))
CAMPAIGN = Campaign("c", (MODE,), JOBS, loop=DeclaredLoop("train", ("a.json",)))
BASE = Variant("a", "/c/a.json", 1, "d1")
CHILD = Variant("a-1f2e3d", "/c/loop/a-1f2e3d.json", 2, "d2", "a", ("lr@mul=2",), "too slow", "rule 1")


def test_each_variant_is_a_value() -> None:
    found = list_campaign_cells(add_variants_to_campaign(CAMPAIGN, [BASE, CHILD]))
    assert [cell.id for cell in found] == [
        "train/x/a", "train/x/a-1f2e3d", "train/y/a", "train/y/a-1f2e3d", "eval/a", "eval/a-1f2e3d",
    ]  # fmt: skip
    assert (
        cell_placeholder_values(CAMPAIGN.jobs[0], found[1], AttemptContext(1, "/out"))["config_file"]
        == "/c/loop/a-1f2e3d.json"
    )
    assert found[1].value("variant").note == "too slow"


def test_repeats_are_seeds() -> None:
    looped = replace(CAMPAIGN, loop=DeclaredLoop("train", ("a.json",), repeats=2), jobs=(replace(JOBS[0], axes=()),))
    found = list_campaign_cells(add_variants_to_campaign(looped, [BASE]))
    assert [cell.id for cell in found] == ["train/a/0", "train/a/1"]
    assert [cell_placeholder_values(JOBS[0], cell, AttemptContext(1, "/out"))["seed"] for cell in found] == ["0", "1"]


def test_a_variant_that_nobody_repeats_has_the_seed_0() -> None:
    once = replace(CAMPAIGN, jobs=(replace(JOBS[0], axes=()),))
    (cell,) = list_campaign_cells(add_variants_to_campaign(once, [BASE]))
    assert cell_placeholder_values(JOBS[0], cell, AttemptContext(1, "/out"))["seed"] == "0"


def test_growing_twice_is_growing_once() -> None:
    repeated = replace(CAMPAIGN, loop=DeclaredLoop("train", ("a.json",), repeats=2))
    for campaign in (CAMPAIGN, repeated):
        once = add_variants_to_campaign(campaign, [BASE, CHILD])
        assert add_variants_to_campaign(add_variants_to_campaign(campaign, [BASE]), [BASE, CHILD]) == once
        assert add_variants_to_campaign(once, [BASE, CHILD]) == once


def test_no_loop_no_variants() -> None:
    plain = replace(CAMPAIGN, loop=None)
    assert add_variants_to_campaign(plain, [BASE]) is plain


def test_a_lineage_leads_from_the_base() -> None:
    grandchild = replace(CHILD, name="a-999999", parent="a-1f2e3d", round=3)
    record = LoopRecord((BASE, CHILD, grandchild), 3)
    assert [each.name for each in record.lineage("a-999999")] == ["a", "a-1f2e3d", "a-999999"]
    assert [each.name for each in record.of_round(2)] == ["a-1f2e3d"]
