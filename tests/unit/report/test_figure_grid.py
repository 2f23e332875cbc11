"""Which square a cell belongs to, told from its name; and names and numbers as they are drawn."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from figure_facts import facts
from hypothesis import given
from hypothesis import strategies as st

from muster.app.facts.drawing.figure_context import (
    LONGEST_NAME,
    drawable_names,
    figure_file_names,
    shorten_drawn_name,
)
from muster.app.facts.drawing.figure_style import with_bundled_fonts_only
from muster.app.facts.report_facts import Measurement, MissingCell, ReportFacts, ResultColumn
from muster.app.report.figures.figure_data import DONE_STATE, build_coverage_grid
from muster.model.cell import escape_cell_value

with with_bundled_fonts_only():
    from muster.app.facts.drawing.figure_page import (
        format_axis_number,
        format_measured_number,
        format_tick_labels,
        is_drawable_text,
        padded_limits,
    )
    from muster.app.report.figures.coverage_matrix import words_in_squares, worst_state
    from muster.app.report.figures.label_layout import spread_labels


def campaign(cells: dict[str, tuple[str, str, str]], missing: list[str], **more: object) -> ReportFacts:
    """`cells`: name -> config, seed, split."""
    measured = tuple(
        Measurement(cell, cell.split("/")[0], config, seed, head, {"score": 1.0})
        for cell, (config, seed, head) in cells.items()
    )
    return replace(
        facts(configs=("a", "b"), seeds=("0", "1")),
        measured=measured,
        missing=tuple(MissingCell(cell, "DEAD", "") for cell in missing),
        curves=(),
        **more,  # type: ignore[arg-type]
    )


def states(found: ReportFacts) -> dict[tuple[str, str, str, str], tuple[str, ...]]:
    return {
        (panel.job, panel.head, *square): states
        for panel in build_coverage_grid(found).panels
        for square, states in panel.states.items()
    }


def test_missing_cells_find_their_square() -> None:
    found = campaign({"eval/a/0/id": ("a", "0", "id"), "eval/b/1/ood": ("b", "1", "ood")}, ["eval/a/1/ood"])
    assert states(found) == {
        ("eval", "id", "a", "0"): (DONE_STATE,),
        ("eval", "ood", "b", "1"): (DONE_STATE,),
        ("eval", "ood", "a", "1"): ("DEAD",),
    }


def test_the_order_of_axes_is_learned_from_what_was_measured() -> None:
    """Config and seed share names here: only the order tells which is which."""
    found = campaign(
        {"eval/ood/1/0": ("0", "1", "ood"), "eval/id/0/1": ("1", "0", "id")},
        ["eval/ood/0/1"],
        configs=("0", "1"),
        seeds=("0", "1"),
    )
    assert states(found)["eval", "ood", "1", "0"] == ("DEAD",)


def test_a_name_that_leaves_doubt_is_listed_below() -> None:
    found = campaign({"eval/0/0/ood": ("0", "0", "ood")}, ["eval/0/1/ood"], configs=("0", "1"), seeds=("0", "1"))
    grid = build_coverage_grid(found)
    assert [cell.cell for cell in grid.elsewhere] == ["eval/0/1/ood"]


@pytest.mark.parametrize("cell", ["eval/c/0/ood", "eval/a/7/ood", "eval/a", "eval", "eval/a/0/ood/extra/more"])
def test_what_is_not_in_the_matrix_gets_no_square_of_another(cell: str) -> None:
    found = campaign({"eval/a/0/id": ("a", "0", "id"), "eval/b/1/ood": ("b", "1", "ood")}, [cell])
    taken = [square for square, state in states(found).items() if "DEAD" in state]
    assert not taken or cell == "eval/a/0/ood/extra/more"  # a further axis shares the square
    assert len(build_coverage_grid(found).elsewhere) == 1 - len(taken)


def test_names_with_slashes_and_dots_come_back() -> None:
    config, split = "./a%b", "x/y"
    name = f"eval/{escape_cell_value(config)}/0/{escape_cell_value(split)}"
    found = campaign(
        {f"eval/b/1/{escape_cell_value(split)}": ("b", "1", split), "eval/b/0/id": ("b", "0", "id")},
        [name],
        configs=(config, "b"),
        columns=(ResultColumn(split, "score"), ResultColumn("id", "score")),
    )
    assert states(found)["eval", split, config, "0"] == ("DEAD",)


def test_a_job_without_results_is_listed_below_for_nobody_knows_what_of_it_is_done() -> None:
    found = campaign({"eval/a/0/id": ("a", "0", "id")}, ["train/a/1", "train/b/0"])
    grid = build_coverage_grid(found)
    assert [panel.job for panel in grid.panels] == ["eval"]
    assert [cell.cell for cell in grid.elsewhere] == ["train/a/1", "train/b/0"]


def test_before_anything_is_done_the_names_alone_must_do() -> None:
    found = campaign({}, ["eval/a/0/id", "eval/b/1/ood"])
    assert states(found) == {("eval", "id", "a", "0"): ("DEAD",), ("eval", "ood", "b", "1"): ("DEAD",)}


def test_a_job_without_splits_is_its_own_head() -> None:
    columns = (ResultColumn("train", "reward"),)
    found = campaign({"train/a/0": ("a", "0", "train")}, ["train/a/1"], columns=columns)
    assert states(found)["train", "train", "a", "1"] == ("DEAD",)


def test_a_square_of_several_cells_is_done_only_if_all_are() -> None:
    assert worst_state((DONE_STATE, "PENDING", DONE_STATE)) == "PENDING"
    assert worst_state((DONE_STATE, DONE_STATE)) == DONE_STATE


def test_words_in_squares_are_short_where_there_is_no_room_and_still_differ() -> None:
    found = campaign({"eval/a/0/id": ("a", "0", "id")}, ["eval/a/1/id", "eval/b/0/id", "eval/b/1/id"])
    missing = tuple(replace(e, state=s) for e, s in zip(found.missing, ("PENDING", "PAUSED", "DEAD"), strict=True))
    grid = build_coverage_grid(replace(found, missing=missing))
    assert words_in_squares(grid, 9.0) == {"PENDING": "PENDING", "PAUSED": "PAUSED", "DEAD": "DEAD"}
    assert words_in_squares(grid, 0.4) == {"PENDING": "PE", "PAUSED": "PA", "DEAD": "DE"}
    assert words_in_squares(grid, 0.05) == {}


@given(st.lists(st.text(max_size=60), max_size=12))
def test_names_as_drawn_are_drawable_short_and_all_different(names: list[str]) -> None:
    found = drawable_names("config", names, is_drawable_text, blank="all cells")
    assert set(found) == set(names)
    assert len(set(found.values())) == len(found)
    assert all(is_drawable_text(name) for name in found.values())
    assert all(len(name) <= LONGEST_NAME + 3 for name in found.values())


def test_only_what_can_be_read_is_drawn() -> None:
    for name in ("v2_full", "α=0.5", "é", "Ж", "a$b", "†"):
        assert is_drawable_text(name)
    for name in ("基线", "a\nb", "عربي", "שלום", "e\u0301", "\x00", "😀" * 2 + "基"):
        assert not is_drawable_text(name)


def test_long_names_keep_both_ends() -> None:
    assert shorten_drawn_name("short") == "short"
    assert shorten_drawn_name("a_long_name_of_a_config_lr3e-4") == "a_long_na...g_lr3e-4"
    assert len(shorten_drawn_name("x" * 99)) == LONGEST_NAME


def test_names_that_look_alike_when_short_get_numbers() -> None:
    names = ["a" * 30 + "b" + "a" * 30, "a" * 30 + "c" + "a" * 30, "config 1"]
    assert list(drawable_names("config", names, is_drawable_text).values()) == ["config 1'", "config 2", "config 1"]


@given(st.lists(st.text(max_size=12), max_size=8))
def test_file_names_are_plain_and_differ(names: list[str]) -> None:
    found = figure_file_names(names)
    assert len(set(found.values())) == len(found)
    assert all(name and set(name) <= set(PLAIN) and not name.startswith(".") for name in found.values())


PLAIN = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"


@pytest.mark.parametrize(
    ("ticks", "labels"),
    [
        ([0.0, 2.5, 5.0], ["0", "2.5", "5.0"]),
        ([0.0, 200000.0, 400000.0], ["0", "200k", "400k"]),
        ([0.0, 500000.0, 1000000.0], ["0", "0.5M", "1.0M"]),
        ([1000000.0, 1000001.0], ["1000000", "1000001"]),
        ([-0.02, 0.0, 0.02], ["-0.02", "0", "0.02"]),
        ([0.0, 2e-7, 4e-7], ["0", "2e-07", "4e-07"]),
        ([0.0], ["0"]),
        ([], []),
    ],
)
def test_labels_of_ticks_are_short(ticks: list[float], labels: list[str]) -> None:
    assert format_tick_labels(ticks) == labels


@given(st.floats(-1e12, 1e12), st.integers(-9, 9), st.integers(2, 8))
def test_labels_of_ticks_always_differ(start: float, power: int, count: int) -> None:
    step = 2.5 * 10.0**power
    first = round(start / step) * step
    ticks = [first + index * step for index in range(count)]
    if len({f"{tick:.12g}" for tick in ticks}) == count:  # what floats can tell apart at all
        assert len(set(format_tick_labels(ticks))) == count


def test_numbers_keep_what_was_declared_and_round_what_was_measured() -> None:
    assert [format_axis_number(value) for value in (25.0, 1.625, 2_500_000.0, 0.0, -3.0)] == [
        "25",
        "1.625",
        "2.5M",
        "0",
        "-3",
    ]
    assert [format_measured_number(value) for value in (17.0, 9.9, 9.999, 0.0, 1234.0, 99.96)] == [
        "17.0",
        "9.90",
        "10.0",
        "0",
        "1234",
        "100",
    ]
    assert [format_measured_number(value) for value in (-0.00012, 1e6, 0.5, 12345.0)] == [
        "-0.00012",
        "1.00M",
        "0.500",
        "12.3k",
    ]


@given(st.lists(st.floats(-1e15, 1e15), max_size=5))
def test_limits_hold_all_values_and_have_a_width(values: list[float]) -> None:
    low, high = padded_limits(values)
    assert low < high
    assert all(low <= value <= high for value in values)


@given(st.lists(st.floats(0, 10), min_size=1, max_size=8))
def test_labels_in_a_row_keep_their_order_and_their_distance(targets: list[float]) -> None:
    found = spread_labels(targets, 0.5, 0.0, 10.0)
    ordered = sorted(zip(targets, found, strict=True))
    assert [place for _, place in ordered] == sorted(found)
    assert all(after - before >= 0.5 - 1e-6 for before, after in pairwise(sorted(found)))
    assert all(-1e-6 <= place <= 10 + 1e-6 for place in found)
