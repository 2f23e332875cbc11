"""Where numbers come from, and what a training logged on its way."""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from muster.model.attempt import Order
from muster.model.attempt_snapshot import ExitRecord
from muster.model.campaign import (
    AxisValue,
    BestOf,
    CheckpointProof,
    DeclaredProgress,
    DeclaredResult,
    Job,
    Proof,
    TakenAt,
)
from muster.model.cell import Cell
from muster.model.provenance import MetricRange, NoCurveReason, ResultOrigins
from muster.readers import result_origins
from muster.readers.curves import (
    MOST_CURVE_POINTS,
    curve_logs_of_attempt,
    curves_in_logs,
    keys_logged_for,
    read_missing_curves,
)
from muster.readers.log_rows import sweep_log_rows
from muster.readers.proof import FileProofReader
from muster.readers.result_origins import read_result_origins

sys.path.insert(0, str(Path(__file__).parents[2] / "contract"))
from history_files import board_bytes, wandb_bytes

CELL = Cell("train/full/0", "train", (("config", AxisValue("full", "full")), ("seed", AxisValue("0", 0))))
LENGTH = 1000.0


def sha256(path: str) -> str | None:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return None


def job(**more: Any) -> Job:
    progress = (DeclaredProgress("jsonl", "metrics.jsonl", "step"), DeclaredProgress("checkpoint", "model.npz"))
    return Job("train", ("config", "seed"), ("true",), progress=progress, **more)


@pytest.fixture
def order(tmp_path: Path) -> Order:
    """An attempt that ran for 1000 s and ended just now."""
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "started").write_text("token")
    (tmp_path / "exit.json").write_text("{}")
    now = time.time()
    os.utime(tmp_path / "started", (now - LENGTH, now - LENGTH))
    return Order(
        cell=CELL.id, n=1, token="token", epoch=1, argv=("true",), cwd=str(tmp_path), env={}, env_file="", slots=(),
        out=str(out), output=str(out), hash="", claimed_at="", claimed_boot=0.0, boot_id="", retry_cause=None,
        resumed_from=None, state="", bell="", ballast="", revive=(), revive_s=0.0, axes={}, code={},
    )  # fmt: skip


def put(order: Order, name: str, text: str, share: float | None = None) -> Path:
    """`share`: where in the run it was written last."""
    path = Path(order.out, name)
    path.write_text(text)
    if share is not None:
        at = time.time() - LENGTH * (1 - share)
        os.utime(path, (at, at))
    return path


def read(order: Order, asked: Job | None = None, **more: Any) -> ResultOrigins:
    return read_result_origins(
        asked or job(), CELL, order, ExitRecord(0, None, time.time(), 0.0, LENGTH), sha256, **more
    )


RESULTS = (
    DeclaredResult("score", "json", "result.json", "score"),
    DeclaredResult("cost", "json", "result.json", "cost"),
)


def test_result_files_their_values_and_hashes(order: Order) -> None:
    told = {"score": 1.5, "cost": 3, "episodes": 48, "checkpoint_sha256": "ab"}
    path = put(order, "result.json", json.dumps(told))
    found = read(order, job(results=RESULTS))
    assert found.results == {"score": str(path), "cost": str(path)}
    assert found.values == {"score": 1.5, "cost": 3.0}
    assert found.files == {str(path): sha256(str(path))}
    assert (found.episodes, found.evaluated) == (48, "ab")


def test_a_mean_over_rows_of_episodes_tells_how_many_they_are(order: Order) -> None:
    rows = "".join(json.dumps({"episode/score": each, "loss": 1.0}) + "\n" for each in (1.0, 2.0, 3.0))
    put(order, "metrics.jsonl", rows)
    score = DeclaredResult("score", "jsonl", "metrics.jsonl", "episode/score", "mean")
    assert read(order, job(results=(score,))).episodes == 3
    assert read(order, job(results=(replace(score, reduce="last"),))).episodes is None
    loss = replace(score, key="loss")
    assert read(order, job(results=(loss,))).episodes is None, "rows of a training are no episodes"
    assert read(order, job(results=(loss,), needs=("other",))).episodes == 3, "those of an evaluation are"


def test_what_can_not_be_read_has_no_value(order: Order) -> None:
    found = read(order, job(results=RESULTS))
    assert found.values == {}
    put(order, "result.json", '{"score": NaN, "cost": 1, "episodes": "many"}')
    found = read(order, job(results=RESULTS))
    assert found.values == {"cost": 1.0}
    assert found.episodes is None


def test_without_values_only_files_are_looked_at(order: Order) -> None:
    path = put(order, "result.json", "not even JSON")
    found = read(order, job(results=RESULTS), values=False)
    assert found.values == {}
    assert found.files == {str(path): sha256(str(path))}


@pytest.mark.parametrize(("saved", "early"), [(0.02, True), (0.5, True), (0.89, True), (0.95, False), (1.0, False)])
def test_a_checkpoint_older_than_the_end_of_its_training(order: Order, saved: float, early: bool) -> None:
    put(order, "metrics.jsonl", '{"step": 1}\n', 1.0)
    put(order, "model.npz", "weights", saved)
    checkpoint = read(order).checkpoint
    assert checkpoint is not None
    assert checkpoint.share == pytest.approx(saved, abs=0.01)
    assert checkpoint.early is early


def test_what_a_program_does_after_its_last_step_is_no_training(order: Order) -> None:
    """It evaluated for the last 40 % of its time."""
    put(order, "metrics.jsonl", '{"step": 1}\n', 0.6)
    put(order, "model.npz", "weights", 0.6)
    checkpoint = read(order).checkpoint
    assert checkpoint is not None
    assert not checkpoint.early


def test_how_late_is_late_enough_can_be_declared(order: Order) -> None:
    asked = job(proof=Proof(checkpoint=CheckpointProof("model.npz", 0.6)))
    put(order, "model.npz", "weights", 0.7)
    assert not read(order, asked).checkpoint.early  # type: ignore[union-attr]
    put(order, "model.npz", "weights", 0.5)
    assert read(order, asked).checkpoint.early  # type: ignore[union-attr]


def test_times_that_can_not_be_compared_raise_nothing(order: Order) -> None:
    put(order, "model.npz", "weights", 0.02)
    found = read_result_origins(job(), CELL, order, None, sha256)
    assert found.checkpoint is not None
    assert (found.checkpoint.share, found.checkpoint.early) == (None, False)


def test_results_and_curves_of_one_log_are_read_in_one_pass(order: Order, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"step": step, "score": score, "cost": 9 - step} for step, score in enumerate((1.0, 5.0, 3.0, 2.0))]
    path = put(order, "metrics.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    asked = job(
        results=(
            DeclaredResult("score", "jsonl", "metrics.jsonl", "score", "max"),
            DeclaredResult("cost", "jsonl", "metrics.jsonl", "cost", TakenAt(BestOf("score", "higher"))),
            DeclaredResult("end", "jsonl", "metrics.jsonl", "cost"),
            DeclaredResult("none", "jsonl", "metrics.jsonl", "nothing"),
        )
    )
    passes: list[str] = []
    monkeypatch.setattr(
        result_origins,
        "sweep_log_rows",
        lambda name, kind, takers: (passes.append(name), sweep_log_rows(name, kind, takers)),
    )
    found = read(order, asked, metrics=["score", "cost"])
    assert passes == [str(path)]
    assert found.values == {"score": 5.0, "cost": 8.0, "end": 6.0}
    assert found.curves["score"] == ("score", ((0.0, 1.0, 2.0, 3.0), (1.0, 5.0, 3.0, 2.0)))
    assert found.picked == {"score": MetricRange(1.0, 4.0, 1.0, 2.0), "cost": MetricRange(1.0, 4.0, 1.0, 2.0)}
    assert found.tested["cost"] == MetricRange(0.0, 3.0, 3.0, 0.0)
    assert (read(order, asked).curves, read(order, asked, values=False).values) == ({}, {})


def test_a_log_that_can_not_be_read_has_neither_results_nor_curves(order: Order) -> None:
    Path(order.out, "metrics.jsonl").mkdir()
    put(order, "result.json", '{"score": 2.0}')
    asked = job(results=(DeclaredResult("risk", "jsonl", "metrics.jsonl", "risk"), RESULTS[0]))
    found = read(order, asked, metrics=["score"])
    assert (found.values, found.curves, found.tested) == ({"score": 2.0}, {}, {})


def test_a_result_file_may_name_the_checkpoint(order: Order) -> None:
    put(order, "result.json", '{"score": 1, "cost": 2, "checkpoint": "/home/me/run/best.pt"}')
    assert read(order, job(results=RESULTS)).named == "/home/me/run/best.pt"
    put(order, "result.json", '{"score": 1, "cost": 2, "checkpoint": 7}')
    assert read(order, job(results=RESULTS)).named is None


# -- curves


def curves(order: Order, *metrics: str, asked: Job | None = None) -> dict[str, Any]:
    logs = curve_logs_of_attempt(asked or job(), CELL, order, metrics)
    read_missing_curves(logs)
    return curves_in_logs(logs)[0]


def test_a_curve_is_found_under_the_name_that_trainers_use(order: Order) -> None:
    rows = [{"step": step, "episode/score": step / 10, "episode/cost": 9 - step, "eval/score": 99} for step in range(5)]
    rows[2].pop("episode/cost")
    put(order, "metrics.jsonl", "".join(json.dumps(row) + "\n" for row in rows) + '{"step": 9, "epis')
    found = curves(order, "score", "cost", "nothing")
    assert found["score"] == ("episode/score", ((0.0, 1.0, 2.0, 3.0, 4.0), (0.0, 0.1, 0.2, 0.3, 0.4)))
    assert found["cost"] == ("episode/cost", ((0.0, 1.0, 3.0, 4.0), (9.0, 8.0, 6.0, 5.0)))
    assert "nothing" not in found


def test_a_declared_key_is_the_curve_and_no_other_name(order: Order) -> None:
    """OmniSafe and SB3 log what people call `ret` under names of their own."""
    put(order, "progress.csv", "time/total_timesteps,rollout/ep_rew_mean,ret\n512,1.5,9\n1024,2.5,9\n1536,4.0,9\n")
    put(order, "metrics.jsonl", "".join(json.dumps({"step": at, "score": at, "ret": 9}) + "\n" for at in range(3)))
    asked = job(results=(DeclaredResult("ret", "csv", "progress.csv", "rollout/ep_rew_mean", "last"),))
    found = read(order, asked, metrics=["ret", "score"])
    assert found.curves["ret"] == ("rollout/ep_rew_mean", ((512.0, 1024.0, 1536.0), (1.5, 2.5, 4.0)))
    assert found.curves["score"][0] == "score", "evaluated elsewhere: its name is searched for"
    assert found.uncurved == {}
    nested = job(results=(DeclaredResult("ret", "jsonl", "metrics.jsonl", "eval.ret"),))
    put(order, "metrics.jsonl", "".join(json.dumps({"step": at, "eval": {"ret": at + 1}}) + "\n" for at in range(3)))
    assert read(order, nested, metrics=["ret"]).curves["ret"] == ("eval.ret", ((0.0, 1.0, 2.0), (1.0, 2.0, 3.0)))


def test_why_there_is_no_curve(order: Order) -> None:
    put(order, "metrics.jsonl", '{"step": 1, "loss": 2}\n{"step": 2, "loss": 1}\n')
    declared = job(results=(DeclaredResult("ret", "jsonl", "metrics.jsonl", "Metrics/EpRet"),))
    found = read(order, declared, metrics=["ret", "cost"])
    assert found.uncurved == {
        "ret": NoCurveReason("key", "metrics.jsonl", "Metrics/EpRet"),
        "cost": NoCurveReason("name"),
    }
    assert read(order, replace(job(), progress=()), metrics=["cost"]).uncurved == {"cost": NoCurveReason("log")}


# -- runs that were resumed


def resumed(order: Order, tmp_path: Path, share: bool = False) -> tuple[Order, Order]:
    """An attempt, and one that goes on from its checkpoint."""
    out = order.out if share else str(tmp_path / "2" / "out")
    Path(out).mkdir(parents=True, exist_ok=True)
    (tmp_path / "2").mkdir(exist_ok=True)
    return order, replace(order, n=2, out=out, output=out, resumed_from=f"{order.out}/model_8.json")


def log_rows(begin: int, end: int) -> str:
    return "".join(json.dumps({"step": at, "score": at * 1.0, "cost": 100.0 - at}) + "\n" for at in range(begin, end))


LOGGED = tuple(
    DeclaredResult(f"score_{how}", "jsonl", "metrics.jsonl", "score", how) for how in ("last", "mean", "min", "max")
)
AT_BEST = DeclaredResult("cost", "jsonl", "metrics.jsonl", "cost", TakenAt(BestOf("score_max")))


@pytest.mark.parametrize("share", [False, True], ids=["folders", "one file"])
@pytest.mark.parametrize("step", [True, False], ids=["step declared", "step found"])
def test_results_and_curves_over_all_attempts(order: Order, tmp_path: Path, share: bool, step: bool) -> None:
    first, second = resumed(order, tmp_path, share)
    asked = job(results=(*LOGGED, AT_BEST))
    asked = asked if step else replace(asked, progress=asked.progress[1:])
    put(first, "metrics.jsonl", log_rows(2, 12))
    put(second, "metrics.jsonl", (log_rows(2, 12) if share else "") + log_rows(9, 20))
    found = read(second, asked, metrics=["score_mean"], before=[first])
    assert found.values == {"score_last": 19, "score_mean": 10.5, "score_min": 2, "score_max": 19, "cost": 81}
    assert found.curves["score_mean"][1][0] == tuple(map(float, range(2, 20)))
    assert found.resumed
    assert (found.resumed.times, found.resumed.gaps) == (1, ())
    assert set(found.files) == {str(Path(each.out, "metrics.jsonl")) for each in (first, second)}
    proof = FileProofReader(lambda _: [first]).read(asked, CELL, second, ExitRecord(0, None, time.time(), 0.0, LENGTH))
    assert proof.results == found.values


def test_a_number_that_was_lost_with_its_steps_is_no_mistake(order: Order, tmp_path: Path) -> None:
    first, second = resumed(order, tmp_path)
    put(first, "metrics.jsonl", log_rows(2, 9) + '{"step": 10, "score": NaN}\n')
    put(second, "metrics.jsonl", log_rows(9, 12))
    asked = job(results=LOGGED[:2])
    assert read(second, asked, before=[first]).values == {"score_last": 11, "score_mean": 6.5}
    put(first, "metrics.jsonl", '{"step": 3, "score": NaN}\n' + log_rows(4, 9))
    assert read(second, asked, before=[first]).values == {}


def test_what_an_earlier_attempt_left_may_be_gone(order: Order, tmp_path: Path) -> None:
    first, second = resumed(order, tmp_path)
    put(second, "metrics.jsonl", log_rows(9, 12))
    found = read(second, job(results=LOGGED[:2]), metrics=["score"], before=[first])
    assert found.values["score_mean"] == 10
    assert found.resumed
    assert (found.resumed.gone, found.resumed.first) == ((1,), 9)


def test_only_evaluations_say_which_step_was_best(order: Order) -> None:
    """Those of a training's own episodes are noise; the best of a thousand is at no end by chance."""
    rows = [{"step": step, "episode/score": step, "eval/score": score} for step, score in enumerate((1, 3, 2))]
    put(order, "metrics.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    found = read(order, metrics=["score"])
    assert found.curves["score"][0] == "episode/score"
    assert found.tested == {"score": MetricRange(0.0, 2.0, 0.0, 1.0)}
    rows = [{"step": step, "train/score": step, "eval/score": 1 if step in (3, 900) else 0} for step in range(1000)]
    put(order, "metrics.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert read(order, metrics=["score"]).tested == {"score": MetricRange(0.0, 999.0, None, None)}
    put(order, "metrics.jsonl", "".join(json.dumps({"step": s, "episode/score": s}) + "\n" for s in range(9)))
    assert read(order, metrics=["score"]).tested == {}


def test_the_metric_itself_comes_first() -> None:
    assert keys_logged_for("score")[0] == "score"
    assert keys_logged_for("success")[:2] == ["success", "eval_episode/success"]


def test_steps_are_scaled_and_what_is_not_finite_is_left_out(order: Order) -> None:
    put(order, "metrics.jsonl", '{"step": 5, "score": 1}\n{"step": 10, "score": NaN}\n{"step": 15, "score": 2}\n')
    scaled = Job("train", (), ("true",), progress=(DeclaredProgress("jsonl", "metrics.jsonl", "step", scale=0.2),))
    assert curves(order, "score", asked=scaled)["score"][1] == ((1.0, 3.0), (1.0, 2.0))


def test_csv_and_nothing_at_all(order: Order) -> None:
    put(order, "progress.csv", "step,Metrics/EpRet\n1,2.5\n2,3.5\n3\n")
    table = Job("train", (), ("true",), progress=(DeclaredProgress("csv", "progress.csv", "step"),))
    assert curves(order, "score", asked=table)["score"] == ("Metrics/EpRet", ((1.0, 2.0), (2.5, 3.5)))
    assert curves(order, "score") == {}


# -- curves in the records of W&B and TensorBoard


def put_records(order: Order, name: str, data: bytes) -> str:
    path = Path(order.out, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return str(path)


def recorded(kind: str, path: str, **more: Any) -> Job:
    return replace(job(), progress=(DeclaredProgress(kind, path, **more),))


ROWS = [{"step": at, "eval/score": float(at * at), "env/frames": 4.0 * at} for at in range(5)]


def test_the_records_of_wandb_hold_learning_curves(order: Order) -> None:
    older = put_records(order, "wandb/run-20260101_000000-x/run-x.wandb", wandb_bytes(ROWS[:2]))
    newer = put_records(
        order, "wandb/run-20260102_000000-x/run-x.wandb", wandb_bytes([*ROWS[2:], {"step": 9, "eval/score": math.nan}])
    )
    asked = recorded("wandb", "wandb", step="_step")
    found = read(order, asked, metrics=("score",))
    assert found.curves["score"] == ("eval/score", ((0.0, 1.0, 2.0, 3.0, 4.0), (0.0, 1.0, 4.0, 9.0, 16.0)))
    assert found.tested["score"] == MetricRange(0.0, 4.0, 0.0, 4.0)
    assert found.files == {older: sha256(older), newer: sha256(newer)}, "no number without its origin"
    assert read(order, asked, values=False).files == found.files
    assert read(order, asked).curves == {}
    latest = Path(order.out, "wandb/latest-run")
    latest.symlink_to("run-20260102_000000-x")
    for path in ("wandb/latest-run", "wandb/run-*/*.wandb"):
        assert curves(order, "score", asked=recorded("wandb", path))["score"][1][0] == (2.0, 3.0, 4.0)


def test_the_steps_of_a_curve_are_those_of_the_declared_counter(order: Order) -> None:
    put_records(
        order, "wandb/run-20260101_000000-x/run-x.wandb", wandb_bytes([{"step": 0, "eval/score": 7.0}, *ROWS[1:]])
    )
    asked = recorded("wandb", "wandb", step="env/frames", scale=0.5)
    assert curves(order, "score", asked=asked)["score"][1] == ((2.0, 4.0, 6.0, 8.0), (1.0, 4.0, 9.0, 16.0))
    assert curves(order, "score", asked=recorded("wandb", "wandb", step="nowhere")) == {}


def test_event_files_hold_learning_curves(order: Order) -> None:
    for name in ("train", "eval"):
        put_records(
            order, f"tb/{name}/events.out.tfevents.1.host", board_bytes([{"step": at, "score": at} for at in range(3)])
        )
    found = read(order, recorded("tensorboard", "tb", scale=10.0), metrics=("score",))
    assert found.curves["score"] == ("eval/score", ((0.0, 10.0, 20.0), (0.0, 1.0, 2.0)))
    assert [Path(path).parent.name for path in found.files] == ["eval", "train"]


def test_records_that_are_broken_or_missing_have_no_curve(order: Order) -> None:
    assert curves(order, "score", asked=recorded("wandb", "wandb")) == {}
    put_records(order, "wandb/run-20260101_000000-x/run-x.wandb", b"no records")
    assert curves(order, "score", asked=recorded("wandb", "wandb")) == {}
    Path(order.out, "tb").mkdir()
    os.mkfifo(Path(order.out, "tb", "events.out.tfevents.1.host"))
    assert curves(order, "score", asked=recorded("tensorboard", "tb")) == {}


def test_a_long_curve_is_thinned_out_and_keeps_its_ends(order: Order) -> None:
    count = 50_000
    put(order, "metrics.jsonl", "".join(f'{{"step": {step}, "score": {step}}}\n' for step in range(count)))
    steps, values = curves(order, "score")["score"][1]
    assert MOST_CURVE_POINTS / 2 <= len(steps) <= 2 * MOST_CURVE_POINTS + 1
    assert (steps[0], steps[-1]) == (0.0, count - 1.0)
    assert steps == values
    gaps = {b - a for a, b in pairwise(steps[:-1])}
    assert len(gaps) == 1  # evenly spread
