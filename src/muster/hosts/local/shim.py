"""The shim: owns one attempt's command and writes its exit down, whatever happens to everything else.

One file, standard library only, run under `python -I -S`; imports nothing of muster and never opens the database.

    shim.py run FOLDER [FD,FD...]   become the shim of the attempt in FOLDER; the fds are slot leases to pass on
    shim.py serve FD                stay warm and fork a shim for each request that comes over the socket FD
    shim.py stop FOLDER [TOKEN]     end the tree of an attempt whose shim is gone

The steps are those of docs/architecture.md, "How an attempt is executed"; the order of the writes is the protocol, so
read it top to bottom.
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
    "shim.started.create",
    "shim.started.fsync",
    "shim.started.dirsync",
    "shim.fork",
    "shim.identity.write",
    "shim.identity.fsync",
    "shim.identity.rename",
    "shim.identity.dirsync",
    "shim.gate",
    "child.execing",
    "shim.waiting",
    "shim.exited",
    "shim.exit.write",
    "shim.exit.fsync",
    "shim.exit.rename",
    "shim.exit.dirsync",
    "shim.reaped",
    "shim.bell",
)
PR_SET_CHILD_SUBREAPER = 36
RAISED_OOM_SCORE = b"300"  # the kernel should take the run before it takes the shim
TAIL_BYTES = 4096
ROOM_S = 0.5  # between two tries on a full disk
EXIT_S = 180.0  # how long exit.json is tried on any other error, before it is written elsewhere
MOST_FDS = 253  # SCM_MAX_FD: the most leases that one request can carry
LONGEST_AGAIN_S = 60.0  # between two KILLs to a tree that does not die
HOST: dict[str, Any] = {}
CALLED_WITH = {"umask": 0o022}  # that of whoever started us: what we make ourselves is private
HIGH_FD = 700  # scripts use low numbers for themselves (`exec 9>file`, `flock 200`) and would let go of a lock there
ORDER_FORMAT = 1  # as in model/errors.py
UNEXECUTED = 125  # how the child ends when the gate closes without a word
PRIVATE = 0o600  # of every file of ours, whatever the umask
UMASK = "MUSTER_UMASK"  # as in files/atomic_write.py: in the recorded environment, that of whoever called `up`

_libc = ctypes.CDLL(None, use_errno=True)


def reach_shim_point(point: str) -> None:
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


def shim_boottime() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def read_start_ticks(pid: int) -> int:
    """Field 22 of /proc/PID/stat; with the pid and the boot id it names a process for ever."""
    return int(stat_field_bytes(pid)[19])


def stat_field_bytes(pid: int) -> list[bytes]:
    """Of /proc/PID/stat, from the state letter on."""
    return read_file_bytes(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def read_file_bytes(path: str) -> bytes:
    """By plain system calls: Python's file objects cost a launch half a millisecond."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # the run may have put a FIFO there
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


def read_text_or_default(path: str, default: str = "") -> str:
    try:
        return read_file_bytes(path).decode("utf-8", "replace")
    except OSError:
        return default


def read_object_or_none(path: str) -> dict[str, Any] | None:
    """None: there is no JSON object in it that can be read."""
    return _parse_json_object(read_text_or_default(path))


def _parse_json_object(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def host_identity() -> dict[str, Any]:
    """What tells this life of the machine from any other. It can't change while we live: the warm process asks once."""
    if not HOST:
        HOST.update(
            boot_id=read_text_or_default("/proc/sys/kernel/random/boot_id").strip(),
            pid_namespace=os.stat("/proc/self/ns/pid").st_ino,
            init_ticks=start_ticks_of_init(),
        )
    return HOST


def start_ticks_of_init() -> int:
    """0: /proc hides process 1 from us, and the namespace alone tells."""
    try:
        return read_start_ticks(1)
    except OSError:
        return 0


class AttemptFolder:
    """The attempt's folder, and the two ways a fact gets into it."""

    def __init__(self, path: str, ballast: str) -> None:
        self.path = path
        self.ballast = ballast
        self.partial = ""  # a file that was begun and could not be finished
        self.fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)

    def create(self, name: str, text: str, point: str) -> bool:
        """Exclusive and durable; False if it exists already."""
        try:
            fd = self.with_room(lambda: os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE, dir_fd=self.fd))
        except FileExistsError:
            return False
        reach_shim_point(point + ".create")
        self.with_room(lambda: write_all_bytes(fd, text.encode(), os.fsync))
        os.close(fd)
        reach_shim_point(point + ".fsync")
        self.with_room(lambda: os.fsync(self.fd))
        reach_shim_point(point + ".dirsync")
        return True

    def write(self, name: str, value: object, point: str) -> None:
        """Write, fsync, rename, fsync the folder: readers see all of it or none. Without room all is done again."""
        data = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        self.with_room(lambda: self._replace(name, data, point))

    def _replace(self, name: str, data: bytes, point: str) -> None:
        self.clear()
        self.partial = partial = f".{name}.{os.urandom(6).hex()}.{os.getpid()}"
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW
        fd = os.open(partial, flags, PRIVATE, dir_fd=self.fd)
        try:
            write_all_bytes(fd, data)
            reach_shim_point(point + ".write")
            os.fsync(fd)
        finally:
            os.close(fd)
        reach_shim_point(point + ".fsync")
        os.rename(partial, name, src_dir_fd=self.fd, dst_dir_fd=self.fd)
        self.partial = ""
        reach_shim_point(point + ".rename")
        os.fsync(self.fd)
        reach_shim_point(point + ".dirsync")

    def clear(self) -> None:
        """Takes away what could not be finished: it takes room."""
        if self.partial:
            try:
                os.unlink(self.partial, dir_fd=self.fd)
            except OSError:
                pass
            self.partial = ""

    def with_room(self, step: Any) -> Any:
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


def write_all_bytes(fd: int, data: bytes, then: Any = None) -> None:
    """All of it, from the start. A disk that is nearly full takes a part and calls that a success."""
    if os.pwrite(fd, data, 0) < len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if then:
        then(fd)


class Shim:
    def __init__(self, path: str, slot_fds: list[int]) -> None:
        self.slot_fds = slot_fds
        order = read_object_or_none(os.path.join(path, "attempt.json"))
        if not order:
            raise SystemExit(f"no readable attempt.json in {path}")
        if order.get("muster", 1) > ORDER_FORMAT:
            raise SystemExit(f"attempt.json in {path} is of a newer Muster")
        self.order = order
        self.folder = AttemptFolder(path, order["ballast"])
        self.state_fd = open_folder(order["state"])
        self.began = self.looked = shim_boottime()
        # 1 to 1.5 times what was asked for: the shims of one batch must not all revive in the same second
        spread = int.from_bytes(order["token"].encode(), "big") % 997 / 997
        self.revive_s: float = min(order["revive_s"], 86400.0) * (1 + spread / 2)
        self.child = 0
        self.stops: list[dict[str, Any]] = []  # steps taken to end the tree, in order
        self.stop_epoch = -1
        self.kill_at: float | None = None
        self.again_s = 1.0
        self.oom_before: int | None = None

    def run(self) -> int:
        wakeup = self._listen()  # before the lock tells others whom to poke
        _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        if not self._lock() or self._slot_was_deleted():
            return 0
        if not self.folder.create("started", self.order["token"], "shim.started"):
            return 0
        pidfd, errors = self._launch()
        self._wait_for_exit(pidfd, wakeup)
        self._write_exit(pidfd, errors)
        self._linger(wakeup)
        self._leave_nobody_alone()
        return 0

    # -- steps 1 to 5: the lock, the one permission to execute, the child behind its gate

    def _lock(self) -> bool:
        fd = os.open(os.path.join(self.folder.path, "shim.lock"), os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, PRIVATE)
        if not take_shim_lock(fd):
            return False
        os.ftruncate(fd, 0)
        self.folder.with_room(lambda: write_all_bytes(fd, f"{os.getpid()} {read_start_ticks(os.getpid())}\n".encode()))
        reach_shim_point("shim.lock")
        return True

    def _slot_was_deleted(self) -> bool:
        """While the request for us was on its way nobody could see that it held the slot: another run may have it now.

        Whoever looks from here on finds the deleted file among our descriptors. The controller leases and asks again.
        """
        return any(os.fstat(fd).st_nlink == 0 for fd in self.slot_fds)

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
        flags = os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
        tree = os.open(os.path.join(self.folder.path, "tree.lock"), flags, PRIVATE)
        take_shim_lock(tree)
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
        reach_shim_point("shim.fork")
        self.folder.write("identity.json", self._identity(pid), "shim.identity")
        os.write(gate_writer, b"g")
        os.close(gate_writer)
        reach_shim_point("shim.gate")
        self.oom_before = own_oom_kills()
        self._sync_order()
        return pidfd, error_reader

    def _sync_order(self) -> None:
        """attempt.json must outlive a power cut if exit.json does; while the run starts this costs nobody time."""
        try:
            fd = os.open("attempt.json", os.O_RDONLY, dir_fd=self.folder.fd)
            os.fsync(fd)
            os.close(fd)
        except OSError:
            pass

    def _identity(self, pid: int) -> dict[str, Any]:
        return {
            **host_identity(),
            "pid": pid,
            "ticks": read_start_ticks(pid),
            "shim_pid": os.getpid(),
            "shim_ticks": read_start_ticks(os.getpid()),
            "token": self.order["token"],
            "boot": shim_boottime(),
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
            os.close(os.open("execing", os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, PRIVATE, dir_fd=self.folder.fd))
            reach_shim_point("child.execing")
            os.execvpe(self.order["argv"][0], self.order["argv"], env)
        except BaseException as error:
            try:
                self._confess(errors, error, "" if trouble else self.order["argv"][0])
            finally:  # its own log may have no room for it
                os._exit(127)

    def _prepare(self, tree: int) -> dict[str, str]:
        restore_run_signals()
        try:
            score = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
            os.write(score, RAISED_OOM_SCORE)
            os.close(score)
        except OSError:
            pass
        for fd in (tree, *self.slot_fds):
            try:
                fcntl.fcntl(fd, fcntl.F_DUPFD, HIGH_FD)
            except OSError:
                os.set_inheritable(fd, True)
        env: dict[str, str] = json.loads(read_file_bytes(self.order["env_file"])) if self.order.get("env_file") else {}
        env.update(self.order["env"])
        os.umask(umask_for_run(env.pop(UMASK, "")))
        os.chdir(self.order["cwd"])
        return env

    def _confess(self, errors: int, error: BaseException, name: str) -> None:
        text = describe_start_error(error, name, "its recorded command or environment can't be used")
        os.write(errors, text.encode("utf-8", "replace")[:TAIL_BYTES])
        os.write(2, f"muster: the command could not be executed: {text}\n".encode("utf-8", "replace"))

    # -- step 6: wait, write the exit down, reap, linger

    def _wait_for_exit(self, pidfd: int, wakeup: int) -> None:
        reach_shim_point("shim.waiting")
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        poll.register(wakeup, select.POLLIN)
        self._tend()  # a stop may have been asked for before anybody could poke us
        while not any(fd == pidfd for fd, _ in poll.poll(self._patience() * 1000)):
            drain_pipe(wakeup)
            self._reap(keep=self.child)
            self._tend()
        reach_shim_point("shim.exited")

    def _patience(self) -> float:
        next_at = self.looked + self.revive_s
        return max(0.0, (next_at if self.kill_at is None else min(next_at, self.kill_at)) - shim_boottime())

    def _tend(self) -> None:
        """What a wake-up may call for. The system may refuse us files or memory for a while: the next tries again."""
        try:
            self._obey()
            self._revive()
        except (OSError, MemoryError):
            pass

    def _write_exit(self, pidfd: int, errors: int) -> None:
        info = os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOWAIT)
        assert info  # it blocks until there is one
        exited = info.si_code == os.CLD_EXITED
        try:
            exec_error = os.read(errors, TAIL_BYTES).decode("utf-8", "replace")
        except OSError:
            exec_error = ""
        facts = {
            "token": self.order["token"],
            "pid": self.child,
            "code": info.si_status if exited else None,
            "signal": None if exited else info.si_status,
            "core": info.si_code == os.CLD_DUMPED,
            "exec_error": exec_error or None,
            "at": time.time(),
            "boot": shim_boottime(),
            "duration_s": shim_boottime() - self.began,
            "stops": self.stops or self._stops_by_others(),
            "orphans": self._orphans(),
            "evidence": self._last_evidence(),
        }
        self._write_somewhere(facts)
        os.waitid(os.P_PIDFD, pidfd, os.WEXITED)
        reach_shim_point("shim.reaped")

    def _write_somewhere(self, facts: dict[str, Any]) -> None:
        """How it ended is known to nobody else: it is tried for minutes, then in the places that readers know of.

        At once there if the folder was deleted. In the end we give up: what is left of the tree still needs us.
        """
        until = shim_boottime() + EXIT_S
        while True:
            try:
                self.folder.write("exit.json", facts, "shim.exit")
                written = True
            except (OSError, MemoryError):
                written = False
            there = os.path.exists(self._here(self.order["state"]))
            if there and self._evicted():  # deleted, or moved to where nobody looks for it
                written = self._write_elsewhere(facts) or written
            elif not written and shim_boottime() >= until:
                written = self._write_elsewhere(facts)
            nowhere = self._evicted() and not self._refuges()  # as an older Muster ordered it
            if written or shim_boottime() >= until or not there or nowhere:
                return
            time.sleep(ROOM_S)

    def _write_elsewhere(self, facts: dict[str, Any]) -> bool:
        for place in self._refuges():
            try:
                for folder in (os.path.dirname(place), place):  # not what is above: if that is gone, so is its reader
                    if not os.path.isdir(folder):
                        os.mkdir(folder, 0o700)
                refuge = AttemptFolder(place, self.order["ballast"])
                refuge.write("attempt.json", self.order, "shim.exit")
                refuge.write("exit.json", facts, "shim.exit")
                break
            except (OSError, MemoryError):
                continue
        else:
            return False
        self.folder.clear()
        return True

    def _here(self, path: str) -> str:
        """Where readers look for it now: they know one place for each attempt, and go with a campaign that was moved.

        So what lies elsewhere in it was taken away from them. A state that was deleted leads nowhere else.
        """
        state = self.order["state"]
        try:
            now = os.readlink(f"/proc/self/fd/{self.state_fd}")
            if path.startswith(state) and os.path.samestat(os.stat(now), os.fstat(self.state_fd)):
                return now + path[len(state) :]
        except OSError:
            pass
        return path

    def _refuges(self) -> list[str]:
        return [self._here(place) for place in self.order.get("refuges", ())]

    def _evicted(self) -> bool:
        return not os.path.exists(os.path.join(self._here(self.folder.path), "started"))

    def _place(self) -> str:
        """Where others leave requests for us: our folder, or the first of the others if that was deleted."""
        refuges = self._refuges()
        return refuges[0] if refuges and self._evicted() else self._here(self.folder.path)

    def _stops_by_others(self) -> list[dict[str, Any]]:
        """Steps of whoever did not find us: our folder was deleted, and with it who we are."""
        if not self._evicted():
            return []
        lines = read_text_or_default(os.path.join(self._place(), "stopping.jsonl")).splitlines()
        return [step for line in lines if (step := _parse_json_object(line)) is not None]

    def _orphans(self) -> list[int] | None:
        """None: can't be told. Whoever still holds tree.lock without being our child has got away from us."""
        found = child_pids(os.getpid(), but=self.child)
        return None if not found and is_flock_held(os.path.join(self._here(self.folder.path), "tree.lock")) else found

    def _last_evidence(self) -> dict[str, Any]:
        """What only exists until the run is reaped, and what explains a death best while it is fresh."""
        folder = self._here(self.folder.path)
        return {
            "cpu_s": process_cpu_seconds(self.child),
            "log": file_tail_text(os.path.join(folder, "stderr.log")),
            "out": file_tail_text(os.path.join(folder, "stdout.log")),
            "disk_free": free_disk_bytes(folder),
            "oom_kills": [self.oom_before, own_oom_kills()],
        }

    def _linger(self, wakeup: int) -> None:
        """Orphans of the run are our children now: stay until they are gone, obey, free the slot if told to."""
        rung = lingered = False
        while self._reap():
            lingered = True
            if not rung:
                rung = self._bell()
            select.select([wakeup], [], [], self._patience())
            drain_pipe(wakeup)
            self._tend()
            if self._released() and not self._gpu_in_use():
                self._free_slots()
        self._free_slots()
        if lingered:
            self._tell_when_freed()
        self._bell()

    def _tell_when_freed(self) -> None:
        """When the last orphan was gone, for the ledger. Not synced: without it the slot counts until a look."""
        flags = os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_NOFOLLOW
        elsewhere = next((each for each in self._refuges() if os.path.exists(each + "/exit.json")), None)
        try:
            if elsewhere and self._evicted():  # beside how it ended
                fd = os.open(elsewhere + "/freed", flags, PRIVATE)
            else:
                fd = os.open("freed", flags, PRIVATE, dir_fd=self.folder.fd)
            try:
                write_all_bytes(fd, str(shim_boottime()).encode())
            finally:
                os.close(fd)
        except OSError:
            pass

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

    def _released(self) -> bool:
        return os.path.exists(os.path.join(self._place(), "release"))

    def _free_slots(self) -> None:
        for fd in self.slot_fds:  # on one descriptor frees it for all copies
            try:
                fcntl.flock(fd, fcntl.LOCK_UN)
            except OSError:
                pass

    def _gpu_in_use(self) -> bool:
        try:
            return any(holds_gpu_device(pid) for pid in descendant_pids(os.getpid()))
        except OSError:
            return True  # what can't be read counts as active

    def _bell(self) -> bool:
        reach_shim_point("shim.bell")
        try:
            fd = os.open(self._here(self.order["bell"]), os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
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
        request = read_stop_request(self._place())
        if request and request["epoch"] > self.stop_epoch:
            if self.kill_at is None:
                self._signal_tree(signal.SIGTERM, request)
                self.kill_at = shim_boottime() + request["grace_s"]
            self.stop_epoch = request["epoch"]
        if self.kill_at is not None and shim_boottime() >= self.kill_at:
            self.kill_at = shim_boottime() + self.again_s
            self.again_s = min(2 * self.again_s, LONGEST_AGAIN_S)
            self._signal_tree(signal.SIGKILL, request or {"epoch": self.stop_epoch, "reason": "user_stop"})

    def _signal_tree(self, number: int, request: dict[str, Any]) -> None:
        self.stops.append(signal_and_record_tree(self._place(), lambda: descendant_pids(os.getpid()), number, request))

    # -- a live shim revives a controller that died, as long as the campaign's intent is `running`

    def _revive(self) -> None:
        if shim_boottime() - self.looked < self.revive_s:
            return
        self.looked = shim_boottime()
        if (
            not self._released()
            and self._is_wanted()
            and not is_flock_held(os.path.join(self.order["state"], "controller.lock"))
        ):
            self._start_somebody()

    def _leave_nobody_alone(self) -> None:
        """Where nobody hears the bell we may be the last to know that something is left to do."""
        try:
            if self._is_wanted() and not self._is_heard():
                self._start_somebody()
        except (OSError, MemoryError):
            pass

    def _is_wanted(self) -> bool:
        return read_text_or_default(os.path.join(self.order["state"], "intent")).strip() == "running"

    def _is_heard(self) -> bool:
        try:
            os.close(os.open(self.order["bell"], os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW))
        except OSError as error:
            return error.errno not in (errno.ENXIO, errno.ENOENT)
        return True

    def _start_somebody(self) -> None:
        """A guard, which starts a controller; where there is a guard, the one we start ends at once."""
        # Our orphans must not count the controller among them: it has to be adopted by someone above us. So may an
        # orphan of the run in this instant; it still holds tree.lock.
        _libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        try:
            pid = os.fork()
            if pid == 0:
                self._become_another(self.order["state"])
            os.waitid(os.P_PID, pid, os.WEXITED)
        finally:
            _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def _become_another(self, state: str) -> None:
        try:
            signal.set_wakeup_fd(-1)
            restore_run_signals()
            os.setsid()
            if os.fork() == 0:
                for fd in self.slot_fds:  # it must not keep our slots when we are gone
                    os.set_inheritable(fd, False)
                flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_NOFOLLOW
                log = os.open(os.path.join(state, "controller.log"), flags, PRIVATE)
                os.umask(CALLED_WITH["umask"])
                for number in (1, 2):  # nor write into the run's output
                    os.dup2(log, number)
                argv = self.order["revive"]
                os.execvpe(argv[0], argv, {**os.environ, "MUSTER_REVIVED_BY": "shim"})
        finally:
            os._exit(0)


def restore_run_signals() -> None:
    """What we catch or ignore, what Python ignores for itself, and what `nohup` or a script's `&` had us inherit: none
    of it is for those that we start. SIGHUP alone stays ignored: there is no terminal that could mean it.
    """
    for number in signal.valid_signals() - {signal.SIGHUP, signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def umask_for_run(recorded: str) -> int:
    """That of whoever called `up`; where an older Muster recorded none, the one that we were called with."""
    known = 0 < len(recorded) <= 4 and not recorded.strip("01234567")
    return int(recorded, 8) if known else CALLED_WITH["umask"]


def describe_start_error(error: BaseException, name: str, otherwise: str) -> str:
    """Never the error itself: it may carry the bytes it choked on, and those may be a whole environment."""
    if isinstance(error, SystemExit):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.strerror}: {os.fsdecode(name or error.filename or '')!r}"
    return f"{otherwise} ({type(error).__name__})"


def take_shim_lock(fd: int) -> bool:
    """A look at a lock (`locked`, a probe) holds it for microseconds; only a real owner still holds it after this."""
    for _ in range(20):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            time.sleep(0.005)
    return False


def read_stop_request(path: str) -> dict[str, Any] | None:
    """Others write it: None for what is no request."""
    found = read_object_or_none(os.path.join(path, "stop")) or {}
    try:
        grace_s = max(0.0, float(found.get("grace_s", 10)))  # in this order it is never nan
        return {"epoch": int(found["epoch"]), "reason": str(found.get("reason", "user_stop")), "grace_s": grace_s}
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def signal_and_record_tree(path: str, tree: Any, number: int, request: dict[str, Any]) -> dict[str, Any]:
    """One step to end a tree. The signals come first, and they go out whether there is room to record them or not."""
    pids = tree()
    step = {
        "signal": int(number),
        "pids": pids,
        "boot": shim_boottime(),
        "at": time.time(),
        "reason": request["reason"],
        "epoch": request["epoch"],
    }
    signal_by_pidfd(pids, tree, number)
    try:
        flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_NOFOLLOW
        fd = os.open(os.path.join(path, "stopping.jsonl"), flags, PRIVATE)
        try:
            os.write(fd, (json.dumps(step) + "\n").encode())
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError:
        pass
    return step


def is_flock_held(path: str) -> bool:
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


def drain_pipe(fd: int) -> None:
    try:
        while os.read(fd, 512):
            pass
    except OSError:
        pass


def file_tail_text(path: str) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            return os.pread(fd, TAIL_BYTES, max(0, os.fstat(fd).st_size - TAIL_BYTES)).decode("utf-8", "replace")
        finally:
            os.close(fd)
    except OSError:
        return ""


def free_disk_bytes(path: str) -> int | None:
    try:
        stat = os.statvfs(path)
        return stat.f_bavail * stat.f_frsize
    except OSError:
        return None


def process_cpu_seconds(pid: int) -> float | None:
    try:
        fields = stat_field_bytes(pid)
        return sum(int(fields[index]) for index in (11, 12, 13, 14)) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None


def own_oom_kills() -> int | None:
    """The memory cgroup's oom_kill count, or None where it can't be read."""
    for line in read_text_or_default("/proc/self/cgroup").splitlines():
        controllers, _, group = line.partition(":")[2].partition(":")
        if controllers and "memory" not in controllers.split(","):
            continue
        base, name = ("/memory", "memory.oom_control") if controllers else ("", "memory.events")
        for entry in read_text_or_default(f"/sys/fs/cgroup{base}{group}/{name}").splitlines():
            key, _, number = entry.partition(" ")
            if key == "oom_kill" and number.isdecimal():
                return int(number)
    return None


def child_pids(pid: int, but: int) -> list[int] | None:
    """Direct children; None where the kernel does not list them. Orphans of the run have become ours by now."""
    text = read_text_or_default(f"/proc/{pid}/task/{pid}/children", "unlisted")
    return None if text == "unlisted" else [child for child in map(int, text.split()) if child != but]


def descendant_pids(root: int) -> list[int]:
    """Every live process below root, parents first, by one pass over /proc."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = stat_field_bytes(int(name))
                if is_live_state(fields):
                    parents.setdefault(int(fields[1]), []).append(int(name))
            except (OSError, ValueError, IndexError):
                continue
    found: list[int] = []
    queue = [root]
    while queue:
        children = parents.get(queue.pop(0), [])
        found += children
        queue += children
    return found


def holds_gpu_device(pid: int) -> bool:
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


def open_folder(path: str) -> int:
    """-1: it can't be opened."""
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return -1


def enter_session(path: str) -> None:
    """Step 1: a session of its own, stdio to files."""
    try:
        os.setsid()
    except OSError:
        pass  # a group leader already, started in a session of its own
    null = os.open("/dev/null", os.O_RDONLY)
    flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_NOFOLLOW
    out = os.open(os.path.join(path, "stdout.log"), flags, PRIVATE)
    err = os.open(os.path.join(path, "stderr.log"), flags, PRIVATE)
    for source, target in ((null, 0), (out, 1), (err, 2)):
        os.dup2(source, target)
    for fd in (null, out, err):
        if fd > 2:
            os.close(fd)


def run_shim(path: str, slot_fds: list[int]) -> int:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    enter_session(path)
    return Shim(path, slot_fds).run()


def serve_forks(fd: int) -> int:
    """The warm process. It holds nothing that matters: if it dies, shims are executed instead of forked.

    One spare child always waits at the socket, so that the cost of forking is paid before a request comes.
    """
    import gc
    import socket

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps our shims
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server = socket.socket(fileno=fd)
    host_identity()
    gc.collect()
    gc.freeze()
    gc.disable()  # a shim makes no garbage worth the pages that a collection would copy
    closed = select.poll()
    closed.register(server, 0)  # nothing but the hang-up
    while True:
        reader, writer = os.pipe2(os.O_CLOEXEC)
        if os.fork() == 0:
            await_fork_request(server, writer)
        os.close(writer)
        os.read(reader, 1)  # the spare has taken a request, or is gone
        os.close(reader)
        if closed.poll(0):
            return 0


def await_fork_request(server: socket.socket, taken: int) -> None:
    """Waits for one request and becomes its shim."""
    from socket import MSG_CMSG_CLOEXEC, recv_fds

    code = 1
    try:
        touch_shim_pages()
        data, fds, _, _ = recv_fds(server, 65536, MOST_FDS, MSG_CMSG_CLOEXEC)
        server.close()
        os.close(taken)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        code = run_shim(data.decode(), list(fds)) if data else 0
    except BaseException as error:
        os.write(2, f"muster shim: {describe_start_error(error, '', 'it failed')}\n".encode())
    finally:
        os._exit(code)


def touch_shim_pages() -> None:
    """Touches what a shim will use: pages that are shared after the fork are copied now, not on the way to a run."""
    own_oom_kills()
    fd = os.memfd_create("warm")
    take_shim_lock(fd)
    write_all_bytes(
        fd,
        json.dumps({"pid": read_start_ticks(os.getpid()), "boot": shim_boottime(), "of": [None, "text", 1.5]}).encode(),
    )
    json.loads(read_file_bytes(f"/proc/self/fd/{fd}"))
    os.close(fd)
    free_disk_bytes("/")
    child_pids(os.getpid(), but=0)
    read_stop_request("/proc")
    for number in (signal.SIGUSR1, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.getsignal(number))
    for end in os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK):
        os.close(end)
    select.poll().poll(0)
    pid = os.fork()  # a run is forked from here too
    if pid == 0:
        os._exit(0)
    try:
        os.waitpid(pid, 0)  # it must not be taken for an orphan of the run
    except ChildProcessError:
        pass


def stop_without_shim(path: str, token: str = "") -> int:
    """Ends the tree of an attempt whose shim is gone: what `_obey` does, for processes that are not our children.

    Where who it was is not written down any more, those that carry its token are all that can be found.
    """
    who, request = read_object_or_none(os.path.join(path, "identity.json")), read_stop_request(path)
    who = who or ({**host_identity(), "token": token, "pid": 0, "ticks": 0} if token else None)
    if not who or not request or any(who[name] != value for name, value in host_identity().items()):
        return 0
    carried = f"MUSTER_ATTEMPT={who['token']}".encode()
    deadline, again_s = shim_boottime() + request["grace_s"], 1.0
    number = signal.SIGTERM
    while tree_pids(who, carried):
        signal_and_record_tree(path, lambda: tree_pids(who, carried), number, request)
        while shim_boottime() < deadline and tree_pids(who, carried):
            time.sleep(0.05)
        number, deadline = signal.SIGKILL, shim_boottime() + again_s
        again_s = min(2 * again_s, LONGEST_AGAIN_S)
    return 0


def tree_pids(who: dict[str, Any], token: bytes) -> list[int]:
    """The run and all that descends from it or carries its token."""
    found = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if carries_token(pid, token)]
    try:
        if read_start_ticks(who["pid"]) == who["ticks"] and is_live_process(who["pid"]):
            found += [pid for pid in (who["pid"], *descendant_pids(who["pid"])) if pid not in found]
    except (OSError, IndexError):
        pass
    return found


def carries_token(pid: int, token: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return token in file.read().split(b"\0") and is_live_process(pid)
    except OSError:
        return False


def is_live_process(pid: int) -> bool:
    try:
        return is_live_state(stat_field_bytes(pid))
    except (OSError, ValueError, IndexError):
        return False


def is_live_state(fields: list[bytes]) -> bool:
    """A leader that has ended is called a zombie while other threads of it work on."""
    return fields[0] not in (b"Z", b"X") or int(fields[17]) > 1


def signal_by_pidfd(pids: list[int], tree: Any, number: int) -> None:
    """By pidfd, and only to those that are still in the tree once the pidfds are open: a reused pid is not.

    A part of them at a time: a process may hold about a thousand descriptors.
    """
    for start in range(0, len(pids), 256):
        held = {}
        for pid in pids[start : start + 256]:
            try:
                held[pid] = os.pidfd_open(pid)
            except OSError:
                pass
        try:
            still = set(tree())
            for pid in filter(still.__contains__, held):
                try:
                    signal.pidfd_send_signal(held[pid], number)
                    signal.pidfd_send_signal(held[pid], signal.SIGCONT)  # a stopped one acts on TERM once it goes on
                except OSError:
                    pass
        finally:
            for fd in held.values():
                os.close(fd)


def main(argv: list[str]) -> int:
    CALLED_WITH["umask"] = os.umask(0o077)
    if argv[0] == "serve":
        return serve_forks(int(argv[1]))
    if argv[0] == "stop":
        return stop_without_shim(*argv[1:3])
    return run_shim(argv[1], [int(fd) for fd in argv[2].split(",")] if len(argv) > 2 and argv[2] else [])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
