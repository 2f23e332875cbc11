"""A value of an axis is renamed in the text: its name, wherever it is meant, and no other character."""

from __future__ import annotations

import pytest

from muster.spec.rename_in_text import rename_value_in_text

TEXT = """\
# large is not touched in a comment
axes:
  config:
    base: &small {args: "large"}
    'large': {args: "--hidden large"}   # large
  seed: [0, "1", 2]
  split: [id, "ood"]
jobs:
  large: {axes: [config], command: large, exclude: [{config: large, seed: 2}]}
decision: {baseline: large, factors: {large: {u: 1}}, primary: {metric: large, split: ood}, notes: [large]}
report: {columns: [ood/score, train/ood]}
"""


def changed(axis: str, old: str, new: str) -> dict[int, str]:
    """Lines that differ."""
    after = rename_value_in_text(TEXT, axis, old, new)
    pairs = zip(TEXT.splitlines(), after.splitlines(), strict=True)
    return {number: now for number, (was, now) in enumerate(pairs, 1) if was != now}


def test_every_mention_and_nothing_else() -> None:
    assert changed("config", "large", "big") == {
        5: "    'big': {args: \"--hidden large\"}   # large",
        9: "  large: {axes: [config], command: large, exclude: [{config: big, seed: 2}]}",
        10: "decision: {baseline: big, factors: {big: {u: 1}}, primary: {metric: large, split: ood}, notes: [large]}",
    }


def test_a_split_in_decision_and_columns() -> None:
    assert changed("split", "ood", "far") == {
        7: '  split: [id, "far"]',
        10: TEXT.splitlines()[9].replace("split: ood", "split: far"),
        11: "report: {columns: [far/score, train/ood]}",
    }


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("0", "7", '  seed: [7, "1", 2]'),
        ("1", "7", '  seed: [0, "7", 2]'),
        ("0", "x", '  seed: ["x", "1", 2]'),  # a text now: as it is written, so it is meant
        ("0", "07", '  seed: ["07", "1", 2]'),
    ],
)
def test_a_number_stays_one_where_the_new_name_is_one(old: str, new: str, line: str) -> None:
    assert changed("seed", old, new)[6] == line


@pytest.mark.parametrize("new", ["no", "on", "a b", "a: b", "ü", "it's"])
def test_what_yaml_would_read_otherwise_is_quoted(new: str) -> None:
    from ruamel.yaml import YAML

    after = YAML(typ="safe", pure=True).load(
        rename_value_in_text(TEXT.replace("'large'", "large"), "config", "large", new)
    )
    assert list(after["axes"]["config"]) == ["base", new]
    assert after["decision"]["baseline"] == new


def test_a_name_that_is_not_there() -> None:
    assert changed("config", "huge", "big") == {}
    assert changed("nothing", "large", "big") == {}


def test_windows_lines_and_a_mark_survive() -> None:
    text = "\ufeff" + TEXT.replace("\n", "\r\n")
    after = rename_value_in_text(text, "config", "base", "small")
    assert after == text.replace("    base: ", "    small: ")
