"""Hashes that are remembered, and never told of a file that has changed since."""

import hashlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.readers import file_hashes
from muster.readers.file_hashes import HASH_CACHE_FILE, SMALL_FILE_BYTES, HashCache

LARGE = b"x" * (SMALL_FILE_BYTES + 1)


def later(seconds: float = 60.0) -> Callable[[], float]:
    """A clock for which every file is old."""
    return lambda: time.time() + seconds


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def remembered(folder: Path) -> dict[str, list[object]]:
    files: dict[str, list[object]] = json.loads((folder / HASH_CACHE_FILE).read_text())["files"]
    return files


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that were read."""
    seen: list[str] = []
    real = file_hashes._hash_file
    monkeypatch.setattr(file_hashes, "_hash_file", lambda name, now: (seen.append(name), real(name, now))[1])
    return seen


@pytest.mark.parametrize("data", [b"", b"a", LARGE, b"y" * ((1 << 20) + 7)])
def test_a_file_has_the_hash_that_sha256sum_prints(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "f").write_bytes(data)
    assert HashCache(tmp_path).sha256(tmp_path / "f") == sha(data)


def test_it_is_read_once_even_by_the_next_process(tmp_path: Path, reads: list[str]) -> None:
    file = tmp_path / "f"
    file.write_bytes(LARGE)
    first = HashCache(tmp_path, now=later())
    assert first.sha256(file) == first.sha256(str(file)) == sha(LARGE)
    first.save()
    assert HashCache(tmp_path, now=later()).sha256(file) == sha(LARGE)
    assert reads == [str(file)]


def test_what_changed_a_moment_ago_is_told_and_not_remembered(tmp_path: Path, reads: list[str]) -> None:
    file = tmp_path / "f"
    file.write_bytes(LARGE)
    os.utime(file, (0, 0))  # a forged time does not help: the time of the change can't be forged
    cache = HashCache(tmp_path)
    assert cache.sha256(file) == cache.sha256(file) == sha(LARGE)
    assert len(reads) == 2
    cache.save()
    assert not (tmp_path / HASH_CACHE_FILE).exists()


def test_same_size_and_same_mtime_but_other_bytes(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(LARGE)
    cache = HashCache(tmp_path, now=later())
    cache.sha256(file)
    facts, other = file.stat(), LARGE[:-1] + b"z"
    while file.stat().st_ctime_ns == facts.st_ctime_ns:  # the test's clock lies: here the tick must pass
        file.write_bytes(other)
        os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert cache.sha256(file) == sha(other)


def test_a_file_that_took_its_place(tmp_path: Path) -> None:
    file, other = tmp_path / "f", tmp_path / "g"
    file.write_bytes(LARGE)
    other.write_bytes(LARGE[:-1] + b"z")
    cache = HashCache(tmp_path, now=later())
    cache.sha256(file)
    os.utime(other, ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns))
    other.replace(file)
    assert cache.sha256(file) == sha(LARGE[:-1] + b"z")


def test_a_file_that_grows_while_it_is_read_is_not_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "f"
    file.write_bytes(LARGE)

    def grow() -> float:  # asked between the look at the file and its first byte
        with open(file, "ab") as more:
            more.write(b"more")
        return time.time() + 60

    cache = HashCache(tmp_path, now=grow)
    cache.sha256(file)
    cache.save()
    assert not (tmp_path / HASH_CACHE_FILE).exists()


def test_gone_unreadable_or_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "dangling").symlink_to("nowhere")
    cache = HashCache(tmp_path)
    assert cache.sha256(tmp_path / "gone") is None
    assert cache.sha256(tmp_path / "pipe") is None  # and nobody waits for a writer
    assert cache.sha256(tmp_path / "dangling") is None
    (tmp_path / "mine").write_text("a")
    (tmp_path / "mine").chmod(0)
    if os.geteuid() != 0:
        assert cache.sha256(tmp_path / "mine") is None


def test_a_link_has_the_hash_of_what_it_leads_to_now(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "b").write_bytes(b"b")
    link = tmp_path / "latest"
    link.symlink_to("a")
    cache = HashCache(tmp_path, now=later())
    assert cache.sha256(link) == sha(b"a")
    link.unlink()
    link.symlink_to("b")
    assert cache.sha256(link) == sha(b"b")


def tree(root: Path) -> Path:
    (root / "sub").mkdir(parents=True)
    (root / "a").write_bytes(b"a")
    (root / "sub" / "b").write_bytes(b"b")
    (root / "last").symlink_to("sub")
    (root / "round").symlink_to(".")
    (root / "dangling").symlink_to("nowhere")
    os.mkfifo(root / "pipe")
    return root


def test_equal_folders_have_equal_hashes_wherever_they_lie(tmp_path: Path) -> None:
    cache = HashCache(tmp_path)
    one, two = cache.sha256(tree(tmp_path / "one")), cache.sha256(tree(tmp_path / "two"))
    assert one is not None
    assert one == two


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "sub" / "b").write_bytes(b"c"),
        lambda root: (root / "sub" / "b").rename(root / "sub" / "c"),
        lambda root: (root / "sub" / "b").rename(root / "b"),
        lambda root: (root / "sub" / "new").touch(),
        lambda root: (root / "empty").mkdir(),
        lambda root: (root / "pipe").unlink(),
        lambda root: ((root / "last").unlink(), (root / "last").symlink_to("elsewhere")),
    ],
)
def test_any_change_in_a_folder_changes_its_hash(tmp_path: Path, change: Callable[[Path], object]) -> None:
    root, cache = tree(tmp_path / "one"), HashCache(tmp_path)
    before = cache.sha256(root)
    change(root)
    after = cache.sha256(root)
    assert after is not None
    assert after != before


def test_a_folder_is_unknown_when_one_of_its_files_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tree(tmp_path / "one")

    def refuse(name: str, now: object) -> tuple[str, None]:
        raise PermissionError(name)

    monkeypatch.setattr(file_hashes, "_hash_file", refuse)
    assert HashCache(tmp_path).sha256(root) is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"files": 3}', '{"files": {"/f": [1, 2]}}', '{"files": {"/f": null}}']
)
def test_a_damaged_memory_is_forgotten(tmp_path: Path, text: str) -> None:
    (tmp_path / HASH_CACHE_FILE).write_text(text)
    (tmp_path / "f").write_bytes(LARGE)
    cache = HashCache(tmp_path, now=later())
    assert cache.sha256(tmp_path / "f") == sha(LARGE)
    cache.save()
    assert list(remembered(tmp_path)) == [f"{tmp_path.name}/f"], "relative to the campaign's folder: it may move"


def test_of_too_many_the_largest_that_were_asked_for_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_hashes, "MOST_HASHES", 2)
    for number in range(4):
        (tmp_path / f"f{number}").write_bytes(LARGE + b"x" * number)
    first = HashCache(tmp_path, now=later())
    first.sha256(tmp_path / "f3")
    first.save()
    second = HashCache(tmp_path, now=later())
    for number in range(3):
        second.sha256(tmp_path / f"f{number}")
    second.save()
    assert sorted(remembered(tmp_path)) == [f"{tmp_path.name}/f1", f"{tmp_path.name}/f2"]


def test_small_files_are_not_remembered(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(LARGE[:-1])
    cache = HashCache(tmp_path, now=later())
    cache.sha256(tmp_path / "f")
    cache.save()
    assert not (tmp_path / HASH_CACHE_FILE).exists()


def test_a_folder_that_is_gone_costs_nothing_but_the_memory(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(LARGE)
    cache = HashCache(tmp_path / "gone", now=later())
    assert cache.sha256(tmp_path / "f") == sha(LARGE)
    cache.save()
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    file = tmp_path / os.fsdecode(b"\xff\xfe")
    file.write_bytes(LARGE)
    cache = HashCache(tmp_path, now=later())
    cache.sha256(file)
    cache.save()
    assert HashCache(tmp_path)._load().keys() == {str(file)}


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.binary(max_size=4), st.booleans()), max_size=12))
def test_whatever_is_written_and_asked_the_hash_is_that_of_now(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, bytes, bool]]
) -> None:
    """By a clock that never lags: nothing is ever old enough to be remembered wrongly."""
    folder = tmp_path_factory.mktemp("h")
    cache = HashCache(folder)
    for number, end, again in steps:
        file = folder / f"f{number}"
        file.write_bytes(LARGE + end)
        assert cache.sha256(file) == sha(LARGE + end)
        if again:
            cache.save()
            cache = HashCache(folder)
