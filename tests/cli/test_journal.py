"""muster journal: new, fill and audit in a folder, with and without a campaign."""

from __future__ import annotations

import errno
import json
import os
import pickle
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from muster.app.gates.staged_pictures import DrawnPictures, draw_staged_pictures
from muster.app.journal import journal_runs
from muster.faces.cli.common.entrypoint import run_command_line
from support.camp import Camp

ROOT = Path(__file__).parents[2]
REFERENCE = (ROOT / "tests/unit/report/journal/texts/dev_v40.md").read_bytes()
SCHEMA = json.loads((ROOT / "docs" / "schemas" / "journal.schema.json").read_text())
ROWS = ((8, "ne", 0.71, 83.0), (16, "ne", 0.55, 101.0), (24, "main", 0.65, 100.9), (32, "main", 0.77, 108.9))


class Desk:
    """A folder, and `muster -C FOLDER journal ...` in this process."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self._capsys = root, capsys

    def __call__(self, *args: str, code: int = 0) -> str:
        found = run_command_line(["-C", str(self.root), "journal", *args])
        out, err = self._capsys.readouterr()
        assert found == code, (args, found, out, err)
        return out if not code or out else err

    def json(self, *args: str, code: int = 0) -> Any:
        found = json.loads(self(*args, "--json", code=code))
        Draft202012Validator(SCHEMA).validate(found)
        return found

    def text(self, version: int) -> str:
        return (self.root / f"dev_v{version}.md").read_text(encoding="utf-8")

    def write(self, version: int, text: str | bytes) -> Path:
        path = self.root / f"dev_v{version}.md"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def files(self) -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in sorted(self.root.rglob("*")) if path.is_file()}


def write_run(folder: Path, factor: float = 1.0, flags: str = "--a 1") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {"iter": at, "stage": stage, "avg_final": avg * factor, "first_death_p10": p10} for at, stage, avg, p10 in ROWS
    ]
    (folder / "eval_history.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    criteria = [
        {
            "side": "failure",
            "key": "first_death_p10",
            "window": "last",
            "bound": "below",
            "threshold": 95,
            "value": 83.0,
            "holds": True,
        }
    ]
    trace = [{"gate": "penalty", "settings": {"required": 2}}, {"iteration": 8, "stage": "ne", "phase": 0, "state": "failure_hold",
              "verdict": "failure", "streak": 0, "required": 2, "criteria": criteria, "broke": ""}]  # fmt: skip
    (folder / "gate_trace.jsonl").write_text("".join(json.dumps(row) + "\n" for row in trace))
    (folder / "training_stats.pkl").write_bytes(pickle.dumps({"survival": np.full(60, 0.849)}))
    (folder / "command.txt").write_text(f"python train.py --run_name {folder.name} {flags}\n")
    (folder / "plots").mkdir(exist_ok=True)
    (folder / "plots" / "stages.svg").write_text("<svg/>")


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Drawing takes a second: here a picture is a few bytes; `drawing` has the real ones."""
    monkeypatch.setattr(
        journal_runs,
        "draw_staged_pictures",
        lambda *_, **__: DrawnPictures({"gate_timeline.png": b"drawn"}, [], {}, []),
    )
    made = Desk(tmp_path / "here", capsys)
    made.root.mkdir()
    return made


@pytest.fixture
def v40(desk: Desk) -> Desk:
    """The reference's journal, and two runs."""
    desk.write(40, REFERENCE)
    write_run(desk.root / "runs" / "v40")
    write_run(desk.root / "runs" / "v41", 1.3, "--a 2 --b")
    return desk


# -- the story


def test_from_the_reference_to_its_next_version_and_the_one_after(v40: Desk) -> None:
    told = v40.json("new")
    assert [each["id"] for each in told["points"]] == ["P40.1", "P40.2", "P40.3"]
    assert told["language"] == "zh"
    assert (v40.root / "dev_v40.md").read_bytes() == REFERENCE

    first = v40.json("fill", "--run", "runs/v41")
    assert {each["kind"] for each in first["written"]} >= {
        "command",
        "evaluation",
        "comparison",
        "gate",
        "artifacts",
        "figures",
    }
    assert first["against"] == "dev_v40"
    text = v40.text(41)
    assert "| 8 | ne | 0.923 |" in text
    assert "![stages](runs/v41/plots/stages.svg)" in text
    assert "| a | （未给出） | 2 |" in text
    assert "dev_v40：7 次评估，来自 dev_v40 的正文。" in text
    again = v40.json("fill")
    assert again["written"] == again["refreshed"] == []
    assert v40.text(41) == text

    mine = text.replace("## 观察记录\n", "## 观察记录\n- iter32 的 `first_death_p10=108.9`，`avg_final=0.99`。\n")
    mine = mine.replace("- [ ] P40.1", "- [x] P40.1").replace("- [ ] P40.2", "- [-] P40.2（放弃：没有预算）")
    v40.write(41, mine + "1. 新的要点，应该再看\n")
    audited = v40.json("audit", code=1)
    assert audited["counts"] == {"agrees": 3, "disagrees": 1, "untraced": 0}
    (wrong,) = [each for each in audited["numbers"] if each["state"] == "disagrees"]
    assert (wrong["text"], wrong["should"]) == ("avg_final=0.99", "1.00")

    told = v40.json("new")
    assert [(each["id"], each["carried"]) for each in told["points"]] == [("P40.3", 1), ("P41.1", 0)]
    assert told["done"] == ["P40.1"]
    assert told["dropped"] == [{"id": "P40.2", "reason": "没有预算"}]
    assert "P40.3（已沿用 1 次，自 v40 起）" in v40.text(42)
    write_run(v40.root / "runs" / "v42", 1.3, "--a 3")
    v40("fill", "--run", "runs/v42")
    assert "| a | 2 | 3 |" in v40.text(42)
    assert "dev_v41：4 次评估，来自 `runs/v41/eval_history.jsonl`。" in v40.text(42)


def test_a_first_journal_in_english(desk: Desk) -> None:
    out = desk("new")
    assert "dev_v1.md, the first one here" in out
    assert "## Learning / next" in desk.text(1)
    write_run(desk.root / "run")
    desk("fill", "--run", "run")
    assert "Gate `penalty`: 1 evaluation (failure_hold 1). It never opened" in desk.text(1)
    assert "muster:begin comparison" not in desk.text(1)
    assert "agree" in desk("audit") or desk("audit")


def test_languages(v40: Desk) -> None:
    v40("new", "--language", "en")
    assert "## Observations (from dev_v40)" in v40.text(41)
    v40("fill", "--run", "runs/v41")
    assert "Mean by stage:" in v40.text(41)
    v40("fill", "--language", "zh")
    assert "各阶段均值：" in v40.text(41)


def test_a_run_in_an_attempt_folder_and_a_name_with_spaces(desk: Desk) -> None:
    desk("new")
    write_run(desk.root / "my runs" / "a (1)")
    desk("fill", "--run", "my runs/a (1)")
    desk("fill")
    assert "![stages](my%20runs/a%20%281%29/plots/stages.svg)" in desk.text(1)
    assert desk.json("audit")["artifacts"] == []


def test_several_runs(v40: Desk) -> None:
    v40("new")
    v40("fill", "--run", "runs/v40", "--run", "runs/v41", "--run", "runs/v40")
    assert v40.text(41).count("muster:begin command") == 2
    before = v40.text(41)
    (v40.root / "runs/v41/eval_history.jsonl").write_text('{"iter": 8, "avg_final": 0.5}\n')
    told = v40.json("fill")
    assert {each["run"] for each in told["refreshed"]} == {"runs/v41"}
    assert before[: before.index("run=runs/v41")] == v40.text(41)[: before.index("run=runs/v41")]


def test_figures_are_drawn_and_referred_to(v40: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_runs, "draw_staged_pictures", draw_staged_pictures)
    v40("new")
    told = v40.json("fill", "--run", "runs/v41")
    (figure,) = [each for each in told["figures"] if "timeline" in each]
    assert Path(figure).read_bytes().startswith(b"\x89PNG")
    assert Path(figure).parent.parent == v40.root / "dev_v41_files"
    links = re.findall(r"!\[(.*)\]\((.*)\)", v40.text(41))
    assert all((v40.root / path).is_file() for _, path in links)
    assert len(links) == len(told["figures"]) + 1  # and the one that the run left
    before = v40.files()
    v40("fill")
    assert v40.files() == before


def test_a_picture_that_can_not_be_drawn_or_written(v40: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    v40("new")
    (v40.root / "dev_v41_files").write_text("a file stands in the way")
    assert "a figure can't be written" in unchanged(v40, lambda: v40("fill", "--run", "runs/v41", code=1))

    def fails(*_: Any, **__: Any) -> None:
        raise ValueError("no ink")

    monkeypatch.setattr(journal_runs, "draw_staged_pictures", fails)
    v40("fill", "--run", "runs/v41")
    assert "图未能画出：ValueError: no ink。" in v40.text(41)


# -- people's texts


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gbk"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("end", ["", "\n\n"])
def test_bytes_of_a_person_stay(desk: Desk, encoding: str, newline: str, end: str) -> None:
    text = "# dev_v7\n\n## 实验记录\n\n我的话：存活率 85%\n\n## Learning / 下一步\n1. 要点".replace(
        "\n", newline
    ) + end.replace("\n", newline)
    path = desk.write(7, text.encode(encoding))
    before = path.read_bytes()
    write_run(desk.root / "run")
    desk("fill", "--run", "run")
    after = path.read_bytes()
    split = before.index(b"## Learning") - 2 * len(newline)
    assert after.startswith(before[:split])
    assert after.endswith(before[split:])
    added = after[split : len(after) - len(before) + split].decode("gb18030" if encoding == "gbk" else "utf-8")
    assert ("\r\n" in added) == (newline == "\r\n")
    assert "各阶段均值：" in added
    desk("fill")
    assert path.read_bytes() == after
    assert not list(desk.root.glob(".*"))


def test_an_edited_block_is_left_alone_and_told(v40: Desk) -> None:
    v40("new")
    v40("fill", "--run", "runs/v41")
    v40.write(41, v40.text(41).replace("始终没有打开", "一直关着", 1))
    before = v40.text(41)
    told = v40.json("fill", code=1)
    assert [each["kind"] for each in told["edited"]] == ["gate"]
    assert v40.text(41) == before
    assert "was edited by hand; left as it is" in v40("fill", code=1)
    assert [each["kind"] for each in v40.json("audit", code=1)["edited"]] == ["gate"]
    assert v40.json("fill", "--force")["edited"] == []
    assert "始终没有打开" in v40.text(41)
    assert v40("audit")


def test_a_dry_run_writes_nothing(v40: Desk) -> None:
    v40("new")
    before = v40.files()
    assert "nothing was written" in v40("fill", "--run", "runs/v41", "--dry-run")
    assert v40.files() == before


def test_artifacts_that_changed_or_are_gone(v40: Desk) -> None:
    v40("new")
    v40("fill", "--run", "runs/v41")
    (v40.root / "runs/v41/command.txt").unlink()
    (v40.root / "runs/v41/plots/stages.svg").write_text("<svg>other</svg>")
    told = v40.json("audit", code=1)
    assert [(each["path"], each["state"]) for each in told["artifacts"]] == [
        ("runs/v41/command.txt", "missing"), ("runs/v41/plots/stages.svg", "changed"),
    ]  # fmt: skip
    shutil.rmtree(v40.root / "runs/v41")
    assert "the runs it tells of are gone: runs/v41" in v40("fill", code=2)
    told = v40.json("audit", code=1)
    assert {each["state"] for each in told["artifacts"]} == {"missing"}


def test_points_that_got_stuck_or_lost(v40: Desk) -> None:
    for _ in range(4):
        v40("new", "--carry")
    told = v40.json("audit")
    assert [(each["id"], each["kind"]) for each in told["points"]] == [(f"P40.{n}", "carried") for n in (1, 2, 3)]
    v40.write(44, re.sub(r"(?m)^- \[ \] P40.2.*\n", "", v40.text(44)))
    told = v40.json("audit", code=1)
    assert [each["id"] for each in told["points"] if each["kind"] == "vanished"] == ["P40.2"]
    (v40.root / "dev_v42.md").unlink()
    assert v40.json("audit", code=1)["notes"][-1] == "there is no dev_v42.md"


# -- a campaign


CAMPAIGN = """\
muster: 1
campaign: fish
language: zh
axes: {seed: [0, 1]}
slots: {gpus: 0, cpus: 2}
jobs:
  train:
    axes: [seed]
    command: python3 train.py --seed {seed} --out {out}
"""
TRAIN = """\
import json, sys
out = sys.argv[-1]
with open(f"{out}/eval_history.jsonl", "w") as file:
    for at in range(8, 33, 8):
        file.write(json.dumps({"iter": at, "stage": "ne", "score": at / 10}) + "\\n")
"""


def test_cells_of_a_campaign(camp: Camp, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_HOME", camp.environment["MUSTER_HOME"])
    camp.write(CAMPAIGN)
    (camp.root / "train.py").write_text(TRAIN)
    camp("up", code=0)
    (camp.root / "sub").mkdir()
    desk.root = camp.root
    desk("new")
    assert "## 启动" in desk.text(1)  # the campaign's language
    assert desk.json("fill")["runs"] == ["cell:train/0", "cell:train/1"]
    text = desk.text(1)
    assert "python3 train.py --seed 0 --out" in text
    assert "来自 `attempt.json`，第 1 次尝试。在 `.` 中启动。" in text
    assert "脚本 `train.py`，sha256" in text
    desk.root = camp.root / "sub"
    desk("fill", "--run", "train/*")
    desk.root = camp.root
    assert desk.text(1) == text
    assert "there is no such folder or cell" in desk("fill", "--run", "train/9", code=2)
    desk("fill", "--run", ".muster/attempts/train/0/1")
    assert desk("audit")


# -- what goes wrong


def unchanged(desk: Desk, what: Callable[[], str]) -> str:
    before = desk.files()
    said = what()
    assert desk.files() == before
    assert "Traceback" not in said
    return said


@pytest.mark.parametrize(
    ("text", "args", "message"),
    [
        ("# a\n```\n", ("fill", "--run", "run"), "a code block begins here and is never closed"),
        ("# a\n<!-- muster:begin gate run=x -->\n", ("audit",), "a generated block begins here"),
        ("- [ ] P1.1 a\n- [ ] P1.1 b\n", ("new",), "P1.1 has a box already in line 1"),
        ("- [?] P1.1 a\n", ("new",), "has the mark [?]"),
        ("- [-] P1.1 a\n", ("audit",), "dropped without a reason"),
        ("## Learning / next\n- [ ] P9.1 a\n1. b\n", ("new",), "P9.1 belongs to no version: this is dev_v5"),
        ("## Learning / next\n", ("new",), "dev_v5.md has learnt nothing yet"),
        ("# a\n", ("new",), "it has no section Learning / next"),
    ],
)
def test_journals_that_can_not_be_worked_on(desk: Desk, text: str, args: tuple[str, ...], message: str) -> None:
    desk.write(5, text)
    write_run(desk.root / "run")
    assert message in unchanged(desk, lambda: desk(*args, code=1))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("fill",), "there is no journal here"),
        (("audit",), "there is no journal here"),
        (("audit", "dev_v9.md"), "there is no such file"),
        (("audit", "notes.md"), "is not the name of a journal"),
        (("fill", "--dir", "nowhere"), "there is no such folder"),
        (("fill", "dev_v1.md", "--dir", "x"), "one of them is enough"),
        (("new", "--version", "-1"), "-1"),
        (("new", "--language", "fr"), "fr"),
        (("old",), "there is no command 'journal old'"),
        ((), "say what to do: new, fill or audit"),
    ],
)
def test_wrong_use(desk: Desk, args: tuple[str, ...], message: str) -> None:
    assert message in unchanged(desk, lambda: desk(*args, code=2))


def test_runs_that_are_none(v40: Desk) -> None:
    v40("new")
    (v40.root / "empty").mkdir()
    assert "there is no such folder" in unchanged(v40, lambda: v40("fill", "--run", "nowhere", code=2))
    assert "this is a file" in unchanged(v40, lambda: v40("fill", "--run", "dev_v40.md", code=2))
    assert "nothing that a journal tells of is in empty" in unchanged(
        v40, lambda: v40("fill", "--run", "empty", code=1)
    )
    assert "no run is named" in unchanged(v40, lambda: v40("fill", code=2))


def test_texts_that_are_none(desk: Desk) -> None:
    write_run(desk.root / "run")
    for data, message in (
        ("# a".encode("utf-16"), "UTF-16"), (b"\xff\xff\xff", "neither UTF-8 nor GBK"), (b"a\0b", "binary"), (b"x" * (21 << 20), "too large"),
    ):  # fmt: skip
        desk.write(3, data)
        for args in (("fill", "--run", "run"), ("audit",), ("new",)):
            assert message in desk(*args, code=2)
            assert (desk.root / "dev_v3.md").read_bytes() == data


def test_a_journal_is_never_overwritten(v40: Desk) -> None:
    v40("new")
    assert "never overwritten" in unchanged(v40, lambda: v40("new", "--version", "41", code=2))
    assert "is older than dev_v41.md" in unchanged(v40, lambda: v40("new", "--version", "12", code=2))
    (v40.root / "dev_v42.md").symlink_to("nowhere")
    assert "no such file" in unchanged(v40, lambda: v40("new", code=2))


@pytest.mark.parametrize(
    ("error", "words"),
    [(errno.EACCES, "Permission denied"), (errno.ENOSPC, "No space left"), (errno.EROFS, "Read-only")],
)
def test_a_folder_that_can_not_be_written(v40: Desk, monkeypatch: pytest.MonkeyPatch, error: int, words: str) -> None:
    v40("new")
    v40("fill", "--run", "runs/v41")
    (v40.root / "runs/v41/command.txt").write_text("python train.py --other 1\n")

    def refuses(path: Path, **_: Any) -> None:
        raise OSError(error, os.strerror(error), str(path))

    monkeypatch.setattr("muster.files.atomic_write.create_partial_file", refuses)
    for args in (("new", "--carry"), ("fill",)):
        said = unchanged(v40, lambda args=args: v40(*args, code=1))  # type: ignore[misc]
        assert f"it can't be written: {words}" in said


def test_a_read_only_journal(v40: Desk) -> None:
    v40("new")
    (v40.root / "dev_v41.md").chmod(0o444)
    assert "read-only" in unchanged(v40, lambda: v40("fill", "--run", "runs/v41", code=1))
    assert v40("audit")


def test_versions_that_jump(v40: Desk) -> None:
    v40("new", "--version", "45")
    assert "本目录中没有 dev_v41.md、dev_v42.md、dev_v43.md、dev_v44.md。" in v40.text(45)
    assert v40.json("audit")["notes"][-1] == "there is no dev_v41.md, dev_v42.md, dev_v43.md, dev_v44.md"


def test_a_run_that_is_half_written(v40: Desk) -> None:
    v40("new")
    with open(v40.root / "runs/v41/eval_history.jsonl", "a") as file:
        file.write('{"iter": 40, "stage": "main", "avg_final": NaN, "first_death_p10": 1}\n{"iter": 48, "avg')
    v40("fill", "--run", "runs/v41")
    assert "的最后一行没有写完，已略去。" in v40.text(41)
    assert "`avg_final` 在 1 次评估中不是有限数（iter 40）。" in v40.text(41)


def test_a_pickle_that_would_do_harm(v40: Desk, tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    bomb = b"cos\nsystem\n(S'touch " + str(witness).encode() + b"'\ntR."
    (v40.root / "runs/v41/training_stats.pkl").write_bytes(bomb)
    v40("new")
    v40("fill", "--run", "runs/v41")
    assert "it asks for os.system, which is not built here" in v40.text(41)
    assert not witness.exists()
