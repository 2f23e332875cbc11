"""The marks of a living run: one per declared source, in plain words, whatever the run does to its files."""

import json
import os
import pickle
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from muster.model.attempt import Order
from muster.model.attempt_snapshot import ProgressMark
from muster.model.campaign import AxisValue, DeclaredProgress, Job
from muster.model.cell import Cell
from muster.readers import progress as sources
from muster.readers.progress import ProgressReader
from muster.readers.records import growing_file

CELL = Cell("train/v2_full/2", "train", (("config", AxisValue("v2_full", "v2_full")), ("seed", AxisValue("2", 2))))
JSONL = DeclaredProgress("jsonl", "metrics.jsonl", "step")
WHOLE = pickle.dumps({"w": list(range(100))})
STARTED = time.time() + 1e6  # later than the time of any change here, which a test can't set


@pytest.fixture
def order(tmp_path: Path) -> Order:
    out = tmp_path / "attempt" / "out"
    out.mkdir(parents=True)
    return Order(
        cell=CELL.id, n=1, token="tok", epoch=1, argv=(), cwd="/", env={}, env_file="", slots=(), out=str(out),
        output=str(out), hash="", claimed_at="", claimed_boot=0.0, boot_id="", retry_cause=None, resumed_from=None,
        state="", bell="", ballast="", revive=(), revive_s=0.0, axes={}, code={},
    )  # fmt: skip


def reader(order: Order, *progress: DeclaredProgress, stage_key: Mapping[str, str] | None = None) -> ProgressReader:
    job = Job("train", ("config", "seed"), ("x",), steps=120_000, progress=progress)
    return ProgressReader(job, CELL, order, stage_key or {})


def put(path: Path, data: bytes = b"x", at: float | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    if at is not None:
        os.utime(path, (at, at))
    return path


def start(order: Order) -> None:
    put(Path(order.out).parent / "started", b"tok", STARTED)


def rows(*steps: float) -> bytes:
    return b"".join(json.dumps({"step": step}).encode() + b"\n" for step in steps)


def told(mark: ProgressMark) -> tuple[float | None, str, str]:
    return (mark.count, mark.reading, mark.trouble)


# -- each kind


def test_jsonl(order: Order) -> None:
    seen = reader(order, replace(JSONL, every_s=1000.0))
    (mark,) = seen.look()
    assert mark == ProgressMark(
        "metrics.jsonl", "jsonl", None, "nothing yet: metrics.jsonl does not exist", 1000.0, own=True
    )
    path = put(Path(order.out) / "metrics.jsonl", rows(41_000, 41_984))
    assert told(*seen.look()) == (41_984, "step 41984", "")
    path.unlink()
    assert told(*seen.look()) == (41_984, "step 41984; metrics.jsonl does not exist any more", "")
    put(path, b'{"loss": NaN}\n' * 20)
    (mark,) = seen.look()
    assert told(mark) == (41_984, "step 41984, before metrics.jsonl was replaced", "")
    assert (mark.unfit, mark.non_finite) == (20, "loss")
    put(path, rows(7))
    (mark,) = seen.look()
    assert (*told(mark), mark.unfit, mark.non_finite) == (7, "step 7", "", 0, "")


def test_scale(order: Order) -> None:
    seen = reader(order, replace(JSONL, scale=0.2))
    put(Path(order.out) / "metrics.jsonl", rows(41_984))
    (mark,) = seen.look()
    assert mark.count == pytest.approx(8396.8)
    assert mark.reading == "step 8397 (41984 x 0.2)"
    put(Path(order.out) / "metrics.jsonl", rows(3))
    assert seen.look()[0].reading == "step 0.6 (3 x 0.2)"


def test_csv_and_its_stage(order: Order) -> None:
    declared = DeclaredProgress("csv", "logs/progress.csv", "TotalEnvSteps")
    seen = reader(order, declared, stage_key={"logs/progress.csv": "phase"})
    path = put(Path(order.out) / "logs" / "progress.csv", b"Epoch,phase\n0,ne\n")
    assert told(*seen.look()) == (None, "logs/progress.csv has no column 'TotalEnvSteps'", "")
    put(path, b"TotalEnvSteps,phase\n1000.5,ne\n")
    (mark,) = seen.look()
    assert (told(mark), mark.stage) == ((1000.5, "step 1000.5", ""), "ne")


def test_stdout_reads_both_logs(order: Order) -> None:
    folder = Path(order.out).parent
    seen = reader(order, DeclaredProgress("stdout", r"step[: ]+(\d+)"))
    (mark,) = seen.look()
    assert (mark.signal, told(mark)) == ("stdout", (None, "nothing yet: no whole line was printed", ""))
    put(folder / "stdout.log", b"loading\n" * 150)
    put(folder / "stderr.log", b"warning\n" * 50)
    (mark,) = seen.look()
    assert (mark.unfit, told(mark)) == (200, (None, "0 of 200 lines fit its pattern", ""))
    put(folder / "stderr.log", b"warning\n" * 50 + b"\r step 12 of\r step 13 of")
    (mark,) = seen.look()
    assert (mark.unfit, told(mark)) == (0, (13, "step 13", ""))
    put(folder / "stdout.log", b"loading\n" * 150 + b"step 20\n")
    assert told(*seen.look()) == (20, "step 20", "")


def test_stdout_without_a_newline(order: Order) -> None:
    put(Path(order.out).parent / "stdout.log", b"x" * (3 << 20))
    assert (
        reader(order, DeclaredProgress("stdout", r"step (\d+)")).look()[0].reading
        == "no newline in the last 3.15 MB of stdout.log"
    )


def test_files(order: Order) -> None:
    replay = Path(order.out) / "replay"
    seen = reader(order, DeclaredProgress("files", "replay/*.npz"))
    assert told(*seen.look()) == (None, "nothing yet: no file fits replay/*.npz", "")
    put(replay / "chunk_0.npz")
    assert told(*seen.look()) == (1, "1 file, newest chunk_0.npz", "")
    for n in range(1, 512):
        put(replay / f"chunk_{n}.npz", at=1000 + n)
    put(replay / "chunk_0.npz", at=1000)
    assert told(*seen.look()) == (512, "512 files, newest chunk_511.npz", "")
    for path in replay.iterdir():
        path.unlink()
    assert told(*seen.look()) == (512, "0 files left of replay/*.npz", "")


def test_checkpoint(order: Order) -> None:
    seen = reader(order, DeclaredProgress("checkpoint", "checkpoint.ckpt"))
    assert told(*seen.look()) == (None, "nothing yet: checkpoint.ckpt does not exist", "")
    path = put(Path(order.out) / "checkpoint.ckpt", WHOLE[:50])
    (mark,) = seen.look()
    assert mark.count is None
    assert mark.reading.startswith("checkpoint.ckpt is no whole checkpoint: ")
    put(path, WHOLE)
    (mark,) = seen.look()
    assert mark.count == 1
    assert mark.reading.startswith("checkpoint.ckpt opens (pickle")
    path.unlink()
    assert told(*seen.look()) == (1, "checkpoint.ckpt does not exist any more", "")


@pytest.mark.parametrize("kind", ["wandb", "tensorboard"])
def test_records_that_are_not_there_yet(order: Order, kind: str) -> None:
    (mark,) = reader(order, DeclaredProgress(kind, "wandb")).look()  # type: ignore[arg-type]
    assert told(mark) == (None, "nothing yet: no records in wandb", "")


def test_the_step_is_the_highest_and_counts_of_files_are_none(order: Order) -> None:
    seen = reader(order, JSONL, DeclaredProgress("stdout", r"step (\d+)"), DeclaredProgress("files", "replay/*"))
    put(Path(order.out) / "metrics.jsonl", rows(10))
    put(Path(order.out).parent / "stdout.log", b"step 12\n")
    for n in range(20):
        put(Path(order.out) / "replay" / str(n))
    assert [mark.count for mark in seen.look()] == [10, 12, 20]


def test_two_sources_of_one_name_are_told_apart(order: Order) -> None:
    again = replace(JSONL, step="episode")
    seen = reader(order, JSONL, again, DeclaredProgress("stdout", r"a (\d+)"), DeclaredProgress("stdout", r"b (\d+)"))
    assert [mark.signal for mark in seen.look()] == ["metrics.jsonl", "metrics.jsonl (2)", "stdout", "stdout (2)"]


def test_the_stage_that_the_newest_row_names(order: Order) -> None:
    seen = reader(order, JSONL, stage_key={"metrics.jsonl": "stage"})
    put(Path(order.out) / "metrics.jsonl", b'{"step": 1, "stage": "ne"}\n{"step": 2}\n')
    assert seen.look()[0].stage == "ne"


# -- where


def test_placeholders(order: Order) -> None:
    seen = reader(
        order, DeclaredProgress("jsonl", "{config}/{seed}.jsonl", "step"), replace(JSONL, path="{nothing}.jsonl")
    )
    put(Path(order.out) / "v2_full" / "2.jsonl", rows(5))
    first, second = seen.look()
    assert (first.signal, first.count) == ("{config}/{seed}.jsonl", 5)
    assert second.trouble == "'{nothing}.jsonl' asks for {nothing}, which has no value here"


def test_a_glob_takes_the_highest_of_the_newest_files(order: Order) -> None:
    seen = reader(order, replace(JSONL, path="logs/*.jsonl"))
    assert told(*seen.look()) == (None, "nothing yet: logs/*.jsonl does not exist", "")
    put(Path(order.out) / "logs" / "a.jsonl", rows(5))
    put(Path(order.out) / "logs" / "b.jsonl", b'{"loss": 1}\n')
    assert seen.look()[0].count == 5
    put(Path(order.out) / "logs" / "b.jsonl", rows(9))
    assert seen.look()[0].count == 9
    for path in (Path(order.out) / "logs").iterdir():
        path.unlink()
    assert told(*seen.look()) == (9, "step 9", "")


def test_an_output_that_is_a_single_file(order: Order) -> None:
    path = put(Path(order.out) / "run.jsonl", rows(5))
    seen = reader(replace(order, output=str(path)), replace(JSONL, path="run.jsonl"))
    assert seen.look()[0].count == 5
    assert seen.output == str(path)


def test_an_output_with_glob_characters_in_its_name(order: Order, tmp_path: Path) -> None:
    put(tmp_path / "out[1]" / "metrics.jsonl", rows(5))
    put(tmp_path / "out[1]" / "replay" / "1.npz")
    seen = reader(replace(order, output=str(tmp_path / "out[1]")), JSONL, DeclaredProgress("files", "replay/*.npz"))
    assert [mark.count for mark in seen.look()] == [5, 1]


def test_an_output_that_is_found_late_and_kept(order: Order, tmp_path: Path) -> None:
    start(order)
    order = replace(order, output=str(tmp_path / "runs" / "*_2"))
    put(tmp_path / "runs" / "old_2" / "metrics.jsonl", rows(99), STARTED - 1000)
    os.utime(tmp_path / "runs" / "old_2", (STARTED - 1000, STARTED - 1000))
    put(Path(order.out).parent / "stdout.log", b"step 1\n")
    seen = reader(order, JSONL, DeclaredProgress("stdout", r"step (\d+)"))
    jsonl, printed = seen.look()
    assert told(jsonl) == (None, f"nothing yet: no folder fits {order.output} since the start", "")
    assert printed.count == 1
    assert seen.output is None

    ours = tmp_path / "runs" / "new_2"
    put(ours / "metrics.jsonl", rows(5), STARTED + 10)
    os.utime(ours, (STARTED + 10, STARTED + 10))
    assert [mark.count for mark in seen.look()] == [5, 1]
    assert seen.output == str(ours)

    other = tmp_path / "runs" / "newer_2"
    put(other / "metrics.jsonl", rows(77), STARTED + 100)
    os.utime(other, (STARTED + 100, STARTED + 100))
    assert seen.look()[0].count == 5
    assert seen.output == str(ours)

    ours.rename(tmp_path / "away")
    assert seen.look()[0].count == 77
    assert seen.output == str(other)


def test_a_folder_that_was_only_touched_is_left_for_one_that_was_made(order: Order, tmp_path: Path) -> None:
    start(order)
    order = replace(order, output=str(tmp_path / "runs" / "*_2"))
    put(tmp_path / "runs" / "old_2" / "metrics.jsonl", rows(99), STARTED - 1000)
    os.utime(tmp_path / "runs" / "old_2", (STARTED + 1, STARTED + 1))
    seen = reader(order, JSONL)
    assert seen.look()[0].count == 99  # all there is
    put(tmp_path / "runs" / "new_2" / "metrics.jsonl", rows(5), STARTED + 10)
    os.utime(tmp_path / "runs" / "new_2", (STARTED + 10, STARTED + 10))
    assert seen.look()[0].count == 5


# -- what can't be read


def test_what_can_not_be_read_keeps_the_last_count(order: Order, monkeypatch: pytest.MonkeyPatch) -> None:
    put(Path(order.out) / "metrics.jsonl", rows(5))
    put(Path(order.out) / "replay" / "1.npz")
    seen = reader(order, JSONL, DeclaredProgress("files", "replay/*.npz"))
    seen.look()
    put(Path(order.out) / "metrics.jsonl", rows(5, 6))

    def fails(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(growing_file.os, "pread", fails)
        jsonl, replay = seen.look()
    assert told(jsonl) == (5, "step 5", "metrics.jsonl can't be read: Input/output error")
    assert told(replay) == (1, "1 file, newest 1.npz", "")
    assert told(seen.look()[0]) == (6, "step 6", "")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(order: Order) -> None:
    put(Path(order.out) / "metrics.jsonl", rows(5)).chmod(0)
    assert reader(order, JSONL).look()[0].trouble == "metrics.jsonl can't be read: Permission denied"


def test_a_folder_in_the_place_of_a_file(order: Order) -> None:
    (Path(order.out) / "metrics.jsonl").mkdir()
    assert told(*reader(order, JSONL).look()) == (None, "nothing yet", "metrics.jsonl can't be read: Is a directory")


def test_of_several_files_one_that_can_not_be_read_silences_only_a_standstill(
    order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, step in (("a", 5), ("b", 3)):
        put(Path(order.out) / f"{name}.jsonl", rows(step))
    seen = reader(order, replace(JSONL, path="*.jsonl"))
    seen.look()
    look = sources.JsonlStepReader.look

    def half(self: sources.JsonlStepReader) -> None:
        if self.tail.path.endswith("b.jsonl"):
            raise OSError(5, "Input/output error")
        look(self)

    monkeypatch.setattr(sources.JsonlStepReader, "look", half)
    assert told(*seen.look()) == (5, "step 5", "b.jsonl can't be read: Input/output error")
    put(Path(order.out) / "a.jsonl", rows(8))
    assert told(*seen.look()) == (8, "step 8", "")


def test_nothing_escapes(order: Order, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(_: object) -> None:
        raise ValueError("never thought of")

    monkeypatch.setattr(sources.JsonlStepReader, "look", breaks)
    bad = DeclaredProgress("stdout", r"step (\d+")
    first, second = reader(order, JSONL, bad).look()
    assert first.trouble == "metrics.jsonl can't be read: ValueError: never thought of"
    assert second.trouble.startswith(r"'step (\d+' can't be used: ")


def test_no_sources(order: Order) -> None:
    seen = reader(order)
    assert seen.look() == ()
    assert seen.output == order.output
