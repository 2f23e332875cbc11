"""Two users of one machine, really two: what the second may open of the first one's, and whether it may work at all."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from second_user import UID, as_second_user, common_place, in_a_fork

from muster.engine.ports.executor import Slot
from muster.files.muster_home import private_home
from muster.hosts.local import slot_leases
from muster.hosts.local.slot_leases import SlotLeases
from support.camp import Camp

__all__ = ["common_place"]
GATED = """\
muster: 1
campaign: private
axes: {seed: [0]}
slots: {gpus: 0, cpus: 1}
jobs:
  train: {axes: [seed], command: "sh -c 'echo started; read word < gate-0'"}
"""
SPRINT = """\
muster: 1
campaign: theirs
axes: {config: [base, new], seed: [0, 1]}
slots: {gpus: 0, cpus: 2}
jobs:
  eval:
    axes: [config, seed]
    command: sh eval.sh {config} {seed} {out}
    results: {score: {json: result.json, key: score}}
decision: {primary: {metric: score, better: higher}, baseline: base, delta: 0.3}
"""
EVAL = 'case $1 in base) echo "{\\"score\\": 1.$2}";; *) echo "{\\"score\\": 4.$2}";; esac > $3/result.json\n'


def opened(path: Path) -> str:
    os.close(os.open(path, os.O_RDONLY))
    return "opened"


@pytest.mark.parametrize("umask", [0o000, 0o002], ids="{:03o}".format)
def test_nobody_else_can_hold_a_lock_or_read_the_state(camp: Camp, common_place: Path, umask: int) -> None:
    if os.geteuid():
        pytest.skip("only root can become another user")
    camp.root = common_place / "campaign"
    camp.root.mkdir()
    camp.write(GATED)
    camp.gates(0)
    for path in (camp.root, camp.root / "campaign.yaml"):
        path.chmod(0o755)
    del camp.environment["MUSTER_HOME"]
    camp.environment["HOME"] = str(common_place / "home")
    (common_place / "home").mkdir(mode=0o755)
    command = [sys.executable, "-m", "muster", "up", "--detach"]
    done = subprocess.run(command, cwd=camp.root, env=camp.environment, capture_output=True, text=True, umask=umask)
    assert done.returncode == 0, done.stderr
    camp.started("train/0")
    home = common_place / "home" / ".local" / "state" / "muster"
    attempt = camp.folder("train/0")
    closed = [
        camp.root / ".muster" / name for name in ("controller.lock", "decisions.jsonl", "campaign.db", "guard.lock")
    ]
    closed += [attempt / name for name in ("shim.lock", "tree.lock", "attempt.json", "stdout.log")]
    closed += [home / "slots" / "cpu0", *(home / "campaigns").iterdir()]
    try:
        assert all(path.exists() for path in closed)
        assert in_a_fork(lambda: opened(camp.root / "campaign.yaml")) == "opened", "the folder itself can be reached"
        told = {path: in_a_fork(lambda path=path: opened(path)) for path in closed}  # type: ignore[misc]
        assert [path for path, what in told.items() if not what.startswith("PermissionError")] == []
    finally:
        camp.open(0)
        camp("wait")


@pytest.fixture
def shared(common_place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home that its owner has chosen and that others use, too."""
    home = common_place / "shared"
    monkeypatch.setenv("MUSTER_HOME", str(home))
    return home


def take(home: Path, name: str = "cpu0") -> bool:
    return SlotLeases(home / "slots").lease([Slot(name, "cpu")]) is not None


def test_slots_of_a_shared_home_are_taken_by_both(shared: Path) -> None:
    house = SlotLeases(shared / "slots")
    lease = house.lease([Slot("cpu0", "cpu")])
    assert lease
    assert in_a_fork(lambda: take(shared)) == "False", "it is held"
    slot_leases.close_descriptors(lease.fds)
    assert in_a_fork(lambda: take(shared)) == "True"
    assert in_a_fork(lambda: take(shared, "cpu1")) == "True", "one that the second user makes"
    assert take(shared, "cpu1"), "and the first can use, too"


def test_what_is_not_shared_lies_in_a_folder_of_ones_own(shared: Path) -> None:
    assert take(shared)
    assert private_home() == shared
    assert in_a_fork(private_home) == "/nonexistent/.local/state/muster"
    (shared / "campaigns").mkdir()
    os.chown(shared / "campaigns", UID, UID)
    assert private_home() == Path.home() / ".local" / "state" / "muster", "what another has put there is not believed"


def test_a_home_of_ones_own_that_others_may_write_to_is_mended(shared: Path) -> None:
    shared.mkdir()
    shared.chmod(0o777)
    assert private_home() == shared
    assert stat.S_IMODE(shared.stat().st_mode) == 0o755


def test_a_slot_that_cannot_be_opened_is_told_and_not_waited_for(shared: Path) -> None:
    """As an older version made it, or a person who closed it."""
    assert take(shared)
    (shared / "slots" / "cpu0").chmod(0o600)
    assert in_a_fork(lambda: take(shared)) == "False"
    told = in_a_fork(lambda: SlotLeases(shared / "slots").holders()["cpu0"])
    assert f"{shared}/slots/cpu0 belongs to uid 0 and may not be opened by you (uid {UID})" in told
    assert f"chmod a+rw {shared}/slots/cpu0" in told
    (shared / "slots").chmod(0o755)
    told = in_a_fork(lambda: take(shared, "cpu1"))
    assert told.startswith("PermissionError"), told
    assert "slots can't be made here" in told
    shared.chmod(0o700)
    assert f"{shared} belongs to uid 0" in in_a_fork(lambda: SlotLeases(shared / "slots").holder("cpu0"))


def test_another_user_works_through_real_processes(common_place: Path) -> None:
    """`up` with its controller, guard, warm process and shims, then a report, by a user who is not root."""
    root, home = common_place / "campaign", common_place / "home"
    for folder in (root, home):
        folder.mkdir()
        os.chown(folder, UID, UID)
    for name, text in (("campaign.yaml", SPRINT), ("eval.sh", EVAL)):
        (root / name).write_text(text)
        os.chown(root / name, UID, UID)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MUSTER_")}
    environment |= {"HOME": str(home), "NO_COLOR": "1", "MUSTER_PACE": "0.02", "MPLCONFIGDIR": str(home / "mpl")}

    def muster(*args: str) -> subprocess.CompletedProcess[str]:
        command = as_second_user([sys.executable, "-m", "muster", *args])
        return subprocess.run(
            command, cwd=root, env=environment, capture_output=True, text=True, timeout=120, check=False, umask=0o022
        )

    done = muster("up")
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert json.loads(muster("status", "--json").stdout)["counts"]["DONE"] == 4
    reported = muster("report", "--json")
    assert reported.returncode == 0, (reported.stdout, reported.stderr)
    every = [root, *root.rglob("*"), home, *home.rglob("*")]
    assert {path.lstat().st_uid for path in every} == {UID}
    assert stat.S_IMODE((root / ".muster").stat().st_mode) == 0o700
