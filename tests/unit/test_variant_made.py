"""A variant is written whole, beside its base, never over anything, and remembered."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from muster.app.campaign.run_configs import VARIANTS_FILE, read_variant_records
from muster.app.loop.edit_variant import LARGEST_BASE, MadeVariant, made_variant_as_json, write_edited_variant
from muster.model.errors import MusterError, UsageError

AT = "2026-02-23T17:23:01.000+08:00"
BASE = '{"ot": {"reg": 1e-3, "window": 8}, "name": "x"}\n'


@pytest.fixture
def base(tmp_path: Path) -> Path:
    path = tmp_path / "base.json"
    path.write_text(BASE)
    return path


def make(base: Path, *changes: str, out: Path | None = None) -> MadeVariant:
    return write_edited_variant(base, changes, "mass too small", AT, out)


def refused(base: Path, *changes: str, out: Path | None = None, reason: str = "r") -> UsageError:
    """Nothing is written."""
    before = {path: path.read_bytes() for path in base.parent.rglob("*") if path.is_file()}
    with pytest.raises(UsageError) as told:
        write_edited_variant(base, changes, reason, AT, out)
    assert {path: path.read_bytes() for path in base.parent.rglob("*") if path.is_file()} == before
    return told.value


def test_a_variant_and_its_record(base: Path) -> None:
    made = make(base, "ot.window@mul=1.5@max=10", "ot.reg@mul=2")
    assert base.read_text() == BASE
    assert made.path.read_text() == '{"ot": {"reg": 0.002, "window": 10}, "name": "x"}\n'
    assert made.path.name == f"base_{made.digest[:6]}.json"
    (line,) = read_variant_records(base.parent / VARIANTS_FILE)
    assert line == {
        **made_variant_as_json(made), "path": made.path.name, "parent": "base.json", "at": AT, "reason": "mass too small",
    }  # fmt: skip
    assert [change["note"] for change in line["changes"]] == ["held at 10", ""]
    assert sorted(path.name for path in base.parent.iterdir()) == ["base.json", made.path.name, VARIANTS_FILE]


def test_generations_keep_short_names_and_their_parents(base: Path) -> None:
    made = make(base, "ot.reg@mul=2")
    for _ in range(3):
        made = make(made.path, "ot.reg@mul=2")
        assert made.path.name == f"base_{made.digest[:6]}.json"
    lines = list(read_variant_records(base.parent / VARIANTS_FILE))
    assert [line["parent"] for line in lines] == ["base.json", *(line["path"] for line in lines[:-1])]


def test_the_same_config_is_not_made_twice(base: Path) -> None:
    made = make(base, "ot.reg@mul=2")
    told = refused(base, "ot.reg@set=0.002")
    assert f"this very config exists already: {made.path.name}, made 2026-02-23 17:23" in told.message
    assert "mass too small" in told.message


def test_a_variant_that_a_crash_left_without_its_record_gets_one(base: Path) -> None:
    made = make(base, "ot.reg@mul=2")
    record = base.parent / VARIANTS_FILE
    record.write_bytes(b'{"torn": ')
    again = make(base, "ot.reg@mul=2")
    assert again.path == made.path
    assert [line["path"] for line in read_variant_records(record)] == [made.path.name]


def test_a_name_that_something_else_has_gets_more_digits(base: Path) -> None:
    made = make(base, "ot.reg@mul=2")
    made.path.write_text("mine\n")
    again = make(base, "ot.reg@mul=2")
    assert again.path.name == f"base_{made.digest[:7]}.json"
    assert made.path.read_text() == "mine\n"


def test_out(base: Path, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    made = make(base, "ot.reg@mul=2", out=tmp_path / "more" / "mine.json")
    assert made.path.exists()
    (line,) = read_variant_records(tmp_path / "more" / VARIANTS_FILE)
    assert (line["path"], line["parent"]) == ("mine.json", "../base.json")
    assert "exists already; nothing is overwritten" in refused(base, "ot.reg@mul=3", out=made.path).message
    assert "exists already; nothing is overwritten" in refused(base, "ot.reg@mul=3", out=base).message
    assert "there is no folder" in refused(base, "ot.reg@mul=3", out=tmp_path / "no" / "x.json").message
    assert "would be yaml, and its base is json" in refused(base, "ot.reg@mul=3", out=tmp_path / "x.yaml").message
    assert "is none of .json" in refused(base, "ot.reg@mul=3", out=tmp_path / "x").message


def test_a_dead_link_is_not_written_through(base: Path, tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to(tmp_path / "elsewhere.json")
    assert "exists already" in refused(base, "ot.reg@mul=3", out=tmp_path / "link.json").message
    assert not (tmp_path / "elsewhere.json").exists()


def test_all_that_is_wrong_is_told_at_once(base: Path) -> None:
    told = refused(base, "ot.windw@mul=2", "ot.reg@mul=2", "name@mul=2")
    assert told.message.splitlines() == [
        "2 of 3 changes can't be made:",
        "  ot.windw matches nothing in the config; the nearest: ot.window; an edit changes what is there: add a new key to the "
        "config first",
        "  name@mul=2: name is a text, and @mul needs a number; @set= gives it another value",
    ]
    assert refused(base, "ot.window@mul=1@max=8").message == "the variant would be the same config: ot.window stays 8"
    assert refused(base, "ot.reg@mul=2", reason=" ").message == "the reason is empty"
    assert refused(base).message == "there is nothing to change"


def test_bases_that_are_none(base: Path, tmp_path: Path) -> None:
    assert refused(tmp_path / "bse.json", "a@set=1").hint == f"did you mean {base}?"
    assert "is none of .json" in refused(tmp_path / "base", "a@set=1").message
    assert refused(base / "x.json", "a@set=1").message.startswith("there is no file")
    (tmp_path / "folder.json").mkdir()
    assert "is a folder" in refused(tmp_path / "folder.json", "a@set=1").message
    os.mkfifo(tmp_path / "pipe.json")
    assert "is no file" in refused(tmp_path / "pipe.json", "a@set=1").message
    (tmp_path / "bytes.yaml").write_bytes(b"a: \xff\n")
    assert "byte 4 is no UTF-8" in refused(tmp_path / "bytes.yaml", "a@set=1").message
    (tmp_path / "torn.json").write_text('{"a": 1')
    assert "line 1, column 8: a comma or } is missing" in refused(tmp_path / "torn.json", "a@set=1").message
    (tmp_path / "large.json").write_bytes(b" " * (LARGEST_BASE + 1))
    assert "that is no config" in refused(tmp_path / "large.json", "a@set=1").message


def test_a_file_system_without_links(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", link)
    made = make(base, "ot.reg@mul=2")
    assert json.loads(made.path.read_text())["ot"]["reg"] == 0.002
    assert sorted(path.name for path in base.parent.iterdir()) == ["base.json", made.path.name, VARIANTS_FILE]


def test_somebody_else_was_faster(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.link

    def link(partial: Path, path: Path) -> None:
        path.write_text("theirs")
        real(partial, path)

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(UsageError, match="nothing is overwritten"):
        make(base, "ot.reg@mul=2")
    assert not (base.parent / VARIANTS_FILE).exists()
    assert sorted(path.suffix for path in base.parent.iterdir()) == [".json", ".json"]


def test_a_disk_that_is_full(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(MusterError, match="could not be written: No space left on device"):
        make(base, "ot.reg@mul=2")
    assert [path.name for path in base.parent.iterdir()] == ["base.json"]


def test_bytes_of_the_base_survive(tmp_path: Path) -> None:
    path = tmp_path / "base.yaml"
    path.write_bytes("\ufeff# 注释\r\nlr: 1e-4  # small\r\n名: x\r\n".encode())
    made = make(path, "lr@mul=2")
    assert made.path.read_bytes() == "\ufeff# 注释\r\nlr: 0.0002  # small\r\n名: x\r\n".encode()


def test_what_json_can_not_say_is_told_as_text(tmp_path: Path) -> None:
    path = tmp_path / "base.toml"
    path.write_text("clip = inf\nborn = 2024-01-01\n")
    made = make(path, "clip@set=1")
    assert made_variant_as_json(made)["changes"][0]["old"] == "inf"
    json.dumps(made_variant_as_json(made), allow_nan=False)
