"""Odd forms of each kind of history, and the fast ways of reading held against slow and plain ones."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import struct
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.readers.records import history_parts, wandb_records
from muster.readers.records.history_parts import HistoryChain
from muster.readers.records.json_history import JsonlHistory, WholeJsonHistory, rows_of_trainer_state
from muster.readers.records.metric_reader import RecordedRunEnd
from muster.readers.records.record_frames import CrcOfManyPieces, crc32c_of, masked_crc
from muster.readers.records.row_steps import numeric_leaves, parse_number
from muster.readers.records.tensorboard import TensorboardHistory, read_scalar_event
from muster.readers.records.text_history import CsvHistory, PrintedHistory, key_value_pairs
from muster.readers.records.wandb_records import WandbHistory

sys.path.insert(0, str(Path(__file__).parents[2] / "contract"))
from history_files import event, field, framed, history_record, read, told, varint, wandb_bytes

NO_FIXTURE = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def chain(path: Path, data: bytes, part: Any) -> HistoryChain:
    path.write_bytes(data)
    return HistoryChain.of_file(str(path), "x", part)


# -- JSONL

VALUES = st.one_of(
    st.floats(), st.integers(-(10**25), 10**25), st.none(), st.booleans(), st.text(max_size=5),
    st.lists(st.floats(), max_size=2), st.dictionaries(st.sampled_from(["x", "y.z"]), st.floats(), max_size=2),
)  # fmt: skip
ROWS = st.dictionaries(st.sampled_from(["step", "a", "b/c", "NaN", "é", 'q"uo', "d", "n.x"]), VALUES, max_size=5)
LINES = st.lists(
    st.one_of(
        ROWS.map(lambda row: json.dumps(row).encode()),
        ROWS.map(lambda row: json.dumps(row, separators=(",", ":")).encode()),
        st.sampled_from([b"", b"{", b"null", b'{"a": 1}{"a": 2}', b'{"a": 1', b'"b": 2}', b"[1]", b'{"a": 1e999}',
                         b' {"a": 7} ', b'{"a":\x003}', b'{"t": "\\": NaN"}', b'{"a": NaNa}', b'{"a": [NaN]}']),
    ),
    max_size=12,
)  # fmt: skip


def plainly(data: bytes) -> dict[str, list[float]]:
    """As the slowest reader would do it."""
    found: dict[str, list[float]] = {}
    for line in data.split(b"\n")[:-1]:
        try:
            row = json.loads(line.rpartition(b"\0")[2])
        except ValueError:
            continue
        for key, value in numeric_leaves(row) if isinstance(row, dict) else ():
            found.setdefault(key, []).append(value)
    return found


@given(rows=LINES)
@NO_FIXTURE
def test_jsonl_is_read_as_json_reads_it_line_by_line(tmp_path: Path, rows: list[bytes]) -> None:
    data = b"".join(line + b"\n" for line in rows)
    found = read(chain(tmp_path / "m.jsonl", data, JsonlHistory))
    values = {key: [repr(value) for _, value in each] for key, each in found.items() if each}
    assert values == {key: [repr(value) for value in each] for key, each in plainly(data).items()}


@given(rows=LINES)
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_jsonl_in_blocks_of_any_size_is_the_same(tmp_path: Path, rows: list[bytes]) -> None:
    data = b"".join(line + b"\n" for line in rows)
    whole = read(chain(tmp_path / "m.jsonl", data, JsonlHistory))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history_parts, "READ_BLOCK", 400)
        assert told(read(chain(tmp_path / "n.jsonl", data, JsonlHistory))) == told(whole)


def test_the_first_counter_counts_and_rows_without_it_have_the_step_before(tmp_path: Path) -> None:
    data = b'{"a": 1}\n{"a": 2, "epoch": 3, "global_step": 50}\n{"a": 3}\n{"a": 4, "global_step": 60, "step": 1}\n'
    assert read(chain(tmp_path / "m", data, JsonlHistory))["a"] == [(0, 1), (50, 2), (50, 3), (60, 4)]


def test_rows_without_a_counter_are_numbered(tmp_path: Path) -> None:
    assert read(chain(tmp_path / "m", b'{"a": 5}\n' * 3, JsonlHistory))["a"] == [(0, 5), (1, 5), (2, 5)]


def test_an_object_that_ends_is_whole_without_its_newline(tmp_path: Path) -> None:
    path = tmp_path / "m"
    reader = chain(path, b'{"step": 1, "a": 2}', JsonlHistory)
    assert read(reader)["a"] == [(1, 2)]
    with path.open("ab") as file:
        file.write(b'\n{"step": 2, "a": 3}\n')
    assert read(reader)["a"] == [(2, 3)]


def test_an_endless_line_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_parts, "READ_BLOCK", 1000)
    data = b'{"step": 1, "a": 1}\n{"t": "' + b"x" * 5000 + b'"}\n{"step": 2, "a": 2}\n'
    reader = chain(tmp_path / "m", data, JsonlHistory)
    assert read(reader)["a"] == [(1, 1), (2, 2)]
    assert reader.said.skipped == ("1 line too long to be read",)


def test_a_row_tells_the_time_itself(tmp_path: Path) -> None:
    reader = chain(tmp_path / "m", b'{"step": 1, "_timestamp": 1700000000.5}\n', JsonlHistory)
    read(reader)
    assert reader.said.written == 1700000000.5


def test_many_keys_and_keys_that_change_all_the_time(tmp_path: Path) -> None:
    rows = [{"step": step, **{f"k{step % 90}_{key}": 1.0 for key in range(20)}} for step in range(500)]
    data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    found = read(chain(tmp_path / "m", data, JsonlHistory))
    assert len(found) == 1 + 90 * 20
    assert sum(map(len, found.values())) == 500 * 21


# -- CSV


@given(
    rows=st.lists(
        st.lists(st.one_of(st.floats(), st.integers(), st.sampled_from(["", "x", "1_0", 'q"', "a,b"])), min_size=2,
                 max_size=3), max_size=8),
    ending=st.sampled_from(["\n", "\r\n"]),
)  # fmt: skip
@NO_FIXTURE
def test_a_table_is_read_as_the_csv_module_reads_it(tmp_path: Path, rows: list[list[Any]], ending: str) -> None:
    out = io.StringIO()
    csv.writer(out, lineterminator=ending).writerows([["step", "a/b", "c"], *rows])
    found = read(chain(tmp_path / "m", out.getvalue().encode(), CsvHistory))
    expected: dict[str, list[str]] = {}
    for row in list(csv.reader(io.StringIO(out.getvalue())))[1:]:
        for name, text in zip(("step", "a/b", "c"), row, strict=False) if len(row) == 3 else ():
            if (value := parse_number(text.encode())) is not None:
                expected.setdefault(name, []).append(repr(value))
    assert {key: [repr(value) for _, value in each] for key, each in found.items() if each} == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"epoch,step,train_loss,val_loss\n0,9,0.5,\n0,19,0.4,\n0,19,,0.7\n", {"val_loss": [(19, 0.7)]}),
        (b"\xef\xbb\xbfstep;a\n1;2\n", {"a": [(1, 2)]}),
        (b'#{"t_start": 1.5}\nr,l,t\n1.5,10,0.1\n', {"r": [(0, 1.5)]}),
        (b"step,a\n1,2\nstep,a\n2,3\n", {"a": [(1, 2), (2, 3)]}),
        (b"step,a\n1,2\nstep,a,b\n2,3,4\n", {"a": [(1, 2), (2, 3)], "b": [(2, 4)]}),
        (b'step,name,a\n1,"x, y",2\n', {"a": [(1, 2)]}),
        (b"step,a\n1,nan\n2,-inf\n3,1.\n", {"a": [(1, math.nan), (2, -math.inf), (3, 1)]}),
        (b"step\ta\n1\t2\n3\n", {"a": [(1, 2)]}),
    ],
)
def test_tables(tmp_path: Path, data: bytes, expected: dict[str, list[tuple[float, float]]]) -> None:
    found = read(chain(tmp_path / "m", data, CsvHistory))
    assert told({key: found.get(key, []) for key in expected}) == told(expected)


def test_a_table_without_a_header_holds_nothing(tmp_path: Path) -> None:
    reader = chain(tmp_path / "m", b"1,2\n3,4\n", CsvHistory)
    assert read(reader) == {}
    assert reader.said.skipped == ("2 lines that are no row",)


# -- what is printed


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("step=10 loss=0.5, acc: 91.5%", {"step": 10, "loss": 0.5, "acc": 91.5}),
        ("INFO 2025-01-01 12:34:56 ot_train.py:458 step:200 smpl:2K ep:3 loss:3.012 grdn:inf",
         {"step": 200, "smpl": 2000, "ep": 3, "loss": 3.012, "grdn": math.inf}),
        ("{'loss': 1.25, 'learning_rate': 5e-05, 'epoch': 0.1}", {"loss": 1.25, "learning_rate": 5e-05, "epoch": 0.1}),
        ("2024-01-01T12:34:56 listening on http://localhost:8080/x", {}),
        ("at 12:34:56", {}),
        ("total=1,234,567 bad=1,2,3", {"total": 1234567}),
        ("version=1.2.3 nan=nan name=nano", {"nan": math.nan}),
    ],
)  # fmt: skip
def test_pairs_in_printed_lines(line: str, expected: dict[str, float]) -> None:
    assert repr(dict(key_value_pairs(line))) == repr({key: float(value) for key, value in expected.items()})


def test_a_regex_with_named_groups(tmp_path: Path) -> None:
    import re

    pattern = re.compile(r"\[(?P<step>\d+)\] L (?P<loss>\S+)")
    reader = chain(
        tmp_path / "m", b"[1] L 0.5\n[2] L nan\r[3] L x\nnothing\n", lambda path: PrintedHistory(path, pattern)
    )
    assert told(read(reader))["loss"] == [("1.0", "0.5"), ("2.0", "nan")]


# -- W&B


def items_of(**values: str) -> bytes:
    return b"".join(field(1, field(1, key.encode()) + field(16, value.encode())) for key, value in values.items())


def test_old_clients_wrote_objects_under_one_key(tmp_path: Path) -> None:
    body = items_of(ot='{"pi_sum": 0.5, "x": {"y": NaN}}', t='"text"', l="[1, 2]", b="true", n="null", a="7")
    found = read(chain(tmp_path / "r.wandb", framed([field(2, body + field(2, b"\x08\x05"))]), WandbHistory))
    assert told(found) == told({"ot.pi_sum": [(5, 0.5)], "ot.x.y": [(5, math.nan)], "a": [(5, 7)]})


def test_values_with_a_type_of_their_own(tmp_path: Path) -> None:
    """What the definition of current clients allows, though they do not write it yet."""
    number = field(1, field(2, b"n") + b"\x31" + struct.pack("<d", 2.5))
    whole = field(1, field(2, b"i") + b"\x28" + varint(-3))
    found = read(chain(tmp_path / "r.wandb", framed([field(2, number + whole + field(2, b"\x08\x01"))]), WandbHistory))
    assert found == {"n": [(1, 2.5)], "i": [(1, -3)]}


def test_records_longer_than_a_block_and_fields_in_another_order(tmp_path: Path) -> None:
    long = field(1, field(2, b"text") + field(16, json.dumps("x" * 100_000).encode()))
    body = field(2, b"\x08\x07") + long + field(1, field(16, b"1.5") + field(2, b"a"))
    record = b"\xc2\x0c\x02\x0a\x00" + field(2, body) + b"\x08\x09"
    found = read(chain(tmp_path / "r.wandb", framed([record, history_record(2, {"step": 8, "a": 2.5})]), WandbHistory))
    assert found["a"] == [(7, 1.5), (8, 2.5)]


def test_a_record_of_several_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wandb_records, "READ_BLOCK", 40_000)
    long = field(1, field(2, b"text") + field(16, json.dumps("x" * 300_000).encode()))
    rows = [history_record(1, {"step": 1, "a": 1.0}), field(2, long + field(2, b"\x08\x02"))]
    data = framed([*rows, history_record(3, {"step": 3, "a": 3.0})])
    assert read(chain(tmp_path / "r.wandb", data, WandbHistory))["a"] == [(1, 1), (3, 3)]


def test_steps_below_zero_and_beyond_four_bytes(tmp_path: Path) -> None:
    rows = [{"step": step, "a": 1.0} for step in (-1, 127, 128, 1 << 40)]
    found = read(chain(tmp_path / "r.wandb", wandb_bytes(rows), WandbHistory))
    assert [step for step, _ in found["a"]] == [-1.0, 127.0, 128.0, float(1 << 40)]


def test_an_exit_record_is_the_runs_own_word(tmp_path: Path) -> None:
    reader = chain(tmp_path / "r.wandb", wandb_bytes([{"step": 1, "a": 1.0}], exit_code=3), WandbHistory)
    assert reader.ended is None
    read(reader)
    assert reader.ended == RecordedRunEnd(3, 42.0)
    other = HistoryChain.of_file(reader.path, "x", WandbHistory)
    other.restore(json.loads(json.dumps(reader.state())))
    assert other.ended == RecordedRunEnd(3, 42.0)


def test_a_run_killed_in_its_first_second_holds_nothing(tmp_path: Path) -> None:
    reader = chain(tmp_path / "r.wandb", wandb_bytes([])[:7], WandbHistory)
    assert read(reader) == {}
    assert reader.said.skipped == ()


def test_what_is_no_wandb_file_is_told(tmp_path: Path) -> None:
    reader = chain(tmp_path / "r.wandb", b"PK\x03\x04 something else", WandbHistory)
    assert read(reader) == {}
    assert reader.said.skipped == ("it is no .wandb file",)


@given(
    rows=st.lists(
        st.dictionaries(st.text(min_size=1, max_size=12), st.one_of(st.floats(), st.integers(), st.text(max_size=9)),
                        max_size=6), max_size=8)
)  # fmt: skip
@NO_FIXTURE
def test_rows_side_by_side_are_read_as_one_by_one(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    from muster.readers.records.wandb_records import read_history_row

    whole = [{**row, "step": at} for at, row in enumerate(rows)]
    found = read(chain(tmp_path / "r.wandb", wandb_bytes(whole), WandbHistory))
    expected: dict[str, list[tuple[float, float]]] = {}
    for row in whole:
        body = history_record(1, row)[2:]
        start = 2 if body[1] < 128 else 3
        step, items = read_history_row(body[start:])
        for key, text in items:
            if (value := parse_number(text)) is not None:
                expected.setdefault(key, []).append((step, value))
    assert told(found) == told(expected)


# -- TensorBoard


def tensor(content: bytes, tag: bytes = b"t", step: int = 4) -> bytes:
    value = field(1, field(1, tag) + field(8, content) + field(9, b""))
    return event(b"\x09" + struct.pack("<d", 1.7e9) + b"\x10" + varint(step) + field(5, value))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\x08\x01" + field(5, struct.pack("<f", 1.5)), 1.5),  # packed
        (b"\x08\x01\x2d" + struct.pack("<f", 1.5), 1.5),
        (b"\x08\x01" + field(2, b"") + field(4, struct.pack("<f", 2.5)), 2.5),
        (b"\x08\x02" + field(4, struct.pack("<d", 2.5)), 2.5),
        (b"\x08\x02" + field(6, struct.pack("<d", 3.5)), 3.5),
        (b"\x08\x03" + field(7, varint(7)), 7.0),
        (b"\x08\x09\x50" + varint(-7), -7.0),
        (b"\x08\x13" + field(13, varint(0x3E00)), 1.5),
        (b"\x08\x0e" + field(13, varint(0x3FC0)), 1.5),
        (b"\x08\x01" + field(5, struct.pack("<ff", 1.5, 2.5)), None),
        (b"\x08\x01" + field(2, field(2, b"\x08\x02")) + field(5, struct.pack("<f", 1.5)), None),
        (b"\x08\x07" + field(8, b"text"), None),
    ],
)
def test_tensors_of_one_number(tmp_path: Path, content: bytes, expected: float | None) -> None:
    found = read(chain(tmp_path / "e", tensor(content), TensorboardHistory))
    assert found == ({} if expected is None else {"t": [(4, expected)]})


def test_several_values_in_one_event_and_pictures_that_are_not_read(tmp_path: Path) -> None:
    two = b"".join(field(1, field(1, tag) + b"\x15" + struct.pack("<f", 2.0)) for tag in (b"a", b"b"))
    picture = event(b"\x09" + bytes(8) + field(5, field(1, field(1, b"p") + field(4, bytes(3 << 20)))))
    data = picture + event(b"\x09" + bytes(8) + b"\x10\x09" + field(5, two)) + picture
    assert read(chain(tmp_path / "e", data, TensorboardHistory)) == {"a": [(9, 2)], "b": [(9, 2)]}


def test_an_event_that_is_whole_and_no_event(tmp_path: Path) -> None:
    reader = chain(tmp_path / "e", event(b"\xff\xff"), TensorboardHistory)
    assert read(reader) == {}
    assert reader.said.skipped == ("1 events that could not be understood",)
    assert read_scalar_event(b"").values == []


@given(st.binary(max_size=40), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=5))
def test_checksums_of_many_pieces_are_those_of_each(data: bytes, places: list[tuple[int, int]]) -> None:
    pieces = [(min(a, b, len(data)), min(max(a, b), len(data))) for a, b in places]
    if pieces:
        starts, ends = zip(*pieces, strict=True)
        assert CrcOfManyPieces().masked(data, starts, ends).tolist() == [masked_crc(data[a:b]) for a, b in pieces]


def test_the_checksum_is_crc32c() -> None:
    assert crc32c_of(b"123456789") == 0xE3069283  # the check value of its definition


# -- HF


def test_a_half_written_state_leaves_what_was_read(tmp_path: Path) -> None:
    path = tmp_path / "trainer_state.json"
    path.write_text(json.dumps({"log_history": [{"step": 10, "loss": 2.0, "epoch": 0.1}]}))
    reader = WholeJsonHistory(str(path), "hf", rows_of_trainer_state)
    assert read(reader)["loss"] == [(10, 2)]
    path.write_text('{"log_history": [{"step": 10, "loss"')
    assert read(reader) == {}
    assert reader.said.skipped == ("it is half written, or no JSON of its kind",)
    rows = [{"step": 10, "loss": 2.0, "epoch": 0.1}, {"step": 20, "loss": 1.0, "epoch": 0.2}]
    path.write_text(json.dumps({"log_history": rows}))
    assert read(reader)["loss"] == [(20, 1)]


def test_a_folder_that_may_not_be_read_says_so(tmp_path: Path) -> None:
    fifo = tmp_path / "m.jsonl"
    os.mkfifo(fifo)
    with pytest.raises(OSError, match="no plain file"):
        read(HistoryChain.of_file(str(fifo), "x", JsonlHistory))
