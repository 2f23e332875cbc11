"""Seeded deaths: what each run does, what is done to it, and what it truly dies of."""

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from raising import KINDS, MANNERS, OTHERS

DEATHS = Path(__file__).parent / "deaths"
PICKLED = ("process_pool", "old_pool")  # what they hand on must be found by its name
AS_IT_IS = ("plain", "thread_pool", "logged", "tracked", "barred", "after_a_while", "said_and_left")
GPU_WORDS = ("torch", "torch.cuda", "old_torch", "asynchronous", "accelerator", "jax", "old_jax", "tensorflow", "cupy")
NUMBERS = (
    "checked_loss", "bare_check", "named_loss", "numpy_raises", "anomaly", "distribution", "lightning", "own_type",
    "stops_at_nan",
)  # fmt: skip
DISK = (
    "disk_by_write", "disk_by_log", "disk_by_copy", "disk_by_zip", "disk_by_sqlite", "disk_by_torch",
    "disk_in_a_wrapper",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    row: str  # its true class; with a star where its log says something else
    wants: tuple[str, ...]  # causes that are right, as Muster writes them
    words: str  # of its command
    job: str = "py"
    act: str = ""  # what is done to it
    name: str = field(default="", compare=False)

    @property
    def cell(self) -> str:
        return f"{self.job}/{self.name}"


@dataclass(frozen=True)
class Means:
    """What this machine lets us do."""

    disk: str | None  # a small disk of our own
    memory: bool  # groups of our own with little memory


def line_of(script: str, name: str) -> str:
    """`raising.py:33`: the line that is marked with `dies: NAME`."""
    lines = (DEATHS / script).read_text().splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if re.search(rf"# dies: {name}$", line)]
    return f"{script}:{number}"


def cases(seed: int, means: Means) -> list[Case]:
    """Mixed, so that each class meets the others on every slot."""
    found: list[Case] = []
    for make in MAKERS:
        found += make(random.Random(f"{seed} {make.__name__}"), means)
    random.Random(seed).shuffle(found)
    return [Case(c.row, c.wants, c.words, c.job, c.act, f"d{n:03d}") for n, c in enumerate(found)]


def py(r: random.Random, row: str, want: str | tuple[str, ...], way: str, argument: object = "", **more: str) -> Case:
    wants = (want,) if isinstance(want, str) else want
    return Case(row, wants, f"dying.py {way} {r.randrange(10**6)} {argument}".strip(), **more)


def sh(row: str, want: str, words: str, **more: str) -> Case:
    return Case(row, (want,), f"dying.sh {words}", **{"job": "sh", **more})


def raised(script: str, mark: str, kind: str) -> str:
    return f"exception({kind}, {line_of(script, mark)})"


# -- the classes


def exit_codes(r: random.Random, _: Means) -> Iterator[Case]:
    row = "exit_code"
    for _ in range(9):
        code = r.randrange(2, 256)
        yield py(r, row, f"exit_code({code})", r.choice(("exits", "exits_at_once")), code)
    for code in (1, 134, 139, 143):
        yield py(r, row, f"exit_code({code})", "exits", code)
    for _ in range(3):
        yield py(r, row, "exit_code(1)", "exits_with_words")
    yield py(r, row, "exit_code(2)", "exits_by_usage")
    yield sh(row, "exit_code(127)", "not_found")
    for _ in range(3):
        code = r.randrange(2, 120)
        yield sh(row, f"exit_code({code})", f"exit {code}")


def signals(r: random.Random, _: Means) -> Iterator[Case]:
    for number, count in ((9, 9), (15, 9), (2, 2)):
        for n in range(count):
            row, want, act = (
                f"signal({number})" if number != 2 else "signal(others)",
                f"signal({number})",
                f"signal {number}",
            )
            if n % 4 == 3:
                yield sh(row, want, "waits", act=act)
            elif n % 4 == 2 and number == 9:
                yield py(r, row, want, "waits_in_a_child", act=act)
            else:
                yield py(r, row, want, "waits", act=act)
    for number in (9, 15):
        yield py(r, f"signal({number})", f"signal({number})", "kills_itself", number)
    for _ in range(2):
        yield py(r, "signal(15)", "signal(15)", "torchrun", act="signal 15")
    for _ in range(5):
        yield py(r, "signal(11)", "signal(11)", "crashes")
        yield py(r, "signal(11)", "signal(11)", "crashes_loudly")
        yield py(r, "signal(6)", "signal(6)", "aborts")
        yield py(r, "signal(6)", "signal(6)", "aborts_by_cpp")
    for number, way in ((7, "bus_error"), (24, "cpu_limit"), (25, "file_limit")):
        yield py(r, "signal(others)", f"signal({number})", way)
    for number in (3, 4, 8, 12, 13):
        yield py(r, "signal(others)", f"signal({number})", "kills_itself", number)


def hangups(r: random.Random, _: Means) -> Iterator[Case]:
    for _ in range(5):
        yield py(r, "hangup", "hangup", "hangs_up", act="signal 1")
        yield py(r, "hangup", "hangup", "torchrun", act="signal 1")
    yield py(r, "hangup", "hangup", "kills_itself", 1)


def exceptions(r: random.Random, _: Means) -> Iterator[Case]:
    """Every kind and every manner at least twice."""
    kinds, manners = sorted(KINDS) * 3, sorted(MANNERS) * 3
    r.shuffle(kinds)
    r.shuffle(manners)
    for n in range(66):
        kind, manner = kinds[n % len(kinds)], manners[n % len(manners)]
        if kind == "deep":
            manner = r.choice(AS_IT_IS)
        if kind == "elsewhere" and manner in PICKLED:
            manner = "thread_pool"
        own = raised("raising.py", kind, KINDS[kind][0])
        wants = (own,)
        if manner in OTHERS:
            wants = (raised("raising.py", manner, OTHERS[manner]),)
        if manner == "by_a_command":  # the program that it called said why; that it failed for it is true, too
            wants = (own, raised("raising.py", manner, "CalledProcessError"))
        yield Case("exception", wants, f"raising.py {kind} {manner} {r.randrange(10**6)}")


def gpu_memory(r: random.Random, _: Means) -> Iterator[Case]:
    for words in GPU_WORDS + GPU_WORDS[:5]:
        yield py(r, "cuda_oom", "cuda_oom", "gpu_memory", words)
    for _ in range(2):
        yield py(r, "cuda_oom", "cuda_oom", "gpu_memory_in_a_wrapper", r.choice(GPU_WORDS))
        yield py(r, "cuda_oom", "cuda_oom", "gpu_memory_on_a_rank", r.choice(GPU_WORDS[:2]))
        yield py(r, "cuda_oom", "cuda_oom", "gpu_memory_aborts")
    yield py(r, "cuda_oom", "cuda_oom", "gpu_memory_aborts")


def numbers(r: random.Random, _: Means) -> Iterator[Case]:
    for way in NUMBERS * 2:
        yield py(r, "non_finite", "non_finite", way)


def disks(r: random.Random, means: Means) -> Iterator[Case]:
    for _ in range(2):
        yield py(r, "disk_full", "disk_full", "disk_by_device")
    if means.disk is None:
        return
    for way in DISK * 2:
        yield py(r, "disk_full", "disk_full", way, means.disk)
    yield sh("disk_full", "disk_full", f"full {means.disk}")
    yield sh("disk_full", "disk_full", f"full_dd {means.disk}")


def early_exits(r: random.Random, _: Means) -> Iterator[Case]:
    for _ in range(9):
        yield py(r, "early_exit", "early_exit", "early", job="proof")


def unstarted(_: random.Random, __: Means) -> Iterator[Case]:
    for how in ("gone", "gone", "plain", "plain", "bad_interpreter", "not_a_program"):
        yield Case("never_started", ("never_started",), how, job="tool")
    for _ in range(3):
        yield Case("never_started", ("never_started",), "", job="nowhere")


def stops(r: random.Random, _: Means) -> Iterator[Case]:
    for _ in range(6):
        yield py(r, "timeout", "timeout", "too_long", job="timed")
    for _ in range(8):
        yield py(r, "user_stop", "user_stop", "stopped", act="stop")


def memory(r: random.Random, means: Means) -> Iterator[Case]:
    if not means.memory:
        return
    for _ in range(5):
        yield py(r, "oom_kill", "oom_kill", "oom", act="memory")
    way = "oom_of_a_child_then_exception"
    for _ in range(2):
        yield py(r, "exception *", raised("dying.py", way, "KeyError"), way, act="memory")
        yield py(r, "signal(15) *", "signal(15)", "oom_of_a_child_then_waits", act="memory, then signal 15")


def preemptions(r: random.Random, _: Means) -> Iterator[Case]:
    for _ in range(3):
        yield py(r, "preempted", "preempted", "preempted", act="signal 15")


def misleading(r: random.Random, _: Means) -> Iterator[Case]:
    for way, kind in (
        ("misled_by_gpu_memory_then_key", "KeyError"),
        ("misled_by_numbers", "KeyError"),
        ("misled_by_term", "IndexError"),
    ):
        for _ in range(4):
            yield py(r, "exception *", raised("dying.py", way, kind), way)
    for kind in ("quoted_gpu", "quoted_disk", "quoted_loss"):
        for manner in ("plain", "tracked"):
            want = raised("raising.py", kind, KINDS[kind][0])
            yield Case("exception *", (want,), f"raising.py {kind} {manner} {r.randrange(10**6)}")
    for way in (
        "misled_by_gpu_memory_then_exits",
        "misled_by_space",
        "exits_after_a_survived_exception",
        "misled_by_preemption",
        "exits_although_hung_up",
    ):
        for _ in range(3):
            code = r.randrange(2, 100)
            yield py(r, "exit_code *", f"exit_code({code})", way, code)
    for _ in range(2):
        yield py(r, "exit_code *", "exit_code(3)", "misled_by_space", 3)
        yield py(r, "exit_code *", "exit_code(137)", "exits", 137)
        yield py(r, "exit_code *", "exit_code(137)", "misled_by_killed", 137)
        yield py(r, "exit_code *", "exit_code(1)", "misled_by_killed", 1)
        yield sh("exit_code *", "exit_code(137)", "exit 137")
        yield sh("exit_code *", "exit_code(137)", "says_killed 137")
        yield sh("exit_code *", "exit_code(137)", "child_killed")
        yield sh("early_exit *", "early_exit", "early", job="proof_sh")
    for _ in range(3):
        yield py(r, "signal(9) *", "signal(9)", "misled_by_gpu_memory_then_waits", act="signal 9")
        yield py(r, "signal(9) *", "signal(9)", "misled_by_oom_words", act="signal 9")
        yield py(r, "signal(15) *", "signal(15)", "misled_by_gpu_memory_then_waits", act="signal 15")


MAKERS: tuple[Callable[[random.Random, Means], Iterator[Case]], ...] = (
    exit_codes, signals, hangups, exceptions, gpu_memory, numbers, disks, early_exits, unstarted, stops, memory,
    preemptions, misleading,
)  # fmt: skip
