"""What every proposer keeps: the same for the same, reasons for all, edits that give what they say, nothing changed."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from proposer_scenes import board, config, tried

from muster.app.campaign.proposer_function import ProposerFunction
from muster.app.loop.next_round import plan_next_round
from muster.app.loop.proposers import FunctionProposer, RuleProposer
from muster.app.loop.search_proposer import SearchProposer
from muster.model.campaign import DeclaredLoop, LoopDefault, LoopKeep, LoopRule
from muster.rules.edit_config import digest_config, edit_config_text
from muster.rules.proposal_rules import Ruling, outcome_of_edits
from muster.rules.proposer import FakeProposer, Proposals, Proposer, ProposerInput
from muster.rules.search_space import Dimension, SearchSettings

SPACE = (
    Dimension("optimizer.lr", 1e-5, 1e-1, log=True),
    Dimension("ot.window", 1, 10, step=1),
    Dimension("act", values=("relu", "gelu")),
)
FUNCTION = """\
import random
def propose(run):
    if run["metrics"]["loss"]["last"] < 0.1:
        return None
    factor = round(random.uniform(0.5, 0.9), 3)
    run["config"].clear()
    return [{"edit": f"optimizer.lr@mul={factor}", "reason": "loss is " + str(run["metrics"]["loss"]["last"])},
            {"edit": ["ot.window@add=1"], "reason": "wider", "name": "window"}]
"""
Make = Callable[[Path], Proposer]


def rules(root: Path) -> Proposer:
    return RuleProposer(
        (LoopRule('last("loss") > 0.1', ("optimizer.lr@mul=0.5",), "too large"),),
        LoopDefault(("ot.window@add=1",), "mild"),
    )


def function(root: Path) -> Proposer:
    (root / "mine.py").write_text(FUNCTION)
    return FunctionProposer(ProposerFunction("mine.py:propose", root))


def search(sampler: str) -> Make:
    def made(root: Path) -> Proposer:
        if sampler == "gp":
            pytest.importorskip("torch", reason="the GP sampler needs torch")
        return SearchProposer(SearchSettings(SPACE, sampler, trials=3, seed=7))

    return made


def held(root: Path) -> Proposer:
    at = tried("a", 0.5)
    outcome, because, proposal = outcome_of_edits("held", "held", ("optimizer.lr@mul=0.5",), at.text, at.kind, {})
    return FakeProposer(Proposals((("a", (Ruling("held", "held", outcome, because, None, proposal),)),)))


@pytest.fixture(params=[rules, function, search("tpe"), search("random"), search("gp"), held],
                ids=["rules", "function", "tpe", "random", "gp", "held"])  # fmt: skip
def make(request: pytest.FixtureRequest) -> Make:
    found: Make = request.param
    return found


def scene() -> ProposerInput:
    """Two rounds, a dead run, repeats; more scores than a sampler needs to begin."""
    first = tried("a", 0.5, 0.6)
    rest = [tried(f"a_{at}", 0.4 + at / 10, number=2, made=config(lr=10.0**-at, window=at), parent="a", by="x",
                  edits=(f"optimizer.lr@set={10.0**-at}", f"ot.window@set={at}")) for at in range(1, 7)]  # fmt: skip
    dead = tried("a_9", None, number=2, made=config(lr=0.03), parent="a", by="x")
    return board(first, *rest, dead)


def told(proposals: Proposals) -> list[Any]:
    return [(parent, ruling.rule, ruling.reason, ruling.outcome, ruling.proposal.edits if ruling.proposal else (),
             ruling.proposal.digest if ruling.proposal else "")
            for parent, rulings in proposals.rulings for ruling in rulings]  # fmt: skip


def test_the_same_for_the_same(make: Make, tmp_path: Path) -> None:
    """Whoever is killed and begins again, with a proposer of its own, proposes the same."""
    first, again, other = make(tmp_path), make(tmp_path), make(tmp_path)
    found = told(first.propose(scene()))
    assert found
    assert told(again.propose(scene())) == found
    assert told(again.propose(scene())) == found, "nothing is left of what was asked before"
    other.propose(board(tried("a", 0.9)))
    assert told(other.propose(scene())) == found


def test_every_proposal_says_why_and_gives_what_its_edits_say(make: Make, tmp_path: Path) -> None:
    asked = scene()
    proposals = [
        (asked.named(parent), ruling) for parent, rulings in make(tmp_path).propose(asked).rulings for ruling in rulings
    ]
    made = [(parent, ruling, ruling.proposal) for parent, ruling in proposals if ruling.proposal]
    assert made
    for parent, ruling, proposal in made:
        assert ruling.outcome == "proposed"
        assert (proposal.rule, proposal.reason) == (ruling.rule, ruling.reason)
        assert proposal.rule
        assert proposal.reason.strip()
        again = edit_config_text(parent.text, parent.kind, proposal.edits)
        assert proposal.digest == digest_config(again.tree) == digest_config(json.loads(proposal.edited.text))
        assert again.changed


def test_what_was_asked_is_left_as_it_is(make: Make, tmp_path: Path) -> None:
    asked = scene()
    before = copy.deepcopy(asked)
    proposer = make(tmp_path)
    proposer.propose(asked)
    proposer.explain(asked, asked.tried[0])
    assert asked == before


def test_rounds_never_try_a_config_twice(make: Make, tmp_path: Path) -> None:
    """Four rounds, each scored, through what carries rounds out."""
    settings = DeclaredLoop("train", (), 9, 3, keep=LoopKeep(by='last("loss")', better="lower"))
    known = [tried("a", 0.5)]
    for number in range(2, 6):
        asked = board(*known)
        found = plan_next_round(asked.record, known, settings, 9, make(tmp_path))
        assert found.proposed or found.stopped.startswith("no proposals because ")
        for each in found.proposed:
            assert (each.variant.round, each.variant.by, bool(each.variant.reason)) == (number, each.variant.by, True)
            tree = json.loads(each.text)
            known.append(tried(each.variant.name, abs(tree["optimizer"]["lr"] - 0.01) + 0.2, number=number, made=tree,
                               parent=each.variant.parent, by=each.variant.by))  # fmt: skip
    digests = [each.variant.digest for each in known]
    names = [each.variant.name for each in known]
    assert len(set(digests)) == len(digests)
    assert len(set(names)) == len(names)
    assert len(known) > 1


def test_each_variant_can_be_explained(make: Make, tmp_path: Path) -> None:
    asked, proposer = scene(), make(tmp_path)
    for each in asked.tried:
        if each.summaries or isinstance(proposer, SearchProposer):
            for ruling in proposer.explain(asked, each):
                assert ruling.reason
                assert ruling.outcome
