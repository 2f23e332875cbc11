"""Edits of real config texts: what changes, what stays byte for byte, what is refused."""

from __future__ import annotations

import math
import tomllib

import pytest

from muster.rules.config_paths import (
    UnreadableConfig,
    config_kind_of_file,
    find_config_places,
    format_config_path,
    iterate_leaves,
    parse_config_path,
)
from muster.rules.edit_config import EditsRefused, digest_config, edit_config_text, parse_config

JSON = """{
  "name": "act",
  "ot": {"lambda_ot": 0.10, "window": 8, "loss_config": {"reg": 1e-3, "features": [
    {"key": "image", "weight_label": 0.01}, {"key": "state", "weight_label": 2E-2}]}},
  "optimizer": { "lr":1.0e-4,"betas": [0.9, 0.999] },
  "use_amp": false, "resume": null
}
"""
YAML = """\
# the baseline
model:          # of the paper
  lr: 1e-4      # small
  dropout: 0.10
  layers:
    - {width: 64, dropout: 0.1}
    - width: 128
      # tried 0.3 before
      dropout: 0.2
name: 'it''s'   # quoted

steps: 2_000
"""
TOML = """\
# the baseline
title = "act"   # quoted
model.lr = 1e-4 # dotted
opt = { lr = 0.1, betas = [0.9, 0.999] } # inline

[ot] # a table
lambda_ot = 0.10
window = 8

[[layers]]
width = 64
[[layers]] # the second
width = 1_28 # odd
[model.head]
size = 0x10
[ot.loss]
born = 2024-01-01
taus = [
  1.0, # source
  2.0,
]
"""


def made(text: str, kind: str, *edits: str) -> str:
    return edit_config_text(text, kind, edits).text


def refusal(text: str, kind: str, *edits: str) -> str:
    with pytest.raises(EditsRefused) as told_:
        edit_config_text(text, kind, edits)
    return str(told_.value)


def test_json_changes_the_numbers_and_nothing_else() -> None:
    edits = ["ot.loss_config.reg@mul=1.5", "ot.loss_config.features.*.weight_label@mul=0.5", "ot.window@mul=1.5@max=10"]
    found = edit_config_text(JSON, "json", edits)
    expected = JSON.replace("1e-3", "0.0015").replace("0.01}", "0.005}").replace("2E-2", "0.01")
    assert found.text == expected.replace('"window": 8', '"window": 10')
    assert [(change.path, change.old, change.new, change.note) for change in found.changes] == [
        ("ot.loss_config.reg", 1e-3, 0.0015, ""),
        ("ot.loss_config.features[0].weight_label", 0.01, 0.005, ""),
        ("ot.loss_config.features[1].weight_label", 0.02, 0.01, ""),
        ("ot.window", 8, 10, "held at 10"),
    ]


def test_numbers_that_come_out_the_same_stay_as_they_are_written() -> None:
    found = edit_config_text(JSON, "json", ["ot.lambda_ot@mul=2", "optimizer.lr@mul=4", "ot.lambda_ot@mul=0.5"])
    assert found.text == JSON.replace("1.0e-4", "0.0004")
    assert found.changed == (("optimizer", "lr"),)
    assert edit_config_text(JSON, "json", ["ot.window@mul=3@max=8"]).changed == ()


def test_decimals_are_reckoned_as_they_are_written() -> None:
    assert '"lambda_ot": 0.15,' in made(JSON, "json", "ot.lambda_ot@mul=1.5")
    assert '"lambda_ot": 0.3,' in made(JSON, "json", "ot.lambda_ot@add=0.2")
    assert '"lambda_ot": 0.12345678901234566,' in made(JSON, "json", "ot.lambda_ot@set=0.12345678901234567")


@pytest.mark.parametrize(
    ("edit", "value", "note"),
    [
        ("window@mul=1.25", 13, "12.5 rounded to 13, because it is an integer"),
        ("window@mul=1.25@max=12", 12, "held at 12"),
        ("window@add=-2.75", 7, "7.25 rounded to 7, because it is an integer"),
        ("window@mul=2@max=12.5", 12, "12.5 rounded to 12, because it is an integer; held at 12.5"),
        ("window@set=64.0", 64, ""),
        ("window@set=0.5", 0.5, "it was an integer"),
        ("window@set=99@max=20", 20, "held at 20"),
        ("window@set=1@min=2", 2, "held at 2"),
        ("window@set=null", None, ""),
        ("rate@set=1", 1.0, ""),
        ("rate@set=.5", 0.5, ""),
        ("rate@add=1e-3", 0.101, ""),
        ("rate@mul=1@min=0.25@max=0.5", 0.25, "held at 0.25"),
        ("name@set=7", "7", ""),
        ('name@set="a@max=3"', "a@max=3", ""),
        ("name@set=mail@add=x", "mail@add=x", ""),
        ("name@set=", "", ""),
        ("name@set=null", None, ""),
        ("on@set=true", True, ""),
        ("nothing@set=5@max=3", 3, "held at 3"),
        ('nothing@set={"a": [1, null]}', {"a": [1, None]}, ""),
        ("list@set=[]", [], ""),
        ("list[-1]@mul=3", 6, ""),
        ("list[*]@add=1", 3, ""),
        ('["odd.key@set=1"]@set=2', 2, ""),
    ],
)
def test_types_are_kept_and_notes_say_what_was_done(edit: str, value: object, note: str) -> None:
    text = '{"window": 10, "rate": 0.1, "name": "x", "on": false, "nothing": null, "list": [1, 2], "odd.key@set=1": 1}'
    change = edit_config_text(text, "json", [edit]).changes[-1]
    assert (change.new, type(change.new), change.note) == (value, type(value), note)


def test_yaml_keeps_comments_order_and_forms() -> None:
    found = made(YAML, "yaml", "model.lr@mul=0.5", "**.dropout@mul=2", "name@set=don't", "steps@add=1")
    assert found == (
        YAML.replace("1e-4 ", "5.0e-05 ")
        .replace("0.10", "0.2")
        .replace("0.1}", "0.2}")
        .replace("dropout: 0.2\nname", "dropout: 0.4\nname")
        .replace("it''s", "don''t")
        .replace("2_000", "2001")
    )


@pytest.mark.parametrize(
    ("text", "edit", "after"),
    [
        ("a:\n- 1\n- 2\n# about b\nb: 3\n", "a@set=[1,2,3]", "a:\n  [1, 2, 3]\n# about b\nb: 3\n"),
        ("a:\n  x: 1 # one\n# about b\nb: 3\n", 'a@set={"z": 1e-5}', 'a:\n  {"z": 1.0e-05} # one\n# about b\nb: 3\n'),
        ("a:\n  x: 1 # one\n  y: 2\n", 'a@set={"x": 1, "y": 3}', "a:\n  x: 1 # one\n  y: 3\n"),
        ("a:   # empty\nb: 3\n", "a@set=5", "a: 5   # empty\nb: 3\n"),
        ("-\n- 1\n", "[0]@set=5", "- 5\n- 1\n"),
        ("a: {x: , y: 1}\n", "a.x@set=5", "a: {x: 5 , y: 1}\n"),
        ("a: |\n  text\n\n  more\n# c\nb: 1\n", 'a@set="x\\ny"', 'a: "x\\ny"\n# c\nb: 1\n'),
        ("a: >-\n  folded\n  more\n\n\nb: 1", "a@set=short", "a: short\n\n\nb: 1"),
        ("a: x\n  y\nb: 1", "a@set=on", 'a: "on"\nb: 1'),
        ("a: x\n", "a@set=1", 'a: "1"\n'),
        ("a: x\n", "a@set=see: here # now", 'a: "see: here # now"\n'),
        ("a: x\n", "a@set=tab\there", 'a: "tab\\there"\n'),
        ("a: x\n", "a@set=\U00012544\x85", 'a: "\\U00012544\\U00000085"\n'),
        ("a: 1\r\nb: [1, 2]\r\n", "b[1]@mul=2", "a: 1\r\nb: [1, 4]\r\n"),
        ("\ufeffa: 1\n", "a@add=1", "\ufeffa: 2\n"),
        ("1: {2: 3}\ntrue: 5\nnull: 6\n", "1.2@add=1", "1: {2: 4}\ntrue: 5\nnull: 6\n"),
        ("1: {2: 3}\ntrue: 5\nnull: 6\n", "true@add=1", "1: {2: 3}\ntrue: 6\nnull: 6\n"),
        ("1: {2: 3}\ntrue: 5\nnull: 6\n", "null@add=1", "1: {2: 3}\ntrue: 5\nnull: 7\n"),
        ("day: 2024-01-01\n", "day@set=2024-02-01", "day: 2024-02-01\n"),
        ("clip: .inf\n", "clip@set=1", "clip: 1.0\n"),
        ("clip: 1.0\n", "clip@set=Infinity", "clip: .inf\n"),
        ("a: &x 1 # unused anchor\n", "a@mul=2", "a: 2 # unused anchor\n"),
        ("base: &b {x: 1}\nc:\n  <<: *b\n  y: 2\n", "c.y@mul=2", "base: &b {x: 1}\nc:\n  <<: *b\n  y: 4\n"),
        ("a: !!float 1\n", "a@mul=3", "a: 3.0\n"),
        ("a: &x 1\nb: &x 2\nc: 3\n", "c@mul=2", "a: &x 1\nb: &x 2\nc: 6\n"),
        ("%YAML 1.1\n---\non: 010\n", "on@add=1", "%YAML 1.1\n---\non: 9\n"),
        ("use: yes # OT\n", "use@set=false", "use: false # OT\n"),
        ("use: &a Off # unused anchor\n", "use@set=true", "use: true # unused anchor\n"),
        ("use: ['NO', NO]\n", "use[*]@set=true", "use: ['true', true]\n"),
        ("use: !!str yes\n", "use@set=off", 'use: "off"\n'),
        ("use: y\n", "use@set=n", 'use: "n"\n'),
        ("'键.a': {x: 1}\n", '["键.a"].x@add=1', "'键.a': {x: 2}\n"),
    ],
)
def test_yaml_in_its_many_forms(text: str, edit: str, after: str) -> None:
    assert made(text, "yaml", edit) == after


@pytest.mark.parametrize(
    ("text", "edit", "why"),
    [
        (
            "a: &b 1\nc: *b\n",
            "a@mul=2",
            "a has the anchor &b, which is used elsewhere: other values would change with it",
        ),
        ("a: &b 1\nc: *b\n", "c@mul=2", "c is an alias (*b): other values would change with it; write it out first"),
        ("a: &b {x: {y: 1}}\nc: {<<: *b}\n", "c.x.y@mul=2", "c.x.y comes from a merge (<<)"),
        ("a: &b {x: 1}\nc: &d {<<: *b}\ne: {<<: [*d]}\n", "e.x@mul=2", "e.x comes from a merge (<<)"),
        ("a: &b {x: 1}\nc: {<<: *b}\n", "a.x@mul=2", "a.x has the anchor &b"),
        ("a: {b: &x 1}\nc: *x\n", 'a@set={"d": 1}', "a can't be written in the form that the file has there"),
        ("a: {x, y: 1}\n", "a.x@set=5", "a.x can't be written in the form that the file has there"),
    ],
)
def test_yaml_that_would_change_elsewhere_is_refused(text: str, edit: str, why: str) -> None:
    assert why in refusal(text, "yaml", edit)


def test_a_switch_is_what_pyyaml_takes_it_for() -> None:
    """`yes` is a text in YAML 1.2; a text in its place would be true for whoever asks `if config.use_ot`."""
    yaml = pytest.importorskip("yaml")
    text = "use_ot: yes\nother: [On, 'on', no]\n"
    found = edit_config_text(text, "yaml", ["use_ot@set=false"])
    assert parse_config(text, "yaml").tree == yaml.safe_load(text) == {"use_ot": True, "other": [True, "on", False]}
    assert yaml.safe_load(found.text) == {"use_ot": False, "other": [True, "on", False]}
    assert found.changes[0].note == "yes is read as true by YAML 1.1 readers such as PyYAML"
    assert edit_config_text(text, "yaml", ["use_ot@set=true"]).changed == ()
    twice = edit_config_text(text, "yaml", ["use_ot@set=false", "use_ot@set=true"]).changes
    assert twice[1].note == "", "what an edit wrote is true for everybody"


def test_a_text_that_looks_like_a_switch_is_told() -> None:
    why = "mode@set=slow: mode is false; it takes true or false, not 'slow'; off is read as false by YAML 1.1 readers such as "
    assert (
        refusal("mode: off\n", "yaml", "mode@set=slow")
        == f"{why}PyYAML: if a text is meant, put it in quotes in the file"
    )
    assert made("mode: 'off'\n", "yaml", "mode@set=slow") == "mode: 'slow'\n"


def test_configs_that_pyyaml_takes_for_the_same_have_one_digest() -> None:
    digests = [
        digest_config(parse_config(f"use: {word}\n", "yaml").tree) for word in ("yes", "on", "true", "'yes'", "no")
    ]
    assert digests[0] == digests[1] == digests[2]
    assert len(set(digests)) == 3


def test_small_numbers_are_numbers_for_old_readers_too() -> None:
    yaml = pytest.importorskip("yaml")
    assert yaml.safe_load("lr: 1e-3\n") == {"lr": "1e-3"}
    assert yaml.safe_load(made("lr: 1e-3\n", "yaml", "lr@mul=0.001")) == {"lr": 1e-6}


@pytest.mark.parametrize("edit", ["ot.loss.born@mul=2", "ot.loss.born@set=2025-01-01"])
def test_a_date_of_toml_is_for_a_person_to_change(edit: str) -> None:
    assert refusal(TOML, "toml", edit).endswith("; only a person can change it, in the file")


@pytest.mark.parametrize(("value", "said"), [(".nan", "nan"), ("-.inf", "-inf")])
def test_what_is_no_finite_number_can_only_be_set(value: str, said: str) -> None:
    told_ = refusal(f"a: {value}\n", "yaml", "a@mul=2")
    assert told_ == f"a@mul=2: a is {said}, which @mul can't change; @set= gives it another value"
    assert made(f"a: {value}\n", "yaml", "a@set=2") == "a: 2.0\n"


def test_toml_keeps_comments_tables_and_forms() -> None:
    edits = ["model.lr@mul=2", "opt.betas[0]@set=0.8", "opt.lr@mul=2", "layers[1].width@mul=2", "ot.window@add=1"]
    found = made(TOML, "toml", *edits, "model.head.size@mul=2", "ot.loss.taus[0]@set=5", 'title@set=say "x"')
    assert found == (
        TOML.replace("model.lr = 1e-4 ", "model.lr = 0.0002 ")
        .replace("0.9, ", "0.8, ")
        .replace("lr = 0.1,", "lr = 0.2,")
        .replace("1_28", "256")
        .replace("window = 8", "window = 9")
        .replace("0x10", "32")
        .replace("  1.0,", "  5.0,")
        .replace('"act"', '"say \\"x\\""')
    )


def test_toml_with_windows_line_ends_and_a_mark() -> None:
    text = "\ufeff" + TOML.replace("\n", "\r\n")
    found = made(text, "toml", "ot.loss.taus[1]@mul=2")
    assert found == text.replace("2.0,", "4.0,")
    assert tomllib.loads(found.removeprefix("\ufeff"))["ot"]["loss"]["taus"] == [1.0, 4.0]


def test_what_a_kind_of_file_can_not_say() -> None:
    assert "TOML has no null; give ot.window another value" in refusal(TOML, "toml", "ot.window@set=null")
    assert "JSON has no NaN and no Infinity; give optimizer.lr" in refusal(JSON, "json", "optimizer.lr@set=NaN")
    assert "[1, Infinity]" in refusal(JSON, "json", "optimizer.betas@set=[1, Infinity]")
    assert "it holds half a character" in refusal(JSON, "json", 'name@set="\\ud800"')
    assert math.isinf(tomllib.loads(made(TOML, "toml", "ot.lambda_ot@set=-Infinity"))["ot"]["lambda_ot"])


def test_nan_in_a_file_stays_where_it_is() -> None:
    assert made('{"a": NaN, "b": -Infinity, "c": 1}', "json", "c@add=1") == '{"a": NaN, "b": -Infinity, "c": 2}'
    assert made("a: .nan\nc: 1\n", "yaml", "c@add=1") == "a: .nan\nc: 2\n"
    assert made("a = nan\nc = 1\n", "toml", "c@add=1") == "a = nan\nc = 2\n"


def test_edits_are_carried_out_one_after_the_other() -> None:
    text = '{"a": {"b": 1}}'
    assert made(text, "json", 'a@set={"c": {"d": 1}}', "a.c.d@add=1", "a.c.d@mul=5") == '{"a": {"c": {"d": 10}}}'


def test_two_places_never_share_a_value() -> None:
    found = edit_config_text('{"a": [1], "b": [2]}', "json", ["*@set=[3]", "a[0]@add=1"])
    assert found.tree == {"a": [4], "b": [3]}


@pytest.mark.parametrize(
    ("kind", "text", "why"),
    [
        ("json", '{"a": 1,}', "line 1, column 9: a comma before }"),
        ("json", '{"a": 1\n "b": 2}', "line 2, column 2: a comma or } is missing"),
        ("json", "{'a': 1}", "line 1, column 2: a key in double quotes is missing"),
        ("json", '{"a": 1, "a": 2}', "line 1, column 10: the key 'a' is there twice"),
        ("json", '{"a": 01}', "line 1, column 7: 01 is no number"),
        ("json", '{"a": ' + "1" * 5000 + "}", "line 1, column 7: 11111111111111111111 is no number"),
        ("json", '{"a": "x\ny"}', "line 1, column 7: a text in double quotes does not end on its line"),
        ("json", '{"a": "\\x"}', "Invalid \\escape"),
        ("json", '{"a": 1} // note', "line 1, column 10: there is more behind the end of it"),
        ("json", "", "line 1, column 1: it ends too early"),
        ("json", "[" * 3000, "it is nested too deeply"),
        ("yaml", "a: 1\n---\nb: 2\n", "line 2, column 1: a second document begins here (---)"),
        ("yaml", "a: 1\na: 2\n", "line 2, column 1: the key 'a' is there twice"),
        ("yaml", "1: 1\n'1': 2\n", "line 2, column 1: the key '1' is there twice"),
        ("yaml", "a:\n\t- 1\n", "line 2, column 1"),
        ("yaml", "a: !include b.yaml\n", "line 1, column 4: the tag !include is known only to the program"),
        ("yaml", "a: !!int x\n", "line 1, column 4: 'x' is no int"),
        ("yaml", "? [1, 2]\n: 3\n", "line 1, column 3: a key that is a list or a mapping"),
        ("yaml", "a: &x [1, *x]\n", "&x contains itself"),
        ("yaml", "a: *x\n", "found undefined alias"),
        ("yaml", "%YAML 1.11\n---\na: 1\n", "version minor part can only be 2 or 1"),
        ("yaml", "a: {<<: 1}\n", "only mappings can be merged"),
        ("yaml", "[" * 3000, "it is nested too deeply"),
        ("yaml", "a: &a [1,1,1,1,1,1,1,1,1,1]\n" + "".join(f"{b}: &{b} [{','.join(['*' + a] * 10)}]\n" for a, b in
                                                        zip("abcdef", "bcdefg", strict=True)), "it is too large"),
        ("toml", "a = \n", "it is no TOML: Invalid value (at line 1, column 5)"),
        ("toml", "a = " + "1" * 5000, "a number has too many digits"),
        ("toml", "a = " + "[" * 3000, "it is nested too deeply"),
        ("toml", ".".join("a" * 300) + " = 1", "it is nested too deeply"),
        ("json", '{"a": ' + "[" * 95 + "]" * 95 + "}", "it is nested too deeply"),
        ("yaml", "a: " + "[" * 95 + "]" * 95, "it is nested too deeply"),
    ],
)  # fmt: skip
def test_texts_that_are_no_config(kind: str, text: str, why: str) -> None:
    with pytest.raises(UnreadableConfig) as told_:
        parse_config(text, kind)
    assert why in str(told_.value)


@pytest.mark.parametrize("kind", ["json", "yaml", "toml"])
def test_a_value_that_is_nested_too_deeply_is_no_edit(kind: str) -> None:
    with pytest.raises(EditsRefused, match="nested too deeply"):
        edit_config_text('{"a": 1}' if kind != "toml" else "a = 1", kind, ["a@set=" + "[" * 300 + "]" * 300])


def test_the_kind_is_told_by_the_ending() -> None:
    assert [config_kind_of_file(name) for name in ("a.json", "b.YAML", "c.yml", "d.x.toml")] == [
        "json",
        "yaml",
        "yaml",
        "toml",
    ]
    for name in ("json", "a.txt", "a.json.bak", ""):
        with pytest.raises(UnreadableConfig):
            config_kind_of_file(name)


@pytest.mark.parametrize(
    "where",
    [("a", 0, "b"), ("a.b", "c"), ("*",), ("**", "x"), ("", "x"), ('say "x"', 3), ("@set=", "a b"), ("new\nline",), (0,),
     ("back\\slash",), (" edge ",), ("键", "x?")],
)  # fmt: skip
def test_a_told_path_leads_back(where: tuple[str | int, ...]) -> None:
    tree: object = 1
    for step in reversed(where):
        tree = [0] * step + [tree] if isinstance(step, int) else {"other": 2, step: tree}
    assert find_config_places(parse_config_path(format_config_path(where)), tree) == [where]
    assert where in list(iterate_leaves(tree))
