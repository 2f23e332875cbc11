"""What a staged training left is found and read: one folder below, thinned where it is long, never for ever."""

from __future__ import annotations

import hashlib
import json
import os
import resource
from pathlib import Path

import pytest

from muster.app.gates import staged_pictures
from muster.app.gates.staged_artifacts import parse_staged_artifacts
from muster.app.gates.staged_pictures import read_staged_files, thin_out_lines

ROW = {"iter": 1, "stage": "ne", "survival": 0.5}


def trace_line(at: int, state: str = "hold") -> bytes:
    return json.dumps({"iteration": at, "state": state, "values": {"a": at}, "why": "x" * 50}).encode()


def at_of(lines: list[bytes]) -> list[int]:
    return [json.loads(line)["iteration"] for line in lines]


def test_files_are_found_by_their_names_and_hashed(tmp_path: Path) -> None:
    (tmp_path / "v40_gate_trace.jsonl").write_bytes(trace_line(1))
    (tmp_path / "eval_history.jsonl").write_text(json.dumps(ROW))
    (tmp_path / "notes.md").write_text("no")
    found = read_staged_files([tmp_path])
    assert set(found.texts) == {"v40_gate_trace.jsonl", "eval_history.jsonl"}
    assert found.hashes["v40_gate_trace.jsonl"] == hashlib.sha256(trace_line(1)).hexdigest()
    assert found.notes == []


def test_one_folder_below_is_looked_into(tmp_path: Path) -> None:
    for name in ("logs", "checkpoints", "figures", ".cache"):
        (tmp_path / name).mkdir()
    (tmp_path / "logs" / "train.jsonl").write_text(json.dumps(ROW))
    (tmp_path / "figures" / "gate_trace.jsonl").write_text("ours")
    (tmp_path / ".cache" / "gate_trace.jsonl").write_text("hidden")
    assert list(read_staged_files([tmp_path]).paths.values()) == [tmp_path / "logs" / "train.jsonl"]


def test_several_runs_below_are_not_mixed(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.jsonl").write_text(json.dumps(ROW))
    found = read_staged_files([tmp_path])
    assert found.texts == {}
    assert [(note.key, note.parts["where"]) for note in found.notes] == [("several", "a, b")]


def test_the_first_folder_counts(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for place, value in ((one, 1), (other, 2)):
        place.mkdir()
        (place / "train.jsonl").write_text(json.dumps({**ROW, "survival": value}))
    (other / "gate_trace.jsonl").write_bytes(trace_line(1))
    found = read_staged_files([one, other])
    assert [path.parent.name for path in found.paths.values()] == ["other", "one"]


def test_what_is_no_file_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "train.jsonl")
    (tmp_path / "gate_trace.jsonl").mkdir()
    (tmp_path / "eval_history.jsonl").symlink_to(tmp_path / "nowhere")
    found = read_staged_files([tmp_path])
    assert found.texts == {}
    assert [(note.key, note.parts["file"]) for note in found.notes] == [
        ("no_file", "gate_trace.jsonl"), ("unreadable", "eval_history.jsonl"), ("no_file", "train.jsonl"),
    ]  # fmt: skip


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_bytes(b"\xef\xbb\xbf" + json.dumps(ROW).encode() + b"\n\xff\xfe\n")
    found = parse_staged_artifacts(read_staged_files([tmp_path]).texts)
    assert found.series[0].at == (1,)
    assert [note.key for note in found.notes] == ["torn"]


def test_a_document_that_is_too_large_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staged_pictures, "LARGEST_KEPT", 100)
    (tmp_path / "schedule_trace.json").write_text("[" + " " * 200)
    assert [note.key for note in read_staged_files([tmp_path]).notes] == ["too_large"]


def test_every_nth_row_the_head_and_every_move_stay() -> None:
    head = b'{"gate": "penalty", "settings": {}}'
    lines = [head, *(trace_line(at, "advance" if at in (333, 777) else "hold") for at in range(1, 1001))]
    kept, total = thin_out_lines(lines, 10_000)
    assert total == 1001
    assert sum(map(len, kept)) <= 10_000
    assert kept[0] == head
    assert {333, 777} <= set(at_of(kept[1:]))
    assert len(kept) > 30
    gaps = {b - a for a, b in zip(at_of(kept[1:]), at_of(kept[1:])[1:], strict=False)}
    assert max(gaps) <= 32


def test_nothing_is_thinned_where_there_is_room() -> None:
    lines = [trace_line(at) for at in range(1, 50)]
    assert thin_out_lines(lines, 1 << 20) == (lines, 49)


def test_moves_alone_do_not_break_the_bound() -> None:
    kept, total = thin_out_lines([trace_line(at, "advance") for at in range(1, 1001)], 10_000)
    assert total == 1000
    assert sum(map(len, kept)) <= 10_000
    assert at_of(kept) == sorted(at_of(kept))


def test_a_resumed_run_leaves_nothing_of_what_it_said_before() -> None:
    old = [trace_line(at) for at in range(1, 501)]
    new = [trace_line(at, "failure_hold") for at in range(301, 401)]
    kept, _ = thin_out_lines([*old, *new], 8_000)
    found = [json.loads(line) for line in kept]
    assert [row["iteration"] for row in found] == sorted({row["iteration"] for row in found})
    assert all((row["iteration"] > 300) == (row["state"] == "failure_hold") for row in found)
    assert any(row["iteration"] > 300 for row in found)


def test_a_long_trace_is_read_in_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty times what is kept; the peak of the process hardly moves."""
    monkeypatch.setattr(staged_pictures, "LARGEST_KEPT", 1 << 20)
    path = tmp_path / "gate_trace.jsonl"
    digest = hashlib.sha256()
    with open(path, "wb") as file:
        for start in range(0, 160_000, 1000):
            chunk = b"".join(trace_line(at) + b"\n" for at in range(start, start + 1000))
            digest.update(chunk)
            file.write(chunk)
        file.write(b"z" * (3 << 20) + b"\n")  # a line without end
    digest.update(b"z" * (3 << 20) + b"\n")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = read_staged_files([tmp_path])
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert found.hashes["gate_trace.jsonl"] == digest.hexdigest()
    assert found.thinned["gate_trace.jsonl"] == 160_001
    assert len(found.texts["gate_trace.jsonl"]) <= (1 << 20) + 10_000
    assert grown < 12 << 10  # KiB; the file has 17 MiB
    (gate,) = parse_staged_artifacts(found.texts, thinned=found.thinned).gates
    assert gate.counts is None
