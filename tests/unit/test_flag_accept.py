"""Which flags a person may accept."""

from __future__ import annotations

import pytest

from muster.acts.accepted import accepted_flags, flag_data
from muster.acts.flag_accept import acceptable_flags
from muster.domain.decision import Decision
from muster.domain.errors import MusterError
from muster.ports.store import Event
from muster.report.flag_words import known_codes
from muster.stats.flags import Flag, Measured, Place, of_values


def test_a_mean_over_what_is_no_number_stays_none() -> None:
    raised = of_values([], [Measured("eval/a/0", "a", "0", "id", {"score": None})])
    with pytest.raises(MusterError, match="not_finite can't be accepted: eval/a/0") as refused:
        acceptable_flags("not_finite", raised)
    assert "no word can clear it. A run that diverged" in str(refused.value.hint)


def test_one_that_nobody_may_accept_refuses_all_of_its_code() -> None:
    raised = [Flag("ERROR", "odd", ("a",), "a"), Flag("ERROR", "odd", ("b",), "b failed", acceptable=False)]
    with pytest.raises(MusterError, match="b failed"):
        acceptable_flags("odd", raised)


def test_a_code_without_words_can_be_accepted_too() -> None:
    raised = [Flag("ERROR", "brand_new", ("a",), "odd")]
    assert acceptable_flags("brand_new", raised) == raised
    assert "same_seeds" in known_codes()


def test_what_is_kept_of_a_flag_covers_it_and_what_cannot_be_read_covers_nothing() -> None:
    flags = [
        Flag("ERROR", "same_seeds", ("a",), "odd", {"where": "x"}, Place(("id",), "score", ("0", "2"), ("a",))),
        Flag("ERROR", "same_seeds", ("eval/a/0",), "odd", {"cell": "eval/a/0"}),
    ]
    data = flag_data("same_seeds", flags)
    data["flags"].append({"cells": 7})
    word = Decision("flag", "ann@lab", "looked at", at="2026-02-26T10:30:00+08:00", data=data)
    kept = list(accepted_flags([Event(word, None), Event(word, "refused")]))
    assert [each.covers(flag) for each, flag in zip(kept, flags, strict=True)] == [True, True]
    assert (kept[0].by.who, kept[0].by.because) == ("ann@lab", "looked at")
