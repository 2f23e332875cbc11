"""What a campaign names for the time after its runs: what is missing is told before them, with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from muster.app.campaign.preflight.missing_programs import warn_of_missing_finish_inputs
from muster.model.errors import CampaignInvalid
from muster.spec import read_campaign
from muster.spec.read_yaml import locate_mistakes

HEAD = 'muster: 1\ncampaign: c\njobs: {t: {axes: [], command: "true"}}\n'


def noticed(root: Path, text: str, path: str = "/usr/bin:/bin") -> list[tuple[str, str]]:
    """Each with its place and its hint; all of them warnings."""
    parsed = read_campaign(HEAD + text, file="campaign.yaml", folder=str(root))
    found = locate_mistakes(
        [*parsed.warnings, *warn_of_missing_finish_inputs(parsed.campaign, str(root), {"PATH": path})], HEAD + text
    )
    assert {each.level for each in found} <= {"warning"}
    return [(f"{each.line}:{each.column} {each.message}", each.hint) for each in found]


def test_what_is_there_is_not_told(tmp_path: Path) -> None:
    (tmp_path / "ppt.md").write_text("")
    script = tmp_path / "copy.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    text = "report: {documents: [ppt.md]}\nfinish: {run: [./copy.sh all, 'sh -c true']}\nnotify: [{run: sh tell}]\n"
    assert noticed(tmp_path, text) == []


def test_a_document_that_does_not_exist_and_the_one_that_is_meant(tmp_path: Path) -> None:
    (tmp_path / "slides.md").write_text("")
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "ppt.md").write_text("")
    (tmp_path / "text" / "paper.tex").write_text("")
    text = "report:\n  documents: [slide.md, ppt.md, text/papers.tex, text, other.md]\n"
    assert noticed(tmp_path, text) == [
        ("5:15 report: the document slide.md does not exist", "did you mean 'slides.md'?"),
        ("5:25 report: the document ppt.md does not exist", "did you mean 'text/ppt.md'?"),
        ("5:33 report: the document text/papers.tex does not exist", "did you mean 'text/paper.tex'?"),
        ("5:50 report: text is a folder, no text", "name the texts in it, one by one"),
        (
            "5:56 report: the document other.md does not exist",
            f"it is looked for in {tmp_path}; write it, or drop it from the list",
        ),
    ]


def test_a_folder_that_does_not_exist_either(tmp_path: Path) -> None:
    (told, _), *more = noticed(tmp_path, "report: {documents: [nowhere/ppt.md]}\n")
    assert told.endswith("the document nowhere/ppt.md does not exist")
    assert not more


def test_a_step_whose_program_is_not_on_this_machine(tmp_path: Path) -> None:
    (tmp_path / "copy.sh").write_text("not executable")
    found = noticed(tmp_path, "finish:\n  run:\n  - 'true'\n  - rclnoe copy reports there\n  - ./copy.sh\n")
    assert [told for told, _ in found] == [
        "7:5 finish: the command 'rclnoe' was not found: its step would fail when all cells are done",
        "8:5 finish: ./copy.sh is not executable: its step would fail when all cells are done",
    ]
    assert str(tmp_path) in found[0][1]


def test_a_channel_whose_program_is_not_on_this_machine(tmp_path: Path) -> None:
    (told, _), *more = noticed(tmp_path, "notify: [{run: tellme now}]\n")
    assert told == "4:16 notify: the command 'tellme' was not found: nobody would be told"
    assert not more


def test_a_budget_of_nothing(tmp_path: Path) -> None:
    (told, hint), *more = noticed(tmp_path, "money: {price: 2, budget: 0}\n")
    assert told == "4:27 with a budget of 0 no cell can ever start"
    assert "leave `budget` out" in hint
    assert not more
    with pytest.raises(CampaignInvalid) as refused:
        noticed(tmp_path, "money: {price: 2, budget: -3}\n")
    assert [each.message for each in refused.value.mistakes] == ["money.budget must be at least 0, found -3"]
    assert noticed(tmp_path, "money: {price: 2, budget: 0.5}\n") == []
