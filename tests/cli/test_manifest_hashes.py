"""`muster manifest` with hashes: what sha256sum would print, null where there are no bytes, its own memory listed."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import time
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from muster.app.campaign.file_manifest import ManifestEntry, add_file_hashes, refresh_state_file
from muster.readers.file_hashes import HASH_CACHE_FILE, SMALL_FILE_BYTES, HashCache
from support.camp import Camp

SCHEMA = Path(__file__).parents[2] / "docs" / "schemas" / "manifest.schema.json"
TEXT = """
muster: 1
campaign: files
axes: {seed: [0]}
slots: {gpus: 0, cpus: 1}
jobs:
  train:
    axes: [seed]
    command: >-
      /bin/sh -c 'echo 12345 > {out}/result.txt; ln -s result.txt {out}/latest; mkfifo {out}/pipe'
"""


def fitting(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    Draft202012Validator(json.loads(SCHEMA.read_text())).validate(rows)
    return {row["path"]: row for row in rows}


@pytest.fixture
def done(camp: Camp) -> Camp:
    camp.write(TEXT)
    camp("up", code=0)
    camp.until(lambda: camp.controller() is None)
    return camp


def test_hashes_are_those_of_the_bytes(done: Camp) -> None:
    rows = fitting(done.json("manifest", code=0))
    out = done.folder("train/0") / "out"
    assert rows[str(out / "result.txt")]["sha256"] == hashlib.sha256(b"12345\n").hexdigest()
    assert rows[str(out / "latest")]["sha256"] is None
    assert rows[str(out / "pipe")]["sha256"] is None
    log = done.root / ".muster" / "decisions.jsonl"
    assert rows[str(log)]["sha256"] == hashlib.sha256(log.read_bytes()).hexdigest()
    plain = [row for path, row in rows.items() if Path(path).is_file() and not Path(path).is_symlink()]
    assert all(row["sha256"] or row["path"].endswith(HASH_CACHE_FILE) for row in plain)


def test_people_see_the_beginning_of_a_hash(done: Camp) -> None:
    text = done("manifest", code=0).stdout
    short = hashlib.sha256(b"12345\n").hexdigest()[:12]
    assert f"         6 B  {short}  {done.folder('train/0') / 'out' / 'result.txt'}" in text
    assert f"  {'-':<12}  {done.folder('train/0') / 'out' / 'pipe'}" in text


def test_without_hashes_nothing_is_read_or_written(done: Camp) -> None:
    rows = fitting(done.json("manifest", "--no-hashes", code=0))
    assert {row["sha256"] for row in rows.values()} == {None}
    assert not (done.root / ".muster" / HASH_CACHE_FILE).exists()
    assert f"6 B  {done.folder('train/0') / 'out' / 'result.txt'}" in done("manifest", "--no-hashes", code=0).stdout


def test_its_own_memory_is_listed_too(done: Camp) -> None:
    memory = done.root / ".muster" / HASH_CACHE_FILE
    memory.write_text("{}")  # an older call's
    assert fitting(done.json("manifest", code=0))[str(memory)]["sha256"] is None


def test_a_memory_that_was_made_just_now_has_its_place_in_the_list(tmp_path: Path) -> None:
    state, memory = tmp_path / ".muster", tmp_path / ".muster" / HASH_CACHE_FILE
    big = state / "attempts" / "big"
    big.parent.mkdir(parents=True)
    big.write_bytes(b"x" * (SMALL_FILE_BYTES + 1))
    cache = HashCache(state, now=lambda: time.time() + 60)
    entries = [ManifestEntry(str(state / name), 1, "state") for name in ("attempts/big", "preflight.json")]
    hashed = add_file_hashes(entries, cache.sha256)
    cache.save()
    listed = refresh_state_file(hashed, memory)
    assert [Path(entry.path).name for entry in listed] == ["big", HASH_CACHE_FILE, "preflight.json"]
    assert [entry.sha256 is None for entry in listed] == [False, True, True]
    assert listed[1].bytes == memory.stat().st_size


def test_the_list_stays_in_order() -> None:
    entries = [
        ManifestEntry("/c/.muster/a", 1, "state"),
        ManifestEntry("/c/.muster/z", 1, "state"),
        ManifestEntry("/c/a", 1, "report"),
    ]
    assert refresh_state_file(entries, Path("/c/.muster/gone")) == entries
    heard: list[int] = []
    hashed = add_file_hashes(
        [*entries, ManifestEntry("/c/l", 7, "output", plain=False)], lambda path: path[-1], heard.append
    )
    assert [entry.sha256 for entry in hashed] == ["a", "z", "a", None]
    assert heard == [1, 1, 1, 7]


def test_a_bar_only_on_a_terminal_and_where_much_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from muster.faces.cli import manifest

    leader, follower = pty.openpty()
    with open(follower, "w") as terminal, os.fdopen(leader, "rb", buffering=0) as seen:
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setenv("TERM", "xterm")
        with manifest._hash_progress_bar() as begin:
            begin(3, manifest.MUCH_TO_HASH - 1)(5)
        terminal.write("nothing before")
        terminal.flush()
        assert seen.read(1000).decode().endswith("nothing before")
        with manifest._hash_progress_bar() as begin:
            begin(3, manifest.MUCH_TO_HASH)(manifest.MUCH_TO_HASH)
        text = b""
        while b"hashing 3 files" not in text:
            text += seen.read(1000)
