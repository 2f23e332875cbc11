"""The register knows a campaign by what its log begins with: moved, renamed, copied, deleted, damaged."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from muster.store import register
from muster.store.register import Entry, Unread, campaign_id, entries, forget, place


def make(folder: Path, first: str = "first") -> Path:
    state = folder / ".muster"
    state.mkdir(parents=True)
    (state / "decisions.jsonl").write_text(json.dumps({"kind": "epoch", "at": first}) + "\n{}\n")
    return state


def enter(home: Path, state: Path, name: str = "sprint") -> Entry:
    register.register(home, state, name, "2026-01-01T00:00:00+00:00")
    (found,) = [each for each in entries(home) if each.id == campaign_id(state)]
    assert isinstance(found, Entry)
    return found


def test_one_entry_for_each_campaign_whatever_is_done_again(tmp_path: Path) -> None:
    assert entries(tmp_path / "home") == []
    state = make(tmp_path / "a")
    found = enter(tmp_path / "home", state)
    file = tmp_path / "home" / "campaigns" / f"{found.id}.json"
    before = file.stat()
    assert enter(tmp_path / "home", state) == found
    assert file.stat().st_ino == before.st_ino, "an `up` that changes nothing writes nothing"
    assert (found.path, found.inode) == (str(tmp_path / "a"), state.stat().st_ino)
    enter(tmp_path / "home", make(tmp_path / "b", "another"))
    assert len(entries(tmp_path / "home")) == 2


def test_a_campaign_in_which_nothing_was_decided_is_none(tmp_path: Path) -> None:
    (tmp_path / "a" / ".muster").mkdir(parents=True)
    register.register(tmp_path / "home", tmp_path / "a" / ".muster", "sprint", "")
    (tmp_path / "a" / ".muster" / "decisions.jsonl").write_text("half a li")
    register.register(tmp_path / "home", tmp_path / "a" / ".muster", "sprint", "")
    assert entries(tmp_path / "home") == []


def test_a_renamed_folder_is_found_beside_the_old_name_and_followed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    found = enter(home, make(tmp_path / "a"))
    make(tmp_path / "z", "another")
    (tmp_path / "a").rename(tmp_path / "b")
    assert place(found) == register.Place("moved", tmp_path / "b")
    moved = tmp_path / "b" / ".muster"
    register.register(home, moved, "sprint", "", moving=False)
    assert entries(home) == [found], "only `up` takes it along"
    assert not register.fits(found, moved)
    assert register.is_same(found, moved)
    enter(home, moved)
    (found,) = entries(home)
    assert isinstance(found, Entry)
    assert (found.path, place(found).standing) == (str(tmp_path / "b"), "there")


def test_a_copy_does_not_take_the_place_of_its_original(tmp_path: Path) -> None:
    home, state = tmp_path / "home", make(tmp_path / "a")
    found = enter(home, state)
    shutil.copytree(tmp_path / "a", tmp_path / "copy")
    register.register(home, tmp_path / "copy" / ".muster", "sprint", "")
    assert entries(home) == [found]
    shutil.rmtree(tmp_path / "a")
    assert place(found).standing == "gone"  # the copy has another inode: nobody said that it goes on there
    assert enter(home, tmp_path / "copy" / ".muster").path == str(tmp_path / "copy")


def test_who_lies_where_another_one_lay_takes_its_place(tmp_path: Path) -> None:
    home = tmp_path / "home"
    enter(home, make(tmp_path / "a"))
    shutil.rmtree(tmp_path / "a")
    found = enter(home, make(tmp_path / "a", "another"))
    assert entries(home) == [found]


def test_a_campaign_that_can_not_be_read_is_not_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = enter(tmp_path / "home", make(tmp_path / "a"))

    def stale(_: Path) -> str:
        raise OSError(116, "Stale file handle")

    monkeypatch.setattr(register, "campaign_id", stale)
    assert place(found) == register.Place("unread", None, "Stale file handle")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"path": 1}', "\x00\xff"])
def test_a_damaged_entry_is_told_and_can_be_forgotten(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "campaigns"
    folder.mkdir()
    (folder / "abc.json").write_text(text)
    (folder / ".half.json.7").write_text("left by a crash")
    (found,) = entries(tmp_path)
    assert found == Unread("abc", str(folder / "abc.json"), "it is damaged")
    forget(tmp_path, found)
    forget(tmp_path, found)
    assert entries(tmp_path) == []
