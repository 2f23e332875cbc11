"""What `muster clean` must not touch: where links of results lead, what runs wrote, what a lost order may have named."""

from __future__ import annotations

import os
from pathlib import Path

from muster.app.campaign.verbs.clean_leftovers import (
    _KnownDigests,
    find_linked_places,
    find_needed_attempts,
    find_own_files,
)
from muster.model.attempt import Attempt, CellRecord, Outcome
from muster.model.cell import Cell
from muster.model.verdict import VerdictState


def attempt(n: int, verdict: VerdictState) -> Attempt:
    return Attempt("train/0", n, f"t{n}", 1, (), "", "", 0.0, "", outcome=Outcome(verdict))


def test_where_links_of_kept_outputs_lead_stays(tmp_path: Path) -> None:
    """Through a link of the spare attempt, and through a linked folder."""
    one, two, three = (tmp_path / "attempts" / "train" / "0" / n for n in "123")
    for each in (one, two, three):
        (each / "out").mkdir(parents=True)
    (one / "out" / "ckpt5").mkdir()
    (one / "out" / "ckpt5" / "result.json").write_text("{}")
    (one / "out" / "latest").symlink_to("ckpt5")
    (one / "out" / "self").symlink_to("self")
    (three / "out" / "first.json").symlink_to("../../1/out/latest/result.json")
    (two / "out" / "unused").symlink_to("../../1/stdout.log")
    (three / "out" / "elsewhere").symlink_to(tmp_path)
    found = find_linked_places(tmp_path, {str(one), str(two)}, [])
    assert str(one / "out" / "ckpt5" / "result.json") in found
    assert str(one / "out" / "latest") in found
    assert not any(path.startswith(str(two)) or path == str(one / "stdout.log") for path in found)
    assert str(tmp_path) not in found


def test_a_link_outside_the_attempts_counts_too(tmp_path: Path) -> None:
    one = tmp_path / "attempts" / "train" / "0" / "1"
    (one / "out").mkdir(parents=True)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "best").symlink_to(one / "out")
    assert str(one / "out") in find_linked_places(tmp_path, {str(one)}, [str(tmp_path / "runs")])


def test_what_the_next_order_will_name_is_named(tmp_path: Path) -> None:
    (tmp_path / "code.json").write_text('{"/c": {"code": {"dirty": "0123456789ab", "files": {"a.py": "ff00ff00ff"}}}}')
    names = _KnownDigests(tmp_path, tmp_path)
    assert "0123456789ab" in names
    assert "ff00ff00ff" in names


def test_files_of_runs_are_none_of_ours(tmp_path: Path) -> None:
    """Not even where all files of an attempt are gone but its output."""
    for n, left in (("1", "exit.json"), ("2", "")):
        out = tmp_path / "attempts" / "train" / "0" / n / "out"
        out.mkdir(parents=True)
        (out / ".ckpt.4194300").write_text("x")
        if left:
            (out.parent / left).write_text("{}")
            (out.parent / ".exit.json.4194300").write_text("{}")
    found = [str(path.relative_to(tmp_path)) for path in find_own_files(tmp_path)]
    assert sorted(map(os.path.basename, found)) == [".exit.json.4194300", "exit.json"]


def test_without_an_order_nobody_knows_what_it_went_on_from(tmp_path: Path) -> None:
    record = CellRecord(
        Cell("train/0", "train", {}), 0, attempts=(attempt(1, VerdictState.DEAD), attempt(2, VerdictState.DONE))
    )
    assert find_needed_attempts(tmp_path, record, ()) == {("train/0", 1), ("train/0", 2)}
