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

from muster.acts import config_names, gate_trace, run_config, status_table
from muster.acts.scripts import missing_in_shell
from muster.domain.campaign import Axis, AxisValue, Campaign, Job, Result
from muster.domain.errors import MusterError
from muster.judge.clues import final_of, last_lines, last_useful_line, last_words, read_clues
from muster.judge.loglines import clean_lines, tells_progress
from muster.observe import facts
from muster.observe.checkpoint_steps import step_of
from muster.observe.checkpoints import open_checkpoint
from muster.observe.curves import Log
from muster.observe.find_columns import sniff
from muster.observe.gate_stream import stream_of
from muster.observe.log_pieces import LogPiece
from muster.observe.metrics.discover import discover
from muster.observe.metrics.jsonl import JsonlReader
from muster.observe.metrics.meter import Meter
from muster.observe.metrics.reader import StepReader
from muster.observe.metrics.record_steps import BoardSteps, WandbSteps
from muster.observe.metrics.stdout import LogReader
from muster.observe.metrics.table import TableReader
from muster.observe.metrics.wandb_url import logged_url
from muster.observe.pickles import NotPlain, read_pickle
from muster.observe.results import NoResult, has_match, read_result
from muster.observe.run_command import NoCommand, read_command_file, read_script
from muster.observe.run_files import RunFolder
from muster.observe.run_series import series_of
from muster.observe.step_reads import read_records, read_step
from muster.observe.steps import LogPattern
from muster.report.figures.staged.artifacts import artifacts_of
from muster.stages.errors import SpecError
from muster.stages.tables import read_table
from muster.wiring import gate_files, staged_files

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
    meter = Meter(discover(str(path)).runs[0].feeds())
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
    result = Result("r", kind, where, key, reduce)  # type: ignore[arg-type]
    return lambda path: read_result(result, str(path), path.name, {"r": result})


def _curves(kind: str) -> Callable[[Path], object]:
    def read(path: Path) -> object:
        names = {"score": ["eval.score", "score"], "loss": ["train/loss", "loss"]}
        log = Log(kind, [LogPiece((1,), str(path))], "step", 1.0, names)
        log.read()
        return log.curves(), log.tested(), log.logged()

    return read


def _sniffs(path: Path) -> object:
    return [sniff(str(path), kind) for kind in ("jsonl", "csv", "log")]


def _gate(kind: str) -> Callable[[Path], object]:
    def read(path: Path) -> object:
        stream = stream_of({kind: path.name, "step": "iteration"}, "stage", str(path.parent))
        return stream.look(), stream.rest(), stream.look()

    return read


CAMPAIGN = Campaign(
    "c", (Axis("config", (AxisValue("a", "a", "--configs a b"),)), Axis("seed", (AxisValue("0", 0), AxisValue("1", 1)))),
    (Job("train", ("config", "seed"), ("python", "train.py", "{config.args}")),),
)  # fmt: skip


def _configs(path: Path) -> object:
    found = run_config.load(path)
    if found is not None:
        list(run_config.leaves(found))
        return run_config.claims([(path.name, found)], CAMPAIGN.axes[1])
    return None


def _log_words(path: Path) -> object:
    text = path.read_bytes().decode("utf-8", "replace")[-(64 << 10) :]
    clues = read_clues(text)
    lines = clean_lines(text)
    half = lines[: len(lines) // 2]
    return final_of(clues), last_useful_line(clues), last_words(clues), last_lines(clues), tells_progress(lines, half)


def _staged(path: Path) -> object:
    found = staged_files.read_staged([path.parent])
    return artifacts_of(found.texts, found.hashes, found.thinned, found.notes)


def _run_folder(path: Path) -> object:
    return RunFolder(path.parent, path.parent).read(lambda _: "0" * 64)


def _facts(path: Path) -> object:
    return (
        facts.read_exit(str(path), "t"),
        facts.read_identity(str(path)),
        facts.freed(str(path.parent)),
        facts.stop_reason(str(path.parent)),
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
    yield Reader("history.jsonl", ("muster.observe.metrics.history_jsonl", "muster.observe.metrics.lines", "muster.observe.metrics.row_type", "muster.observe.metrics.discover", "muster.observe.metrics.numbers", "muster.observe.metrics.growing"), _jsonl, _history,
                 file="metrics.jsonl", words=JSON_WORDS, codec=LINES)  # fmt: skip
    yield Reader(
        "history.csv",
        ("muster.observe.metrics.history_csv", "muster.observe.metrics.lines"),
        _csv,
        _history,
        file="progress.csv",
        words=(b",", b'"', b"step", b"\r"),
        codec=LINES,
    )
    yield Reader(
        "history.log",
        ("muster.observe.metrics.history_stdout",),
        _logs,
        _history,
        file="train.log",
        words=(b"loss=", b": ", b"=", b"e+"),
        codec=LINES,
    )
    yield Reader(
        "history.wandb",
        (
            "muster.observe.metrics.wandb",
            "muster.observe.metrics.wandb_frames",
            "muster.observe.metrics.wandb_walk",
            "muster.observe.metrics.wire",
            "muster.observe.metrics.keys",
        ),
        _wandb,
        _history,
        file="run-x.wandb",
        codec=WANDB,
        share=2,
    )
    yield Reader("history.tfevents", ("muster.observe.metrics.tfevents", "muster.observe.metrics.tfevents_frames", "muster.observe.metrics.tfevents_walk", "muster.observe.metrics.crc32c", "muster.observe.metrics.wire"), _board, _history,
                 file="events.out.tfevents.17.x", codec=TFEVENTS, share=2)  # fmt: skip
    yield Reader(
        "history.trainer_state",
        ("muster.observe.metrics.whole_json",),
        _states,
        _history,
        file="trainer_state.json",
        words=JSON_WORDS,
    )
    yield Reader("history.discovered", ("muster.observe.metrics.discover", "muster.observe.metrics.wandb_runs"), lambda: [*_jsonl(), *_csv()],
                 lambda path: [run.feeds() for run in discover(str(path.parent)).runs], file="odd.jsonl", words=JSON_WORDS)  # fmt: skip
    yield Reader(
        "steps.jsonl",
        ("muster.observe.metrics.jsonl", "muster.observe.metrics.tailing", "muster.observe.steps"),
        _jsonl,
        _steps(lambda path: JsonlReader(path, "step", stage_key="stage")),
        words=JSON_WORDS,
        codec=LINES,
    )
    yield Reader(
        "steps.csv",
        ("muster.observe.metrics.table", "muster.observe.steps"),
        _csv,
        _steps(lambda path: TableReader(path, "step", stage_key="stage")),
        codec=LINES,
    )
    yield Reader(
        "steps.log",
        ("muster.observe.metrics.stdout", "muster.observe.steps"),
        _logs,
        _steps(lambda path: LogReader(path, LogPattern.of(REGEX))),
        codec=LINES,
    )
    yield Reader(
        "steps.wandb",
        ("muster.observe.metrics.record_steps",),
        _wandb,
        _steps(WandbSteps),
        file="run-x.wandb",
        codec=WANDB,
    )
    yield Reader(
        "steps.tfevents",
        ("muster.observe.metrics.record_steps",),
        _board,
        _steps(BoardSteps),
        file="events.out.tfevents.17.x",
        codec=TFEVENTS,
    )
    yield Reader("steps.last", ("muster.observe.steps", "muster.observe.step_reads"), lambda: [*_jsonl(), *_csv(), *_logs()],
                 _each(*(lambda path, kind=kind, key=key: read_step(str(path), kind, key, 1.0, "it") for kind, key in (("jsonl", "step"), ("csv", "step"), ("stdout", REGEX)))), words=JSON_WORDS)  # fmt: skip
    yield Reader("steps.records", ("muster.observe.step_reads", "muster.observe.metrics.record_steps"), _wandb,
                 _each(lambda path: read_records(str(path), "wandb", None, 1.0, "it"), lambda path: read_records(str(path), "wandb", "train/loss", 1.0, "it")), file="r.wandb", codec=WANDB)  # fmt: skip
    yield Reader(
        "result.json",
        ("muster.observe.results",),
        _results,
        _each(_result("json", "score"), _result("json", "nested.score", reduce="mean"), refusals=(NoResult,)),
        file="r.json",
        words=JSON_WORDS,
    )
    yield Reader(
        "result.jsonl",
        ("muster.observe.results", "muster.observe.sweep"),
        _jsonl,
        _result("jsonl", "eval.score", reduce="max"),
        (NoResult,),
        file="r.jsonl",
        words=JSON_WORDS,
        codec=LINES,
    )
    yield Reader(
        "result.csv",
        ("muster.observe.results",),
        _csv,
        _result("csv", "loss", reduce="mean"),
        (NoResult,),
        file="r.csv",
        codec=LINES,
    )
    yield Reader(
        "result.npz",
        ("muster.observe.results",),
        _npz,
        _result("npz", "score", reduce="min"),
        (NoResult,),
        file="r.npz",
        codec=ZIP_OF_NPY,
        share=2,
    )
    yield Reader(
        "result.log",
        ("muster.observe.results",),
        _logs,
        _each(
            _result("stdout", None, r"loss[=:] ?(\S+)"), lambda path: has_match(str(path), REGEX), refusals=(NoResult,)
        ),
        codec=LINES,
    )
    yield Reader(
        "curves.jsonl",
        ("muster.observe.curves", "muster.observe.sweep"),
        _jsonl,
        _curves("jsonl"),
        words=JSON_WORDS,
        codec=LINES,
    )
    yield Reader("curves.csv", ("muster.observe.curves",), _csv, _curves("csv"), codec=LINES)
    yield Reader("curves.wandb", ("muster.observe.curves",), _wandb, _curves("wandb"), file="r.wandb", codec=WANDB)
    yield Reader(
        "series.pickle",
        ("muster.observe.run_series", "muster.observe.pickles", "muster.observe.pickle_arrays"),
        _pickles,
        lambda path: series_of(str(path)),
        file="stats.pkl",
        codec=PICKLE,
        words=PICKLED,
    )
    yield Reader(
        "series.npz",
        ("muster.observe.run_series",),
        _npz,
        lambda path: series_of(str(path)),
        file="stats.npz",
        codec=ZIP_OF_NPY,
    )
    yield Reader(
        "pickle",
        ("muster.observe.pickles", "muster.observe.pickle_arrays"),
        _pickles,
        lambda path: read_pickle(str(path)),
        (NotPlain,),
        file="x.pkl",
        codec=PICKLE,
        words=PICKLED,
        share=2,
    )
    opened = _each(lambda path: open_checkpoint(str(path)), lambda path: step_of(str(path)))
    yield Reader(
        "checkpoint",
        ("muster.observe.checkpoints", "muster.observe.checkpoint_steps", "muster.observe.containers"),
        _checkpoints,
        opened,
        file="model_100.pt",
    )
    yield Reader(
        "checkpoint.zip",
        ("muster.observe.containers", "muster.observe.checkpoint_steps"),
        lambda: [torch_zip(), sb3_zip()],
        opened,
        file="model.pt",
        codec=ZIP,
        share=2,
    )
    yield Reader(
        "checkpoint.npy",
        ("muster.observe.containers",),
        lambda: [npy([1.0, 2.0]), npy(np.ones((3, 4), "<i2"))],
        opened,
        file="model.npy",
        codec=NPY,
    )
    yield Reader(
        "checkpoint.safetensors",
        ("muster.observe.containers",),
        lambda: [safetensors()],
        opened,
        file="model.safetensors",
        codec=SAFETENSORS,
        words=JSON_WORDS,
    )
    yield Reader(
        "checkpoint.pickle",
        ("muster.observe.containers", "muster.observe.checkpoint_steps"),
        _pickles,
        opened,
        file="model.pkl",
        codec=PICKLE,
        words=PICKLED,
    )
    yield Reader(
        "checkpoint.folder",
        ("muster.observe.checkpoints", "muster.observe.checkpoint_steps"),
        _states,
        lambda path: (open_checkpoint(str(path.parent)), step_of(str(path.parent))),
        file="trainer_state.json",
        words=JSON_WORDS,
    )
    yield Reader(
        "found.columns",
        ("muster.observe.find_columns",),
        lambda: [*_jsonl(), *_csv(), *_logs()],
        _sniffs,
        words=(*JSON_WORDS, b"2026-01-01 10:00:00,123"),
    )
    yield Reader("gate.jsonl", ("muster.observe.gate_stream",), _jsonl, _gate("jsonl"), words=JSON_WORDS, codec=LINES)
    yield Reader("gate.csv", ("muster.observe.gate_stream",), _csv, _gate("csv"), codec=LINES)
    yield Reader("gate.trace", ("muster.acts.gate_trace",), _jsonl, _gate_trace, words=JSON_WORDS, codec=LINES)
    yield Reader("gate.evals", ("muster.wiring.gate_files", "muster.stages.tables", "muster.stages.traces"), lambda: [*_jsonl(), *_csv(), TABLE_MD],
                 gate_files.read_evals, (MusterError,), words=(*JSON_WORDS, b"|", b"---", b"**", b"iteration"))  # fmt: skip
    yield Reader(
        "gate.table",
        ("muster.stages.tables",),
        lambda: [TABLE_MD, *_csv()],
        lambda path: read_table(path.read_text("utf-8", "replace")),
        (SpecError,),
        words=(b"|", b"---", b"\n|", b"iteration"),
    )
    yield Reader("gate.flags", ("muster.wiring.gate_files", "muster.stages.flags", "muster.stages.notation"), lambda: [FLAGS, b"```\n" + FLAGS + b"\n```\n"], gate_files.read_flags, (MusterError,),
                 words=(b"--penalty_gate_", b"--curriculum", b"--tail_seed_stage_spec", b"=", b":", b";", b"|type=", b",", b"'", b"\\\n", b"ne:0.13"))  # fmt: skip
    yield Reader(
        "run.command",
        ("muster.observe.run_command",),
        lambda: [COMMANDS],
        read_command_file,
        (NoCommand,),
        file="command.json",
        words=(b'"argv":', b'"command":', b'["a"]'),
    )
    yield Reader(
        "run.command_text",
        ("muster.observe.run_command",),
        lambda: [SCRIPT],
        _each(read_command_file, _script, refusals=(NoCommand,)),
        file="command.txt",
        words=(b"'", b'"', b"\\\n", b"$ "),
    )
    yield Reader(
        "run.folder",
        ("muster.observe.run_files",),
        _jsonl,
        _run_folder,
        file="eval_history.jsonl",
        words=JSON_WORDS,
        codec=LINES,
    )
    yield Reader(
        "run.gate_trace",
        ("muster.observe.run_files",),
        _jsonl,
        _each(_run_folder, _staged),
        file="gate_trace.jsonl",
        words=JSON_WORDS,
        codec=LINES,
    )
    yield Reader(
        "run.schedule",
        (*("muster.observe.run_files",), "muster.wiring.staged_files", "muster.report.figures.staged.artifacts"),
        lambda: [SCHEDULE],
        _each(_run_folder, _staged),
        file="stage_schedule_trace.json",
        words=JSON_WORDS,
    )
    yield Reader(
        "run.stats",
        ("muster.observe.run_files", "muster.observe.run_series"),
        _pickles,
        _run_folder,
        file="training_stats.pkl",
        codec=PICKLE,
        words=PICKLED,
    )
    yield Reader(
        "run.exit",
        ("muster.observe.facts",),
        _exits,
        _each(_facts),
        file="freed",
        words=(b'"token": "t"', b'"stops":', b'"run":', b'"pid":', b"null", b"1e999"),
    )
    yield Reader(
        "run.config.yaml",
        ("muster.acts.run_config", "muster.acts.config_names"),
        lambda: [CONFIGS_YAML],
        _each(_configs, config_names.load_parts),
        file="config.yaml",
        most=YAML_BYTES,
        honest=honest_yaml,
        words=YAML_WORDS,
    )
    yield Reader(
        "run.config.json",
        ("muster.acts.run_config",),
        lambda: [CONFIGS_JSON],
        _configs,
        file="config.json",
        words=JSON_WORDS,
    )
    yield Reader(
        "run.config.toml",
        ("muster.acts.run_config",),
        lambda: [CONFIGS_TOML],
        _configs,
        file="config.toml",
        words=TOML_WORDS,
    )
    yield Reader(
        "run.log_words",
        ("muster.judge.clues", "muster.judge.loglines", "muster.judge.tracebacks"),
        _logs,
        _log_words,
        words=LOG_WORDS,
        codec=LINES,
        share=2,
    )
    yield Reader(
        "run.wandb_url",
        ("muster.observe.metrics.wandb_url",),
        _logs,
        lambda path: logged_url(str(path.parent)),
        file="stderr.log",
        words=(b"wandb: ", b"https://wandb.ai/", b"View run at "),
    )
    yield Reader("run.script", ("muster.acts.scripts",), lambda: [SCRIPT], lambda path: missing_in_shell(path.read_text("utf-8", "replace"), str(path.parent)),
                 words=(b"python ", b"|", b"&&", b";", b"$(", b")", b"<<EOF\n", b"'", b'"', b"${", b"}", b"if ", b"then", b"fi", b"case", b"\\\n"))  # fmt: skip
    yield Reader(
        "adopt.status",
        ("muster.acts.status_table",),
        lambda: [STATUS, STATUS.replace(b"\t", b",")],
        lambda path: status_table.read_table(path, CAMPAIGN),
        (MusterError,),
        words=(b"\t", b'"', b"DONE", b"2026-01-01", b"seed"),
    )


def _script(path: Path) -> object:
    return read_script(["python", path.name], [path.parent], None)


def _gate_trace(path: Path) -> object:
    (path.parent / "gates").mkdir()
    path.rename(path.parent / "gates" / "g.jsonl")
    return gate_trace.newest_rows(path.parent)


SCHEDULE = json.dumps({
    "iterations": 60, "stages": [{"from": 1, "to": 8, "type": "ne", "source": "a.json"}, {"from": 9, "to": 60, "type": "main", "source": "b.json"}],
    "reinjections_by_type": {"ne": 2}, "warnings": [{"type": "ne", "onset": 56, "iteration": 57, "ratio": 0.7, "threshold": 0.7, "duration": 4, "total": 4}],
    "trace": [{"iteration": at, "stage": "ne", "remaining": {"ne": 8 - at, "main": 52}} for at in range(1, 9)],
}).encode()  # fmt: skip


def _npz_parts(data: bytes) -> list[bytes]:
    return ZIP.split(data) if data.startswith(b"PK") else NPY.split(data)


ZIP_OF_NPY = Codec(_npz_parts, ZIP.join)
RUNS = tuple(_runs())
