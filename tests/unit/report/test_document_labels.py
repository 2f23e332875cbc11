"""Whether a text says what its ± stands for."""

from __future__ import annotations

import pytest
from report_scenes import SCENES, analysed

from muster.app.documents.find_numbers import scan_numbers
from muster.app.documents.text_audit import UnlabelledSpreads, find_unlabelled_spreads
from muster.app.documents.text_layout import LATEX, MARKDOWN, TextSource
from muster.app.report.decision_report import render_decision_report
from muster.app.report.defence_notes import render_defence_notes
from muster.app.report.table_files import render_report_tables


def found(text: str, kind: str = MARKDOWN) -> UnlabelledSpreads | None:
    source = TextSource(text, kind)
    return find_unlabelled_spreads(source.shown, scan_numbers(source.bare))


def test_one_for_a_text_however_many_there_are() -> None:
    text = "| a | 1.684±0.741 |\n| b | 1.2 ± 0.3 |\n"
    assert found(text) == UnlabelledSpreads(text.index("1.684"), text.index(" |\n| b"), 2)
    assert found("a: $1.684 \\pm 0.741$", LATEX) is not None
    assert found("<!-- mean ± sd -->\n\nIt is 1.684±0.741.") is not None  # nobody sees it


@pytest.mark.parametrize(
    "label",
    [
        "mean ± sd", "Mean±SD", "std", "s.d.", "stddev", "standard deviation", "Standard\ndeviations", "SE", "SEM", "stderr",
        "95% CI", "95 % interval", "confidence intervals", "±1σ", "均值±标准差", "标准误", "95% 置信区间", "为std。",
    ],
)  # fmt: skip
def test_what_says_it(label: str) -> None:
    assert found(f"Scores ({label}): 1.684±0.741") is None


@pytest.mark.parametrize("word", ["used", "size", "CIFAR", "wise", "visdom", "mean", "seeds", "得分"])
def test_what_does_not(word: str) -> None:
    assert found(f"{word}: 1.684±0.741") is not None


def test_a_text_without_a_spread_needs_no_label() -> None:
    assert found("inside ±0.3; 1.684 and 0.741") is None


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("scene", SCENES)
def test_our_own_are_labelled(scene: str, language: str) -> None:
    analysis = analysed(scene, language)  # type: ignore[arg-type]
    for table in render_report_tables(analysis):
        assert found(table.markdown) is None, table.name
        assert found(table.latex, LATEX) is None, table.name
    assert found(render_decision_report(analysis).body) is None
    assert found(render_defence_notes(analysis).body) is None
