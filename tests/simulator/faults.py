"""What befalls runs and their watchers: nothing, stalls, deaths, and machines that can't be read.

Each fault changes a `Case` at its time. `FAULTS` names them all, so that coverage can be counted.
"""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

from simulator.case import Case, Hole
from simulator.deaths import BUS, DEATHS, Fault, with_gpu
from simulator.run import Freeze, Veil
from simulator.shapes import log_uniform
from simulator.timeline import Doing

EVER = math.inf


def healthy(case: Case, rng: Random) -> None:
    """Nothing, to the end."""


# -- stalls: the process lives and does not go on


def _asleep(case: Case, rng: Random) -> Doing:
    below = "".join(rng.choice("SSSZ") for _ in range(case.style.processes - 1))
    return Doing(letters=("S" + below,))


def _stopped(case: Case, rng: Random) -> Doing:
    count = case.style.processes
    launcher = count > 1 and rng.random() < 0.3
    return Doing(letters=("S" + "T" * (count - 1) if launcher else "T" * count,))


def sigstop(case: Case, rng: Random) -> None:
    case.freezes.append(Freeze(case.at, EVER, "stopped", _stopped(case, rng)))


def sigstop_sigcont(case: Case, rng: Random) -> None:
    end = case.at + log_uniform(rng, 20, 3600)
    case.freezes.append(Freeze(case.at, end, "stopped", _stopped(case, rng)))


def deadlock(case: Case, rng: Random) -> None:
    """A futex that nobody wakes: no CPU, no I/O."""
    case.freezes.append(Freeze(case.at, EVER, "idle", _asleep(case, rng)))


def deadlock_heartbeat(case: Case, rng: Random) -> None:
    """The same, and a side thread writes its statistics."""
    case.style.heart_bytes = case.style.heart_bytes or rng.randrange(100, 3000)
    case.freezes.append(Freeze(case.at, EVER, "busy", _asleep(case, rng), heart=True))


def spin(case: Case, rng: Random) -> None:
    """`while True: pass`, with the lock held."""
    doing = Doing(1.0, letters=("R" + "S" * (case.style.processes - 1),))
    case.freezes.append(Freeze(case.at, EVER, "busy", doing, heart=rng.random() < 0.5))


def gpu_spin(case: Case, rng: Random) -> None:
    """A kernel that never ends: 100 % and no step."""
    with_gpu(case, rng)
    doing = Doing(rng.choice((0.0, 1.0)), gpu=100.0, letters=("S" * case.style.processes,))
    case.freezes.append(Freeze(case.at, EVER, "busy", doing, heart=True))


def blocked(case: Case, rng: Random) -> None:
    """It waits inside the kernel for a file system that does not answer; some of these come back."""
    end = EVER if rng.random() < 0.6 else case.at + log_uniform(rng, 300, 7200)
    case.freezes.append(Freeze(case.at, end, "busy", Doing(letters=("D" + "S" * (case.style.processes - 1),))))


def gpu_lost_hang(case: Case, rng: Random) -> None:
    with_gpu(case, rng)
    case.freezes.append(Freeze(case.at, EVER, "busy", _asleep(case, rng)))
    case.veils.append(Veil(case.at, EVER, "lost", BUS))


# -- what can't be read, of a run that goes on


def nfs_hang(case: Case, rng: Random) -> None:
    end = case.at + log_uniform(rng, 30, 3 * 3600)
    case.veils.append(Veil(case.at, end, "marks", "its files have not answered for 9 s"))


def nfs_hang_blind(case: Case, rng: Random) -> None:
    end = case.at + log_uniform(rng, 30, 7200)
    case.veils.append(Veil(case.at, end, "marks", "Stale file handle"))
    case.veils.append(Veil(case.at, end, "vitals", "/proc can't be read"))


def torn_log(case: Case, rng: Random) -> None:
    """The newest line is half written, or cut by NULs, until the next ones come."""
    at = case.at
    for _ in range(rng.randrange(1, 6)):
        case.veils.append(Veil(at, at + log_uniform(rng, 2, 60), "torn", ""))
        at += log_uniform(rng, 100, 2000)


def nvml_hang(case: Case, rng: Random) -> None:
    with_gpu(case, rng)
    end = case.at + log_uniform(rng, 30, 4 * 3600)
    case.veils.append(Veil(case.at, end, "gpus", "NVML has not answered for 7 s"))


def proc_hidden(case: Case, rng: Random) -> None:
    start, length = (0.0, EVER) if rng.random() < 0.5 else (case.at, log_uniform(rng, 30, 7200))
    case.veils.append(Veil(start, start + length, "vitals", "/proc does not show all processes"))


def io_hidden(case: Case, rng: Random) -> None:
    """In many containers /proc/PID/io may not be read."""
    start, length = (0.0, EVER) if rng.random() < 0.7 else (case.at, log_uniform(rng, 30, 7200))
    case.veils.append(Veil(start, start + length, "io", "/proc/PID/io may not be read"))


def probes_hang(case: Case, rng: Random) -> None:
    """Life is read, the signals are not: their reader has not come back."""
    case.veils.append(Veil(case.at, case.at + log_uniform(rng, 30, 7200), "all", "no answer"))


# -- watchers that are late, asleep or away


def suspend(case: Case, rng: Random) -> None:
    case.hole(case.at, log_uniform(rng, 120, 4 * 3600), "suspended")


def starved(case: Case, rng: Random) -> None:
    """A busy machine: polls come minutes late, several in a row."""
    at = case.at
    for _ in range(rng.randrange(1, 4)):
        length = case.poll_s * 3 + log_uniform(rng, 20, 600)
        case.hole(at, length, "starved")
        at += length + case.poll_s * rng.uniform(0, 10)


def controller_restart(case: Case, rng: Random) -> None:
    case.hole(case.at, log_uniform(rng, 0.5, 1800), "restart")


def controller_lost(case: Case, rng: Random) -> None:
    """It comes back without what it had learned."""
    case.hole(case.at, log_uniform(rng, 0.5, 1800), "lost")


def profiler(case: Case, rng: Random) -> None:
    """A debugger stops it for a moment: one look may show state t."""
    at = case.at
    for _ in range(rng.randrange(1, 4)):
        letters = rng.choice("Tt") * case.style.processes
        case.freezes.append(Freeze(at, at + case.poll_s * rng.uniform(0.3, 0.9), "glance", Doing(letters=(letters,))))
        at += case.poll_s * rng.uniform(3, 100)


DISTURBANCES: tuple[Fault, ...] = (
    nfs_hang,
    nfs_hang_blind,
    torn_log,
    nvml_hang,
    proc_hidden,
    io_hidden,
    probes_hang,
    suspend,
    starved,
    controller_restart,
    controller_lost,
    profiler,
)
STALLS: tuple[Fault, ...] = (
    sigstop,
    sigstop_sigcont,
    deadlock,
    deadlock_heartbeat,
    spin,
    gpu_spin,
    blocked,
    gpu_lost_hang,
)
FAULTS: dict[str, Fault] = {fault.__name__: fault for fault in (healthy, *STALLS, *DISTURBANCES, *DEATHS)}


def disturb(case: Case, rng: Random) -> None:
    """A second trouble, at a time of its own: it may meet the fault or not."""
    own = case.at
    case.at = rng.uniform(0, case.length)
    rng.choice(DISTURBANCES)(case, rng)
    case.at = own


def settle(case: Case) -> None:
    """What two troubles at once make impossible: nobody dies on a sleeping machine, or tells what nobody could read."""
    ending = case.ending
    if ending is None:
        return
    for hole in case.holes:
        if hole.kind == "suspended" and hole.start <= ending.at <= hole.end:
            ending = replace(ending, at=hole.end + 1.0)
    hidden: list[Hole | Veil] = [*case.holes, *(veil for veil in case.veils if veil.what in ("gpus", "vitals", "all"))]
    if ending.cause == "gpu_lost" and any(each.end > ending.at - 300 for each in hidden):
        ending = replace(ending, aftermath=replace(ending.aftermath, kernel=(BUS,)))
    case.ending = ending
