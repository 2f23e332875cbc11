"""A search as a proposer, with a sampler that is made up: pools, turns, what is told, what is left."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "contract"))
from proposer_scenes import board, config, tried

from muster.app.loop import search_proposer
from muster.app.loop.search_proposer import SearchProposer, SearchTrial
from muster.model.errors import UsageError
from muster.rules.search_space import Dimension, FittedDimension, SearchSettings, SpacePoint, find_missing_package

LR = Dimension("optimizer.lr", 1e-5, 1e-1, log=True)
ACT = Dimension("act", values=("relu", "gelu"))
WINDOW = Dimension("ot.window", 1, 3, step=1)


@dataclass
class Sampler:
    """Gives what it is told to give, and remembers what it was asked with."""

    given: list[Any]
    asked: list[tuple[list[SearchTrial], str, int]] = field(default_factory=list)

    def __call__(
        self, _: SearchSettings, knobs: Sequence[FittedDimension], trials: Sequence[SearchTrial], better: str, seed: int
    ) -> Iterator[SpacePoint]:
        self.asked.append((list(trials), better, seed))
        for values in itertools.cycle(self.given):
            yield dict(zip((knob.path for knob in knobs), values, strict=True))


def propose(sampler: Sampler, space: tuple[Dimension, ...], *all_tried: Any, trials: int = 2, **more: Any) -> Any:
    return SearchProposer(SearchSettings(space, trials=trials), sampler).propose(board(*all_tried, **more))


def edits(found: Any) -> list[tuple[str, ...]]:
    return [ruling.proposal.edits for _, rulings in found.rulings for ruling in rulings]


def test_points_become_edits_of_the_base() -> None:
    sampler = Sampler([(0.02, 2), (0.03, 3)])
    later = tried("a_1", 0.4, number=2, made=config(lr=0.01, window=1), parent="a")
    found = propose(sampler, (LR, WINDOW), tried("a", 0.5), later)
    assert [name for name, _ in found.rulings] == ["a"]
    assert edits(found) == [("optimizer.lr@set=0.02", "ot.window@set=2"), ("optimizer.lr@set=0.03", "ot.window@set=3")]
    assert found.why == ()


def test_the_sampler_is_told_every_score_and_every_failure() -> None:
    sampler = Sampler([(0.02,)])
    first, second = tried("a", 0.5, 0.7, None), tried("b", None, number=2, made=config(lr=0.01), parent="a")
    outside = tried("c", 0.1, number=2, made=config(lr=0.5), parent="a")
    propose(sampler, (LR,), first, second, outside, trials=1)
    (trials, better, _), = sampler.asked  # fmt: skip
    assert [(each.point, each.value) for each in trials] == [
        ({"optimizer.lr": 0.001}, pytest.approx(0.6)), ({"optimizer.lr": 0.01}, None),
    ]  # fmt: skip
    assert better == "lower"
    assert trials[1].told["why"] == "nothing that it logged"


def test_each_round_draws_anew() -> None:
    sampler = Sampler([(0.02,)])
    propose(sampler, (LR,), tried("a", 0.5), trials=1)
    propose(sampler, (LR,), tried("a", 0.5), tried("b", 0.5, number=2, made=config(lr=0.1)), trials=1)
    assert sampler.asked[0][2] != sampler.asked[1][2]


def test_what_was_tried_is_asked_again_and_a_small_space_ends() -> None:
    known = [tried("a", 0.5, made=config(window=1)), tried("b", 0.5, number=2, made=config(window=3), parent="a")]
    found = propose(Sampler([(1,), (3,)]), (WINDOW,), *known)
    assert edits(found) == [("ot.window@set=2",)]
    assert found.why == ("all 3 points of a have been tried",)
    rest = tried("c", 0.5, number=3, made=config(window=2), parent="a")
    assert edits(propose(Sampler([(1,)]), (WINDOW,), *known, rest)) == []


def test_a_large_space_does_not_ask_for_ever() -> None:
    assert edits(propose(Sampler([(0.001,)]), (LR,), tried("a", 0.5))) == []


def test_configs_that_differ_elsewhere_are_searched_apart_and_in_turn() -> None:
    both = [tried("a", 0.5), tried("b", 0.9, made=config(batch_size=64))]
    sampler = Sampler([(0.02,), (0.03,), (0.04,)])
    found = propose(sampler, (LR,), *both, trials=3)
    assert [(name, len(rulings)) for name, rulings in found.rulings] == [("a", 2), ("b", 1)]
    assert [len(trials) for trials, _, _ in sampler.asked] == [1, 1]
    assert sampler.asked[0][2] != sampler.asked[1][2]
    more = tried("c", 0.5, number=2, made=config(lr=0.09))
    again = propose(Sampler([(0.02,), (0.03,)]), (LR,), *both, more, trials=3)
    assert [(name, len(rulings)) for name, rulings in again.rulings] == [("a", 1), ("b", 2)], "the turn goes on"


def test_bases_that_differ_in_the_space_alone_are_one_search() -> None:
    sampler = Sampler([(0.02,)])
    propose(sampler, (LR,), tried("a", 0.5), tried("b", 0.9, made=config(lr=0.05)), trials=1)
    assert [len(trials) for trials, _, _ in sampler.asked] == [2]


def test_nothing_is_proposed_blindly() -> None:
    found = propose(Sampler([(0.02,)]), (LR,), tried("a", None))
    assert (found.rulings, found.why) == ((), ('no run of a tells last("loss"): nothing that it logged',))


def test_a_base_without_the_path_is_told() -> None:
    found = propose(Sampler([(0.02,)]), (Dimension("optim.lr", 0, 1),), tried("a", 0.5))
    (why,) = found.why
    assert why.startswith("a: optim.lr matches nothing in the config; the nearest: optimizer.lr; ")


def test_it_explains_how_a_variant_stands() -> None:
    first, dead = tried("a", 0.5, 0.7), tried("b", None, number=2, made=config(lr=0.01))
    far = tried("c", 0.1, number=2, made=config(lr=0.5))
    asked = board(first, dead, far)
    proposer = SearchProposer(SearchSettings((LR,)))
    told = [proposer.explain(asked, each)[0] for each in asked.tried]
    assert [each.outcome for each in told] == ["scored", "failed", "scored"]
    assert told[0].because == 'last("loss") = 0.6, the mean of 2 seeds, rank 2 of 2'
    assert told[2].because.endswith("optimizer.lr is 0.5, outside the space: the search does not learn from it")


@pytest.mark.parametrize(("sampler", "lacks"), [("tpe", "optuna"), ("gp", "torch")])
def test_a_package_that_is_missing(sampler: str, lacks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == lacks else object())
    with pytest.raises(UsageError, match=f"loop.search needs the package {lacks}, which is not installed"):
        next(search_proposer.ask_sampler(SearchSettings((LR,), sampler), (), (), "lower", 0))
    assert find_missing_package(sampler) == (
        lacks,
        {"optuna": "pip install 'optuna>=4.2,<6'", "torch": "pip install torch"}[lacks],
    )


def test_the_journal_is_one_that_optuna_reads(tmp_path: Path) -> None:
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    first, dead = tried("a", 0.5, 0.7), tried("b", None, number=2, made=config(lr=0.01, act="gelu"))
    other = tried("z", 0.2, made=config(batch_size=64))
    fresh = tried("c", made=config(lr=0.02), number=3, parent="a")
    proposer = SearchProposer(SearchSettings((LR, ACT)))
    data = proposer.journal(board(first, dead, other), {"a": [(fresh.variant, config(lr=0.02))]})
    (tmp_path / "optuna.log").write_bytes(data)
    storage = JournalStorage(JournalFileBackend(str(tmp_path / "optuna.log")))
    assert optuna.get_all_study_names(storage) == ["loop-a", "loop-z"]
    trials = optuna.load_study(study_name="loop-a", storage=storage).trials
    assert [(each.state.name, each.params["optimizer.lr"]) for each in trials] == [
        ("COMPLETE", 0.001), ("FAIL", 0.01), ("RUNNING", 0.02),
    ]  # fmt: skip
    assert trials[0].value == pytest.approx(0.6)
    assert [each.user_attrs["variant"] for each in trials] == ["a", "b", "c"]
