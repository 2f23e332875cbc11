"""Which red flags void the verdict: those where something is decided, and that nobody accepted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muster.acts.accepted import accepted_flags, flag_data
from muster.domain.decision import Decision
from muster.ports.store import Event
from muster.stats.flag_types import Acceptance, Flag, Made, Measured, Place
from muster.stats.flag_weight import AcceptedFlag, Deciding, deciding_of, weighed

BY = Acceptance("ann@lab", "2026-02-26T10:30:00+08:00", "looked at both runs")
MEASURED = [
    Measured(f"{job}/a/0", "a", "0", job, {metric: 1.0}) for job, metric in (("pong", "score"), ("freeway", "score"))
]
MADE = [
    Made("train/a/0", "a", "0", used_by=("pong/a/0", "freeway/a/0")),
    Made("other/a/0", "a", "0", used_by=("freeway/a/0",)),
    Made("alone/a/0", "a", "0"),
]
PONG = deciding_of([("pong", "score")], MEASURED, MADE)


def voids(flag: Flag, deciding: Deciding = PONG, *accepted: AcceptedFlag) -> bool:
    return weighed([flag], deciding, accepted)[0].voids


def flag(*cells: str, **facts: object) -> Flag:
    return Flag("ERROR", "odd", cells, "odd", **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("raised", "void"),
    [
        (flag("a", place=Place(("pong",), "score")), True),
        (flag("a", place=Place(("freeway",), "score")), False),
        (flag("a", place=Place(("pong",), "time")), False),
        (flag("a", place=Place(("freeway", "pong"), "score")), True),
        (flag("a", place=Place(metric="score")), True),
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
def test_an_error_counts_where_something_is_decided(raised: Flag, void: bool) -> None:
    assert voids(raised) is void
    (found,) = weighed([raised], PONG)
    assert (found.level, found.aside) == (("ERROR", False) if void else ("WARN", True))
    assert voids(raised, Deciding()) is True, "where nothing was declared, everything counts"


def test_a_warning_voids_nothing() -> None:
    assert not voids(replace(flag("pong/a/0"), level="WARN"))


def test_a_word_covers_the_flag_that_it_was_given_for_and_no_other() -> None:
    word = AcceptedFlag("odd", ("pong/a/0", "pong/a/1"), BY)
    assert not voids(flag("pong/a/0", "pong/a/1"), PONG, word)
    assert voids(flag("pong/a/0", "pong/a/2"), PONG, word), "another cell was not looked at"
    assert voids(replace(flag("pong/a/0", "pong/a/1"), code="other"), PONG, word)
    assert voids(replace(flag("pong/a/0", "pong/a/1"), acceptable=False), PONG, word), "nobody's word clears it"
    (found,) = weighed([flag("pong/a/0", "pong/a/1")], PONG, [word])
    assert (found.level, found.accepted) == ("ERROR", BY)


def test_a_word_holds_for_its_place() -> None:
    word = AcceptedFlag("odd", ("a",), BY, Place(("pong",), "score", ("0", "2")))
    assert not voids(flag("a", place=Place(("pong",), "score", ("0", "2"))), PONG, word)
    assert voids(flag("a", place=Place(("pong",), "score", ("0", "3"))), PONG, word)


def test_of_a_single_cell_the_facts_must_be_the_same() -> None:
    word = AcceptedFlag("odd", ("pong/a/0",), BY, parts={"what": "score 1 -> 2"})
    assert not voids(flag("pong/a/0", parts={"what": "score 1 -> 2"}), PONG, word)
    assert voids(flag("pong/a/0", parts={"what": "score 1 -> 9"}), PONG, word), "it was changed again"


def test_of_several_cells_the_facts_must_be_the_same_too() -> None:
    """A harmless difference that was accepted lets no other one through on the same cells."""
    facts = {"part": "env LOG", "old": "", "new": "1", "count": "2"}
    word = AcceptedFlag("odd", ("pong/a/0", "pong/a/1"), BY, parts=facts)
    assert not voids(flag("pong/a/0", "pong/a/1", parts=facts), PONG, word)
    assert not voids(flag("pong/a/0", parts={**facts, "count": "1"}), PONG, word), "one of them is mended"
    assert voids(flag("pong/a/0", "pong/a/1", parts={**facts, "part": "env LR"}), PONG, word)


def test_the_newest_word_is_told() -> None:
    later = replace(BY, because="and asked the author")
    words = [AcceptedFlag("odd", ("pong/a/0",), BY), AcceptedFlag("odd", ("pong/a/0",), later)]
    assert weighed([flag("pong/a/0")], PONG, words)[0].accepted == later


def test_a_word_does_not_cover_a_cell_that_ran_again_since() -> None:
    raised = flag("pong/a/0", "pong/a/1")
    word = Decision("flag", "ann", "looked at both", data=flag_data("odd", [raised]))
    again = Decision("start", "controller", cell="pong/a/1", attempt=2)
    (before,) = accepted_flags([Event(again), Event(word)])
    assert before.covers(raised)
    (after,) = accepted_flags([Event(word), Event(again)])
    assert not after.covers(raised)
    assert after.covers(flag("pong/a/0"))
    assert [each.covers(raised) for each in accepted_flags([Event(word), Event(again), Event(word)])] == [False, True]
