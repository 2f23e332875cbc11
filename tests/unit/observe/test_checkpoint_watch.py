"""Checkpoints of a living run: each is opened once, whole ones count, and nothing else does."""

import io
import os
import pickle
import zipfile
from pathlib import Path

import pytest

from muster.readers import file_watches
from muster.readers.checkpoints.whole_checkpoints import CheckpointReading
from muster.readers.file_watches import CheckpointWatch

WHOLE = pickle.dumps({"w": list(range(100))})


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the checkpoints that were opened, in order."""
    names: list[str] = []
    really = file_watches.check_checkpoint

    def note(path: str) -> CheckpointReading:
        names.append(os.path.basename(path))  # noqa: PTH119
        return really(path)

    monkeypatch.setattr(file_watches, "check_checkpoint", note)
    return names


def put(path: Path, data: bytes = WHOLE, at: int | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    if at is not None:
        os.utime(path, (at, at))
    return path


def zipped(value: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("data.pkl", value)
    return file.getvalue()


def test_nothing_yet(tmp_path: Path) -> None:
    look = CheckpointWatch(str(tmp_path / "checkpoint.ckpt")).look()
    assert (look.count, look.whole, look.broken, look.trouble) == (0, None, None, "")


def test_one_that_is_overwritten_is_opened_when_it_changed(tmp_path: Path, opened: list[str]) -> None:
    path = put(tmp_path / "checkpoint.ckpt", zipped("1"), at=1000)
    watch = CheckpointWatch(str(path))
    for _ in range(3):
        look = watch.look()
        assert (look.count, look.whole) == (1, str(path))
    assert "zip" in look.how
    assert len(opened) == 1
    put(path, zipped("2"), at=1060)
    assert [watch.look().count for _ in range(2)] == [2, 2]
    put(path, zipped("3"), at=1000)  # the clock was set back: it is another one all the same
    assert watch.look().count == 3
    assert len(opened) == 3


def test_half_written_ones_do_not_count_and_are_said(tmp_path: Path, opened: list[str]) -> None:
    put(tmp_path / "1.ckpt", at=1000)
    watch = CheckpointWatch(str(tmp_path / "*.ckpt"))
    assert watch.look().count == 1
    put(tmp_path / "2.ckpt", WHOLE[:50], at=1060)
    look = watch.look()
    assert (look.count, look.whole, look.broken) == (1, str(tmp_path / "1.ckpt"), str(tmp_path / "2.ckpt"))
    assert look.reason
    assert watch.look() == look
    assert opened == ["1.ckpt", "2.ckpt"]
    put(tmp_path / "2.ckpt", WHOLE, at=1061)
    look = watch.look()
    assert (look.count, look.whole, look.broken) == (2, str(tmp_path / "2.ckpt"), None)


def test_only_broken_ones(tmp_path: Path) -> None:
    put(tmp_path / "1.ckpt", b"")
    look = CheckpointWatch(str(tmp_path / "*.ckpt")).look()
    assert (look.count, look.whole, look.reason) == (0, None, "it is empty (0 bytes)")


def test_deleting_the_newest_is_no_progress(tmp_path: Path) -> None:
    for n in range(1, 4):
        put(tmp_path / f"{n}.ckpt", at=1000 * n)
    watch = CheckpointWatch(str(tmp_path / "*.ckpt"))
    assert watch.look().count == 1
    (tmp_path / "3.ckpt").unlink()
    look = watch.look()
    assert (look.count, look.whole) == (1, str(tmp_path / "2.ckpt"))
    put(tmp_path / "4.ckpt", at=4000)
    assert watch.look().count == 2
    for path in tmp_path.iterdir():
        path.unlink()
    assert (watch.look().count, watch.look().whole) == (2, None)


def test_a_new_one_counts_whatever_the_clock_says(tmp_path: Path) -> None:
    put(tmp_path / "1.ckpt", at=2_000_000_000)
    watch = CheckpointWatch(str(tmp_path / "*.ckpt"))
    watch.look()
    put(tmp_path / "2.ckpt", WHOLE[:9], at=1000)
    assert watch.look().count == 1
    put(tmp_path / "2.ckpt", at=1000)
    look = watch.look()
    assert (look.count, look.whole) == (2, str(tmp_path / "2.ckpt"))
    assert watch.look().count == 2


def test_folders_with_a_link_to_the_last(tmp_path: Path, opened: list[str]) -> None:
    """As LeRobot saves them."""
    folder = tmp_path / "checkpoints"
    watch = CheckpointWatch(f"{folder}/*/")
    for count, step in enumerate(("000100", "000200", "000300"), 1):
        put(folder / step / "pretrained_model" / "model.pkl")
        put(folder / step / "training_state" / "step.json", b'{"step": 1}')
        (folder / "last").unlink(missing_ok=True)
        (folder / "last").symlink_to(step)
        for _ in range(2):
            look = watch.look()
            assert (look.count, look.whole) == (count, str(folder / step))
    assert look.how == "folder of 2 files"
    assert opened == ["000100", "000200", "000300"]


def test_only_the_link(tmp_path: Path) -> None:
    watch = CheckpointWatch(str(tmp_path / "last"))
    for count, name in enumerate(("a", "b"), 1):
        put(tmp_path / name / "w.pkl")
        (tmp_path / "last").unlink(missing_ok=True)
        (tmp_path / "last").symlink_to(name)
        assert (watch.look().count, watch.look().count) == (count, count)
    (tmp_path / "last").unlink()
    (tmp_path / "last").symlink_to("nowhere")
    look = watch.look()
    assert (look.count, look.reason) == (2, "a link that leads nowhere")


def test_a_folder_whose_files_change_deep_inside(tmp_path: Path) -> None:
    put(tmp_path / "ckpt" / "deep" / "a.pkl", at=1000)
    watch = CheckpointWatch(str(tmp_path / "ckpt"))
    assert watch.look().count == 1
    put(tmp_path / "ckpt" / "deep" / "a.pkl", at=1060)
    assert watch.look().count == 2


def test_an_unfinished_folder(tmp_path: Path) -> None:
    """As orbax saves them: under a temporary name, then renamed."""
    temporary = put(tmp_path / "5.orbax-checkpoint-tmp" / "a.pkl").parent
    watch = CheckpointWatch(str(tmp_path / "*"))
    assert (watch.look().count, watch.look().broken) == (0, str(temporary))
    temporary.rename(tmp_path / "5")
    assert (watch.look().count, watch.look().whole) == (1, str(tmp_path / "5"))


def test_what_can_not_be_read_abstains_and_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "1.ckpt", at=1000)
    watch = CheckpointWatch(str(tmp_path / "*.ckpt"))
    watch.look()
    put(tmp_path / "2.ckpt", at=2000)
    unread = CheckpointReading(False, "", "it can't be read: Input/output error", unread=True)
    with monkeypatch.context() as patch:
        patch.setattr(file_watches, "check_checkpoint", lambda _: unread)
        look = watch.look()
    assert (look.count, look.whole) == (1, str(tmp_path / "1.ckpt"))
    assert look.trouble == f"{tmp_path / '2.ckpt'}: it can't be read: Input/output error"
    look = watch.look()
    assert (look.count, look.trouble) == (2, "")


def test_errors_of_the_file_system_never_escape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "1.ckpt")
    watch = CheckpointWatch(str(tmp_path / "*.ckpt"))

    def stale(*_: object) -> None:
        raise OSError(116, "Stale file handle")

    monkeypatch.setattr(file_watches, "_stamp_of_path", stale)
    assert watch.look().trouble == "Stale file handle"
    monkeypatch.undo()
    assert (watch.look().count, watch.look().count) == (1, 1)


def test_several_between_two_looks_and_a_marker_that_is_always_newest(tmp_path: Path) -> None:
    watch = CheckpointWatch(str(tmp_path / "*"))
    put(tmp_path / "1.ckpt", at=1000)
    put(tmp_path / "done", b"", at=1001)
    look = watch.look()
    assert (look.count, look.whole, look.broken) == (1, str(tmp_path / "1.ckpt"), str(tmp_path / "done"))
    put(tmp_path / "2.ckpt", at=2000)
    put(tmp_path / "3.ckpt", at=3000)
    put(tmp_path / "done", b"", at=3001)
    look = watch.look()
    assert (look.count, look.whole) == (3, str(tmp_path / "3.ckpt"))
    assert watch.look().count == 3


def test_many_old_folders_are_not_looked_into(tmp_path: Path, opened: list[str]) -> None:
    for n in range(20):
        put(tmp_path / f"{n:02d}" / "w.pkl", at=1000 + n)
        os.utime(tmp_path / f"{n:02d}", (1000 + n, 1000 + n))
    watch = CheckpointWatch(str(tmp_path / "*"))
    assert (watch.look().count, watch.look().whole) == (1, str(tmp_path / "19"))
    for n in range(19, 2, -1):  # the newer ones are deleted: older ones come into sight, none of them is new
        (tmp_path / f"{n:02d}" / "w.pkl").unlink()
        (tmp_path / f"{n:02d}").rmdir()
        look = watch.look()
        assert (look.count, look.whole) == (1, str(tmp_path / f"{n - 1:02d}"))
