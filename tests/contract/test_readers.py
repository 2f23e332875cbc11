"""What every kind of reader promises: the same file says the same to progress, proof, results, curves, gates and
`muster metrics`, however odd it is; no file makes a reader fail; and readers of others come in by the same door.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from history_files import board_bytes, hf_bytes, wandb_bytes

from muster.model.campaign import DeclaredResult, GateSource
from muster.readers.curves import CurveLog
from muster.readers.gate_stream import open_gate_stream
from muster.readers.log_rows import LogPiece
from muster.readers.records import record_kinds
from muster.readers.records.logged_runs import MeasuredRun, RunMeter, newest_run_in
from muster.readers.records.metric_reader import InMemoryReader, MetricRows
from muster.readers.records.record_kinds import RecordKind, built_in_kinds, foreign_kinds, kind_called
from muster.readers.records.record_steps import read_last_step
from muster.readers.records.text_steps import (
    JsonlStepReader,
    StepReader,
    TableStepReader,
)
from muster.readers.results import NoResult, read_cell_result
from muster.rules.metric_summary import Summary

ROWS: list[dict[str, Any]] = [{"step": step, "loss": 1.0 / 2**step, "acc": step * 0.25} for step in range(1, 6)]
LAST = 1.0 / 32


def measured(path: Path) -> MeasuredRun:
    run = newest_run_in(str(path)).run
    assert run is not None
    meter = RunMeter(run.feeds())
    meter.look()
    return meter.measured()


# -- texts: six answers to one file


def jsonl(rows: list[dict[str, Any]] = ROWS, end: str = "\n") -> bytes:
    return "".join(json.dumps(row) + end for row in rows).encode()


def table(delimiter: str = ",", end: str = "\n", *, index: bool = False, header: bool = True) -> bytes:
    names = [[*([""] if index else []), *ROWS[0]]] if header else []
    lines = [*names, *([*([at] if index else []), *row.values()] for at, row in enumerate(ROWS))]
    return "".join(delimiter.join(map(str, line)) + end for line in lines).encode()


@dataclass(frozen=True)
class OddFile:
    name: str
    kind: str
    data: bytes
    steps: tuple[float, ...] = (1, 2, 3, 4, 5)
    packed: bool = False
    told: str = ""  # what `muster metrics` says of it

    def put(self, folder: Path) -> Path:
        path = folder / f"log.{self.kind}{'.gz' if self.packed else ''}"
        path.write_bytes(gzip.compress(self.data) if self.packed else self.data)
        return path


NAN = [*ROWS[:2], {"step": 2, "loss": math.nan, "acc": 0.5}, *ROWS[2:]]
LATE = [{"step": 0, "lr": 1.0}, {"lr": 2.0}, *ROWS]
ODD = (
    OddFile("plain", "jsonl", jsonl()),
    OddFile("crlf", "jsonl", jsonl(end="\r\n")),
    OddFile("byte order mark", "jsonl", b"\xef\xbb\xbf" + jsonl()),
    OddFile("empty lines", "jsonl", jsonl(end="\n\n")),
    OddFile("packed", "jsonl", jsonl(), packed=True),
    OddFile("torn", "jsonl", jsonl() + b'{"step": 6, "lo', told="its last line has not ended yet"),
    OddFile("damaged line", "jsonl", jsonl(ROWS[:3]) + b'{"step": 4, "loss\n' + jsonl(ROWS[3:]), told="1 line that is no row"),
    OddFile("power cut", "jsonl", jsonl(ROWS[:3]) + bytes(5000) + b"\n" + jsonl(ROWS[3:])),
    OddFile("nan", "jsonl", jsonl(NAN), steps=(1, 2, 2, 3, 4, 5)),
    OddFile("late keys", "jsonl", jsonl(LATE)),
    OddFile("plain", "csv", table()),
    OddFile("semicolons", "csv", table(";")),
    OddFile("tabs", "csv", table("\t")),
    OddFile("crlf", "csv", table(end="\r\n")),
    OddFile("byte order mark", "csv", b"\xef\xbb\xbf" + table()),
    OddFile("remark", "csv", b'#{"t_start": 1.5, "env_id": "x"}\n' + table()),
    OddFile("index", "csv", table(index=True)),
    OddFile("index, semicolons, crlf", "csv", table(";", "\r\n", index=True)),
    OddFile("packed", "csv", table(";"), packed=True),
    OddFile("torn", "csv", table() + b"6,0.01", told="its last line has not ended yet"),
    OddFile("cut row", "csv", table() + b"6\n", told="1 line that is no row"),
    OddFile("header again", "csv", table().replace(b"\n3,", b"\nstep,loss,acc\n3,")),
    OddFile("quoted", "csv", table().replace(b"\n", b'"\n"').replace(b",", b'","').join([b'"', b""])[:-1]),
    OddFile("nan", "csv", table().replace(b"\n3,", b"\n2,nan,0.5\n3,"), steps=(1, 2, 2, 3, 4, 5)),
)  # fmt: skip
every_odd_file = pytest.mark.parametrize("odd", ODD, ids=lambda each: f"{each.kind} {each.name}")


@every_odd_file
def test_metrics(odd: OddFile, tmp_path: Path) -> None:
    found = measured(odd.put(tmp_path))
    loss = found.keys["loss"]
    assert (loss.last, loss.first, tuple(loss.tail_steps)) == (LAST, 0.5, odd.steps)
    assert (loss.nan, found.sources[0].step) == (len(odd.steps) - 5, "step")
    assert odd.told in "; ".join(found.sources[0].skipped)
    if not odd.told and odd.name != "power cut":
        assert found.sources[0].skipped == ()


@every_odd_file
def test_found_by_itself(odd: OddFile, tmp_path: Path) -> None:
    odd.put(tmp_path)
    found = measured(tmp_path)
    assert [said.format for said in found.sources] == [odd.kind]
    assert found.keys["loss"].last == LAST


@every_odd_file
def test_progress(odd: OddFile, tmp_path: Path) -> None:
    reader = {"jsonl": JsonlStepReader, "csv": TableStepReader}[odd.kind](str(odd.put(tmp_path)), "step")
    reader.look()
    assert reader.logged == 5
    reader.look()
    assert (reader.logged, reader.tail.generation) == (5, 0)


@every_odd_file
def test_proof(odd: OddFile, tmp_path: Path) -> None:
    last = (
        6 if odd.kind == "csv" and odd.name == "torn" else 5
    )  # the run has ended: its step was written, if not its acc
    assert read_last_step(str(odd.put(tmp_path)), odd.kind, "step") == last


@every_odd_file
@pytest.mark.parametrize(("reduce", "expected"), [("last", LAST), ("max", 0.5)])
def test_result(odd: OddFile, tmp_path: Path, reduce: str, expected: float) -> None:
    path = odd.put(tmp_path)
    result = DeclaredResult("loss", odd.kind, path.name, "loss", reduce)  # type: ignore[arg-type]
    if odd.name == "nan":
        with pytest.raises(NoResult, match="is nan"):
            read_cell_result(result, str(path), path.name, {"loss": result})
        return
    assert read_cell_result(result, str(path), path.name, {"loss": result}).value == expected


@every_odd_file
def test_curve(odd: OddFile, tmp_path: Path) -> None:
    log = CurveLog(odd.kind, [LogPiece((1,), str(odd.put(tmp_path)))], "step", 1.0, {"loss": ["loss"]})
    log.read()
    assert log.curves()["loss"] == ("loss", ((1, 2, 3, 4, 5), tuple(row["loss"] for row in ROWS)))


@every_odd_file
def test_gate(odd: OddFile, tmp_path: Path) -> None:
    path = odd.put(tmp_path)
    stream = open_gate_stream(GateSource(**{odd.kind: path.name}, step="step"), "stage", str(tmp_path))
    rows = [row for row in [*stream.look().rows, *stream.rest()] if "loss" in row.values]
    assert [row.iteration for row in rows] == list(odd.steps)
    assert rows[-1].values["loss"] == LAST


def test_a_comma_that_may_mean_anything_is_a_number_for_none(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("step;loss;acc\n1;0,5;1\n2;0,25;2\n")
    assert "loss" not in (found := measured(path)).keys
    assert found.sources[0].skipped == ("2 numbers with a decimal comma are left out: loss",)
    result = DeclaredResult("loss", "csv", path.name, "loss", "last")
    with pytest.raises(NoResult, match="is no number: '0,5'"):
        read_cell_result(result, str(path), path.name, {"loss": result})
    assert read_last_step(str(path), "csv", "loss") is None
    log = CurveLog("csv", [LogPiece((1,), str(path))], "step", 1.0, {"loss": ["loss"], "acc": ["acc"]})
    log.read()
    assert list(log.curves()) == ["acc"]


def test_commas_between_thousands_are_read_by_all(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text('step,loss\n"1,000",0.5\n"2,000",0.25\n')
    assert measured(path).keys["loss"].last_step == 2000
    assert read_last_step(str(path), "csv", "step") == 2000
    stream = open_gate_stream(GateSource(csv=path.name, step="step"), "stage", str(tmp_path))
    assert [row.iteration for row in stream.look().rows] == [1000, 2000]


# -- two writers, one after the other, and a file that is written anew


@pytest.mark.parametrize("odd", [odd for odd in ODD if odd.name == "plain"], ids=lambda odd: odd.kind)
def test_two_writers_of_one_file(odd: OddFile, tmp_path: Path) -> None:
    """The later one began from an earlier step: the file holds both."""
    path = odd.put(tmp_path)
    more = table().replace(b"\n1,", b"\n4,") if odd.kind == "csv" else jsonl([{**ROWS[0], "step": 4}, ROWS[4]])
    path.write_bytes(odd.data + more)
    assert measured(path).keys["step"].last == 5
    assert read_last_step(str(path), odd.kind, "step") == 5


@pytest.mark.parametrize("odd", [odd for odd in ODD if odd.name == "plain"], ids=lambda odd: odd.kind)
@pytest.mark.parametrize("how", ["rotated", "truncated"])
def test_a_file_that_was_replaced(odd: OddFile, tmp_path: Path, how: str) -> None:
    path = odd.put(tmp_path)
    meter, steps = RunMeter(newest_run_in(str(path)).run.feeds()), STEPS[odd.kind](str(path))  # type: ignore[union-attr]
    meter.look()
    steps.look()
    short = odd.data[: odd.data.index(b"3", len(odd.data) // 3)].rpartition(b"\n")[0] + b"\n"
    if how == "rotated":
        path.rename(tmp_path / "log.old")
    path.write_bytes(short)
    meter.look()
    steps.look()
    assert meter.measured().keys["step"].last == read_last_step(str(path), odd.kind, "step") == steps.logged
    assert "replaced or cut" in "; ".join(meter.measured().sources[0].skipped)


STEPS: dict[str, Callable[[str], StepReader]] = {
    "jsonl": lambda path: JsonlStepReader(path, "step"),
    "csv": lambda path: TableStepReader(path, "step"),
}


# -- every kind: found, named, and hostile files


def npz(path: Path) -> bytes:
    counts = np.array([row["step"] for row in ROWS])
    np.savez(path, timesteps=counts, results=np.array([[row["loss"]] * 3 for row in ROWS]))
    return path.read_bytes()


@dataclass(frozen=True)
class Sample:
    kind: str
    path: str
    make: Callable[[Path], bytes]
    key: str = "loss"
    beside: str = ""  # a file that must be there, too


SAMPLES = (
    Sample("jsonl", "metrics.jsonl", lambda _: jsonl()),
    Sample("jsonl", "my_run.jsonl", lambda _: jsonl()),
    Sample("jsonl", "log.txt", lambda _: jsonl()),
    Sample("csv", "progress.csv", lambda _: table()),
    Sample("csv", "my_history.csv", lambda _: table(";")),
    Sample("csv", "dvclive/plots/metrics/loss.tsv", lambda _: table("\t")),
    Sample("csv", "training.log", lambda _: table()),
    Sample("wandb", "wandb/run-20260101_000000-x/run-x.wandb", lambda _: wandb_bytes(ROWS)),
    Sample("tensorboard", "tb/events.out.tfevents.1700000000.h", lambda _: board_bytes(ROWS)),
    Sample("mlflow", "mlruns/0/abc/metrics/loss",
           lambda _: "".join(f"17000000000{row['step']:02} {row['loss']} {row['step']}\n" for row in ROWS).encode(),
           beside="mlruns/0/abc/meta.yaml"),
    Sample("hf", "trainer_state.json", lambda _: hf_bytes(ROWS)),
    Sample("json", "history.json", lambda _: json.dumps({key: [row[key] for row in ROWS] for key in ROWS[0]}).encode()),
    Sample("json", "all_results.json", lambda _: json.dumps(ROWS[-1], indent=2).encode()),
    Sample("npz", "evaluations.npz", npz, key="results"),
    Sample("stdout", "train.log", lambda _: "".join(f"step={r['step']} loss={r['loss']}\n" for r in ROWS).encode()),
)  # fmt: skip
every_sample = pytest.mark.parametrize("sample", SAMPLES, ids=lambda each: f"{each.kind} {each.path}")


def put(folder: Path, sample: Sample) -> Path:
    path = folder / sample.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(sample.make(path))
    if sample.beside:
        (folder / sample.beside).write_text("run_id: abc\n")
    return path


def test_every_kind_has_a_sample() -> None:
    assert {sample.kind for sample in SAMPLES} == {kind.name for kind in built_in_kinds()}


def last(summary: Summary) -> tuple[float | None, float | None]:
    return summary.last, summary.last_step


@every_sample
def test_it_is_found_by_itself(sample: Sample, tmp_path: Path) -> None:
    put(tmp_path, sample)
    run = newest_run_in(str(tmp_path)).run
    assert run is not None
    assert [source.kind for source in run.sources] == [sample.kind]
    assert last(measured(tmp_path).keys[sample.key]) == (LAST, 5)


@every_sample
def test_it_is_read_where_somebody_names_it(sample: Sample, tmp_path: Path) -> None:
    path = put(tmp_path, sample)
    run = newest_run_in(str(path)).run
    assert run is not None
    kind = run.sources[0].kind
    if sample.kind == "mlflow":  # a file without a name of its own is known by its folder only
        assert kind == "stdout"
        return
    assert kind == sample.kind
    assert last(measured(path).keys[sample.key]) == (LAST, 5)


@every_sample
def test_no_damage_makes_it_fail(sample: Sample, tmp_path: Path) -> None:
    """Neither while it is looked for nor while it is read; and what is read was written."""
    data, random = put(tmp_path, sample).read_bytes(), Random(7)
    for damage in damages(data, random):
        path = tmp_path / "d" / sample.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(damage)
        if sample.beside:
            (tmp_path / "d" / sample.beside).write_text("x")
        for reader in (kind_called(sample.kind).read(str(path)),):
            for rows in reader.read():
                assert all(len(steps) == len(values) for steps, values in rows.columns.values())
            assert reader.said.path
        newest_run_in(str(tmp_path / "d"))
        newest_run_in(str(path))


def damages(data: bytes, random: Random) -> Iterator[bytes]:
    yield from (b"", b"\0" * 300, b"\xff" * 300, b"{" * 300, data + data, data[::-1], data + bytes(500))
    for _ in range(12):
        cut = random.randrange(len(data))
        yield data[:cut]
        yield data[:cut] + bytes([random.randrange(256)]) + data[cut + 1 :]
        yield data[:cut] + random.randbytes(9) + data[cut:]


@every_sample
def test_what_is_not_there_holds_nothing_and_what_is_no_file_is_an_error(sample: Sample, tmp_path: Path) -> None:
    kind = kind_called(sample.kind)
    assert list(kind.read(str(tmp_path / "none")).read()) == []
    with pytest.raises(OSError):
        list(kind.read(str(tmp_path)).read())


def test_a_bomb_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muster.files.safe_open.MOST_UNPACKED_BYTES", 10_000)
    path = tmp_path / "log.jsonl.gz"
    path.write_bytes(gzip.compress(jsonl(ROWS * 10_000)))
    assert 50 < measured(path).keys["loss"].count < 400
    path.write_bytes(gzip.compress(jsonl())[:-12])
    assert measured(path).keys["loss"].count >= 4, "a packed file that was cut is read as far as it goes"


# -- readers of others


class Point(EntryPoint):
    loads: Any = None

    def load(self) -> Any:
        found = FOREIGN[self.name]
        if isinstance(found, Exception):
            raise found
        return found


def rows_of_others(path: str) -> InMemoryReader:
    from array import array

    numbers = [float(each) for each in Path(path).read_text().split("|")]
    column = (array("d", range(len(numbers))), array("d", numbers))
    return InMemoryReader(path, "bars", [MetricRows({"bar": column}, len(numbers))], step="row")


FOREIGN: dict[str, Any] = {
    "bars": RecordKind("bars", rows_of_others, lambda file: "numbers and bars" if file.ending == ".bars" else ""),
    "broken": ImportError("no module named x"),
    "thief": RecordKind("jsonl", rows_of_others, lambda _: "all is mine"),
    "liar": "no reader at all",
}


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    asked: list[str] = []

    def points(group: str) -> list[EntryPoint]:
        asked.append(group)
        return [Point(name, f"package:{name}", group) for name in FOREIGN]

    monkeypatch.setattr(record_kinds, "find_entry_points", points)
    for cached in (foreign_kinds, kind_called):
        cached.cache_clear()
    yield asked
    for cached in (foreign_kinds, kind_called):
        cached.cache_clear()


def test_a_reader_of_others_is_asked_for_what_nobody_knows(tmp_path: Path, others: list[str]) -> None:
    (tmp_path / "x.bars").write_text("0.5|0.25")
    for path in (tmp_path, tmp_path / "x.bars"):
        assert measured(path).keys["bar"].last == 0.25
    assert others == ["muster.readers"], "they are looked up once"
    assert kind_called("bars").name == "bars"
    told = newest_run_in(str(tmp_path)).told
    assert [each.partition(" can't")[0] for each in told] == [
        "the reader broken of package:broken", "the reader thief of package:thief", "the reader liar of package:liar"
    ]  # fmt: skip


def test_nobody_else_is_asked_for_a_known_kind(tmp_path: Path, others: list[str]) -> None:
    for sample in SAMPLES[:4]:
        folder = tmp_path / str(hash(sample.path))
        put(folder, sample)
        measured(folder)
        measured(folder / sample.path)
    assert others == []


def test_a_kind_that_nobody_has_is_no_kind(others: list[str]) -> None:
    with pytest.raises(KeyError):
        kind_called("nothing")
    assert others == ["muster.readers"]
