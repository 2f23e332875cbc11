"""The facts of life of a simulated attempt: what one look at its folder and its processes shows at any moment."""

from __future__ import annotations

import math
from dataclasses import replace

from muster.model.attempt import Attempt
from muster.model.attempt_snapshot import AttemptSnapshot, ExitRecord, ProcessIdentity, ProofReading
from muster.model.campaign import DeclaredProgress, Job, Proof, StepProof
from muster.model.verdict import Evidence
from simulator.case import Case
from simulator.truth import Ending

WALL = 1.7e9
ORPHANS = (4712,)
HOLDS = ProofReading(True, (Evidence("step", "proof", "step 100, wanted 100", "holds"),))
FAILS = ProofReading(False, (Evidence("step", "proof", "last step 40, wanted 100", "fails"),))
UNDECLARED = ProofReading(True)
PENDING = ProofReading(None, pending=True)


class Scene:
    """Times count from the start of the run."""

    def __init__(self, case: Case) -> None:
        self.case, self.leaving = case, case.leaving
        began = case.began
        self.attempt = Attempt(
            "train/a/0", 1, "token", 1, ("cpu0",), "hash", "2026-01-01T00:00:00+00:00", began, "boot"
        )
        self.identity = ProcessIdentity("boot", 1, 2, 100, 3, 99, 4, began, WALL)
        self.job = Job(
            "train",
            (),
            ("python", "train.py"),
            progress=tuple(DeclaredProgress(signal.kind, signal.name, "step") for signal in case.style.signals),
            proof=Proof(step=StepProof("100")) if case.proof_declared else Proof(),
        )
        self.living = AttemptSnapshot(
            began,
            "yes",
            True,
            self.identity,
            main="alive",
            main_state="S",
            shim="alive",
            shim_locked=True,
            tree_locked=True,
        )
        self.shimless = replace(self.living, shim="gone", shim_locked=False)

    @property
    def dies(self) -> float:
        """When its main process ends."""
        return self.case.ending.at if self.case.ending else math.inf

    @property
    def over(self) -> float:
        """When nothing of it lives any more."""
        return self.dies + self.leaving.orphans_s

    @property
    def known(self) -> float:
        """When all that can be known of its end can be read."""
        if self.case.ending is None:
            return math.inf
        written = self.dies + (self.leaving.exit_delay if self.case.ending.seen else 0.0)
        return max(written + (self.leaving.proof_delay if self.case.proof_declared else 0.0), self.over)

    def boot_at(self, t: float) -> float:
        """A reboot starts the clock again."""
        if self.leaving.host == "rebooted" and t >= self.dies:
            return 20.0 + t - self.dies
        return self.case.began + t

    def alive(self, t: float, main_state: str) -> AttemptSnapshot:
        """The same sighting at a new time: to build one takes as long as to judge it, and nobody keeps it."""
        seen = self.living if t < self.leaving.shim_dies else self.shimless
        object.__setattr__(seen, "boot", self.case.began + t)
        object.__setattr__(seen, "main_state", main_state)
        return seen

    def ended(self, t: float) -> AttemptSnapshot:
        """After the main process has ended."""
        ending, leaving = self.case.ending, self.leaving
        assert ending is not None
        lives_on = t < self.over
        seen = AttemptSnapshot(
            self.boot_at(t),
            "yes",
            not leaving.never_executed,
            None if leaving.never_executed else self.identity,
            host=leaving.host,
            main="gone",
            tree_locked=lives_on,
            strays=ORPHANS if lives_on else (),
        )
        if ending.seen and t < self.dies + leaving.exit_delay:
            main = "zombie" if leaving.zombie else "gone"
            return replace(seen, main=main, shim="alive", shim_locked=True, tree_locked=True, strays=())  # type: ignore[arg-type]
        if ending.seen:
            return self._written(seen, ending, t)
        return replace(seen, proof=self._proof(ending, t, self.dies))

    def _written(self, seen: AttemptSnapshot, ending: Ending, t: float) -> AttemptSnapshot:
        leaving, after = self.leaving, ending.aftermath
        exit_ = ExitRecord(
            ending.code,
            ending.signal,
            WALL + self.dies,
            self.boot_at(self.dies),
            self.dies,
            exec_error=leaving.exec_error,
            stop_reason=leaving.stop_reason,
            orphans=self._told_orphans(),
            log=after.err[-4000:],
            out=after.out[-4000:],
            disk_free=after.disk_free,
            oom_kills=(after.oom_before, after.oom_after),
        )
        known = None if ending.code == 0 else replace(after, oom_last=None, last_look_s=None)
        proof = self._proof(ending, t, self.dies + leaving.exit_delay)
        return replace(seen, exit=exit_, proof=proof, aftermath=known, stop_reason=leaving.stop_reason)

    def _told_orphans(self) -> tuple[int, ...] | None:
        if not self.leaving.orphans_s:
            return ()
        return ORPHANS if self.leaving.orphans_told else None

    def _proof(self, ending: Ending, t: float, since: float) -> ProofReading:
        if not self.case.proof_declared:
            return UNDECLARED if ending.code == 0 else ProofReading(None)
        if t < since + self.leaving.proof_delay:
            return PENDING
        return FAILS if self.leaving.proof_fails or not ending.proof_holds else HOLDS


def later(seen: AttemptSnapshot) -> tuple[AttemptSnapshot, ...]:
    """What may be seen long after the end: the folder says the same, the machine has rebooted or was started anew."""
    if seen.proof is PENDING:
        seen = replace(seen, proof=FAILS)
    return (
        replace(seen, boot=seen.boot + 60),
        replace(seen, boot=seen.boot + 600, main="gone", main_state=""),
        replace(seen, boot=30.0, host="rebooted" if seen.host == "same" else seen.host),
    )
