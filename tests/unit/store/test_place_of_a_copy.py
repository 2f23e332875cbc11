"""Whether a state lies where it was made, was brought from elsewhere, or is a copy of one that lives."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from muster.files import state_folder
from muster.model.errors import MusterError


@pytest.fixture
def state(tmp_path: Path) -> Path:
    made = tmp_path / "one" / ".muster"
    made.mkdir(parents=True)
    (made / "decisions.jsonl").write_text('{"kind":"epoch","ref":"a"}\n')
    state_folder.mark_state_place(made)
    return made


def copied(state: Path, name: str) -> Path:
    return Path(shutil.copytree(state.parent, state.parent.parent / name)) / ".muster"


def test_a_copy_while_the_original_lives(state: Path) -> None:
    copy = copied(state, "two")
    assert (state_folder.state_folder_standing(state), state_folder.state_folder_standing(copy)) == ("home", "copy")
    with pytest.raises(MusterError, match=str(state.parent)):
        state_folder.refuse_copied_state(copy)
    state_folder.refuse_copied_state(state)


def test_a_copy_whose_original_is_gone_was_moved(state: Path) -> None:
    copy = copied(state, "two")
    shutil.rmtree(state.parent)
    assert state_folder.state_folder_standing(copy) == "moved"
    state_folder.mark_state_place(copy)
    assert state_folder.state_folder_standing(copy) == "home"
    assert state_folder.former_campaign_folders(copy) == (str(state.parent), str(copy.parent))


def test_another_campaign_in_the_folder_of_the_original(state: Path) -> None:
    """A new folder may get the number of the old one: its log says that it is another."""
    copy = copied(state, "two")
    (state / "decisions.jsonl").write_text('{"kind":"epoch","ref":"b"}\n')
    assert state_folder.state_folder_standing(copy) == "moved"


def test_a_renamed_folder_is_the_same_and_is_marked_anew(state: Path) -> None:
    there = state.parent.rename(state.parent.parent / "two") / ".muster"
    assert state_folder.state_folder_standing(there) == "home"
    state_folder.renew_moved_mark(there)
    assert json.loads((there / "place").read_text())["former"] == [str(state)]
    assert state_folder.state_folder_standing(copied(there, "three")) == "copy"


def test_another_machine(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even at the same path: nobody asked for anything to go on there."""
    monkeypatch.setattr(state_folder, "anonymous_machine_name", lambda: "another")
    mark = json.loads((state / "place").read_text())
    (state / "place").write_text(json.dumps(mark | {"machine": "the first"}))
    assert state_folder.state_folder_standing(state) == "moved"
    state_folder.refuse_copied_state(state)
    (state / "place").write_text(json.dumps({"path": mark["path"], "inode": mark["inode"]}))  # of an earlier version
    assert state_folder.state_folder_standing(state) == "home"


@pytest.mark.parametrize("told", ["nothing", "its new place", "any machine"])
def test_whatever_a_pack_says_nothing_goes_on_where_it_was_unpacked(tmp_path: Path, told: str) -> None:
    """Its log may say that it is running: what reads it must not start anything."""
    beside, folder = tmp_path / ".unpacking" / ".muster", tmp_path / "there"
    beside.mkdir(parents=True)
    (beside / "decisions.jsonl").write_text("{}\n")
    path = folder / ".muster" if told == "its new place" else tmp_path / "gone" / ".muster"
    if told != "nothing":
        (beside / "place").write_text(json.dumps({"path": str(path), "inode": beside.stat().st_ino, "machine": ""}))
    state_folder.mark_unpacked_state(beside, folder)
    beside.parent.rename(folder)
    state = folder / ".muster"
    assert state_folder.state_folder_standing(state) == "moved"
    state_folder.renew_moved_mark(state)
    assert state_folder.state_folder_standing(state) == "moved"
    state_folder.mark_state_place(state)  # somebody acts here
    assert state_folder.state_folder_standing(state) == "home"
