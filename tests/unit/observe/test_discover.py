"""Which files make a run: as trainers leave them behind, with what lies beside them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from muster.observe.metrics.discover import discover, run_of
from muster.observe.metrics.meter import Meter

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
        for run in discover(str(root)).runs
    }  # fmt: skip


def measured(root: Path) -> Meter:
    run = run_of(str(root))
    assert run is not None
    meter = Meter(run.feeds(), curves=True)
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
    run = run_of(str(tmp_path))
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
    assert meter.curves()["loss"][0] == (0, 1, 2, 3, 4)
    put(tmp_path / "events.out.tfevents.300.host", board_bytes([{"step": 9, "loss": 2.0}]))
    meter.look()
    assert meter.measured().keys["loss"].last_step == 9


def test_the_newest_trainer_state_holds_all(tmp_path: Path) -> None:
    put(tmp_path / "checkpoint-5" / "trainer_state.json", hf_bytes(ROWS[:2]))
    put(tmp_path / "checkpoint-100" / "trainer_state.json", hf_bytes(ROWS))
    run = run_of(str(tmp_path))
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
    assert run_of(str(tmp_path / "nowhere")) is None


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
    assert meter.measured().troubles == (f"{tmp_path}/metrics.jsonl can't be read: it is no plain file",)
    assert meter.measured().keys["loss"].count == 5
