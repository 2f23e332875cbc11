"""Which red flags void the verdict: those where something is decided, and that nobody accepted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muster.app.campaign.accepted_flags import find_accepted_flags, flag_decision_data
from muster.engine.ports.store import LoggedDecision
from muster.model.decision import Decision
from muster.stats.red_flags import (
    AcceptedFlag,
    CellMaking,
    DecidingColumns,
    FlagAcceptance,
    FlagPlace,
    MeasuredCell,
    RedFlag,
    find_deciding_columns,
    weigh_flags,
)

BY = FlagAcceptance("ann@lab", "2026-02-26T10:30:00+08:00", "looked at both runs")
MEASURED = [
    MeasuredCell(f"{job}/a/0", "a", "0", job, {metric: 1.0})
    for job, metric in (("pong", "score"), ("freeway", "score"))
]
MADE = [
    CellMaking("train/a/0", "a", "0", used_by=("pong/a/0", "freeway/a/0")),
    CellMaking("other/a/0", "a", "0", used_by=("freeway/a/0",)),
    CellMaking("alone/a/0", "a", "0"),
]
PONG = find_deciding_columns([("pong", "score")], MEASURED, MADE)


def voids(flag: RedFlag, deciding: DecidingColumns = PONG, *accepted: AcceptedFlag) -> bool:
    return weigh_flags([flag], deciding, accepted)[0].voids


def flag(*cells: str, **facts: object) -> RedFlag:
    return RedFlag("ERROR", "odd", cells, "odd", **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("raised", "void"),
    [
        (flag("a", place=FlagPlace(("pong",), "score")), True),
        (flag("a", place=FlagPlace(("freeway",), "score")), False),
        (flag("a", place=FlagPlace(("pong",), "time")), False),
        (flag("a", place=FlagPlace(("freeway", "pong"), "score")), True),
        (flag("a", place=FlagPlace(metric="score")), True),
        (flag("pong/a/0", metrics=("score",)), True),
        (flag("pong/a/0", metrics=("time",)), False),
        (flag("freeway/a/0", metrics=("score",)), False),
        (flag("freeway/a/0"), False),
        (flag("pong/a/0", "freeway/a/0"), True),
        (flag("train/a/0"), True),  # a deciding cell rests on it
        (flag("other/a/0"), False),  # what rests on it decides nothing
        (flag("alone/a/0"), True),  # nobody knows what rests on it
        (flag("gone/a/0"), True),
        (flag(), True),
    ],
)
def test_an_error_counts_where_something_is_decided(raised: RedFlag, void: bool) -> None:
    assert voids(raised) is void
    (found,) = weigh_flags([raised], PONG)
    assert (found.level, found.aside) == (("ERROR", False) if void else ("WARN", True))
    assert voids(raised, DecidingColumns()) is True, "where nothing was declared, everything counts"


def test_a_warning_voids_nothing() -> None:
    assert not voids(replace(flag("pong/a/0"), level="WARN"))


def test_a_word_covers_the_flag_that_it_was_given_for_and_no_other() -> None:
    word = AcceptedFlag("odd", ("pong/a/0", "pong/a/1"), BY)
    assert not voids(flag("pong/a/0", "pong/a/1"), PONG, word)
    assert voids(flag("pong/a/0", "pong/a/2"), PONG, word), "another cell was not looked at"
    assert voids(replace(flag("pong/a/0", "pong/a/1"), code="other"), PONG, word)
    assert voids(replace(flag("pong/a/0", "pong/a/1"), acceptable=False), PONG, word), "nobody's word clears it"
    (found,) = weigh_flags([flag("pong/a/0", "pong/a/1")], PONG, [word])
    assert (found.level, found.accepted) == ("ERROR", BY)


def test_a_word_holds_for_its_place() -> None:
    word = AcceptedFlag("odd", ("a",), BY, FlagPlace(("pong",), "score", ("0", "2")))
    assert not voids(flag("a", place=FlagPlace(("pong",), "score", ("0", "2"))), PONG, word)
    assert voids(flag("a", place=FlagPlace(("pong",), "score", ("0", "3"))), PONG, word)


def test_of_a_single_cell_the_facts_must_be_the_same() -> None:
    word = AcceptedFlag("odd", ("pong/a/0",), BY, parts={"what": "score 1 -> 2"})
    assert not voids(flag("pong/a/0", parts={"what": "score 1 -> 2"}), PONG, word)
    assert voids(flag("pong/a/0", parts={"what": "score 1 -> 9"}), PONG, word), "it was changed again"


def test_of_several_cells_the_facts_must_be_the_same_too() -> None:
    """A harmless difference that was accepted lets no other one through on the same cells."""
    facts = {"part": "env LOG", "old": "", "new": "1", "count": "2"}
    word = AcceptedFlag("odd", ("pong/a/0", "pong/a/1"), BY, parts=facts)
    assert not voids(flag("pong/a/0", "pong/a/1", parts=facts), PONG, word)
    assert not voids(flag("pong/a/0", parts={**facts, "count": "1"}), PONG, word), "one of them is fixed"
    assert voids(flag("pong/a/0", "pong/a/1", parts={**facts, "part": "env LR"}), PONG, word)


def test_the_newest_word_is_told() -> None:
    later = replace(BY, because="and asked the author")
    words = [AcceptedFlag("odd", ("pong/a/0",), BY), AcceptedFlag("odd", ("pong/a/0",), later)]
    assert weigh_flags([flag("pong/a/0")], PONG, words)[0].accepted == later


def test_a_word_does_not_cover_a_cell_that_ran_again_since() -> None:
    raised = flag("pong/a/0", "pong/a/1")
    word = Decision("flag", "ann", "looked at both", data=flag_decision_data("odd", [raised]))
    again = Decision("start", "controller", cell="pong/a/1", attempt=2)
    (before,) = find_accepted_flags([LoggedDecision(again), LoggedDecision(word)])
    assert before.covers(raised)
    (after,) = find_accepted_flags([LoggedDecision(word), LoggedDecision(again)])
    assert not after.covers(raised)
    assert after.covers(flag("pong/a/0"))
    assert [
        each.covers(raised)
        for each in find_accepted_flags([LoggedDecision(word), LoggedDecision(again), LoggedDecision(word)])
    ] == [False, True]
