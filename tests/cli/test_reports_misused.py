"""Slips of a tired hand with report, trace, verify, cost, record, docs: one clear message, and nothing lost."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from support.camp import Camp

pytestmark = pytest.mark.slow  # 23 campaigns of their own; the commonest mistakes are in test_report.py
CAMPAIGN = """\
muster: 1
campaign: small
axes: {config: {base: {args: "1"}, new: {args: "2"}}, seed: [0, 1]}
slots: {gpus: 0, cpus: 2}
jobs:
  eval:
    axes: [config, seed]
    command: sh -c 'echo "{{\\"score\\":" {config.args}{seed}.5 }} > {out}/result.json'
    results: {score: {json: result.json, key: score}}
"""


@pytest.fixture
def done(camp: Camp) -> Camp:
    camp.write(CAMPAIGN)
    camp("up", code=0)
    camp("report", code=0)
    return camp


def said(found: subprocess.CompletedProcess[str]) -> str:
    assert "Traceback" not in found.stdout + found.stderr
    assert "mistake in Muster" not in found.stderr
    assert found.stderr.startswith("muster: ")
    return found.stderr


def contents(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted((root / "reports").rglob("*")) if path.is_file()}


def test_a_file_instead_of_a_folder(done: Camp) -> None:
    for command in ("report", "verify", "cost", "record"):
        told = said(done("-C", "campaign.yaml", command, code=2))
        assert "this is a file, no folder" in told
        assert f"-C {done.root}" in told


def test_a_record_never_takes_the_place_of_another_file(done: Camp) -> None:
    mine = done.root / "notes.md"
    mine.write_text("# Notes\n")
    for name in ("campaign.yaml", ".muster/decisions.jsonl", "notes.md", "reports/decision.md", "/dev/null"):
        before = (done.root / name).read_bytes()
        assert "is no record: it is not overwritten" in said(done("record", "--out", name, code=2))
        assert (done.root / name).read_bytes() == before
    assert Path("/dev/null").is_char_device()
    assert "--out is empty" in said(done("record", "--out", "", code=2))
    (done.root / "empty.md").touch()
    for name in ("empty.md", "empty.md", "new.md"):  # an earlier record is replaced
        done("record", "--out", name, code=0)
        assert (done.root / name).read_text().startswith("# Record: small\n")
    done.write(CAMPAIGN.replace("campaign: small", "campaign: small\nlanguage: zh"))
    done("up", code=0)
    for _ in range(2):
        done("record", "--out", "new.md", code=0)


@pytest.mark.parametrize("place", ["reports/decision.md", "reports/stamps/report.json"])
def test_a_folder_where_a_file_belongs(done: Camp, place: str) -> None:
    (done.root / place).unlink()
    (done.root / place).mkdir()
    before = contents(done.root)
    told = said(done("report", code=1))
    assert "a folder stands where a file belongs" in told
    assert f"where: {done.root / place}" in told
    assert contents(done.root) == before
    (done.root / place).rmdir()
    done("report", code=0)
    assert done("verify", code=0)


def test_a_stamp_that_is_a_folder(done: Camp) -> None:
    (done.root / "reports/stamps/report.json").unlink()
    (done.root / "reports/stamps/report.json").mkdir()
    for command in (("verify",), ("trace", "reports/decision.md")):
        told = said(done(*command, code=1))
        assert "a stamp can't be read: Is a directory" in told
        assert "move it away, then make it anew: `muster report`" in told
    reasons = done.json("shutdown", "--dry-run", code=3)["reasons"]
    assert any("a stamp can't be read" in reason for reason in reasons)


def test_a_stamp_of_somebody_else(done: Camp) -> None:
    (done.root / "reports/stamps/other.json").write_text('{"a": 1}')
    assert "move it away, then" in said(done("verify", code=1))


@pytest.mark.parametrize("place", ["reports", "reports/stamps"])
@pytest.mark.parametrize("command", [("report",), ("cost", "--report"), ("record",)])
def test_a_file_where_a_folder_belongs(done: Camp, place: str, command: tuple[str, ...]) -> None:
    (done.root / place).rename(done.root / "aside")
    (done.root / place).write_text("in the way")
    before = contents(done.root)
    told = said(done(*command, code=1))
    assert "a file stands where a folder belongs" in told
    assert f"where: {done.root / place}\n" in told
    assert (done.root / place).read_text() == "in the way"
    assert contents(done.root) == before


def test_a_result_that_became_a_folder(done: Camp) -> None:
    result = done.folder("eval/new/0") / "out" / "result.json"
    result.unlink()
    result.mkdir()
    before = contents(done.root)
    assert f"eval/new/0: {result} is there, and no score can be read from it" in done("report", code=1).stderr
    assert contents(done.root) == before, "the report that is there is worth more"
    shutil.rmtree(done.root / "reports")
    assert done.json("report", code=3)["verdict"] == "INVALID"
    for command in (("trace", "reports/decision.md"), ("cost",), ("record",)):
        assert "Traceback" not in done(*command, code=0).stderr


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("reports", "this is a folder; one file can be traced"),
        ("", "this is a folder; one file can be traced"),
        ("eval/new/0", "eval/new/0 is a cell, no file"),
        ("reports/decision.md:abc", "'abc' is no line of reports/decision.md"),
        ("reports/decision.md:-3", "'-3' is no line of reports/decision.md"),
        ("reports/tables/main.md:0", "main.md has "),
        ("campaign.yaml", "was not derived by Muster"),
        ("reports/tabels/main.md", "carries no stamp"),
    ],
)
def test_what_can_not_be_traced(done: Camp, asked: str, words: str) -> None:
    assert words in said(done("trace", asked, code=2))


def test_bindings_that_are_a_folder(done: Camp) -> None:
    (done.root / "talk.md").write_text("base has 0.5\n")
    (done.root / "talk.md.muster.json").mkdir()
    for command in (("bind", "talk.md", "--yes"), ("update", "talk.md"), ("audit", "talk.md")):
        told = said(done("docs", *command, code=1))
        assert "the bindings can't be read: Is a directory" in told
        assert "move it away" in told
    assert (done.root / "talk.md").read_text() == "base has 0.5\n"


def test_an_empty_text(done: Camp) -> None:
    (done.root / "empty.md").touch()
    assert "0 numbers bound" in done("docs", "bind", "empty.md", "--yes", code=0).stdout
    assert "nothing in it is bound yet" in said(done("docs", "update", "empty.md", code=2))
    assert "no number that could stem from results" in done("docs", "audit", "empty.md", code=0).stdout
