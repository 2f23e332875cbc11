"""What `muster check` says of a loop's rules, before anything is spent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from muster.app.campaign.check_gates_and_loop import find_proposer_mistakes
from muster.app.campaign.run_configs import find_base_variants
from muster.spec import read_campaign
from muster.spec.read_yaml import locate_mistakes

HEAD = "muster: 1\ncampaign: c\njobs: {t: {axes: [], command: run}}\nloop:\n  job: t\n  base: ['*.json', '*.yaml']\n"
NEW = "an edit changes what is there: add a new key to the config first"
IN_VAIN = "where that is so, it proposes nothing"
NOTHING = "what it proposes is the same config, which is not run again; change an edit, or leave it out"
ACT_OT = {
    "ot": {"window": 2, "lambda_ot": 0.1,
           "loss_config": {"reg": 0.1, "tau_src": 1, "tau_tgt": 1, "features": [{"weight_label": 1}]}},
    "optimizer": {"lr": 0.1, "weight_decay": 0.0}, "batch_size": 8,
}  # fmt: skip


def told(root: Path, loop: str, **bases: Any) -> list[str]:
    for name, values in bases.items():
        (root / f"{name}.json").write_text(json.dumps(values))
    parsed = read_campaign(HEAD + loop, file="campaign.yaml", folder=str(root))
    found, mistakes = find_base_variants(parsed.campaign.loop.base if parsed.campaign.loop else (), root)
    noticed = locate_mistakes(list(find_proposer_mistakes(parsed.campaign.loop, found, root)), HEAD + loop)
    assert [each for each in mistakes if "that fits" not in each.message] == []
    return [f"{each.line}:{each.column} {each.level}: {each.message} [{each.hint}]" for each in noticed]


def rule(edit: str, *, name: str = "", when: str = "1 < 2") -> str:
    named = f", name: {name}" if name else ""
    return f"    - {{when: {when}, edit: [{edit}], reason: r{named}}}\n"


def test_two_rules_of_one_name(tmp_path: Path) -> None:
    rules = "  rules:\n" + rule("a@mul=2", name="n") + rule("a@mul=3", name="n")
    assert told(tmp_path, rules, base={"a": 1}) == ["9:55 error: rule 1 is called n, too [give it another name]"]


def test_the_same_rule_twice(tmp_path: Path) -> None:
    rules = "  rules:\n" + rule("a@mul=2") + rule("a@mul=2")
    assert told(tmp_path, rules, base={"a": 1}) == ["9:14 error: rule 1 is the same [leave one of them out]"]


def test_a_name_of_the_ready_set(tmp_path: Path) -> None:
    rules = "  use: act_ot\n  rules:\n" + rule("batch_size@mul=2", name="act_ot.flat_l1")
    said = "9:64 error: a rule of act_ot is called act_ot.flat_l1, too [give it another name]"
    assert told(tmp_path, rules, base=ACT_OT) == [said]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ("b@mul=2, siz@mul=2", f"8:37 error: base: siz matches nothing in the config [the nearest: size; {NEW}]"),
        ("name@mul=2", "8:28 error: base: name@mul=2: name is a text, and @mul needs a number [@set= gives it another value]"),
        ("size@set=large", "8:28 error: base: size@set=large: size is a number (3), and 'large' is none "
         "[name a path and a value that fit the config]"),
    ],
)  # fmt: skip
def test_an_edit_that_fits_no_base(tmp_path: Path, edit: str, said: str) -> None:
    base = {"size": 3, "name": "x", "b": 1}
    assert told(tmp_path, "  rules:\n" + rule(edit), base=base) == [said]
    default = f"  default: {{edit: [b@mul=2, {edit.rpartition(', ')[2]}], reason: r}}\n"
    assert [each.partition(" ")[2] for each in told(tmp_path, default, base=base)] == [said.partition(" ")[2]]
    also = [each.replace("base: ", "", 1) for each in told(tmp_path, "  rules:\n" + rule(edit), other=base)]
    assert also == [said.replace("base: ", "").replace(" [", " (in every base) [", 1)]


def test_an_edit_that_fits_some_bases(tmp_path: Path) -> None:
    rules = "  rules:\n" + rule("size@mul=2")
    assert told(tmp_path, rules, a={"size": 1}, b={"x": 1}, c={"size": 2}) == [
        f"8:28 warning: size matches nothing in the config (in b, 1 of 3 bases) [{NEW}; {IN_VAIN}]"
    ]


def test_what_another_rule_brings_is_not_missed(tmp_path: Path) -> None:
    """A config may take later what no base takes."""
    rules = "  rules:\n" + rule("'ot@set={\"reg\": 1}'") + rule("ot.reg@mul=2", when="2 < 3")
    said = "9:28 warning: base: ot.reg leads nowhere: ot is a single value, there is nothing below it"
    assert told(tmp_path, rules, base={"ot": None}) == [f"{said} [{IN_VAIN}]"]


def test_what_changes_nothing(tmp_path: Path) -> None:
    default = "  default: {edit: [size@mul=1], reason: r}\n"
    assert told(tmp_path, default, base={"size": 3}) == [f"7:19 warning: it changes nothing: size stays 3 [{NOTHING}]"]
    assert told(tmp_path, default.replace("=1", "=2@max=3"), base={"size": 3}) == [
        f"7:19 warning: it changes nothing: size stays 3 (held at 3) [{NOTHING}]"
    ]
    assert told(tmp_path, default.replace("=1", "=2@max=3"), other={"size": 2}) == []
    assert told(tmp_path, "  rules:\n" + rule("size@add=0")) == [
        f"8:27 warning: it changes nothing: size stays 3, size stays 2 [{NOTHING}]"
    ]
    bounded = "  rules:\n" + rule("size@mul=2@max=3") + rule("size@set=3", when="2 < 3")
    assert told(tmp_path, bounded) == [], "what others change may come back"


def test_what_a_ready_set_misses(tmp_path: Path) -> None:
    use = "  use: act_ot\n"
    assert told(tmp_path, use, a=ACT_OT) == []
    hint = "those of its rules would fire in vain; add them to the config, or write rules of your own"
    lacks = {key: value for key, value in ACT_OT.items() if key != "optimizer"}
    assert told(tmp_path, use, b=lacks) == [
        f"7:8 warning: act_ot edits 2 paths that can't be edited in b, 1 of 2 bases: optimizer.lr, "
        f"optimizer.weight_decay [{hint}]"
    ]
    assert told(tmp_path, use, a=lacks, b={**lacks, "batch_size": "many"}) == [
        f"7:8 warning: act_ot edits 2 paths that can't be edited in any base: optimizer.lr, "
        f"optimizer.weight_decay [{hint}]",
        f"7:8 warning: act_ot edits 1 path that can't be edited in b, 1 of 2 bases: batch_size [{hint}]",
    ]
    own = "  use: act_ot\n  default: {edit: [batch_size@mul=2], reason: r}\n"
    assert told(tmp_path, own, a=ACT_OT, b=ACT_OT) == [], "the set's own default is not asked for"


def test_a_space_that_does_not_fit(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    search = '  keep: {by: last("x")}\n  search: {space: {name: {low: 0, high: 1}}}\n'
    assert told(tmp_path, search, base={"name": "adam"}) == [
        "8:26 error: base: name is a text, and can't be 0.0 [give it values that fit there, or another path]"
    ]


def test_one_round_needs_no_proposer(tmp_path: Path) -> None:
    assert told(tmp_path, "  rounds: 1\n", base={"a": 1}) == []
