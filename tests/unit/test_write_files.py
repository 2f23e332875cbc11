"""The helper that writes every file of Muster's: whole, private, never through a link, under no name that can be guessed."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from muster.engine.ports.clock import SystemClock
from muster.engine.ports.probe import WatchBookState
from muster.engine.store.controller_files import ControllerLock, FileBallast, WatchBookFile
from muster.engine.store.decision_log import FileDecisionLog
from muster.engine.store.sqlite_store import SqliteStore
from muster.files import atomic_write
from muster.files.atomic_write import (
    PUBLIC_FILE,
    create_partial_file,
    make_private_folder,
    mode_no_wider_than,
    open_to_append,
    recorded_umask,
    write_atomically,
)
from muster.files.state_folder import close_state_permissions, refuse_links_in_state, ring_bell
from muster.hosts.local.launch_orders import LaunchBook
from muster.hosts.local.waker import LocalWaker
from muster.model.errors import UsageError

SOURCE = Path(atomic_write.__file__).parents[1]
WRITES = re.compile(
    r"""write_text\(|write_bytes\(|\.touch\(|getpid\(\)\}"\)|\bopen\((?!fd)[^()\n]*["'][wa]b?\+?["']|O_TRUNC|, 0o6[46]4"""
)
OWN_COPIES = {"hosts/local/shim.py", "hosts/local/guard.py"}  # they import nothing of Muster


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / "victim"
    path.write_text("mine")
    return path


def test_a_link_is_replaced_and_never_followed(tmp_path: Path, victim: Path) -> None:
    there = tmp_path / "there"
    there.symlink_to(victim)
    write_atomically(there, "new")
    assert (there.is_symlink(), there.read_text(), victim.read_text()) == (False, "new", "mine")


def test_names_that_could_be_guessed_are_not_used(tmp_path: Path, victim: Path) -> None:
    for name in (".there.partial", f".there.{os.getpid()}", ".there.new", ".there.tmp"):
        (tmp_path / name).symlink_to(victim)
    write_atomically(tmp_path / "there", b"new", sync=True)
    assert victim.read_text() == "mine"
    (fd, first), (other, second) = create_partial_file(tmp_path / "there"), create_partial_file(tmp_path / "there")
    os.close(fd)
    os.close(other)
    assert first != second
    assert re.fullmatch(rf"\.there\.[0-9a-f]{{12}}\.{os.getpid()}", first.name), (
        "`clean` asks the last part whether it lives"
    )


def test_what_fails_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_atomically(tmp_path / "there", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_modes_whatever_the_umask(tmp_path: Path) -> None:
    """In a process of its own: a umask is everybody's."""
    script = """
import os, sys
from pathlib import Path
from muster.files.atomic_write import *
from muster.files.atomic_write import PUBLIC_FILE
os.chdir(sys.argv[1])
os.umask(0)
write_atomically(Path("private"), "")
make_private_folder(Path("folder/in/it"), parents=True)
write_atomically(Path("exact"), "", mode=0o640, exact=True)
os.umask(0o027)
write_atomically(Path("people"), "", mode=PUBLIC_FILE)
make_public_folder(Path("for/people"), parents=True)
use_private_umask(0o002)
assert umask_of_caller() == 0o002 and os.umask(0o077) == 0o077
write_atomically(Path("asked"), "", mode=PUBLIC_FILE)
make_public_folder(Path("asked-folder"))
use_private_umask(None)
assert umask_of_caller() == 0o002
"""
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)
    found = {str(path.relative_to(tmp_path)): f"{mode_of(path):03o}" for path in tmp_path.rglob("*")}
    assert found == {
        "private": "600", "folder": "700", "folder/in": "700", "folder/in/it": "700", "exact": "640", "people": "640",
        "for": "750", "for/people": "750", "asked": "664", "asked-folder": "775",
    }  # fmt: skip


def test_a_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "here").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotADirectoryError):
        make_private_folder(tmp_path / "here")
    with pytest.raises(FileNotFoundError):
        make_private_folder(tmp_path / "gone" / "here")


def test_nothing_is_appended_to_what_is_no_plain_file(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "link").symlink_to(victim)
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(OSError, match=r"Too many levels|No such device|no plain file"):
            open_to_append(tmp_path / name)


def test_the_recorded_umask() -> None:
    assert [recorded_umask({"MUSTER_UMASK": text}) for text in ("0022", "002", "", "9", "rm -rf", "77777")] == [
        0o022, 0o002, None, None, None, None,
    ]  # fmt: skip


def test_a_copy_is_no_more_open(tmp_path: Path, victim: Path) -> None:
    victim.chmod(0o640)
    assert mode_no_wider_than(victim) == 0o640
    assert mode_no_wider_than(victim, tmp_path / "gone") == 0o640
    assert mode_no_wider_than() == PUBLIC_FILE


PLANTED = {
    "decisions.jsonl": lambda state: FileDecisionLog(state / "decisions.jsonl").open_locked(),
    "controller.lock": lambda state: ControllerLock(state, SystemClock()).take(),
    "launched": lambda state: LaunchBook(state / "launched").note("token"),
    "ballast": lambda state: FileBallast(state / "ballast").lay(),
    "watch.json": lambda state: WatchBookFile(state, "boot").save(WatchBookState("boot")),
    "bell": lambda state: (ring_bell(state / "bell"), LocalWaker(state / "bell")),
    "controller.log": lambda state: open_to_append(state / "controller.log"),
    "campaign.db": lambda state: (refuse_links_in_state(state), SqliteStore(state)),
    "campaigns": lambda state: make_private_folder(state / "campaigns"),
    "attempts": lambda state: make_private_folder(state / "attempts"),
    "anything": refuse_links_in_state,
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_link_planted_in_the_state_leads_nowhere(tmp_path: Path, victim: Path, name: str) -> None:
    state = tmp_path / ".muster"
    state.mkdir()
    (state / name).symlink_to(victim)
    try:
        PLANTED[name](state)
    except (OSError, UsageError):
        pass
    assert victim.read_text() == "mine"
    (state / name).unlink(missing_ok=True)
    (state / name).symlink_to(victim)
    with pytest.raises(UsageError, match=f"{name} in .muster is a link to '{victim}'.*nothing was changed"):
        refuse_links_in_state(state)


def test_only_ones_own_state_is_mended_and_none_that_all_could_write(tmp_path: Path) -> None:
    told = []
    for before in (0o755, 0o775, 0o777, 0o700):
        tmp_path.chmod(before)
        close_state_permissions(tmp_path)
        told.append(mode_of(tmp_path))
    tmp_path.chmod(0o700)
    assert told == [0o700, 0o700, 0o777, 0o700]


def test_everything_is_written_by_this_helper() -> None:
    """A new writer with a mode or a name of its own is found here."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        name = str(path.relative_to(SOURCE))
        if name not in {*OWN_COPIES, "files/atomic_write.py"} and not name.startswith("sim/"):
            found[name] = [line for line in path.read_text().splitlines() if WRITES.search(line)]
    found = {name: lines for name, lines in found.items() if lines}
    assert found == {}


def test_shim_and_guard_do_so_by_themselves() -> None:
    for name in OWN_COPIES:
        text = (SOURCE / name).read_text()
        creating = [line for line in re.split(r"\n(?=\s*(?:\w+ = )?os\.|\s*\w+ = )", text) if "O_CREAT" in line]
        assert creating
        for each in creating:
            assert "O_NOFOLLOW" in each or "O_EXCL" in each, each
        assert "0o644" not in text
