"""What people get wrong in edits and rules, and the message they see: what, where, how to fix it."""

from __future__ import annotations

import pytest

from muster.model.campaign import LoopDefault, LoopRule
from muster.rules.config_paths import ONLY_WHAT_IS_THERE
from muster.rules.edit_config import EditsRefused, edit_config_text
from muster.rules.edits import EDIT_EXAMPLE, LARGEST_NUMBER_HINT
from muster.rules.proposal_rules import find_rule_mistakes

CONFIG = """{"model": {"lr": 0.1, "width": 64, "name": "act", "amp": true, "layers": [{"dropout": 0.1}, {"dropout": 0.2}]},
 "optimizer": {"lr": 0.01, "betas": [0.9, 0.999]}, "tag": null, "seed": 1}"""
GOOD = ("model.lr@mul=0.5",)

EDITS = [
    # edits that can't be read
    ("model.lr", f"'model.lr' is no edit: it says no @set=, @mul= or @add=; {EDIT_EXAMPLE}"),
    ("model.lr=5", f"'model.lr=5' is no edit: it says no @set=, @mul= or @add=; {EDIT_EXAMPLE}"),
    ("model.lr@multiply=2", f"'model.lr@multiply=2' is no edit: there is no @multiply; it is @set=, @mul= or @add=; {EDIT_EXAMPLE}"),
    ("model.lr@max=2", f"'model.lr@max=2' is no edit: @max bounds a change, and there is none before it; {EDIT_EXAMPLE}"),
    ("model.lr@mul", f"'model.lr@mul' is no edit: @mul needs a value: @mul=...; {EDIT_EXAMPLE}"),
    ("model.lr@mul=fast", f"'model.lr@mul=fast' is no edit: @mul needs a number, not 'fast'; {EDIT_EXAMPLE}"),
    ("model.lr@mul=1e999", f"'model.lr@mul=1e999' is no edit: @mul=1e999 is too large for a number; {LARGEST_NUMBER_HINT}"),
    ("model.lr@mul=2@max=1e99999", f"'model.lr@mul=2@max=1e99999' is no edit: @max=1e99999 is too large for a number; {LARGEST_NUMBER_HINT}"),
    ("model.lr@set=1e400", f"model.lr@set=1e400: 1e400 is too large for a number; {LARGEST_NUMBER_HINT}"),
    ("tag@set=-1e400", f"tag@set=-1e400: -1e400 is too large for a number; {LARGEST_NUMBER_HINT}"),
    ("model.lr@mul=2@max=", f"'model.lr@mul=2@max=' is no edit: @max needs a number, not ''; {EDIT_EXAMPLE}"),
    ("model.lr@mul=2@max=1@max=3", "'model.lr@mul=2@max=1@max=3' is no edit: @max is given twice; keep one"),
    ("model.lr@mul=2@min=5@max=1", "'model.lr@mul=2@min=5@max=1' is no edit: @min=5 is above @max=1; exchange them"),
    ("model.lr@mul=2@add=1", "'model.lr@mul=2@add=1' is no edit: it asks for two changes; give each of them an edit of its own"),
    ("@set=1", f"'' is no path: it is empty; {EDIT_EXAMPLE}"),
    ("model..lr@set=1", f"'model..lr' is no path: '.lr' at character 7 is neither a key nor an index in brackets; {EDIT_EXAMPLE}"),
    ("model.layers[x]@set=1", f"'model.layers[x]' is no path: '[x]' at character 13 is neither a key nor an index in brackets; {EDIT_EXAMPLE}"),
    ("model.@set=1", f"'model.' is no path: it ends with a dot; {EDIT_EXAMPLE}"),
    # edits that don't fit the config
    ("model.learning_rate@mul=2", f"model.learning_rate matches nothing in the config; the nearest: model.name; {ONLY_WHAT_IS_THERE}"),
    ("OPTIMIZER.LR@mul=2", f"OPTIMIZER.LR matches nothing in the config; the nearest: optimizer.lr, model.lr; {ONLY_WHAT_IS_THERE}"),
    ("fuzz@set=2", f"fuzz matches nothing in the config; {ONLY_WHAT_IS_THERE}"),
    ("lr@mul=2", f"lr matches nothing in the config; the nearest: model.lr, optimizer.lr; {ONLY_WHAT_IS_THERE}"),
    ("model.layers[2].dropout@mul=2", f"model.layers[2].dropout matches nothing in the config; the nearest: model.layers[0].dropout, model.layers[1].dropout; {ONLY_WHAT_IS_THERE}"),
    ("model.layers.0.dropout@mul=2", f"model.layers.0.dropout matches nothing in the config; the nearest: model.layers[0].dropout, model.layers[1].dropout; {ONLY_WHAT_IS_THERE}"),
    ("model.lr.*@mul=2", "model.lr.* leads nowhere: model.lr is a single value, there is nothing below it"),
    ("seed[0]@set=2", "seed[0] leads nowhere: seed is a single value, there is nothing below it"),
    ("model.name@mul=2", "model.name@mul=2: model.name is a text, and @mul needs a number; @set= gives it another value"),
    ("model.layers@add=2", "model.layers@add=2: model.layers is a list, and @add needs a number; @set= gives it another value"),
    ("model.*@mul=2", "model.*@mul=2: model.name is a text, and @mul needs a number; @set= gives it another value (and so for 2 more of 5 places)"),
    ("model.amp@mul=2", "model.amp@mul=2: model.amp is true or false, and @mul needs a number; @set= gives it another value"),
    ("tag@add=1", "tag@add=1: tag is null, and @add needs a number; @set= gives it another value"),
    ("model.amp@set=yes", "model.amp@set=yes: model.amp is true; it takes true or false, not 'yes'"),
    ("model.width@set=wide", "model.width@set=wide: model.width is a number (64), and 'wide' is none"),
    ("optimizer.betas@set=0.9", "optimizer.betas@set=0.9: optimizer.betas is a list, and '0.9' is none; write it as JSON"),
    ("model.name@set=x@max=3", "model.name@set=x@max=3: bounds are for numbers, and 'x' is none; a text in quotes: \"x@max=3\""),
    ("model.lr@mul=1e308@min=1e308", None),
    ("model.width@mul=1e307", None),
    ("model.width@set=1@min=1.2@max=1.8", "model.width@set=1@min=1.2@max=1.8: model.width is an integer, and there is none between @min=1.2 and @max=1.8"),
]  # fmt: skip

RULES = [
    (LoopRule("", GOOD, "r"), 'rule 1, when: column 1: it is empty; for example: last("train.loss") < 0.05'),
    (LoopRule('last("x")', GOOD, "r"), 'rule 1, when: column 1: last("x") is a number, and true or false is needed; compare it: last("x") > 0'),
    (LoopRule('last("x") = 1', GOOD, "r"), "rule 1, when: column 11: = is not known here; write =="),
    (LoopRule('last("x") > 1 && last("y") > 1', GOOD, "r"), "rule 1, when: column 15: && is not known here; write and"),
    (LoopRule("last(ot.pi_sum) < 1", GOOD, "r"), 'rule 1, when: column 6: last needs the key of a metric in quotes; write last("ot.pi_sum")'),
    (LoopRule("ot.pi_sum < 0.05", GOOD, "r"), 'rule 1, when: column 1: ot.pi_sum is no value; a metric is asked for by last("ot.pi_sum")'),
    (LoopRule('lats("x") > 1', GOOD, "r"), "rule 1, when: column 1: there is no function lats; did you mean last?"),
    (LoopRule('__import__("os").system("x") > 1', GOOD, "r"), "rule 1, when: column 1: there is no function __import__; there are last, first, min, max, best, delta, delta_pct, mean, count, nan, slope, window, missing"),
    (LoopRule('last("x") > "y"', GOOD, "r"), 'rule 1, when: column 13: "y" is a text, and `>` needs a number; a text is the key of a metric: last("y")'),
    (LoopRule('last("x") and missing("y")', GOOD, "r"), 'rule 1, when: column 1: last("x") is a number, and `and` needs true or false; compare it: last("x") > 0'),
    (LoopRule('last("x) > 1', GOOD, "r"), 'rule 1, when: column 6: a text is not closed; close it with "'),
    (LoopRule('(last("x") > 1', GOOD, "r"), "rule 1, when: column 15: ) is missing for the bracket in column 1"),
    (LoopRule('last("x") > 1)', GOOD, "r"), "rule 1, when: column 14: ) is out of place behind 1; there is no bracket that it closes"),
    (LoopRule('last("x") > 1 last("y") > 2', GOOD, "r"), "rule 1, when: column 15: last is out of place behind 1; two conditions are joined by and, or"),
    (LoopRule('last("x") >', GOOD, "r"), "rule 1, when: column 12: it ends too early: a value is missing"),
    (LoopRule('window("x", 5) > 1', GOOD, "r"), "rule 1, when: column 16: what of the window is meant; one of .mean, .min, .max, .slope, .last, .first, .delta, .delta_pct, .count, .nan"),
    (LoopRule('window("x", 5).median > 1', GOOD, "r"), "rule 1, when: column 16: a window has no .median; one of .mean, .min, .max, .slope, .last, .first, .delta, .delta_pct, .count, .nan"),
    (LoopRule('window("x", 9999).mean > 1', GOOD, "r"), 'rule 1, when: column 13: the length of a window is a whole number from 1 to 512; for example: window("KEY", 50).mean'),
    (LoopRule('last("x") > 10%', GOOD, "r"), "rule 1, when: column 15: % is not known here; write a number, as in 0.1, or delta_pct"),
    (LoopRule('last("x") > 1', (), "r"), "rule 1, edit: there is none; a rule changes something, as in model.lr@mul=0.5"),
    (LoopRule('last("x") > 1', (*GOOD, "model.lr"), "r"), f"rule 1, edit 2: 'model.lr' is no edit: it says no @set=, @mul= or @add=; {EDIT_EXAMPLE}"),
    (LoopRule('last("x") > 1', GOOD, " "), "rule 1, reason: it is empty; say why, for whoever reads the lineage"),
    (LoopRule('last("x") > 2', GOOD, "r", limit=0), "rule 1, limit: 0 times is never; leave the rule out"),
]  # fmt: skip


@pytest.mark.parametrize(("edit", "message"), [case for case in EDITS if case[1]], ids=lambda value: str(value)[:40])
def test_every_mistake_in_an_edit_has_its_message(edit: str, message: str) -> None:
    with pytest.raises(EditsRefused) as told:
        edit_config_text(CONFIG, "json", [edit])
    assert told.value.mistakes == (message,)


@pytest.mark.parametrize(("rule", "message"), RULES, ids=lambda value: getattr(value, "when", "")[:30] or None)
def test_every_mistake_in_a_rule_has_its_message(rule: LoopRule, message: str) -> None:
    assert [str(mistake) for mistake in find_rule_mistakes([rule])] == [message]


def test_all_mistakes_are_told_at_once_and_nothing_is_half_done() -> None:
    wrong = [edit for edit, message in EDITS if message]
    with pytest.raises(EditsRefused) as told:
        edit_config_text(CONFIG, "json", [*GOOD, *wrong])
    assert list(told.value.mistakes) == [message for _, message in EDITS if message]
    rules = [rule for rule, _ in RULES]
    mistakes = find_rule_mistakes(rules, LoopDefault(("x",), "mild"))
    assert len(mistakes) == len(rules) + 1
    assert str(mistakes[-1]).startswith("default, edit 1: 'x' is no edit: ")


def test_large_numbers_are_no_mistake_while_they_fit() -> None:
    for edit, message in EDITS:
        if message is None:
            edit_config_text(CONFIG, "json", [edit])
    with pytest.raises(EditsRefused, match=r"model.lr would become too large for a number; bound it: @max="):
        edit_config_text(CONFIG, "json", ["model.lr@mul=1e308", "model.lr@mul=1e308"])


def test_the_same_rule_twice() -> None:
    twice = [LoopRule('last("x") > 1', GOOD, "r"), LoopRule('last("x") > 1', GOOD, "again")]
    assert [str(each) for each in find_rule_mistakes(twice)] == [
        "rule 2, when: rule 1 is the same; leave one of them out"
    ]
    named = [LoopRule('last("x") > 1', GOOD, "r", name="n"), LoopRule('last("x") > 2', GOOD, "r", name="n")]
    assert [str(each) for each in find_rule_mistakes(named)] == [
        "rule 2, name: rule 1 is called n, too; give it another name"
    ]
    assert find_rule_mistakes([twice[0], LoopRule('last("x") > 1', ("model.lr@mul=2",), "another way")]) == []
