"""Readers of what runs wrote: histories, results, checkpoints, logs, tables, configs beside them."""

from __future__ import annotations

import csv
import io
import json
import pickle
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from containers import (
    LINES,
    NPY,
    PICKLE,
    PICKLED,
    SAFETENSORS,
    TFEVENTS,
    WANDB,
    ZIP,
    npy,
    npz,
    safetensors,
    sb3_zip,
    torch_zip,
)
from harness import Reader
from mutate import Codec

from muster.app.campaign.preflight import config_warnings
from muster.app.campaign.preflight.missing_programs import find_missing_in_shell_text
from muster.app.gates import replay_gates, staged_pictures
from muster.app.gates.staged_artifacts import parse_staged_artifacts
from muster.app.journal.run_files import (
    RunFolderReader,
    UnreadableCommand,
    read_command_file,
    read_script_of_command,
    read_series_file,
)
from muster.engine.judge.log_clues import (
    find_final_exception,
    last_log_lines,
    last_unsurvived_lines,
    last_useful_line,
    read_log_clues,
)
from muster.engine.judge.log_notices import clean_log_lines, lines_show_progress
from muster.model.campaign import Axis, AxisValue, Campaign, DeclaredResult, GateSource, Job
from muster.model.errors import MusterError
from muster.readers import attempt_facts, gate_traces
from muster.readers.checkpoints.arrays import PickleNotPlain
from muster.readers.checkpoints.checkpoint_steps import step_of_checkpoint
from muster.readers.checkpoints.plain_pickles import read_plain_pickle
from muster.readers.checkpoints.whole_checkpoints import check_checkpoint
from muster.readers.curves import CurveLog
from muster.readers.discovery import axis_values
from muster.readers.discovery.step_columns import find_step_column
from muster.readers.gate_stream import open_gate_stream
from muster.readers.log_rows import LogPiece
from muster.readers.proof_steps import read_newest_step
from muster.readers.records.logged_runs import RunMeter, discover_runs
from muster.readers.records.record_steps import TensorboardStepReader, WandbStepReader
from muster.readers.records.row_steps import LogPattern
from muster.readers.records.text_steps import JsonlStepReader, PrintedStepReader, StepReader, TableStepReader
from muster.readers.records.wandb_runs import logged_wandb_url
from muster.readers.results import NoResult, has_printed_match, read_cell_result
from muster.stages.notation import SpecError
from muster.stages.traces import parse_evaluation_table

sys.path.insert(0, str(Path(__file__).parents[1] / "contract"))
from history_files import board_bytes, hf_bytes, jsonl_bytes, stdout_bytes, wandb_bytes

FIXTURES = Path(__file__).parents[1] / "fixtures"
REGEX = r"step[: =]+(\d+)"


def _rows(count: int = 40) -> list[dict[str, Any]]:
    return [
        {"step": at * 10, "train/loss": 1 / (at + 1), "eval": {"score": at * 0.5, "n": at}, "lr": 1e-4}
        for at in range(count)
    ]


def _jsonl() -> list[bytes]:
    odd = [
        {"_step": at, "loss": float("nan") if at % 7 == 0 else at / 3, "note": "é 中", "list": [1, 2]}
        for at in range(30)
    ]
    gate = [
        {"iteration": at, "stage": "main", "avg_final": 0.5, "first_death_p10": 70 + at, "state": "hold"}
        for at in range(1, 30)
    ]
    return [jsonl_bytes(_rows()), jsonl_bytes(odd), jsonl_bytes(gate)]


def _csv() -> list[bytes]:
    out = io.StringIO()
    table = csv.writer(out)
    table.writerow(["step", "epoch", "loss", "eval/score", "stage", "iteration"])
    table.writerows([at, at // 10, 1 / (at + 1), "" if at % 3 else at, "main", at] for at in range(40))
    plain = out.getvalue()
    return [
        plain.encode(),
        plain.replace(",", "\t").encode(),
        ("\ufeff" + plain.replace("\n", "\r\n")).encode(),
        b'step,loss\n1,"2\n3"\n2,0.5\n',
    ]


TRACEBACK = """Epoch 3/10:  45%|████▌     | 450/1000 [00:12<00:15, 35.2it/s, loss=0.123]\rEpoch 3/10: 100%|##| 1000/1000
[rank0]: Traceback (most recent call last):
[rank0]:   File "train.py", line 12, in <module>
[rank0]:     main()
[rank0]:   File "/x/model.py", line 99, in forward
[rank0]:     raise ValueError("bad")
[rank0]: ValueError: bad
During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "train.py", line 20, in <module>
    main()
    ^^^^^^
torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB
  + Exception Group Traceback (most recent call last):
  |   File "x.py", line 1, in <module>
  | ExceptionGroup: some (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | ValueError: one
    +------------------------------------
╭─────────────── Traceback (most recent call last) ────────────────╮
│ /x/train.py:12 in main                                           │
│ ❱ 12     raise RuntimeError("x")                                 │
╰──────────────────────────────────────────────────────────────────╯
RuntimeError: x
Killed
wandb: 🚀 View run at https://wandb.ai/e/p/runs/abc123
"""


def _logs() -> list[bytes]:
    return [stdout_bytes(_rows(20)), TRACEBACK.encode(), b"step: 1 loss: 0.5\nstep: 2 loss: 0.25 acc=0.9\n" * 10]


def _wandb() -> list[bytes]:
    old = sorted((FIXTURES / "wandb_old").glob("*.wandb"))
    return [*(path.read_bytes()[:40_000] for path in old), wandb_bytes(_rows(), 0)]


def _board() -> list[bytes]:
    """Of our own encoder, and of tensorboard's: scalars as plain numbers and as tensors."""
    from history_files import event
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.compat.proto.tensor_pb2 import TensorProto

    tensors = []
    for step in range(20):
        tensor = (
            TensorProto(dtype=1, float_val=[step * 0.5]) if step % 2 else TensorProto(dtype=2, tensor_content=bytes(8))
        )
        value = [Summary.Value(tag="loss", tensor=tensor), Summary.Value(tag="acc", simple_value=0.5)]
        tensors.append(event(Event(wall_time=1.7e9, step=step, summary=Summary(value=value)).SerializeToString()))
    return [board_bytes(_rows()), b"".join(tensors)]


def _states() -> list[bytes]:
    return [
        hf_bytes(_rows()),
        json.dumps({"global_step": 500, "epoch": 2.5, "log_history": [], "best_metric": 0.5}).encode(),
    ]


def _results() -> list[bytes]:
    return [
        json.dumps({"score": 1.5, "nested": {"score": [1, 2, 3]}, "episodes": 5, "list": [1.5, 2.5]}).encode(),
        b"[1, 2]",
        b'{"score": [1, 2, NaN]}',
    ]


def _npz() -> list[bytes]:
    return [
        npz(score=np.arange(50.0), other=[1, 2]),
        npz(True, score=np.ones((3, 4)), names=["a"]),
        npy(np.arange(10.0)),
        npz(score=np.array(3)),
    ]


def _pickles() -> list[bytes]:
    held: list[Any] = [
        {"loss": [0.5, 0.25], "rows": [{"step": 1, "x": 2.0}, {"step": 2, "x": 3.0}]},
        {"array": np.arange(20.0), "scalar": np.float32(0.5), "global_step": 100, "list": list(range(50))},
        [(1, 2), {"a": {"b": {"c": [1]}}}, "text", b"bytes", None, True, 2**80, {1, 2}],
    ]
    return [pickle.dumps(each, protocol) for each in held for protocol in (0, 2, 4, 5)]


def _checkpoints() -> list[bytes]:
    return [torch_zip(), sb3_zip(), npz(a=[1.0]), npy([1.0, 2.0]), safetensors(), pickle.dumps({"step": 4}), b"\x1f\x8b" + bytes(40),
            b"\x89HDF\r\n\x1a\n" + bytes(100), b'{"global_step": 7}', b"GGUF" + bytes(60)]  # fmt: skip


def _history(path: Path) -> object:
    """In two looks, as it grows."""
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    meter = RunMeter(discover_runs(str(path)).runs[0].feeds())
    meter.look()
    path.write_bytes(whole)
    meter.look()
    return meter.measured()


def _steps(make: Callable[[str], StepReader]) -> Callable[[Path], object]:
    def read(path: Path) -> object:
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        reader = make(str(path))
        reader.look()
        with path.open("ab") as file:
            file.write(whole[len(whole) // 2 :])
        reader.look()
        return reader.step, reader.non_finite, reader.nothing("it")

    return read


def _each(*reads: Callable[[Path], object], refusals: tuple[type[BaseException], ...] = ()) -> Callable[[Path], object]:
    """One file, several questions: a refusal of one is no answer of another."""

    def read(path: Path) -> object:
        found: list[object] = []
        for one in reads:
            try:
                found.append(one(path))
            except (OSError, *refusals) as error:
                found.append(str(error))
        return found

    return read


def _result(kind: str, key: str | None, where: str = "x", reduce: Any = "last") -> Callable[[Path], object]:
    result = DeclaredResult("r", kind, where, key, reduce)  # type: ignore[arg-type]
    return lambda path: read_cell_result(result, str(path), path.name, {"r": result})


def _curves(kind: str) -> Callable[[Path], object]:
    def read(path: Path) -> object:
        names = {"score": ["eval.score", "score"], "loss": ["train/loss", "loss"]}
        log = CurveLog(kind, [LogPiece((1,), str(path))], "step", 1.0, names)
        log.read()
        return log.curves(), log.tested(), log.logged()

    return read


def _sniffs(path: Path) -> object:
    return [find_step_column(str(path), kind) for kind in ("jsonl", "csv", "log")]


def _gate(kind: str) -> Callable[[Path], object]:
    def read(path: Path) -> object:
        stream = open_gate_stream(GateSource(**{kind: path.name}, step="iteration"), "stage", str(path.parent))
        return stream.look(), stream.rest(), stream.look()

    return read


CAMPAIGN = Campaign(
    "c", (Axis("config", (AxisValue("a", "a", "--configs a b"),)), Axis("seed", (AxisValue("0", 0), AxisValue("1", 1)))),
    (Job("train", ("config", "seed"), ("python", "train.py", "{config.args}")),),
)  # fmt: skip


def _configs(path: Path) -> object:
    found = axis_values.load_run_config(path)
    if found is not None:
        list(axis_values.config_leaves(found))
        return axis_values.axis_values_in_configs([(path.name, found)], CAMPAIGN.axes[1])
    return None


def _log_words(path: Path) -> object:
    text = path.read_bytes().decode("utf-8", "replace")[-(64 << 10) :]
    clues = read_log_clues(text)
    lines = clean_log_lines(text)
    half = lines[: len(lines) // 2]
    return (
        find_final_exception(clues),
        last_useful_line(clues),
        last_unsurvived_lines(clues),
        last_log_lines(clues),
        lines_show_progress(lines, half),
    )


def _staged(path: Path) -> object:
    found = staged_pictures.read_staged_files([path.parent])
    return parse_staged_artifacts(found.texts, found.hashes, found.thinned, found.notes)


def _run_folder(path: Path) -> object:
    return RunFolderReader(path.parent, path.parent).read(lambda _: "0" * 64)


def _facts(path: Path) -> object:
    return (
        attempt_facts.read_exit_file(str(path), "t"),
        attempt_facts.read_identity_file(str(path)),
        attempt_facts.read_freed_time(str(path.parent)),
        attempt_facts.read_stop_reason(str(path.parent)),
    )


EXIT = {"token": "t", "code": None, "signal": 9, "ended_at": "2026-01-01T00:00:00+08:00", "at": 1.7e9, "boot": 5.5, "boot_id": "b",
        "stops": [{"at": 1.0, "signal": 15, "epoch": 2, "reason": "x"}], "orphans": [[12, 34]], "exec_error": None,
        "evidence": {"stdout": "last", "stderr": "words", "oom_kill": 1}, "cpu_s": 4.0}  # fmt: skip


def _exits() -> list[bytes]:
    identity = {
        "token": "t",
        "boot_id": "b",
        "pid_ns": 5,
        "init_ticks": 1,
        "run": {"pid": 5, "ticks": 6},
        "shim": {"pid": 7, "ticks": 8},
        "pid": 4,
        "ticks": 9,
    }
    return [json.dumps(EXIT).encode(), json.dumps(identity).encode()]


STATUS = b"config\tseed\tjob\tstatus\tfolder\tstarted\tended\na\t0\ttrain\tDONE\truns/a\t2026-01-01 10:00:00\t20260102-100000\na\t1\ttrain\tfailed\truns/b\t1700000000\t1700009999.5\n"
TABLE_MD = b"# v40\n\n| iteration | stage | avg_final | first_death_p10 |\n|---|:-:|--:|---|\n| 8 | ne | 0.716 | 83 |\n| 16 | ne | **0.553** | 101.0 |\n\ntext\n"
FLAGS = b"python train.py --penalty_gate_success p10>=70 --penalty_gate_k 2 --curriculum 15:9,20:10 --tail_seed_stage_spec '8:a.json|type=ne;15:b.json|type=main' --tail_warn 0.7"
CONFIGS_YAML = b"defaults: {lr: 1e-4, nested: {a: [1, 2], b: null}}\na:\n  lr: 3.0e-4  # why\n  seed: 1\n  text: |\n    more\nb: &b {x: 1}\nc: *b\n<<: {d: 1}\n"
CONFIGS_JSON = b'{"seed": 1, "lr": {"value": 0.1, "desc": null}, "nested": {"a": {"b": [1, {"c": 2}]}}}'
CONFIGS_TOML = b'seed = 1\n[model]\nlr = 1e-4 # why\nlayers = [{n = 1}, {n = 2}]\n[[a.b]]\nc = 1979-05-27T07:32:00Z\nd = """x\ny"""\n"q.d" = 0x1F\n'
SCRIPT = b'#!/usr/bin/env bash\nset -e\nfor s in 0 1 2; do\n  python train.py --seed "$s" $(cat x) || exit 1 # c\ndone\ncat <<EOF\nx\nEOF\npython -m pkg.mod --flag="a b" | tee log\n'
COMMANDS = b'{"argv": ["python", "train.py", "--seed", "1"], "cwd": "/x", "command": "python train.py"}'

JSON_WORDS = (
    b'"step": 1',
    b'"score":',
    b"NaN",
    b"[",
    b"{",
    b'"log_history":',
    b'{"step":1}\n',
    b'"eval": {"score": 1e999}',
    b'"iteration":',
)
LOG_WORDS = (b"Traceback (most recent call last):\n", b'  File "x.py", line 3, in f\n', b"ValueError: x\n", b"step: 5", b"loss=", b"|", b"\x1b[31m",
             b"[rank1]: ", b"\r", b"100%|", b"  + ", b"    | ", "╭─ Traceback (most recent call last) ─╮".encode(), "│ ".encode(), b"CUDA out of memory",
             b"Caused by", b"^^^^^", b"    ", b"During handling of the above exception, another exception occurred:\n")  # fmt: skip
YAML_WORDS = (b"&a ", b"*a", b"<<: ", b"!!python/object:os.system ", b"? ", b"- ", b"|\n", b">-\n", b"{", b"}", b"%YAML 1.1\n---\n", b"...\n", b"0o17", b"1:30", b"2001-01-01",
              b"!!float", b"!!binary", b"- - - ", b"\t", b"'", b'"\\x', b"[", b"]", b": ", b"#", b"!<tag:yaml.org,2002:int> ", b"!!int x")  # fmt: skip
TOML_WORDS = (
    b"[",
    b"[[",
    b"]]",
    b"= ",
    b'"""',
    b"'''",
    b"{",
    b"inf",
    b"nan",
    b"0x",
    b"1979-05-27",
    b"07:32:00.999999999",
    b"\\u",
    b"a.b.c = 1\n",
    b"+1_0",
    b"1e5",
    b"[a]\n",
    b"[[a]]\n",
)

YAML_BYTES = 64 << 10  # more are honest, too, and take seconds: YAML is read at some 50 kB a second


def honest_yaml(size: int) -> bytes:
    return b"".join(b"key%d: {a: 1.5, b: [1, 2, 3]}  # why\n" % at for at in range(size // 36 + 1))


def _runs() -> Iterable[Reader]:
    yield Reader("history.jsonl", ("muster.readers.records.json_history", "muster.readers.records.history_parts", "muster.readers.records.json_history", "muster.readers.records.logged_runs", "muster.readers.records.row_steps", "muster.readers.records.growing_file"), _jsonl, _history,
                 file="metrics.jsonl", words=JSON_WORDS, codec=LINES)  # fmt: skip
    yield Reader(
        "history.csv",
        (
            "muster.readers.records.text_history",
            "muster.readers.records.table_rows",
            "muster.readers.records.history_parts",
        ),
        _csv,
        _history,
        file="progress.csv",
        words=(b",", b'"', b"step", b"\r"),
        codec=LINES,
    )
    yield Reader(
        "history.log",
        ("muster.readers.records.text_history",),
        _logs,
        _history,
        file="train.log",
        words=(b"loss=", b": ", b"=", b"e+"),
        codec=LINES,
    )
    yield Reader(
        "history.wandb",
        (
            "muster.readers.records.wandb_records",
            "muster.readers.records.record_frames",
            "muster.readers.records.bulk_decoding",
            "muster.readers.records.record_frames",
            "muster.readers.records.bulk_decoding",
        ),
        _wandb,
        _history,
        file="run-x.wandb",
        codec=WANDB,
        share=2,
    )
    yield Reader("history.tfevents", ("muster.readers.records.tensorboard", "muster.readers.records.record_frames", "muster.readers.records.bulk_decoding", "muster.readers.records.record_frames", "muster.readers.records.record_frames"), _board, _history,
                 file="events.out.tfevents.17.x", codec=TFEVENTS, share=2)  # fmt: skip
    yield Reader(
        "history.trainer_state",
        ("muster.readers.records.json_history",),
        _states,
        _history,
        file="trainer_state.json",
        words=JSON_WORDS,
    )
    yield Reader("history.discovered", ("muster.readers.records.logged_runs", "muster.readers.records.wandb_runs"), lambda: [*_jsonl(), *_csv()],
                 lambda path: [run.feeds() for run in discover_runs(str(path.parent)).runs], file="odd.jsonl", words=JSON_WORDS)  # fmt: skip
    yield Reader(
        "steps.jsonl",
        (
            "muster.readers.records.text_steps",
            "muster.readers.records.growing_file",
            "muster.readers.records.row_steps",
        ),
        _jsonl,
        _steps(lambda path: JsonlStepReader(path, "step", stage_key="stage")),
        words=JSON_WORDS,
        codec=LINES,
    )
    yield Reader(
        "steps.csv",
        ("muster.readers.records.text_steps", "muster.readers.records.row_steps"),
        _csv,
        _steps(lambda path: TableStepReader(path, "step", stage_key="stage")),
        codec=LINES,
    )
    yield Reader(
        "steps.log",
        ("muster.readers.records.text_steps", "muster.readers.records.row_steps"),
        _logs,
        _steps(lambda path: PrintedStepReader(path, LogPattern.of(REGEX))),
        codec=LINES,
    )
    yield Reader(
        "steps.wandb",
        ("muster.readers.records.record_steps",),
        _wandb,
        _steps(WandbStepReader),
        file="run-x.wandb",
        codec=WANDB,
    )
    yield Reader(
        "steps.tfevents",
        ("muster.readers.records.record_steps",),
        _board,
        _steps(TensorboardStepReader),
        file="events.out.tfevents.17.x",
        codec=TFEVENTS,
    )
    yield Reader("steps.last", ("muster.readers.records.row_steps", "muster.readers.proof_steps"), lambda: [*_jsonl(), *_csv(), *_logs()],
                 _each(*(lambda path, kind=kind, key=key: read_newest_step(str(path), kind, key, 1.0, "it") for kind, key in (("jsonl", "step"), ("csv", "step"), ("stdout", REGEX)))), words=JSON_WORDS)  # fmt: skip
    yield Reader("steps.records", ("muster.readers.proof_steps", "muster.readers.records.record_steps"), _wandb,
                 _each(lambda path: read_newest_step(str(path), "wandb", None, 1.0, "it"), lambda path: read_newest_step(str(path), "wandb", "train/loss", 1.0, "it")), file="r.wandb", codec=WANDB)  # fmt: skip
    yield Reader(
        "result.json",
        ("muster.readers.results",),
        _results,
        _each(_result("json", "score"), _result("json", "nested.score", reduce="mean"), refusals=(NoResult,)),
        file="r.json",
        words=JSON_WORDS,
    )
    yield Reader(
        "result.jsonl",
        ("muster.readers.results", "muster.readers.log_rows"),
        _jsonl,
        _result("jsonl", "eval.score", reduce="max"),
        (NoResult,),
        file="r.jsonl",
        words=JSON_WORDS,
        codec=LINES,
    )
    yield Reader(
        "result.csv",
        ("muster.readers.results",),
        _csv,
        _result("csv", "loss", reduce="mean"),
        (NoResult,),
        file="r.csv",
        codec=LINES,
    )
    yield Reader(
        "result.npz",
        ("muster.readers.results",),
        _npz,
        _result("npz", "score", reduce="min"),
        (NoResult,),
        file="r.npz",
        codec=ZIP_OF_NPY,
        share=2,
    )
    yield Reader(
        "result.log",
        ("muster.readers.results",),
        _logs,
        _each(
            _result("stdout", None, r"loss[=:] ?(\S+)"),
            lambda path: has_printed_match(str(path), REGEX),
            refusals=(NoResult,),
        ),
        codec=LINES,
    )
    yield Reader(
        "curves.jsonl",
        ("muster.readers.curves", "muster.readers.log_rows"),
        _jsonl,
        _curves("jsonl"),
        words=JSON_WORDS,
        codec=LINES,
    )
    yield Reader("curves.csv", ("muster.readers.curves",), _csv, _curves("csv"), codec=LINES)
    yield Reader("curves.wandb", ("muster.readers.curves",), _wandb, _curves("wandb"), file="r.wandb", codec=WANDB)
    yield Reader(
        "series.pickle",
        (
            "muster.app.journal.run_files",
            "muster.readers.checkpoints.plain_pickles",
            "muster.readers.checkpoints.arrays",
        ),
        _pickles,
        lambda path: read_series_file(str(path)),
        file="stats.pkl",
        codec=PICKLE,
        words=PICKLED,
    )
    yield Reader(
        "series.npz",
        ("muster.app.journal.run_files",),
        _npz,
        lambda path: read_series_file(str(path)),
        file="stats.npz",
        codec=ZIP_OF_NPY,
    )
    yield Reader(
        "pickle",
        ("muster.readers.checkpoints.plain_pickles", "muster.readers.checkpoints.arrays"),
        _pickles,
        lambda path: read_plain_pickle(str(path)),
        (PickleNotPlain,),
        file="x.pkl",
        codec=PICKLE,
        words=PICKLED,
        share=2,
    )
    opened = _each(lambda path: check_checkpoint(str(path)), lambda path: step_of_checkpoint(str(path)))
    yield Reader(
        "checkpoint",
        (
            "muster.readers.checkpoints.whole_checkpoints",
            "muster.readers.checkpoints.checkpoint_steps",
            "muster.readers.checkpoints.file_formats",
        ),
        _checkpoints,
        opened,
        file="model_100.pt",
    )
    yield Reader(
        "checkpoint.zip",
        ("muster.readers.checkpoints.file_formats", "muster.readers.checkpoints.checkpoint_steps"),
        lambda: [torch_zip(), sb3_zip()],
        opened,
        file="model.pt",
        codec=ZIP,
        share=2,
    )
    yield Reader(
        "checkpoint.npy",
        ("muster.readers.checkpoints.file_formats",),
        lambda: [npy([1.0, 2.0]), npy(np.ones((3, 4), "<i2"))],
        opened,
        file="model.npy",
        codec=NPY,
    )
    yield Reader(
        "checkpoint.safetensors",
        ("muster.readers.checkpoints.file_formats",),
        lambda: [safetensors()],
        opened,
        file="model.safetensors",
        codec=SAFETENSORS,
        words=JSON_WORDS,
    )
    yield Reader(
        "checkpoint.pickle",
        ("muster.readers.checkpoints.file_formats", "muster.readers.checkpoints.checkpoint_steps"),
        _pickles,
        opened,
        file="model.pkl",
        codec=PICKLE,
        words=PICKLED,
    )
    yield Reader(
        "checkpoint.folder",
        ("muster.readers.checkpoints.whole_checkpoints", "muster.readers.checkpoints.checkpoint_steps"),
        _states,
        lambda path: (check_checkpoint(str(path.parent)), step_of_checkpoint(str(path.parent))),
        file="trainer_state.json",
        words=JSON_WORDS,
    )
    yield Reader(
        "found.columns",
        ("muster.readers.discovery.step_columns",),
        lambda: [*_jsonl(), *_csv(), *_logs()],
        _sniffs,
        words=(*JSON_WORDS, b"2026-01-01 10:00:00,123"),
    )
    yield Reader("gate.jsonl", ("muster.readers.gate_stream",), _jsonl, _gate("jsonl"), words=JSON_WORDS, codec=LINES)
    yield Reader("gate.csv", ("muster.readers.gate_stream",), _csv, _gate("csv"), codec=LINES)
    yield Reader("gate.trace", ("muster.readers.gate_traces",), _jsonl, _gate_trace, words=JSON_WORDS, codec=LINES)
    yield Reader("gate.evals", ("muster.app.gates.replay_gates", "muster.stages.traces", "muster.stages.traces"), lambda: [*_jsonl(), *_csv(), TABLE_MD],
                 replay_gates.read_evaluation_file, (MusterError,), words=(*JSON_WORDS, b"|", b"---", b"**", b"iteration"))  # fmt: skip
    yield Reader(
        "gate.table",
        ("muster.stages.traces",),
        lambda: [TABLE_MD, *_csv()],
        lambda path: parse_evaluation_table(path.read_text("utf-8", "replace")),
        (SpecError,),
        words=(b"|", b"---", b"\n|", b"iteration"),
    )
    yield Reader("gate.flags", ("muster.app.gates.replay_gates", "muster.stages.training_flags", "muster.stages.notation"), lambda: [FLAGS, b"```\n" + FLAGS + b"\n```\n"], replay_gates.read_facts_of_flags, (MusterError,),
                 words=(b"--penalty_gate_", b"--curriculum", b"--tail_seed_stage_spec", b"=", b":", b";", b"|type=", b",", b"'", b"\\\n", b"ne:0.13"))  # fmt: skip
    yield Reader(
        "run.command",
        ("muster.app.journal.run_files",),
        lambda: [COMMANDS],
        read_command_file,
        (UnreadableCommand,),
        file="command.json",
        words=(b'"argv":', b'"command":', b'["a"]'),
    )
    yield Reader(
        "run.command_text",
        ("muster.app.journal.run_files",),
        lambda: [SCRIPT],
        _each(read_command_file, _script, refusals=(UnreadableCommand,)),
        file="command.txt",
        words=(b"'", b'"', b"\\\n", b"$ "),
    )
    yield Reader(
        "run.folder",
        ("muster.app.journal.run_files",),
        _jsonl,
        _run_folder,
        file="eval_history.jsonl",
        words=JSON_WORDS,
        codec=LINES,
    )
    yield Reader(
        "run.gate_trace",
        ("muster.app.journal.run_files",),
        _jsonl,
        _each(_run_folder, _staged),
        file="gate_trace.jsonl",
        words=JSON_WORDS,
        codec=LINES,
    )
    yield Reader(
        "run.schedule",
        (*("muster.app.journal.run_files",), "muster.app.gates.staged_pictures", "muster.app.gates.staged_artifacts"),
        lambda: [SCHEDULE],
        _each(_run_folder, _staged),
        file="stage_schedule_trace.json",
        words=JSON_WORDS,
    )
    yield Reader(
        "run.stats",
        ("muster.app.journal.run_files", "muster.app.journal.run_files"),
        _pickles,
        _run_folder,
        file="training_stats.pkl",
        codec=PICKLE,
        words=PICKLED,
    )
    yield Reader(
        "run.exit",
        ("muster.readers.attempt_facts",),
        _exits,
        _each(_facts),
        file="freed",
        words=(b'"token": "t"', b'"stops":', b'"run":', b'"pid":', b"null", b"1e999"),
    )
    yield Reader(
        "run.config.yaml",
        ("muster.readers.discovery.axis_values", "muster.app.campaign.preflight.config_warnings"),
        lambda: [CONFIGS_YAML],
        _each(_configs, config_warnings.load_config_parts),
        file="config.yaml",
        most=YAML_BYTES,
        honest=honest_yaml,
        words=YAML_WORDS,
    )
    yield Reader(
        "run.config.json",
        ("muster.readers.discovery.axis_values",),
        lambda: [CONFIGS_JSON],
        _configs,
        file="config.json",
        words=JSON_WORDS,
    )
    yield Reader(
        "run.config.toml",
        ("muster.readers.discovery.axis_values",),
        lambda: [CONFIGS_TOML],
        _configs,
        file="config.toml",
        words=TOML_WORDS,
    )
    yield Reader(
        "run.log_words",
        ("muster.engine.judge.log_clues", "muster.engine.judge.log_notices", "muster.engine.judge.tracebacks"),
        _logs,
        _log_words,
        words=LOG_WORDS,
        codec=LINES,
        share=2,
    )
    yield Reader(
        "run.wandb_url",
        ("muster.readers.records.wandb_runs",),
        _logs,
        lambda path: logged_wandb_url(str(path.parent)),
        file="stderr.log",
        words=(b"wandb: ", b"https://wandb.ai/", b"View run at "),
    )
    yield Reader("run.script", ("muster.app.campaign.preflight.missing_programs", "muster.text.shell_words"), lambda: [SCRIPT], lambda path: find_missing_in_shell_text(path.read_text("utf-8", "replace"), str(path.parent)),
                 words=(b"python ", b"|", b"&&", b";", b"$(", b")", b"<<EOF\n", b"'", b'"', b"${", b"}", b"if ", b"then", b"fi", b"case", b"\\\n"))  # fmt: skip
    yield Reader(
        "adopt.status",
        ("muster.readers.discovery.axis_values",),
        lambda: [STATUS, STATUS.replace(b"\t", b",")],
        lambda path: axis_values.read_status_table(path, CAMPAIGN),
        (MusterError,),
        words=(b"\t", b'"', b"DONE", b"2026-01-01", b"seed"),
    )


def _script(path: Path) -> object:
    return read_script_of_command(["python", path.name], [path.parent], None)


def _gate_trace(path: Path) -> object:
    (path.parent / "gates").mkdir()
    path.rename(path.parent / "gates" / "g.jsonl")
    return gate_traces.newest_gate_rows(path.parent)


SCHEDULE = json.dumps({
    "iterations": 60, "stages": [{"from": 1, "to": 8, "type": "ne", "source": "a.json"}, {"from": 9, "to": 60, "type": "main", "source": "b.json"}],
    "reinjections_by_type": {"ne": 2}, "warnings": [{"type": "ne", "onset": 56, "iteration": 57, "ratio": 0.7, "threshold": 0.7, "duration": 4, "total": 4}],
    "trace": [{"iteration": at, "stage": "ne", "remaining": {"ne": 8 - at, "main": 52}} for at in range(1, 9)],
}).encode()  # fmt: skip


def _npz_parts(data: bytes) -> list[bytes]:
    return ZIP.split(data) if data.startswith(b"PK") else NPY.split(data)


ZIP_OF_NPY = Codec(_npz_parts, ZIP.join)
RUNS = tuple(_runs())
