"""What holds for every config and every edit."""

from __future__ import annotations

import copy
import io
import json
import math
import re
import tomllib
from typing import Any

import tomlkit
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from muster.rules.config_paths import ConfigPlace, UnreadableConfig, format_config_path, iterate_leaves, value_at_place
from muster.rules.edit_config import (
    EditsRefused,
    differing_places,
    edit_config_text,
    is_same_config_value,
    parse_config,
)

KEYS = st.text(st.sampled_from('abcxyz_.*"@ [é键1'), min_size=1, max_size=4)
HALVES = st.integers(-(2**40), 2**40).map(lambda number: number / 1024)  # exactly representable
DECIMALS = st.decimals(-10_000, 10_000, places=4, allow_nan=False).map(float)
TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=6) | st.sampled_from(["yes", "1", "a: b", ""])
SCALARS = st.booleans() | st.integers(-(2**60), 2**60) | HALVES | DECIMALS | TEXTS | st.floats(allow_nan=False)
TREES = st.dictionaries(
    KEYS,
    st.recursive(
        SCALARS | st.none(),
        lambda below: st.lists(below, max_size=3) | st.dictionaries(KEYS, below, max_size=3),
        max_leaves=12,
    ),
    min_size=1,
    max_size=4,
)


def as_json(tree: Any, draw: Any) -> str:
    return json.dumps(tree, indent=draw(st.sampled_from([None, 2])), ensure_ascii=draw(st.booleans()))


def as_yaml(tree: Any, draw: Any) -> str:
    """By ruamel itself in its block style; comments in between."""
    writer = YAML(typ="rt", pure=True)
    writer.default_flow_style = draw(st.booleans())
    writer.width = 4096
    out = io.StringIO()
    writer.dump(tree, out)
    lines = out.getvalue().splitlines(keepends=True)
    if not writer.default_flow_style and not any("|" in line or ">" in line for line in lines):
        lines.insert(0, "# a comment\n")
    text = "".join(lines)
    try:
        YAML(typ="safe", pure=True).load(text)
    except YAMLError:  # odd keys in flow style: it does not read what it wrote
        reject()
    return text


def as_toml(tree: Any, draw: Any) -> str:
    return "# a comment\n" + tomlkit.dumps(tree)


def without_none(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: without_none(each) for key, each in tree.items() if each is not None}
    return [without_none(each) for each in tree if each is not None] if isinstance(tree, list) else tree


@st.composite
def configs(draw: Any, kinds: tuple[str, ...] = ("json", "yaml", "toml")) -> tuple[str, str, Any]:
    """Kind, text and tree."""
    kind = draw(st.sampled_from(kinds))
    tree = draw(TREES)
    if kind == "toml":
        tree = without_none(tree)
    text = {"json": as_json, "yaml": as_yaml, "toml": as_toml}[kind](tree, draw)
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    config = parse_config(text, kind)
    return kind, text, config.tree


def numbers(tree: Any) -> list[ConfigPlace]:
    return [
        where
        for where in iterate_leaves(tree)
        if where and type(value_at_place(tree, where)) in (int, float) and math.isfinite(value_at_place(tree, where))
    ]


@given(configs())
@settings(max_examples=150, deadline=None)
def test_no_edit_no_change(config: tuple[str, str, Any]) -> None:
    kind, text, tree = config
    found = edit_config_text(text, kind, [])
    assert (found.text, found.changed) == (text, ())
    assert is_same_config_value(found.tree, tree)


@given(configs(), st.data())
@settings(max_examples=250, deadline=None)
def test_what_is_written_is_read_again_and_nothing_else_has_changed(config: tuple[str, str, Any], data: Any) -> None:
    kind, text, tree = config
    places = [where for where in iterate_leaves(tree) if where]
    assume(places)
    where = data.draw(st.sampled_from(places))
    value = data.draw(SCALARS)
    old = value_at_place(tree, where)
    raw = value if isinstance(value, str) and isinstance(old, str) else json.dumps(value)
    try:
        found = edit_config_text(text, kind, [f"{format_config_path(where)}@set={raw}"])
    except EditsRefused:
        assert not isinstance(old, str)
        return
    assert is_same_config_value(parse_config(found.text, kind).tree, found.tree)
    expected = copy.deepcopy(tree)
    value_at_place(expected, where[:-1])[where[-1]] = found.changes[0].new
    assert is_same_config_value(found.tree, expected)
    assert [each for each in differing_places(tree, found.tree) if each[: len(where)] != where] == []


@given(configs(("json", "yaml")), st.data())
@settings(max_examples=200, deadline=None)
def test_bytes_outside_of_the_edited_values_stay(config: tuple[str, str, Any], data: Any) -> None:
    kind, text, tree = config
    places = numbers(tree)
    assume(places)
    chosen = data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=3, unique=True))
    found = edit_config_text(text, kind, [f"{format_config_path(where)}@add=1" for where in chosen])
    before, after = parse_config(text, kind), parse_config(found.text, kind)
    assert outside(text, [before.spans[where] for where in chosen]) == outside(
        found.text, [after.spans[where] for where in chosen]
    )


def outside(text: str, spans: list[tuple[int, int]]) -> str:
    for start, end in sorted(spans, reverse=True):
        text = text[:start] + "#" + text[end:]
    return text


@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), HALVES, min_size=1, max_size=5), st.data())
def test_toml_lines_without_an_edited_value_stay(values: dict[str, float], data: Any) -> None:
    text = "".join(f"{key} = {value!r} # of {key}\n" for key, value in values.items())
    chosen = data.draw(st.sampled_from(sorted(values)))
    found = edit_config_text(text, "toml", [f"{chosen}@add=0.5"])
    rows = zip(text.splitlines(), found.text.splitlines(), strict=True)
    assert all(old == new for old, new in rows if not old.endswith(f" of {chosen}"))
    assert found.text.count("# of") == len(values)
    assert tomllib.loads(found.text)[chosen] == values[chosen] + 0.5


@given(configs(), st.data())
@settings(max_examples=200, deadline=None)
def test_an_edit_and_its_inverse_give_the_same_config(config: tuple[str, str, Any], data: Any) -> None:
    kind, text, tree = config
    places = [where for where in numbers(tree) if abs(value_at_place(tree, where)) < 1e300]
    assume(places)
    where = data.draw(st.sampled_from(places))
    old = value_at_place(tree, where)
    assume(isinstance(old, int) or old == 0 or abs(old) > 1e-290)  # below, halves are lost
    power = data.draw(st.sampled_from([2, 4, 1024]))
    there, back = f"{format_config_path(where)}@mul={power}", f"{format_config_path(where)}@mul={1 / power!r}"
    one_by_one = edit_config_text(edit_config_text(text, kind, [there]).text, kind, [back])
    assert is_same_config_value(one_by_one.tree, tree)
    at_once = edit_config_text(text, kind, [there, back])
    assert (at_once.text, at_once.changed) == (text, ())


@given(st.integers(-(10**12), 10**12), st.integers(-(10**9), 10**9), st.sampled_from(["json", "yaml", "toml"]))
def test_what_is_added_can_be_taken_away_again(old: int, added: int, kind: str) -> None:
    for scale in (1, 100):  # an integer, and a decimal with two places
        value: float = old if scale == 1 else old / scale
        more = added if scale == 1 else added / scale
        text = {"json": '{"x": %r}', "yaml": "x: %r\n", "toml": "x = %r\n"}[kind] % value
        there = edit_config_text(text, kind, [f"x@add={more!r}"])
        back = edit_config_text(there.text, kind, [f"x@add={-more!r}"])
        assert back.text == text


@given(configs(), st.data())
@settings(max_examples=150, deadline=None)
def test_edits_of_different_places_can_come_in_any_order(config: tuple[str, str, Any], data: Any) -> None:
    kind, text, tree = config
    places = numbers(tree)
    assume(len(places) > 1)
    chosen = data.draw(st.lists(st.sampled_from(places), min_size=2, max_size=4, unique=True))
    edits = [
        f"{format_config_path(where)}@{data.draw(st.sampled_from(['add=3', 'mul=0.5', 'set=7']))}" for where in chosen
    ]
    found = edit_config_text(text, kind, edits)
    other = edit_config_text(text, kind, data.draw(st.permutations(edits)))
    assert found.text == other.text
    assert is_same_config_value(found.tree, other.tree)


@given(st.integers(-(10**6), 10**6), st.decimals(-100, 100, places=3, allow_nan=False), st.data())
def test_integers_stay_integers_within_their_bounds(old: int, factor: Any, data: Any) -> None:
    low, high = sorted(data.draw(st.tuples(st.integers(-100, 100), st.integers(-100, 100))))
    found = edit_config_text(json.dumps({"x": old}), "json", [f"x@mul={factor}@min={low}@max={high}"])
    new = found.tree["x"]
    assert type(new) is int
    assert low <= new <= high
    product = float(old * factor)
    assert new == min(max(math.floor(product + 0.5), low), high)


@given(
    st.text(max_size=30) | st.from_regex(re.compile(r"[a-c.*\[\]0-9\"]{0,8}@(set|mul|add|max|min)=[0-9a-z@=.]{0,8}"))
)
@settings(max_examples=400)
def test_whatever_is_typed_gives_a_variant_or_a_message(written: str) -> None:
    for kind, text in (("json", '{"a": {"b": 1}}'), ("yaml", "a: {b: 1}\n"), ("toml", "a.b = 1\n")):
        assert all(mistakes_of(text, kind, written))


def mistakes_of(text: str, kind: str, written: str) -> tuple[str, ...]:
    try:
        edit_config_text(text, kind, [written])
    except EditsRefused as refused:
        return refused.mistakes
    return ()


@given(st.text("{}[]\"':,-#&*!|>%@ \n\t0a1.e=<", max_size=40), st.sampled_from(["json", "yaml", "toml"]))
@settings(max_examples=600, deadline=None)
def test_whatever_is_read_gives_a_config_or_a_message(text: str, kind: str) -> None:
    try:
        config = parse_config(text, kind)
    except UnreadableConfig:
        return
    for where in iterate_leaves(config.tree):
        value_at_place(config.tree, where)
