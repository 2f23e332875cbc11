"""A function of the user's as a proposer: what it gets, what it may return, how its mistakes are told."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "contract"))
from proposer_scenes import board, config, tried

from muster.app.campaign.proposer_function import ProposerFunction
from muster.app.loop.proposers import FunctionProposer
from muster.model.errors import MusterError

WRITING = """\
import json
def propose(run):
    with open(__file__ + ".json", "w") as file:
        json.dump(run, file)
"""


def propose(root: Path, body: str, *all_tried: Any, name: str = "mine.py:propose") -> Any:
    (root / "mine.py").write_text(body)
    return FunctionProposer(ProposerFunction(name, root)).propose(board(*(all_tried or (tried("a", 0.5),))))


def returning(what: str) -> str:
    return f"def propose(run):\n    return {what}\n"


def told(found: Any) -> list[tuple[str, str, tuple[str, ...]]]:
    return [
        (ruling.rule, ruling.outcome, ruling.proposal.edits if ruling.proposal else ())
        for _, rulings in found.rulings
        for ruling in rulings
    ]


def test_what_it_gets(tmp_path: Path) -> None:
    child = tried(
        "a_1",
        0.4,
        0.6,
        number=2,
        made=config(lr=0.01),
        parent="a",
        edits=("optimizer.lr@set=0.01",),
        reason="r",
        by="x",
    )
    propose(tmp_path, WRITING, tried("a", 0.5), child)
    got = json.loads((tmp_path / "mine.py.json").read_text())
    assert (got["variant"], got["round"], got["config"], got["score"]) == ("a_1", 3, config(lr=0.01), 0.5)
    assert (got["metrics"]["loss"]["last"], got["metrics"]["loss"]["tail"]) == (0.5, [1.0, 0.5])
    assert [each["variant"] for each in got["lineage"]] == ["a", "a_1"]
    assert got["lineage"][1] == {
        "variant": "a_1", "round": 2, "parent": "a", "edits": ["optimizer.lr@set=0.01"], "reason": "r", "by": "x",
    }  # fmt: skip
    assert [(each["variant"], each["score"]) for each in got["tried"]] == [("a", 0.5), ("a_1", 0.5)]
    assert [each["verdict"] for each in got["runs"]] == ["DONE", "DONE"]


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ("None", [("mine.py:propose", "false", ())]), ("[]", [("mine.py:propose", "false", ())]),
        ("[{'edit': 'batch_size@mul=2', 'reason': 'r', 'name': 'n'}]", [("n", "proposed", ("batch_size@mul=2",))]),
        ("({'edit': ('batch_size@mul=2',), 'reason': 'r'},)", [("mine.py:propose", "proposed", ("batch_size@mul=2",))]),
        ("[{'edit': ['x@mul=2'], 'reason': 'r'}]", [("mine.py:propose", "refused", ())]),
        ("[{'edit': ['batch_size@div=2'], 'reason': 'r'}]", [("mine.py:propose", "refused", ())]),
        ("[{'edit': ['batch_size@mul=1'], 'reason': 'r'}]", [("mine.py:propose", "idle", ())]),
        ("[{'edit': ['batch_size@mul=2'], 'reason': 'r'}] * 2",
         [("mine.py:propose", "proposed", ("batch_size@mul=2",)), ("mine.py:propose", "same", ())]),
        ("[{'config': run['config'], 'reason': 'r'}]", [("mine.py:propose", "idle", ())]),
        ("[{'config': {**run['config'], 'act': 'gelu', 'ot': {'window': 5, 'new': 1}}, 'reason': 'r'}]",
         [("mine.py:propose", "proposed", ('act@set="gelu"', 'ot@set={"window": 5, "new": 1}'))]),
        ("[{'config': {**run['config'], 'act': 5}, 'reason': 'r'}]", [("mine.py:propose", "refused", ())]),
    ],
)  # fmt: skip
def test_what_it_may_return(tmp_path: Path, returned: str, expected: Any) -> None:
    assert told(propose(tmp_path, returning(returned))) == expected


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("5", "it returned 5 and not a list"), ("[5]", "item 1 is 5 and not a mapping"),
        ("[{'edits': ['a@set=1'], 'reason': 'r'}]", "item 1 has the key 'edits'; did you mean 'edit'?"),
        ("[{'edit': ['a@set=1']}]", "item 1 has no reason"), ("[{'reason': 'r'}]", "item 1 needs either 'edit' or 'config'"),
        ("[{'edit': [], 'reason': 'r'}]", "item 1: edit is []"), ("[{'edit': 5, 'reason': 'r'}]", "item 1: edit is 5"),
        ("[{'config': {}, 'reason': 'r'}]", "item 1: the config lacks optimizer, batch_size, act, ot of its parent"),
        ("[{'config': {**run['config'], 'warmup': 5}, 'reason': 'r'}]", "the config has warmup, which its parent has not"),
        ("[{'config': {**run['config'], 'act': object()}, 'reason': 'r'}]", "item 1: the config is no plain data"),
    ],
)  # fmt: skip
def test_what_it_may_not_return(tmp_path: Path, returned: str, said: str) -> None:
    with pytest.raises(MusterError) as caught:
        propose(tmp_path, returning(returned))
    assert said in caught.value.message
    assert caught.value.where == "mine.py:propose"


@pytest.mark.parametrize(
    ("body", "said", "where"),
    [
        ("def propose(run):\n    return run['x']\n", "KeyError: 'x'", "mine.py, line 2"),
        ("def propose(run):\n    import json\n    json.loads('{')\n", "JSONDecodeError", "mine.py, line 3"),
        ("import sys\ndef propose(run):\n    sys.exit('enough')\n", "SystemExit: enough", "mine.py, line 3"),
        ("1 / 0\ndef propose(run): pass\n", "ZeroDivisionError", "mine.py, line 1"),
        ("def propose(run):\n    return [\n", "was never closed", "mine.py:propose"),
        ("def other(run): pass\n", "mine.py has no function propose", "mine.py:propose"),
        ("propose = 5\n", "propose is no function", "mine.py"),
        ("import nowhere_at_all\ndef propose(run): pass\n", "No module named 'nowhere_at_all'", "mine.py, line 1"),
    ],
)  # fmt: skip
def test_its_mistakes_are_told_by_file_and_line(tmp_path: Path, body: str, said: str, where: str) -> None:
    with pytest.raises(MusterError) as caught:
        propose(tmp_path, body)
    assert said in caught.value.message
    assert caught.value.where == where


def test_a_module_beside_the_campaign(tmp_path: Path) -> None:
    (tmp_path / "rules_of_mine").mkdir()
    (tmp_path / "rules_of_mine" / "__init__.py").write_text("")
    (tmp_path / "rules_of_mine" / "first.py").write_text("from .second import propose\n")
    (tmp_path / "rules_of_mine" / "second.py").write_text("def propose(run):\n    return 1 / len(run['variant'][1:])\n")
    entry = ProposerFunction("rules_of_mine.first:propose", tmp_path)
    before = list(sys.path)
    try:
        assert entry.mistake() == ("", "")
        with pytest.raises(MusterError) as caught:
            FunctionProposer(entry).propose(board(tried("a", 0.5)))
        assert caught.value.where == "rules_of_mine/second.py, line 2"
    finally:
        for name in [name for name in sys.modules if name.startswith("rules_of_mine")]:
            del sys.modules[name]
    assert sys.path == before
    assert not list(tmp_path.rglob("__pycache__"))


def test_chance_is_the_same_again_and_everybody_elses_is_left_alone(tmp_path: Path) -> None:
    body = "import random\n" + returning("[{'edit': f'batch_size@set={random.randrange(10**6)}', 'reason': 'r'}]")
    random.seed(5)
    expected = random.random()
    random.seed(5)
    first = told(propose(tmp_path, body))
    assert told(propose(tmp_path, body)) == first
    assert random.random() == expected


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert ProposerFunction("none.py:f", tmp_path).mistake()[0] == "none.py can't be read: No such file or directory"
    assert ProposerFunction("no_such_package.x:f", tmp_path).mistake()[0] == "there is no module no_such_package.x"
