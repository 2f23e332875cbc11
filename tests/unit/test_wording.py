"""Counts and durations as people are told them: one and many, and no short time that reads as 0.0 h."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.locales import load_texts
from muster.text.catalogue import load_catalogue
from muster.text.phrases import phrase
from muster.text.sentences import (
    end_with_full_stop,
    fill_sentence,
    format_duration,
    split_duration,
    strip_full_stop,
)

ENGLISH = {**load_texts("report", "en"), **load_texts("cost", "en")}
PLURAL = re.compile(r"\{\w+\} (seeds|cells|attempts|runs|rows|files|lines|commits|flags|configs)\b")
# never about one: ranges, limits of a rule, sample sizes that a test needs
MANY = {"seeds.unequal", "seeds.unequal_no_plan", "fit.few", "reading.few", "dominates.few", "change.seeds", "next.over",
        "next.over_now", "note.no_bold.few", "note.iqm", "decision.commits", "decision.code_known"}  # fmt: skip


def test_counts() -> None:
    assert [phrase("count.cell", n=n) for n in (0, 1, 2)] == ["0 cells", "1 cell", "2 cells"]
    assert [phrase("count.process", n=n) for n in (1, 2)] == ["1 process", "2 processes"]


def test_a_text_chooses_between_one_and_many() -> None:
    text = "{n} {n:seed is|seeds are} missing; {n:the one|all {n}} of {name}; {share:.1f}"
    parts: dict[str, object] = {"name": "a|b", "share": 0.25}
    assert fill_sentence(text, {**parts, "n": 1}) == "1 seed is missing; the one of a|b; 0.2"
    assert fill_sentence(text, {**parts, "n": 3}) == "3 seeds are missing; all 3 of a|b; 0.2"


def test_durations() -> None:
    told = [0, 0.04, 3.21, 11.6, 119, 120, 3599, 3600, 3600 * 99, 3600 * 762.4]
    assert [format_duration(each) for each in told] == [
        "0 s", "0.0 s", "3.2 s", "12 s", "119 s", "2 min", "60 min", "1.0 h", "99.0 h", "762 h",
    ]  # fmt: skip
    assert load_catalogue("report", "zh").span(600) == "10 分钟"


@given(st.floats(min_value=0.1, max_value=1e9))
def test_no_duration_reads_as_nothing(seconds: float) -> None:
    number, unit = split_duration(seconds)
    told = float(number) * {"s": 1, "min": 60, "h": 3600}[unit]
    assert told == pytest.approx(seconds, rel=0.5)


def test_no_english_sentence_speaks_of_one_as_many() -> None:
    slips = [key for key, text in ENGLISH.items() if "|" not in text and PLURAL.search(text) and key not in MANY]
    assert slips == []


def test_one_seed_and_one_cell() -> None:
    w, say = load_catalogue("report", "en"), load_catalogue("record", "en")
    assert w("seeds.at_no_look", n=1, looks="5", last=5) == "1 seed is no declared look (looks at 5 seeds)."
    assert w("seeds.looks", n=1, looks="1", last=1) == "1 seed is a declared look (looks at 1 seed)."
    few = w("safety.sentence_few", config="a", standing="undetermined", rule="cost ≤ 2", keep=1, n=1)
    assert "1 of 1 seed keeps it" in few
    assert w("claim.matrix_whole", n=1) == "The one declared cell that carries results is there."
    assert w("claim.matrix_whole", n=6) == "All 6 declared cells that carry results are there."
    assert say("means.complete", n=1).startswith("The one declared cell is DONE")
    assert "these" not in say("fix.up", n=1, count="1 cell", cells="`t/0`")


@pytest.mark.parametrize(
    ("text", "sentence", "part"),
    [
        ("it died", "it died.", "it died"), ("push it to the hub.", "push it to the hub.", "push it to the hub"),
        ("and so on...", "and so on...", "and so on..."), ("why?", "why?", "why?"), ("死亡。", "死亡。", "死亡"),
    ],
)  # fmt: skip
def test_one_full_stop(text: str, sentence: str, part: str) -> None:
    assert (end_with_full_stop(text), strip_full_stop(text)) == (sentence, part)
