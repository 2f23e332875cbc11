"""Files that appear one after the other: counted once each, at little cost, however many there are."""

import glob
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.readers import file_watches
from muster.readers.file_watches import ChunkWatch

needs_a_user = pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")


def watch(folder: Path, pattern: str = "replay/*.npz") -> ChunkWatch:
    return ChunkWatch(f"{glob.escape(str(folder))}/{pattern}")


def put(path: Path, data: bytes = b"x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def age(folder: Path) -> None:
    """As if nothing had come or gone for long."""
    os.utime(folder, (1_000_000_000, 1_000_000_000))


def test_nothing_yet(tmp_path: Path) -> None:
    seen = watch(tmp_path)
    look = seen.look()
    assert (look.count, look.present, look.newest, look.trouble) == (0, 0, None, "")
    put(tmp_path / "replay" / "a.npz")
    assert seen.look().count == 1


def test_new_files_count_and_others_do_not(tmp_path: Path) -> None:
    seen = watch(tmp_path)
    for name in ("1.npz", "2.npz", "2.npz.tmp", ".hidden.npz"):
        put(tmp_path / "replay" / name)
    look = seen.look()
    assert (look.count, look.present) == (2, 2)
    assert seen.look().count == 2
    put(tmp_path / "replay" / "3.npz")
    look = seen.look()
    assert (look.count, look.present, look.newest) == (3, 3, str(tmp_path / "replay" / "3.npz"))


def test_deleted_files_stay_counted(tmp_path: Path) -> None:
    seen = watch(tmp_path)
    for n in range(10):
        put(tmp_path / "replay" / f"{n}.npz")
    assert seen.look().count == 10
    for n in range(8):
        (tmp_path / "replay" / f"{n}.npz").unlink()
    put(tmp_path / "replay" / "10.npz")
    look = seen.look()
    assert (look.count, look.present) == (11, 3)
    (tmp_path / "replay" / "10.npz").unlink()
    look = seen.look()
    assert (look.count, look.present, look.newest) == (11, 2, str(tmp_path / "replay" / "9.npz"))


def test_one_file_that_grows_is_progress(tmp_path: Path) -> None:
    path = put(tmp_path / "replay" / "a.npz", b"x")
    seen = watch(tmp_path)
    assert [seen.look().count for _ in range(3)] == [1, 1, 1]
    path.write_bytes(b"xx")
    assert [seen.look().count for _ in range(2)] == [2, 2]
    os.utime(path)
    assert seen.look().count == 2  # touched: no progress
    path.write_bytes(b"")
    assert seen.look().count == 2
    path.write_bytes(b"x")
    assert seen.look().count == 3


def test_a_file_replaced_by_another_is_progress(tmp_path: Path) -> None:
    path = put(tmp_path / "replay" / "a.npz", b"x")
    seen = watch(tmp_path)
    seen.look()
    put(tmp_path / "new", b"y").replace(path)
    assert seen.look().count == 2


def test_any_of_a_few_files_may_grow(tmp_path: Path) -> None:
    paths = [put(tmp_path / "replay" / f"worker{n}.npz") for n in range(8)]
    seen = watch(tmp_path)
    assert seen.look().count == 8
    for more, path in enumerate(paths, 9):
        path.write_bytes(b"grown")
        assert seen.look().count == more


def test_numbers_go_by_their_value(tmp_path: Path) -> None:
    for n in range(200):
        os.utime(put(tmp_path / "replay" / f"chunk_{n}.npz"), (1000, 1000))
    newest = watch(tmp_path).look().newest
    assert newest == str(tmp_path / "replay" / "chunk_199.npz")


@pytest.mark.parametrize(
    "pattern",
    [
        "*.npz",
        "a/*.npz",
        "*/*.npz",
        "**/*.npz",
        "**",
        "a/**/z/*.npz",
        "**/z/**/*.npz",
        "*/z/?.npz",
        "a/z/1.npz",
        "[ab]/*/1*",
        ".h/*",
    ],
)
def test_as_glob_does(tmp_path: Path, pattern: str) -> None:
    for name in (
        "1.npz",
        "a/1.npz",
        "a/.2.npz",
        "a/z/1.npz",
        "a/z/y/2.npz",
        "a/y/z/3.npz",
        "b/z/1.txt",
        ".h/1.npz",
        "a[1]/4.npz",
    ):
        put(tmp_path / name)
    found = set(glob.glob(str(tmp_path / pattern), recursive=True)) - {f"{tmp_path}/"}  # noqa: PTH207
    assert watch(tmp_path, pattern).look().present == len(found)


def test_names_that_look_like_globs(tmp_path: Path) -> None:
    put(tmp_path / "run[1]*" / "replay" / "a.npz")
    assert watch(tmp_path / "run[1]*").look().count == 1


def test_folders_that_appear_vanish_and_come_back(tmp_path: Path) -> None:
    seen = watch(tmp_path, "**/*.npz")
    put(tmp_path / "a" / "1.npz")
    assert seen.look().count == 1
    put(tmp_path / "b" / "deep" / "1.npz")
    put(tmp_path / "b" / "deep" / "2.npz")
    assert (seen.look().count, seen.look().present) == (3, 3)
    (tmp_path / "b").rename(tmp_path.parent / "away")
    look = seen.look()
    assert (look.count, look.present, look.trouble) == (3, 1, "")
    (tmp_path.parent / "away").rename(tmp_path / "b")
    assert (seen.look().count, seen.look().present) == (3, 3)  # the same folder: nothing in it is new
    shutil.rmtree(tmp_path / "a")
    put(tmp_path / "a" / "1.npz")
    assert seen.look().present == 3


def test_links_count_once_and_circles_end(tmp_path: Path) -> None:
    put(tmp_path / "run" / "1.npz")
    (tmp_path / "latest").symlink_to(tmp_path / "run")
    (tmp_path / "run" / "round").symlink_to(tmp_path)
    seen = watch(tmp_path, "**/*.npz")
    assert (seen.look().count, seen.look().present) == (1, 1)
    (tmp_path / "another").symlink_to(tmp_path / "run")
    assert seen.look().count == 1


def test_a_folder_that_is_unreadable_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "replay" / "1.npz")
    seen = watch(tmp_path)
    assert seen.look().count == 1
    put(tmp_path / "replay" / "2.npz")
    with monkeypatch.context() as patch:
        patch.setattr(file_watches.os, "listdir", _denied)
        look = seen.look()
    assert (look.count, look.present) == (1, 1)
    assert look.trouble == f"{tmp_path / 'replay'} can't be read: Permission denied"
    look = seen.look()
    assert (look.count, look.trouble) == (2, "")


def _denied(*_: object) -> Any:
    raise PermissionError(13, "Permission denied")


@needs_a_user
def test_a_folder_that_may_not_be_read(tmp_path: Path) -> None:
    folder = put(tmp_path / "replay" / "1.npz").parent
    folder.chmod(0)
    try:
        assert "Permission denied" in watch(tmp_path).look().trouble
    finally:
        folder.chmod(0o700)


def test_more_folders_than_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_watches, "_MOST_FOLDERS", 3)
    for n in range(5):
        put(tmp_path / str(n) / "1.npz")
    assert watch(tmp_path, "*/*.npz").look().trouble == "more than 3 folders fit: the rest is not looked at"


def test_an_unchanged_folder_is_not_listed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "replay" / "1.npz")
    age(tmp_path / "replay")
    seen, listings = watch(tmp_path), []
    listdir = os.listdir
    monkeypatch.setattr(file_watches.os, "listdir", lambda path: listings.append(path) or listdir(path))
    for _ in range(24):
        assert seen.look().count == 1
    assert len(listings) in (2, 3)  # the first, and now and then all the same


def test_a_folder_that_has_just_changed_is_listed_again(tmp_path: Path) -> None:
    """Its time is coarse: a file that comes in the same tick as the listing does not change it."""
    folder = put(tmp_path / "replay" / "1.npz").parent
    seen = watch(tmp_path)
    assert seen.look().count == 1
    stamp = folder.stat().st_mtime_ns
    put(folder / "2.npz")
    os.utime(folder, ns=(stamp, stamp))
    assert seen.look().count == 2


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 12)), max_size=30))
def test_the_count_never_falls_and_the_present_ones_are_true(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[bool, int]]
) -> None:
    folder = tmp_path_factory.mktemp("any", numbered=True)
    seen, last, here, ever = watch(folder, "**/*.npz"), 0, set(), 0
    for appears, n in steps:
        path = folder / f"d{n % 3}" / f"{n}.npz"
        if appears:
            ever += n not in here
            put(path, b"x")
            here.add(n)
        else:
            path.unlink(missing_ok=True)
            here.discard(n)
        look = seen.look()
        assert look.count >= last
        assert look.present == len(here)
        assert (look.newest is None) == (not here)
        last = look.count
    assert last >= ever


def test_twenty_thousand_files(tmp_path: Path) -> None:
    folder = tmp_path / "replay"
    folder.mkdir()
    for n in range(20_000):
        os.mknod(folder / f"chunk_{n:06d}.npz")
    seen = watch(tmp_path)
    assert seen.look().count == 20_000
    for n in range(7):  # how fast is measured in bench
        os.mknod(folder / f"chunk_{20_000 + n:06d}.npz")
        assert seen.look().count == 20_001 + n
        age(folder)
        assert seen.look().count == 20_001 + n
