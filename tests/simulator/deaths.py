"""How runs end, each with what it leaves behind and the cause that should be named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from muster.model.attempt_snapshot import PostMortem
from simulator.case import Case
from simulator.last_words import death_by, progress, raised, torchrun_hangup
from simulator.run import Veil
from simulator.shapes import log_uniform
from simulator.truth import Ending

BUS = "NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus"


def leave(case: Case, rng: Random) -> None:
    """How quickly the end is written down, heard of and proven."""
    leaving = case.leaving
    leaving.exit_delay = rng.uniform(0.005, 0.2) if rng.random() < 0.95 else rng.uniform(0.2, 3)
    leaving.proof_delay = rng.uniform(0, 0.3) if rng.random() < 0.9 else rng.uniform(0.3, 8)
    leaving.woken = rng.uniform(0.002, 0.2) if rng.random() < 0.9 else None
    leaving.zombie = rng.random() < 0.5


def _dies(
    case: Case,
    rng: Random,
    cause: str,
    code: int | None = None,
    signal: int | None = None,
    err: str = "",
    complete: bool = False,
    **after: object,
) -> None:
    leave(case, rng)
    before = case.host.oom_kills
    text = err or progress(rng)
    told = {"oom_before": before, "oom_after": before, "disk_free": case.host.disk_free, **after}
    in_one = rng.random() < 0.2  # 2>&1
    known = PostMortem(err="" if in_one else text, out=text if in_one else "", **told)  # type: ignore[arg-type]
    case.ending = Ending(case.at, code, signal, known, cause, proof_holds=complete or code == 0)


def _lost(case: Case, rng: Random, cause: str) -> None:
    """Nobody wrote its exit down."""
    leave(case, rng)
    case.ending = Ending(case.at, cause=cause, proof_holds=False, seen=False)


def finished(case: Case, rng: Random) -> None:
    _dies(case, rng, "", 0)
    case.expected = "DONE"


def clock_jump(case: Case, rng: Random) -> None:
    """The wall clock jumps an hour, which boot time does not know of."""
    finished(case, rng)


def early_exit(case: Case, rng: Random) -> None:
    case.proof_declared = case.leaving.proof_fails = True
    _dies(case, rng, "early_exit", 0)


def exit_code(case: Case, rng: Random) -> None:
    _dies(case, rng, "exit_code", rng.choice((1, 2, 3, 64, 127, 255)), err="usage: train.py [-h]\n")


def exit_137(case: Case, rng: Random) -> None:
    _dies(case, rng, "exit_code", 137)


def exception(case: Case, rng: Random) -> None:
    _dies(case, rng, "exception", 1, err=death_by("exception", rng))


def teardown_error(case: Case, rng: Random) -> None:
    """All is written, and then the exit fails."""
    case.proof_declared = True
    _dies(case, rng, "exception", 1, err=death_by("exception", rng), complete=True)


def cuda_oom(case: Case, rng: Random) -> None:
    _dies(case, rng, "cuda_oom", 1, err=death_by("cuda_oom", rng))


def non_finite(case: Case, rng: Random) -> None:
    case.host.non_finite = case.at - rng.uniform(0, 60)
    _dies(case, rng, "non_finite", 1, err=death_by("non_finite", rng))


def disk_full(case: Case, rng: Random) -> None:
    _dies(case, rng, "disk_full", 1, err=death_by("disk_full", rng), disk_free=rng.choice((0, 4096)))


def kill_9(case: Case, rng: Random) -> None:
    if rng.random() < 0.3:
        case.host.oom_kills = None
    _dies(case, rng, "signal", signal=9)


def terminated(case: Case, rng: Random) -> None:
    """SIGTERM or a crash; perhaps long after a child was killed for lack of memory."""
    signal = rng.choice((15, 15, 11, 6, 7))
    if rng.random() < 0.4 and case.at > 600:
        case.host.oom_kills = 0
        case.host.oom_rises = case.at - rng.uniform(200, 500)
        _dies(case, rng, "signal", signal=15, oom_after=1)
    else:
        _dies(case, rng, "signal", signal=signal)


def oom_kill(case: Case, rng: Random) -> None:
    before = case.host.oom_kills = rng.choice((0, 0, 0, 3))
    kernel = ("Memory cgroup out of memory: Killed process 100 (python) total-vm:90000kB",)
    _dies(case, rng, "oom_kill", signal=9, oom_after=before + 1, kernel=kernel if rng.random() < 0.5 else ())


def child_oom(case: Case, rng: Random) -> None:
    """A data worker is killed; the main process sees it and raises."""
    case.host.oom_kills, case.host.oom_rises = 0, case.at - rng.uniform(0, 2)
    _dies(case, rng, "exception", 1, err=death_by("worker_killed", rng), oom_after=1)


def hangup(case: Case, rng: Random) -> None:
    if rng.random() < 0.5:
        _dies(case, rng, "hangup", signal=1)
    else:
        _dies(case, rng, "hangup", 1, err=torchrun_hangup(rng))


def gpu_lost(case: Case, rng: Random) -> None:
    """The driver said so while it ran, the kernel says so, or NVML does when it has ended."""
    with_gpu(case, rng)
    err, told = progress(rng) + raised("gpu_lost", rng), rng.choice(("driver", "kernel", "end"))
    if told == "driver" and case.at < 600:
        told = "end"  # nobody may have looked before
    if told == "driver":
        case.veils.append(Veil(case.at - 3 * case.poll_s, case.at + 60, "lost", BUS))
    kernel = (BUS,) if told == "kernel" else ()
    _dies(case, rng, "gpu_lost", 1, err=err, gpu_lost=BUS if told == "end" else "", kernel=kernel)


def with_gpu(case: Case, rng: Random) -> None:
    style = case.style
    if not style.gpus:
        style.gpus, style.work = 1, replace(style.work, gpu=rng.uniform(5, 100))


def stopped_by_request(case: Case, rng: Random) -> None:
    cause = rng.choice(("user_stop", "timeout", "budget_stop"))
    _dies(case, rng, cause, signal=rng.choice((15, 9)))
    case.leaving.stop_reason = cause


def shim_killed(case: Case, rng: Random) -> None:
    """Its shim dies, the run lives on; later it ends, and nobody can tell how."""
    case.leaving.shim_dies = case.at
    if rng.random() < 0.7:
        case.at = min(case.at + log_uniform(rng, 5, 3600), case.length)
        _lost(case, rng, "unknown")
        case.leaving.shim_dies = min(case.leaving.shim_dies, case.at)


def pid_reuse(case: Case, rng: Random) -> None:
    """It is gone with its shim, and another process has its pid."""
    _lost(case, rng, "unknown")
    case.leaving.shim_dies = case.at - rng.uniform(0, 5)


def orphans(case: Case, rng: Random) -> None:
    """The main process ends; processes of it hold its lock for a while."""
    if rng.random() < 0.7:
        _dies(case, rng, "exit_code", 1, err="stopping\n")
    else:
        _lost(case, rng, "unknown")
        case.leaving.shim_dies = case.at
    case.leaving.orphans_s = log_uniform(rng, 3, 1200)
    case.leaving.orphans_told = rng.random() < 0.7


def host_reboot(case: Case, rng: Random) -> None:
    _lost(case, rng, "host_reboot")
    case.leaving.host = "rebooted"
    case.hole(case.at, log_uniform(rng, 60, 3600), "lost")


def container_restart(case: Case, rng: Random) -> None:
    _lost(case, rng, "container_restart")
    case.leaving.host = "restarted"
    case.hole(case.at, log_uniform(rng, 5, 600), "lost")


def never_started(case: Case, rng: Random) -> None:
    case.at = 0.1
    if rng.random() < 0.5:
        _dies(case, rng, "never_started", 127)
        case.leaving.exec_error = "[Errno 2] No such file or directory: 'pyhton'"
    else:
        _lost(case, rng, "never_started")
        case.leaving.never_executed = True
        case.leaving.shim_dies = 0.1


Fault = Callable[[Case, Random], None]

DEATHS: tuple[Fault, ...] = (
    finished,
    clock_jump,
    early_exit,
    exit_code,
    exit_137,
    exception,
    teardown_error,
    cuda_oom,
    non_finite,
    disk_full,
    kill_9,
    terminated,
    oom_kill,
    child_oom,
    hangup,
    gpu_lost,
    stopped_by_request,
    shim_killed,
    pid_reuse,
    orphans,
    host_reboot,
    container_restart,
    never_started,
)
