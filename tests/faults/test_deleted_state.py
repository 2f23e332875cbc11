"""Files are deleted under living runs: an attempt that was launched once never goes back to "not started".

Who deletes them is a cleaner of old files, `git clean -fdx`, or the run itself. What counts is written by the jobs.
"""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fault_world import World, kill, said, ticks, until

from muster.hosts.local.slot_leases import SlotLeases

JOB = "  train: {axes: [seed], command: 'sh job.sh {cell} {attempt}'%s}"
WAIT = "while [ ! -e go ]; do sleep 0.02; done"
CELL = "train/0"


def begin(world: World, body: str = WAIT, more: str = "", **how: Any) -> int:
    """One run that waits for `go`, under a controller that has seen it; its pid."""
    world.env["MUSTER_POLL_S"] = "0.2"
    world.campaign(JOB % more, seeds=how.pop("seeds", 1), body=body, **how)
    world.take_in()
    world.controller()
    pid = world.running(CELL)
    until(lambda: world.counted().of(CELL) == [1], "it runs")
    return pid


def delete(path: Path) -> None:
    until(lambda: _gone(path), f"{path.name} is deleted, whoever writes into it meanwhile")


def _gone(path: Path) -> bool:
    try:
        shutil.rmtree(path)
    except OSError:  # somebody made a file in a folder that was just emptied
        return not path.exists()
    return True


def let_go(world: World) -> None:
    (world.root / "go").touch()


def remembered(world: World) -> None:
    until(lambda: b"identity" in (world.state / "launched").read_bytes(), "the controller has seen who it is")


def ran_once(world: World) -> None:
    counted = world.counted()
    assert counted.of(CELL) == [1]
    assert not counted.overlaps


# -- the attempt's folder


@pytest.mark.parametrize("what", ["folder", "attempts"])
def test_a_run_whose_folder_is_deleted_runs_once_and_its_end_is_known(world: World, what: str) -> None:
    pid = begin(world)
    remembered(world)
    delete(world.folder(CELL) if what == "folder" else world.state / "attempts")
    told = world.until_cell(CELL, lambda cell: "its files were deleted" in cell["reason"], "it is told")
    assert told["verdict"] in ("RUNNING", "QUIET")
    assert told["pid"] == pid
    let_go(world)
    status = world.finish(retry=False)
    assert [said(cell) for cell in status["cells"]] == [("DONE", None, "proven", None)]
    ran_once(world)


def test_a_run_that_deletes_its_own_folder_at_once_runs_once(world: World) -> None:
    world.env["MUSTER_POLL_S"] = "0.2"
    world.campaign(JOB % "", seeds=1, body=f'rm -rf "$(dirname "$MUSTER_OUT")"; {WAIT}')
    world.take_in()
    controller = world.controller()
    until(lambda: world.counted().of(CELL) == [1], "it runs")
    until(lambda: not world.folder(CELL).exists(), "its folder is gone")
    kill(controller.pid)  # nobody remembers but what is written down
    world.reap()
    world.controller()
    cell = world.until_cell(CELL, lambda cell: cell["verdict"] == "RUNNING", "it is seen alive")
    assert "its files were deleted" in cell["reason"]
    let_go(world)
    assert said(world.finish(retry=False)["cells"][0])[0] == "DONE"
    ran_once(world)


def test_without_folder_and_shim_it_is_unknown_until_a_person_ends_it(world: World) -> None:
    pid = begin(world)
    remembered(world)
    shim = world.shim(CELL)
    delete(world.folder(CELL))
    kill(shim)
    alive = world.until_cell(CELL, lambda cell: "its files were deleted" in cell["reason"], "it is told")
    assert alive["verdict"] == "RUNNING"
    let_go(world)
    until(lambda: ticks(pid) is None, "it ends")
    lost = world.until_cell(CELL, lambda cell: cell["verdict"] == "UNKNOWN", "nobody knows how it ended")
    assert (lost["kind"], lost["confidence"], lost["cause"]) == ("lost", "unknown", None)
    assert f"`muster stop {CELL}`" in lost["next"]
    assert f"`muster retry {CELL}" in lost["next"]
    assert world.muster("status", "--json").returncode == 3, "nothing goes on without a person"
    refused = world.muster("retry", CELL, "--because", "again")
    assert refused.returncode == 1
    assert "it is running" not in refused.stdout
    assert f"`muster stop {CELL}` ends it" in refused.stdout
    stopped = world.muster("stop", CELL, "--because", "I looked: nothing of it runs")
    assert stopped.returncode == 0, stopped.stderr
    dead = world.cell(CELL)
    assert (dead["verdict"], dead["cause"], dead["confidence"]) == ("DEAD", "user_stop", "probable")
    ran_once(world)
    world.say("retry", "again", cell=CELL)
    world.finish(retry=False)
    assert world.counted().of(CELL) == [1, 2]
    assert not world.counted().overlaps


def test_the_book_of_launches_is_deleted_with_the_folders(world: World) -> None:
    """As by an `rm -rf .muster` after which the log came back: the claim is known, and not whether it was launched."""
    pid = begin(world)
    shim, controller = world.shim(CELL), world.holder()
    assert controller
    for each in (controller, shim):
        kill(each)
    world.reap()
    delete(world.state / "attempts")
    (world.state / "launched").unlink()
    let_go(world)
    until(lambda: not ticks(pid), "the run has ended")
    world.controller()
    world.until_cell(CELL, lambda cell: cell["verdict"] == "UNKNOWN", "unknown")
    ran_once(world)


def test_a_run_without_files_is_stopped_when_a_person_asks(world: World) -> None:
    pid = begin(world)
    remembered(world)
    delete(world.folder(CELL))
    stopped = world.muster("stop", CELL, "--because", "enough")
    assert stopped.returncode == 0, stopped.stderr
    assert ticks(pid) is None
    dead = world.cell(CELL)
    assert (dead["verdict"], dead["cause"]) == ("DEAD", "user_stop")
    ran_once(world)


def test_started_alone_is_deleted(world: World) -> None:
    """And the shim dies: what was made after it says that it was there."""
    pid = begin(world)
    shim = world.shim(CELL)
    (world.folder(CELL) / "started").unlink()
    kill(world.holder() or 0)
    kill(shim)
    world.reap()
    world.controller()
    cell = world.until_cell(CELL, lambda cell: cell["verdict"] == "RUNNING", "it is seen alive")
    assert cell["pid"] == pid
    let_go(world)
    until(lambda: ticks(pid) is None, "it ends")
    world.until_cell(CELL, lambda cell: cell["verdict"] == "UNKNOWN", "how it ended is not known")
    ran_once(world)


AFTER_THE_ORDER = ("started", "execing", "identity.json", "shim.lock", "tree.lock")
TOKENLESS = f"exec env -i PATH=\"$PATH\" sh -c 'echo $$ > inner; {WAIT}'"


def leave_the_order_alone(world: World) -> None:
    """All that says that it was started is deleted, and its controller dies; what it was asked to do stays."""
    for name in AFTER_THE_ORDER:
        (world.folder(CELL) / name).unlink()
    kill(world.holder() or 0)
    world.reap()


@pytest.mark.parametrize("slot", ["kept", "deleted"])
def test_all_but_the_order_is_deleted_under_a_run_without_its_token(world: World, slot: str) -> None:
    pid = begin(world, TOKENLESS, cpus=3)
    until((world.root / "inner").exists, "the token is dropped")
    remembered(world)
    leave_the_order_alone(world)
    if slot == "deleted":
        delete(world.home / "slots")
    told = world.cell(CELL)
    assert (told["verdict"], told["pid"]) == ("RUNNING", pid)
    world.controller()
    until(lambda: (world.holder() or 0) > 0, "a controller leads")
    told = world.until_cell(CELL, lambda cell: "its files were deleted" in cell["reason"], "it is told")
    assert told["verdict"] in ("RUNNING", "QUIET")
    assert not (world.folder(CELL) / "started").exists(), "nobody else was let in"
    let_go(world)
    assert said(world.finish(retry=False)["cells"][0])[0] == "DONE"
    ran_once(world)


@pytest.mark.parametrize("shim", ["alive", "killed"])
def test_down_runs_ends_a_run_that_only_its_remembered_identity_names(world: World, shim: str) -> None:
    pid = begin(world, TOKENLESS, cpus=3)
    until((world.root / "inner").exists, "the token is dropped")
    remembered(world)
    keeper = world.shim(CELL)
    leave_the_order_alone(world)
    if shim == "killed":
        kill(keeper)
    got = world.muster("down", "--runs", "--because", "enough")
    assert got.returncode == 0, got.stdout + got.stderr
    assert ticks(pid) is None
    dead = world.cell(CELL)
    assert (dead["verdict"], dead["cause"]) == ("DEAD", "user_stop")
    ran_once(world)


# -- all of the state


def forget_all(world: World) -> None:
    delete(world.state)
    until(world.without_controller, "the controller ends")


def test_after_git_clean_up_refuses_the_cells_whose_runs_live(world: World) -> None:
    pid = begin(world)
    forget_all(world)
    asked = world.muster("status")
    assert asked.returncode == 2
    assert f"{CELL} (pid {pid})" in asked.stderr
    refused = world.muster("up", "--detach")
    assert refused.returncode == 3
    assert f"{CELL} (pid {pid})" in refused.stderr
    assert not world.state.exists(), "nothing was changed"
    planned = world.muster("plan").stdout
    assert "would run now: 0 of 1 cell" in planned
    assert f"kill {pid}`" in planned, "the run, and not its shim"
    let_go(world)
    until(lambda: ticks(pid) is None, "it ends")
    ran_once(world)
    assert world.muster("up").returncode == 0
    assert world.counted().of(CELL) == [1, 1], "a state of its own, after the first had ended"
    assert not world.counted().overlaps


def test_after_git_clean_other_cells_may_start(world: World) -> None:
    begin(world, 'case "$1" in train/0) ' + WAIT + ";; esac", seeds=2, cpus=1)
    forget_all(world)
    assert world.muster("up", "--only", "seed=0", "--detach").returncode == 3
    got = world.muster("up", "--only", "seed=1", "--detach")
    assert got.returncode == 0, got.stderr
    let_go(world)
    until(lambda: world.counted().of("train/1") == [1], "the other one has run, once the slot was free")
    ran_once(world)


def test_a_run_without_its_token_is_found_by_what_it_writes_to(world: World) -> None:
    begin(world, f"env -i PATH=\"$PATH\" sh -c 'echo $$ > inner; {WAIT}'")
    until((world.root / "inner").exists, "the inner one runs")
    outer = world.running(CELL)
    shim = world.shim(CELL)
    forget_all(world)
    kill(shim)
    kill(outer)
    refused = world.muster("up", "--detach")
    assert refused.returncode == 3
    assert (world.root / "inner").read_text().strip() in refused.stderr
    let_go(world)


def test_log_and_database_are_deleted(world: World) -> None:
    pid = begin(world)
    kill(world.holder() or 0)
    world.reap()
    for path in world.state.iterdir():
        if path.name.startswith(("decisions", "campaign.db", "launched")):
            path.unlink()
    refused = world.muster("up", "--detach")
    assert refused.returncode == 3, refused.stdout + refused.stderr
    assert f"{CELL} (pid {pid})" in refused.stderr
    let_go(world)
    ran_once(world)


# -- slots


def test_a_deleted_home_is_noticed_and_the_slot_kept(world: World) -> None:
    begin(world, cpus=1)
    delete(world.home)
    until(lambda: SlotLeases(world.home / "slots").holder("cpu0"), "the controller has taken the lease again")
    other = world.beside("other")
    other.campaign(JOB.replace("train", "late") % "", seeds=1, cpus=1)
    other.take_in()
    other.controller()
    waits = other.until_cell("late/0", lambda cell: "is held by" in cell["reason"], "it says who holds the slot")
    assert f"cpu0 is held by {CELL} of {world.root}" in waits["reason"]
    assert not other.counted().of("late/0")
    let_go(world)
    world.finish()
    until(lambda: other.counted().of("late/0") == [1], "the slot is free again")


def test_a_dead_cell_that_waits_for_its_retry_says_who_holds_its_slot(world: World) -> None:
    other = world.beside("other")
    other.campaign(JOB.replace("train", "late") % "", seeds=1, cpus=1, body='[ "$2" -gt 1 ]')
    other.take_in()
    other.controller()
    other.until_cell("late/0", lambda cell: cell["verdict"] == "DEAD", "it has failed")
    until(other.without_controller, "nothing is left to do")
    begin(world, cpus=1)
    assert other.muster("retry", "late/0", "--because", "again").returncode == 0
    waits = other.until_cell("late/0", lambda cell: "is held by" in cell["next"], "it says who holds the slot")
    assert (waits["verdict"], waits["attempt"]) == ("DEAD", 1)
    assert waits["next"].startswith("to be retried, as a person asked: again; waits for a slot: cpu0 is held by")
    assert f"cpu0 is held by {CELL} of {world.root}" in other.muster("why", "late/0").stdout
    let_go(world)
    world.finish()
    until(lambda: other.counted().of("late/0") == [1, 2], "the slot is free again")


def test_a_register_that_is_deleted_under_a_living_controller_is_written_anew(world: World) -> None:
    begin(world)
    for gone in (next((world.home / "campaigns").glob("*.json")), world.home / "campaigns", world.home):
        gone.unlink() if gone.is_file() else delete(gone)
        until(lambda: list((world.home / "campaigns").glob("*.json")), "it is entered again")
        assert str(world.root) in world.muster("ls").stdout
    let_go(world)
    world.finish()


def test_down_works_without_a_home(world: World) -> None:
    begin(world, cpus=1)
    delete(world.home)
    world.home.write_text("no folder can be made here")
    got = world.muster("down", "--runs", "--because", "enough")
    assert got.returncode == 0, got.stderr
    until(world.without_controller, "the controller ends")
    world.home.unlink()


def test_a_run_that_closed_its_descriptors_keeps_its_slot_through_its_controller(world: World) -> None:
    world.env["MUSTER_POLL_S"] = "0.2"
    world.trainer("os.closerange(3, 4096)\nopen('closed', 'w')\nwait_for('go')", cpus=1)
    world.controller()
    until((world.root / "closed").exists, "it has closed what it inherited")
    kill(world.shim(CELL))
    until(lambda: _held_by_controller(world), "the controller keeps the lease")
    house = SlotLeases(world.home / "slots")
    whose = until(lambda: (held := house.holder("cpu0")) and held.cell and held, "and says whose it is")
    assert (whose.cell, whose.campaign) == (CELL, str(world.root))
    let_go(world)
    world.finish(retry=False)
    assert house.holder("cpu0") is None


def _held_by_controller(world: World) -> bool:
    pid = world.holder()
    links = Path(f"/proc/{pid}/fd").iterdir() if pid else ()
    return any(_target(link) == str(world.home / "slots" / "cpu0") for link in links)


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""


# -- the environment that `up` recorded


def test_without_the_recorded_environment_nothing_starts_until_up_records_it_anew(world: World) -> None:
    """Its loss is ours: no attempt dies of it."""
    begin(world, seeds=3, cpus=1)
    delete(world.state / "env")
    let_go(world)
    world.until_cell(CELL, lambda cell: cell["verdict"] == "DONE", "the one that ran is done")
    until(lambda: "before `muster up` records the environment anew" in str(world.status()["controller"]), "it is told")
    assert [cell["verdict"] for cell in world.status()["cells"]] == ["DONE", "PENDING", "PENDING"]
    world.take_in()
    status = world.finish(retry=False)
    assert [(cell["verdict"], cell["attempt"]) for cell in status["cells"]] == [("DONE", 1)] * 3


def test_up_ends_a_hold_that_came_of_the_lost_environment(world: World) -> None:
    begin(world, seeds=2, cpus=1)
    delete(world.state / "env")
    with world.desk() as desk:
        held = replace(desk.person("hold", "the last 5 cells all died"), who="controller 1")
        assert desk.decide([held]) == [None]
    let_go(world)
    until(world.without_controller, "the controller of what is held ends")
    done = world.muster("up")
    assert done.returncode == 0, done.stderr
    assert [cell["verdict"] for cell in world.status()["cells"]] == ["DONE", "DONE"]
