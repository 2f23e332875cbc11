"""Which files make a run: as trainers leave them behind, with what lies beside them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from muster.readers.discovery import folder_walk
from muster.readers.records.logged_runs import RunMeter, discover_runs, newest_run_in, record_readers

sys.path.insert(0, str(Path(__file__).parents[2] / "contract"))
from history_files import board_bytes, hf_bytes, jsonl_bytes, wandb_bytes

ROWS = [{"step": step, "loss": 1.0 / (step + 1)} for step in range(5)]


def put(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def found(root: Path) -> dict[str, list[str]]:
    """Run -> its sources, both relative to the root."""
    return {
        str(Path(run.folder).relative_to(root)): [f"{each.kind} {Path(each.path).relative_to(root)}" for each in run.sources]
        for run in discover_runs(str(root)).runs
    }  # fmt: skip


def measured(root: Path) -> RunMeter:
    run = newest_run_in(str(root)).run
    assert run is not None
    meter = RunMeter(run.feeds())
    meter.look()
    return meter


def test_an_online_run_without_history_and_summary_is_read_from_its_records(tmp_path: Path) -> None:
    """What stopped the loop of the reference after its first round: current W&B leaves no history behind."""
    folder = tmp_path / "wandb" / "run-20260214_101500-ab12cd"
    put(folder / "run-ab12cd.wandb", wandb_bytes(ROWS))
    put(folder / "files" / "output.log", b"training\n")
    put(folder / "files" / "requirements.txt", b"wandb==0.31.0\n")
    put(folder / "logs" / "debug-internal.log", b'{"step": 7}\n')
    (tmp_path / "wandb" / "latest-run").symlink_to(folder.name)
    assert found(tmp_path) == {".": ["wandb wandb/run-20260214_101500-ab12cd/run-ab12cd.wandb"]}
    summary = measured(tmp_path).measured().keys["loss"]
    assert (summary.first, summary.last, summary.count, summary.last_step) == (1.0, 0.2, 5, 4)


def test_old_files_of_wandb_are_read_where_there_is_nothing_else(tmp_path: Path) -> None:
    run = tmp_path / "wandb" / "run-20190101_000000-old"
    put(run / "wandb-history.jsonl", b'{"_step": 3, "loss": 0.5, "_timestamp": 1546300800.0}\n')
    put(run / "wandb-summary.json", b'{"_step": 3, "loss": 0.25}')
    said = measured(tmp_path).measured().sources[0]
    assert said.format == "wandb-history"
    assert said.skipped == ("there is no .wandb file: read from wandb-history.jsonl",)
    (run / "wandb-history.jsonl").unlink()
    meter = measured(tmp_path)
    assert meter.measured().sources[0].format == "wandb-summary"
    assert meter.measured().keys["loss"].last == 0.25
    put(run / "run-old.wandb", b":W&B\xe1\xbe\x00")
    assert "its .wandb file holds nothing yet" in measured(tmp_path).measured().sources[0].skipped[0]
    put(run / "run-old.wandb", wandb_bytes(ROWS))
    assert measured(tmp_path).measured().sources[0].format == "wandb"


def test_a_run_that_was_resumed_is_one_run(tmp_path: Path) -> None:
    put(tmp_path / "wandb" / "offline-run-20260101_000000-x" / "run-x.wandb", wandb_bytes(ROWS[:2]))
    put(tmp_path / "wandb" / "run-20260102_000000-x" / "run-x.wandb", wandb_bytes(ROWS[2:], exit_code=0))
    result = measured(tmp_path).measured()
    assert result.keys["loss"].count == 5
    assert result.keys["loss"].last == 0.2
    assert result.ended is not None
    assert result.ended.code == 0


def test_several_runs_of_one_wandb_folder_are_told_apart(tmp_path: Path) -> None:
    for day, name in enumerate(("aa", "bb"), 1):
        put(tmp_path / "wandb" / f"run-2026010{day}_000000-{name}" / f"run-{name}.wandb", wandb_bytes(ROWS))
    (tmp_path / "wandb" / "latest-run").symlink_to("run-20260102_000000-bb")
    runs = found(tmp_path)
    assert set(runs) == {".", "wandb/run-20260101_000000-aa"}
    run = newest_run_in(str(tmp_path)).run
    assert run is not None
    assert run.folder == str(tmp_path)
    assert run.passed == ("left aside, as other runs: wandb/run-20260101_000000-aa",)


def test_a_folder_of_many_runs(tmp_path: Path) -> None:
    for run in ("2026-01-01/10-00_act", "2026-01-01/11-00_act", "2026-01-02/09-00_act"):
        put(tmp_path / run / "wandb" / f"offline-run-20260101_000000-{run[-8:-6]}" / "run-x.wandb", wandb_bytes(ROWS))
        put(tmp_path / run / "checkpoints" / "000100" / "train.log", b"step=1 loss=3\n")
    assert set(found(tmp_path)) == {"2026-01-01/10-00_act", "2026-01-01/11-00_act", "2026-01-02/09-00_act"}


def test_several_formats_of_one_run_and_which_of_them_counts(tmp_path: Path) -> None:
    put(tmp_path / "metrics.jsonl", jsonl_bytes([{"step": 1, "loss": 0.125, "a": 1.0}]))
    put(tmp_path / "tb" / "train" / "events.out.tfevents.10.host", board_bytes([{"step": 1, "loss": 9.0, "b": 2.0}]))
    put(tmp_path / "tb" / "eval" / "events.out.tfevents.11.host", board_bytes([{"step": 1, "loss": 8.0}]))
    put(tmp_path / "train.log", b"step=1 loss=7\n")
    put(tmp_path / ".git" / "metrics.jsonl", b'{"step": 1}\n')
    put(tmp_path / "node_modules" / "progress.csv", b"step,a\n1,1\n")
    assert found(tmp_path) == {".": ["jsonl metrics.jsonl", "tensorboard tb/eval", "tensorboard tb/train"]}
    keys = measured(tmp_path).measured().keys
    assert {key: summary.last for key, summary in keys.items()} == {
        "step": 1, "loss": 0.125, "a": 1, "tb/eval/loss": 8, "tb/train/loss": 9, "tb/train/b": 2,
    }  # fmt: skip


def test_event_files_follow_each_other_by_their_time(tmp_path: Path) -> None:
    put(tmp_path / "events.out.tfevents.200.host", board_bytes(ROWS[3:]))
    put(tmp_path / "events.out.tfevents.100.host", board_bytes(ROWS[:3]))
    meter = measured(tmp_path)
    assert list(meter.measured().keys["loss"].tail_steps) == [0, 1, 2, 3, 4]
    put(tmp_path / "events.out.tfevents.300.host", board_bytes([{"step": 9, "loss": 2.0}]))
    meter.look()
    assert meter.measured().keys["loss"].last_step == 9


def test_every_file_that_holds_the_numbers_of_a_run_is_named(tmp_path: Path) -> None:
    """A folder of event files, or one W&B run in two folders: whoever hashes a history needs all of it, and no more."""
    board = [put(tmp_path / "a" / f"events.out.tfevents.{at}00.host", board_bytes(ROWS)) for at in (1, 2)]
    put(tmp_path / "a" / "model.safetensors", b"large")
    folders = ("offline-run-20260101_000000-x", "run-20260102_000000-x")
    resumed = [put(tmp_path / "b" / "wandb" / each / "run-x.wandb", wandb_bytes(ROWS)) for each in folders]
    state = put(tmp_path / "c" / "checkpoint-5" / "trainer_state.json", hf_bytes(ROWS))
    for folder, files in (("a", board), ("b", resumed), ("c", [state])):
        run = newest_run_in(str(tmp_path / folder)).run
        assert run is not None
        assert run.files() == [str(path) for path in files]


def test_the_newest_trainer_state_holds_all(tmp_path: Path) -> None:
    put(tmp_path / "checkpoint-5" / "trainer_state.json", hf_bytes(ROWS[:2]))
    put(tmp_path / "checkpoint-100" / "trainer_state.json", hf_bytes(ROWS))
    run = newest_run_in(str(tmp_path)).run
    assert run is not None
    assert run.sources[0].path.endswith("checkpoint-100/trainer_state.json")
    assert run.passed == ("1 older trainer_state.json: the newest holds their rows",)


def test_a_dataset_is_no_history(tmp_path: Path) -> None:
    put(tmp_path / "train.jsonl", b'{"text": "x", "label": 1}\n' * 3)
    put(tmp_path / "rounds.jsonl", json.dumps({"round": 1, "score": 2.0}).encode() + b"\n")
    assert found(tmp_path) == {".": ["jsonl rounds.jsonl"]}


def test_what_was_printed_is_read_where_there_is_nothing_else(tmp_path: Path) -> None:
    put(tmp_path / "stdout.log", b"step:10 loss:0.5\nstep:20 loss:0.25\n")
    assert measured(tmp_path).measured().keys["loss"].last == 0.25
    assert newest_run_in(str(tmp_path / "nowhere")).run is None


def test_a_file_by_its_name(tmp_path: Path) -> None:
    files = {"r.wandb": wandb_bytes(ROWS), "events.out.tfevents.1": board_bytes(ROWS), "x.csv": b"step,loss\n1,0.5\n",
             "m.jsonl": jsonl_bytes(ROWS), "trainer_state.json": hf_bytes(ROWS), "o.txt": b"step=1 loss=0.5\n"}  # fmt: skip
    for name, data in files.items():
        meter = measured(put(tmp_path / name, data))
        assert "loss" in meter.measured().keys, name


def test_a_source_that_can_not_be_read_is_told_and_the_others_are_read(tmp_path: Path) -> None:
    put(tmp_path / "metrics.jsonl", jsonl_bytes(ROWS))
    meter = measured(tmp_path)
    (tmp_path / "metrics.jsonl").unlink()
    (tmp_path / "metrics.jsonl").mkdir()
    meter.look()
    assert meter.measured().troubles == (f"{tmp_path}/metrics.jsonl can't be read: Is a directory",)
    assert meter.measured().keys["loss"].count == 5


# -- W&B's own folders


def test_only_what_lies_below_the_folder_that_was_asked_for_tells_whose_it_is(tmp_path: Path) -> None:
    """The folder may lie in one that is called wandb: a user's, with anything in it."""
    home = tmp_path / "wandb" / "exp1"
    put(home / "metrics.jsonl", jsonl_bytes(ROWS))
    put(home / "tb" / "events.out.tfevents.10.host", board_bytes(ROWS))
    put(home / "printed" / "train.log", b"step=1 loss=3\n")
    assert found(home) == {
        ".": ["jsonl metrics.jsonl", "tensorboard tb"],
        "printed": ["stdout printed/train.log"],
    }
    assert [run.folder for run in discover_runs(f"{home}/").runs] == [str(home), str(home / "printed")]
    put(tmp_path / "wandb" / "run-20260101_000000-a" / "files" / "output.log", b"step=1 loss=3\n")
    assert found(tmp_path) == {}, "below it, it is W&B's own"


@pytest.mark.parametrize("names", [("aa",), ("aa", "bb")])
def test_what_wandb_says_of_itself_is_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
) -> None:
    home = tmp_path / "wandb"
    for day, name in enumerate(names, 1):
        folder = home / f"run-2026010{day}_000000-{name}"
        put(folder / f"run-{name}.wandb", wandb_bytes(ROWS))
        put(folder / "files" / "output.log", b"step=1 loss=3\n")
        for log in ("debug.log", "debug-internal.log", "debug-core.log"):
            put(folder / "logs" / log, b"handle_request: step: 7 loss: 3\n")
            (home / log).unlink(missing_ok=True)
            (home / log).symlink_to(folder / "logs" / log)
    put(home / "debug-cli.me.log", b"step: 7 loss: 3\n")
    monkeypatch.chdir(home)
    for root in (".", str(home)):
        assert [each.kind for run in discover_runs(root).runs for each in run.sources] == ["wandb"] * len(names)
    newest = f"run-2026010{len(names)}_000000-{names[-1]}"
    for root in (newest, str(home / newest)):
        (run,) = discover_runs(root).runs
        assert (run.folder, [each.kind for each in run.sources]) == (root, ["wandb"])
    monkeypatch.chdir(home / newest)
    (run,) = discover_runs(".").runs
    assert (run.folder, [each.kind for each in run.sources]) == (".", ["wandb"])


def test_the_records_of_one_kind_with_all_their_files(tmp_path: Path) -> None:
    home = tmp_path / "wandb"
    older = put(home / "offline-run-20260101_000000-x" / "run-x.wandb", wandb_bytes(ROWS[:2]))
    newer = put(home / "run-20260102_000000-x" / "run-x.wandb", wandb_bytes(ROWS[2:]))
    put(home.parent / "metrics.jsonl", jsonl_bytes(ROWS))
    ((reader, prefix),) = record_readers(str(home), "wandb")
    assert (list(reader.files), prefix) == ([str(older), str(newer)], "")
    assert record_readers(str(home), "tensorboard") == []
    assert record_readers(str(tmp_path / "nowhere"), "wandb") == []


# -- what was not looked at


def test_a_crowded_folder_hides_no_known_name_and_says_that_it_was_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_walk, "MOST_LOGS_PER_FOLDER", 5)
    known = {
        "metrics.jsonl": jsonl_bytes(ROWS), "progress.csv": b"step,loss\n1,1\n", "run-x.wandb": wandb_bytes(ROWS),
        "events.out.tfevents.1.host": board_bytes(ROWS), "trainer_state.json": hf_bytes(ROWS),
    }  # fmt: skip
    for at in range(300):
        put(tmp_path / f"episode-{at}.npz", b"")
    for name, data in known.items():
        put(tmp_path / name, data)
    put(tmp_path / "wandb" / "run-20260101_000000-y" / "run-y.wandb", wandb_bytes(ROWS))
    put(tmp_path / "tb" / "events.out.tfevents.1.host", board_bytes(ROWS))
    put(tmp_path / "checkpoint-5" / "trainer_state.json", hf_bytes(ROWS))
    seen = folder_walk.walk_for_logs(str(tmp_path))
    assert {os.path.relpath(path, tmp_path) for path in seen.files} >= {
        *known, "wandb/run-20260101_000000-y/run-y.wandb", "tb/events.out.tfevents.1.host",
        "checkpoint-5/trainer_state.json",
    }  # fmt: skip
    assert seen.cut == f"in {tmp_path} only 5 entries and files with known names were looked at"
    assert newest_run_in(str(tmp_path)).told == (seen.cut,)
    for name in ("a", "b"):
        for at in range(6):
            put(tmp_path / "tb" / name / str(at), b"")
    told = folder_walk.walk_for_logs(str(tmp_path / "tb")).cut
    assert told == f"in {tmp_path}/tb/a and 1 other folder only 5 entries and files with known names were looked at"


def test_an_endless_folder_ends_with_the_patience(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_walk, "MOST_LOGS_PER_FOLDER", 5)
    monkeypatch.setattr(folder_walk, "_ENTRIES_BETWEEN_CHECKS", 1)
    for at in range(20):
        put(tmp_path / f"episode-{at}.npz", b"")
    seen = folder_walk.walk_for_logs(str(tmp_path), patience_s=0.0)
    assert len(seen.files) == 5
    assert seen.cut.endswith(f"; {tmp_path} was not looked at to its end: that takes too long")
    put(tmp_path / "a" / "b" / "metrics.jsonl", jsonl_bytes(ROWS))
    assert newest_run_in(str(tmp_path / "a"), 0.0).told == ("only the first 1 folder was looked at",)


def test_a_folder_that_can_not_be_read_is_told_by_who_asks_for_one_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "locked" / "metrics.jsonl", jsonl_bytes(ROWS))
    put(tmp_path / "open" / "train.log", b"step=1 loss=3\n")
    (tmp_path / "open" / "round").symlink_to("round")  # a link to itself
    scan = os.scandir

    def refuse(folder: str) -> object:
        if folder.endswith("locked"):
            raise PermissionError(13, "Permission denied")
        return scan(folder)

    monkeypatch.setattr(os, "scandir", refuse)
    found = newest_run_in(str(tmp_path))
    assert found.run is not None
    assert found.run.folder == str(tmp_path / "open"), "the others are still looked at"
    assert found.told[0] == f"{tmp_path}/locked can't be read: Permission denied"
    assert len(found.told) == 2


def test_a_run_of_which_wandb_left_no_record_is_told(tmp_path: Path) -> None:
    put(tmp_path / "a" / "metrics.jsonl", jsonl_bytes(ROWS))
    put(tmp_path / "b" / "wandb" / "run-20260214_101500-ab12cd" / "logs" / "debug.log", b"x")
    put(tmp_path / "c" / "wandb" / "run-20260214_101500-ab12ce" / "run-ab12ce.wandb", wandb_bytes(ROWS))
    seen = discover_runs(str(tmp_path))
    assert [Path(run.folder).name for run in seen.runs] == ["a", "c"]
    (told,) = seen.troubles
    assert told.startswith(f"{tmp_path / 'b' / 'wandb'} holds no record of W&B (*.wandb)")
