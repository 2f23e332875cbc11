"""A short training run: steps to metrics.jsonl, chunks, checkpoints. `worker.py ATTEMPT STEPS PAUSE FAULT AT SEED`.

The fault comes at the share AT of its steps, in the first attempt alone. Some faults are done to it by others: then it
only goes on. It writes `finished` as the last thing of a run that came to its end.
"""

import contextlib
import json
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TextIO

OUT = Path(os.environ["MUSTER_OUT"])
METRICS = OUT / "metrics.jsonl"
HELPER = (
    "import os, sys, time; os.setsid(); open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(float(sys.argv[2]))"
)


def boot() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def put(path: Path, data: bytes) -> None:
    partial = path.with_name(f".{path.name}")
    partial.write_bytes(data)
    partial.replace(path)


class Run:
    def __init__(self, attempt: int, steps: int, pause_s: float, fault: str, at: float, seed: int) -> None:
        self.steps, self.pause_s, self.random = steps, pause_s, random.Random(seed)
        self.fault = fault if attempt == 1 else "none"
        self.at = max(1, int(at * steps))
        self.log: TextIO = open(METRICS, "a")  # noqa: SIM115
        self.kept: list[str] = []  # lines that a log which hangs does not write
        self.quiet = False
        (OUT / "replay").mkdir(exist_ok=True)
        if self.fault == "term_handled":
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(44))

    def work(self) -> None:
        for step in range(1, self.steps + 1):
            sum(n * n for n in range(3000))
            time.sleep(self.pause_s * self.random.uniform(0.7, 1.3))
            self.tell(step)
            if step % 2 == 0:
                put(OUT / "replay" / f"chunk_{step:05d}.bin", self.random.randbytes(2048))
            if step % 3 == 0 or step == self.steps:
                put(OUT / "checkpoint.pkl", pickle.dumps({"step": step, "weights": self.random.randbytes(4096)}))
            if step == self.at and self.fault in FAULTS:
                FAULTS[self.fault](self)
        self.quiet = False
        self.tell(self.steps)
        if self.fault == "orphan_done":
            self.helper()
        (OUT / "finished").touch()

    def tell(self, step: int) -> None:
        line = json.dumps({"step": step, "loss": self.random.random()}) + "\n"
        self.kept.append(line)
        if not self.quiet:
            self.log.writelines(self.kept)
            self.log.flush()
            self.kept.clear()
            print(f"step {step}", flush=True)

    # -- faults

    def raises(self) -> None:
        raise RuntimeError(self.random.choice(("shapes differ", "no such layer", "bad batch")))

    def exits(self) -> None:
        sys.exit(self.random.choice((2, 3, 42, 137, 143)))

    def ends_early(self) -> None:
        sys.exit(0)

    def hung(self) -> None:
        (OUT / "hung.part").write_text(str(boot()))
        (OUT / "hung.part").replace(OUT / "hung")

    def deadlock(self) -> None:
        self.hung()
        held, other = threading.Lock(), threading.Lock()
        if self.random.random() < 0.5:
            held.acquire()
            held.acquire()  # waits for itself

        def one() -> None:
            with held:
                time.sleep(0.1)
                other.acquire()

        worker = threading.Thread(target=one)
        with other:
            worker.start()
            time.sleep(0.05)
            held.acquire()

    def deadlock_of_a_child(self) -> None:
        """The main process waits for a child that waits for ever."""
        self.hung()
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.read(reader, 1)
        os.waitpid(pid, 0)
        os.close(writer)

    def spin(self) -> None:
        self.hung()
        if self.random.random() < 0.5:  # something of it still says that it lives
            threading.Thread(target=self.beat, daemon=True).start()
        while True:
            pass

    def beat(self) -> None:
        while True:
            print("alive", flush=True)
            time.sleep(0.1)

    def evaluates(self) -> None:
        """Busy for a while, without a step."""
        end = time.monotonic() + self.random.uniform(1.5, 4)
        while time.monotonic() < end:
            sum(n * n for n in range(10_000))

    def truncates(self) -> None:
        os.truncate(METRICS, self.random.choice((0, METRICS.stat().st_size // 2)))

    def rotates(self) -> None:
        METRICS.rename(OUT / "metrics.jsonl.1")
        self.log.close()
        self.log = open(METRICS, "a")  # noqa: SIM115

    def hushes(self) -> None:
        self.quiet = True

    def helper(self) -> None:
        """One that outlives us."""
        told = OUT / "helper"
        subprocess.Popen([sys.executable, "-I", "-S", "-c", HELPER, str(told), str(self.random.uniform(1.5, 3))])
        while not (told.exists() and told.read_text()):
            time.sleep(0.01)
        time.sleep(0.6)  # whoever counts our processes has seen it by then

    def leaves_a_helper(self) -> None:
        self.helper()
        sys.exit(7)


FAULTS = {
    "exception": Run.raises,
    "exit": Run.exits,
    "early": Run.ends_early,
    "deadlock": Run.deadlock,
    "deadlock_child": Run.deadlock_of_a_child,
    "spin": Run.spin,
    "evaluates": Run.evaluates,
    "truncated": Run.truncates,
    "rotated": Run.rotates,
    "log_hangs": Run.hushes,
    "orphan": Run.leaves_a_helper,
}

if __name__ == "__main__":
    number, many, pause, what, share, chosen = sys.argv[1:]
    with contextlib.suppress(BrokenPipeError):
        Run(int(number), int(many), float(pause), what, float(share), int(chosen)).work()
