"""Hostile inputs for every reader: none gets out but its own refusals, none takes more than the limits allow.

The inputs are given to readers by a process of its own, which may die of them: `python tests/fuzz/harness.py --inputs 2000`.
`--reader NAME --number N` gives one input again. `make soak ONLY=fuzz` goes on with others.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from harness import MOST_MB, Reader, Sum, input_of, run  # noqa: E402
from mutate import hostile  # noqa: E402

SOURCE = HERE.parents[1] / "src" / "muster"


def test_two_thousand_inputs_stay_within_the_limits(capsys: pytest.CaptureFixture[str]) -> None:
    command = [sys.executable, str(HERE / "harness.py"), "--inputs", "2000", "--guided", "100", "--jobs", "2"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": "0"})
    with capsys.disabled():
        print(f"\n{(done.stdout.splitlines() or [''])[-1]}")
    assert done.returncode == 0, done.stdout + done.stderr


# -- the harness itself finds what it is there for


def _raises(error: BaseException) -> object:
    raise error


def _endless(_: Path) -> object:
    while True:
        pass


def _deep(path: Path) -> object:
    return _deep(path)


def reader(name: str, read: object, **more: object) -> Reader:
    return Reader(name, (), lambda: [b"honest\n"], read, **more)  # type: ignore[arg-type]


ONE = reader("r", None)


def failures(read: object, numbers: Sequence[int] = (0,), **more: object) -> list[str]:
    return [each.failure for each in run([reader("r", read, **more)], lambda _: numbers, 1).failures]


def test_an_unexpected_exception_is_named_with_its_input() -> None:
    found = run([reader("r", lambda _: _raises(KeyError("x")))], lambda _: [7], 1)
    assert [(each.reader, each.number, each.failure) for each in found.failures] == [("r", 7, "KeyError: 'x'")]


def test_a_refusal_is_none_if_it_says_something() -> None:
    assert failures(lambda _: _raises(LookupError("why")), refusals=(LookupError,)) == []
    assert failures(lambda _: _raises(LookupError()), refusals=(LookupError,)) == [
        "a refusal that says nothing: LookupError()"
    ]
    assert failures(lambda _: _raises(OSError(5, "unread"))) == []


def test_memory_is_counted_even_if_it_is_given_back() -> None:
    (found,) = failures(
        lambda path: path.read_bytes() == input_of(ONE, 0) and len(bytearray(b"x") * ((MOST_MB + 50) << 20))
    )
    assert found.startswith("too much: an honest file of its size takes")


def test_memory_without_end_and_recursion_are_failures() -> None:
    (found,) = failures(lambda _: bytes(1 << 34))
    assert found.startswith("MemoryError")
    (found,) = failures(_deep)
    assert found.startswith("RecursionError")


def test_an_input_that_hangs_ends_its_process_and_the_others_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    import harness

    monkeypatch.setattr(harness, "KILL_CPU_S", 0.3)
    slow = reader("r", lambda path: _endless(path) if path.read_bytes() == input_of(slow, 1) else None)
    found = run([slow], lambda _: range(4), 1)
    assert [(each.number, each.failure) for each in found.failures] == [
        (1, "it took more than 0.3 s of processor time")
    ]
    assert found.inputs == 4


def test_an_input_that_waits_is_ended_too(monkeypatch: pytest.MonkeyPatch) -> None:
    import harness

    monkeypatch.setattr(harness, "KILL_WALL_S", 0.3)
    assert failures(lambda _: time.sleep(60)) == ["it did not end in 0.3 s"]


def test_the_same_number_makes_the_same_input() -> None:
    assert input_of(ONE, 5) == input_of(ONE, 5)
    assert len({input_of(ONE, number) for number in range(200)}) > 100
    assert hostile([b"x"], Random("1")) != hostile([b"x"], Random("2"))


def test_the_sum_names_the_worst() -> None:
    assert Sum().told() == "fuzz: 0 inputs, 0 readers, 0 failures, worst 0.0 s ( 0), 0 MB ( 0)"


# -- no reader is left out


def test_every_module_that_reads_is_fuzzed_or_says_why_not() -> None:
    from registry import LEFT_OUT, READERS

    known = {module for each in READERS for module in each.modules}
    there = {_module(path) for path in SOURCE.rglob("*.py")}
    reading = {_module(path) for path in SOURCE.rglob("*.py") if _reads(path)}
    assert sorted(reading - known - LEFT_OUT.keys()) == [], (
        "give it a reader in tests/fuzz, or a reason in registry.LEFT_OUT"
    )
    assert sorted((known | LEFT_OUT.keys()) - there) == [], "there is no such module"
    assert sorted(known & LEFT_OUT.keys()) == []


OPENERS = {
    "read_bytes", "read_text", "read_regular_file", "open_regular_file", "open_log_file", "read_file_start", "open_regular_fd",
    "open_plain_file", "read_plain_file", "read_plain_scalar", "parse_json_config", "read_fact_object", "load_plain_pickle", "loads",
    "load_bounded_json", "decode_json_row", "decode_decision", "literal_eval", "ZipFile", "DictReader", "Decoder", "genops",
}  # fmt: skip
PARSERS = {
    ("ast", "parse"),
    ("csv", "reader"),
    ("shlex", "split"),
    ("msgspec.json", "decode"),
    ("np", "load"),
    ("np", "frombuffer"),
}
OF_OURS = {"faces", "wiring", "_examples"}  # commands read through the rooms below them


def _module(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def _reads(path: Path) -> bool:
    """Whether it opens a file to read, or parses what another opened. The kernel's own files are not hostile."""
    if path.relative_to(SOURCE).parts[0] in OF_OURS:
        return False
    return any(_is_reading(node) for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.Call))


def _is_reading(call: ast.Call) -> bool:
    told = ast.unparse(call)
    if (
        "/proc/" in told
        or "/sys/" in told
        or "__file__" in told
        or "row[" in told
        or "O_WRONLY" in told
        or "O_DIRECTORY" in told
    ):
        return False
    owner, _, name = ast.unparse(call.func).rpartition(".")
    if name == "open":
        mode = ast.unparse(call.args[-1]) if len(call.args) > 1 or (owner not in ("", "os") and call.args) else "'r'"
        return owner in ("", "os", "tarfile", "path", "io") and not set(mode.strip("'")) & set("wxa") - set("r")
    return (owner, name) in PARSERS or (name in OPENERS and "_fields" not in owner)
