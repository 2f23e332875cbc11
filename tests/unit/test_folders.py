"""Folders that a run made: thousands deep, with links that go round in circles."""

from __future__ import annotations

import glob
import os
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.app.campaign.file_manifest import _walk_files
from muster.files.bounded_walk import DEEPEST_FOLDER, FoldersTooDeep, glob_paths, remove_tree, walk_folders
from muster.readers.checkpoints.whole_checkpoints import check_checkpoint
from muster.readers.file_watches import CheckpointWatch
from muster.readers.output_files import newest_paths_first, path_time

PATTERNS = (
    "**",
    "**/",
    "**/*",
    "*/*",
    "*/**",
    "a/**/b",
    "**/a",
    "*/",
    "**/*/",
    ".h/*/*",
    "[[]q]/*/*",
    "./*/*",
    "**/**/a",
    "**/a/**",
)


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    top = tmp_path_factory.mktemp("deep") / "checkpoint"
    nested(top, 1200)
    yield top
    remove_tree(top)


def nested(top: Path, levels: int, name: str = "d") -> None:
    top.mkdir()
    here = os.open(top, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("model.pt", os.O_WRONLY | os.O_CREAT, dir_fd=here))
    os.close(here)


def test_a_deep_checkpoint_is_none_for_certain(deep: Path) -> None:
    found = check_checkpoint(str(deep))
    assert (found.valid, found.unread) == (False, False)
    assert found.reason == f"it can't be read: its folders are nested more than {DEEPEST_FOLDER} deep"
    assert path_time(str(deep)) == float("-inf")


def test_deep_outputs_are_looked_at_as_far_as_they_make_sense(deep: Path) -> None:
    assert CheckpointWatch(f"{deep.parent}/**").look().whole is None
    assert newest_paths_first(f"{deep}/**/model.pt") == []
    assert newest_paths_first(f"{deep.parent}/*") == [str(deep)]
    assert next(entry.path for entry in _walk_files(deep, "output")).endswith("/d/model.pt")
    assert len(list(walk_folders(deep))) == DEEPEST_FOLDER + 1
    heard: list[OSError] = []
    list(walk_folders(deep, heard.append))
    assert [type(each) for each in heard] == [FoldersTooDeep]


@pytest.mark.parametrize("name", ["d", "d" * 250])
def test_a_tree_is_removed_however_deep_it_is(tmp_path: Path, name: str) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    nested(tmp_path / "top", 300, name)
    (tmp_path / "top" / "link").symlink_to(kept)
    remove_tree(tmp_path / "top")
    assert [each.name for each in tmp_path.iterdir()] == ["kept"]


def test_no_link_is_removed_through(tmp_path: Path) -> None:
    nested(tmp_path / "kept", 3)
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    remove_tree(tmp_path / "link")
    assert (tmp_path / "kept/d/d/d/model.pt").exists()


def test_links_that_go_round_in_circles_are_not_followed(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).symlink_to(".")
    (tmp_path / "model.pt").touch()
    began = time.process_time()
    assert glob_paths(f"{tmp_path}/**/model.pt") == [str(tmp_path / "model.pt")]
    assert glob_paths(f"{tmp_path}/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*") == []
    assert newest_paths_first(f"{tmp_path}/**/*.pt") == [str(tmp_path / "model.pt")]
    assert CheckpointWatch(f"{tmp_path}/**/*.pt").look().trouble == ""
    assert time.process_time() - began < 1


def test_folders_that_link_to_each_other_end(tmp_path: Path) -> None:
    for one in range(12):
        (tmp_path / f"d{one}").mkdir()
        for other in range(12):
            (tmp_path / f"d{one}" / f"l{other}").symlink_to(f"../d{other}")
    began = time.process_time()
    assert glob_paths(f"{tmp_path}/**/*.npz") == []
    assert time.process_time() - began < 4


def test_a_link_to_another_disk_is_followed(tmp_path: Path) -> None:
    (tmp_path / "disk/run/100").mkdir(parents=True)
    (tmp_path / "disk/run/100/model.pt").touch()
    (tmp_path / "output").mkdir()
    (tmp_path / "output/checkpoints").symlink_to(tmp_path / "disk/run")
    (tmp_path / "disk/run/latest").symlink_to("100")
    found = {f"{tmp_path}/output/checkpoints/{name}/model.pt" for name in ("100", "latest")}
    assert set(glob_paths(f"{tmp_path}/output/**/*.pt")) == found
    assert set(glob_paths(f"{tmp_path}/output/*/*/*.pt")) == found
    assert set(glob_paths("*/*/*.pt", tmp_path / "output")) == {
        os.path.relpath(each, tmp_path / "output") for each in found
    }


def test_other_folders_are_walked_and_globbed_as_python_does(tmp_path: Path) -> None:
    rng = random.Random(1)
    for number in range(8):
        top = tmp_path / str(number)
        top.mkdir()
        folders = [top]
        for _ in range(rng.randint(4, 25)):
            path = rng.choice(folders) / rng.choice(["a", "b", ".h", "c1", "x.npz", "[q]"])
            if not path.exists():
                if rng.random() < 0.6:
                    path.mkdir()
                    folders.append(path)
                else:
                    path.touch()
        assert _sorted(walk_folders(top)) == _sorted(os.walk(top))
        for pattern in PATTERNS:
            for asked, root in ((f"{top}/{pattern}", None), (pattern, top)):
                expected = set(glob.glob(asked, root_dir=root, recursive=True))  # noqa: PTH207
                files = {each for each in expected if each.endswith("/") and not Path(root or "", each).is_dir()}
                assert set(glob_paths(asked, root)) == expected - files, (pattern, root)
        shutil.rmtree(top)


def _sorted(walked: Iterator[tuple[str, list[str], list[str]]]) -> list[tuple[str, list[str], list[str]]]:
    return sorted((folder, sorted(folders), sorted(names)) for folder, folders, names in walked)
