"""Files that W&B 0.12 to 0.17 wrote with `log(..., step=)`: their records hold the step in the item `_step` alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.engine.judge.liveness import RunWatch, count_conviction, judge_liveness
from muster.engine.judge.signal_history import STANDARD_THRESHOLDS, begin_history, fold_readings
from muster.model.attempt_snapshot import RunReadings, TreeVitals
from muster.model.campaign import DeclaredProgress, Job
from muster.model.verdict import VerdictState
from muster.readers.progress import RecordSource
from muster.readers.records.history_parts import HistoryChain
from muster.readers.records.record_steps import WandbStepReader
from muster.readers.records.wandb_records import WandbHistory, WandbHistoryRows, read_history_row

sys.path.insert(0, str(Path(__file__).parents[2] / "contract"))
sys.path.insert(0, str(Path(__file__).parents[2] / "fixtures" / "wandb_old"))
import make
from history_files import Held, field, framed, items, read, told

FIXTURES = Path(make.__file__).parent

of_steps = pytest.mark.parametrize("name", sorted(each.name for each in FIXTURES.glob("*-steps.wandb")))
of_nan = pytest.mark.parametrize("name", sorted(each.name for each in FIXTURES.glob("*-nan.wandb")))


def history(path: Path) -> Held:
    return read(HistoryChain.of_file(str(path), "wandb", WandbHistory))


def logged(shape: str, key: str) -> list[tuple[float, float]]:
    return [(float(step), float(row[key])) for step, row in make.rows(shape) if key in row]


def without_step(row: dict[str, Any]) -> bytes:
    """A record as the old clients wrote it."""
    return field(2, items(row))


@of_steps
def test_every_row_has_the_step_it_was_logged_with(name: str) -> None:
    found = history(FIXTURES / name)
    for key in ("train/loss", "train/lr"):
        assert found[key] == logged("steps", key)


@of_steps
def test_the_newest_step_is_progress(name: str) -> None:
    reader = WandbStepReader(str(FIXTURES / name))
    reader.look()
    assert reader.step == 1955


@of_nan
def test_rows_that_are_read_slowly_keep_their_place(name: str) -> None:
    found = history(FIXTURES / name)["eval/success"]
    assert told({"k": found}) == told({"k": logged("nan", "eval/success")})
    assert found[-1] == (400.0, 0.54)


def test_such_rows_are_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    slow: list[int] = []
    read_slowly = WandbHistoryRows._read_slowly
    monkeypatch.setattr(
        WandbHistoryRows, "_read_slowly", lambda self, body, row, steps: slow.append(row) or read_slowly(self, body, row, steps)
    )  # fmt: skip
    history(FIXTURES / "0.16.6-steps.wandb")
    assert slow == []


def test_a_step_field_counts_before_the_item(tmp_path: Path) -> None:
    path = tmp_path / "r.wandb"
    both = field(2, items({"a": 1.0, "_step": 9}) + field(2, b"\x08\x05"))
    zero = field(2, items({"a": 2.0, "_step": 9}) + field(2, b""))
    path.write_bytes(framed([both, zero, without_step({"a": 3.0, "_step": 9}), without_step({"a": 4.0})]))
    assert history(path)["a"] == [(5, 1), (0, 2), (9, 3), (0, 4)]


VALUES = st.one_of(
    st.floats(), st.integers(-(2**40), 2**40), st.sampled_from(["", "5", "x" * 200]), st.just({"x": 1.5})
)


@given(st.lists(st.dictionaries(st.sampled_from(["a", "b", "_step", "_steps"]), VALUES, max_size=4), max_size=8))
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=100, deadline=None
)
def test_at_once_and_one_by_one_are_the_same(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    path = tmp_path / "r.wandb"
    path.write_bytes(framed([without_step(row) for row in rows]))
    slowly: Held = {}
    for row in rows:
        step, _ = read_history_row(items(row))
        for key, value in row.items():
            if isinstance(value, dict):
                slowly.setdefault(f"{key}.x", []).append((step, value["x"]))
            elif not isinstance(value, str):
                slowly.setdefault(key, []).append((step, float(value)))
    assert told(history(path)) == told(slowly)


def test_a_live_run_of_an_old_client_progresses(tmp_path: Path) -> None:
    """Its file grows by a row a minute, and nothing else of it shows any work."""
    data = (FIXTURES / "0.16.6-steps.wandb").read_bytes()
    run = tmp_path / "wandb" / "offline-run-20260201_000000-bb"
    run.mkdir(parents=True)
    job = Job("train", (), ("x",), progress=(DeclaredProgress("wandb", "wandb", "_step"),), grace_s=300.0)
    source = RecordSource(job.progress[0], "wandb", str(tmp_path / "wandb"), None)
    past, states = begin_history(0.0, 0.0), []
    watch = RunWatch(past)
    for at in range(1, 40 * 12):
        (run / "run-bb.wandb").write_bytes(data[: 7 + len(data) * at // (40 * 12)])
        now = at * STANDARD_THRESHOLDS.poll_s
        vitals = TreeVitals("S", cpu_s=now * 0.003, io_bytes=0.0)
        fold_readings(past, RunReadings(now, (source.look(),), vitals), "S", STANDARD_THRESHOLDS)
        count_conviction(watch, job, now)
        states.append(judge_liveness(watch, job, now))
    assert {each.state for each in states} == {VerdictState.RUNNING}
    assert {each.confidence for each in states[100:]} == {"proven"}
