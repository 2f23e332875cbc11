"""A search space on a config: what fits, what is drawn, what is read again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.model.campaign import LoopSearch, SearchDimension
from muster.rules.config_paths import ONLY_WHAT_IS_THERE
from muster.rules.edit_config import edit_config_text
from muster.rules.search_space import (
    Dimension,
    FittedDimension,
    SpaceMisfit,
    count_space_points,
    digest_outside_space,
    edits_for_point,
    fit_space_to_configs,
    fit_writable_space,
    iterate_grid_points,
    locate_config_in_space,
    resolve_search_settings,
)

TREE: dict[str, Any] = {
    "opt": {"lr": 0.1, "warm": True},
    "batch": 32,
    "act": "relu",
    "layers": [{"p": 0.1}, {"p": 0.1}],
}


def knob(path: str = "batch", tree: Any = None, **more: Any) -> FittedDimension:
    return fit_space_to_configs([Dimension(path, **more)], TREE if tree is None else tree)[0]


def test_a_space_as_the_campaign_says_it() -> None:
    space = {"opt.lr": SearchDimension(1e-5, 1, log=True), "act": SearchDimension(values=("relu", "gelu"))}
    found = resolve_search_settings(LoopSearch(space, trials_per_round=3))
    assert (found.sampler, found.trials, found.seed) == ("tpe", 3, 0)
    assert found.space == (Dimension("opt.lr", 1e-5, 1, log=True), Dimension("act", values=("relu", "gelu")))


@pytest.mark.parametrize(
    ("path", "low", "high", "step", "whole"),
    [("batch", 8, 64, None, True), ("batch", 8, 64, 8, True), ("batch", 8.0, 64, None, False), ("batch", 8, 64, 0.5, False),
     ("opt.lr", 0, 1, None, False), ("opt.warm", 0, 1, None, False)],
)  # fmt: skip
def test_integers_are_drawn_where_the_config_has_one(
    path: str, low: float, high: float, step: Any, whole: bool
) -> None:
    assert knob(path, low=low, high=high, step=step).whole is whole


def test_one_base_with_a_fraction_is_enough_for_fractions() -> None:
    space = [Dimension("p", 0, 1)]
    assert fit_space_to_configs(space, {"p": 1})[0].whole
    assert not fit_space_to_configs(space, {"p": 1}, {"p": 0.5})[0].whole


def test_every_misfit_is_told_with_what_lies_near() -> None:
    space = [Dimension("optim.lr", 0, 1), Dimension("batch", 1, 2), Dimension("b*", 1, 2), Dimension("act.x", 1, 2)]
    with pytest.raises(SpaceMisfit) as caught:
        fit_space_to_configs(space, TREE)
    assert caught.value.mistakes == {
        "optim.lr": f"optim.lr matches nothing in the config; the nearest: opt.lr; {ONLY_WHAT_IS_THERE}",
        "b*": "batch sets batch, too",
        "act.x": "act.x leads nowhere: act is a single value, there is nothing below it",
    }


@pytest.mark.parametrize(
    ("dimension", "said"),
    [
        (Dimension("act", 0, 1), "act is a text, and can't be 0.0"), (Dimension("opt.warm", 0, 1), "true or false"),
        (Dimension("batch", values=("a", "b")), "batch is a number"), (Dimension("opt", 0, 1), "opt is a mapping"),
    ],
)  # fmt: skip
def test_what_can_not_be_written_is_told_before_it_is_drawn(dimension: Dimension, said: str) -> None:
    with pytest.raises(SpaceMisfit) as caught:
        fit_writable_space([dimension], json.dumps(TREE), "json", TREE)
    assert said in str(caught.value)


def test_where_a_config_stands() -> None:
    space = [Dimension("opt.lr", 0, 1), Dimension("layers[*].p", 0, 1), Dimension("act", values=("relu", "gelu"))]
    knobs = fit_writable_space(space, json.dumps(TREE), "json", TREE)
    assert locate_config_in_space(knobs, TREE) == ({"opt.lr": 0.1, "layers[*].p": 0.1, "act": "relu"}, "")
    assert locate_config_in_space(knobs, TREE | {"act": "tanh"}) == ({}, 'act is "tanh", outside the space')
    assert locate_config_in_space(knobs, TREE | {"opt": {"lr": 2}})[1] == "opt.lr is 2, outside the space"
    assert (
        locate_config_in_space(knobs, TREE | {"layers": [{"p": 0.1}, {"p": 0.2}]})[1]
        == "layers[*].p is null, outside the space"
    )


def test_truth_is_no_number() -> None:
    found = knob("opt.warm", values=(True, False))
    assert (found.read(False), found.read(1), found.read(0)) == (False, None, None)
    assert knob("batch", low=0, high=1).read(True) is None


def test_the_rest_is_what_the_space_does_not_touch() -> None:
    space = [Dimension("opt.lr", 0, 1), Dimension("gone", 0, 1)]
    assert digest_outside_space(space, TREE) == digest_outside_space(space, TREE | {"opt": {"lr": 0.7, "warm": True}})
    assert digest_outside_space(space, TREE) != digest_outside_space(space, TREE | {"batch": 33})
    assert TREE["opt"]["lr"] == 0.1, "it is left as it is"


def test_a_small_space_can_be_gone_through() -> None:
    knobs = fit_space_to_configs([Dimension("batch", 16, 64, step=16), Dimension("opt.lr", 0, 0.3, step=0.1)], TREE)
    assert count_space_points(knobs) == 16
    assert [point["opt.lr"] for point in iterate_grid_points(knobs)][:4] == [0.0, 0.1, 0.2, 0.3]
    assert len({json.dumps(point) for point in iterate_grid_points(knobs)}) == 16
    assert count_space_points(fit_space_to_configs([Dimension("opt.lr", 0, 1)], TREE)) is None


@given(st.floats(0, 1), st.floats(1e-9, 1e-3), st.integers(1, 1000), st.booleans())
def test_what_is_drawn_is_written_and_read_again(share: float, low: float, high: int, whole: bool) -> None:
    space = [Dimension("batch", 1, high + 1)] if whole else [Dimension("opt.lr", low, low + high)]
    knobs = fit_space_to_configs(space, TREE)
    at = knobs[0].tidy(knobs[0].dimension.low + share * (knobs[0].dimension.high - knobs[0].dimension.low))
    made = edit_config_text(json.dumps(TREE), "json", edits_for_point(knobs, {space[0].path: at}))
    assert locate_config_in_space(knobs, made.tree) == ({space[0].path: at}, "")
