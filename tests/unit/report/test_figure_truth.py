"""What is drawn is what was measured: means, bands, intervals, limits, squares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from figure_facts import CONFIGS, LIMIT, SEEDS, facts

from muster.app.facts.drawing.figure_style import with_bundled_fonts_only
from muster.app.facts.report_analysis import analyse_facts
from muster.app.facts.report_facts import LearningCurve, ReportFacts
from muster.app.report.figures.figure_data import (
    MOST_MEAN_POINTS,
    mean_curve,
    seed_curves_of_config,
    steps_and_values_of_curve,
)
from muster.stats.samples import Sample

with with_bundled_fonts_only():
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection, PolyCollection

    from muster.app.facts.drawing.figure_page import Picture, apply_figure_style
    from muster.app.facts.drawing.figure_style import BLUE, WARNING_COLOUR
    from muster.app.report.figures.draw_all import report_pictures


def curve(seed: str, steps: tuple[float, ...], values: tuple[float, ...], config: str = "a") -> LearningCurve:
    return LearningCurve(f"train/{config}/{seed}", config, seed, "score", "score", steps, values)


def pictures(found: ReportFacts) -> dict[str, Picture]:
    with apply_figure_style():
        return {picture.name: picture for picture in report_pictures(analyse_facts(found))}


def test_a_mean_is_taken_only_where_every_seed_has_values() -> None:
    seeds = seed_curves_of_config(
        "a",
        [curve("0", (0, 10, 20), (0, 10, 20)), curve("1", (5, 15, 40), (5, 15, 40)), curve("2", (0, 30), (0, 30))],
    )
    assert seeds.mean is not None
    assert (seeds.mean.steps[0], seeds.mean.steps[-1]) == (5, 20)
    assert seeds.mean.mean == pytest.approx(seeds.mean.steps)  # all three lie on the diagonal
    assert seeds.mean.half == pytest.approx(np.zeros(len(seeds.mean.steps)), abs=1e-9)


def test_the_band_is_the_interval_of_a_sample_and_needs_three_seeds() -> None:
    values = (1.0, 2.0, 6.0)
    lines = [curve(str(seed), (0, 1), (value, value)) for seed, value in enumerate(values)]
    three, two = (
        mean_curve([steps_and_values_of_curve(each) for each in lines]),
        mean_curve([steps_and_values_of_curve(each) for each in lines[:2]]),
    )
    assert three is not None
    assert three.half is not None
    low, high = Sample("a", "", "score", dict(zip("012", values, strict=True))).interval or (0, 0)
    assert (three.mean - three.half)[0] == pytest.approx(low)
    assert (three.mean + three.half)[0] == pytest.approx(high)
    assert two is not None
    assert two.half is None


def test_seeds_without_a_common_step_have_no_mean() -> None:
    seeds = seed_curves_of_config("a", [curve("0", (0, 10), (1, 1)), curve("1", (20, 30), (2, 2))])
    assert seeds.n == 2
    assert seeds.mean is None


def test_a_step_logged_twice_counts_as_it_was_last_and_order_does_not_matter() -> None:
    steps, values = steps_and_values_of_curve(curve("0", (0, 20, 10, 20), (0.0, 7.0, 1.0, 2.0)))
    assert steps.tolist() == [0, 10, 20]
    assert values.tolist() == [0, 1, 2]


def test_a_seed_counts_once_however_many_curves_it_has() -> None:
    seeds = seed_curves_of_config(
        "a", [curve("0", (0, 1), (1, 1)), curve("0", (0, 1), (9, 9)), curve("1", (0, 1), (3, 3))]
    )
    assert (seeds.n, seeds.left_out) == (2, 1)
    assert seeds.mean is not None
    assert seeds.mean.mean.tolist() == [2, 2]
    assert (
        "1 further curves"
        in pictures(
            replace(
                facts(configs=("a",), seeds=("0",)),
                curves=(curve("0", (0, 1), (1, 1)), curve("0", (0, 1), (9, 9))),
            )
        )["learning_score"].caption
    )


def test_long_curves_are_thinned_but_keep_their_ends() -> None:
    steps = tuple(float(step) for step in range(5000))
    found = mean_curve([steps_and_values_of_curve(curve("0", steps, steps))])
    assert found is not None
    assert len(found.steps) <= MOST_MEAN_POINTS
    assert (found.steps[0], found.steps[-1]) == (0, 4999)


def test_curves_show_mean_band_and_each_seed_and_the_limit_of_their_metric_alone() -> None:
    found = pictures(facts())
    (axes,) = found["learning_cost"].figure.axes
    assert len([c for c in axes.collections if isinstance(c, PolyCollection)]) == len(CONFIGS)
    thin = [line for line in axes.lines if line.get_linewidth() == 0.8]
    thick = [line for line in axes.lines if line.get_linewidth() == 2.6]
    assert (len(thin), len(thick)) == (len(CONFIGS) * len(SEEDS), len(CONFIGS))
    dashed = [line for line in axes.lines if line.get_color() == WARNING_COLOUR]
    assert [line.get_ydata()[0] for line in dashed] == [LIMIT]
    (other,) = found["learning_score"].figure.axes
    assert not [line for line in other.lines if line.get_color() == WARNING_COLOUR]


@pytest.mark.parametrize("seeds", [1, 2])
def test_two_seeds_have_neither_band_nor_interval(seeds: int) -> None:
    found = pictures(facts(seeds=SEEDS[:seeds]))
    for name in ("learning_score", "bars_score", "score_against_cost"):
        picture = found[name]
        (axes,) = picture.figure.axes
        assert not [c for c in axes.collections if isinstance(c, PolyCollection)]
        assert not [line for line in axes.lines if line.get_marker() in ("|", "_")]
        assert "fewer than three seeds" in picture.caption


def dots(axes: Axes) -> list[float]:
    return sorted(
        float(x) for each in axes.collections if isinstance(each, PathCollection) for x, _ in each.get_offsets()
    )


def test_bars_have_the_length_of_the_mean_with_dot_and_interval() -> None:
    whole = facts()
    found = analyse_facts(whole)
    (axes,) = pictures(whole)["bars_score"].figure.axes
    samples = [found.sample(config, column) for config in CONFIGS for column in whole.columns[:2]]
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([sample.mean for sample in samples])
    assert {bar.get_x() for bar in axes.patches} == {0.0}
    drawn = [tuple(line.get_xdata()) for line in axes.lines if line.get_marker() == "|"]
    assert drawn == [sample.interval for sample in samples]
    assert dots(axes) == pytest.approx(sorted(value for sample in samples for value in sample.values))
    assert axes.get_xlim()[0] == 0


def test_the_limit_is_drawn_on_the_bars_of_its_split_only() -> None:
    (axes,) = pictures(facts())["bars_cost"].figure.axes
    limits = [line for line in axes.lines if line.get_color() == WARNING_COLOUR]
    assert [line.get_xdata()[0] for line in limits] == [LIMIT] * len(CONFIGS)
    bars = {round(bar.get_y() + bar.get_height() / 2, 6) for bar in axes.patches[1::2]}  # those of ood
    assert {round(sum(line.get_ydata()) / 2, 6) for line in limits} == bars


def test_far_from_zero_points_take_the_place_of_bars() -> None:
    picture = pictures(facts(scores=lambda config, seed, split: 100 + config + 0.1 * seed + 0.03 * split))["bars_score"]
    (axes,) = picture.figure.axes
    assert not axes.patches
    assert axes.get_xlim()[0] > 90
    assert "does not start at 0" in axes.get_xlabel()
    assert "does not start at 0" in picture.caption


def test_bars_below_zero_begin_at_zero_too() -> None:
    (axes,) = pictures(facts(scores=lambda c, s, x: -5.0 - 3 * c - 0.3 * s - 0.1 * x))["bars_score"].figure.axes
    assert {bar.get_x() for bar in axes.patches} == {0.0}
    assert axes.get_xlim()[1] == 0


def test_the_infeasible_carry_a_dagger_and_it_is_explained() -> None:
    whole = facts()
    found = analyse_facts(whole)
    unsafe = {config for config in CONFIGS if found.decision.safety[config].standing == "INFEASIBLE"}
    assert unsafe == {"baseline", "u_only"}
    for name in ("bars_score", "bars_cost"):
        picture = pictures(whole)[name]
        (axes,) = picture.figure.axes
        labels = [label.get_text() for label in axes.get_yticklabels()]
        assert labels == [f"{config} †" if config in unsafe else config for config in CONFIGS]
        assert any(text.get_text().startswith("† infeasible") for text in picture.figure.texts)
        assert "† infeasible" in picture.caption


def test_n_stands_beside_a_config_where_it_differs() -> None:
    (axes,) = pictures(facts(done=lambda c, s, x: (c, s, x) != (3, 1, 1)))["bars_score"].figure.axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels[0] == "baseline † (n=5)"
    assert labels[3] == "v2_full (n=5/4)"


def test_points_lie_at_both_means_with_both_intervals() -> None:
    whole = facts()
    found = analyse_facts(whole)
    assert whole.plan is not None
    assert whole.plan.limit is not None
    (axes,) = pictures(whole)["score_against_cost"].figure.axes
    for config in CONFIGS:
        cost, score = found.sample(config, whole.plan.limit), found.sample(config, whole.plan.primary)
        lines = [(tuple(line.get_xdata()), tuple(line.get_ydata())) for line in axes.lines]
        assert ((cost.mean,), (score.mean,)) in lines
        assert (cost.interval, (score.mean, score.mean)) in lines
        assert ((cost.mean, cost.mean), score.interval) in lines
    dashed = [line for line in axes.lines if line.get_color() == WARNING_COLOUR]
    assert [tuple(line.get_xdata()) for line in dashed] == [(LIMIT, LIMIT)]
    (shade,) = axes.patches
    assert shade.get_x() == LIMIT  # costs are at most the limit: beyond it is infeasible
    assert shade.get_width() > 0


def test_a_limit_that_is_a_minimum_is_shaded_below() -> None:
    whole = facts()
    assert whole.plan is not None
    rules = replace(whole.plan.procedure, at_most=False)
    picture = pictures(replace(whole, plan=replace(whole.plan, procedure=rules)))["score_against_cost"]
    (shade,) = picture.figure.axes[0].patches
    assert min(shade.get_x(), shade.get_x() + shade.get_width()) < LIMIT
    assert max(shade.get_x(), shade.get_x() + shade.get_width()) == LIMIT


def test_without_a_plan_there_is_no_such_picture() -> None:
    assert set(pictures(replace(facts(configs=("a",)), plan=None, curves=()))) == {
        "bars_score",
        "bars_cost",
        "coverage",
    }


def squares(axes: Axes, *, done: bool) -> int:
    blue = tuple(int(BLUE[at : at + 2], 16) / 255 for at in (1, 3, 5))
    groups = [each for each in axes.collections if isinstance(each, PolyCollection)]
    return sum(len(g.get_paths()) for g in groups if (tuple(g.get_facecolor()[0][:3]) == pytest.approx(blue)) == done)


def test_every_cell_has_a_square_filled_if_it_is_done() -> None:
    whole = facts(done=lambda c, s, x: (c + s + x) % 3 > 0)
    picture = pictures(whole)["coverage"]
    assert picture.title == f"Coverage: {whole.k} of 40 done (PARTIAL {whole.k}/40)"
    assert sum(squares(axes, done=True) for axes in picture.figure.axes) == whole.k
    assert sum(squares(axes, done=False) for axes in picture.figure.axes) == 40 - whole.k
    told = "".join(text.get_text() for text in picture.figure.legends[0].get_texts())
    for state in {each.state for each in whole.missing}:
        count = sum(each.state == state for each in whole.missing)
        assert f"{state} {count}" in told
        assert f"{state} {count}" in picture.caption


def test_a_mean_over_a_part_of_the_steps_says_so() -> None:
    whole = seed_curves_of_config("a", [curve("0", (0, 100), (1, 1)), curve("1", (5, 100), (2, 2))])
    late = seed_curves_of_config("a", [curve("0", (0, 100), (1, 1)), curve("1", (97, 100), (2, 2))])
    assert (whole.patchy, late.patchy, round(late.covered, 2)) == (False, True, 0.03)
    found = facts(configs=("a", "b"), seeds=("0", "1"))
    one = found.curves[0]
    cut = replace(found, curves=(replace(one, steps=one.steps[-2:], values=one.values[-2:]), *found.curves[1:]))
    part = pictures(cut)["learning_score"]
    assert "A mean is drawn only where every seed has values, here over a part of the steps: a " in part.caption
    assert any(text.get_text().startswith("n = 2, mean: ") for text in part.figure.texts)
    assert "A mean is drawn only" not in pictures(found)["learning_score"].caption
