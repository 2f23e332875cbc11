"""A log whose rows all have other keys takes no more memory than one whose rows have the same ones."""

from __future__ import annotations

import json
from array import array
from pathlib import Path

import pytest
from test_bombs import CPU_S, MEMORY_MIB, measured

from muster.app.metrics.measure_runs import WantedKeys, measure_runs_in_path
from muster.readers.curves import MOST_REMEMBERED_KEYS, CurveLog
from muster.readers.gate_stream import TextGateStream
from muster.readers.log_rows import pieces_of_log
from muster.readers.records.logged_runs import MOST_KEYS
from muster.rules.metric_summary import KEPT_VALUES, Summarizer

ROWS = 25_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("keys")
    (made / "keys.jsonl").write_text("".join(f'{{"step":{at},"k{at}":1}}\n' for at in range(ROWS)))
    wide = [json.dumps({"step": at, **{f"r{at}_{key}": 1 for key in range(2500)}}) + "\n" for at in range(10)]
    (made / "wide.jsonl").write_text("".join(wide))
    names = ",".join(f"c{key}" for key in range(ROWS))
    (made / "wide.csv").write_text(f"step,{names}\n" + "".join(f"{at}{',1' * ROWS}\n" for at in range(3)))
    (made / "keys.log").write_text("".join(f"step={at} k{at}=1\n" for at in range(ROWS)))
    return made


@pytest.mark.parametrize("name", ["keys.jsonl", "wide.jsonl", "wide.csv", "keys.log"])
def test_metrics_of_too_many_keys_are_bounded_and_told(folder: Path, name: str) -> None:
    def act() -> object:
        block = measure_runs_in_path(str(folder / name), folder, WantedKeys())[0]
        return len(block.keys), block.notes

    memory, seconds, said = measured(act)
    assert f"{name} has more than {MOST_KEYS} keys: those that came later are left out" in said
    assert said.startswith(f"({MOST_KEYS}, ")
    assert memory < MEMORY_MIB
    assert seconds < CPU_S


def test_a_key_that_was_asked_for_is_found_among_many(folder: Path) -> None:
    block = measure_runs_in_path(str(folder / "keys.jsonl"), folder, WantedKeys((f"k{ROWS - 1}",)))[0]
    assert block.keys[f"k{ROWS - 1}"].last == 1
    assert block.notes == ()
    assert len(block.others) == MOST_KEYS


def curve(path: Path) -> CurveLog:
    return CurveLog("jsonl", pieces_of_log([(1, str(path), None)]), "step", 1.0, {"loss": ["loss"]})


def test_curves_remember_few_of_many_wide_rows(tmp_path: Path) -> None:
    rows = [{"step": at, "loss": at, **{f"r{at}_{key}": 1 for key in range(9000)}} for at in range(14)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    log = curve(tmp_path / "log.jsonl")
    log.read()
    assert sum(map(len, log._rows)) <= MOST_REMEMBERED_KEYS
    assert log.curves()["loss"][1][1] == tuple(map(float, range(14)))


def test_curves_keep_no_lists_and_long_texts_and_hash_the_same(tmp_path: Path) -> None:
    plain = [{"step": at, "loss": 0.5, f"a{at}": "0.25"} for at in range(40)]
    heavy = [row | {"list": [{}] * 9999, "text": "x" * 99_999, "nested": {"a": 1}} for row in plain]
    for name, rows in (("plain", plain), ("heavy", heavy)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    one, other = curve(tmp_path / "plain.jsonl"), curve(tmp_path / "heavy.jsonl")
    one.read()
    other.read()
    assert one.logged() == other.logged() is not None
    assert not any(isinstance(value, list | dict) for row in other._rows.values() for value in row.values())


@pytest.mark.parametrize("sizes", [[1] * 40, [20, 20], [31, 1, 1], [600], [500, 20, 700], [40, 511, 3]])
def test_a_summary_is_the_same_however_its_values_came(sizes: list[int]) -> None:
    values = [float(at % 97) for at in range(sum(sizes))]
    one, other = Summarizer("k"), Summarizer("k")
    for at, value in enumerate(values):
        one.add(float(at), value)
    at = 0
    for size in sizes:
        other.add_many(array("d", range(at, at + size)), array("d", values[at : at + size]))
        at += size
    assert list(one.summary().tail) == list(other.summary().tail) == values[-KEPT_VALUES:]
    assert list(one.summary().tail_steps) == list(other.summary().tail_steps)


def test_a_gate_keeps_numbers_and_words_of_its_rows(tmp_path: Path) -> None:
    row = {"iter": 3, "score": 1.5, "mode": "warm", "list": [{}] * 99, "nested": {"a": 1}, "text": "x" * 2000}
    (tmp_path / "log.jsonl").write_text(json.dumps(row) + "\n")
    [found] = TextGateStream(str(tmp_path / "log.jsonl"), "jsonl", "iter", "stage").look().rows
    assert found.values == {"score": 1.5, "mode": "warm", "list": None, "nested": None, "text": None}
