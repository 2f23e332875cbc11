"""The history of a run that was killed and resumed: it reads as that of a run which nobody killed."""

from __future__ import annotations

import csv
import json
import math
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.model.provenance import HistoryGap, KeptRows, Resumption
from muster.readers.log_rows import (
    build_resumption,
    mask_below_step,
    mask_of_kept_rows,
    plan_join,
    step_in_checkpoint_name,
    steps_of_columns,
)
from muster.readers.records.joined_history import AttemptLogs, HistoryPiece, JoinedHistory, join_attempt_runs
from muster.readers.records.logged_runs import MeasuredRun, RunMeter, newest_run_in
from muster.readers.records.metric_reader import InMemoryReader, MetricColumn, MetricRows
from muster.rules.metric_summary import metric_summary_as_json
from muster.text.describe_run import describe_resumed_log

sys.path.insert(0, str(Path(__file__).parents[2] / "contract"))
from history_files import board_bytes, wandb_bytes

Row = tuple[float, float]


def joined(parts: list[list[float]], saved: list[float | None] | None = None) -> list[float]:
    joint = plan_join([steps_of_columns(part) for part in parts], saved or [])
    return [
        step + shift
        for part, end, shift in zip(parts, joint.ends, joint.shifts, strict=True)
        for step, kept in zip(part, mask_below_step(part, end), strict=True)
        if kept
    ]


def test_what_was_run_again_counts_once() -> None:
    assert joined([[100, 200, 300, 400], [300, 400, 500]]) == [100, 200, 300, 400, 500]
    assert joined([[100, 200], [300, 400]]) == [100, 200, 300, 400]
    assert joined([[100, 200, 300], [200, 300, 400, 500], [400, 500, 600]]) == [100, 200, 300, 400, 500, 600]


def test_the_checkpoint_tells_what_was_lost_where_its_number_can_be_a_step() -> None:
    irregular = [[10, 95, 210, 290, 330], [370, 450]]
    assert joined(irregular, [None, 300]) == [10, 95, 210, 290, 370, 450]  # 330 came after the checkpoint
    assert joined(irregular, [None, 3]) == [10, 95, 210, 290, 330, 370, 450]  # an epoch and no step
    assert joined(irregular, [None, 900]) == [10, 95, 210, 290, 330, 370, 450]


def test_rows_without_a_counter_are_put_one_after_another() -> None:
    assert joined([[0, 1, 2], [0, 1]]) == [0, 1, 2, 3, 4]
    assert joined([[50, 100, 150], [50, 100, 150, 200]]) == [50, 100, 150, 200]  # it began anew: the later one wins


def test_an_attempt_that_has_written_nothing_yet_takes_nothing_away() -> None:
    assert joined([[100, 200], []]) == [100, 200]
    assert joined([[], [300]]) == [300]
    assert joined([[100, math.nan], [200]])[0] == 100


@settings(deadline=None)  # numpy is loaded by the first
@given(st.data())
def test_a_history_cut_anywhere_and_joined_is_the_history(data: st.DataObject) -> None:
    """Each attempt begins at or before the end of what was written before it; what it ran again is the same."""
    steps = [float(step) for step in sorted(data.draw(st.sets(st.integers(2, 10_000), min_size=1, max_size=40)))]
    parts, end = [], 0
    for _ in range(data.draw(st.integers(1, 4))):
        begin = data.draw(st.integers(0, end))
        end = data.draw(st.integers(begin, len(steps)))
        parts.append(steps[begin:end])
    parts.append(steps[data.draw(st.integers(0, end)) :])
    ran = max((steps.index(part[-1]) + 1 for part in parts if part), default=0)
    assert joined(parts) == steps[:ran]


@settings(deadline=None)  # numpy is loaded by the first
@given(st.lists(st.integers(0, 99), min_size=2, max_size=40, unique=True), st.data())
def test_a_file_that_attempts_appended_to_reads_as_if_nobody_had_killed_it(
    steps: list[int], data: st.DataObject
) -> None:
    steps.sort()
    end = data.draw(st.integers(1, len(steps)))
    begin = data.draw(st.integers(0, end - 1))
    file = [float(step) for step in steps[:end] + steps[begin:]]
    assert [step for step, kept in zip(file, mask_of_kept_rows(file, 1), strict=True) if kept] == sorted(
        map(float, steps)
    )


def test_steps_that_go_back_all_the_time_are_no_counter() -> None:
    assert all(mask_of_kept_rows([1, 2, 1, 2, 1, 2], 1))


def test_what_is_missing_is_told() -> None:
    stretches = [steps_of_columns([50, 100, 150]), steps_of_columns([450, 500])]
    told = build_resumption([[1], [2]], stretches, plan_join(stretches))
    assert told == Resumption(1, (KeptRows(1, 3, 0, 150),), (HistoryGap(5, 150, 450),), (), 50)
    assert describe_resumed_log(told) == (
        "it was resumed 1 x; rows of attempt 1 count up to step 150; about 5 rows between steps 150 and 450 are missing"
    )
    stretches = [steps_of_columns([]), steps_of_columns([450, 500])]
    told = build_resumption([[1], [3]], stretches, plan_join(stretches))
    assert "the history before step 450 is not there: attempt 1 left no row that can be read" in describe_resumed_log(
        told
    )
    assert "第 450 步之前的历史缺失" in describe_resumed_log(told, "zh")


@pytest.mark.parametrize(("path", "step"), [
    ("/out/checkpoints/001400", 1400), ("/out/checkpoints/001400/pretrained_model", 1400), ("/o/rl_model_9000_steps.zip", 9000),
    ("/out/checkpoints/last", None), ("/c/.muster/attempts/train/a/1/out/latest.pt", None), (None, None),
])  # fmt: skip
def test_the_step_in_the_name_of_a_checkpoint(path: str | None, step: float | None) -> None:
    assert step_in_checkpoint_name(path) == step


# -- readers


def column(rows: list[Row]) -> MetricColumn:
    from array import array

    return array("d", (step for step, _ in rows)), array("d", (value for _, value in rows))


def held(rows: list[Row], name: str = "m") -> InMemoryReader:
    return InMemoryReader(name, "held", [MetricRows({"loss": column(rows)}, len(rows))] if rows else [])


def test_a_later_look_costs_what_is_new_until_what_counts_changes() -> None:
    first, second = held([(1, 9.0), (2, 8.0), (3, 7.0)]), held([])
    reader = JoinedHistory(
        [HistoryPiece((1,), lambda: held([(1, 9.0), (2, 8.0), (3, 7.0)])), HistoryPiece((2,), lambda: second)]
    )
    assert [list(rows.columns["loss"][0]) for rows in reader.read() if rows.columns] == [[1, 2, 3]]
    second.rows = [MetricRows({"loss": column([(3, 6.5)])}, 1)]
    again = [rows for rows in reader.read() if rows.columns or rows.fresh]
    assert again[0].fresh, "what was lost was handed out before"
    assert [list(rows.columns["loss"][0]) for rows in again] == [[1, 2], [3]]
    second.rows.append(MetricRows({"loss": column([(4, 6.0)])}, 1))
    more = list(reader.read())
    assert [(rows.fresh, list(rows.columns["loss"][0])) for rows in more] == [(False, [4])]
    assert first.path == "m"


def write(folder: Path, rows: list[dict[str, float]], kind: str, mode: str = "w") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if kind == "jsonl":
        with (folder / "metrics.jsonl").open(mode) as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        return
    with (folder / "progress.csv").open(mode, newline="") as file:
        table = csv.DictWriter(file, ["step", "loss"])
        if mode == "w":
            table.writeheader()
        table.writerows(rows)


def measured(folders: list[Path]) -> MeasuredRun:
    run = join_attempt_runs([AttemptLogs(n, newest_run_in(str(folder)).run) for n, folder in enumerate(folders, 1)])
    assert run is not None
    meter = RunMeter(run.feeds())
    meter.look()
    return meter.measured()


WHOLE = [{"step": step, "loss": 1000.0 / step} for step in range(50, 1550, 50)]


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_a_killed_and_resumed_run_measures_as_one_that_was_not(tmp_path: Path, kind: str) -> None:
    write(tmp_path / "0", WHOLE, kind)
    write(tmp_path / "1", WHOLE[:20], kind)
    write(tmp_path / "2", WHOLE[16:], kind)
    write(tmp_path / "all", WHOLE[:20], kind)
    write(tmp_path / "all", WHOLE[16:], kind, "a")
    alone = measured([tmp_path / "0"])
    for folders in ([tmp_path / "1", tmp_path / "2"], [tmp_path / "all", tmp_path / "all"]):
        found = measured(folders)
        for of in ("first", "last", "mean", "min", "max", "count", "slope", "last_step"):
            assert getattr(found.keys["loss"], of) == pytest.approx(getattr(alone.keys["loss"], of)), (folders, of)
        assert found.keys["loss"].window(10).mean == pytest.approx(alone.keys["loss"].window(10).mean)
        assert found.resumed
        assert found.resumed.times == 1
    assert alone.resumed is None


@pytest.mark.parametrize("kind", ["wandb", "tensorboard"])
def test_records_of_each_attempt_have_names_of_their_own(tmp_path: Path, kind: str) -> None:
    for name, rows in (("0", WHOLE), ("1", WHOLE[:20]), ("2", WHOLE[16:])):
        folder = tmp_path / name / (f"wandb/offline-run-2026010{name}_000000-id{name}" if kind == "wandb" else "tb")
        folder.mkdir(parents=True)
        if kind == "wandb":
            records = [{"_step": row["step"], **row} for row in rows]
            (folder / f"run-id{name}.wandb").write_bytes(wandb_bytes(records))
        else:
            (folder / f"events.out.tfevents.{name}.host").write_bytes(board_bytes(rows))
    alone, found = measured([tmp_path / "0"]), measured([tmp_path / "1", tmp_path / "2"])
    assert metric_summary_as_json(found.keys["loss"]) == pytest.approx(metric_summary_as_json(alone.keys["loss"]))
    assert found.resumed
    assert (found.resumed.kept, found.resumed.gaps) == ((KeptRows(1, 16, 4, 800),), ())


def test_the_files_of_all_attempts_are_named(tmp_path: Path) -> None:
    write(tmp_path / "1", WHOLE[:20], "jsonl")
    write(tmp_path / "2", WHOLE[16:], "jsonl")
    run = join_attempt_runs([AttemptLogs(n, newest_run_in(str(tmp_path / str(n))).run) for n in (1, 2)])
    assert run
    assert run.files() == [str(tmp_path / "1" / "metrics.jsonl"), str(tmp_path / "2" / "metrics.jsonl")]
