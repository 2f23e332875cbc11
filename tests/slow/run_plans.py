"""Two hundred short runs by a seed: what each does, what is done to it, and what must be said of it in the end."""

import random
from dataclasses import dataclass

STEPS = {"train": 100, "plain": 100, "shell": 30}
# fault -> (how many of about 200, the verdict in the end, the causes that are right)
MIX: dict[str, tuple[int, str, tuple[str, ...]]] = {
    "none": (20, "DONE", ()),
    "evaluates": (12, "DONE", ()),  # busy for seconds without a step
    "truncated": (10, "DONE", ()),
    "rotated": (10, "DONE", ()),
    "log_hangs": (10, "DONE", ()),
    "stop_cont": (16, "DONE", ()),
    "controller": (8, "DONE", ()),  # killed while it runs
    "orphan_done": (4, "DONE", ()),  # its proof holds: a helper that it leaves behind changes nothing
    "kill": (20, "DEAD", ("signal(9)",)),
    "term": (10, "DEAD", ("signal(15)",)),
    "term_handled": (4, "DEAD", ("exit_code(44)",)),
    "exit": (12, "DEAD", ("exit_code",)),
    "exception": (14, "DEAD", ("exception",)),
    "early": (10, "DEAD", ("early_exit",)),
    "orphan": (10, "DEAD", ("exit_code(7)",)),
    "shim": (5, "DEAD", ("unknown",)),  # nobody sees how it ends; what it leaves behind is complete
    "shim_then_kill": (5, "DEAD", ("unknown",)),
    "stop": (10, "STALLED(stopped) proven", ("signal(9)",)),  # the causes of those that hang: we end them in the end
    "deadlock": (10, "STALLED(waiting) proven", ("signal(9)",)),
    "deadlock_child": (4, "STALLED(waiting) proven", ("signal(9)",)),
    "spin": (8, "STALLED(spinning) presumed", ("signal(9)",)),
}
OUTSIDE = ("stop_cont", "controller", "kill", "term", "term_handled", "shim", "shim_then_kill", "stop")  # done by us
HANGS = ("stop", "deadlock", "deadlock_child", "spin")
OF_SHELL = (
    "none", "truncated", "rotated", "stop_cont", "controller", "kill", "term", "exit", "early", "shim",
    "shim_then_kill", "stop", "deadlock",
)  # fmt: skip


@dataclass(frozen=True)
class Plan:
    name: str
    job: str
    fault: str
    at: float  # share of its steps at which the fault comes
    seconds: float  # that it would take on an idle machine
    seed: int

    @property
    def cell(self) -> str:
        return f"{self.job}/{self.name}"

    @property
    def words(self) -> str:
        pause = self.seconds / STEPS[self.job]
        return f"{STEPS[self.job]} {pause:.3f} {self.fault} {self.at:.2f} {self.seed}"

    @property
    def in_the_end(self) -> str:
        return MIX[self.fault][1]

    @property
    def causes(self) -> tuple[str, ...]:
        return MIX[self.fault][2]

    @property
    def hangs(self) -> bool:
        return self.fault in HANGS

    @property
    def fault_s(self) -> float:
        """When others do it, after its start."""
        return self.at * self.seconds


def plans(seed: int) -> list[Plan]:
    r = random.Random(seed)
    faults = [fault for fault, (count, _, _) in MIX.items() for _ in range(count)]
    r.shuffle(faults)
    found = []
    for n, fault in enumerate(faults):
        # who spins is convicted before half an hour only where the periods are declared, as `train` does
        job = (
            "train"
            if fault == "spin"
            else r.choice(("train", "train", "plain", "shell" if fault in OF_SHELL else "plain"))
        )
        # those that hang have shown their cadence before: eight gaps of every signal
        long_enough = fault in HANGS or fault == "log_hangs"
        seconds = r.uniform(8, 12) if long_enough else min(20.0, 2 + r.expovariate(1 / 5))
        found.append(
            Plan(
                f"r{n:03d}",
                job,
                fault,
                r.uniform(0.45, 0.7) if long_enough else r.uniform(0.1, 0.8),
                seconds,
                r.randrange(10**6),
            )
        )
    return found


def parts(found: list[Plan], count: int) -> list[list[Plan]]:
    """Campaigns; in each the long runs are not the last to start."""
    return [sorted(found[n::count], key=lambda plan: plan.seconds < 9) for n in range(count)]
