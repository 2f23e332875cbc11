"""Whole texts as they were read and found good. A change of words shows here, in full.

After a change that is meant:  MUSTER_WRITE_GOLDEN=1 python -m pytest tests/unit/report/test_golden_texts.py
Then read the difference (git diff tests/unit/report/golden_texts) as its reader would, and commit it with the change.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from report_scenes import SCENES, Language, analysed

from muster.app.report.decision_report import render_decision_report
from muster.app.report.defence_notes import render_defence_notes
from muster.app.report.table_files import render_report_tables

FOLDER = Path(__file__).parent / "golden_texts"
FIGURES = [("figures/score.png", "Scores on both splits")]
LANGUAGES: tuple[Language, ...] = ("en", "zh")


def texts(scene: str, language: Language) -> Iterator[tuple[str, str]]:
    analysis = analysed(scene, language)
    yield f"{scene}.decision.{language}.md", render_decision_report(analysis, FIGURES).body
    if scene in ("recommend", "not_enough", "incomplete", "invalid"):
        yield f"{scene}.defence.{language}.md", render_defence_notes(analysis).body
    if scene in ("recommend", "incomplete"):
        for table in render_report_tables(analysis):
            yield f"{scene}.{table.name}.{language}.md", table.markdown
            yield f"{scene}.{table.name}.{language}.tex", table.latex
            if language == "en":  # numbers have no language
                yield f"{scene}.{table.name}.csv", table.csv


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("scene", SCENES)
def test_texts_are_as_they_were_read(scene: str, language: Language) -> None:
    for name, text in texts(scene, language):
        path = FOLDER / name
        if os.environ.get("MUSTER_WRITE_GOLDEN"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")
        assert path.read_text("utf-8") == text, name


def test_no_golden_file_is_left_over() -> None:
    known = {name for scene in SCENES for language in LANGUAGES for name, _ in texts(scene, language)}
    assert {path.name for path in FOLDER.iterdir()} == known


def test_numbers_have_no_language() -> None:
    for scene in SCENES:
        english, chinese = (render_report_tables(analysed(scene, language)) for language in LANGUAGES)
        assert [table.csv for table in english] == [table.csv for table in chinese]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("scene", SCENES)
def test_markdown_is_read_as_it_was_meant(scene: str, language: Language) -> None:
    """Chinese punctuation beside ** is easily taken for text."""
    reader = MarkdownIt("commonmark").enable("table")
    for name, text in texts(scene, language):
        if name.endswith(".md"):
            shown = reader.render(text)
            assert "**" not in shown, name
            assert shown.count("<table>") == len(re.findall(r"^\| ?:?---", text, re.MULTILINE)), name
            assert shown.count("<img") == text.count("![")
            assert not re.search(r"<a |<em>", shown), name
