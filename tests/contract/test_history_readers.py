"""What everybody relies on in a metric reader, whatever the format: live, restartable, and never a wrong number."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from history_files import (
    FORMATS,
    Format,
    Held,
    Row,
    board_bytes,
    event,
    field,
    flat,
    framed,
    history_record,
    read,
    same,
    take,
    told,
)
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from muster.readers.records import history_parts, tensorboard, wandb_records
from muster.readers.records.logged_runs import MetricFeed, RunMeter
from muster.readers.records.metric_reader import InMemoryReader, MetricReader
from muster.readers.records.record_steps import TensorboardStepReader, WandbStepReader
from muster.rules.metric_summary import Summary

STEPS = {"wandb": WandbStepReader, "tensorboard": TensorboardStepReader}
BY_NAME = {each.name: each for each in FORMATS}
every = pytest.mark.parametrize("form", FORMATS, ids=list(BY_NAME))
growing = pytest.mark.parametrize("form", [each for each in FORMATS if each.name != "hf"], ids=lambda each: each.name)
checked = pytest.mark.parametrize("form", [BY_NAME["wandb"], BY_NAME["tensorboard"]], ids=lambda each: each.name)


def rows_of(count: int, keys: int = 3) -> list[Row]:
    """Values that a float of four bytes holds exactly."""
    return [{"step": step, **{f"train/k{key}": step * 0.25 + key for key in range(keys)}} for step in range(count)]


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def again(form: Format, path: Path, reader: MetricReader) -> MetricReader:
    """Another process that goes on: all it has is text."""
    state = json.loads(json.dumps(reader.state()))
    other = form.make(str(path))
    other.restore(state)
    return other


@every
def test_all_rows_are_read_and_a_second_look_finds_nothing(form: Format, tmp_path: Path) -> None:
    rows = rows_of(200)
    reader = form.make(str(write(tmp_path / "log", form.encode(rows))))
    assert same(read(reader), form.expected(rows))
    assert read(reader) == {}
    assert reader.said.path == str(tmp_path / "log")
    assert reader.said.skipped == ()
    assert reader.said.written is not None or form.name == "wandb"  # its rows tell the time, and these have none


@every
def test_a_file_that_is_not_there_yet_holds_nothing(form: Format, tmp_path: Path) -> None:
    reader = form.make(str(tmp_path / "log"))
    assert read(reader) == {}
    write(tmp_path / "log", form.encode(rows_of(3)))
    assert same(read(reader), form.expected(rows_of(3)))


@every
def test_nan_and_inf_are_handed_out_as_they_were_written(form: Format, tmp_path: Path) -> None:
    rows: list[Row] = [{"step": 1, "a": math.nan, "b": 1.5}, {"step": 2, "a": math.inf, "b": -math.inf}]
    rows += [{"step": step, "a": 0.5, "b": math.nan} for step in range(3, 40)]
    reader = form.make(str(write(tmp_path / "log", form.encode(rows))))
    assert same(read(reader), form.expected(rows))


@every
def test_nested_keys_are_joined_by_dots(form: Format, tmp_path: Path) -> None:
    rows: list[Row] = [{"step": s, "ot": {"pi_sum": 0.5 * s, "deep": {"er": 2.0}}, "train/l.1": 1.0} for s in range(9)]
    found = read(form.make(str(write(tmp_path / "log", form.encode(rows)))))
    assert same(found, form.expected(rows))
    assert {"ot.pi_sum", "ot.deep.er", "train/l.1"} <= set(found)


@every
def test_keys_of_any_language(form: Format, tmp_path: Path) -> None:
    if not form.unicode_keys:
        pytest.skip("a printed line has keys of ASCII letters")
    rows: list[Row] = [{"step": s, "损失": 0.5, "größe/Łódź": 1.0, "a b": 2.0, "é\u201a\u0082": 3.0} for s in range(5)]
    assert same(read(form.make(str(write(tmp_path / "log", form.encode(rows))))), form.expected(rows))


@every
def test_keys_that_appear_late_and_rarely(form: Format, tmp_path: Path) -> None:
    rows = rows_of(300, 2)
    if form.name != "csv":  # a table's header holds all of them from the start
        for row in rows[250::7]:
            row["eval/score"] = 1.25
    for row in rows[::3]:
        del row["train/k1"]
    assert same(read(form.make(str(write(tmp_path / "log", form.encode(rows))))), form.expected(rows))


@growing
def test_the_tail_torn_at_every_byte_of_the_last_rows(form: Format, tmp_path: Path) -> None:
    rows = rows_of(12)
    data, whole = form.encode(rows), form.expected(rows)
    path = tmp_path / "log"
    for cut in range(len(data) - len(form.encode(rows_of(4))) // 2, len(data)):
        reader, held = form.make(str(write(path, data[:cut]))), {}
        take(reader, held)
        for key, values in held.items():
            assert values == whole[key][: len(values)], cut
        reader = again(form, path, reader)
        with path.open("ab") as file:
            file.write(data[cut:])
        take(reader, held)
        assert same(held, whole), cut


@growing
@given(seed=st.integers(0, 10**6))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_read_while_it_is_written_and_by_one_process_after_the_other(form: Format, tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    rows = _odd_rows(random)
    data = form.encode(rows)
    path = write(tmp_path / "log", b"")
    reader, held, at = form.make(str(path)), {}, 0
    while at < len(data):
        piece = random.choice((1, 7, 100, 3000))
        with path.open("ab") as file:
            file.write(data[at : at + piece])
        at += piece
        take(reader, held)
        if random.random() < 0.3:
            reader = again(form, path, reader)
    assert same(held, form.expected(rows))
    assert same(held, read(form.make(str(path))))


def _odd_rows(random: Random) -> list[Row]:
    rows: list[Row] = []
    for step in range(random.randrange(1, 40)):
        row: Row = {"step": step}
        for key in ("a", "b/c", "d_e"):
            if random.random() < 0.8:
                row[key] = random.choice((0.5, -2.0, 1e30, math.nan, math.inf, float(step)))
        rows.append(row)
    rows[0] = {"step": 0, "a": 1.0, "b/c": 1.0, "d_e": 2.0}
    for row in rows:  # as the formats hold them
        for key, value in row.items():
            row[key] = value if key == "step" else _four_bytes(value)
    return rows


def _four_bytes(value: float) -> float:
    import struct

    return float(struct.unpack("<f", struct.pack("<f", value))[0])


@every
def test_another_state_after_every_batch_gives_the_same_summaries(
    form: Format, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (history_parts, tensorboard, wandb_records):
        monkeypatch.setattr(module, "READ_BLOCK", 40_000)
    rows = rows_of(4000)
    path = write(tmp_path / "log", form.encode(rows))
    meter = RunMeter([MetricFeed(form.make(str(path)))])
    meter.look()
    whole = meter.measured().keys
    reader, batches, held = form.make(str(path)), 0, Collecting()
    while True:
        batch = next(iter(reader.read()), None)
        if batch is None:
            break
        batches += 1
        held.rows.append(batch)
        reader = again(form, path, reader)
    assert batches > 1 or form.name == "hf"
    pieced = RunMeter([MetricFeed(held)])
    pieced.look()
    _alike(pieced.measured().keys["train/k1"], whole["train/k1"])
    assert whole["train/k1"].count == 4000


class Collecting(InMemoryReader):
    def __init__(self) -> None:
        super().__init__("memory", "held")


def _alike(one: Summary, two: Summary) -> None:
    for name in ("count", "nan", "first", "last", "min", "max", "first_step", "last_step", "tail"):
        assert getattr(one, name) == getattr(two, name), name
    assert one.mean == pytest.approx(two.mean)
    assert one.slope == pytest.approx(two.slope)


@every
@pytest.mark.parametrize("how", ["renamed over", "cut and rewritten", "shorter", "longer in place"])
def test_a_file_that_was_replaced_counts_alone(form: Format, tmp_path: Path, how: str) -> None:
    path = write(tmp_path / "log", form.encode(rows_of(30)))
    reader, held = form.make(str(path)), {}
    take(reader, held)
    new: list[Row] = [{"step": 100 + step, "other": 2.0} for step in range(3 if how == "shorter" else 90)]
    data = form.encode(new)
    if how == "renamed over":
        write(tmp_path / "new", data).replace(path)
    else:
        path.write_bytes(data)
    reader = again(form, path, reader)
    take(reader, held)
    assert same(held, form.expected(new))
    if form.name != "hf":
        assert any("replaced" in each for each in reader.said.skipped)


@growing
def test_a_file_that_was_emptied_counts_for_nothing(form: Format, tmp_path: Path) -> None:
    path = write(tmp_path / "log", form.encode(rows_of(30)))
    reader, held = form.make(str(path)), {}
    take(reader, held)
    path.write_bytes(b"")
    take(reader, held)
    assert not any(held.values())


@checked
@given(at=st.floats(0.02, 0.98), byte=st.integers(1, 255))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_byte_costs_its_block_and_never_makes_a_number(
    form: Format, tmp_path: Path, at: float, byte: int
) -> None:
    rows = rows_of(700)
    data, whole = bytearray(form.encode(rows)), form.expected(rows)
    data[int(len(data) * at)] ^= byte
    held = read(reader := form.make(str(write(tmp_path / "log", bytes(data)))))
    for key, values in held.items():
        assert set(values) <= set(whole[key])
        assert [step for step, _ in values] == sorted(step for step, _ in values)
    lost = 1 - sum(map(len, held.values())) / sum(map(len, whole.values()))
    assert lost < 0.45  # a block of 32 KiB is a third of this file
    assert reader.said.skipped or not lost


@checked
def test_reading_goes_on_behind_damage(form: Format, tmp_path: Path) -> None:
    rows = rows_of(2000)
    data = bytearray(form.encode(rows))
    data[len(data) // 2 : len(data) // 2 + 200] = os.urandom(200)
    held = read(reader := form.make(str(write(tmp_path / "log", bytes(data)))))
    assert held["train/k1"][-1] == (1999.0, 1999 * 0.25 + 1)
    assert 1000 < len(held["train/k1"]) < 2000
    assert any("damaged" in each for each in reader.said.skipped)


@every
@given(data=st.binary(max_size=400), start=st.sampled_from(("", "header")))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_bytes_whatever_raise(form: Format, tmp_path: Path, data: bytes, start: str) -> None:
    begin = form.encode(rows_of(2)) if start else b""
    held = read(form.make(str(write(tmp_path / "log", begin + data))))
    if form.name in ("wandb", "tensorboard"):
        whole = form.expected(rows_of(2)) if start else {}
        assert {key: values for key, values in held.items() if values} == whole


@every
@given(places=st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=6), st.integers(0, 6)), max_size=6))
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_file_with_pieces_cut_out_and_put_in(
    form: Format, tmp_path: Path, places: Sequence[tuple[float, bytes, int]]
) -> None:
    rows = rows_of(25)
    data, whole = form.encode(rows), form.expected(rows)
    for at, put, cut in places:
        place = int(at * len(data))
        data = data[:place] + put + data[place + cut :]
    held = read(form.make(str(write(tmp_path / "log", data))))
    if form.name in ("wandb", "tensorboard"):
        for key, values in held.items():
            assert set(values) <= set(whole[key])


# -- records with a right checksum and anything in them


RECORD = st.binary(max_size=60) | st.builds(
    lambda number, inner: b"\x08\x01" + field(number, inner), st.sampled_from((2, 3, 5, 17, 18)), st.binary(max_size=40)
)


@given(records=st.lists(RECORD, max_size=5))
@example(records=[b"\x08\x7f" + field(18, b"\x08")])  # an exit that does not end
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_record_whatever_raises_and_the_rows_behind_it_are_read(tmp_path: Path, records: list[bytes]) -> None:
    rows = rows_of(3)
    whole = [history_record(at, row) for at, row in enumerate(rows, 1)]
    path = write(tmp_path / "log.wandb", framed([*records, *whole]))
    assert read(BY_NAME["wandb"].make(str(path)))["train/k1"][-3:] == BY_NAME["wandb"].expected(rows)["train/k1"]
    steps = WandbStepReader(str(path))
    steps.look()
    assert steps.step == 2
    other = WandbStepReader(str(path), "train/k1", stage_key="stage")
    other.look()
    assert other.step == 1.5
    last = WandbStepReader(str(write(tmp_path / "last.wandb", framed([*whole, *records]))))
    last.look()
    assert last.step is not None


@given(events=st.lists(RECORD.filter(lambda data: len(data) > 0), max_size=5))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_event_whatever_raises_and_those_behind_it_are_read(tmp_path: Path, events: list[bytes]) -> None:
    rows = rows_of(3)
    odd = b"".join(map(event, events))
    path = write(tmp_path / "log", odd + board_bytes(rows))
    held = read(BY_NAME["tensorboard"].make(str(path)))
    assert held["train/k1"][-3:] == BY_NAME["tensorboard"].expected(rows)["train/k1"]
    steps = TensorboardStepReader(str(path))
    steps.look()
    assert steps.step == 2
    last = TensorboardStepReader(str(write(tmp_path / "last", board_bytes(rows) + odd)))
    last.look()
    assert last.step is not None


@checked
@given(data=st.binary(max_size=400), start=st.booleans())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_bytes_whatever_are_a_step(form: Format, tmp_path: Path, data: bytes, start: bool) -> None:
    begin = form.encode(rows_of(2)) if start else b""
    reader = STEPS[form.name](str(write(tmp_path / "log", begin + data)))
    reader.look()
    assert reader.step == (1 if start else None)


@checked
@given(places=st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=6), st.integers(0, 6)), max_size=6))
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_steps_of_a_file_with_pieces_cut_out_and_put_in(
    form: Format, tmp_path: Path, places: Sequence[tuple[float, bytes, int]]
) -> None:
    data = form.encode(rows_of(25))
    for at, put, cut in places:
        place = int(at * len(data))
        data = data[:place] + put + data[place + cut :]
    reader = STEPS[form.name](str(write(tmp_path / "log", data)))
    reader.look()
    assert reader.step is None or reader.step in range(25)


@every
def test_what_is_no_plain_file_is_told(form: Format, tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    with pytest.raises(OSError):
        read(form.make(str(tmp_path / "log")))


def test_rows_in_memory_keep_the_same_promises() -> None:
    from array import array

    from muster.readers.records.metric_reader import MetricRows

    rows = [MetricRows({"a": (array("d", [step]), array("d", [2.0 * step]))}, 1) for step in range(3)]
    reader: MetricReader = InMemoryReader("api", "held", rows)
    first = next(iter(reader.read()))
    other = InMemoryReader("api", "held", rows)
    other.restore(json.loads(json.dumps(reader.state())))
    assert first is rows[0]
    assert read(other) == {"a": [(1.0, 2.0), (2.0, 4.0)]}


def test_told_shows_what_differs() -> None:
    """The tests above compare texts, because NaN differs from itself."""
    one: Held = {"a": [(1.0, math.nan)]}
    assert same(one, {"a": [(1.0, math.nan)]})
    assert not same(one, {"a": [(1.0, 2.0)]})
    assert told({}) == {}
    assert flat({"a": {"b": 1.0}}) == [("a.b", 1.0)]
