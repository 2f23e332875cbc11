"""Faults 35, 37 and 38 for real: a reused pid, a rebooted machine, a restarted container."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fault_world import SHIM, World, kill, ticks, until

ONE = "  train: {axes: [seed], command: 'sh job.sh {cell} {attempt}'}\n"
FIRST_WAITS = '[ "$2" != 1 ] || while [ ! -e go ]; do sleep 0.02; done'


def may_unshare() -> str:
    """Why not, if not."""
    if os.geteuid() != 0:
        return "needs root: only root may make pid and mount namespaces here"
    if not shutil.which("unshare"):
        return "needs unshare of util-linux"
    probe = ["unshare", "-m", "-p", "-f", "--mount-proc", "sh", "-c", "echo 100 > /proc/sys/kernel/ns_last_pid"]
    tried = subprocess.run(probe, capture_output=True, text=True)
    return f"this machine does not let us unshare: {tried.stderr.strip()}" if tried.returncode else ""


WHY_NOT = may_unshare()
pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "allowed")]


def controller_words(world: World) -> list[str]:
    return [sys.executable, "-m", "muster.bootstrap.controller_process", str(world.root)]


def container_words(world: World) -> list[str]:
    """A controller in a pid namespace of its own, under an init that reaps; all in it dies with that init."""
    unshare = ["unshare", "-p", "-f", "--mount-proc", "--kill-child"]
    return [*unshare, "sh", "-c", '"$@" & wait', "init", *controller_words(world)]


def causes(world: World) -> list[tuple[str | None, str]]:
    """Of each attempt why it was started again and how it ended."""
    rows = world.rows("SELECT retry_cause, outcome FROM attempt ORDER BY n")
    return [(row["retry_cause"], (json.loads(row["outcome"])["cause"] or {}).get("kind", "DONE")) for row in rows]


PID_REUSE = """
import json, os, subprocess, sys, time
root, python = sys.argv[1:3]
state = root + "/.muster"
folder = state + "/attempts/train/0/1"
controller = [python, "-m", "muster.bootstrap.controller_process", root]

def until(true, what):
    deadline = time.monotonic() + 60
    while not true():
        while True:  # we are the init of this namespace: its orphans are ours to reap
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    break
            except ChildProcessError:
                break
        if time.monotonic() > deadline:
            sys.exit("not in time: " + what)
        time.sleep(0.01)

def alive(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False

first = os.spawnv(os.P_NOWAIT, python, controller)
until(lambda: os.path.exists(os.environ["COUNTED"]), "the run writes that it runs")
identity = json.load(open(folder + "/identity.json"))
os.kill(first, 9)
os.kill(identity["shim_pid"], 9)
os.kill(identity["pid"], 9)
until(lambda: not os.path.exists(f"/proc/{identity['pid']}"), "the run is gone and reaped")
decoy = 0
for _ in range(200):
    with open("/proc/sys/kernel/ns_last_pid", "w") as file:
        file.write(str(identity["pid"] - 1))
    decoy = os.spawnv(os.P_NOWAIT, "/bin/sleep", ["sleep", "1000"])
    if decoy == identity["pid"]:
        break
    os.kill(decoy, 9)
    os.waitpid(decoy, 0)
else:
    sys.exit("the pid was not given out again")
if sys.argv[3] == "stop":  # a request that was out when everything died must not hit the new process either
    with open(folder + "/stop", "w") as file:
        json.dump({"epoch": 99, "reason": "user_stop", "grace_s": 0.2}, file)
    shim = os.environ["SHIM"]
    os.waitpid(os.spawnv(os.P_NOWAIT, python, [python, "-I", "-S", shim, "stop", folder]), 0)
second = os.spawnv(os.P_NOWAIT, python, controller)
until(lambda: not alive(second), "the campaign ends")
print(json.dumps({"pid": identity["pid"], "decoy": decoy, "decoy_lives": alive(decoy)}))
"""


@pytest.mark.parametrize("how", ["plain", "stop"])
def test_35_the_pid_is_given_out_again(world: World, how: str) -> None:
    world.campaign(ONE, seeds=1, body=FIRST_WAITS)
    world.take_in()
    driver = world.root / "driver.py"
    driver.write_text(PID_REUSE)
    command = ["unshare", "-p", "-f", "--mount-proc", sys.executable, str(driver), str(world.root), sys.executable, how]
    env = {**world.env, "SHIM": str(SHIM), "COUNTED": str(world.count)}
    found = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stderr
    said = json.loads(found.stdout)
    assert said["decoy"] == said["pid"]
    assert said["decoy_lives"]  # never signalled
    world.finish(retry=how == "stop")
    expected = "user_stop" if how == "stop" else "unknown"
    assert [cause for _, cause in causes(world)] == [expected, "DONE"]
    assert world.check(cells=1).of("train/0") == [1, 2]


def test_37_the_machine_rebooted(world: World) -> None:
    """A new boot id, and the old pid belongs to somebody else, with the same start ticks even."""
    world.campaign(ONE, seeds=1, body=FIRST_WAITS)
    world.take_in()
    controller = world.controller()
    run = world.running("train/0")
    for pid in (controller.pid, world.shim("train/0"), run):
        kill(pid)
    until(lambda: not ticks(run), "all is gone")
    decoy = world.start("sleep", "1000")
    path = world.folder("train/0") / "identity.json"
    identity = json.loads(path.read_text())
    path.write_text(json.dumps({**identity, "pid": decoy.pid, "ticks": ticks(decoy.pid)}))
    boot = world.root / "boot_id"
    boot.write_text("00000000-1111-2222-3333-444444444444\n")
    script = 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"'
    again = world.start("unshare", "-m", "sh", "-c", script, str(boot), *controller_words(world))
    until(lambda: again.poll() is not None, "it runs to its end after the reboot")
    assert again.returncode == 0
    assert causes(world) == [(None, "host_reboot"), ("host_reboot", "DONE")]  # retried by itself
    assert world.check(cells=1).of("train/0") == [1, 2]
    assert decoy.poll() is None


def test_38_the_container_is_restarted(world: World) -> None:
    """The same boot id, another pid namespace: everything in the old one died with its init."""
    world.campaign(ONE, seeds=2, body=FIRST_WAITS)
    world.take_in()
    inside = container_words(world)
    container = world.start(*inside, start_new_session=True)
    for seed in (0, 1):
        until(lambda: world.counted().begins[(f"train/{seed}", 1)], "both run in the container")  # noqa: B023
    init = int(Path(f"/proc/{container.pid}/task/{container.pid}/children").read_text().split()[0])
    kill(init)
    until(lambda: not world.ours(), "the container is gone, and all in it")
    container.wait(timeout=60)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert (world.identity("train/0") or {})["boot_id"] == boot
    again = world.start(*inside, start_new_session=True)
    until(lambda: again.poll() is not None, "it runs to its end in a new one")
    rows = world.rows("SELECT cell, n, retry_cause FROM attempt ORDER BY cell, n")
    assert [row["retry_cause"] for row in rows] == [None, "container_restart"] * 2
    assert world.check(cells=2).executions == 4


def test_38_a_run_in_another_container_is_not_dead(world: World) -> None:
    """A controller in a second container sees neither pid; the locks say that the run lives: no second attempt."""
    world.campaign(ONE, seeds=1, body=FIRST_WAITS)
    world.take_in()
    first = world.controller()
    world.running("train/0")
    kill(first.pid)
    first.wait()
    inside = container_words(world)
    second = world.start(*inside, start_new_session=True)
    lock = world.state / "controller.lock"

    def beat() -> float:
        try:
            return float(json.loads(lock.read_text())["beat"])
        except ValueError:
            return 0.0

    begun = until(beat, "it looks")
    until(lambda: beat() > begun + 1, "it has looked several times")
    assert len(world.rows("SELECT * FROM attempt WHERE verdict IS NULL")) == 1
    (world.root / "go").touch()
    until(lambda: second.poll() is not None, "it ends")
    assert world.check(cells=1).of("train/0") == [1]
