"""One number from what a cell wrote, or the reason why there is none."""

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.model.campaign import BestOf, Better, DeclaredResult, TakenAt
from muster.readers.results import NoResult, read_cell_result


def put(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def read(kind: Any, path: str, key: str | None = "score", reduce: Any = "last", **others: DeclaredResult) -> float:
    result = DeclaredResult(
        "score", kind, path if kind != "stdout" else key or "", None if kind == "stdout" else key, reduce
    )
    return read_cell_result(result, path, Path(path).name, {"score": result, **others}).value


def refusal(kind: Any, path: str, key: str | None = "score", reduce: Any = "last") -> str:
    with pytest.raises(NoResult) as caught:
        read(kind, path, key, reduce)
    return str(caught.value)


def test_json(tmp_path: Path) -> None:
    path = put(tmp_path, "r.json", '{"score": 1.5, "eval": {"cost": 3}, "a.b": 2, "all": [1, 2, 6], "train/x": 7}')
    assert read("json", path) == 1.5
    assert read("json", path, "eval.cost") == 3
    assert read("json", path, "a.b") == 2
    assert read("json", path, "train/x") == 7
    assert [read("json", path, "all", how) for how in ("last", "mean", "min", "max")] == [6, 3, 1, 6]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"score": NaN}', "'score' in r.json is nan"),
        ('{"score": -Infinity}', "'score' in r.json is -inf"),
        ('{"score": "1.5"}', "'score' in r.json is no number but a text"),
        ('{"score": true}', "'score' in r.json is no number but true or false"),
        ('{"score": 1' + "0" * 400 + "}", "'score' in r.json is too large for a number"),
        ('{"score": null}', "'score' in r.json is no number but null"),
        ('{"score": {"mean": 1}}', "'score' in r.json is no number but an object"),
        ('{"score": []}', "r.json has no 'score'"),
        ('{"points": 1}', "r.json has no 'score'"),
        ('{"score": 1', "it is no JSON: "),
        ("[1, 2]", "r.json has no 'score'"),
    ],
)
def test_json_without_a_number(tmp_path: Path, text: str, told: str) -> None:
    assert refusal("json", put(tmp_path, "r.json", text)).startswith(told)


def test_jsonl(tmp_path: Path) -> None:
    rows = [{"step": 1, "score": 2.0}, {"step": 2}, {"step": 3, "score": 5.0}, {"step": 4, "score": 2.0}]
    path = put(tmp_path, "m.jsonl", "".join(json.dumps(row) + "\n" for row in rows) + '{"score": 9')
    assert [read("jsonl", path, reduce=how) for how in ("last", "mean", "min", "max")] == [2, 3, 2, 5]
    assert "has no 'cost'" in refusal("jsonl", path, "cost")
    assert "is nan" in refusal("jsonl", put(tmp_path, "n.jsonl", '{"score": 1}\n{"score": NaN}\n'), reduce="mean")


@pytest.mark.parametrize(("better", "value"), [(None, 30), ("lower", 10)])
def test_at_the_best_of_another(tmp_path: Path, better: Better | None, value: float) -> None:
    rows = [(1, 10), (5, 30), (3, 20)]
    path = put(tmp_path, "m.jsonl", "".join(json.dumps({"score": s, "cost": c}) + "\n" for s, c in rows))
    at = TakenAt(BestOf("score", better))
    cost = DeclaredResult("cost", "jsonl", path, "cost", at)
    score = DeclaredResult("score", "jsonl", path, "score")
    assert read_cell_result(cost, path, "m", {"score": score, "cost": cost}).value == value
    other = DeclaredResult("score", "csv", path, "score")
    with pytest.raises(NoResult, match="both must be in the same file"):
        read_cell_result(cost, path, "m", {"score": other, "cost": cost})


def test_csv(tmp_path: Path) -> None:
    path = put(tmp_path, "p.csv", "\ufeffstep,Metrics/EpRet,score\n1,3.5,\n2,4.5,7\n3,1e1")
    assert read("csv", path, "Metrics/EpRet", "mean") == 4.0
    assert read("csv", path) == 7
    assert refusal("csv", path, "cost") == "it has no column 'cost'"
    assert "is no number: 'high'" in refusal("csv", put(tmp_path, "q.csv", "score\nhigh\n"))
    assert refusal("csv", put(tmp_path, "e.csv", "")) == "it has no column 'score'"


def test_npz(tmp_path: Path) -> None:
    path = tmp_path / "e.npz"
    np.savez(path, score=np.array([[1.0, 2.0], [3.0, 6.0]]), n=np.array(4), names=np.array(["a"]))
    assert read("npz", str(path), reduce="mean") == 3
    assert read("npz", str(path), "n") == 4
    assert refusal("npz", str(path), "cost") == "it has no array 'cost'; it has score, n, names"
    assert "is no number but a text" in refusal("npz", str(path), "names")
    np.savez(path, score=np.array([{"x": 1}], dtype=object))
    assert "can't be read as npz" in refusal("npz", str(path))
    path.write_bytes(b"PK\x03\x04 damaged")
    assert "can't be read as npz" in refusal("npz", str(path))


def test_stdout(tmp_path: Path) -> None:
    path = put(tmp_path, "stdout.log", "score: 1.5\nstep 1\rscore: 1,200\nscore: 7\n")
    assert read("stdout", path, r"score: ([\d.,]+)") == 7
    assert read("stdout", path, r"score: ([\d.,]+)", "max") == 1200
    assert refusal("stdout", path, r"cost: (\d+)").startswith("no line of stdout.log matches")


def test_a_missing_file_is_the_callers_matter(tmp_path: Path) -> None:
    for kind in ("json", "jsonl", "csv", "npz", "stdout"):
        with pytest.raises(FileNotFoundError):
            read(kind, str(tmp_path / "none"))


@given(st.binary(max_size=300), st.sampled_from(["json", "jsonl", "csv", "npz", "stdout"]))
def test_any_bytes_give_a_number_or_a_reason(tmp_path_factory: pytest.TempPathFactory, data: bytes, kind: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(data)
    with contextlib.suppress(NoResult):
        assert isinstance(read(kind, str(path), "(.)" if kind == "stdout" else "score"), float)
