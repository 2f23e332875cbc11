"""Which flags a person may accept."""

from __future__ import annotations

import pytest

from muster.app.campaign.accepted_flags import find_accepted_flags, flag_decision_data
from muster.app.report.red_flag_text import flags_to_accept, known_flag_codes
from muster.engine.ports.store import LoggedDecision
from muster.model.decision import Decision
from muster.model.errors import MusterError
from muster.stats.flags_of_values import flag_values
from muster.stats.red_flags import FlagPlace, MeasuredCell, RedFlag


def test_a_mean_over_what_is_no_number_stays_none() -> None:
    raised = flag_values([], [MeasuredCell("eval/a/0", "a", "0", "id", {"score": None})])
    with pytest.raises(MusterError, match="not_finite can't be accepted: eval/a/0") as refused:
        flags_to_accept("not_finite", raised)
    assert "no word can clear it. A run that diverged" in str(refused.value.hint)


def test_one_that_nobody_may_accept_refuses_all_of_its_code() -> None:
    raised = [RedFlag("ERROR", "odd", ("a",), "a"), RedFlag("ERROR", "odd", ("b",), "b failed", acceptable=False)]
    with pytest.raises(MusterError, match="b failed"):
        flags_to_accept("odd", raised)


def test_a_code_without_words_can_be_accepted_too() -> None:
    raised = [RedFlag("ERROR", "brand_new", ("a",), "odd")]
    assert flags_to_accept("brand_new", raised) == raised
    assert "same_seeds" in known_flag_codes()


def test_what_is_kept_of_a_flag_covers_it_and_what_cannot_be_read_covers_nothing() -> None:
    flags = [
        RedFlag("ERROR", "same_seeds", ("a",), "odd", {"where": "x"}, FlagPlace(("id",), "score", ("0", "2"), ("a",))),
        RedFlag("ERROR", "same_seeds", ("eval/a/0",), "odd", {"cell": "eval/a/0"}),
    ]
    data = flag_decision_data("same_seeds", flags)
    data["flags"].append({"cells": 7})
    word = Decision("flag", "ann@lab", "looked at", at="2026-02-26T10:30:00+08:00", data=data)
    kept = list(find_accepted_flags([LoggedDecision(word, None), LoggedDecision(word, "refused")]))
    assert [each.covers(flag) for each, flag in zip(kept, flags, strict=True)] == [True, True]
    assert (kept[0].by.who, kept[0].by.because) == ("ann@lab", "looked at")
