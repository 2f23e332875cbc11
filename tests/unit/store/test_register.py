"""The register knows a campaign by what its log begins with: moved, renamed, copied, deleted, damaged."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from muster.files import campaign_register
from muster.files.campaign_register import (
    RegisterEntry,
    UnreadEntry,
    forget_register_entry,
    list_register_entries,
    locate_registered_campaign,
    read_campaign_id,
)


def make(folder: Path, first: str = "first") -> Path:
    state = folder / ".muster"
    state.mkdir(parents=True)
    (state / "decisions.jsonl").write_text(json.dumps({"kind": "epoch", "at": first}) + "\n{}\n")
    return state


def enter(home: Path, state: Path, name: str = "sprint") -> RegisterEntry:
    campaign_register.register_campaign(home, state, name, "2026-01-01T00:00:00+00:00")
    (found,) = [each for each in list_register_entries(home) if each.id == read_campaign_id(state)]
    assert isinstance(found, RegisterEntry)
    return found


def test_one_entry_for_each_campaign_whatever_is_done_again(tmp_path: Path) -> None:
    assert list_register_entries(tmp_path / "home") == []
    state = make(tmp_path / "a")
    found = enter(tmp_path / "home", state)
    file = tmp_path / "home" / "campaigns" / f"{found.id}.json"
    before = file.stat()
    assert enter(tmp_path / "home", state) == found
    assert file.stat().st_ino == before.st_ino, "an `up` that changes nothing writes nothing"
    assert (found.path, found.inode) == (str(tmp_path / "a"), state.stat().st_ino)
    enter(tmp_path / "home", make(tmp_path / "b", "another"))
    assert len(list_register_entries(tmp_path / "home")) == 2


def test_a_campaign_in_which_nothing_was_decided_is_none(tmp_path: Path) -> None:
    (tmp_path / "a" / ".muster").mkdir(parents=True)
    campaign_register.register_campaign(tmp_path / "home", tmp_path / "a" / ".muster", "sprint", "")
    (tmp_path / "a" / ".muster" / "decisions.jsonl").write_text("half a li")
    campaign_register.register_campaign(tmp_path / "home", tmp_path / "a" / ".muster", "sprint", "")
    assert list_register_entries(tmp_path / "home") == []


def test_a_renamed_folder_is_found_beside_the_old_name_and_followed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    found = enter(home, make(tmp_path / "a"))
    make(tmp_path / "z", "another")
    (tmp_path / "a").rename(tmp_path / "b")
    assert locate_registered_campaign(found) == campaign_register.RegisteredPlace("moved", tmp_path / "b")
    moved = tmp_path / "b" / ".muster"
    campaign_register.register_campaign(home, moved, "sprint", "", moving=False)
    assert list_register_entries(home) == [found], "only `up` takes it along"
    assert not campaign_register.is_registered_state(found, moved)
    assert campaign_register.is_same(found, moved)
    enter(home, moved)
    (found,) = list_register_entries(home)
    assert isinstance(found, RegisterEntry)
    assert (found.path, locate_registered_campaign(found).standing) == (str(tmp_path / "b"), "there")


def test_a_copy_does_not_take_the_place_of_its_original(tmp_path: Path) -> None:
    home, state = tmp_path / "home", make(tmp_path / "a")
    found = enter(home, state)
    shutil.copytree(tmp_path / "a", tmp_path / "copy")
    campaign_register.register_campaign(home, tmp_path / "copy" / ".muster", "sprint", "")
    assert list_register_entries(home) == [found]
    shutil.rmtree(tmp_path / "a")
    assert (
        locate_registered_campaign(found).standing == "gone"
    )  # the copy has another inode: nobody said that it goes on there
    assert enter(home, tmp_path / "copy" / ".muster").path == str(tmp_path / "copy")


def test_who_lies_where_another_one_lay_takes_its_place(tmp_path: Path) -> None:
    home = tmp_path / "home"
    enter(home, make(tmp_path / "a"))
    shutil.rmtree(tmp_path / "a")
    found = enter(home, make(tmp_path / "a", "another"))
    assert list_register_entries(home) == [found]


def test_a_campaign_that_can_not_be_read_is_not_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = enter(tmp_path / "home", make(tmp_path / "a"))

    def stale(_: Path) -> str:
        raise OSError(116, "Stale file handle")

    monkeypatch.setattr(campaign_register, "read_campaign_id", stale)
    assert locate_registered_campaign(found) == campaign_register.RegisteredPlace("unread", None, "Stale file handle")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"path": 1}', "\x00\xff"])
def test_a_damaged_entry_is_told_and_can_be_forgotten(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "campaigns"
    folder.mkdir()
    (folder / "abc.json").write_text(text)
    (folder / ".half.json.7").write_text("left by a crash")
    (found,) = list_register_entries(tmp_path)
    assert found == UnreadEntry("abc", str(folder / "abc.json"), "it is damaged")
    forget_register_entry(tmp_path, found)
    forget_register_entry(tmp_path, found)
    assert list_register_entries(tmp_path) == []
