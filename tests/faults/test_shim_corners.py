"""The shim alone, with nobody to help it: full disks, late pokes, requests that are none, trees that do not die.

No controller: the order is written by hand and the shim is started on it, so that what is seen is the shim's own doing.
"""

import contextlib
import errno
import fcntl
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fault_world import SHIM, World, _json, _text, kill, letter, ticks, until

from muster.engine.ports.executor import Slot
from muster.hosts.local import shim as shim_module
from muster.hosts.local.executor import LocalExecutor
from muster.hosts.local.slot_leases import SlotLeases
from muster.model.attempt import Order
from muster.model.campaign import Slots
from muster.readers.attempt_facts import read_order

WAIT = "while [ ! -e go ]; do sleep 0.02; done"
HELPER = "(setsid sh -c 'echo $$ > helper; while [ ! -e release_helper ]; do sleep 0.02; done' &); until [ -s helper ]; do sleep 0.01; done"

# The real shim in a process of its own, in which the system has been taught to refuse something.
HURT = """\
import errno, importlib.util, os, signal, sys
spec = importlib.util.spec_from_file_location("shim", sys.argv[1])
shim = importlib.util.module_from_spec(spec)
spec.loader.exec_module(shim)
exec(sys.argv[2])
sys.exit(shim.main(["run", sys.argv[3]]))
"""


def may_mount() -> bool:
    if os.getuid() != 0 or not shutil.which("unshare") or not shutil.which("nsenter"):
        return False
    return (
        subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode == 0
    )


needs_mounts = pytest.mark.skipif(not may_mount(), reason="needs root, unshare -m and nsenter")


@dataclass
class Lone:
    """One attempt without a controller."""

    world: World
    folder: Path  # as the shim sees it
    seen: Path  # as we see it: the same, or the shim's mount namespace through /proc
    into: tuple[str, ...] = ()  # enters that namespace
    token: str = field(default_factory=lambda: os.urandom(16).hex())

    @staticmethod
    def on_disk(world: World) -> "Lone":
        folder = world.folder("train/0")
        folder.mkdir(parents=True)
        return Lone(world, folder, folder)

    @staticmethod
    def on_small_disk(world: World, size: str = "256k") -> "Lone":
        """The attempt's folder is a disk of its own that nobody else sees."""
        folder = world.folder("train/0")
        folder.mkdir(parents=True)
        mount = f"mount -t tmpfs -o size={size} none {folder} && touch {folder}/mounted && exec sleep 1000"
        keeper = world.start("unshare", "-m", "sh", "-c", mount)
        seen = Path(f"/proc/{keeper.pid}/root{folder}")
        until((seen / "mounted").exists, "the disk is mounted")
        return Lone(world, folder, seen, ("nsenter", "-t", str(keeper.pid), "-m"))

    def order(self, body: str, **more: Any) -> dict[str, Any]:
        world = self.world
        env = {"PATH": os.environ["PATH"], "MUSTER_HOME": str(world.home), "MUSTER_ATTEMPT": self.token}
        paths = {"state": str(world.state), "bell": str(world.state / "bell"), "ballast": str(world.state / "ballast")}
        told = {"cell": "train/0", "n": 1, "token": self.token, "epoch": 1, "argv": ["sh", "-c", body], "env_file": ""}
        rest = {"slots": [], "out": "", "output": "", "hash": "", "claimed_at": "", "claimed_boot": 0.0, "boot_id": "",
                "retry_cause": None, "resumed_from": None, "axes": {}, "code": {}}  # fmt: skip
        return {
            **told,
            **paths,
            **rest,
            "cwd": str(world.root),
            "env": env,
            "revive": ["true"],
            "revive_s": 30.0,
            **more,
        }

    def start(
        self, body: str, *, hurt: str = "", crash: str = "", fds: Sequence[int] = (), **more: Any
    ) -> subprocess.Popen[bytes]:
        (self.seen / "attempt.json").write_text(json.dumps(self.order(body, **more)))
        command = [sys.executable, "-I", "-S"]
        command += ["-c", HURT, str(SHIM), hurt, str(self.folder)] if hurt else [str(SHIM), "run", str(self.folder)]
        command += [",".join(map(str, fds))] if fds else []
        armed = {"MUSTER_CRASH_AT": crash} if crash else {}
        return self.world.start(*self.into, *command, env=armed, start_new_session=True, pass_fds=fds)

    def run(self) -> int:
        """The pid of the run, once its command executes; a body says so by making `begun`."""
        until((self.world.root / "begun").exists, "the command executes")
        return int((_json(self.seen / "identity.json") or {})["pid"])

    def exit(self) -> dict[str, Any]:
        until((self.seen / "exit.json").exists, "exit.json is there")
        found: dict[str, Any] = json.loads((self.seen / "exit.json").read_bytes())
        return found

    def ask_to_stop(self, shim: subprocess.Popen[bytes], request: object) -> None:
        partial = self.seen / ".stop"
        partial.write_text(request if isinstance(request, str) else json.dumps(request))
        partial.replace(self.seen / "stop")
        kill(shim.pid, signal.SIGUSR1)

    def steps(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in _text(self.seen / "stopping.jsonl").splitlines()]

    def leave(self, free: int) -> Path:
        """Fills the small disk but for so many bytes."""
        filler = self.seen / "filler"
        with open(filler, "ab", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(bytes(4096)):
                pass
        os.truncate(filler, filler.stat().st_size - free)
        return filler


@pytest.fixture
def lone(world: World) -> Lone:
    return Lone.on_disk(world)


@pytest.fixture
def small(world: World) -> Lone:
    return Lone.on_small_disk(world)


def ended(shim: subprocess.Popen[bytes]) -> int:
    until(lambda: shim.poll() is not None, "the shim ends")
    return shim.returncode


def let_go(lone: Lone) -> None:
    (lone.world.root / "go").touch()


# -- 1: a disk that takes a part of what is written


LOUD = "head -c 6000 /dev/zero | tr '\\0' o; head -c 6000 /dev/zero | tr '\\0' e >&2; touch begun; " + WAIT


@needs_mounts
@pytest.mark.root
def test_an_exit_is_never_cut_off(small: Lone) -> None:
    shim = small.start(LOUD)
    small.run()
    filler = small.leave(4096)
    let_go(small)
    until(lambda: list(small.seen.glob(".exit.json.*")), "the shim tries to write")
    time.sleep(4 * shim_module.ROOM_S)
    assert not (small.seen / "exit.json").exists()
    assert shim.poll() is None
    filler.unlink()
    facts = small.exit()
    assert (facts["code"], len(facts["evidence"]["log"]), len(facts["evidence"]["out"])) == (0, 4096, 4096)
    assert ended(shim) == 0


@needs_mounts
@pytest.mark.root
def test_a_cut_off_exit_makes_the_ballast_go(small: Lone) -> None:
    (small.seen / "ballast").write_bytes(bytes(65536))
    shim = small.start(LOUD, ballast=str(small.folder / "ballast"))
    small.run()
    small.leave(4096)
    let_go(small)
    assert small.exit()["code"] == 0
    assert not (small.seen / "ballast").exists()
    assert ended(shim) == 0


@needs_mounts
@pytest.mark.root
def test_an_identity_is_never_cut_off(small: Lone) -> None:
    filler = small.leave(3 * 4096)  # attempt.json, shim.lock and started take a page each
    shim = small.start("true")
    until((small.seen / "started").exists, "it has started")
    until(lambda: list(small.seen.glob(".identity.json.*")), "it tries to write who it is")
    assert not (small.seen / "execing").exists()
    filler.unlink()
    assert small.exit()["code"] == 0
    assert ended(shim) == 0


@needs_mounts
@pytest.mark.root
def test_an_order_is_never_cut_off(small: Lone) -> None:
    told = small.order("true")
    told["env"]["LONG"] = "x" * 10000
    order = msgspec.convert(told, Order)
    executor = LocalExecutor(small.world.state, Slots(gpus=(), cpus=1))
    filler = small.leave(4096)
    with pytest.raises(OSError) as refused:
        executor._write_order(small.seen, order)
    assert refused.value.errno == errno.ENOSPC
    assert not (small.seen / "attempt.json").exists()
    filler.unlink()
    (small.seen / "attempt.json").write_bytes(msgspec.json.encode(order)[:4096])  # what an older one left behind
    executor._write_order(small.seen, order)
    assert msgspec.json.decode((small.seen / "attempt.json").read_bytes(), type=Order) == order
    here = read_order(small.seen)
    assert here
    (small.seen / "attempt.json").write_bytes(msgspec.json.encode(here))  # as one that was never moved
    told["epoch"] = 2
    executor._write_order(small.seen, msgspec.convert(told, Order))
    assert msgspec.json.decode((small.seen / "attempt.json").read_bytes(), type=Order) == here  # the first one stays
    assert not list(small.seen.glob(".attempt.json*"))


# -- 2: a stop on a full disk


@needs_mounts
@pytest.mark.root
def test_a_stop_on_a_full_disk(small: Lone) -> None:
    shim = small.start("touch begun; exec sleep 1000")
    run = small.run()
    (small.seen / ".stop").write_text(json.dumps({"epoch": 3, "reason": "budget", "grace_s": 60}))
    filler = small.leave(0)
    (small.seen / ".stop").rename(small.seen / "stop")
    kill(shim.pid, signal.SIGUSR1)
    until(lambda: letter(run) in "ZX", "the run ends")
    assert shim.poll() is None
    filler.unlink()
    facts = small.exit()
    assert facts["signal"] == signal.SIGTERM
    assert [(step["signal"], step["pids"], step["reason"]) for step in facts["stops"]] == [(15, [run], "budget")]
    assert ended(shim) == 0


@needs_mounts
@pytest.mark.root
def test_a_stop_without_a_shim_on_a_full_disk(small: Lone) -> None:
    shim = small.start("touch begun; exec sleep 1000")
    run = small.run()
    kill(shim.pid)
    (small.seen / "stop").write_text(json.dumps({"epoch": 3, "reason": "budget", "grace_s": 60}))
    small.leave(0)
    assert ended(stop_without_shim(small)) == 0
    assert ticks(run) is None


def stop_without_shim(lone: Lone) -> subprocess.Popen[bytes]:
    return lone.world.start(*lone.into, sys.executable, "-I", "-S", str(SHIM), "stop", str(lone.folder))


# -- 3: a stop that comes early


def test_a_poke_as_soon_as_the_pid_is_known(lone: Lone) -> None:
    shim = lone.start("exec sleep 1000", crash="shim.lock:stop")
    until(lambda: letter(shim.pid) == "T", "it has published its pid")
    assert int(_text(lone.folder / "shim.lock").split()[0]) == shim.pid
    lone.ask_to_stop(shim, {"epoch": 1, "reason": "user_stop", "grace_s": 60})
    kill(shim.pid, signal.SIGCONT)
    facts = lone.exit()
    assert [step["signal"] for step in facts["stops"]] == [signal.SIGTERM]
    assert (facts["code"], facts["signal"]) == (None, signal.SIGTERM)
    assert ended(shim) == 0


def test_a_stop_that_was_there_before_the_shim(lone: Lone) -> None:
    (lone.folder / "stop").write_text(json.dumps({"epoch": 1, "reason": "user_stop", "grace_s": 60}))
    shim = lone.start("exec sleep 1000")
    assert lone.exit()["signal"] == signal.SIGTERM
    assert ended(shim) == 0


# -- 4: more leases than a few, and numbers that scripts use for themselves


def test_a_script_that_uses_descriptors_of_its_own_keeps_its_locks(world: World) -> None:
    takes = "\n".join(f"exec {number}>/dev/null" for number in range(3, 10))
    world.campaign(
        "  train: {axes: [seed], command: 'sh job.sh {cell} {attempt}'}\n", seeds=1, cpus=1, body=f"{takes}\n{WAIT}"
    )
    world.take_in()
    controller = world.controller()
    world.running("train/0")
    kill(controller.pid)
    controller.wait()
    kill(world.shim("train/0"))
    assert held(world.home / "slots" / "cpu0")
    assert held(world.folder("train/0") / "tree.lock")
    (world.root / "go").touch()
    until(lambda: not held(world.home / "slots" / "cpu0"), "the slot is free again")


def test_a_run_on_twenty_slots_holds_twenty(world: World) -> None:
    world.campaign(
        "  train: {axes: [seed], command: 'sh job.sh {cell} {attempt}', uses: {cpu: 20}}\n", seeds=1, cpus=20, body=WAIT
    )
    world.take_in()
    controller = world.controller()
    world.running("train/0")
    kill(controller.pid)
    controller.wait()
    slots = [world.home / "slots" / f"cpu{number}" for number in range(20)]
    assert [slot.name for slot in slots if not held(slot)] == []
    kill(world.shim("train/0"))
    assert [slot.name for slot in slots if not held(slot)] == []  # by the run itself
    (world.root / "go").touch()
    until(lambda: not any(held(slot) for slot in slots), "all slots are free again")


def test_a_shim_whose_slot_was_deleted_on_its_way_executes_nothing(lone: Lone) -> None:
    """A request that waits in a socket is seen by nobody: another run may have taken the slot meanwhile."""
    house = SlotLeases(lone.world.home / "slots")
    lease = house.lease([Slot("cpu0", "cpu")])
    assert lease
    (lone.world.home / "slots" / "cpu0").unlink()
    assert ended(lone.start("touch begun", fds=lease.fds)) == 0
    assert not (lone.world.root / "begun").exists()
    assert not (lone.seen / "started").exists(), "another shim may still execute it"
    again = house.lease([Slot("cpu0", "cpu")], again=True)
    assert again
    lone.start("touch begun", fds=again.fds)
    assert lone.exit()["code"] == 0
    for fd in (*lease.fds, *again.fds):
        os.close(fd)


def held(path: Path) -> bool:
    with open(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


# -- 5: reviving a controller


def revivals(lone: Lone) -> list[float]:
    return [float(line) for line in _text(lone.world.root / "revived").splitlines()]


def reviving(lone: Lone, revive_s: float) -> dict[str, Any]:
    (lone.world.state / "intent").write_text("running")
    script = f"date +%s.%N >> {lone.world.root}/revived"
    return {"revive": ["sh", "-c", script], "revive_s": revive_s}


def test_no_revival_for_want_of_processes(lone: Lone) -> None:
    """The shim outlives it, and is still the one to whom orphans come."""
    hurt = f"""
real, count = os.fork, []
def fork():
    count.append(1)
    if len(count) == 1: return real()
    open({str(lone.world.root / "refused")!r}, "a").write("x")
    raise BlockingIOError(errno.EAGAIN, "no more processes")
os.fork = fork
"""
    shim = lone.start(f"touch begun; {WAIT}; {HELPER}", hurt=hurt, **reviving(lone, 0.05))
    lone.run()
    until(lambda: len(_text(lone.world.root / "refused")) > 2, "it was refused more than once")
    let_go(lone)
    assert lone.exit()["orphans"] == [int((lone.world.root / "helper").read_text())]
    (lone.world.root / "release_helper").touch()
    assert ended(shim) == 0
    assert not revivals(lone)


def test_no_revival_after_release(lone: Lone) -> None:
    shim = lone.start(HELPER, **reviving(lone, 0.05))
    assert lone.exit()["orphans"]
    until(lambda: len(revivals(lone)) > 2, "it revives while the cell is not settled")
    (lone.folder / "release").touch()
    kill(shim.pid, signal.SIGUSR1)
    time.sleep(0.3)
    before = len(revivals(lone))
    time.sleep(0.5)
    assert len(revivals(lone)) == before
    assert shim.poll() is None
    (lone.world.root / "release_helper").touch()
    assert ended(shim) == 0


def test_revival_period(lone: Lone) -> None:
    """Once to one and a half times what is asked for, whatever wakes the shim in between."""
    noise = "while [ ! -e go ]; do (sleep 0.05 &); sleep 0.02; done"
    shim = lone.start(noise, **reviving(lone, 0.4))
    times = until(lambda: revivals(lone)[4:] and revivals(lone), "five revivals")
    gaps = [late - early for early, late in itertools.pairwise(times)]
    assert 0.3 < sorted(gaps)[2] < 0.4 * 1.5 + 0.3, (
        gaps
    )  # the clock of a busy machine: one late date makes two odd gaps
    let_go(lone)
    assert ended(shim) == 0


def test_shims_of_one_batch_do_not_revive_at_once(lone: Lone) -> None:
    periods = set()
    for _ in range(100):
        told = lone.order("true", token=os.urandom(16).hex())
        (lone.folder / "attempt.json").write_text(json.dumps(told))
        one, again = (shim_module.Shim(str(lone.folder), []) for _ in range(2))
        assert one.revive_s == again.revive_s
        periods.add(one.revive_s)
        for each in (one, again):
            os.close(each.folder.fd)
    assert 30.0 <= min(periods) <= max(periods) <= 45.0
    assert len(periods) > 70
    assert max(periods) - min(periods) > 10


# -- 6: signals to the tree


def test_a_stopped_run_gets_its_term(lone: Lone) -> None:
    shim = lone.start("touch begun; exec sleep 1000")
    run = lone.run()
    kill(run, signal.SIGSTOP)
    until(lambda: letter(run) == "T", "the run is stopped")
    lone.ask_to_stop(shim, {"epoch": 1, "reason": "user_stop", "grace_s": 60})
    assert lone.exit()["signal"] == signal.SIGTERM
    assert ended(shim) == 0


def test_a_stopped_run_without_a_shim_gets_its_term(lone: Lone) -> None:
    """And so does a child of it that has thrown its environment away."""
    shim = lone.start("env -i sleep 1000 & touch begun; wait")
    run = lone.run()
    child = int(until(lambda: children(run), "its child").split()[0])
    until(lambda: lone.token.encode() not in Path(f"/proc/{child}/environ").read_bytes(), "it has no environment")
    kill(shim.pid)
    kill(run, signal.SIGSTOP)
    (lone.folder / "stop").write_text(json.dumps({"epoch": 1, "reason": "user_stop", "grace_s": 60}))
    assert ended(stop_without_shim(lone)) == 0
    assert (ticks(run), ticks(child)) == (None, None)
    assert [step["signal"] for step in lone.steps()] == [signal.SIGTERM]
    assert set(lone.steps()[0]["pids"]) == {run, child}


def children(pid: int) -> str:
    return _text(Path(f"/proc/{pid}/task/{pid}/children"))


def test_a_run_whose_leader_has_ended_is_stopped(lone: Lone) -> None:
    """/proc calls it a zombie while another thread of it works on."""
    script = lone.world.root / "threads.py"
    script.write_text(
        "import ctypes, threading, time\n"
        "threading.Thread(target=time.sleep, args=(1000,)).start()\n"
        "open('begun', 'w').close()\n"
        f"ctypes.CDLL(None).syscall({ {'x86_64': 60}.get(os.uname().machine, 93) }, 0)\n"
    )
    shim = lone.start(f"exec {sys.executable} {script}")
    run = lone.run()
    until(lambda: letter(run) == "Z", "its leader is a zombie")
    lone.ask_to_stop(shim, {"epoch": 1, "reason": "user_stop", "grace_s": 0})
    facts = lone.exit()
    assert facts["signal"] in (signal.SIGTERM, signal.SIGKILL)
    assert facts["stops"][0]["pids"] == [run]
    assert ended(shim) == 0


def test_a_large_tree_is_signalled_in_parts(lone: Lone) -> None:
    many = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300))"
    body = "i=0; while [ $i -lt 320 ]; do sleep 1000 & i=$((i+1)); done; touch begun; wait"
    shim = lone.start(body, hurt=many)
    lone.run()
    lone.ask_to_stop(shim, {"epoch": 1, "reason": "user_stop", "grace_s": 60})
    assert len(lone.exit()["stops"][0]["pids"]) == 321
    assert ended(shim) == 0  # nobody was left over to be killed
    assert [step["signal"] for step in lone.steps()] == [signal.SIGTERM]


def test_a_tree_that_does_not_die(lone: Lone) -> None:
    shim = lone.start("touch begun; exec sleep 1000", hurt="signal.pidfd_send_signal = lambda *_: None")
    run = lone.run()
    lone.ask_to_stop(shim, {"epoch": 1, "reason": "user_stop", "grace_s": 0})
    steps = until(lambda: len(lone.steps()) > 3 and lone.steps(), "TERM and three KILLs")
    assert [step["signal"] for step in steps] == [15, 9, 9, 9]
    first, second, third = (step["boot"] for step in steps[1:])
    assert second - first >= 0.99  # each is told when its signals were sent
    assert third - second >= 1.99
    kill(run)
    assert len(lone.exit()["stops"]) == 4
    assert ended(shim) == 0


def test_only_the_tree_is_signalled(lone: Lone) -> None:
    """A pid that has gone to somebody else since it was listed."""
    other = lone.world.start("sleep", "1000")
    shim_module.signal_by_pidfd([other.pid], list, signal.SIGKILL)
    time.sleep(0.05)
    assert other.poll() is None
    shim_module.signal_by_pidfd([other.pid], lambda: [other.pid], signal.SIGKILL)
    assert other.wait() == -signal.SIGKILL


# -- 7: after the gate nothing ends the shim


REFUSALS = {
    "attempt.json can't be synced": """
real = os.fsync
def fsync(fd):
    if os.readlink(f"/proc/self/fd/{fd}").endswith("attempt.json"): raise OSError(errno.EIO, "no")
    real(fd)
os.fsync = fsync
""",
    "odd cgroup files": """
real = shim.read_text_or_default
def read_text(path, default=""):
    if path == "/proc/self/cgroup": return "\\n::\\nodd\\n3:memory:/x\\n0::/x\\n"
    if path.startswith("/sys/fs/cgroup"): return "oom_kill\\noom_kill \\noom_kill many\\noom_kill  \\n"
    return real(path, default)
shim.read_text_or_default = read_text
""",
    "no descriptors for a while": """
real, count = os.listdir, []
def listdir(path):
    count.append(1)
    if len(count) < 3: raise OSError(errno.ENFILE, "too many open files in the system")
    return real(path)
os.listdir = listdir
""",
    "no look at anything": """
def refuse(*_, **__): raise OSError(errno.EMFILE, "too many open files")
shim.host_identity()
os.statvfs = os.pread = shim.stat_field_bytes = refuse
shim.Shim._identity = lambda self, pid: {**shim.HOST, "pid": pid, "ticks": 0, "token": self.order["token"]}
shim.Shim._lock = lambda self: True
""",
}


@pytest.mark.parametrize("hurt", list(REFUSALS))
def test_what_the_system_refuses_does_not_end_the_shim(lone: Lone, hurt: str) -> None:
    shim = lone.start(f"touch begun; {WAIT}; exit 3", hurt=REFUSALS[hurt])
    lone.run()
    lone.ask_to_stop(shim, {"epoch": 1, "reason": "user_stop", "grace_s": 60})
    for _ in range(3):  # a refused stop is tried again when it wakes
        time.sleep(0.05)
        kill(shim.pid, signal.SIGUSR1)
    let_go(lone)
    facts = lone.exit()
    assert facts["code"] == 3 or facts["signal"] == signal.SIGTERM
    if hurt == "no descriptors for a while":
        assert facts["signal"] == signal.SIGTERM
    assert ended(shim) == 0


NO_REQUESTS = ["", "{", '{"epoch": 7, "rea', "[]", "[1]", "7", "null", '"stop"', "{}", '{"epoch": null}', '{"epoch": "x"}',
               '{"epoch": 1e999}', '{"epoch": [1]}', '{"epoch": 7, "grace_s": null}', '{"epoch": 7, "grace_s": "soon"}',
               "[" * 100000, "\x00"]  # fmt: skip


def test_requests_that_are_none(lone: Lone) -> None:
    shim = lone.start("touch begun; exec sleep 1000")
    run = lone.run()
    for text in NO_REQUESTS:
        lone.ask_to_stop(shim, text)
        time.sleep(0.03)
        assert shim.poll() is None, text
    assert ticks(run)
    assert not lone.steps()
    lone.ask_to_stop(shim, {"epoch": 1, "reason": "user_stop", "grace_s": float("nan")})
    assert lone.exit()["stops"][0]["signal"] == signal.SIGTERM
    assert ended(shim) == 0


def test_the_folder_goes_while_the_run_lives(lone: Lone) -> None:
    shim = lone.start(f"touch begun; {WAIT}; {HELPER}")
    run = lone.run()
    shutil.rmtree(lone.folder)
    let_go(lone)
    until(lambda: ticks(run) is None, "the run ends")
    until(
        lambda: children(shim.pid).split() == [(lone.world.root / "helper").read_text().strip()], "its orphan is ours"
    )
    (lone.world.root / "release_helper").touch()
    assert ended(shim) == 0


# -- 8: what is said about a command that can't be executed


def test_an_environment_that_can_not_be_read_is_not_printed(lone: Lone) -> None:
    file = lone.world.root / "env.json"
    file.write_bytes(b'{"TOKEN": "s3cret", "ODD": "\xff\xfe"}')
    shim = lone.start("true", env_file=str(file))
    facts = lone.exit()
    assert facts["code"] == 127
    assert "environment" in facts["exec_error"]
    assert ended(shim) == 0
    said = "".join(_text(path) for path in lone.folder.iterdir() if path.is_file())
    assert "UnicodeDecodeError" in said
    assert "s3cret" not in said


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"argv": ["no_such_command"]}, "No such file or directory: 'no_such_command'"),
        ({"argv": ["./no_such_command"]}, "No such file or directory: './no_such_command'"),
        ({"cwd": "/no/such/folder"}, "No such file or directory: '/no/such/folder'"),
        ({"env_file": "/no/such/env"}, "No such file or directory: '/no/such/env'"),
        ({"argv": ["sh", "-c", "true", "\0"]}, "its recorded command or environment can't be used (ValueError)"),
    ],
)
def test_why_a_command_can_not_be_executed(lone: Lone, more: dict[str, Any], said: str) -> None:
    shim = lone.start("true", **more)
    facts = lone.exit()
    assert (facts["code"], facts["exec_error"]) == (127, said)
    assert said in _text(lone.folder / "stderr.log")
    assert ended(shim) == 0


@pytest.mark.parametrize("text", ["", "{", "[]"])
def test_an_order_that_can_not_be_read_is_not_executed(lone: Lone, text: str) -> None:
    (lone.folder / "attempt.json").write_text(text)
    shim = lone.world.start(sys.executable, "-I", "-S", str(SHIM), "run", str(lone.folder), start_new_session=True)
    assert ended(shim) == 1
    assert _text(lone.folder / "stderr.log") == f"no readable attempt.json in {lone.folder}\n"
    assert not (lone.folder / "started").exists()


# -- 9 and 10: what a run inherits, and who has got away


# who starts it ignores these: nobody; `nohup muster up &` in a script; something stranger, that blocks some, too
DEAF = {
    "in a terminal": "",
    "nohup": "import signal as s; [s.signal(n, s.SIG_IGN) for n in (s.SIGHUP, s.SIGINT, s.SIGQUIT)]",
    "stranger": "import signal as s; [s.signal(n, s.SIG_IGN) for n in (s.SIGTSTP, s.SIGTTOU, s.SIGUSR2, s.SIGRTMIN)]; "
    "s.pthread_sigmask(s.SIG_BLOCK, (s.SIGTERM, s.SIGALRM))",
    # glibc refuses both to its callers, so only the kernel's own call can ignore them: rt_sigaction(number, {SIG_IGN})
    "libc's own signals": "import ctypes as c; [c.CDLL(None).syscall(13 if __import__('platform').machine() == 'x86_64' "
    "else 134, n, c.byref((c.c_ulong * 4)(1)), None, 8) for n in (32, 33)]",
}
# SIGCANCEL and SIGSETXID: glibc sets them itself before it needs them, and lets nobody else
LIBCS_OWN = 1 << 31 | 1 << 32


@pytest.mark.parametrize("started", DEAF)
def test_signals_that_a_run_inherits(lone: Lone, started: str) -> None:
    into = (sys.executable, "-c", f"{DEAF[started]}\nimport os, sys; os.execv(sys.argv[1], sys.argv[1:])")
    lone = replace(lone, into=into)
    shim = lone.start("exec cat /proc/self/status")
    assert lone.exit()["code"] == 0
    masks = dict(line.split(":\t") for line in _text(lone.folder / "stdout.log").splitlines() if line.startswith("Sig"))
    assert int(masks["SigIgn"], 16) & ~LIBCS_OWN == 1 << (signal.SIGHUP - 1)
    assert (int(masks["SigBlk"], 16), int(masks["SigCgt"], 16)) == (0, 0)
    assert ended(shim) == 0


@pytest.fixture
def unadopted(lone: Lone) -> Iterator[Lone]:
    yield lone
    (lone.world.root / "release_helper").touch()


def test_an_orphan_that_got_away_is_not_denied(unadopted: Lone) -> None:
    """The shim was no subreaper in the instant that mattered: the orphan is not its child, but it holds tree.lock."""
    hurt = "shim._libc = type('Libc', (), {'prctl': staticmethod(lambda *_: 0)})"
    shim = unadopted.start(HELPER, hurt=hurt)
    assert unadopted.exit()["orphans"] is None
    assert ticks(int((unadopted.world.root / "helper").read_text()))
    assert ended(shim) == 0


def test_no_orphans_are_said_to_be_none(lone: Lone) -> None:
    shim = lone.start("true")
    assert lone.exit()["orphans"] == []
    assert ended(shim) == 0
