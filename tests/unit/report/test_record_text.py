"""The record as text, in both languages, against what a person read and found good."""

from __future__ import annotations

import os
import re
import string
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from record_scene import reference

from muster.app.facts.record_facts import AbsentCells, Observation, ProposedFix, RecordFacts
from muster.app.record.record_markdown import format_record_span, record_markdown
from muster.locales import load_texts
from muster.text.catalogue import load_catalogue
from muster.text.escape_markup import escape_sentence
from muster.text.sentences import format_inline_code, group_cell_names

GOLDEN = Path(__file__).parent / "golden_record"
LANGUAGES = ("en", "zh")
EN, ZH = load_texts("record", "en"), load_texts("record", "zh")


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_reference_story(language: str) -> None:
    """Changed on purpose? `MUSTER_GOLDEN=write pytest ...`, then read what it wrote."""
    text, file = record_markdown(reference(language)), GOLDEN / f"{language}.md"
    if os.environ.get("MUSTER_GOLDEN") == "write":
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def test_both_languages_have_the_same_sections_in_the_order_of_the_reference() -> None:
    texts = {language: record_markdown(reference(language)) for language in LANGUAGES}
    heads = {language: re.findall(r"^## (.*)$", text, re.MULTILINE) for language, text in texts.items()}
    assert heads["en"] == [
        "Scope and constraints", "Changes", "Observations in order", "Current status",
        "Missing cells, and why each is missing", "What this means", "Proposed fix (not executed)", "Where the evidence lies",
    ]  # fmt: skip
    assert len(heads["zh"]) == len(heads["en"])
    shape = {lang: [re.match(r" *[-#`]*", line)[0] for line in text.splitlines()] for lang, text in texts.items()}  # type: ignore[index]
    assert shape["zh"] == shape["en"], "what one says the other says too, line by line"


def test_both_languages_have_a_text_for_everything_with_the_same_parts() -> None:
    only_zh = {key for key in ZH if key.startswith("cause.")}
    assert ZH.keys() - only_zh == EN.keys()
    for key, text in EN.items():
        one = text.partition("|")[0] if not re.search(r"\{\w+:", text) else text
        parts = {each[1] for each in string.Formatter().parse(one) if each[1]}
        other = {each[1] for each in string.Formatter().parse(ZH[key]) if each[1]}
        assert other <= parts | {"n", "done"}, key


def test_secrets_stay_where_they_are() -> None:
    text = record_markdown(reference("en"))
    assert "`WANDB_API_KEY` (value not shown)" in text
    assert "`MUJOCO_GL=egl`" in text


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_campaign_that_is_complete(language: str) -> None:
    done = replace(reference(language), counts={"DONE": 26}, absent=(), fixes=(), hold=None, intent="running", quiet=0)
    text = record_markdown(done)
    assert {"en": "- Nothing has to be done\n", "zh": "- 无需任何操作\n"}[language] in text
    assert {"en": "None: every declared cell is DONE", "zh": "没有：所有声明的单元都已完成"}[language] in text


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_campaign_that_goes_on(language: str) -> None:
    alive = AbsentCells(("train/a/0",), "RUNNING", "alive", {"state": "RUNNING", "reason": "step 3 of 9"})
    facts = replace(
        reference(language), counts={"DONE": 1, "RUNNING": 1}, absent=(alive,), fixes=(), hold=None, intent="running",
        alive=True, declared=2,
    )  # fmt: skip
    text = record_markdown(facts)
    assert "`muster wait`" in text
    assert "`train/a/0`" in text
    assert {"en": "1 running", "zh": "1 个正在运行"}[language] in text
    assert {"en": "nothing has to be restarted", "zh": "不需要重启"}[language] in text


@pytest.mark.parametrize("language", LANGUAGES)
def test_nothing_yet(language: str) -> None:
    bare = RecordFacts(
        "c", "/c", language, "2026-02-25T03:16:00Z", "0.1.0", 1, {"PENDING": 1}, "down", False, (), (), "gpus: 0"
    )  # type: ignore[arg-type]
    text = record_markdown(replace(bare, absent=(AbsentCells(("t",), "PENDING", "never_down", {"reason": "x"}),)))
    assert {"en": "Nothing has been recorded yet", "zh": "尚无任何记录"}[language] in text


@pytest.mark.parametrize("why", sorted(key[4:] for key in EN if key.startswith("why.")))
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_reason_has_a_sentence(language: str, why: str) -> None:
    parts = dict.fromkeys(("who", "only", "reason", "next", "n", "cause", "confidence", "state"), "x")
    absent = AbsentCells(("train/a/0",), "DEAD", why, {**parts, "at": "2026-02-25T03:16:00Z", "needs": "train/b/1"})
    text = record_markdown(replace(reference(language), absent=(absent,), fixes=()))
    assert "- `train/a/0`" in text


def kinds() -> list[str]:
    """Of observations; the others are parts of their sentences."""
    parts = re.compile(r"none|unseen|quiet|evidence|line|path|routine_.*|.*_many")
    found = {key[5:] for key in EN if key.startswith("seen.")}
    return sorted(kind for kind in found if not parts.fullmatch(kind))


@pytest.mark.parametrize("kind", kinds())
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_observation_has_a_sentence(language: str, kind: str) -> None:
    parts = dict.fromkeys(
        (
            "who",
            "only",
            "left",
            "why",
            "n",
            "cause",
            "confidence",
            "now",
            "was",
            "before",
            "what",
            "code",
            "axis",
            "old",
            "new",
            "path",
        ),
        "x",
    )
    seen = Observation(kind, "2026-02-25T03:16:00Z", parts={**parts, "took": "3", "left": "1"}, cells=("train/a/0",))
    many = replace(seen, count=3, cells=("train/a/0", "train/a/1", "train/a/2"), until="2026-02-25T04:00:00Z")
    text = record_markdown(replace(reference(language), seen=(seen, many), unseen=5))
    assert "2026-02-25 03:16:00 – 04:00:00" in text
    assert "{" not in re.sub(r"`[^`]*`", "", text)


@pytest.mark.parametrize("why", ["release", "accept", "retry", "retry_advice", "up", "up_same"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_fix_has_a_sentence(language: str, why: str) -> None:
    fix = ProposedFix("muster x", why, dict.fromkeys(("reason", "cause", "advice", "same"), "x"), ("train/a/0",))
    text = record_markdown(replace(reference(language), fixes=(fix,)))
    assert "- `muster x`\n" in text


# -- small things


def test_cells_are_named_together() -> None:
    assert group_cell_names(["train/a/0", "train/a/1", "train/b/2"]) == ["train/a/{0,1}", "train/b/2"]
    assert group_cell_names([f"eval/{c}/{s}/{p}" for c in "ab" for s in "01" for p in ("id", "ood")]) == [
        "eval/{a,b}/{0,1}/{id,ood}"
    ]
    assert group_cell_names(["plots", "train/a/0", "plots"]) == ["plots", "train/a/0"]
    assert group_cell_names(["train/0", "eval/0"]) == ["train/0", "eval/0"], "jobs stay apart"
    assert group_cell_names([]) == []


@given(st.sets(st.tuples(st.sampled_from("te"), st.sampled_from("abc"), st.sampled_from("012"), st.sampled_from("xy"))))
def test_names_expand_to_just_these_cells(cells: set[tuple[str, ...]]) -> None:
    def expand(text: str) -> list[str]:
        found = re.search(r"\{([^}]*)\}", text)
        return [text] if not found else [
            each for value in found[1].split(",") for each in expand(text[: found.start()] + value + text[found.end() :])
        ]  # fmt: skip

    names = sorted("/".join(cell) for cell in cells)
    assert sorted(each for text in group_cell_names(names) for each in expand(text)) == names


def test_other_peoples_words_are_no_markup() -> None:
    assert escape_sentence("a *b* `c*d*` <e> _f_ v2_full") == r"a \*b\* `c*d*` \<e> \_f\_ v2_full"
    assert escape_sentence("one ` alone") == r"one \` alone"
    assert format_inline_code("a `b` c") == "`` a `b` c ``"
    assert format_inline_code("plain") == "`plain`"


def test_spans() -> None:
    en, zh = load_catalogue("record", "en"), load_catalogue("record", "zh")
    assert [format_record_span(s, en) for s in (0.2, 30, 600, 9000)] == [
        "less than a second",
        "30 s",
        "10 min",
        "2.5 h",
    ]
    assert [format_record_span(s, zh) for s in (0.2, 30, 600, 9000)] == ["<1 秒", "30 秒", "10 分钟", "2.5 小时"]


@given(st.text())
def test_any_note_stays_on_its_line(note: str) -> None:
    seen = Observation(
        "note", "2026-02-25T03:16:00Z", parts={"who": "me", "why": note}, evidence=(note,), lines=(note,)
    )
    usual = record_markdown(
        replace(reference("en"), seen=(replace(seen, parts={"who": "me", "why": "x"}, evidence=("x",), lines=("x",)),))
    )
    odd = record_markdown(replace(reference("en"), seen=(seen,)))
    assert odd.count("\n") == usual.count("\n")
