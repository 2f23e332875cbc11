"""The shim: owns one attempt's command and writes its exit down, whatever happens to everything else.

One file, standard library only, run under `python -I -S`; imports nothing of muster and never opens the database.

    shim.py run FOLDER [FD,FD...]   become the shim of the attempt in FOLDER; the fds are slot leases to pass on
    shim.py serve FD                stay warm and fork a shim for each request that comes over the socket FD
    shim.py stop FOLDER             end the tree of an attempt whose shim is gone

The steps are those of PROTOCOL.md; the order of the writes is the protocol, so read it top to bottom.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself would cost the shim half a megabyte
    import socket
    from typing import Any

POINTS = (
    "shim.lock",
    "shim.started.create", "shim.started.fsync", "shim.started.dirsync",
    "shim.fork",
    "shim.identity.write", "shim.identity.fsync", "shim.identity.rename", "shim.identity.dirsync",
    "shim.gate",
    "child.execing",
    "shim.waiting",
    "shim.exited",
    "shim.exit.write", "shim.exit.fsync", "shim.exit.rename", "shim.exit.dirsync",
    "shim.reaped",
    "shim.bell",
)  # fmt: skip
PR_SET_CHILD_SUBREAPER = 36
RAISED_OOM_SCORE = b"300"  # the kernel should take the run before it takes the shim
TAIL_BYTES = 4096
ROOM_S = 0.5  # between two tries on a full disk
HOST: dict[str, Any] = {}
UNEXECUTED = 125  # how the child ends when the gate closes without a word

_libc = ctypes.CDLL(None, use_errno=True)


def reach(point: str) -> None:
    """A named crash point: dies (or stops) here when MUSTER_CRASH_AT names it, once if MUSTER_CRASH_ONCE is a path."""
    wanted = os.environ.get("MUSTER_CRASH_AT")
    if not wanted:
        return
    name, _, how = wanted.partition(":")
    if name != point:
        return
    once = os.environ.get("MUSTER_CRASH_ONCE")
    if once:
        try:
            os.close(os.open(once, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return
    os.kill(os.getpid(), signal.SIGSTOP if how == "stop" else signal.SIGKILL)


def boottime() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def start_ticks(pid: int) -> int:
    """Field 22 of /proc/PID/stat; with the pid and the boot id it names a process for ever."""
    return int(stat_fields(pid)[19])


def stat_fields(pid: int) -> list[bytes]:
    """Of /proc/PID/stat, from the state letter on."""
    return read_bytes(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def read_bytes(path: str) -> bytes:
    """By plain system calls: Python's file objects cost a launch half a millisecond."""
    fd = os.open(path, os.O_RDONLY)
    try:
        data = os.read(fd, 65536)
        while data and len(data) % 65536 == 0:
            more = os.read(fd, 65536)
            if not more:
                break
            data += more
        return data
    finally:
        os.close(fd)


def read_text(path: str, default: str = "") -> str:
    try:
        return read_bytes(path).decode("utf-8", "replace")
    except OSError:
        return default


def host() -> dict[str, Any]:
    """What tells this life of the machine from any other. It can't change while we live: the warm process asks once."""
    if not HOST:
        HOST.update(
            boot_id=read_text("/proc/sys/kernel/random/boot_id").strip(),
            pid_namespace=os.stat("/proc/self/ns/pid").st_ino,
            init_ticks=start_ticks(1),
        )
    return HOST


class Folder:
    """The attempt's folder, and the two ways a fact gets into it."""

    def __init__(self, path: str, ballast: str) -> None:
        self.path = path
        self.ballast = ballast
        self.fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)

    def read(self, name: str) -> Any:
        try:
            return json.loads(read_text(os.path.join(self.path, name), "null"))
        except ValueError:
            return None

    def create(self, name: str, text: str, point: str) -> bool:
        """Exclusive and durable; False if it exists already."""
        try:
            fd = self._with_room(lambda: os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644, dir_fd=self.fd))
        except FileExistsError:
            return False
        reach(point + ".create")
        self._with_room(lambda: os.pwrite(fd, text.encode(), 0))
        self._with_room(lambda: os.fsync(fd))
        os.close(fd)
        reach(point + ".fsync")
        os.fsync(self.fd)
        reach(point + ".dirsync")
        return True

    def write(self, name: str, value: object, point: str) -> None:
        """Write, fsync, rename, fsync the folder: readers see all of it or none."""
        data = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        partial = f".{name}.{os.getpid()}"
        fd = self._with_room(lambda: os.open(partial, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o644, dir_fd=self.fd))
        self._with_room(lambda: os.pwrite(fd, data, 0))
        reach(point + ".write")
        self._with_room(lambda: os.fsync(fd))
        os.close(fd)
        reach(point + ".fsync")
        self._with_room(lambda: os.rename(partial, name, src_dir_fd=self.fd, dst_dir_fd=self.fd))
        reach(point + ".rename")
        os.fsync(self.fd)
        reach(point + ".dirsync")

    def _with_room(self, step: Any) -> Any:
        """On a full disk the ballast goes first, so that the cause can still be written; then we wait for room.

        What we have to write is known to nobody else: giving up would lose how the run ended.
        """
        while True:
            try:
                return step()
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
            try:
                os.unlink(self.ballast)
            except OSError:
                time.sleep(ROOM_S)


class Shim:
    def __init__(self, path: str, slot_fds: list[int]) -> None:
        self.slot_fds = slot_fds
        self.order = json.loads(read_text(os.path.join(path, "attempt.json"), "null"))
        if not self.order:
            raise SystemExit(f"no readable attempt.json in {path}")
        self.folder = Folder(path, self.order["ballast"])
        self.began = self.looked = boottime()
        self.child = 0
        self.stops: list[dict[str, Any]] = []  # steps taken to end the tree, in order
        self.stop_epoch = -1
        self.kill_at: float | None = None
        self.oom_before: int | None = None

    def run(self) -> int:
        _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        if not self._lock():
            return 0
        if not self.folder.create("started", self.order["token"], "shim.started"):
            return 0
        wakeup = self._listen()
        pidfd, errors = self._launch()
        self._wait_for_exit(pidfd, wakeup)
        self._write_exit(pidfd, errors)
        self._linger(wakeup)
        return 0

    # -- steps 1 to 5: the lock, the one permission to execute, the child behind its gate

    def _lock(self) -> bool:
        fd = os.open(os.path.join(self.folder.path, "shim.lock"), os.O_CREAT | os.O_RDWR, 0o644)
        if not flock_patiently(fd):
            return False
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()} {start_ticks(os.getpid())}\n".encode(), 0)
        reach("shim.lock")
        return True

    def _listen(self) -> int:
        reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGUSR1):
            signal.signal(number, lambda *_: None)
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        return reader

    def _launch(self) -> tuple[int, int]:
        gate_reader, gate_writer = os.pipe2(os.O_CLOEXEC)
        error_reader, error_writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        tree = os.open(os.path.join(self.folder.path, "tree.lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
        flock_patiently(tree)
        pid = os.fork()
        if pid == 0:
            try:
                os.close(gate_writer)
                self._become_the_run(gate_reader, error_writer, tree)
            finally:
                os._exit(UNEXECUTED)
        self.child = pid
        pidfd = os.pidfd_open(pid)
        for fd in (gate_reader, error_writer, tree):  # the child alone holds tree.lock now
            os.close(fd)
        reach("shim.fork")
        self.folder.write("identity.json", self._identity(pid), "shim.identity")
        os.write(gate_writer, b"g")
        os.close(gate_writer)
        reach("shim.gate")
        self.oom_before = oom_kills()
        self._sync_order()
        return pidfd, error_reader

    def _sync_order(self) -> None:
        """attempt.json must outlive a power cut if exit.json does; while the run starts this costs nobody time."""
        fd = os.open("attempt.json", os.O_RDONLY, dir_fd=self.folder.fd)
        os.fsync(fd)
        os.close(fd)

    def _identity(self, pid: int) -> dict[str, Any]:
        return {
            **host(),
            "pid": pid,
            "ticks": start_ticks(pid),
            "shim_pid": os.getpid(),
            "shim_ticks": start_ticks(os.getpid()),
            "token": self.order["token"],
            "boot": boottime(),
            "at": time.time(),
        }

    def _become_the_run(self, gate: int, errors: int, tree: int) -> None:
        signal.set_wakeup_fd(-1)
        trouble: BaseException | None = None
        try:  # all that can be done before the gate opens, while the shim writes down who we are
            env = self._prepare(tree)
        except BaseException as error:
            trouble = error
        if os.read(gate, 1) != b"g":
            os._exit(UNEXECUTED)
        try:
            if trouble:
                raise trouble
            os.close(os.open("execing", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=self.folder.fd))
            reach("child.execing")
            os.execvpe(self.order["argv"][0], self.order["argv"], env)
        except BaseException as error:
            self._confess(errors, error)
            os._exit(127)

    def _prepare(self, tree: int) -> dict[str, str]:
        for number in (signal.SIGCHLD, signal.SIGUSR1, signal.SIGTERM, signal.SIGINT, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        try:
            score = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
            os.write(score, RAISED_OOM_SCORE)
            os.close(score)
        except OSError:
            pass
        for fd in (tree, *self.slot_fds):
            os.set_inheritable(fd, True)
        env: dict[str, str] = json.loads(read_bytes(self.order["env_file"])) if self.order.get("env_file") else {}
        env.update(self.order["env"])
        os.chdir(self.order["cwd"])
        return env

    def _confess(self, errors: int, error: BaseException) -> None:
        name = self.order["argv"][0] if os.path.isdir(self.order["cwd"]) else self.order["cwd"]
        text = f"{error.strerror if isinstance(error, OSError) else repr(error)}: {name!r}"
        os.write(errors, text.encode("utf-8", "replace")[:TAIL_BYTES])
        os.write(2, f"muster: the command could not be executed: {text}\n".encode("utf-8", "replace"))

    # -- step 6: wait, write the exit down, reap, linger

    def _wait_for_exit(self, pidfd: int, wakeup: int) -> None:
        reach("shim.waiting")
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        poll.register(wakeup, select.POLLIN)
        self._obey()
        while not any(fd == pidfd for fd, _ in poll.poll(self._patience() * 1000)):
            drain(wakeup)
            self._reap(keep=self.child)
            self._obey()
            self._revive()
        reach("shim.exited")

    def _patience(self) -> float:
        waits: list[float] = [self.order["revive_s"]]
        if self.kill_at is not None:
            waits.append(max(0.0, self.kill_at - boottime()))
        return min(waits)

    def _write_exit(self, pidfd: int, errors: int) -> None:
        info = os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOWAIT)
        assert info  # it blocks until there is one
        exited = info.si_code == os.CLD_EXITED
        try:
            exec_error = os.read(errors, TAIL_BYTES).decode("utf-8", "replace")
        except BlockingIOError:
            exec_error = ""
        facts = {
            "token": self.order["token"],
            "pid": self.child,
            "code": info.si_status if exited else None,
            "signal": None if exited else info.si_status,
            "core": info.si_code == os.CLD_DUMPED,
            "exec_error": exec_error or None,
            "at": time.time(),
            "boot": boottime(),
            "duration_s": boottime() - self.began,
            "stops": self.stops,
            "orphans": children(os.getpid(), but=self.child),
            "evidence": self._last_evidence(),
        }
        self.folder.write("exit.json", facts, "shim.exit")
        os.waitid(os.P_PIDFD, pidfd, os.WEXITED)
        reach("shim.reaped")

    def _last_evidence(self) -> dict[str, Any]:
        """What only exists until the run is reaped, and what explains a death best while it is fresh."""
        return {
            "cpu_s": cpu_seconds(self.child),
            "log": tail(os.path.join(self.folder.path, "stderr.log")),
            "out": tail(os.path.join(self.folder.path, "stdout.log")),
            "disk_free": free_bytes(self.folder.path),
            "oom_kills": [self.oom_before, oom_kills()],
        }

    def _linger(self, wakeup: int) -> None:
        """Orphans of the run are our children now: stay until they are gone, obey, free the slot if told to."""
        rung = False
        while self._reap():
            if not rung:
                rung = self._bell()
            select.select([wakeup], [], [], min(self._patience(), 1.0 if self.kill_at else self.order["revive_s"]))
            drain(wakeup)
            self._obey()
            if os.path.exists(os.path.join(self.folder.path, "release")) and not self._gpu_in_use():
                self._free_slots()
            self._revive()
        self._free_slots()
        self._bell()

    def _reap(self, keep: int = 0) -> bool:
        """Collects dead children; True while some live. `keep` stays a zombie until its exit is on disk."""
        while True:
            try:
                info = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return False
            if info is None or info.si_pid == keep:
                return True
            os.waitid(os.P_PID, info.si_pid, os.WEXITED)

    def _free_slots(self) -> None:
        for fd in self.slot_fds:  # on one descriptor frees it for all copies
            fcntl.flock(fd, fcntl.LOCK_UN)

    def _gpu_in_use(self) -> bool:
        return any(holds_gpu(pid) for pid in descendants(os.getpid()))

    def _bell(self) -> bool:
        reach("shim.bell")
        try:
            fd = os.open(self.order["bell"], os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return True  # nobody listens: the next controller reads exit.json
        try:
            os.write(fd, f"{self.order['cell']}\t{self.order['n']}\n".encode())
        except OSError:
            pass
        os.close(fd)
        return True

    # -- step 7: stop requests are files that carry the epoch; the highest seen is obeyed

    def _obey(self) -> None:
        request = self.folder.read("stop")
        if request and request.get("epoch", -1) > self.stop_epoch:
            self.stop_epoch = request["epoch"]
            if self.kill_at is None:
                self._signal_tree(signal.SIGTERM, request)
                self.kill_at = boottime() + float(request.get("grace_s", 10))
        if self.kill_at is not None and boottime() >= self.kill_at:
            self._signal_tree(signal.SIGKILL, request or {})
            self.kill_at = boottime() + 1.0

    def _signal_tree(self, number: int, request: dict[str, Any]) -> None:
        pids = descendants(os.getpid())
        step = {"signal": int(number), "pids": pids, "boot": boottime(), "at": time.time(),
                "reason": request.get("reason", "user_stop"), "epoch": self.stop_epoch}  # fmt: skip
        self.stops.append(step)
        append_line(os.path.join(self.folder.path, "stopping.jsonl"), step)
        for pid in pids:
            try:
                os.kill(pid, number)  # our own children cannot have been reused: we have not reaped them
                os.kill(pid, signal.SIGCONT)  # a stopped process acts on TERM only once it goes on
            except OSError:
                pass

    # -- a live shim revives a controller that died, as long as the campaign's intent is `running`

    def _revive(self) -> None:
        state = self.order["state"]
        if boottime() - self.looked < self.order["revive_s"]:
            return
        self.looked = boottime()
        if read_text(os.path.join(state, "intent")).strip() != "running" or locked(
            os.path.join(state, "controller.lock")
        ):
            return
        argv = self.order["revive"]
        # Our orphans must not count the controller among them: it has to be adopted by someone above us.
        _libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            try:
                for caught in (signal.SIGCHLD, signal.SIGUSR1, signal.SIGTERM, signal.SIGINT):
                    signal.signal(caught, signal.SIG_DFL)
                os.setsid()
                if os.fork() == 0:
                    for fd in self.slot_fds:  # the controller must not keep our slots when we are gone
                        os.set_inheritable(fd, False)
                    log = os.open(os.path.join(state, "controller.log"), os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)
                    for number in (1, 2):  # nor write into the run's output
                        os.dup2(log, number)
                    os.execvpe(argv[0], argv, {**os.environ, "MUSTER_REVIVED_BY": "shim"})
            finally:
                os._exit(0)
        os.waitid(os.P_PID, pid, os.WEXITED)
        _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def flock_patiently(fd: int) -> bool:
    """A look at a lock (`locked`, a probe) holds it for microseconds; only a real owner still holds it after this."""
    for _ in range(20):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            time.sleep(0.005)
    return False


def append_line(path: str, value: object) -> None:
    fd = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)
    os.write(fd, (json.dumps(value) + "\n").encode())
    os.fsync(fd)
    os.close(fd)


def locked(path: str) -> bool:
    try:
        fd = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except OSError:
        return True
    finally:
        os.close(fd)


def drain(fd: int) -> None:
    try:
        while os.read(fd, 512):
            pass
    except OSError:
        pass


def tail(path: str) -> str:
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def free_bytes(path: str) -> int | None:
    try:
        stat = os.statvfs(path)
        return stat.f_bavail * stat.f_frsize
    except OSError:
        return None


def cpu_seconds(pid: int) -> float | None:
    try:
        fields = stat_fields(pid)
        return sum(int(fields[index]) for index in (11, 12, 13, 14)) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return None


def oom_kills() -> int | None:
    """The memory cgroup's oom_kill count, or None where it can't be read."""
    for line in read_text("/proc/self/cgroup").splitlines():
        _, controllers, group = line.split(":", 2)
        base = (
            "/sys/fs/cgroup/memory"
            if "memory" in controllers.split(",")
            else "/sys/fs/cgroup"
            if not controllers
            else None
        )
        if base is None:
            continue
        name = "memory.oom_control" if controllers else "memory.events"
        for entry in read_text(f"{base}{group}/{name}").splitlines():
            if entry.startswith("oom_kill "):
                return int(entry.split()[1])
    return None


def children(pid: int, but: int) -> list[int] | None:
    """Direct children; None where the kernel does not list them. Orphans of the run have become ours by now."""
    text = read_text(f"/proc/{pid}/task/{pid}/children", "unlisted")
    return None if text == "unlisted" else [child for child in map(int, text.split()) if child != but]


def descendants(root: int) -> list[int]:
    """Every live process below root, parents first, by one pass over /proc."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = stat_fields(int(name))
                if fields[0] != b"Z":
                    parents.setdefault(int(fields[1]), []).append(int(name))
            except (OSError, IndexError):
                continue
    found: list[int] = []
    queue = [root]
    while queue:
        children = parents.get(queue.pop(0), [])
        found += children
        queue += children
    return found


def holds_gpu(pid: int) -> bool:
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return True  # what can't be read counts as active
    for name in names:
        try:
            target = os.readlink(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue
        if target.startswith("/dev/nvidia") and target[11:].isdigit():
            return True
    return False


def enter(path: str) -> None:
    """Step 1: a session of its own, stdio to files."""
    try:
        os.setsid()
    except OSError:
        pass  # a group leader already, started in a session of its own
    null = os.open("/dev/null", os.O_RDONLY)
    flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY
    out = os.open(os.path.join(path, "stdout.log"), flags, 0o644)
    err = os.open(os.path.join(path, "stderr.log"), flags, 0o644)
    for source, target in ((null, 0), (out, 1), (err, 2)):
        os.dup2(source, target)
    for fd in (null, out, err):
        if fd > 2:
            os.close(fd)


def run(path: str, slot_fds: list[int]) -> int:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    enter(path)
    return Shim(path, slot_fds).run()


def serve(fd: int) -> int:
    """The warm process. It holds nothing that matters: if it dies, shims are executed instead of forked.

    One spare child always waits at the socket, so that the cost of forking is paid before a request comes.
    """
    import gc
    import socket

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps our shims
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server = socket.socket(fileno=fd)
    host()
    gc.collect()
    gc.freeze()
    gc.disable()  # a shim makes no garbage worth the pages that a collection would copy
    closed = select.poll()
    closed.register(server, 0)  # nothing but the hang-up
    while True:
        reader, writer = os.pipe2(os.O_CLOEXEC)
        if os.fork() == 0:
            spare(server, writer)
        os.close(writer)
        os.read(reader, 1)  # the spare has taken a request, or is gone
        os.close(reader)
        if closed.poll(0):
            return 0


def spare(server: socket.socket, taken: int) -> None:
    """Waits for one request and becomes its shim."""
    from socket import MSG_CMSG_CLOEXEC, recv_fds

    code = 1
    try:
        warm_up()
        data, fds, _, _ = recv_fds(server, 65536, 16, MSG_CMSG_CLOEXEC)
        server.close()
        os.close(taken)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        code = run(data.decode(), list(fds)) if data else 0
    except BaseException as error:
        os.write(2, f"muster shim: {error!r}\n".encode())
    finally:
        os._exit(code)


def warm_up() -> None:
    """Touches what a shim will use: pages that are shared after the fork are copied now, not on the way to a run."""
    oom_kills()
    json.loads(json.dumps({"pid": start_ticks(os.getpid()), "boot": boottime(), "of": [None, "text", 1.5]}))
    free_bytes("/")
    children(os.getpid(), but=0)


def stop_without_shim(path: str) -> int:
    """Ends the tree of an attempt whose shim is gone: what `_obey` does, for processes that are not our children."""
    folder = Folder(path, "")
    who, request = folder.read("identity.json"), folder.read("stop")
    token = "MUSTER_ATTEMPT=" + (who or {}).get("token", "")
    if not who or not request or any(who[name] != value for name, value in host().items()):
        return 0
    deadline = boottime() + float(request.get("grace_s", 10))
    number = signal.SIGTERM
    while True:
        pids = tree_of(who, token.encode())
        if not pids:
            return 0
        append_line(os.path.join(path, "stopping.jsonl"), {
            "signal": int(number), "pids": pids, "boot": boottime(), "at": time.time(), "reason": request["reason"],
            "epoch": request["epoch"],
        })  # fmt: skip
        signal_exactly(pids, lambda: tree_of(who, token.encode()), number)
        while boottime() < deadline and tree_of(who, token.encode()):
            time.sleep(0.05)
        number, deadline = signal.SIGKILL, boottime() + 1.0


def tree_of(who: dict[str, Any], token: bytes) -> list[int]:
    """The run and all that descends from it or carries its token."""
    found = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if carries(pid, token)]
    try:
        if start_ticks(who["pid"]) == who["ticks"] and who["pid"] not in found and is_live(who["pid"]):
            found.append(who["pid"])
            found += [pid for pid in descendants(who["pid"]) if pid not in found]
    except OSError:
        pass
    return found


def carries(pid: int, token: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return token in file.read().split(b"\0") and is_live(pid)
    except OSError:
        return False


def is_live(pid: int) -> bool:
    try:
        return stat_fields(pid)[0] not in (b"Z", b"X")
    except (OSError, IndexError):
        return False


def signal_exactly(pids: list[int], tree: Any, number: int) -> None:
    """By pidfd, and only to those that are still in the tree once the pidfds are open: a reused pid is not."""
    held = {}
    for pid in pids:
        try:
            held[pid] = os.pidfd_open(pid)
        except OSError:
            pass
    still = set(tree())
    for pid, fd in held.items():
        if pid in still:
            try:
                signal.pidfd_send_signal(fd, number)
            except OSError:
                pass
        os.close(fd)


def main(argv: list[str]) -> int:
    if argv[0] == "serve":
        return serve(int(argv[1]))
    if argv[0] == "stop":
        return stop_without_shim(argv[1])
    return run(argv[1], [int(fd) for fd in argv[2].split(",")] if len(argv) > 2 and argv[2] else [])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
