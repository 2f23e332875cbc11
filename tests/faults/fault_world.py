"""A campaign of real processes in a folder of its own, and the means to hurt it, to watch it and to count what really ran.

The counter is independent of Muster: every job appends `begin CELL ATTEMPT PID` and `end CELL ATTEMPT PID` to a file of its
own, and holds a flock of its cell, so that two executions of one cell at the same time are seen as `overlap`.
"""

import collections
import contextlib
import ctypes
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))  # storm.py is a program, too
from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.campaign_status import status_as_json
from muster.app.campaign.load_campaign import read_runnable_campaign, submit_campaign
from muster.app.campaign.observe_campaign import observe_campaign
from muster.app.overview import explain_cell
from muster.bootstrap import install_local_services
from muster.engine.judge.signal_history import SignalHistory
from muster.engine.store.controller_files import WatchBookFile
from muster.engine.store.sqlite_store import SqliteStore
from muster.files.process_identity import read_boot_id
from muster.files.state_folder import attempt_folder
from warm_muster import run_muster

install_local_services()  # storm.py runs without pytest, too
SHIM = Path(sys.modules["muster"].__file__ or "").parent / "hosts" / "local" / "shim.py"
PATIENCE_S = 60.0  # two busy cores: a deadline, never a delay

JOB = """\
exec 9>>"$COUNT.$(echo "$1" | tr / _).lock"
flock -n 9 || echo "overlap $1 $2 $$" >> "$COUNT"
echo "begin $1 $2 $$" >> "$COUNT"
body() {{ :; {body}
}}
body "$1" "$2"
code=$?
echo "end $1 $2 $$" >> "$COUNT"
exit $code
"""

# A made-up training as one Python process, `train.py {cell} {attempt}`. It is counted as every job is, and a body says
# what it does with these words; it ends well where the body ends.
TRAINER = """\
import fcntl, json, os, sys, threading, time
cell, attempt = sys.argv[1], int(sys.argv[2])
out = os.environ["MUSTER_OUT"]

def count(word):
    with open(os.environ["COUNT"], "a") as file:
        file.write(f"{word} {cell} {attempt} {os.getpid()}\\n")

def is_there(name):
    return os.path.exists(name)

def wait_for(name):
    while not is_there(name):
        time.sleep(0.02)

def log(step, file="metrics.jsonl", **more):
    with open(os.path.join(out, file), "a") as lines:
        lines.write(json.dumps({"step": step, **more}) + "\\n")

def chunk(number):
    os.makedirs(os.path.join(out, "replay"), exist_ok=True)
    with open(os.path.join(out, "replay", f"chunk_{number:05}.npz"), "w") as file:
        file.write("x" * 4096)

def work(seconds, share=0.5):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pause = time.monotonic() + 0.01 * share
        while time.monotonic() < pause:
            pass
        time.sleep(0.01 * (1 - share))

def train(steps, first=0, every=0.1, **how):
    for step in range(first, first + steps):
        work(every, **how)
        log(step)

def deadlock():
    one, two, met = threading.Lock(), threading.Lock(), threading.Barrier(2)
    def take(first, second):
        with first:
            met.wait()
            with second:
                pass
    threads = [threading.Thread(target=take, args=pair) for pair in ((one, two), (two, one))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

locked = open(os.environ["COUNT"] + "." + cell.replace("/", "_") + ".lock", "a")
try:
    fcntl.flock(locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    count("overlap")
count("begin")
"""
LOGGED = "progress: [{jsonl: metrics.jsonl}]"


def until(true: Callable[[], Any], what: str, timeout_s: float = PATIENCE_S, every_s: float = 0.01) -> Any:
    """What `true` returned first that counts as true; fails with `what` when the time is up."""
    deadline = time.monotonic() + timeout_s
    while True:
        found = true()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s:g} s: {what}")
        time.sleep(every_s)


def ticks(pid: int) -> int | None:
    """Start ticks of a process that is not a zombie; None: there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def letter(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0].decode()
    except OSError:
        return "X"


def kill(pid: int, number: int = signal.SIGKILL) -> bool:
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


@dataclass
class Counted:
    """What the jobs themselves wrote down."""

    begins: collections.Counter[tuple[str, int]] = field(default_factory=collections.Counter)
    ends: collections.Counter[tuple[str, int]] = field(default_factory=collections.Counter)
    overlaps: list[str] = field(default_factory=list)

    @property
    def executions(self) -> int:
        return sum(self.begins.values())

    def of(self, cell: str) -> list[int]:
        """Attempts of a cell that were executed, with repetitions."""
        return sorted(n for (name, n), times in self.begins.items() if name == cell for _ in range(times))


@dataclass
class World:
    root: Path
    home: Path
    env: dict[str, str]  # of everything that is started here
    count: Path  # what the jobs write down
    children: list[subprocess.Popen[bytes]] = field(default_factory=list)

    # -- the campaign

    @property
    def state(self) -> Path:
        return self.root / ".muster"

    def beside(self, name: str) -> "World":
        """Another campaign on the same machine's slots, with the same counter."""
        return World(self.root.parent / name, self.home, self.env, self.count, self.children)

    def campaign(
        self,
        jobs: str,
        *,
        seeds: int = 2,
        cpus: int = 2,
        body: str = "",
        axes: str = "",
        env: str = "",
        gpus: str = "gpus: 0",
        top: str = "",
    ) -> None:
        """`body` is shell, run by every `sh job.sh {cell} {attempt}`; the cell is $1, the attempt $2."""
        self.root.mkdir(exist_ok=True)
        (self.root / "job.sh").write_text(JOB.format(body=body))
        lines = ["muster: 1", "campaign: faults", "axes:", f"  seed: {list(range(seeds))}", *axes.splitlines()]
        lines += [f"slots: {{{gpus}, cpus: {cpus}}}", f"env: {{COUNT: '{self.count}'{env}}}", *top.splitlines()]
        lines += ["jobs:", jobs]
        (self.root / "campaign.yaml").write_text("\n".join(lines) + "\n")

    def trainer(self, script: str, job: str = LOGGED, *, seeds: int = 1, jobs: str = "", **more: Any) -> None:
        """A campaign of `train.py`, taken in; the script is in the words of TRAINER. `jobs`: others beside it."""
        self.root.mkdir(exist_ok=True)
        (self.root / "train.py").write_text(f"{TRAINER}{script}\ncount('end')\n")
        parts = ["axes: [seed]", f"command: '{sys.executable} -S train.py {{cell}} {{attempt}}'", job]
        self.campaign(f"  train: {{{', '.join(filter(None, parts))}}}\n{jobs}", seeds=seeds, **more)
        self.take_in()

    def pace(self, monkeypatch: Any, factor: float, poll_s: float = 0.2) -> None:
        """All floors of the judge shrunk, here and in what is started from here."""
        for name, value in (("MUSTER_PACE", str(factor)), ("MUSTER_POLL_S", str(poll_s))):
            self.env[name] = value
            monkeypatch.setenv(name, value)

    def take_in(self) -> None:
        """What `muster up` does before it starts a controller, without the cost of a process."""
        with self.desk(create=True) as desk:
            submit_campaign(desk, read_runnable_campaign(desk.file), ())

    @contextlib.contextmanager
    def desk(self, create: bool = False) -> Iterator[CampaignHandle]:
        desk = CampaignHandle.create(self.root) if create else CampaignHandle.open(self.root)
        try:
            yield desk
        finally:
            desk.close()

    # -- processes

    def muster(self, *words: str, timeout_s: float = PATIENCE_S, env: Mapping[str, str] | None = None) -> Any:
        return run_muster(("-C", str(self.root), *words), "/", {**self.env, **(env or {})}, timeout_s)

    def start(self, *command: str, env: Mapping[str, str] | None = None, **more: Any) -> subprocess.Popen[bytes]:
        given = {**self.env, **(env or {})}
        with open(self.root / "harness.log", "ab") as log:
            more = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, "cwd": "/", **more}
            process = subprocess.Popen(list(command), env=given, **more)
        self.children.append(process)
        return process

    def controller(self, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        command = (sys.executable, "-m", "muster.bootstrap.controller_process", str(self.root))
        return self.start(*command, env=env, start_new_session=True)

    def up(self, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        return self.start(sys.executable, "-m", "muster", "-C", str(self.root), "up", "--detach", env=env)

    def holder(self) -> int | None:
        """The pid of the live controller, as the lock says it."""
        try:
            about = json.loads((self.state / "controller.lock").read_text())
        except (OSError, ValueError):
            return None
        pid = int(about["pid"])
        return pid if ticks(pid) == int(about["ticks"]) else None

    def armed(self, point: str) -> dict[str, str]:
        return {"MUSTER_CRASH_AT": point, "MUSTER_CRASH_ONCE": str(self.marker)}

    @property
    def marker(self) -> Path:
        return self.root / "hit"

    def ours(self) -> list[int]:
        """Every live process that carries this world's MUSTER_HOME: shims, runs, helpers, controllers, commands."""
        mark = f"MUSTER_HOME={self.home}".encode()
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            pid = int(path.name)
            with contextlib.suppress(OSError):
                if pid != os.getpid() and mark in (path / "environ").read_bytes().split(b"\0") and ticks(pid):
                    found.append(pid)
        return found

    def controllers(self) -> list[int]:
        """Live controller processes, whether they hold the lock or not."""
        return [pid for pid in self.ours() if b"muster.bootstrap.controller_process" in _command(pid)]

    def recorded(self) -> list[int]:
        """Runs by their recorded identity that are still there although /proc shows no environment of theirs."""
        found = []
        for path in self.root.parent.glob("*/.muster/attempts/**/identity.json"):
            about = _json(path) or {}
            here = about.get("pid_namespace") == Path("/proc/self/ns/pid").stat().st_ino
            if here and letter(about["pid"]) != "X":
                fields = Path(f"/proc/{about['pid']}/stat").read_bytes().rpartition(b")")[2].split()
                if int(fields[19]) == about["ticks"] and (fields[0] != b"Z" or int(fields[17]) > 1):
                    found.append(int(about["pid"]))
        return found

    def close(self) -> None:
        """Ends all that was started here, by pid, and sees that nothing is left."""
        deadline = time.monotonic() + PATIENCE_S
        while left := self.ours() + self.recorded():
            assert time.monotonic() < deadline, f"still there: {left}"
            for pid in left:
                kill(pid)
            self.reap()
            time.sleep(0.01)
        for child in self.children:
            kill(child.pid) if child.poll() is None else None
            child.wait(timeout=PATIENCE_S)

    def reap(self) -> None:
        for child in self.children:
            child.poll()

    # -- what an attempt's folder says

    def folder(self, cell: str, n: int = 1) -> Path:
        return self.state / "attempts" / cell / str(n)

    def identity(self, cell: str, n: int = 1) -> dict[str, Any] | None:
        return _json(self.folder(cell, n) / "identity.json")

    def exit(self, cell: str, n: int = 1) -> dict[str, Any] | None:
        return _json(self.folder(cell, n) / "exit.json")

    def running(self, cell: str, n: int = 1) -> int:
        """The pid of the run, once its command is really executing."""

        def executing() -> int | None:
            found = self.identity(cell, n)
            return found["pid"] if found and self.counted().begins[(cell, n)] and ticks(found["pid"]) else None

        return int(until(executing, f"{cell} attempt {n} runs"))

    def shim(self, cell: str, n: int = 1) -> int:
        found = until(lambda: self.identity(cell, n), f"{cell} attempt {n} has an identity")
        return int(found["shim_pid"])

    # -- what Muster says

    def status(self) -> dict[str, Any]:
        with self.desk() as desk:
            return status_as_json(observe_campaign(desk))

    def cell(self, name: str) -> dict[str, Any]:
        return next(cell for cell in self.status()["cells"] if cell["cell"] == name)

    def why(self, name: str) -> dict[str, Any]:
        """The object of `muster why --json`."""
        with self.desk() as desk:
            found = observe_campaign(desk)
            cell = next(each for each in found.cells if each.record.cell.id == name)
            told = explain_cell.build_cell_story(
                found, cell, desk.store.events(name), lambda *key: attempt_folder(desk.state, *key)
            )
            return explain_cell.cell_story_as_json(told, found)

    def turns(self, name: str, n: int = 1) -> list[str]:
        """Every verdict with its kind that a living attempt was recorded to turn into."""
        query = f"SELECT data FROM event WHERE kind = 'verdict' AND cell = '{name}' AND attempt = {n} ORDER BY rowid"
        return [json.loads(row["data"])["to"] for row in self.rows(query)]

    def history(self, name: str, n: int = 1) -> SignalHistory | None:
        """What the controller's looks at a living attempt add up to."""
        return WatchBookFile(self.state, read_boot_id()).load().histories.get(f"{name}@{n}")

    def until_seen(self, name: str, true: Callable[[SignalHistory], Any], what: str) -> SignalHistory:
        """Until the looks add up to something."""

        def look_at() -> SignalHistory | None:
            found = self.history(name)
            return found if found is not None and true(found) else None

        found: SignalHistory = until(look_at, f"of {name}: {what}", every_s=0.03)
        return found

    def verdicts_until(self, name: str, true: Callable[[], Any], what: str) -> list[dict[str, Any]]:
        """All that `status` says of a cell on the way to something."""
        seen: list[dict[str, Any]] = []

        def look_at() -> bool:
            seen.append(self.cell(name))
            return bool(true())

        until(look_at, what, every_s=0.03)
        return seen

    def until_cell(self, name: str, true: Callable[[dict[str, Any]], Any], what: str) -> dict[str, Any]:
        def look_at() -> dict[str, Any] | None:
            found = self.cell(name)
            return found if true(found) else None

        found: dict[str, Any] = until(look_at, f"{name} is {what}", every_s=0.03)
        return found

    def say(self, kind: str, reason: str = "the test says so", *, cell: str | None = None, **data: Any) -> str | None:
        """A person's decision; why it was refused."""
        with self.desk() as desk:
            return desk.decide([desk.person(kind, reason, cell=cell, data=data)])[0]

    def _going_on(self) -> bool:
        with self.desk() as desk:
            return observe_campaign(desk).going_on

    def finish(self, *, retry: bool = True, leave: tuple[str, ...] = ()) -> dict[str, Any]:
        """Controllers are started until nothing is left to do; a person retries held cells, but `leave`. The last status."""
        for _ in range(20):
            if self.holder() is None and self._going_on():
                started = self.controller()
                until(lambda: started.poll() is not None or self.holder(), "a controller starts")  # noqa: B023
            until(self.without_controller, "the campaign ends", every_s=0.02)
            if self._going_on():
                continue
            status = self.status()
            dead = [cell["cell"] for cell in status["cells"] if cell["verdict"] == "DEAD" and cell["cell"] not in leave]
            if not retry or not dead:
                return status
            for cell in dead:
                self.say("retry", "the test wants it done", cell=cell)
        raise AssertionError("it never ended")

    def without_controller(self) -> bool:
        self.reap()
        return self.holder() is None

    def trouble(self) -> str:
        try:
            status = self.status()
        except Exception as error:
            return f"no status: {type(error).__name__}: {error}; {_text(self.state / 'controller.log')[-2000:]}"
        open_ = [
            f"{c['cell']} {c['verdict']} {c['kind']} {c['reason']}" for c in status["cells"] if c["verdict"] != "DONE"
        ]
        logs = _text(self.root / "harness.log")[-2000:] + _text(self.state / "controller.log")[-2000:]
        return f"{status['controller']} {open_} {logs}"

    # -- what really happened, read without Muster's help

    def counted(self) -> Counted:
        found = Counted()
        for line in _text(self.count).splitlines():
            word, cell, n, _ = line.split()
            if word == "overlap":
                found.overlaps.append(line)
            else:
                (found.begins if word == "begin" else found.ends)[(cell, int(n))] += 1
        return found

    def rows(self, query: str) -> list[sqlite3.Row]:
        db = sqlite3.connect(f"file:{self.state / 'campaign.db'}?mode=ro", uri=True)
        try:
            db.row_factory = sqlite3.Row
            return db.execute(query).fetchall()
        finally:
            db.close()

    def check(self, *, cells: int, exits: Mapping[str, int] | None = None) -> Counted:
        """The promises, from campaign.db and the jobs' own counter: nothing lost, nothing twice, no retry without cause."""
        counted = self.counted()
        twice = {key: times for key, times in counted.begins.items() if times > 1}
        assert not twice, f"executed more than once: {twice}"
        assert not counted.overlaps, counted.overlaps
        declared = [row["id"] for row in self.rows("SELECT id FROM cell WHERE declared")]
        assert len(declared) == cells
        attempts: dict[str, list[sqlite3.Row]] = {cell: [] for cell in declared}
        for row in self.rows("SELECT * FROM attempt ORDER BY cell, n"):
            attempts[row["cell"]].append(row)
        known = {(row["cell"], row["n"]) for rows in attempts.values() for row in rows}
        assert set(counted.begins) <= known, "something ran that no attempt stands for"
        for cell, rows in attempts.items():
            self._check_cell(cell, rows, counted, exits or {})
        return counted

    def _check_cell(self, cell: str, rows: list[sqlite3.Row], counted: Counted, exits: Mapping[str, int]) -> None:
        assert [row["n"] for row in rows] == list(range(1, len(rows) + 1)), f"{cell}: attempts are lost"
        assert all(row["retry_cause"] for row in rows[1:]), f"{cell}: a retry without a cause"
        assert not [row["n"] for row in rows if row["verdict"] is None], f"{cell} has an open attempt"
        for row in rows:
            self._check_outcome(row, counted)
        done = [row for row in rows if row["verdict"] == "DONE"]
        if cell in exits:
            assert not done
            codes = {json.loads(row["outcome"])["exit_code"] for row in rows if counted.ends[(cell, row["n"])]}
            assert codes <= {exits[cell], None}, f"{cell} ended with {codes}, not {exits[cell]}"
            assert exits[cell] in codes
            return
        assert len(done) == 1, f"{cell}: {len(done)} completed attempts, {[row['outcome'] for row in rows]}"
        assert done[0] is rows[-1], f"{cell}: an attempt after it was DONE"
        assert json.loads(done[0]["outcome"])["exit_code"] == 0
        assert counted.ends[(cell, done[0]["n"])] == 1, f"{cell} is DONE, but it did not run to its end"

    def _check_outcome(self, row: sqlite3.Row, counted: Counted) -> None:
        """A recorded outcome against the facts in the attempt's folder and the job's own word."""
        key = (row["cell"], row["n"])
        outcome, facts = json.loads(row["outcome"]), self.exit(*key)
        if (outcome["cause"] or {}).get("kind") == "never_started":
            assert not counted.begins[key], f"{key} is said to have never started, and it ran"
        if facts:
            assert (outcome["exit_code"], outcome["exit_signal"]) == (facts["code"], facts["signal"]), (
                f"{key}: {outcome}"
            )

    def check_log(self, folder: Path) -> None:
        """The log alone folds to the same attempts and cells as campaign.db."""
        shutil.copytree(self.state / "campaigns", folder / "campaigns")
        shutil.copy(self.state / "decisions.jsonl", folder / "decisions.jsonl")
        store = SqliteStore(folder)
        try:
            store.commit([])
            for table in ("attempt", "cell"):
                query = f"SELECT * FROM {table} ORDER BY 1, 2"
                refolded = [tuple(row) for row in store.db.execute(query)]
                assert refolded == [tuple(row) for row in self.rows(query)], f"{table} differs from the log"
        finally:
            store.close()


def said(cell: Mapping[str, Any]) -> tuple[Any, ...]:
    """Verdict, kind, how sure, cause."""
    return tuple(cell[name] for name in ("verdict", "kind", "confidence", "cause"))


def evidence(cell: Mapping[str, Any], signal_: str) -> dict[str, Any]:
    """The last row of a signal."""
    rows = [row for row in cell["evidence"] if row["signal"] == signal_]
    assert rows, f"no {signal_} in {[row['signal'] for row in cell['evidence']]}"
    found: dict[str, Any] = rows[-1]
    return found


# -- mounts that nobody else sees

_LIBC = ctypes.CDLL(None, use_errno=True)
_NEW_MOUNTS, _PRIVATE, _RECURSIVE, _DETACH = 0x20000, 1 << 18, 16384, 2


def _call(name: str, *words: Any) -> None:
    if getattr(_LIBC, name)(*words):
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")


def mount(source: str, target: Path | str, kind: str, flags: int = 0, options: str = "") -> None:
    _call("mount", source.encode(), str(target).encode(), kind.encode(), flags, options.encode())


def unmount(target: Path | str) -> None:
    _call("umount2", str(target).encode(), _DETACH)


@contextlib.contextmanager
def own_mounts() -> Iterator[None]:
    """This thread, and what it starts, in a mount namespace of its own: what is mounted in it is gone with it."""
    with open("/proc/thread-self/ns/mnt") as before:
        _call("unshare", _NEW_MOUNTS)
        try:
            mount("none", "/", "", _PRIVATE | _RECURSIVE)
            yield
        finally:
            folder = Path.cwd()
            _call("setns", before.fileno(), _NEW_MOUNTS)
            os.chdir(folder)  # setns goes to the root


def why_no_mounts() -> str:
    """Why not, if not."""
    if os.geteuid() != 0:
        return "needs root: only root may mount"
    try:
        with own_mounts():
            mount("none", "/mnt", "tmpfs")
    except OSError as error:
        return f"this machine lets nobody mount: {error}"
    return ""


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _json(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
