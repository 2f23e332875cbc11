"""What a training script pays for its gate: the import, and a decision at every step."""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from muster.stages import Gate, GateSettings

Say = Callable[[str, str, str, bool], None]
CRITERIA, SIZE = 10, 100
KINDS = ("mean", "median", "min", "max", "all", "p10")


def imported(say: Say, times: int = 60) -> None:
    """One after the other, so that whatever else the machine does falls on both; bytecode is there after the first."""
    bare, ours = [sys.executable, "-c", "pass"], [sys.executable, "-c", "import muster.stages"]
    spent(bare), spent(ours)
    pairs = [(spent(bare), spent(ours)) for _ in range(times)]
    floor = statistics.median(one[0] for one, _ in pairs)
    cpu, wall = (statistics.median(other[at] - one[at] for one, other in pairs) for at in (0, 1))
    say("import muster.stages, bytecode there",
        f"adds {cpu:.1f} ms of CPU to {floor:.1f} ms ({wall:.1f} ms by the clock; {times} pairs)",
        "adds < 30 ms", cpu < 30)  # fmt: skip
    strangers = third_party()
    say("what it loads that is not Python's own", ", ".join(strangers) or "nothing", "nothing", not strangers)


def spent(command: list[str]) -> tuple[float, float]:
    """Milliseconds of the CPU, and by the clock: the machine may be shared."""
    began = time.perf_counter()
    pid = os.posix_spawn(command[0], command, os.environ)
    _, status, usage = os.wait4(pid, 0)
    if status:
        raise RuntimeError(f"{command} ended with {status}")
    return (usage.ru_utime + usage.ru_stime) * 1000, (time.perf_counter() - began) * 1000


def third_party() -> list[str]:
    code = "import sys; old = set(sys.modules); import muster.stages; print(*(set(sys.modules) - old))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    return sorted({name for name in loaded if name.partition(".")[0] not in {*sys.stdlib_module_names, "muster"}})


def decision(say: Say) -> None:
    cases = [("mixed kinds", KINDS, SIZE), *((kind, (kind,), SIZE) for kind in KINDS), ("mixed, filling", KINDS, 0)]
    for name, kinds, filled in cases:
        spent, floor = against_sum(kinds, filled)
        say(f"a decision, {CRITERIA} windows of {SIZE}: {name}",
            f"{spent * 1e6:.1f} us = {spent / floor:.1f} x sum() of {SIZE} floats ({floor * 1e6:.2f} us)",
            "< 30 x", spent / floor < 30)  # fmt: skip


def against_sum(kinds: tuple[str, ...], filled: int, rounds: int = 60) -> tuple[float, float]:
    """Medians of rounds that take turns, seconds for one decision and one sum. Nothing is decided that empties windows;
    `filled`: values that they hold when the clock starts."""
    rng = random.Random(0)
    floats = [rng.random() for _ in range(SIZE)]
    decided, summed = [], []
    for _ in range(rounds):
        gate = gate_of(kinds)
        rows = [{f"key{at}": rng.random() for at in range(CRITERIA)} for _ in range(filled + SIZE - 1)]
        for at, row in enumerate(rows[:filled]):
            gate.observe(at, row, "main")
        timed = rows[filled:]
        began = time.perf_counter()
        for at, row in enumerate(timed, filled):
            gate.observe(at, row, "main")
        decided.append((time.perf_counter() - began) / len(timed))
        began = time.perf_counter()
        for _ in timed:
            sum(floats)
        summed.append((time.perf_counter() - began) / len(timed))
    return statistics.median(decided), statistics.median(summed)


def gate_of(kinds: tuple[str, ...]) -> Gate:
    """Half of success, always met, half of failure, never met: every one of them must be looked at."""
    criteria = [{"key": f"key{at}", "window": f"{kinds[at % len(kinds)]} {SIZE}"} for at in range(CRITERIA)]
    success = [each | {"max": 2} for each in criteria[: CRITERIA // 2]]
    failure = [each | {"above": 2} for each in criteria[CRITERIA // 2 :]]
    return Gate(GateSettings.of({"success": success, "failure": failure, "required": 10**9}))
