"""The rows that a gate reads, as runs write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from muster.model.campaign import GateSource
from muster.readers.gate_stream import GateStream, open_gate_stream


def stream(folder: Path, name: str) -> GateStream:
    return open_gate_stream(GateSource(**{name.rpartition(".")[2]: name}, step="iter"), None, str(folder))


def found(stream: GateStream, *, ended: bool = True) -> list[tuple[int, object, str]]:
    rows = [*stream.look().rows, *(stream.rest() if ended else ())]
    return [(row.iteration, row.values.get("score"), row.stage) for row in rows]


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.jsonl", '{"iter": 1, "score": 2}\n{"iter": 2, "score": 3}'), ("a.csv", "iter,score\n1,2\n2,3")],
)
def test_a_last_line_without_its_end_counts_once_the_run_has_ended(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    reader = stream(tmp_path, name)
    assert found(reader, ended=False) == [(1, 2, "")]
    assert found(reader) == [(2, 3, "")]


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.jsonl", '{"iter": 1, "score": 2}\n{"iter": 2, "sco'), ("a.csv", "iter,score,stage\n1,2,ne\n2"), ("a.csv", "")],
)
def test_a_last_line_that_was_cut_is_no_row(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert [row[0] for row in found(stream(tmp_path, name))] == ([1] if text else [])


def test_a_line_that_goes_on_is_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"iter": 1, ')
    reader = stream(tmp_path, "a.jsonl")
    assert found(reader, ended=False) == []
    with file.open("a") as more:
        more.write('"score": 2, "stage": "ne"}\n')
    assert found(reader) == [(1, 2, "ne")]


@pytest.mark.parametrize(("name", "text"), [("a.jsonl", '{"iter": 1, "score": 2}\n'), ("a.csv", "iter,score\n1,2\n")])
def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8-sig")
    assert found(stream(tmp_path, name)) == [(1, 2, "")]


def test_a_file_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"iter": 1, "score": 2}\n')
    reader = stream(tmp_path, "a.jsonl")
    assert found(reader) == [(1, 2, "")]
    file.unlink()
    assert not reader.look().fresh
    file.write_text('{"iter": 1, "score": 5}\n{"iter": 2, "score": 6}\n')
    news = reader.look()
    assert (news.fresh, [row.iteration for row in news.rows]) == (True, [1, 2])


def test_records_that_are_written_again_or_late_are_handed_out_again(tmp_path: Path) -> None:
    tensorboard = pytest.importorskip("tensorboard.summary")
    writer = tensorboard.Writer(str(tmp_path / "tb"))

    def log(tag: str, value: float, step: int) -> None:
        writer.add_scalar(tag, value, step)
        writer.flush()

    stream = open_gate_stream(GateSource(tensorboard="tb"), None, str(tmp_path))
    for step in (1, 2, 3):
        log("score", step / 10, step)
    first = stream.look()
    assert [row.iteration for row in first.rows] == [1, 2], "the newest step may not be whole yet"
    log("loss", 0.5, 2)
    again = stream.look()
    assert [(row.iteration, sorted(row.values)) for row in again.rows] == [(2, ["loss", "score"])]
    assert [row.iteration for row in stream.rest()] == [3]
    log("score", 0.9, 1)
    back = stream.look().rows
    assert [(row.iteration, round(row.values["score"], 3)) for row in back] == [(1, 0.9), (2, 0.2)]
    writer.close()
