"""Files as real writers leave them, in which a number was once read that nobody wrote: two metrics under one key, steps
from a timer, rows that a restart took back.
"""

from __future__ import annotations

import json
import struct
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from muster.readers.records.logged_runs import MeasuredRun, RunMeter, newest_run_in
from muster.rules.metric_summary import Summary

sys.path.insert(0, str(Path(__file__).parents[2] / "contract"))
from history_files import event, field, framed, jsonl_bytes, scalar, varint


def put(path: Path, data: bytes | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def measured(path: Path, *keys: str) -> MeasuredRun:
    run = newest_run_in(str(path)).run
    assert run is not None
    meter = RunMeter(run.feeds(), lambda key: not keys or key in keys)
    meter.look()
    return meter.measured()


def values(summary: Summary) -> list[float]:
    return list(summary.tail)


def steps(found: MeasuredRun, key: str) -> list[float]:
    return list(found.keys[key].tail_steps)


def printed(tmp_path: Path, text: str) -> MeasuredRun:
    return measured(put(tmp_path / "train.log", text))


# -- two files of one kind


def test_keys_that_two_files_of_one_kind_share_are_told_apart(tmp_path: Path) -> None:
    put(tmp_path / "eval_metrics.jsonl", jsonl_bytes([{"step": 1, "loss": 9.0, "success": 0.5}]))
    put(tmp_path / "train_metrics.jsonl", jsonl_bytes([{"step": at, "loss": 1.0} for at in range(10)]))
    found = measured(tmp_path)
    assert "loss" not in found.keys
    assert found.keys["eval_metrics/loss"].count == 1
    assert found.keys["train_metrics/loss"].count == 10
    assert found.keys["train_metrics/loss"].key == "train_metrics/loss"
    assert found.keys["success"].last == 0.5, "what one file holds alone keeps its name"
    assert any("eval_metrics/loss" in each and "train_metrics/loss" in each for each in found.troubles)


def test_one_of_the_shared_keys_can_be_asked_for(tmp_path: Path) -> None:
    put(tmp_path / "eval_metrics.jsonl", jsonl_bytes([{"step": 1, "loss": 9.0}]))
    put(tmp_path / "train_metrics.jsonl", jsonl_bytes([{"step": at, "loss": 1.0} for at in range(10)]))
    assert list(measured(tmp_path, "train_metrics/loss").keys) == ["train_metrics/loss"]
    assert sorted(measured(tmp_path, "loss").keys) == ["eval_metrics/loss", "train_metrics/loss"]


def test_the_main_file_keeps_its_keys_and_the_others_get_theirs(tmp_path: Path) -> None:
    """Dreamer writes metrics.jsonl and scores.jsonl, and both hold the score."""
    put(tmp_path / "metrics.jsonl", jsonl_bytes([{"step": 10, "episode/score": 1.0, "loss": 2.0}]))
    put(tmp_path / "scores.jsonl", jsonl_bytes([{"step": 10, "episode/score": 1.5}]))
    found = measured(tmp_path)
    assert found.keys["episode/score"].last == 1.0
    assert found.keys["scores/episode/score"].last == 1.5


def test_what_two_files_say_alike_is_said_once(tmp_path: Path) -> None:
    rows = [{"step": at, "loss": 1.0 / (at + 1)} for at in range(5)]
    put(tmp_path / "a_metrics.jsonl", jsonl_bytes(rows))
    put(tmp_path / "b_metrics.jsonl", jsonl_bytes(rows))
    assert sorted(measured(tmp_path).keys) == ["loss", "step"]


def test_the_monitors_of_several_environments(tmp_path: Path) -> None:
    for env in range(4):
        rows = "".join(f"{env}.5,{10 + row},{row}.25\n" for row in range(5))
        put(tmp_path / f"{env}.monitor.csv", f'#{{"t_start": 1, "env_id": "x"}}\nr,l,t\n{rows}')
    found = measured(tmp_path)
    assert [found.keys[f"{env}.monitor/r"].last for env in range(4)] == [0.5, 1.5, 2.5, 3.5]
    assert sum(found.keys[f"{env}.monitor/r"].count for env in range(4)) == 20


def test_logs_of_several_ranks(tmp_path: Path) -> None:
    for rank in range(2):
        put(tmp_path / f"rank{rank}.log", f"step=1 loss={rank}.5\nstep=2 loss={rank}.25\n")
    found = measured(tmp_path)
    assert (found.keys["rank0/loss"].last, found.keys["rank1/loss"].last) == (0.25, 1.25)


# -- printed lines


def test_lightgbm_keeps_train_and_valid_apart(tmp_path: Path) -> None:
    found = printed(
        tmp_path,
        "[10]\ttraining's binary_logloss: 0.25\tvalid_1's binary_logloss: 0.35\n"
        "[20]\ttraining's binary_logloss: 0.05\tvalid_1's binary_logloss: 0.15\n",
    )
    assert values(found.keys["training's binary_logloss"]) == [0.25, 0.05]
    assert values(found.keys["valid_1's binary_logloss"]) == [0.35, 0.15]
    assert steps(found, "valid_1's binary_logloss") == [10, 20]


@pytest.mark.parametrize("form", ["dict", "json", "prefixed"])
def test_printed_objects_are_rows(tmp_path: Path, form: str) -> None:
    rows = [{"epoch": at, "train": {"loss": 1.0 / (at + 1)}, "val": {"loss": 5.0 + at}} for at in range(5)]
    lines = [str(row) if form == "dict" else json.dumps(row) for row in rows]
    text = "".join(f"{'INFO 12:00:01 ' if form == 'prefixed' else ''}{line}\n" for line in lines)
    found = printed(tmp_path, text)
    assert values(found.keys["train.loss"])[0] == 1.0
    assert values(found.keys["val.loss"]) == [5, 6, 7, 8, 9]
    assert "loss" not in found.keys
    assert steps(found, "val.loss") == [0, 1, 2, 3, 4]


def test_a_printed_object_may_hold_nan_and_texts(tmp_path: Path) -> None:
    found = printed(tmp_path, "{'step': 3, 'loss': nan, 'name': \"it's\", 'ok': True, 'none': None, 'x': -inf}\n")
    assert found.keys["loss"].nan == found.keys["x"].nan == 1
    assert steps(found, "loss") == [3]


RSL = """\
{line}
                       Learning iteration {at}/1500

                       Computation: 1234 steps/s (collection: 0.5s, learning 0.2s)
               Value function loss: {value}
                    Surrogate loss: -{value}
             Mean action noise std: 1.5
                       Mean reward: {at}.25
               Mean episode length: 100.0
{line}
                   Total timesteps: {total}
                    Iteration time: 0.70s
                               ETA: 1000.0s
"""


def test_labels_of_several_words_and_the_step_of_their_block(tmp_path: Path) -> None:
    blocks = [RSL.format(line="-" * 80, at=at, value=0.5 + at, total=4096 * (at + 1)) for at in range(3)]
    found = printed(tmp_path, "".join(blocks))
    assert values(found.keys["Value function loss"]) == [0.5, 1.5, 2.5]
    assert values(found.keys["Surrogate loss"]) == [-0.5, -1.5, -2.5]
    assert values(found.keys["Mean reward"]) == [0.25, 1.25, 2.25]
    assert "loss" not in found.keys
    assert steps(found, "Mean reward") == [0, 1, 2]


def test_the_same_key_for_train_and_val_in_lines_of_their_own(tmp_path: Path) -> None:
    found = printed(
        tmp_path,
        "step=1 [train] loss=0.5\nstep=1 [val] loss=0.75\nstep=2 train: loss=0.25\nstep=2 val: loss=0.625\n",
    )
    assert values(found.keys["train loss"]) == [0.5, 0.25]
    assert values(found.keys["val loss"]) == [0.75, 0.625]


def test_what_comes_twice_in_a_line_and_can_not_be_told_apart_is_refused_and_told(tmp_path: Path) -> None:
    found = printed(tmp_path, "step=1 loss=0.5 loss=0.75 acc=0.25\n")
    assert "loss" not in found.keys
    assert found.keys["acc"].last == 0.25
    assert "1 line names a key twice: those values are left out" in found.sources[0].skipped


def test_a_duration_is_no_number(tmp_path: Path) -> None:
    found = printed(tmp_path, "eta: 1 day, 0:05:00  iter: 20  total_loss: 1.5\n")
    assert sorted(found.keys) == ["iter", "total_loss"]
    assert steps(found, "total_loss") == [20]


@pytest.mark.parametrize("name", ["log.txt", "metrics.json", "scalars.json", "result.json", "progress.json"])
def test_lines_of_objects_under_another_name(tmp_path: Path, name: str) -> None:
    """DETR's log.txt, detectron2's metrics.json, mmengine's scalars.json, RLlib's result.json, SB3's progress.json."""
    rows: list[dict[str, Any]] = [{"epoch": at, "train": {"loss": 1.0}, "val": {"loss": 5.0}} for at in range(3)]
    put(tmp_path / name, jsonl_bytes(rows))
    for path in (tmp_path, tmp_path / name):
        found = measured(path)
        assert found.keys["val.loss"].count == 3
        assert found.sources[0].format == "jsonl"


# -- states of Hugging Face


def state(step: int, loss: float) -> str:
    rows = [{"step": at, "loss": loss + 1.0 / at} for at in range(100, step + 1, 100)]
    return json.dumps({"epoch": 1.0, "global_step": step, "log_history": rows}, indent=2)


def test_a_checkpoint_of_the_resumed_training_is_newer_than_the_state_in_the_root(tmp_path: Path) -> None:
    put(tmp_path / "trainer_state.json", state(200, 0.5))
    put(tmp_path / "checkpoint-300" / "trainer_state.json", state(300, 0.0))
    found = measured(tmp_path)
    assert (found.keys["loss"].last_step, found.keys["loss"].count) == (300, 3)


def test_the_state_in_the_root_is_the_newest_where_it_has_come_as_far(tmp_path: Path) -> None:
    put(tmp_path / "checkpoint-200" / "trainer_state.json", state(200, 0.5))
    put(tmp_path / "trainer_state.json", state(200, 0.0))
    assert measured(tmp_path).sources[0].path == str(tmp_path / "trainer_state.json")


# -- what counts the steps


@pytest.mark.parametrize("form", ["jsonl", "csv"])
@pytest.mark.parametrize(
    ("first", "second", "key", "expected"),
    [
        ({"timing_s/step": 1.5, "loss": 1.0, "training/global_step": 10},
         {"timing_s/step": 1.75, "loss": 1.0, "training/global_step": 20}, "training/global_step", [10, 20]),
        ({"time/step": 0.5, "loss": 1.0, "total_env_steps": 100}, {"time/step": 0.25, "loss": 1.0, "total_env_steps": 200},
         "total_env_steps", [100, 200]),
        ({"perf/iteration": 3.0, "loss": 1.0}, {"perf/iteration": 4.0, "loss": 1.0}, "row", [0, 1]),
        ({"time/total_timesteps": 2048, "loss": 1.0}, {"time/total_timesteps": 4096, "loss": 1.0}, "time/total_timesteps",
         [2048, 4096]),
        ({"step": 0.5, "loss": 1.0, "epoch": 0.25}, {"step": 0.75, "loss": 1.0, "epoch": 0.5}, "epoch", [0.25, 0.5]),
        ({"batch": 9, "loss": 1.0, "epoch": 0}, {"batch": 0, "loss": 1.0, "epoch": 1}, "epoch", [0, 1]),
        ({"training_iteration": 1, "loss": 1.0}, {"training_iteration": 2, "loss": 1.0}, "training_iteration", [1, 2]),
        ({"num_env_steps_sampled": 4000, "loss": 1.0}, {"num_env_steps_sampled": 8000, "loss": 1.0},
         "num_env_steps_sampled", [4000, 8000]),
    ],
)  # fmt: skip
def test_what_counts_is_a_counter(
    tmp_path: Path, form: str, first: dict[str, Any], second: dict[str, Any], key: str, expected: list[float]
) -> None:
    lines = [json.dumps(first), json.dumps(second)]
    if form == "csv":
        lines = [",".join(first), *(",".join(map(str, row.values())) for row in (first, second))]
    found = measured(put(tmp_path / f"metrics.{form}", "\n".join(lines) + "\n"))
    assert steps(found, "loss") == expected
    assert found.sources[0].step == key


@pytest.mark.parametrize("pieces", [1, 3])
def test_a_better_counter_that_comes_late_takes_over(tmp_path: Path, pieces: int) -> None:
    rows: list[dict[str, Any]] = [{"epoch": 0, "acc": 0.5}]
    rows += [{"step": at, "epoch": 0, "loss": 1.0} for at in range(10, 40, 10)]
    path = put(tmp_path / "metrics.jsonl", jsonl_bytes(rows[:1] if pieces > 1 else rows))
    run = newest_run_in(str(path)).run
    assert run is not None
    meter = RunMeter(run.feeds())
    meter.look()
    for row in rows[1:] if pieces > 1 else ():
        with path.open("ab") as file:
            file.write(jsonl_bytes([row]))
        meter.look()
    found = meter.measured()
    assert steps(found, "loss") == [10, 20, 30]
    assert found.sources[0].step == "step"


def test_a_summary_of_each_epoch_between_the_rows_does_not_take_the_steps_back(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = []
    for epoch in range(3):
        rows += [{"step": 10 * epoch + at, "loss": 1.0} for at in range(1, 10)]
        rows += [{"epoch": epoch, "val_loss": 2.0}]
    found = measured(put(tmp_path / "metrics.jsonl", jsonl_bytes(rows)))
    assert steps(found, "val_loss") == [9, 19, 29]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[0]\ttrain-logloss:0.5\teval-logloss:0.6\n[49]\ttrain-logloss:0.25\teval-logloss:0.3\n", [0, 49]),
        ("0:\tlearn: 0.5\ttest: 0.6\tbest: 0.6 (0)\ttotal: 5ms\n90:\tlearn: 0.25\ttest: 0.3\n", [0, 90]),
        (" 10%|#         | 10/100 [00:01<00:09, 9.1it/s, loss=0.5]\r"
         " 20%|##        | 20/100 [00:02<00:08, 9.1it/s, loss=0.25]\n", [10, 20]),
        ("Epoch 1/3\n10/90 [==>...] - loss: 0.5\n90/90 [=====] - loss: 0.25\n", [10, 90]),
        ("Epoch(train)  [1][ 50/1000]  lr: 1.0e-4  loss: 0.5\nEpoch(train)  [1][100/1000]  lr: 1.0e-4  loss: 0.25\n",
         [50, 100]),
        ("Epoch 1/3: loss=0.5\nEpoch 2/3: loss=0.25\n", [1, 2]),
    ],
)  # fmt: skip
def test_steps_that_stand_in_a_line_without_a_name(tmp_path: Path, text: str, expected: list[float]) -> None:
    found = printed(tmp_path, text)
    key = next(key for key in found.keys if any(word in key for word in ("loss", "learn")))
    assert steps(found, key) == expected
    assert found.sources[0].step != "row"


SB3 = """\
---------------------------------
| rollout/           |          |
|    ep_rew_mean     | {reward} |
| time/              |          |
|    fps             | 1000     |
|    total_timesteps | {step}   |
---------------------------------
"""


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        (SB3.format(reward=20.5, step=2048) + SB3.format(reward=21.5, step=4096), "rollout/ep_rew_mean",
         [(2048, 20.5), (4096, 21.5)]),
        ("step 0: train loss 4.5, val loss 4.25\niter 0: loss 4.5, time 99.1ms\nstep 250: train loss 2.5, val loss 2.25\n",
         "train loss", [(0, 4.5), (250, 2.5)]),
        ("Epoch: [0][  10/5005]\tTime  0.500 ( 0.6)\tLoss 6.5000e+00 (7.0)\tAcc@1   0.25 (  0.2)\n"
         "Epoch: [0][  20/5005]\tTime  0.500 ( 0.6)\tLoss 6.2500e+00 (7.0)\tAcc@1   0.50 (  0.2)\n", "Loss",
         [(10, 6.5), (20, 6.25)]),
        ("Epoch 1/2\n10/20 [==>..] - loss: 0.5\n20/20 [====] - loss: 0.25\nEpoch 2/2\n10/20 [==>..] - loss: 0.125\n", "loss",
         [(10, 0.5), (20, 0.25), (30, 0.125)]),
        ("no step here\nloss 4.5 is what we had at port 8080\nloss=0.5\n", "loss", [(0, 0.5)]),
    ],
)  # fmt: skip
def test_what_people_print(tmp_path: Path, text: str, key: str, expected: list[tuple[float, float]]) -> None:
    found = printed(tmp_path, text).keys[key]
    assert list(zip(found.tail_steps, found.tail, strict=True)) == expected


def test_a_line_that_is_no_table_takes_no_time(tmp_path: Path) -> None:
    began = time.process_time()
    printed(
        tmp_path, ("|" + " " * 8000 + "x\n" + "-" * 8000 + "\n" + "{" * 8000 + "}\n" + "a_b " * 2000 + "c: 1\n") * 20
    )
    assert time.process_time() - began < 3.0


def test_row_numbers_are_called_so(tmp_path: Path) -> None:
    found = printed(tmp_path, "loss=0.5\nloss=0.25\n")
    assert steps(found, "loss") == [0, 1]
    assert found.sources[0].step == "row"
    assert measured(put(tmp_path / "b" / "metrics.csv", "loss,acc\n1,2\n")).sources[0].step == "row"


# -- TensorBoard


def start(step: int) -> bytes:
    """A session log: from this step on the run was started again."""
    return event(b"\x09" + struct.pack("<d", 1.7e9) + b"\x10" + varint(step) + field(7, b"\x08\x01"))


def board(begin: int, end: int, value: float) -> bytes:
    return b"".join(scalar(step, "loss", value) for step in range(begin, end))


@pytest.mark.parametrize("files", [1, 2])
def test_what_a_restart_took_back_does_not_count(tmp_path: Path, files: int) -> None:
    version = event(b"\x09" + struct.pack("<d", 1.7e9) + field(3, b"brain.Event:2"))
    first, second = version + board(0, 101, 1.0), version + start(50) + board(50, 151, 2.0)
    if files == 1:
        put(tmp_path / "tb" / "events.out.tfevents.1700000000.h", first + second)
    else:
        put(tmp_path / "tb" / "events.out.tfevents.1700000000.h", first)
        put(tmp_path / "tb" / "events.out.tfevents.1700000100.h", second)
    found = measured(tmp_path).keys["loss"]
    assert (found.count, found.last_step) == (151, 150)
    assert found.mean == pytest.approx((50 * 1.0 + 101 * 2.0) / 151)


def test_a_restart_that_is_seen_while_it_is_written(tmp_path: Path) -> None:
    put(tmp_path / "tb" / "events.out.tfevents.1700000000.h", board(0, 101, 1.0))
    run = newest_run_in(str(tmp_path)).run
    assert run is not None
    meter = RunMeter(run.feeds())
    meter.look()
    assert meter.measured().keys["loss"].count == 101
    put(tmp_path / "tb" / "events.out.tfevents.1700000100.h", start(50) + board(50, 60, 2.0))
    meter.look()
    assert meter.measured().keys["loss"].count == 60
    meter.look()
    assert meter.measured().keys["loss"].count == 60


def test_pictures_are_passed_over_unchecked_and_cost_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from muster.readers.records import record_frames

    checked: list[int] = []
    real = record_frames.CrcOfManyPieces._alike

    def counting(self: Any, every: Any, starts: Any, size: int) -> Any:
        checked.append(size)
        return real(self, every, starts, size)

    monkeypatch.setattr(record_frames.CrcOfManyPieces, "_alike", counting)
    picture = field(1, field(1, b"image") + field(4, b"\x08\x40" + field(4, bytes(3000))))
    event_of_picture = event(b"\x09" + struct.pack("<d", 1.7e9) + b"\x10\x05" + field(5, picture))
    many = b"".join(field(1, field(1, b"k%03d" % key) + b"\x15" + struct.pack("<f", 0.5)) for key in range(100))
    event_of_many = event(b"\x09" + struct.pack("<d", 1.7e9) + b"\x10\x07" + field(5, many))
    put(tmp_path / "events.out.tfevents.1", board(0, 5, 1.0) + event_of_picture + event_of_many + board(5, 9, 2.0))
    found = measured(tmp_path)
    assert (found.keys["loss"].count, found.keys["k099"].last_step) == (9, 7)
    assert found.sources[0].skipped == ()
    assert not any(size > 2999 for size in checked)


# -- numbers that nobody logged, and values that are left out


def test_media_of_wandb_are_no_metrics(tmp_path: Path) -> None:
    table = '{"_type": "table-file", "ncols": 3, "nrows": 5, "size": 100}'
    items = b"".join(
        field(1, field(1, key) + field(16, text))
        for key, text in ((b"tab", table.encode()), (b"loss", b"0.5"), (b"ot", b'{"pi": 2}'), (b"_step", b"3"))
    )
    path = put(tmp_path / "run-x.wandb", framed([field(2, items + field(2, b"\x08\x03"))]))
    assert sorted(measured(path).keys) == ["_step", "loss", "ot.pi"]
    row = {"step": 1, "loss": 1.0, "image": {"_type": "image-file", "width": 64}}
    assert sorted(measured(put(tmp_path / "metrics.jsonl", jsonl_bytes([row, row]))).keys) == ["loss", "step"]


def test_decimal_commas_are_told(tmp_path: Path) -> None:
    found = measured(put(tmp_path / "metrics.csv", "epoch;loss;acc\n0;0,5;1\n1;0,25;2\n"))
    assert sorted(found.keys) == ["acc", "epoch"]
    assert "2 numbers with a decimal comma are left out: loss" in found.sources[0].skipped


def test_a_step_with_commas_between_its_thousands(tmp_path: Path) -> None:
    found = measured(put(tmp_path / "metrics.csv", 'step,loss\n"1,000",0.5\n"2,000",0.25\n'))
    assert steps(found, "loss") == [1000, 2000]


# -- what belongs together


def test_the_validation_of_keras_belongs_to_the_run_of_its_training(tmp_path: Path) -> None:
    for part in ("train", "validation"):
        put(tmp_path / "logs" / part / "events.out.tfevents.1", board(0, 3, 1.0))
    assert sorted(measured(tmp_path).keys) == ["logs/train/loss", "logs/validation/loss"]


def test_the_metrics_of_dvclive_are_told_apart(tmp_path: Path) -> None:
    for part in ("train", "eval"):
        put(tmp_path / "dvclive" / "plots" / "metrics" / part / "loss.tsv", f"step\tloss\n0\t1\n1\t{len(part)}\n")
    found = measured(tmp_path)
    assert found.keys["dvclive/plots/metrics/eval/loss/loss"].last == 4
    assert found.keys["dvclive/plots/metrics/train/loss/loss"].last == 5


def test_a_rule_that_prunes_may_name_the_key_of_one_file(tmp_path: Path) -> None:
    from muster.app.loop.run_pruning import _follow_source
    from muster.rules.rank_variants import PruneRule

    for part in ("eval", "train"):
        rows = [{"step": at, "loss": float(len(part))} for at in range(3)]
        put(tmp_path / f"{part}_metrics.jsonl", jsonl_bytes(rows))
    run = newest_run_in(str(tmp_path)).run
    assert run is not None
    rule = PruneRule("train_metrics/loss", "lower")
    followed = [_follow_source(source) for source in run.sources]
    assert [each.read(rule) for each in followed] == [True, True]
    assert [list(each.trails) for each in followed] == [[], ["train_metrics/loss"]]


def test_a_table_that_nobody_knows_stands_behind_what_is_known(tmp_path: Path) -> None:
    put(tmp_path / "a" / "metrics.jsonl", jsonl_bytes([{"step": 1, "loss": 1.0}]))
    put(tmp_path / "b" / "episodes.csv", "episode,loss\n1,5\n2,5\n")
    assert measured(tmp_path).keys["loss"].last == 1.0
    put(tmp_path / "a" / "episodes.csv", "episode,loss,length\n1,5,10\n2,5,20\n")
    put(tmp_path / "a" / "events.out.tfevents.1", board(0, 3, 3.0))
    (tmp_path / "a" / "metrics.jsonl").unlink()
    found = measured(tmp_path)
    assert (found.keys["loss"].last, found.keys["length"].last) == (3.0, 20)


def test_an_infinite_counter_is_no_step_and_no_warning(tmp_path: Path) -> None:
    rows = [{"step": "Infinity", "loss": 1.0}, {"step": 2.0, "loss": 0.5}] * 40
    text = "".join(json.dumps(row) + "\n" for row in rows).replace('"Infinity"', "Infinity")
    assert measured(put(tmp_path / "metrics.jsonl", text)).keys["loss"].count == 80
