"""The history of a cell's run: one rule for which attempt counts and where it lies, and an honest reason for none."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from muster.app.campaign.campaign_status import CellStatus
from muster.app.metrics.cell_history import CellHistory, output_of_cell, read_cell_history
from muster.model.attempt import Attempt, CellRecord, Outcome
from muster.model.cell import Cell
from muster.model.verdict import Verdict, VerdictState
from muster.readers.discovery import folder_walk

DONE, DEAD = Outcome(VerdictState.DONE), Outcome(VerdictState.DEAD)


def cell(*outcomes: Outcome | None, output: str | None = None) -> CellStatus:
    tries = tuple(Attempt("train", n, "t", 1, (), "", "", 0.0, "", outcome=each) for n, each in enumerate(outcomes, 1))
    return CellStatus(
        CellRecord(Cell("train", "train", ()), 0, attempts=tries), Verdict(VerdictState.DONE, ""), "", output=output
    )


def log(folder: Path, loss: float) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics.jsonl").write_text(json.dumps({"step": 1, "loss": loss}) + "\n")
    return folder


def last(found: CellHistory | None) -> float | None:
    assert found is not None
    return found.keys["loss"].last


def test_the_attempt_that_was_completed_counts_else_the_newest(tmp_path: Path) -> None:
    for n in (1, 2, 3):
        log(tmp_path / "attempts" / "train" / str(n) / "out", float(n))
    assert last(read_cell_history(tmp_path, cell(DEAD, DONE, DEAD))) == 2
    assert last(read_cell_history(tmp_path, cell(DEAD, DEAD))) == 2
    assert last(read_cell_history(tmp_path, cell(DEAD, DEAD, None))) == 3
    assert read_cell_history(tmp_path, cell()) is None
    assert output_of_cell(tmp_path, cell()) is None


def test_a_living_run_writes_where_it_was_found_to_write(tmp_path: Path) -> None:
    away = log(tmp_path / "away", 7.0)
    assert last(read_cell_history(tmp_path, cell(None, output=str(away)))) == 7
    assert last(read_cell_history(tmp_path, cell(Outcome(VerdictState.DONE, output=str(away)), output="/other"))) == 7


def test_what_it_printed_counts_where_its_output_holds_no_value(tmp_path: Path) -> None:
    folder = tmp_path / "attempts" / "train" / "1"
    (folder / "out").mkdir(parents=True)
    (folder / "stdout.log").write_text("step: 3 loss: 0.5\n")
    assert last(read_cell_history(tmp_path, cell(DONE))) == 0.5
    (folder / "out" / "notes.log").write_text("hello\n")
    assert last(read_cell_history(tmp_path, cell(DONE))) == 0.5
    found = read_cell_history(tmp_path, cell(DONE), lambda key: key == "nope")
    assert found is not None
    assert found.measured is not None
    assert set(found.measured.others) == {"step", "loss"}
    log(folder / "out", 9.0)
    assert last(read_cell_history(tmp_path, cell(DONE))) == 9
    found = read_cell_history(tmp_path, cell(DONE), lambda key: key == "nope")
    assert found is not None
    assert not found.printed, "that a key was not asked for does not make the output empty"


def unread(tmp_path: Path) -> str:
    found = read_cell_history(tmp_path, cell(DONE))
    assert found is not None
    return found.unread


def test_why_there_is_no_value(tmp_path: Path) -> None:
    folder = tmp_path / "attempts" / "train" / "1"
    out = folder / "out"
    out.mkdir(parents=True)
    assert unread(tmp_path).startswith(f"nothing that it logged is in {out}: wandb/run-*")
    (folder / "stdout.log").write_text("hello\n")
    assert unread(tmp_path).endswith("; what it printed holds no number")
    assert unread(tmp_path).startswith(f"nothing that it logged is in {out}: wandb/run-*")
    (out / "metrics.jsonl").touch()
    assert unread(tmp_path) == f"no value in {out}/metrics.jsonl"
    (out / "metrics.jsonl").write_text("what?\n")
    assert unread(tmp_path) == "1 line that is no row"
    log(out, 1.0)
    assert unread(tmp_path) == ""


def test_what_nobody_could_look_at_is_the_reason_and_not_that_it_logged_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "attempts" / "train" / "1" / "out"
    log(out / "run", 1.0)
    scan = os.scandir

    def refuse(folder: str) -> Any:
        if folder.endswith("run"):
            raise PermissionError(13, "Permission denied")
        return scan(folder)

    monkeypatch.setattr(os, "scandir", refuse)
    assert unread(tmp_path) == f"what it logged was not found in {out}; {out}/run can't be read: Permission denied"
    (out / "metrics.jsonl").touch()
    assert unread(tmp_path).startswith(f"no value in {out}/metrics.jsonl; {out}/run can't be read")
    monkeypatch.setattr(os, "scandir", scan)
    (out / "metrics.jsonl").unlink()
    monkeypatch.setattr(folder_walk, "MOST_LOG_FOLDERS", 1)
    assert unread(tmp_path) == f"what it logged was not found in {out}; only the first 1 folder was looked at"
