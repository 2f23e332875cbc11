"""muster docs: what people and programs see, on a campaign's real results and on results that are given."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from muster.app.documents import report_quantities
from muster.app.documents.result_names import Quantity
from muster.app.report import publish_report
from muster.faces.cli.common.entrypoint import run_command_line
from support.camp import Camp

SCHEMA = Path(__file__).parents[2] / "docs" / "schemas" / "docs.schema.json"
SCORES = {"v2_baseline": (1.16, 2.208, 2.031), "v2_u_only": (1.16, 2.208, 1.512), "v2_full": (1.628, 2.208, 2.482)}
TEXT = """\
# 结果

| config | ID score |
|---|---|
| v2_baseline | 1.684±0.741 |
| v2_u_only | 1.684±0.741 |
| v2_full | 1.918±0.410 |

两个配置的 ID 得分都是 1.684±0.741，折扣因子 0.999。
"""
NEW = TEXT.replace("v2_baseline | 1.684±0.741", "v2_baseline | 1.800±0.561").replace(
    "v2_u_only | 1.684±0.741", "v2_u_only | 1.627±0.533"
).replace("1.918±0.410", "2.106±0.436")  # fmt: skip


def quantities(scores: dict[str, tuple[float, ...]] = SCORES, n: int = 3) -> Iterator[Quantity]:
    for config, values in scores.items():
        key, k = f"id/score/{config}", len(values)
        means = [statistics.fmean(values[:count]) for count in range(1, k + 1)]
        spreads = [statistics.stdev(values[:count]) for count in range(2, k + 1)]
        yield Quantity(f"{key}/mean", config, "id", "score", "mean", "", means[-1], k, n, tuple(means[:-1]))
        yield Quantity(f"{key}/sd", config, "id", "score", "sd", "", spreads[-1], k, n, tuple(spreads[:-1]))


@dataclass
class Desk:
    """A folder with ppt.md, and results as they are given."""

    root: Path
    capsys: pytest.CaptureFixture[str]
    partial: str | None = None
    documents: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        return self.root / "ppt.md"

    def __call__(self, *words: str, code: int = 0) -> tuple[str, str]:
        found = run_command_line(["-C", str(self.root), "docs", *words])
        out, err = self.capsys.readouterr()
        assert found == code, (words, found, out, err)
        assert "Traceback" not in out + err
        return out, err

    def json(self, *words: str, code: int = 0) -> Any:
        """As the published schema describes it."""
        told = json.loads(self(*words, "--json", code=code)[0])
        described = json.loads(SCHEMA.read_text())
        verb = {"$defs": described["$defs"], "$ref": f"#/$defs/{words[0]}"}
        for each in told if isinstance(told, list) else [told]:
            Draft202012Validator(verb).validate(each)
        return told

    def failure(self, *words: str, code: int) -> Any:
        out, err = self(*words, "--json", code=code)
        assert out == ""
        return json.loads(err)["error"]


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Desk:
    made = Desk(tmp_path, capsys)
    made.path.write_text(TEXT)

    def known(folder: Path) -> Any:
        return SimpleNamespace(
            root=tmp_path,
            quantities=tuple(quantities()),
            partial=made.partial,
            documents=made.documents,
            found=None,
            invalid=False,
        )

    monkeypatch.setattr(report_quantities, "gather_bindable_numbers", known)
    monkeypatch.setattr(publish_report, "write_document_stamps", lambda *_: None)
    monkeypatch.setenv("NO_COLOR", "1")
    return made


def test_bind_shows_what_it_binds_and_what_is_ambiguous(desk: Desk) -> None:
    out, _ = desk("bind", "ppt.md")
    assert "3 numbers bound, 1 ambiguous" in out
    assert "line 5: 1.684±0.741  id/score/v2_baseline/mean and id/score/v2_baseline/sd  by place and value" in out
    assert "ambiguous line 9: 1.684±0.741: several results have this value" in out
    assert "      id/score/v2_u_only/mean and id/score/v2_u_only/sd" in out
    assert "0.999" not in out
    assert (desk.path.read_text(), desk.path.with_name("ppt.md.muster.json").exists()) == (TEXT, True)


def test_a_dry_run_of_bind_writes_nothing(desk: Desk) -> None:
    out, _ = desk("bind", "ppt.md", "--dry-run")
    assert "nothing was written" in out
    assert [path.name for path in desk.root.iterdir()] == ["ppt.md"]


def test_bind_as_json(desk: Desk) -> None:
    told = desk.json("bind", "ppt.md")
    assert [(each["line"], each["text"], each["by"], each["agrees"], each["new"]) for each in told["bound"]] == [
        (5, "1.684±0.741", "place and value", "earlier", True), (6, "1.684±0.741", "place and value", "earlier", True),
        (7, "1.918±0.410", "place and value", "earlier", True),
    ]  # fmt: skip
    (ambiguous,) = told["ambiguous"]
    assert (ambiguous["line"], len(ambiguous["candidates"])) == (9, 2)
    assert Path(told["sidecar"]).exists()
    assert [each["new"] for each in desk.json("bind", "ppt.md")["bound"]] == [False] * 3
    desk.root.joinpath("b.md").write_text(TEXT)
    assert [Path(each["file"]).name for each in desk.json("bind", "ppt.md", "b.md")] == ["ppt.md", "b.md"]


def on_a_terminal(monkeypatch: pytest.MonkeyPatch, answers: Sequence[str]) -> list[str]:
    asked: list[str] = []
    waiting = iter(answers)

    def answer(prompt: str = "") -> str:
        asked.append(prompt)
        found = next(waiting, None)
        if found is None:
            raise EOFError
        return found

    monkeypatch.setattr("builtins.input", answer)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    return asked


def test_on_a_terminal_bind_asks_where_it_is_ambiguous(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = on_a_terminal(monkeypatch, ["7", "what?", "2"])
    out, _ = desk("bind", "ppt.md")
    assert len(asked) == 3
    assert "两个配置的 ID 得分都是 1.684±0.741" in out
    assert "4 numbers bound" in out
    assert "line 9: 1.684±0.741  id/score/v2_u_only/mean and id/score/v2_u_only/sd  by chosen" in out


@pytest.mark.parametrize("answers", [[""], []])
def test_nothing_is_an_answer_too(desk: Desk, monkeypatch: pytest.MonkeyPatch, answers: list[str]) -> None:
    on_a_terminal(monkeypatch, answers)
    assert "3 numbers bound, 1 ambiguous" in desk("bind", "ppt.md")[0]


@pytest.mark.parametrize("option", ["--yes", "--dry-run", "--json"])
def test_nobody_is_asked_with(desk: Desk, monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    asked = on_a_terminal(monkeypatch, ["1"])
    desk("bind", "ppt.md", option)
    assert asked == []


def test_update_shows_a_diff_and_keeps_the_old_version(desk: Desk) -> None:
    desk("bind", "ppt.md")
    out, _ = desk("update", "--dry-run")
    assert ("-| v2_full | 1.918±0.410 |" in out, "3 numbers would change" in out) == (True, True)
    assert desk.path.read_text() == TEXT
    out, _ = desk("update")
    assert "+| v2_full | 2.106±0.436 |" in out
    assert f"{desk.path}: 3 numbers changed, 0 as they were" in out
    assert desk.path.read_text() == NEW
    (kept,) = (desk.root / "reports" / "documents").iterdir()
    assert kept.read_text() == TEXT
    assert f"the old version: {kept}" in out
    assert "0 numbers changed, 3 as they were" in desk("update", "ppt.md")[0]


def test_update_as_json(desk: Desk) -> None:
    desk("bind", "ppt.md")
    told = desk.json("update")
    assert [(each["line"], each["text"], each["new"]) for each in told["updated"]] == [
        (5, "1.684±0.741", "1.800±0.561"), (6, "1.684±0.741", "1.627±0.533"), (7, "1.918±0.410", "2.106±0.436"),
    ]  # fmt: skip
    assert (told["unchanged"], [Path(each).read_text() for each in told["kept"]]) == (0, [TEXT])
    assert desk.json("update") == {"dry_run": False, "updated": [], "unchanged": 3, "kept": [], "look_at": []}


def test_what_an_update_leaves_beside_is_named(desk: Desk) -> None:
    desk.path.write_text(TEXT.replace("| config | ID score |\n|---|---|", "| config | ID score | gap |\n|---|---|---|")
        .replace("1.918±0.410 |", "1.918±0.410 | 0.234 |") + "\n均为两个种子的均值，three seeds.\n")  # fmt: skip
    desk("bind", "ppt.md")
    out, _ = desk("update")
    assert "look at line 7: 0.234: it stands beside a number that changes, and is not bound" in out
    assert "look at line 11: 两个种子: the bound numbers are those of 3 seeds" in out
    assert "three seeds" not in out
    assert [(each["line"], each["text"]) for each in desk.json("update")["look_at"]] == [(11, "两个种子")]


@pytest.mark.parametrize(
    ("sentence", "why"),
    [
        ("v2_baseline and v2_full reach an ID score of 2.106 and 1.800.", "several configs are named near it"),
        ("v2_full reaches an ID score of 2.106 (0.436).", "a number in brackets follows"),
        ("v2_full reaches an ID score of 2.106 [1.2, 3.0].", "a number in brackets follows"),
        ("The ID score of v2_full is 7.321.", "the result never had this value"),
    ],
)
def test_what_is_probable_and_would_do_harm_is_asked(desk: Desk, sentence: str, why: str) -> None:
    desk.path.write_text(sentence + "\n")
    told = desk.json("bind", "ppt.md")
    assert told["bound"] == []
    assert all(why in each["because"] and each["candidates"] for each in told["ambiguous"])
    assert told["ambiguous"]


def test_audit_tells_of_a_bound_number_that_was_changed_by_hand(desk: Desk) -> None:
    desk("bind", "ppt.md")
    desk("update")
    sidecar = desk.path.with_name("ppt.md.muster.json").read_text()
    desk.path.write_text(NEW.replace("2.106±0.436", "2.601±0.436"))
    told = desk.json("audit", "ppt.md", code=1)
    (wrong,) = [each for each in told["numbers"] if each["state"] == "disagrees"]
    assert (wrong["line"], wrong["should"], wrong["bound"]) == (7, "2.106±0.436", True)
    assert wrong["because"] == "it was bound as 2.106±0.436 and has been changed by hand"
    assert desk.path.with_name("ppt.md.muster.json").read_text() == sidecar


def test_audit_tells_of_a_number_that_another_place_of_the_text_contradicts(desk: Desk) -> None:
    table = "| config | ID score |\n|---|---|\n| v2_full | {} |\n"
    desk.path.write_text(f"{table.format('2.106±0.436')}\n{table.format('2.900±0.436')}")
    told = desk.json("audit", "ppt.md", code=1)
    assert [each["state"] for each in told["numbers"]] == ["agrees", "disagrees"]


def test_an_incomplete_matrix_exits_with_3(desk: Desk) -> None:
    desk("bind", "ppt.md")
    desk.partial = "PARTIAL 2/9"
    failed = desk.failure("update", code=3)
    assert (failed["code"], "2/9" in failed["message"], "--partial" in failed["hint"]) == ("incomplete", True, True)
    assert desk.path.read_text() == TEXT
    desk("update", "--partial")
    assert desk.path.read_text().count("(PARTIAL 2/9)") == 3
    desk.partial = None
    desk("update")
    assert desk.path.read_text() == NEW


def test_documents_that_the_campaign_names_are_updated_wherever_they_are(desk: Desk) -> None:
    (desk.root / "talk").mkdir()
    path = desk.root / "talk" / "slides.md"
    path.write_text(TEXT)
    desk("bind", "talk/slides.md")
    assert "no text is bound yet" in desk.failure("update", code=2)["message"]
    desk.documents = ("talk/slides.md", "ppt.md")
    assert {Path(each["file"]).name for each in desk.json("update")["updated"]} == {"slides.md"}
    assert (path.read_text(), desk.path.read_text()) == (NEW, TEXT)


def test_audit_exits_with_1_where_something_is_wrong(desk: Desk) -> None:
    out, _ = desk("audit", "ppt.md", code=1)
    assert "line 7: 1.918±0.410 stale, now 2.106±0.436" in out
    assert "that is the value with 2 of 3 seeds" in out
    assert "3 are stale, 1 can't be traced" in out
    told = desk.json("audit", "ppt.md", code=1)
    assert told["counts"] == {"agrees": 0, "stale": 3, "disagrees": 0, "untraced": 1}
    assert told["numbers"][0]["should"] == "1.800±0.561"
    desk("bind", "ppt.md")
    desk("update")
    assert desk.json("audit", "ppt.md")["counts"] == {"agrees": 3, "stale": 0, "disagrees": 0, "untraced": 1}
    desk.path.write_text(NEW.replace("2.106", "2.999"))
    assert desk.json("audit", "ppt.md", code=1)["counts"]["disagrees"] == 1


def test_audit_warns_once_of_spreads_that_nobody_explains(desk: Desk) -> None:
    out, _ = desk("audit", "ppt.md", code=1)
    assert out.count("unlabelled") == 1
    assert "line 5: 1.684±0.741 unlabelled: 4 numbers have a ±, and nothing says what it is" in out
    told = desk.json("audit", "ppt.md", code=1)["unlabelled"]
    assert (told["line"], told["text"], told["count"]) == (5, "1.684±0.741", 4)
    desk.path.write_text(NEW.replace("ID score", "ID score (均值±标准差)"))
    assert desk.json("audit", "ppt.md", code=0)["unlabelled"] is None
    desk.path.write_text(NEW)
    desk("audit", "ppt.md", code=0)  # a warning is no error


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("bnid", "ppt.md"), 2, "there is no command 'docs bnid'"), (("bind",), 2, "Missing argument"),
        (("bind", "none.md"), 2, "there is no such file"), (("bind", "."), 2, "this is a folder"), (("audit", "none.md"), 2, "no such file"),
        (("update", "ppt.md"), 2, "nothing in it is bound yet"), (("update",), 2, "no text is bound yet"),
    ],
)  # fmt: skip
def test_wrong_use_is_told(desk: Desk, words: tuple[str, ...], code: int, said: str) -> None:
    assert said in desk.failure(*words, code=code)["message"]
    assert said in desk(*words, code=code)[1]


def test_the_group_by_itself_says_what_it_has(desk: Desk) -> None:
    assert "say what to do: bind, update or audit" in desk(code=2)[1]
    assert "audit" in desk("--help")[0]
    assert "Example:  muster docs bind ppt.md --dry-run" in desk("bind", "--help")[0]


def test_a_typo_gets_a_hint(desk: Desk) -> None:
    assert "did you mean `muster docs update`?" in desk("updat", code=2)[1]


def test_what_a_terminal_would_obey_is_not_printed(desk: Desk) -> None:
    desk.path.write_text(TEXT.replace("| v2_full |", "| v2_full \x1b[31m\x07|"))
    desk("bind", "ppt.md")
    out, _ = desk("update")
    assert "\x1b" not in out
    assert "\x07" not in out


CAMPAIGN = """\
muster: 1
campaign: sprint
axes:
  config: [v2_baseline, v2_full]
  seed: [0, 1, 2]
  split: [id, ood]
slots: {gpus: 0, cpus: 2}
jobs:
  eval:
    axes: [config, seed, split]
    command: python3 make.py {config} {seed} {split} {out}/result.json
    results: {score: {json: result.json, key: score}}
report: {documents: [ppt.md, free.md]}
"""
MAKE = """\
import json, sys
config, seed, split, path = sys.argv[1:]
value = {"v2_baseline": 1.0, "v2_full": 2.0}[config] + int(seed) / 8 + (split == "ood") / 4
json.dump({"score": value}, open(path, "w"))
"""


@pytest.mark.slow  # the sprint story is its sibling in CI
def test_a_real_campaign_from_its_results_to_the_text(camp: Camp) -> None:
    camp.write(CAMPAIGN)
    (camp.root / "make.py").write_text(MAKE)
    text = "| config | ID score | OOD score |\n|--|--|--|\n| v2_full | 9.99±9.99 | 9.990 |\n"
    (camp.root / "ppt.md").write_text(text)
    camp("up", "--only", "seed=0,1", code=3)
    asked = camp.json("docs", "bind", "ppt.md", code=0)
    assert (asked["bound"], len(asked["ambiguous"])) == ([], 2)  # nobody's result was ever 9.99: it may be a citation
    camp("docs", "bind", "ppt.md", "--place", code=0)
    camp("docs", "update", code=3)
    camp("docs", "update", "--partial", code=0)
    assert "2.06±0.09 (PARTIAL" in (camp.root / "ppt.md").read_text()
    camp("up", code=0)
    camp("docs", "update", code=0)
    assert (camp.root / "ppt.md").read_text() == text.replace("9.99±9.99", "2.12±0.12").replace("9.990", "2.375")
    assert camp.json("docs", "audit", "ppt.md", code=0)["counts"]["agrees"] == 2
