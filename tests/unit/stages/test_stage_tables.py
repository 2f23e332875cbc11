"""Evaluations are read out of whatever holds them, and nothing that is in it can raise anything but SpecError."""

from __future__ import annotations

import json

import pytest
from gate_world import KEYS, TEXTS, evaluations, reference_gate
from hypothesis import given
from hypothesis import strategies as st

from muster.stages import SpecError
from muster.stages.replay import replay_gate
from muster.stages.traces import EvaluationRow, lines, parse_evaluation_table, rename_columns_to_keys


def test_the_table_of_the_reference() -> None:
    found = parse_evaluation_table((TEXTS / "dev_v40_evals.md").read_text(encoding="utf-8"))
    assert (found.kind, found.settings, found.skipped) == ("markdown", None, 0)
    assert rename_columns_to_keys(found.rows, KEYS) == evaluations()


def test_the_same_in_every_form() -> None:
    rows = evaluations()
    objects = [{"iter": row.iteration, "stage": row.stage} | dict(row.values) for row in rows]
    names = list(objects[0])
    as_csv = "\n".join([",".join(names), *(",".join(str(each[name]) for name in names) for each in objects)])
    for text in ("\n".join(map(json.dumps, objects)), json.dumps(objects), as_csv, "\ufeff" + as_csv):
        assert parse_evaluation_table(text).rows == rows
    trace = parse_evaluation_table(lines(reference_gate(), replay_gate(reference_gate(), rows)))
    assert (trace.kind, trace.rows, trace.settings) == ("trace", rows, reference_gate())


def test_rows_that_come_again_replace_the_earlier_ones() -> None:
    text = '{"step": 8, "x": 1}\n{"step": 16, "x": 1}\n{"step": 8, "x": 2}\n{"step": 16, "x": 2}\n'
    assert parse_evaluation_table(text).rows == [EvaluationRow(8, {"x": 2}), EvaluationRow(16, {"x": 2})]


@pytest.mark.parametrize(
    "iteration", ["NaN", "Infinity", "-Infinity", "8.5", "true", "null", '"8"', "[8]", "1e400", "-8"]
)
def test_a_row_whose_iteration_is_none_is_skipped(iteration: str) -> None:
    found = parse_evaluation_table(f'{{"iter": 8, "x": 1}}\n{{"iter": {iteration}, "x": 2}}\n')
    assert ([row.iteration for row in found.rows], found.skipped) == ([8], 1)


def test_whole_numbers_may_be_written_as_any_number() -> None:
    assert [
        row.iteration
        for row in parse_evaluation_table('{"iter": 8.0}\n{"iter": 16}\n{"iter": 1' + "0" * 400 + "}").rows
    ] == [
        8,
        16,
        10**400,
    ]


@pytest.mark.parametrize("sign", ["\u2028", "\x85", "\x0c"])
def test_a_text_may_have_any_sign(sign: str) -> None:
    row = {"iter": 8, "stage": f"n{sign}e", "x": 1}
    assert parse_evaluation_table(json.dumps(row, ensure_ascii=False)).rows == [EvaluationRow(8, {"x": 1}, f"n{sign}e")]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no row"),
        ("[", "begins as a JSON list and is none"),
        ("{", "there is no row in it"),
        ("[1, 2]", "there is no row in it"),
        ('{"x": 1}', "no row has the iteration"),
        ('{"iter": "x"}', "no row has a whole number as its iter"),
        ("a,b\n1,2", "no row has the iteration"),
        ("| a | b |\n| --- | --- |\n| 1 | 2 |", "no table has a column for the iteration"),
    ],
)
def test_what_is_no_table_is_told(text: str, told: str) -> None:
    with pytest.raises(SpecError, match=told):
        parse_evaluation_table(text)


def test_columns_may_be_named() -> None:
    text = '{"t": 8, "kind": "ne", "x": 1}'
    assert parse_evaluation_table(text, step="t", stage="kind").rows == [EvaluationRow(8, {"x": 1}, "ne")]
    with pytest.raises(SpecError, match=r"no row has the iteration \(u\)"):
        parse_evaluation_table(text, step="u")


TEXT = st.text('{}[]",:|-\n 0123456789.eitrxnaNIfy\t\x00') | st.text()


@given(
    TEXT
    | st.lists(
        st.sampled_from(
            ["| iter | x |", "| --- | --- |", "| 8 | 1 |", "iter,x", "8,1", '{"iter": 8}', "{", "[", '"', "x"]
        )
    ).map("\n".join)
)
def test_no_text_raises_anything_but_a_spec_error(text: str) -> None:
    try:
        found = parse_evaluation_table(text)
    except SpecError:
        return
    assert found.rows


def test_lists_within_lists_without_end_are_no_row() -> None:
    deep = "[" * 200_000
    assert parse_evaluation_table(f'{{"x": {deep}\n{{"iter": 8}}\n').rows == [EvaluationRow(8, {})]
    with pytest.raises(SpecError, match="begins as a JSON list"):
        parse_evaluation_table(deep)


@pytest.mark.parametrize(
    "text",
    [
        "iteration,a\n" + "\n" * 600_000,
        "iteration,"
        + ",".join(f"a{at}" for at in range(2000))
        + "\n"
        + "1\n" * 2000,  # a row has a cell for each column, if it lacks them or not
        "| iteration | a |\n" + "|---|---|\n" * 3000,  # each line of dashes begins a table
    ],
)
def test_a_table_that_would_take_too_much_memory_is_none(text: str) -> None:
    with pytest.raises(SpecError, match="more than anybody evaluates"):
        parse_evaluation_table(text)
