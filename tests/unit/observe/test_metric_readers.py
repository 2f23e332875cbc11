"""The newest step of a file that grows: in pieces, through truncation and replacement, as read at once."""

import json
import math
import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.readers.records.record_steps import read_last_step
from muster.readers.records.row_steps import LogPattern
from muster.readers.records.text_steps import (
    JsonlStepReader,
    PrintedStepReader,
    StepReader,
    TableStepReader,
    size_in_bytes_text,
)

REGEX = r"step[: ]+(\d+)"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def append(path: Path, text: bytes) -> None:
    with path.open("ab") as file:
        file.write(text)


def jsonl(path: Path, key: str = "step", **more: str) -> JsonlStepReader:
    return JsonlStepReader(str(path), key, **more)  # type: ignore[arg-type]


def table(path: Path, key: str = "step", **more: str) -> TableStepReader:
    return TableStepReader(str(path), key, **more)  # type: ignore[arg-type]


def console(path: Path, regex: str = REGEX, **more: str) -> PrintedStepReader:
    return PrintedStepReader(str(path), LogPattern.of(regex), **more)  # type: ignore[arg-type]


def look(reader: StepReader) -> float | None:
    reader.look()
    return reader.step


# -- jsonl


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", None),
        (b"\n\n", None),
        (b'{"step": 1}\n{"step": 2}\n', 2),
        (b'{"step" : 1}\r\n{"step":2}\r\n', 2),
        (b'{"step": 1}\n{"step": 2}', 2),
        (b'{"step": 1}\n{"step": 20', 1),
        (b'{"step": 1}\n{"loss": NaN, "step": 3}\n', 3),
        (b'{"step": 1}\n{"step": NaN}\n{"step": Infinity}\n', 1),
        (b'{"step": 1}\n{"eval/score": 3}\n{"note": "step"}\n{"note": ["step", 9]}\n', 1),
        (b'{"step": 1}\n' + bytes(5000), 1),
        (b'{"step": 1}\n{"step": 2' + bytes(500) + b'{"step": 3}\n', 3),
        (b'{"loss": 1}\n', None),
        (b'{"step": true}\n', None),
        (b'{"step": "12"}\n', 12),
        (b'{"step": 7}\n[1, 2]\n"step"\n\xff\xfe "step": 9\n', 7),
        (b'{"step": 5}\n' + b"[" * 100_000 + b'"step":\n', 5),
    ],
)
def test_jsonl(log: Path, text: bytes, expected: float | None) -> None:
    log.write_bytes(text)
    assert look(jsonl(log)) == expected


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
        ({"step!": 6}, "step!", 6),
        ({"global_step": 6}, "step", None),
    ],
)
def test_keys(log: Path, row: dict[str, object], key: str, expected: float | None) -> None:
    log.write_text(json.dumps(row) + "\n")
    assert look(jsonl(log, key)) == expected == read_last_step(str(log), "jsonl", key)


def test_scale(log: Path) -> None:
    log.write_text('{"step": 1000}\n')
    reader = JsonlStepReader(str(log), "step", 0.2)
    assert look(reader) == 200
    assert reader.logged == 1000


def test_rows_without_the_key_leave_the_step_and_are_counted_until_one_fits(log: Path) -> None:
    reader = jsonl(log)
    assert look(reader) is None
    assert reader.nothing("log") == "nothing yet: log does not exist"
    log.write_text("")
    assert look(reader) is None
    assert reader.nothing("log") == "nothing yet: log is empty"
    append(log, b'{"a"')
    assert look(reader) is None
    assert reader.nothing("log") == "nothing yet: no whole line in log"
    append(log, b": 1}\n" + b'{"loss": 1}\n' * 19)
    assert look(reader) is None
    assert reader.unfit == 20
    assert reader.nothing("log") == "0 of 20 rows of log hold a number at 'step'"
    append(log, b'{"step": 4}\n')
    assert (look(reader), reader.unfit) == (4, 0)
    append(log, b'{"loss": 1}\n')
    assert (look(reader), reader.unfit) == (4, 0)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ('{"step": 1, "loss": NaN}', "loss"),
        ('{"step": 1, "loss": -Infinity}', "loss"),
        ('{"step": 1, "loss": {"policy": {"kl": NaN}}}', "loss.policy.kl"),
        ('{"step": 1, "note": "NaN"}', ""),
        ('{"step": 1, "loss": 0.5}', ""),
        ('{"step": NaN}', "step"),
        ('{"step": 1, "loss": NaN}\n{"loss": 0.5}', ""),
        ('{"step": 1, "loss": 0.5}\n{"eval": NaN}', "eval"),
        ('{"step": 1, "loss": NaN}\n{"step": 2, "lo\n[1]\n', "loss"),
    ],
)
def test_non_finite_in_the_newest_row(log: Path, row: str, expected: str) -> None:
    log.write_text('{"step": 0, "loss": 1}\n' + row + "\n")
    reader = jsonl(log)
    reader.look()
    assert reader.non_finite == expected


def test_the_stage_is_that_of_the_newest_row_that_names_one(log: Path) -> None:
    reader = jsonl(log, stage_key="phase.name")
    append(log, b'{"step": 1, "phase": {"name": "ne"}}\n{"step": 2}\n')
    reader.look()
    assert reader.stage == "ne"
    append(log, b'{"step": 3}\n')
    reader.look()
    assert reader.stage == "ne"
    append(log, b'{"step": 4, "phase.name": "main"}\n')
    reader.look()
    assert reader.stage == "main"


def test_an_endless_line(log: Path) -> None:
    log.write_bytes(b"x" * (3 << 20))
    reader = jsonl(log)
    assert look(reader) is None
    assert reader.nothing("log") == "no newline in the last 3.15 MB of log"


def test_speed_is_at_least_that_of_msgspec(log: Path) -> None:
    rows = [{"step": n, **{f"train/metric_{m}": n * m * 0.123 for m in range(20)}} for n in range(1000)]
    text = b"".join(json.dumps(row).encode() + b"\n" for row in rows) * 30
    log.touch()
    reader = jsonl(log)
    reader.look()
    log.write_bytes(text)
    began = time.perf_counter()
    assert look(reader) == 999
    mine = time.perf_counter() - began
    began = time.perf_counter()
    for line in text.splitlines():
        msgspec.json.decode(line)
    assert mine < 2 * (time.perf_counter() - began)  # five times faster on a quiet machine


# -- tables


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"Epoch,step,Metrics/EpRet\n0,1000,1.5\n1,2000,1.6\n", 2000),
        (b"\xef\xbb\xbfstep,x\r\n1000,1\r\n", 1000),
        (b'Epoch,"step",note\n0,1000,"a, b"\n1,2000,"c ""d"""\n', 2000),
        (b'step,note\n1000,x\n2000,"two\nlines"\n', 2000),
        (b"Epoch,step\n0,1000\n1,20", 1000),
        (b"Epoch,step\n0,1000\n1,nan\n2,\n", 1000),
        (b"Epoch\tstep\n0\t1000\n", 1000),
        (b"Epoch;step\n0;1000\n", 1000),
        (b"Epoch, step\n0, 1000\n", 1000),
        (b"Epoch,step\n0,1000\nEpoch,step\n", 1000),
        (b"Epoch,step\n0,1000\nEpoch,step\n1,2000\n", 2000),
        (b"Epoch,step\n0,1000\nEpoch,loss,step\n7,8,3000\n", 3000),
        (b"Epoch,step\n0,1000\nEpoch,loss,step\n", 1000),
        (b"phase,step,loss\nstep,1000,0.1\nstep,2000,0.2\n", 2000),
        (b"step,0.1,0.9\n1000,1,2\n", 1000),
        (b"Epoch,Steps\n0,1000\n", None),
        (b"Epoch,step\n", None),
        (b"Epoch,step\n0,1000\n" + bytes(4096), 1000),
        (b"", None),
    ],
)
def test_tables(log: Path, text: bytes, expected: float | None) -> None:
    log.write_bytes(text)
    assert look(table(log)) == expected
    log.write_bytes(b"")
    reader = table(log)
    for at in range(len(text)):
        append(log, text[at : at + 1])
        reader.look()
    assert reader.step == expected


def test_a_large_table_is_read_from_its_end_with_the_header_of_its_beginning(log: Path) -> None:
    with log.open("wb") as file:
        file.write(b"Epoch,step,pad\n")
        file.writelines(b"%d,%d,%s\n" % (n, n * 10, b"x" * 1000) for n in range(20_000))
    assert look(table(log)) == 199_990


def test_a_column_that_appears_when_the_file_is_rewritten(log: Path) -> None:
    log.write_text("epoch,loss\n" + "".join(f"{n},0.5\n" for n in range(5)))
    reader = table(log)
    assert look(reader) is None
    assert reader.unfit >= 5
    assert reader.nothing("log") == "log has no column 'step'"
    log.write_text("epoch,loss,step\n" + "".join(f"{n},0.5,{n * 100}\n" for n in range(6)))
    assert look(reader) == 500
    log.write_text("epoch,step,loss\n" + "".join(f"{n},{n * 100},0.5\n" for n in range(8)))
    assert look(reader) == 700


def test_a_table_whose_column_holds_no_numbers(log: Path) -> None:
    log.write_text("step,loss\n" + "-,1\n" * 3)
    reader = table(log)
    assert look(reader) is None
    assert reader.nothing("log") == "0 of 3 rows of log hold a number in 'step'"


@pytest.mark.parametrize(
    ("row", "expected"),
    [("1,nan,ne", "loss"), ("1,-inf,ne", "loss"), ("1,0.5,ne", ""), ("1,,ne", ""), ("1,NaN,ne", "loss")],
)
def test_non_finite_and_stage_of_a_table(log: Path, row: str, expected: str) -> None:
    log.write_text(f"step,loss,phase\n0,1,warm\n{row}\n")
    reader = table(log, stage_key="phase")
    reader.look()
    assert (reader.non_finite, reader.stage) == (expected, "ne")


# -- the console


@pytest.mark.parametrize(
    ("text", "regex", "expected"),
    [
        (b"step:200 loss:1\nstep:400 loss:2\nbye\n", REGEX, 400),
        (b"step:12K smpl:2M\n", r"step:(\d+\w?)", 12000),
        (b" 1/9\r 2/9\r 3/9 [", r"(\d+)/9", 3),
        (b"epoch 3 step=1,200\n", r"epoch (\d+) step=(?P<step>[\d,]+)", 1200),
        (b"step 1 step 2 step 3 \nnothing", REGEX, 3),
        (b"step 120\nstep 12", REGEX, 120),  # perhaps 12 of 12000
        (b"step 120\nstep 130 ", REGEX, 130),
        (b"nothing\n", REGEX, None),
        (b"\xff\xfe step 5 \xff\n", REGEX, 5),
    ],
)
def test_console(log: Path, text: bytes, regex: str, expected: float | None) -> None:
    log.write_bytes(text)
    assert look(console(log, regex)) == expected


def test_lines_that_do_not_fit_are_counted(log: Path) -> None:
    log.write_bytes(b"loading\n\r\n" * 100)
    reader = console(log)
    assert look(reader) is None
    assert reader.nothing("stdout.log") == "0 of 100 lines fit its pattern"
    append(log, b"step 3\n")
    assert (look(reader), reader.unfit) == (3, 0)


def test_steps_without_line_ends(log: Path) -> None:
    reader = console(log)
    for first in range(0, 300_000, 50_000):
        append(log, b"".join(b"step %d . " % n for n in range(first, first + 50_000)))
        assert look(reader) == first + 49_999


def test_a_quadratic_regex_on_a_long_line_ends(log: Path) -> None:
    log.write_bytes(b"x " * 400_000 + b"\nstep 1\n" + b"y " * 400_000 + b"\n")
    began = time.perf_counter()
    assert look(console(log, r"(?:x|y| )*z|step (\d+)")) == 1
    assert time.perf_counter() - began < 5.0


def test_the_stage_is_a_group(log: Path) -> None:
    log.write_bytes(b"[ne] step 3\n")
    reader = console(log, r"\[(?P<phase>\w+)\] step (?P<step>\d+)", stage_key="phase")
    assert (look(reader), reader.stage) == (3, "ne")


# -- any pieces, any accident


def _jsonl_line(step: int, kind: int) -> bytes:
    row = [{"step": step}, {"step": step, "loss": math.nan}, {"loss": 1.0}, {"a": "step"}][kind % 4]
    return json.dumps(row).encode() + b"\n"


def _csv_line(step: int, kind: int) -> bytes:
    return [b"%d,%d,x\n", b'%d,%d,"y, z"\n', b"%d,%d,\n", b"%d,%d,nan\n"][kind % 4] % (kind, step)


def _log_line(step: int, kind: int) -> bytes:
    return [b"step %d loss\n", b"step: %d\r", b"nothing\n", b"%d\n"][kind % 4].replace(b"%d", b"%d" % step)


Case = tuple[str, str, bytes, Callable[[int, int], bytes], Callable[[Path], StepReader]]
CASES: list[Case] = [
    ("jsonl", "step", b"", _jsonl_line, jsonl),
    ("csv", "step", b"epoch,step,note\n", _csv_line, table),
    ("stdout", REGEX, b"", _log_line, console),
]
LINES = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 3)), max_size=25)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
@given(lines=LINES, data=st.data())
def test_in_pieces_as_at_once(
    tmp_path_factory: pytest.TempPathFactory, case: Case, lines: list[tuple[int, int]], data: st.DataObject
) -> None:
    kind, key, header, line, make = case
    text = header + b"".join(line(*each) for each in lines)
    path = tmp_path_factory.getbasetemp() / f"pieces.{kind}"
    path.write_bytes(b"")
    reader, allowed = make(path), {None, *(float(step) for step, _ in lines)}
    while text:
        size = data.draw(st.integers(1, len(text)))
        append(path, text[:size])
        text = text[size:]
        assert look(reader) in allowed
    assert reader.step == look(make(path)) == read_last_step(str(path), kind, key)
    assert bool(reader.unfit) <= (reader.step is None)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
@given(lines=LINES, data=st.data())
def test_no_accident_raises_or_invents_a_step(
    tmp_path_factory: pytest.TempPathFactory, case: Case, lines: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Steps have six digits and no prefix of one is a step, so a cut number would be noticed."""
    kind, _, header, line, make = case
    lines = [(100_000 + step % 900_000, shape) for step, shape in lines]
    path = tmp_path_factory.getbasetemp() / f"accidents.{kind}"
    path.write_bytes(header)
    reader, allowed = make(path), {None, *(float(step) for step, _ in lines)}
    for each in lines:
        text, action = line(*each), data.draw(st.integers(0, 7))
        if action == 0:  # truncated, copytruncate
            os.truncate(path, 0)
            append(path, header)
        elif action == 1:  # rotated
            path.rename(path.with_suffix(".old"))
            path.write_bytes(header)
        elif action == 2:  # cut anywhere by a power cut, then gone on with
            os.truncate(path, data.draw(st.integers(0, path.stat().st_size)))
            append(path, bytes(data.draw(st.integers(1, 100))) + b"\n" + header)
        elif action == 3:  # rewritten in place, perhaps longer
            path.write_bytes(header + b"".join(line(*other) for other in lines))
        cut = data.draw(st.integers(0, len(text)))
        append(path, text[:cut])
        assert look(reader) in allowed
        append(path, text[cut:])
        assert look(reader) in allowed


def test_what_was_found_stands_when_the_file_is_replaced(log: Path) -> None:
    log.write_text('{"step": 9}\n')
    reader = jsonl(log)
    assert look(reader) == 9
    log.unlink()
    assert look(reader) == 9
    log.write_text('{"loss": 1}\n')
    assert (look(reader), reader.unfit, reader.fitted) == (9, 1, False)
    append(log, b'{"step": 2}\n')
    assert (look(reader), reader.unfit) == (2, 0)


@pytest.mark.parametrize(
    ("count", "told"),
    [(0, "0 bytes"), (999, "999 bytes"), (16 << 20, "16.8 MB"), (2 << 30, "2.15 GB"), (5e15, "5e+03 TB")],
)
def test_bytes_in_words(count: float, told: str) -> None:
    assert size_in_bytes_text(count) == told
