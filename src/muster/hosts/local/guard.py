"""The guard: waits for the end of a campaign's controller, and starts it again while the intent is `running`.

One file, standard library only, run under `python -I -S`. It imports nothing of muster, not even the shim, and no
`json` before it has something to tell: what it does not load it need not keep in memory for weeks. It decides
nothing.

    guard.py STATE [COMMAND...]   guard the campaign whose .muster folder is STATE; COMMAND starts a controller of it

`guard.lock` has one holder. It ends when the intent is another one, when the log says that the campaign is at rest,
or when its folder is gone or was moved.
"""

from __future__ import annotations

import fcntl
import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself would cost half a megabyte
    from typing import Literal

    Step = Literal["leave", "wait", "start"]

CONTROLLER = ("-P", "-m", "muster.bootstrap.begin_process", "muster.bootstrap.controller_process")
POINTS = ("guard.lock", "guard.start", "guard.leave")
LONG_S = 60.0  # who lived this long did not die of how it began
LOOK_S = 5.0  # between two looks while somebody holds the lock: the intent may have changed, the folder may be gone
SOON_S = 0.5  # the same while nobody does
LONGEST_REFUSED_S = 60.0  # between two looks while the system refuses them
AT_ONCE_S = 0.05  # whoever kills a controller in order to take its place has taken it by then
LONGEST_KILLED_S, LONGEST_FAILED_S = 10.0, 300.0
NOT_HERE = 3  # how a controller ends that must not be revived here: a folder from elsewhere, a copy, a newer Muster's
LOWERED_OOM_SCORE = b"-500"  # the kernel should take a run first; only the privileged may lower it
ENDED = b'{"kind":"end",'  # how the log begins a controller's last line
TAIL_BYTES = 4096
PRIVATE = 0o600  # of every file of ours, whatever the umask
SAID_CHARACTERS = 300
SIGHUP, SIGINT, SIGCHLD, SIGCONT = 1, 2, 17, 18  # `signal` would load `enum` for them


def next_guard_step(*, here: bool, intent: str, attended: bool, at_rest: bool, pause_s: float) -> Step:
    """What is to be done now; `attended`: there is a controller, or one is coming. Pure.

    An intent that can't be read may be any: a controller that is started for nothing says so in the log and ends.
    """
    if not here or intent not in ("running", ""):
        return "leave"
    if attended:
        return "wait"
    if at_rest:
        return "leave"
    return "wait" if pause_s > 0 else "start"


def ends_with_end_decision(tail: bytes) -> bool:
    """Whether the last whole line of the log is a controller's `end`; a line that was torn is no last word. Pure."""
    lines = tail.split(b"\n")
    return lines[-1] == b"" and len(lines) > 1 and lines[-2].startswith(ENDED)


class ControllerLosses:
    """Controllers that ended and should not have, one after the other, and how long to wait before the next."""

    def __init__(self) -> None:
        self.short = 0  # of these that did not live long, in a row
        self.failed = 0  # of these that ended by themselves and said that they failed, in a row

    def add(self, lived_s: float, code: int | None) -> None:
        """`code`: how it exited; None: by a signal, or nobody knows."""
        self.short = 1 if lived_s >= LONG_S else self.short + 1
        self.failed = self.failed + 1 if code else 0

    @property
    def pause_s(self) -> float:
        """A killed one comes back at once. What fails by itself is likely to fail again."""
        if self.failed:
            return float(min(2.0 * 2 ** min(self.failed - 1, 20), LONGEST_FAILED_S))
        if self.short <= 1:
            return AT_ONCE_S
        return float(min(0.25 * 2 ** min(self.short - 2, 20), LONGEST_KILLED_S))


class Guard:
    def __init__(self, state: str, command: list[str], umask: int = 0o022) -> None:
        self.state, self.command = state, command
        self.pace = float(os.environ.get("MUSTER_PACE", "1"))
        self.umask = umask  # for a controller: that of whoever started us
        self.lock = -1
        self.losses = ControllerLosses()
        self.child = 0  # the controller that we started, until it is reaped
        self.holder = 0  # who held the lock when we looked last
        self.led = False  # and whether that was a controller; a command that decides holds it for a moment, too
        self.since = 0.0  # since when we know of child or holder
        self.start_at = 0.0
        self.barred = False  # a controller said that none may be started here
        self.refused = 0  # looks that the system refused us, in a row
        self.said = ""  # of these, what was noted last

    def run(self) -> int:
        if not self._lock():
            return 0
        while True:
            try:
                if self._turn() == "leave":
                    reach_guard_point("guard.leave")
                    return 0
                self.refused, self.said = 0, ""
            except OSError as error:  # the system may refuse us files or memory for a while
                if not self._here() or read_small_text(self._path("intent")).strip() not in ("running", ""):
                    return 0
                self._refuse(str(error))

    def _refuse(self, why: str) -> None:
        """Told once; the next look is later each time."""
        if why != self.said:
            self._note(f"guard: {why}; it looks again, at least every {LONGEST_REFUSED_S:.0f} s")
        self.said = why
        time.sleep(min(SOON_S * 2 ** min(self.refused, 20), LONGEST_REFUSED_S))
        self.refused += 1

    def _lock(self) -> bool:
        self.lock = os.open(self._path("guard.lock"), os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, PRIVATE)
        if not take_guard_lock(self.lock):
            self._nudge_holder()
            return False
        os.ftruncate(self.lock, 0)
        os.pwrite(self.lock, f"{os.getpid()} {start_ticks_or_none(os.getpid())}\n".encode(), 0)
        reach_guard_point("guard.lock")
        return True

    def _nudge_holder(self) -> None:
        """Whoever wants a guard and finds one that is stopped lets it go on: it keeps its lock and guards nothing."""
        pid, _, ticks = read_small_text(self._path("guard.lock")).partition(" ")
        if (
            pid.isdecimal()
            and ticks.strip() == str(start_ticks_or_none(int(pid)))
            and process_state_letter(int(pid)) == "T"
        ):
            os.kill(int(pid), SIGCONT)

    def _turn(self) -> Step:
        self._reap()
        holder = self._holder()
        if self.led and not holder and not self.child:
            self._lost(None)
        if holder not in (0, self.holder, self.child):
            self.since = guard_boottime()
        self.holder, self.led = holder, bool(holder) and self._leads()
        attended = bool(holder or self.child)
        intent = read_small_text(self._path("intent")).strip()
        rests = not attended and (self.barred or self._at_rest())
        pause_s = self.start_at - guard_boottime()
        step = next_guard_step(here=self._here(), intent=intent, attended=attended, at_rest=rests, pause_s=pause_s)
        if step == "start":
            self._start()
        elif step == "wait":
            self._wait(LOOK_S if attended else min(SOON_S, max(pause_s, 0.0)))
        return step

    # -- looks

    def _here(self) -> bool:
        """Whether our lock still lies where the campaign lay: not if the folder was deleted or has moved."""
        try:
            ours, there = os.fstat(self.lock), os.stat(self._path("guard.lock"))
        except OSError:
            return False
        return (ours.st_ino, ours.st_dev) == (there.st_ino, there.st_dev)

    def _holder(self) -> int:
        """Who holds controller.lock: 0 for nobody, -1 for one that we can't name."""
        path = self._path("controller.lock")
        if not is_lock_held(path):
            return 0
        about = read_small_text(path)
        pid = number_in_flat_json(about, "pid")
        return pid if pid > 0 and start_ticks_or_none(pid) == number_in_flat_json(about, "ticks") else -1

    def _leads(self) -> bool:
        """Whether the holder has taken an epoch."""
        return number_in_flat_json(read_small_text(self._path("controller.lock")), "epoch") > 0

    def _at_rest(self) -> bool:
        """The last word of the log is a controller's `end`: nothing is left to do. Without a log there is nothing."""
        try:
            fd = os.open(self._path("decisions.jsonl"), os.O_RDONLY)
        except FileNotFoundError:
            return True
        try:
            size = os.fstat(fd).st_size
            return ends_with_end_decision(os.pread(fd, TAIL_BYTES, max(0, size - TAIL_BYTES)))
        finally:
            os.close(fd)

    # -- waits

    def _wait(self, seconds: float) -> None:
        """Until the controller ends, or for so long."""
        poll, held = select.poll(), []
        try:
            for pid in {self.child, self.holder}:
                if pid > 0:
                    try:
                        held.append(os.pidfd_open(pid))
                    except ProcessLookupError:
                        return
                    poll.register(held[-1], select.POLLIN)
            poll.poll(seconds * 1000 + 1)
        finally:
            for fd in held:
                os.close(fd)

    def _reap(self) -> None:
        if not self.child:
            return
        info = os.waitid(os.P_PID, self.child, os.WEXITED | os.WNOHANG)
        if info is None:
            return
        code = info.si_status if info.si_code == os.CLD_EXITED else None
        self.child, self.led = 0, False
        if code == NOT_HERE:
            self.barred = True
        elif not self._holder():  # else it came too late, and ended for that
            self._lost(code)

    def _lost(self, code: int | None) -> None:
        """A controller has ended. If it was not meant to, the next one waits a little, and more each time."""
        if self._at_rest() or read_small_text(self._path("intent")).strip() not in ("running", ""):
            return
        self.losses.add(guard_boottime() - self.since, code)
        pause_s = self.losses.pause_s * self.pace
        self.start_at = guard_boottime() + pause_s
        self._tell(code, pause_s)

    # -- starts

    def _start(self) -> None:
        self.since = guard_boottime()
        pid = os.fork()
        if pid == 0:
            try:
                self._become_a_controller()
            finally:
                os._exit(127)
        self.child = pid
        reach_guard_point("guard.start")

    def _become_a_controller(self) -> None:
        os.setsid()
        log = os.open(self._path("controller.log"), os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_NOFOLLOW, PRIVATE)
        for number in (1, 2):
            os.dup2(log, number)
        os.chdir(os.path.dirname(self.state))
        os.umask(self.umask)
        restore_controller_signals()
        os.execve(self.command[0], self.command, {**os.environ, "MUSTER_REVIVED_BY": "guard"})

    # -- words, for `muster status` and for the next controller

    def _tell(self, code: int | None, pause_s: float) -> None:
        """Readers see all of it or none. It may be lost: then nobody hears how often it was tried."""
        import json

        said = tail_text(self._path("controller.log")).strip().rpartition("\n")[2] if code else ""
        value = {
            "times": self.losses.short,
            "failed": self.losses.failed,
            "code": code,
            "at": time.time(),
            "next": time.time() + pause_s,
            "said": said[-SAID_CHARACTERS:],
        }
        partial = self._path(f".guard.json.{os.urandom(6).hex()}.{os.getpid()}")
        try:
            fd = os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, PRIVATE)
            try:
                os.write(fd, json.dumps(value).encode())
            finally:
                os.close(fd)
            os.rename(partial, self._path("guard.json"))
        except OSError:
            pass

    def _note(self, text: str) -> None:
        try:
            fd = os.open(self._path("controller.log"), os.O_APPEND | os.O_WRONLY | os.O_NOFOLLOW)
            try:
                os.write(fd, f"muster {text}\n".encode("utf-8", "replace"))
            finally:
                os.close(fd)
        except OSError:
            pass

    def _path(self, name: str) -> str:
        return os.path.join(self.state, name)


# -- the few things of the shim's that it needs, too


def reach_guard_point(point: str) -> None:
    """A named crash point, as the shim has them."""
    name, _, how = os.environ.get("MUSTER_CRASH_AT", "").partition(":")
    if name != point:
        return
    once = os.environ.get("MUSTER_CRASH_ONCE")
    if once:
        try:
            os.close(os.open(once, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return
    os.kill(os.getpid(), 19 if how == "stop" else 9)


def guard_boottime() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def start_ticks_or_none(pid: int) -> int:
    """-1: there is no such process."""
    fields = stat_field_texts(pid)
    return int(fields[19]) if len(fields) > 19 else -1


def process_state_letter(pid: int) -> str:
    return "".join(stat_field_texts(pid)[:1])


def stat_field_texts(pid: int) -> list[str]:
    """Of /proc/PID/stat, from the state letter on."""
    return read_small_text(f"/proc/{pid}/stat").rpartition(")")[2].split()


def read_small_text(path: str) -> str:
    """ "": there is none, or it can't be read."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return ""
    try:
        return os.read(fd, 65536).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(fd)


def number_in_flat_json(text: str, name: str) -> int:
    """A number in the flat JSON object that a controller keeps in its lock; 0: it has none, or not there."""
    digits = text.partition(f'"{name}": ')[2].partition(",")[0]
    return int(digits) if digits.isdecimal() else 0


def tail_text(path: str) -> str:
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return ""
    try:
        return os.pread(fd, TAIL_BYTES, max(0, os.fstat(fd).st_size - TAIL_BYTES)).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(fd)


def take_guard_lock(fd: int) -> bool:
    """A look at a lock holds it for microseconds; only a real owner still holds it after this."""
    for _ in range(20):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            time.sleep(0.005)
    return False


def is_lock_held(path: str) -> bool:
    try:
        fd = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(fd)


def lower_oom_score() -> None:
    try:
        fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        try:
            os.write(fd, LOWERED_OOM_SCORE)
        finally:
            os.close(fd)
    except OSError:
        pass  # not allowed


def ignore_terminal_signals() -> None:
    import _signal  # type: ignore[import-not-found]  # `signal` would load `enum`

    for number in (SIGHUP, SIGINT):
        _signal.signal(number, _signal.SIG_IGN)
    _signal.signal(SIGCHLD, _signal.SIG_DFL)  # ignored by whoever started us, our children could not be waited for


def restore_controller_signals() -> None:
    """What we ignore, and what Python ignores for itself, is not for a controller."""
    import _signal

    for number in (SIGHUP, SIGINT, _signal.SIGPIPE, _signal.SIGXFSZ):
        _signal.signal(number, _signal.SIG_DFL)


def detach_from_starter() -> None:
    """From whoever started us: its session, its working folder, its descriptors, its output."""
    try:
        os.setsid()
    except OSError:
        pass  # a group leader already, started in a session of its own
    os.chdir("/")
    os.closerange(3, 1 << 20)
    null = os.open("/dev/null", os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    os.close(null)


def main(argv: list[str]) -> int:
    state = os.path.abspath(argv[0])
    if not os.path.isdir(state):
        return 0
    ignore_terminal_signals()
    detach_from_starter()
    lower_oom_score()
    command = argv[1:] or [sys.executable, *CONTROLLER, os.path.dirname(state)]
    return Guard(state, command, os.umask(0o077)).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
