"""Files of a run that were made to take long or much memory. Found by tests/fuzz."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from muster.readers.records.row_steps import decode_json_value
from muster.readers.records.text_steps import TableStepReader


def test_a_header_that_names_the_step_many_times_is_looked_at_once(tmp_path: Path) -> None:
    """It was parsed once for each time, up to a thousand times: 12 s for 1 MB."""
    (tmp_path / "a.csv").write_text("a\tmy_step\t" * 50_000 + "\n1\t2\n")
    began = time.process_time()
    TableStepReader(str(tmp_path / "a.csv"), "step").look()
    assert time.process_time() - began < 3


@pytest.mark.parametrize(
    "text",
    ['{"a": NaN}', '{"a": -Infinity}', '{"a": 1e999}', '{"a": 1' + "0" * 400 + "}", '{"a": "\\ud800"}', '{"a": "é"}', "{", "\\",
     "{a}", '{"a": 1}', "[1, 2", "\x00", '{"a": 0.1e400}', '{"a": ' + "9" * 30 + "}"],
)  # fmt: skip
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_lines_are_what_json_says(text: str, encoding: str) -> None:
    data = text.encode(encoding, "surrogatepass")
    try:
        expected = json.loads(data)
    except ValueError:
        expected = None
    assert repr(decode_json_value(data)) == repr(expected)


def test_lines_that_are_no_json_are_told_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """json takes 3 us for each: 4 MB of them took 6 s."""
    monkeypatch.setattr(json, "loads", lambda _: pytest.fail("json was asked, too"))
    for line in (b"\\", b"{", b"{a}", b"[1, 2"):
        assert decode_json_value(line) is None
