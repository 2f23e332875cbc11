"""The red flags, one by one."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from muster.stats.coincidences import MetricScale
from muster.stats.flags_of_provenance import flag_making
from muster.stats.flags_of_values import flag_declaration, flag_values
from muster.stats.red_flags import CellMaking, DeclaredMetrics, FlagPlace, MeasuredCell, RedFlag
from muster.stats.samples import Sample

CONTINUOUS = [1.21, 2.05, 1.684, 0.9, 1.333]


def sample(config: str, values: list[float], split: str = "ood", metric: str = "score") -> Sample:
    return Sample(config, split, metric, {str(seed): value for seed, value in enumerate(values)})


def made(config: str, seed: int = 0, **facts: Any) -> CellMaking:
    return CellMaking(f"train/{config}/{seed}", config, str(seed), **facts)


def codes(flags: list[RedFlag]) -> list[tuple[str, str]]:
    return [(flag.level, flag.code) for flag in flags]


def test_a_clean_matrix_raises_none() -> None:
    samples = [sample("a", CONTINUOUS), sample("b", [v + 0.11 * i for i, v in enumerate(CONTINUOUS)])]
    cells = [MeasuredCell(f"eval/{c}/{s}/ood", c, str(s), "ood", {"score": 1.0 + s}) for c in "ab" for s in range(5)]
    assert flag_values(samples, cells) == []
    facts = {
        "commit": "c",
        "dirty": "",
        "steps": 100.0,
        "episodes": 20,
        "best_step": 5.0,
        "eval_steps": (1.0, 5.0, 9.0),
    }
    assert (
        flag_making(
            [made("a", checkpoint="1", settings="x", **facts), made("b", checkpoint="2", settings="y", **facts)]
        )
        == []
    )
    assert flag_declaration(DeclaredMetrics(primary="score", cost="cost"), samples) == []


def test_the_same_values_in_three_configs() -> None:
    """The reference's own: 1.684±0.741, three times."""
    (flag,) = flag_values([sample("a", CONTINUOUS), sample("b", CONTINUOUS), sample("c", CONTINUOUS)], [])
    assert (flag.level, flag.code, flag.cells) == ("ERROR", "same_values", ("a", "b", "c"))
    assert "ood/score" in flag.message


def test_the_same_mean_and_sd_in_another_order() -> None:
    (flag,) = flag_values([sample("a", CONTINUOUS), sample("b", CONTINUOUS[::-1])], [])
    assert (flag.level, flag.code) == ("ERROR", "same_values")
    assert "mean and sd" in flag.message


@pytest.mark.parametrize("failed", [0.1, 0.0])
def test_a_seed_that_failed_makes_no_mean_and_sd_remarkable(failed: float) -> None:
    """It makes the sd so large that all others agree to a thousandth of it."""
    rows = (
        [0.9512, 0.9498, 0.9523, 0.9505],
        [0.9507, 0.9531, 0.9489, 0.9513],
        [0.9519, 0.9501, 0.9494, 0.9525],
    )
    assert not flag_values([sample(name, [*row, failed]) for name, row in zip("abc", rows, strict=True)], [])
    assert not flag_values([sample(name, [*row, failed]) for name, row in zip("ab", rows, strict=False)], [])


def test_one_seed_of_five_that_solves_a_task_solves_it_about_as_well_everywhere() -> None:
    assert not flag_values(
        [sample("a", [0.0] * 4 + [0.9501976144]), sample("b", [0.0] * 2 + [0.9498008407] + [0.0] * 2)], []
    )


@pytest.mark.parametrize("seeds", [5, 10])
@pytest.mark.parametrize("sd", [0.001, 0.0025, 0.005])
def test_runs_that_find_one_of_two_solutions_meet_as_often_as_they_scatter_inside_of_these(
    seeds: int, sd: float
) -> None:
    rng = np.random.default_rng(seeds)
    for _ in range(20):
        found = np.round(rng.choice([0.5, 0.9], (4, seeds)) + rng.normal(0, sd, (4, seeds)), 3)
        flags = flag_values([sample(f"c{at}", row.tolist()) for at, row in enumerate(found)], [])
        assert all(flag.level == "WARN" for flag in flags)


def test_a_seed_without_an_effect_beside_one_that_failed_is_no_second_solution() -> None:
    rows = ([0.5012, 0.5012, 0.9034, 0.9034, 0.9034], [0.5561, 0.6143, 0.7318, 0.8102, 0.8823])
    assert ("ERROR", "same_seeds") in codes(
        flag_values([sample(name, row) for name, row in zip("ab", rows, strict=True)], [])
    )


@pytest.mark.parametrize("last", [[0, 1, 2, 3, 4], [1, 0, 2, 3, 4], [4, 1, 2, 3, 0]])
def test_runs_that_stay_on_a_plateau_agree_there_without_being_copies(last: list[int]) -> None:
    """One seed of five gets off it, and reaches the same in two configs: that is one coincidence."""
    row = [-200.0, -200.0, -200.0, -200.0, -112.0]
    flags = flag_values([sample("a", row), sample("b", [row[at] for at in last])], [])
    assert all(flag.level == "WARN" for flag in flags)
    exact, other = [*row[:4], -112.3817264512], [-131.2219874183, -97.4120938745, -200.0, -105.8830198273, -200.0]
    copied = [exact[at] for at in last]
    flags = flag_values([sample("a", exact), sample("b", copied), sample("c", other)], [])
    assert ("ERROR", "same_values") in codes(flags)


@pytest.mark.parametrize("values", [[0.0] * 5, [1.0] * 5, [3.0, 4.0, 3.0, 5.0, 9.0]])
def test_counts_and_saturated_rates_may_agree(values: list[float]) -> None:
    flags = flag_values([sample("a", values), sample("b", values)], [])
    assert flags
    assert {flag.level for flag in flags} == {"WARN"}


PRECISE = 1.5378213046912


@pytest.mark.parametrize(
    ("values", "told"),
    [([PRECISE] * 5, "all seeds"), ([PRECISE, 1.7021931177, PRECISE, 2.2117312345, 9.1123412341], "seeds 0 and 2")],
)
def test_seeds_that_agree_in_full_precision(values: list[float], told: str) -> None:
    (flag,) = flag_values([sample("a", values)], [])
    assert (flag.level, flag.code) == ("ERROR", "same_seeds")
    assert told in flag.message


@pytest.mark.parametrize("values", [[1.5, 1.7, 1.5, 2.2, 9.1], [91.3, 91.3, 91.2, 91.5, 91.4], [964.0, 967.0, 964.0]])
def test_seeds_that_meet_on_a_coarse_lattice_are_not_worth_a_word(values: list[float]) -> None:
    assert flag_values([sample("a", values)], []) == []


def test_seeds_that_rounding_brings_together_are_not_worth_an_error() -> None:
    """Rounded to more than they scatter by: where one is a step away the others are no copies."""
    rows = ([91.3] * 5, [91.9, 92.0, 92.0, 92.0, 92.0], [90.0, 90.0, 89.9, 90.0, 90.0], [95.1] + [95.0] * 4)
    flags = flag_values([sample(name, list(row)) for name, row in zip("abcd", rows, strict=True)], [])
    assert set(codes(flags)) <= {("WARN", "same_seeds")}
    apart = ([91.3] * 5, [71.9, 92.0, 92.0, 92.0, 92.0], [90.0, 90.0, 60.4, 90.0, 90.0], [80.1] + [95.0] * 4)
    flags = flag_values([sample(name, list(row)) for name, row in zip("abcd", apart, strict=True)], [])
    assert ("ERROR", "same_seeds") in codes(flags)


def test_all_seeds_the_same_is_told_and_accuses_nobody_where_chance_is_not_excluded() -> None:
    (flag,) = flag_values([sample("a", [1.5] * 5)], [])
    assert (flag.level, flag.code) == ("WARN", "same_seeds")


def test_seeds_at_a_bound_are_a_warning_declared_or_not() -> None:
    """Saturation: 1000 in every episode is no accident, where another config varies in full precision."""
    full = sample("a", [1000.0] * 5)
    other = sample("b", [812.7316511, 900.1275433, 731.9921233, 655.1237711, 990.5500012])
    (flag,) = flag_values([full, other], [])
    assert (flag.level, flag.code) == ("WARN", "same_seeds")
    assert "bound" in flag.message
    stuck = sample("a", [0.2513] * 5)
    (flag,) = flag_values([stuck, sample("b", [0.71, 0.6012, 0.5514, 0.8991, 0.7777])], [])
    assert flag.level == "ERROR"
    (flag,) = flag_values(
        [stuck, sample("b", [0.71, 0.6012, 0.5514, 0.8991, 0.7777])], [], {"score": MetricScale(low=0.2513)}
    )
    assert flag.level == "WARN"


def test_a_declared_grain_is_taken_as_it_is() -> None:
    tied = sample("a", [0.9512, 0.9512, 0.9512, 0.9512, 0.9611])
    other = sample("b", [0.9401, 0.9711, 0.9533, 0.9688, 0.9207])
    assert ("ERROR", "same_seeds") in codes(flag_values([tied, other], [], {"score": MetricScale(grain=1e-9)}))
    assert codes(flag_values([tied, other], [], {"score": MetricScale(grain=0.01)})) == []


def test_a_row_that_equals_another_in_full_precision() -> None:
    rows = {
        ("a", "0"): (0.95, 0.21374),
        ("a", "1"): (0.94, 0.2211893),
        ("b", "0"): (0.93, 0.198271),
        ("b", "1"): (0.95, 0.21374),
    }
    cells = [
        MeasuredCell(f"eval/{c}/{s}", c, s, "id", {"acc": acc, "loss": loss}) for (c, s), (acc, loss) in rows.items()
    ]
    samples = [
        Sample(c, "id", metric, {s: rows[c, s][at] for s in "01"})
        for at, metric in enumerate(("acc", "loss"))
        for c in "ab"
    ]
    (flag,) = flag_values(samples, cells)
    assert (flag.level, flag.code, flag.cells) == ("ERROR", "same_row", ("eval/a/0", "eval/b/1"))
    coarse = [replace(each, values={"acc": each.values["acc"]}) for each in cells]
    assert flag_values([s for s in samples if s.metric == "acc"], coarse) == []


def test_one_curve_with_other_weights_is_a_warning() -> None:
    """PPO and PPOLag log the same while the multiplier is 0."""
    (flag,) = flag_making([made("a", curve="x", checkpoint="1"), made("b", curve="x", checkpoint="2")])
    assert (flag.level, flag.code) == ("WARN", "one_curve")
    assert "their checkpoints differ" in flag.message


def test_one_result_file_under_two_cells() -> None:
    (flag,) = flag_making([made("a", result="x"), made("b", result="x")])
    assert (flag.level, flag.code, flag.cells) == ("ERROR", "one_result", ("train/a/0", "train/b/0"))


def test_a_split_that_equals_another() -> None:
    flags = flag_values([sample("a", CONTINUOUS, "id"), sample("a", CONTINUOUS, "ood")], [])
    assert codes(flags) == [("WARN", "same_splits")]


def test_numbers_that_are_none_and_cells_that_are_twice() -> None:
    cells = [
        MeasuredCell("eval/a/0", "a", "0", "", {"score": None}),
        MeasuredCell("eval/a/1", "a", "1", "", {"score": 1e200}),
        MeasuredCell("old/a/1", "a", "1", "", {"score": 2.0}),
    ]
    assert codes(flag_values([], cells)) == [("ERROR", "not_finite")] * 2 + [("ERROR", "duplicated_cell")]


@pytest.mark.parametrize(
    ("facts", "level", "code"),
    [
        ([{"checkpoint": "x"}, {"checkpoint": "x"}], "ERROR", "one_checkpoint"),
        ([{"curve": "x"}, {"curve": "x"}], "ERROR", "one_curve"),
        ([{"saved_early": True, "saved_share": 0.004}, {}], "ERROR", "early_checkpoint"),
        ([{"steps": 100.0}, {"steps": 200.0}], "ERROR", "mixed_steps"),
        ([{"settings": "x"}, {"settings": "x"}], "ERROR", "same_settings"),
        ([{"label": "b"}, {}], "ERROR", "label_contradicts"),
        ([{"commit": "1"}, {"commit": "2"}], "WARN", "mixed_commits"),
        ([{"dirty": ""}, {"dirty": "2"}], "WARN", "mixed_code"),
        ([{"episodes": 20}, {"episodes": 30}], "WARN", "mixed_episodes"),
        ([{"episodes": 3}, {}], "WARN", "few_episodes"),
        ([{"best_step": 1.0, "eval_steps": (1.0, 2.0)}, {}], "WARN", "best_at_an_end"),
        ([{"best_step": 2.0, "eval_steps": (1.0, 2.0)}, {}], "WARN", "best_at_an_end"),
        ([{"called": "best"}, {"called": "last"}], "WARN", "best_and_last"),
    ],
)
def test_how_they_were_made(facts: list[dict[str, Any]], level: str, code: str) -> None:
    (flag,) = flag_making([made(name, **each) for name, each in zip("ac", facts, strict=True)])
    assert (flag.level, flag.code) == (level, code)
    assert "train/a/0" in flag.cells


def test_one_checkpoint_on_two_splits_is_as_it_should_be() -> None:
    assert flag_making([made("a", checkpoint="x"), made("a", checkpoint="x")]) == []


def test_what_the_declaration_leaves_open() -> None:
    samples = [sample("a", [0.0] * 3, metric="cost")]
    declared = DeclaredMetrics(
        "best", "score", "score", "cost", proxies={"ood": ""}, train_metrics=frozenset({"score"})
    )
    found = {flag.code for flag in flag_declaration(declared, samples)}
    assert found == {"best_on_reported", "cost_at_best", "train_metric", "proxy_undeclared", "cost_zero"}


# -- what the files say today, and which checkpoint was evaluated


def test_a_result_file_that_was_changed_or_lost_after_its_cell_ended() -> None:
    kept = MeasuredCell("eval/a/0", "a", "0", "id", {"score": 1.5}, {"score": 1.5})
    changed = MeasuredCell("eval/a/1", "a", "1", "id", {"score": 1.5}, {"score": 1.6})
    lost = MeasuredCell("eval/a/2", "a", "2", "id", {"score": 1.5}, {})
    found = flag_values([], [kept, changed, lost])
    assert [(flag.level, flag.code, flag.cells) for flag in found] == [
        ("ERROR", "changed_result", ("eval/a/1",)),
        ("ERROR", "lost_result", ("eval/a/2",)),
    ]
    assert "score 1.5 -> 1.6" in found[0].message


def test_another_checkpoint_than_the_one_that_was_evaluated() -> None:
    made = [
        CellMaking("train/a/0", "a", "0", another=("eval/a/0",)),
        CellMaking("train/a/1", "a", "1", written_after=("eval/a/1",)),
        CellMaking("train/a/2", "a", "2"),
    ]
    assert [(flag.level, flag.code, flag.cells) for flag in flag_making(made)] == [
        ("ERROR", "other_checkpoint", ("eval/a/0",)),
        ("ERROR", "checkpoint_changed", ("eval/a/1",)),
    ]


def test_a_decision_that_was_changed_after_results_had_been_seen() -> None:
    found = flag_declaration(DeclaredMetrics(changed_at=16), [])
    assert [(flag.level, flag.code) for flag in found] == [("WARN", "decision_changed")]
    assert "16 cells" in found[0].message


def test_means_of_a_few_episodes_may_meet_within_a_config_but_not_for_every_seed_of_three() -> None:
    """48 episodes of counted costs: multiples of 1/48 in single precision, as the example has them."""
    values = {"0": 1.8958333730697632, "1": 2.0208332538604736, "2": 2.125, "3": 2.0208332538604736}
    a = Sample("a", "ood", "cost", values, 48)
    assert not flag_values([a], [])  # with this spread two of four seeds meet in every second campaign
    wide = Sample("a", "ood", "cost", {"0": 1.5, "1": 200.75, "2": 1.5}, 48)
    assert [(flag.level, flag.code) for flag in flag_values([wide], [])] == [("WARN", "same_seeds")]
    assert not flag_values([Sample("a", "ood", "cost", values)], [])  # the lattice shows by itself
    b, c = (Sample(name, "ood", "cost", values, 48) for name in "bc")
    assert codes(flag_values([a, b], [])) == [("WARN", "same_values")]
    assert codes(flag_values([a, b, c], [])) == [("ERROR", "same_values")]
    twins = [Sample(name, "ood", "rate", {"0": 0.5, "1": 1.0, "2": 0.0}, 2) for name in ("a", "b")]
    assert [flag.level for flag in flag_values(twins, []) if flag.code == "same_values"] == ["WARN"]


def test_all_seeds_the_same_fraction_of_few_may_be_chance_of_many_not() -> None:
    stuck = Sample("a", "id", "score", dict.fromkeys("01234", 0.375), 8)
    assert codes(flag_values([stuck], [])) == [("WARN", "same_seeds")]
    others = [
        Sample(c, "id", "score", dict.fromkeys("01234", v))
        for c, v in zip("abcd", (0.9512, 0.9433, 0.9471, 0.9397), strict=True)
    ]
    assert set(codes(flag_values(others, []))) == {("ERROR", "same_seeds")}


# -- best beside last, and units


def test_a_score_at_the_best_step_beside_a_cost_at_the_last_one() -> None:
    (flag,) = flag_declaration(DeclaredMetrics(picked={"score": "best", "cost": "last"}), [])
    assert (flag.level, flag.code) == ("WARN", "best_beside_last")
    assert flag.message == "score is that of the best step, cost that of the last one"
    assert flag_declaration(DeclaredMetrics(picked={"score": "best", "cost": "best"}), []) == []


def rates(*values: float, config: str = "a", metric: str = "success_rate", episodes: int = 1) -> list[MeasuredCell]:
    return [
        MeasuredCell(f"eval/{config}/{seed}", config, str(seed), "ood", {metric: value}, episodes=episodes)
        for seed, value in enumerate(values)
    ]


def units(cells: list[MeasuredCell]) -> list[tuple[str, tuple[str, ...]]]:
    return [(flag.level, flag.cells) for flag in flag_values([], cells) if flag.code == "mixed_units"]


def test_a_rate_in_percent_beside_one_in_parts_of_1() -> None:
    assert units(rates(87.5, 91.0, 0.89, 85.0)) == [("ERROR", ("eval/a/2",))]
    assert units(rates(0.875, 0.91, 88.0, metric="eval/accuracy")) == [("ERROR", ("eval/a/2",))]
    (flag,) = flag_values([], rates(87.5, 91.0, 0.89))
    assert (
        flag.message
        == "ood/success_rate: mixed units: cells in parts of 1: 1, such as 0.89; in percent: 2, such as 87.5"
    )


def test_configs_a_hundred_times_apart_may_be_so() -> None:
    assert units([*rates(87.5, 91.0, 88.0), *rates(0.89, 0.9, config="b")]) == [("WARN", ("eval/b/0", "eval/b/1"))]
    assert units([*rates(87.5, 91.0), *rates(0.4, 0.5, config="b")]) == []


@pytest.mark.parametrize(
    ("values", "facts"),
    [
        ([0.87, 0.91, 1.0, 0.0], {}),
        ([87.0, 0.0, 1.0, 91.0], {}),  # one percent, and none
        ([87.0, 0.5, 91.0], {}),  # half a percent: that seed did not learn
        ([45.0, 0.5, 50.0], {"episodes": 200}),  # one of 200 episodes is half a percent
        ([187.0, 0.87, 91.0], {}),  # no rate at all
        ([87.0, 0.89, 91.0], {"metric": "cost"}),  # an outlier, perhaps
        ([-0.5, 0.87, 87.0], {"metric": "return"}),
    ],
)
def test_what_may_be_so_by_nature_is_not_called_mixed(values: list[float], facts: dict[str, Any]) -> None:
    assert units(rates(*values, **facts)) == []


def test_whatever_it_is_called_two_on_either_side_are_no_chance() -> None:
    assert units(rates(0.87, 0.9, 0.85, 88.0, 91.0, metric="score")) == [("ERROR", ("eval/a/3", "eval/a/4"))]


def test_a_flag_says_where_it_was_seen() -> None:
    (flag,) = flag_values([sample("a", CONTINUOUS), sample("b", CONTINUOUS)], [])
    assert flag.place == FlagPlace(("ood",), "score", (), ("a", "b"))
    (flag,) = flag_values([sample("a", [PRECISE, 1.7, PRECISE])], [])
    assert flag.place == FlagPlace(("ood",), "score", ("0", "2"), ("a",))
    (flag,) = flag_values([sample("a", CONTINUOUS, "id"), sample("a", CONTINUOUS, "ood")], [])
    assert flag.place == FlagPlace(("id", "ood"), "score", (), ("a",))
