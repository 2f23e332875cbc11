"""The last step of a log, whatever state the log is in."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.readers.records.record_steps import read_last_step


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "metrics.jsonl"


def jsonl(path: Path, key: str = "step") -> float | None:
    return read_last_step(str(path), "jsonl", key)


def as_csv(path: Path, key: str = "TotalEnvSteps") -> float | None:
    return read_last_step(str(path), "csv", key)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", None),
        (b"\n\n", None),
        (b'{"step": 1}\n{"step": 2}\n', 2),
        (b'{"step": 1}\r\n{"step": 2}\r\n', 2),
        (b'{"step": 1}\n{"step": 2}', 2),
        (b'{"step": 1}\n{"step": 20', 1),
        (b'{"step": 1}\n{"ste', 1),
        (b'{"step": 1}\n' + b"\0" * 5000, 1),
        (b'{"step": 1}\n{"step": 2' + b"\0" * 500, 1),
        (b'{"step": 1}\n{"loss": NaN, "step": 3}\n', 3),
        (b'{"step": 1}\n{"step": NaN}\n{"step": Infinity}\n', 1),
        (b'{"step": 1}\n{"eval/score": 3}\n{"eval/score": 4}\n', 1),
        (b'{"loss": 1}\n', None),
        (b'{"step": true}\n', None),
        (b'{"step": "12"}\n', 12),
        (b'{"step": 7}\n[1, 2]\n"step"\n\xff\xfe step\n', 7),
        (b'{"step": 1e5}\n', 100000),
        (b'{"step": 5}\n' + b"[" * 100_000 + b"step\n", 5),
    ],
)
def test_jsonl(log: Path, text: bytes, expected: float | None) -> None:
    log.write_bytes(text)
    assert jsonl(log) == expected


@pytest.mark.parametrize(
    ("row", "key", "expected"),
    [
        ({"train/global_step": 5}, "train/global_step", 5),
        ({"ot": {"pi_sum": 3}}, "ot.pi_sum", 3),
        ({"ot.pi_sum": 4, "ot": {"pi_sum": 3}}, "ot.pi_sum", 4),
        ({"a.b": {"c": 9}}, "a.b.c", 9),
        ({"a": {"b.c": 8}}, "a.b.c", 8),
        ({"a": 1}, "a.b", None),
        ({"步": 6}, "步", 6),
    ],
)
def test_keys(log: Path, row: dict[str, object], key: str, expected: float | None) -> None:
    log.write_text(json.dumps(row) + "\n")
    assert jsonl(log, key) == expected


def test_missing_file_and_unread_kinds(tmp_path: Path) -> None:
    assert jsonl(tmp_path / "none.jsonl") is None
    assert jsonl(tmp_path) is None
    (tmp_path / "run.wandb").write_bytes(b":W&B")
    assert read_last_step(str(tmp_path / "run.wandb"), "wandb", "step") is None


def test_long_rows_far_from_the_end(log: Path) -> None:
    with log.open("w") as file:
        for step in range(3):
            file.write(json.dumps({"step": step, "pad": "x" * 200_000}) + "\n")
        for _ in range(3000):
            file.write(json.dumps({"eval/score": 1.0, "pad": "y" * 500}) + "\n")
    assert jsonl(log) == 2


def test_huge_file_without_a_newline_returns_quickly(log: Path) -> None:
    with log.open("wb") as file:
        file.write(b'{"step": 41}\n')
        file.truncate(50 << 20)
    began = time.perf_counter()
    assert jsonl(log) == 41  # NULs are no text: what stands before them is the end
    log.write_bytes(b"x" * (50 << 20))
    assert jsonl(log) is None
    assert time.perf_counter() - began < 2.0


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=40), st.data())
def test_any_prefix_gives_the_last_whole_row(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int], data: st.DataObject
) -> None:
    text = b"".join(json.dumps({"loss": float("nan"), "step": step}).encode() + b"\n" for step in steps)
    cut = data.draw(st.integers(0, len(text)))
    path = tmp_path_factory.getbasetemp() / "prefix.jsonl"
    path.write_bytes(text[:cut])
    whole = text[:cut].count(b"\n") + (text[:cut].endswith(b"}"))
    assert jsonl(path) == (steps[whole - 1] if whole else None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"Epoch,TotalEnvSteps,Metrics/EpRet\n0,1000,1.5\n1,2000,1.6\n", 2000),
        (b"\xef\xbb\xbfTotalEnvSteps,x\r\n1000,1\r\n", 1000),
        (b'Epoch,"TotalEnvSteps",note\n0,1000,"a, b"\n1,2000,"c ""d"""\n', 2000),
        (b'TotalEnvSteps,note\n1000,x\n2000,"two\nlines"\n', 2000),
        (b"Epoch,TotalEnvSteps\n0,1000\n1,20", 1000),
        (b"Epoch,TotalEnvSteps\n0,1000\n1,200000", 200000),
        (b"TotalEnvSteps,Epoch\n1000,0\n2000,1", 2000),
        (b"Epoch,TotalEnvSteps\n0,1000\n1,nan\n2,\n", 1000),
        (b"Epoch\tTotalEnvSteps\n0\t1000\n", 1000),
        (b"Epoch,TotalEnvSteps\n0,1000\nEpoch,TotalEnvSteps\n", 1000),
        (b"Epoch,Steps\n0,1000\n", None),
        (b"Epoch,TotalEnvSteps\n", None),
        (b"Epoch,TotalEnvSteps\n0,1000\n" + b"\0" * 4096, 1000),
        (b"", None),
    ],
)
def test_csv(tmp_path: Path, text: bytes, expected: float | None) -> None:
    path = tmp_path / "progress.csv"
    path.write_bytes(text)
    assert as_csv(path) == expected


@pytest.mark.parametrize(
    ("text", "regex", "expected"),
    [
        (b"step:200 loss:1\nstep:400 loss:2\nbye\n", r"step:(\d+)", 400),
        (b"step:12K smpl:2M\n", r"step:(\d+\w?)", 12000),
        (b" 1/9\r 2/9\r 3/9", r"(\d+)/9", 3),
        (b"epoch 3 step=1,200\n", r"epoch (\d+) step=(?P<step>[\d,]+)", 1200),
        (b"nothing\n", r"step:(\d+)", None),
    ],
)
def test_console(tmp_path: Path, text: bytes, regex: str, expected: float | None) -> None:
    path = tmp_path / "stdout.log"
    path.write_bytes(text)
    assert read_last_step(str(path), "stdout", regex) == expected
