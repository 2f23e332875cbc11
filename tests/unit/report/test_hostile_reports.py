"""Text of a run in a report is text: no link, picture, markup, formula or code of a terminal comes of it."""

from __future__ import annotations

import csv
import dataclasses
import io
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loop_scenes import small
from markdown_it import MarkdownIt
from record_scene import reference
from report_scenes import SCENES, Language, analysed
from test_cost_report import story

from muster.app.facts import report_analysis
from muster.app.loop.loop_report import link_loop_file, loop_report_markdown
from muster.app.money.cost_report import cost_report_markdown
from muster.app.overview.status_tsv import escape_tsv_value
from muster.app.record.record_markdown import record_markdown
from muster.app.report.decision_report import render_decision_report
from muster.app.report.defence_notes import render_defence_notes
from muster.app.report.table_files import render_report_tables
from muster.text.escape_markup import (
    as_one_safe_line,
    escape_csv_text,
    escape_latex,
    escape_link_label,
    escape_link_target,
    escape_markdown,
    escape_sentence,
)
from muster.text.sentences import fill_sentence, format_inline_code
from muster.text.terminal_text import escape_terminal_text

HOSTILE = (
    "![i](http://evil/i.png)", "[click](javascript:alert(1))", "[a][b]", "[x]: http://evil/y", "http://evil/x",
    "www.evil.example/x", "a@evil.example", "<img src=http://evil/z>", "<script>alert(1)</script>", "<http://evil/q>",
    "`` ` `[c](http://evil/c)`", "`a`` `![i](http://evil/j)`", "a|[b](http://evil/b)", "\\[d\\](http://evil/d)",
    "x\n\n[e]: http://evil/e\n\n[e]", "&lt;b&gt;", "> quoted", "# title", "1. one", "- item", "~~gone~~", "**loud**",
    "=HYPERLINK(1)", "+1+1", "-2+3", "@SUM(1)", "\t=1", "\r=1", "\\input{/etc/passwd}", "\\write18{id}", "$\\frac{",
    "\x1b[41mred\x9b\u202eEVIL", "ftp://evil/a](b", "http://evil/`x", "HTTPS://EVIL/up",
)  # fmt: skip
MD = MarkdownIt("commonmark").enable(["table", "strikethrough"])
LIVE = {"link_open", "image", "html_inline", "html_block"}
ADDRESS = re.compile(r"://|www\.|\bevil@|javascript:|@evil", re.IGNORECASE)
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
LANGUAGES: tuple[Language, ...] = ("en", "zh")


def tokens(text: str) -> Iterator[Any]:
    for token in MD.parse(text):
        yield token
        yield from token.children or ()


def faults(text: str) -> list[str]:
    """What is live in a text and leads where no report of ours leads; addresses that GitHub would make links of."""
    found = [f"control {each!r}" for each in UNSAFE.findall(text)]
    for each in tokens(text):
        address = str(each.attrs.get("href", "") or each.attrs.get("src", ""))
        if each.type in ("html_inline", "html_block") and each.content not in ("<br>", "<br/>"):
            found.append(f"html {each.content}")
        elif each.type in ("link_open", "image") and re.match(r"[a-z]+:|//", address, re.IGNORECASE):
            found.append(f"{each.type} {address}")
        elif each.type == "text" and ADDRESS.search(each.content):
            found.append(f"autolink {each.content}")
    return found


def named(value: Any, old: str, new: str) -> Any:
    """The same facts of somebody who chose another name."""
    if isinstance(value, str):
        return value.replace(old, new)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {each.name: getattr(value, each.name) for each in dataclasses.fields(value) if each.init}
        return dataclasses.replace(value, **{name: named(each, old, new) for name, each in fields.items()})
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(named(each, old, new) for each in value)
    if isinstance(value, list):
        return [named(each, old, new) for each in value]
    if isinstance(value, Mapping):
        return {named(name, old, new): named(each, old, new) for name, each in value.items()}
    return value


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize(
    "escaped",
    [
        escape_markdown,
        escape_sentence,
        format_inline_code,
        lambda text: f"[{escape_link_label(text)}](x)",
        lambda text: link_loop_file(text, text),
    ],
)
def test_nothing_of_it_is_live(text: str, escaped: Any) -> None:
    assert not faults(escaped(text)), escaped(text)
    assert not faults(f"- {escaped(text)}: {escaped(text)}")
    if escaped is not escape_sentence:
        table = f"| a | b |\n|---|---|\n| {escape_markdown(text)} | {escape_markdown(text)} |\n"
        assert not faults(table), table
        assert sum(each.type == "td_open" for each in tokens(table)) == 2


@given(st.text(st.characters() | st.sampled_from("[]()!`*_<>|\\~&#;:/.@w ht+-=1")))
def test_rendered_it_is_the_text_again(text: str) -> None:
    shown = "".join(
        each.content
        for each in tokens(f"x {escape_markdown(text)} x")
        if each.type in ("text", "code_inline", "text_special")
    )
    assert shown == f"x {as_one_safe_line(text)} x".replace("  ", " ") or shown == f"x {as_one_safe_line(text)} x"
    assert not faults(f"x {escape_sentence(text)} x")
    assert not faults(escape_markdown(text))


@given(st.text(st.characters() | st.sampled_from("`\n ")))
def test_code_stays_code(text: str) -> None:
    told = fill_sentence("before `a {x} b` after", {"x": text})
    assert [each.type for each in tokens(told) if each.type != "inline"][1:-1] == ["text", "code_inline", "text"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_record_has_nothing_live(language: Language) -> None:
    before = faults(record_markdown(reference(language)))
    for text in HOSTILE:
        for old in ("v2_full", "me@gpu7", "CUDA", "paper"):
            assert faults(record_markdown(named(reference(language), old, text))) == before, (old, text)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_reports_of_cost_and_loop_have_nothing_live(language: Language) -> None:
    assert not faults(cost_report_markdown(dataclasses.replace(story(), language=language)))
    for text in HOSTILE:
        for old in ("v2_full", "config", "CUDA"):
            found = cost_report_markdown(named(dataclasses.replace(story(), language=language), old, text))
            assert faults(found) == [], (old, text)
        for old in ("train/baseline", "mass", "little"):
            found = loop_report_markdown(named(small(language), old, text), ["lineage.svg"])
            assert [each for each in faults(found) if "https://wandb.ai/me/" not in each] == [], (old, text)


@pytest.mark.parametrize("scene", SCENES)
def test_decision_defence_and_tables_have_nothing_live(scene: str) -> None:
    for text in HOSTILE[:: 1 if scene == "recommend" else 7]:
        analysis = named(analysed(scene).facts, "v2_full", text)
        found = report_analysis.analyse_facts(analysis)
        written = [
            render_decision_report(found, [(f"figures/{text}.png", text)]).body,
            render_defence_notes(found).body,
        ]
        for table in render_report_tables(found):
            written.append(table.markdown)
            assert not re.search(r"\\(?:input|write18)", table.latex)
            rows = list(csv.reader(io.StringIO(table.csv)))
            assert not [cell for row in rows for cell in row if cell[:1] and cell[0] in "=+@\t\r"], text
            assert len({len(row) for row in rows}) == 1
        assert [fault for each in written for fault in faults(each)] == [], text


@pytest.mark.parametrize("text", ["=1+1", "+1", "@x", "-x", "\t=1", "\r=1", "|x", "\uff1d1"])
def test_a_formula_is_a_text_and_a_number_a_number(text: str) -> None:
    for cell in (escape_csv_text(text), escape_tsv_value(text)):
        assert cell[0] in "'\\" or cell in ("+1",), cell
    for number in ("-1.5", "+1", "-1e-05", "3", "NA", "-inf", "-.5"):
        assert escape_csv_text(number) == escape_tsv_value(number) == number
    assert escape_tsv_value(-1.5) == "-1.5"


@pytest.mark.parametrize("text", HOSTILE)
def test_latex_and_targets_hold(text: str) -> None:
    assert not re.search(r"\\(?:input|write18|frac)", escape_latex(text))
    assert "://" not in escape_link_target(text)
    assert not set(escape_link_target(text)) & set(" ()<>[]`\"'\n\x1b")
    assert escape_terminal_text(escape_latex(text)) == escape_latex(text)


@given(st.text("ab*\t\n\x0b\x1c\x85\xa0\u1680\u2003\u2028\u202f\u205f\u3000 ", max_size=30))
def test_a_line_has_one_blank_where_a_text_has_many(text: str) -> None:
    assert as_one_safe_line(text) == " ".join(text.split())


def test_every_blank_of_unicode_is_one() -> None:
    blanks = [sign for sign in map(chr, range(0x10000)) if sign.isspace()]
    assert as_one_safe_line("a" + "".join(blanks) + "b") == "a b"
