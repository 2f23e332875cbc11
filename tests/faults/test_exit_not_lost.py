"""How a run ended is known to its shim alone: whatever the system refuses, it is written somewhere that readers know."""

import errno
import json
import shutil
from pathlib import Path

import pytest
from fault_world import World, until
from test_shim_corners import WAIT, Lone, ended, let_go

from muster.engine.ports.clock import SystemClock
from muster.files.process_identity import read_boot_id
from muster.hosts.local.attempt_probe import AttemptProbe
from muster.hosts.local.launch_orders import LaunchBook, LocalTraces, refuge_folders
from muster.model.attempt import Attempt
from muster.model.attempt_snapshot import AttemptSnapshot, ProofReading

REFUSED = [errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EROFS, errno.ESTALE]

# `rename` and `open` fail for exit.json, in the attempt's own folder, as often as LEFT says.
REFUSE = """
LEFT = [{times}]
def refuses(call):
    def refused(path, *words, **more):
        folder = more.get("dir_fd", more.get("src_dir_fd"))
        ours = folder is not None and os.readlink(f"/proc/self/fd/{{folder}}") == sys.argv[3]
        if ours and str(path).startswith(".exit.json") and LEFT[0]:
            LEFT[0] -= 1
            raise OSError({number}, "refused")
        return call(path, *words, **more)
    return refused
os.open, os.rename = refuses(os.open), refuses(os.rename)
shim.EXIT_S = {patience}
shim.ROOM_S = 0.05
"""


@pytest.fixture
def lone(world: World) -> Lone:
    return Lone.on_disk(world)


def look(lone: Lone) -> AttemptSnapshot:
    """As a controller looks that has launched it."""
    attempt = Attempt("train/0", 1, lone.token, 1, (), "", "", SystemClock().boot() - 10, read_boot_id())
    book = LaunchBook(lone.world.state / "launched")
    book.note(lone.token)
    traces = LocalTraces(lone.world.state, book)
    probe = AttemptProbe(lambda *_: lone.folder, SystemClock(), lambda *_: ProofReading(True), traces=traces)
    return probe.look([attempt])[attempt.key]


def places(lone: Lone, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    monkeypatch.setenv("MUSTER_HOME", str(lone.world.home))
    return refuge_folders(lone.world.state, lone.token)


@pytest.mark.parametrize("number", REFUSED, ids=errno.errorcode.get)
def test_an_error_that_passes_loses_nothing(lone: Lone, number: int) -> None:
    shim = lone.start("exit 7", hurt=REFUSE.format(times=3, number=number, patience=60))
    assert lone.exit()["code"] == 7
    assert ended(shim) == 0
    assert not list(lone.folder.glob(".exit.json*")), "nothing half written stays"


@pytest.mark.parametrize("number", REFUSED, ids=errno.errorcode.get)
def test_an_error_that_stays_moves_the_exit_elsewhere(lone: Lone, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    known = places(lone, monkeypatch)
    shim = lone.start("exit 7", hurt=REFUSE.format(times=10**6, number=number, patience=0.3), refuges=known)
    assert ended(shim) == 0
    assert not (lone.folder / "exit.json").exists()
    seen = look(lone)
    assert seen.exit
    assert (seen.started, seen.exit.code) == ("yes", 7)


def test_where_the_campaign_can_not_be_written_at_all_its_home_can(lone: Lone, monkeypatch: pytest.MonkeyPatch) -> None:
    known = places(lone, monkeypatch)
    lone.world.home.mkdir(exist_ok=True)
    Path(known[0]).parent.write_text("no folder can be made here")
    shim = lone.start("exit 7", hurt=REFUSE.format(times=10**6, number=errno.EROFS, patience=0.3), refuges=known)
    assert ended(shim) == 0
    assert json.loads((Path(known[1]) / "exit.json").read_text())["code"] == 7
    found = look(lone).exit
    assert found
    assert found.code == 7


@pytest.mark.parametrize("how", ["deleted", "moved"])
def test_a_folder_that_is_gone_is_noticed_at_once(lone: Lone, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = places(lone, monkeypatch)
    shim = lone.start(f"touch begun; {WAIT}; exit 7", refuges=known)
    pid = lone.run()
    if how == "moved":
        lone.folder.rename(lone.folder.with_name("elsewhere"))
    else:
        shutil.rmtree(lone.folder)
    running = look(lone)
    assert (running.started, running.exit) == ("lost", None)
    assert pid in running.strays
    let_go(lone)
    assert ended(shim) == 0
    found = look(lone).exit
    assert found
    assert found.code == 7


def test_a_deleted_folder_is_no_claim_that_nobody_started(lone: Lone) -> None:
    shim = lone.start("true")
    until(lambda: shim.poll() is not None, "it ends")
    shutil.rmtree(lone.folder)
    seen = look(lone)
    assert (seen.started, seen.searched, seen.strays, seen.exit) == ("lost", True, (), None)
