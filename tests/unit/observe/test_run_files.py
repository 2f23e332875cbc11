"""What a run left in its folder: read with all that can be wrong with it."""

from __future__ import annotations

import json
import math
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from muster.app.journal import run_files
from muster.app.journal.run_files import (
    RunFolderContents,
    RunFolderReader,
    UnreadableCommand,
    find_command_file,
    read_command_file,
    read_script_of_command,
    read_series_file,
)


def found(folder: Path) -> RunFolderContents:
    return RunFolderReader(folder, folder.parent).read(lambda path: f"hash of {os.path.basename(path)}")  # noqa: PTH119


def keys(found_: RunFolderContents) -> list[str]:
    return [each.key for each in found_.troubles]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "v41"
    made.mkdir()
    return made


def test_an_empty_folder_has_nothing(folder: Path) -> None:
    nothing = found(folder)
    assert (nothing.evaluations, nothing.gates, nothing.schedule, nothing.training, nothing.files) == (
        None,
        (),
        None,
        None,
        (),
    )
    assert nothing.troubles == ()


def test_evaluations(folder: Path) -> None:
    (folder / "eval_history.jsonl").write_text(
        '{"iter": 8, "stage": "ne", "a": 1.5, "b": NaN, "nested": {"c": 2}, "text": "x", "flag": true}\n'
        "\n"
        "no json\n"
        '{"iter": 16, "stage": "ne", "a": 2}\n'
        '{"iter": 24, "stage": "ne", "a": 2}\n'
        '{"iter": 16, "stage": "ne", "a": 3}\n'
        '{"iter": 16, "stage": "main", "a": 4}\n'
        '{"iter": 24, "a": 5'
    )
    told = found(folder)
    assert told.evaluations is not None
    assert told.evaluations.source == "v41/eval_history.jsonl"
    assert [(row.at, row.stage, row.values.get("a")) for row in told.evaluations.rows] == [
        (8, "ne", 1.5), (16, "ne", 3), (16, "main", 4),
    ]  # fmt: skip
    assert sorted(keys(told)) == ["trouble.again", "trouble.lines", "trouble.torn"]


def test_the_last_line_needs_no_newline(folder: Path) -> None:
    (folder / "eval_multi_history.jsonl").write_text('{"iteration": 8, "b": NaN, "c": Infinity, "nested": {"c": 2}}')
    told = found(folder)
    assert told.evaluations is not None
    (row,) = told.evaluations.rows
    assert row.at == 8
    assert math.isnan(row.values["b"])
    assert row.values["nested.c"] == 2
    assert keys(told) == []


def test_a_gate_after_a_resume(folder: Path) -> None:
    rows: list[dict[str, Any]] = [{"gate": "penalty", "settings": {"required": 2}}]
    rows += [{"iteration": at, "state": "hold", "phase": phase} for at, phase in ((8, 0), (16, 0), (16, 1), (24, 1))]
    (folder / "gate_trace.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (gate,) = found(folder).gates
    assert (gate.name, gate.settings) == ("penalty", {"required": 2})
    assert [(row["iteration"], row["phase"]) for row in gate.rows] == [(8, 0), (16, 1), (24, 1)]


def test_the_nearest_of_several_is_read_and_the_others_are_named(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "schedule_trace.json").write_text('{"iterations": 1}')
    (folder / "schedule_trace.json").write_text('{"iterations": 2}')
    told = found(folder)
    assert told.schedule == {"iterations": 2}
    (trouble,) = told.troubles
    assert trouble.parts["others"] == "v41/sub/schedule_trace.json"


@pytest.mark.parametrize("text", ["", "[1]", "{", "null", "\x00"])
def test_a_schedule_that_is_none(folder: Path, text: str) -> None:
    (folder / "schedule_trace.json").write_text(text)
    told = found(folder)
    assert told.schedule is None
    assert keys(told) == ["trouble.unread"]


def test_large_and_unreadable_files_are_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_files, "MOST_CONTENT_BYTES", 10)
    (folder / "eval_history.jsonl").write_text('{"iter": 8, "a": 1.5}\n')
    assert keys(found(folder)) == ["trouble.large"]
    monkeypatch.setattr(run_files, "MOST_FILES", 1)
    (folder / "b").write_text("x")
    assert "trouble.many" in keys(found(folder))


def test_series_of_a_pickle(folder: Path) -> None:
    stats = {
        "survival": np.linspace(0, 1, 5),
        "deaths": [1, 2, 3],
        "name": "x",
        "deep": {"a": [1.0]},
        "two_d": np.zeros((2, 2)),
    }
    (folder / "training_stats.pkl").write_bytes(pickle.dumps(stats))
    told = found(folder)
    assert told.training is not None
    assert told.training.series == {"survival": [0, 0.25, 0.5, 0.75, 1], "deaths": [1, 2, 3], "deep.a": [1]}
    records = [{"loss": np.float32(2.5), "x": 1}, {"loss": 1.5, "x": 2, "late": 3}]
    (folder / "training_stats.pkl").write_bytes(pickle.dumps(records))
    assert read_series_file(str(folder / "training_stats.pkl")) == ({"loss": [2.5, 1.5], "x": [1, 2]}, "")


class Harm:
    def __reduce__(self) -> Any:
        return os.system, ("touch harm",)


def test_a_pickle_that_would_do_harm_is_told_and_the_log_is_read(folder: Path) -> None:
    (folder / "training_stats.pkl").write_bytes(pickle.dumps({"a": Harm()}))
    (folder / "train.jsonl").write_text(
        "".join(f'{{"iteration": {at}, "survival": {at / 10}}}\n' for at in range(1, 5))
    )
    told = found(folder)
    assert told.training is not None
    assert told.training.series == {"survival": [0.1, 0.2, 0.3, 0.4]}
    (trouble,) = told.troubles
    assert "system" in str(trouble.parts["why"])
    assert not Path("harm").exists()


def test_series_of_an_archive(folder: Path) -> None:
    np.savez(folder / "training_stats.npz", survival=np.arange(3.0))
    assert read_series_file(str(folder / "training_stats.npz")) == ({"survival": [0, 1, 2]}, "")
    np.savez_compressed(folder / "b.npz", bomb=np.zeros(20_000_000))
    assert read_series_file(str(folder / "b.npz")) == ({}, "it unfolds to more than 128 MiB")
    np.savez(folder / "o.npz", bad=np.array([Harm()], dtype=object))
    assert read_series_file(str(folder / "o.npz"))[0] == {}
    assert read_series_file(str(folder / "missing.pkl"))[1] == "No such file or directory"


def test_the_list_of_files(folder: Path) -> None:
    (folder / "ck").mkdir()
    for number in range(20):
        (folder / "ck" / f"{number}.bin").write_bytes(b"12")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "x.pyc").write_bytes(b"1")
    (folder / "a.png").write_bytes(b"1")
    (folder / "gone").symlink_to("nowhere")
    told = found(folder)
    assert [(each.path, each.size, each.sha256, each.count) for each in told.files] == [
        ("v41/a.png", 1, "hash of a.png", 1), ("v41/ck/", 40, "hash of ck", 20),
    ]  # fmt: skip
    assert told.pictures == ("v41/a.png",)


# -- commands


@pytest.mark.parametrize(
    ("name", "text", "argv", "cwd"),
    [
        ("command.txt", "python a.py --x 1 \\\n  --y 'b c'\n", ("python", "a.py", "--x", "1", "--y", "b c"), ""),
        ("command.sh", "#!/bin/sh\npython a.py\n", ("python", "a.py"), ""),
        ("argv.json", '["python", "a.py"]', ("python", "a.py"), ""),
        ("argv.json", '{"argv": ["a.py", "--x"], "cwd": "/w"}', ("a.py", "--x"), "/w"),
        ("command.json", '{"command": "python a.py"}', ("python", "a.py"), ""),
    ],
)
def test_commands(folder: Path, name: str, text: str, argv: tuple[str, ...], cwd: str) -> None:
    (folder / name).write_text(text)
    path = find_command_file(folder)
    assert path is not None
    assert read_command_file(path) == (argv, cwd)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("argv.json", "{"),
        ("argv.json", "[1]"),
        ("argv.json", "[]"),
        ("argv.json", "3"),
        ("command.txt", ""),
        ("command.txt", "a 'b"),
    ],
)
def test_commands_that_are_none(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    with pytest.raises(UnreadableCommand):
        read_command_file(folder / name)


def test_the_script_of_a_command(folder: Path) -> None:
    (folder / "a.py").write_text("x = 1\n")
    when = (folder / "a.py").stat().st_mtime
    script = read_script_of_command(("python", "a.py", "--x"), [folder / "no", folder], when - 10)
    assert script is not None
    assert (script.path, script.text, script.newer) == ("a.py", "x = 1\n", True)
    older = read_script_of_command(("python", "a.py"), [folder], when + 10)
    assert older is not None
    assert not older.newer
    assert read_script_of_command(("python", "-m", "pkg"), [folder], None) is None
    gone = read_script_of_command(("python", "b.py"), [folder], None)
    assert gone is not None
    assert gone.sha256 == ""
