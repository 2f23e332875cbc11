"""Every picture of every odd report: all words lie on the sheet, none is too small, and labels stay apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from itertools import combinations
from typing import Any

import pytest
from figure_facts import CONFIGS, SPLITS, facts, wobble

from muster.app.facts.drawing.figure_style import with_bundled_fonts_only
from muster.app.facts.report_analysis import analyse_facts
from muster.app.facts.report_facts import LearningCurve, Measurement, MissingCell, ReportFacts, ResultColumn

with with_bundled_fonts_only():
    from matplotlib.backends.backend_agg import RendererAgg
    from matplotlib.text import Text

    from muster.app.facts.drawing.figure_page import SMALL, Picture, apply_figure_style
    from muster.app.report.figures.draw_all import report_pictures
    from muster.app.report.figures.label_layout import LabelBox, overlap_area, place_labels, spread_labels

GREEK = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu")


def no_axes() -> ReportFacts:
    return ReportFacts(
        "solo", "/home/me/solo", "en", "", "0.3.0", "", (), (), (ResultColumn("train", "reward"),),
        (Measurement("train", "train", "", "", "train", {"reward": 3.2}),), 1, 1,
        curves=(LearningCurve("train", "", "", "reward", "reward", (0.0, 10.0, 20.0), (0.0, 1.0, 3.0)),),
    )  # fmt: skip


def other_seeds_than_common_steps() -> ReportFacts:
    whole = facts(configs=("a", "b"), seeds=("0", "1"))
    return replace(
        whole,
        curves=tuple(
            replace(each, steps=(1.0, 2.0) if each.seed == "0" else (5.0,), values=(3.0, 4.0)[: 2 - int(each.seed)])
            for each in whole.curves
        ),
    )


def many_states() -> ReportFacts:
    whole = facts(done=lambda _config, seed, _split: seed == 0)
    words = ("PENDING", "RUNNING", "DEAD", "GIVEN_UP", "HELD", "UNKNOWN", "STALLED", "ORPHANED")
    missing = tuple(replace(each, state=words[at % len(words)]) for at, each in enumerate(whole.missing))
    more = tuple(MissingCell(f"train/{config}/9", "DEAD", "") for config in CONFIGS)
    return replace(whole, missing=missing + more)


def limit_below() -> ReportFacts:
    whole = facts()
    assert whole.plan is not None
    rules = replace(whole.plan.procedure, limit=90.0, at_most=False, higher=False)
    return replace(whole, plan=replace(whole.plan, procedure=rules))


LONG = tuple(f"a_rather_long_config_name_that_no_slide_has_room_for_{word}" for word in GREEK[:6])
CASES: dict[str, Callable[[], ReportFacts]] = {
    "whole": facts,
    "partial": lambda: facts(done=lambda config, seed, split: (config + seed + split) % 3 > 0),
    "one seed": lambda: facts(seeds=("0",)),
    "two seeds": lambda: facts(seeds=("0", "1")),
    "twenty seeds": lambda: facts(seeds=[str(seed) for seed in range(20)], done=lambda c, s, x: (c + s + x) % 7 > 0),
    "one config": lambda: facts(configs=("v2_full",)),
    "six configs": lambda: facts(configs=GREEK[:6]),
    "seven configs": lambda: facts(configs=GREEK[:7], seeds=("0", "1")),
    "twelve configs": lambda: facts(configs=GREEK, seeds=("0", "1", "2")),
    "thirteen configs": lambda: facts(configs=(*GREEK, "nu"), seeds=("0",)),
    "long names": lambda: facts(configs=LONG, seeds=[f"a_very_long_name_of_a_seed_{at}" for at in range(5)]),
    "odd names": lambda: facts(configs=("_hidden", "a$b^2$c_{x}", "config 1", "عربي", "--", "e\u0301")),
    "no spread": lambda: facts(scores=lambda c, _s, _x: float(c), costs=lambda c, _s, _x: 30.5 - c),
    "all the same": lambda: facts(scores=lambda *_: 1.0, costs=lambda *_: 0.0),
    "below zero": lambda: facts(scores=lambda c, s, x: -7.0 * (c + 1) + wobble(c, s, x)),
    "far from zero": lambda: facts(scores=lambda c, s, x: 1e6 + c + 0.1 * wobble(c, s, x)),
    "huge": lambda: facts(
        scores=lambda c, s, x: 1e9 * (c + 1 + wobble(c, s, x)), costs=lambda c, s, x: 1e16 * (c - 2 + wobble(s, c, x))
    ),
    "tiny": lambda: facts(scores=lambda c, s, x: 3e-7 * (c + 1) + 1e-7 * wobble(c, s, x)),
    "no curves": lambda: replace(facts(), curves=()),
    "no plan": lambda: replace(facts(), plan=None),
    "no axes": no_axes,
    "no common steps": other_seeds_than_common_steps,
    "nothing yet": lambda: facts(done=lambda *_: False),
    "many states": many_states,
    "limit that nobody keeps": limit_below,
}


def drawn(found: ReportFacts) -> list[Picture]:
    with apply_figure_style():
        return list(report_pictures(analyse_facts(found)))


@pytest.mark.parametrize("case", CASES)
def test_all_words_are_on_the_sheet_and_large_enough(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Text] = []  # texts of ticks beyond the axes exist too, and are not drawn
    draw = RendererAgg.draw_text

    def note(self: RendererAgg, *args: Any, mtext: Text, **more: Any) -> None:
        written.append(mtext)
        draw(self, *args, mtext=mtext, **more)

    monkeypatch.setattr(RendererAgg, "draw_text", note)
    with apply_figure_style():
        pictures = list(report_pictures(analyse_facts(CASES[case]())))
        for picture in pictures:
            picture.figure.savefig(BytesIO(), format="raw")
    assert pictures
    for picture in pictures:
        assert picture.title in [text.get_text() for text in written if text.get_figure() is picture.figure]
    for text in written:
        assert text.get_fontsize() >= SMALL
        box, sheet = text.get_window_extent(), text.get_figure().bbox
        if text.get_rotation() in (0.0, 90.0):  # the mark in the corner is slanted: its box is not its shape
            inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= sheet.x1 + 1 and box.y1 <= sheet.y1 + 1
            assert inside, (text.get_text(), box)


def shown(picture: Picture, words: set[str]) -> list[LabelBox]:
    found = []
    for text in picture.figure.findobj(Text):
        if text.get_text() in words:
            box = text.get_window_extent()
            found.append(LabelBox(box.x0, box.y0, box.width, box.height))
    return found


@pytest.mark.parametrize("count", [2, 4, 6])
def test_names_of_curves_stay_apart(count: int) -> None:
    picture = drawn(facts(configs=GREEK[:count], scores=lambda *_: 1.0))[0]
    labels = shown(picture, {*GREEK, *(f"{name} †" for name in GREEK)})
    assert len(labels) == count
    assert all(overlap_area(one, [other]) == 0 for one, other in combinations(labels, 2))


@pytest.mark.parametrize("count", [4, 12])
def test_names_of_points_stay_apart(count: int) -> None:
    pictures = drawn(facts(configs=GREEK[:count]))
    picture = next(each for each in pictures if each.name == "score_against_cost")
    labels = shown(picture, {*GREEK, *(f"{name} †" for name in GREEK)})
    assert len(labels) == count
    assert all(overlap_area(one, [other]) < 30 for one, other in combinations(labels, 2))  # pixels: a hair of it


def test_twelve_configs_get_a_panel_each_and_all_panels_one_scale() -> None:
    picture = drawn(facts(configs=GREEK))[0]
    assert len(picture.figure.axes) == 12
    assert len({axes.get_ylim() for axes in picture.figure.axes}) == 1
    assert len({axes.get_xlim() for axes in picture.figure.axes}) == 1


def test_many_configs_are_dealt_out_and_none_is_left_out() -> None:
    configs = [f"config_{at}" for at in range(25)]
    pictures = drawn(facts(configs=configs, seeds=("0",)))
    names = [picture.name for picture in pictures]
    assert names[:3] == ["learning_score", "learning_score_2", "learning_score_3"]
    assert pictures[1].title == "Learning curves: score, part 2 of 3"
    cells = [cell for picture in pictures[:3] for cell in picture.cells]
    assert cells == [f"train/{config}/0" for config in configs]
    bars = [picture for picture in pictures if picture.name.startswith("bars_score")]
    assert len({picture.figure.axes[0].get_xlim() for picture in bars}) == 1  # comparable
    assert sum(len(picture.cells) for picture in bars) == 50


def test_squares_of_every_split_and_seed() -> None:
    picture = drawn(facts())[-1]
    assert picture.title == "Coverage: 40 of 40 done"
    titles = [axes.get_title(loc="left") for axes in picture.figure.axes]
    assert titles == [f"{split}: 20 of 20" for split in SPLITS]


def test_labels_move_no_further_than_they_must() -> None:
    assert spread_labels([1.0, 5.0], 0.5, 0.0, 10.0) == [1.0, 5.0]
    assert spread_labels([1.0, 1.0], 0.5, 0.0, 10.0) == [0.75, 1.25]
    assert spread_labels([0.0, 0.0, 0.0], 0.5, 0.0, 10.0) == [0.0, 0.5, 1.0]
    assert spread_labels([10.0, 9.9], 0.5, 0.0, 10.0) == [10.0, 9.5]


def test_a_label_goes_where_nothing_is() -> None:
    frame = LabelBox(0, 0, 10, 5)
    anchor = (5.0, 2.5)
    everywhere_but_left = [LabelBox(5.05, 0, 5, 5), LabelBox(0, 2.7, 10, 2.3), LabelBox(0, 0, 10, 2.3)]
    (found,) = place_labels([anchor], [(1.0, 0.24)], everywhere_but_left, frame)
    assert found.left + found.width <= 5.0
    corner = place_labels([(0.1, 0.1)], [(1.0, 0.24)], [], frame)[0]
    assert overlap_area(corner, [frame]) == pytest.approx(0.24)  # all of it is inside
