"""Carries the finish out, in the controller's turns: records, starts, sees to the end. Nothing here waits.

Steps that are commands run under a shim of their own, as cells do: at most one execution for each that was recorded,
an exit that is written down whatever dies; whoever comes after a killed controller finds it by the facts in its folder.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path

from muster.acts import finish, rounds_due
from muster.acts.finish import Begin, Nothing, PowerOff, Step, Tend
from muster.acts.powering import Powering
from muster.acts.report_verdict import NO_RESULT, last_verdict
from muster.domain.attempt import Attempt
from muster.domain.campaign import Job, Slots
from muster.domain.decision import Decision
from muster.domain.finish import StepRecord
from muster.domain.order import Order
from muster.domain.sighting import ProofReading, Sighting
from muster.domain.state import CampaignState
from muster.domain.template import split_words
from muster.domain.verdict import State, Verdict
from muster.domain.wording import counted
from muster.execute.local import LocalExecutor
from muster.execute.warm import Warm
from muster.judge.attempt import LOST, judge_attempt
from muster.observe import process
from muster.observe.attempts import AttemptProbe
from muster.plan.retry import AT_ONCE, ONCE
from muster.ports.clock import Clock
from muster.ports.executor import Lease
from muster.wiring.desk import revive_command
from muster.wiring.notifying import notify
from muster.wiring.own_python import own_command, own_environment, without_code
from muster.wiring.power_switch import power_switch
from muster.wiring.shutting import environment_of

LOOK_S = 0.05
RELAUNCH_S = 10.0  # a shim that was asked for needs a moment before anyone asks again
BOUND = ".muster.json"  # beside a text that `muster docs bind` has bound; kept here, for the reports stay out of us
INCOMPLETE = 3  # how `muster report` ends where cells are missing
OWN_STEPS = ("report", "docs", "round")
_JOB = Job("finish", (), ())

Decide = Callable[..., Decision]  # carrier.decision
Turn = tuple[list[Decision], bool]  # what to record before anything else is done; whether nothing is left to do


class StepExecutor(LocalExecutor):
    """Shims in `.muster/finish/<step>/<n>`, without a slot."""

    def __init__(self, state: Path, warm: Warm | None = None) -> None:
        super().__init__(state, Slots(gpus=(), cpus=0))
        self.warm = warm or self.warm

    def folder(self, cell: str, n: int) -> Path:
        return self.state / cell / str(n)


class Finishing:
    def __init__(self, root: Path, clock: Clock, decide: Decide, *, epoch: int, revive_s: float, warm: Warm) -> None:
        self.root, self.state, self.clock, self.decide = root, root / ".muster", clock, decide
        self.epoch, self.revive_s = epoch, revive_s
        self.executor = StepExecutor(self.state, warm)
        self.probe = step_probe(self.executor, clock)
        self._launched: dict[tuple[str, int], float] = {}
        self._fresh: set[str] = set()  # tokens that we made: nobody else can have launched them
        self._telling: list[Future[str]] | None = None
        self._powering = Powering(power_switch(root), clock, decide)

    def __call__(self, state: CampaignState) -> Turn:
        """Called in turn after turn while every cell is settled, and again after what it returned was recorded."""
        match finish.due(state):
            case Nothing(over):
                return [], over
            case Begin(step, n, lost):
                return [self._began(step, n, lost, state)], False
            case Tend(record) if record.step == "notify":
                return self._tell(record, state), False
            case Tend(record):
                return self._tend(record, state), False
            case PowerOff() as due:
                return self._powering(due, state), False

    def rounds(self, state: CampaignState) -> Turn:
        """The same for a loop: called when nothing runs and nothing may start, whatever became of the cells."""
        match rounds_due.due(state):
            case Nothing(over):
                return [], over
            case Begin(step, n, lost):
                return [self._began(step, n, lost, state)], False
            case Tend(record):
                return self._tend(record, state), False

    def _began(self, step: Step, n: int, lost: int, state: CampaignState) -> Decision:
        self._fresh.add(token := secrets.token_hex(16))
        data = {"what": "began", "step": step.name, "n": n, "lost": lost, "key": finish.key_of(state),
                "token": token, "boot_id": process.boot_id(), "command": step.what}  # fmt: skip
        return self.decide("finish", f"{step.name}: `{step.what}`", data=data)

    # -- a command, under a shim

    def _tend(self, record: StepRecord, state: CampaignState) -> list[Decision]:
        attempt = attempt_of(record)
        seen = self.probe.look([attempt])[attempt.key]
        verdict = judge_attempt(attempt, seen, _JOB, explain=False)
        if verdict.final:
            return self._ended(record, verdict, seen, state)
        if verdict.kind == LOST:  # to do it again might be to do it twice
            return [self._end(record, Judged(False, verdict.reason))]
        now = self.clock.boot()
        if seen.started == "no" and not seen.shim_locked:
            if not seen.searched and attempt.token not in self._fresh:
                return []
            if now - self._launched.get(attempt.key, float("-inf")) > RELAUNCH_S:
                self._launched[attempt.key] = now
                self._fresh.discard(attempt.token)
                return self._launch(attempt, record, state)
        elif seen.shim == "stopped":
            self.executor.nudge(attempt)
        return []

    def _launch(self, attempt: Attempt, record: StepRecord, state: CampaignState) -> list[Decision]:
        known = {step.name: step for step in (*finish.steps(state), *rounds_due.steps(state))}.get(record.step)
        if known is None:  # recorded before the campaign's file lost it, and never started
            return [self._end(record, Judged(None, "it is no longer declared"))]
        if known.kind == "docs" and not anything_bound(self.root, state):
            return [self._end(record, Judged(True, "no text is bound"))]
        self.executor.launch(self._order(attempt, known, state), Lease(()))
        return []

    def _order(self, attempt: Attempt, step: Step, state: CampaignState) -> Order:
        folder = self.executor.folder(*attempt.key)
        return Order(
            cell=attempt.cell, n=attempt.n, token=attempt.token, epoch=self.epoch,
            argv=command(step, self.root), cwd=str(self.root),
            env={**environment(step, self.root, state), "MUSTER_ATTEMPT": attempt.token, "MUSTER_FINISH": step.name},
            env_file=state.env_file, slots=(), out=str(folder), output=str(folder), hash="",
            claimed_at=attempt.claimed_at, claimed_boot=attempt.claimed_boot, boot_id=attempt.boot_id, retry_cause=None,
            resumed_from=None, state=str(self.state), bell=str(self.state / "bell"),
            ballast=str(self.state / "ballast"), revive=revive_command(self.root), revive_s=self.revive_s, axes={},
            code={}, mkdir=False,
        )  # fmt: skip

    def _ended(self, record: StepRecord, verdict: Verdict, seen: Sighting, state: CampaignState) -> list[Decision]:
        self._launched.pop(attempt_of(record).key, None)
        found = judged(record, verdict, seen, partial=bool(finish.given_up(state)))
        failed = found.ok is not None and not found.ok
        said = _own_words(self.executor.folder(*attempt_of(record).key)) if failed else ""
        if record.step == "docs" and said.startswith(NO_RESULT):  # no failure of the finish: the report says the same
            found, failed = Judged(True, said), False
        elif said:
            found = replace(found, why=f"{found.why}: {said}")
        if record.step == "report" and found.ok:
            return self._reported(record, found, state)
        ended = [self._end(record, found)]
        if failed and not rounds_due.overtaken(state, record.step):
            text = f"{_stopped(record)} stopped: {record.step} failed: {found.why}; mend it, then `muster up`"
            ended.append(self.decide("notice", text, data={"what": "FINISH"}))
        return ended

    def _reported(self, record: StepRecord, found: Judged, state: CampaignState) -> list[Decision]:
        """Whoever is told that all is done hears what came of it; of INVALID also where nobody is told of the end."""
        verdict = last_verdict(self.root)
        if verdict is None:
            return [self._end(record, found)]
        ended = [self._end(record, found, verdict=verdict.verdict, flag=verdict.flag)]
        if verdict.verdict == "INVALID" and not (state.campaign.finish or {}).get("notify"):
            text = f"the report says {verdict_words(verdict.verdict, verdict.flag)}; {verdict.path}"
            ended.append(self.decide("notice", text, data={"what": "REPORT", "verdict": verdict.verdict}))
        return ended

    def _end(self, record: StepRecord, found: Judged, **more: str) -> Decision:
        data = {"what": "ended", "step": record.step, "n": record.n, "key": record.key, "ok": found.ok,
                "lost": record.lost + found.lost, **more}  # fmt: skip
        return self.decide("finish", found.why, data=data)

    # -- notices

    def _tell(self, record: StepRecord, state: CampaignState) -> list[Decision]:
        """Waits for the channels, in later turns: nobody hears of it once the machine is off."""
        if self._telling is None:
            data = {"what": "COMPLETE", "verdict": finish.report_told(state)[0] or None}
            notice = self.decide("notice", _summary(state), data=data)
            self._telling = notify(state, str(self.root), notice)
        if not all(told.done() for told in self._telling):
            return []
        troubles = [why for told in self._telling if (why := _answer(told))]
        count = len(self._telling)
        self._telling = None
        told = "; ".join(troubles) or f"told {count} channel{'s' if count != 1 else ''}"
        return [self._end(record, Judged(True, told))]


def _stopped(record: StepRecord) -> str:
    return "the loop" if record.step.startswith("round-") else "the finish"


def step_probe(executor: StepExecutor, clock: Clock) -> AttemptProbe:
    return AttemptProbe(executor.folder, clock, lambda *_: ProofReading(True), traces=executor.traces)


def open_step_tokens(state: CampaignState) -> set[str]:
    return {record.token for record in state.finish.steps.values() if record.ended is None}


def attempt_of(record: StepRecord) -> Attempt:
    """An execution of a step, as the probe and the judge know executions."""
    cell = f"finish/{record.step}"
    return Attempt(cell, record.n, record.token, 0, (), "", record.at, record.boot, record.boot_id)


def command(step: Step, root: Path) -> tuple[str, ...]:
    """Reports are made by a process of their own: what they need stays out of the controller."""
    words = split_words(step.what)
    if step.kind in OWN_STEPS:
        return own_command("muster", "-C", str(root), *words[1:])
    return words


def environment(step: Step, root: Path, state: CampaignState) -> dict[str, str]:
    """What is added to the recorded one: `env` of the campaign. A step of ours loads no code by it."""
    if step.kind not in OWN_STEPS:
        return dict(state.campaign.env)
    recorded = own_environment(environment_of(state) or {}, root)
    return {**without_code(state.campaign.env), "PYTHONPATH": recorded.get("PYTHONPATH", "")}


def anything_bound(root: Path, state: CampaignState) -> bool:
    """Whether `muster docs update` has something to do; without, it would call that wrong use."""
    named = [root / name for name in (state.campaign.report or {}).get("documents", ())]
    return any(root.glob(f"*{BOUND}")) or any(path.with_name(path.name + BOUND).exists() for path in named)


@dataclass(frozen=True, slots=True)
class Judged:
    ok: bool | None  # None: it is to be done again
    why: str
    lost: bool = False  # nobody saw its end


def judged(record: StepRecord, verdict: Verdict, seen: Sighting, *, partial: bool) -> Judged:
    """Whether an execution that has ended counts as done."""
    code = seen.exit.code if seen.exit else None
    if verdict.state == State.DONE:
        return Judged(True, "exit 0")
    if code == INCOMPLETE and partial and record.step in ("report", "docs"):
        return Judged(True, f"exit {INCOMPLETE}: partial, because cells were given up")
    kind = verdict.cause.kind if verdict.cause else ""
    if kind == "user_stop":
        return Judged(None, verdict.reason)
    lost = kind in AT_ONCE | ONCE and not (seen.exit and seen.exit.exec_error)
    if lost and record.lost + 1 < finish.MOST_LOST:
        return Judged(None, verdict.reason, lost=True)
    return Judged(False, verdict.reason, lost)


def _own_words(folder: Path) -> str:
    """What a command of ours said when it failed; "": it was another's, or said nothing."""
    try:
        lines = (folder / "stderr.log").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    said = [at for at, line in enumerate(lines) if line.startswith("muster: ")]
    if not said:
        return ""
    where = [line.strip() for line in lines[said[-1] + 1 : said[-1] + 2] if line.startswith("  where:")]
    return "; ".join([lines[said[-1]].removeprefix("muster: "), *where])


def _summary(state: CampaignState) -> str:
    done = sum(record.done for record in state.declared)
    missing = finish.given_up(state)
    more = f", {len(missing)} given up" if missing else ""
    told = verdict_words(*finish.report_told(state))
    more += f"; report: {told}" if told else ""
    return f"{state.campaign.name} is complete: {done} of {counted(len(state.declared))} done{more}"


def verdict_words(verdict: str, flag: str) -> str:
    return f"{verdict}: {flag}" if flag else verdict


def _answer(told: Future[str]) -> str:
    try:
        return told.result()
    except Exception as error:
        return str(error)


# -- for `muster down --runs`


def stop_open(state: Path, loaded: CampaignState, clock: Clock, timeout_s: float) -> tuple[str, bool] | None:
    """Stops the step that is under way, as a run is stopped: its name, and whether it has ended; None: there is none.

    To be called when no controller is left. The step counts as not done, so `muster up` does it again.
    """
    record = next((each for each in loaded.finish.steps.values() if each.ended is None), None)
    if record is None or record.step == "notify":
        return None
    attempt, executor = attempt_of(record), StepExecutor(state)
    probe = step_probe(executor, clock)

    def over() -> bool:
        return judge_attempt(attempt, probe.look([attempt])[attempt.key], _JOB, explain=False).final

    if over() or probe.look([attempt])[attempt.key].started == "no":
        return None
    grace_s = float(os.environ.get("MUSTER_GRACE_S", "10"))
    executor.stop(attempt, epoch=loaded.epoch, reason="user_stop", grace_s=grace_s)
    deadline = time.monotonic() + timeout_s
    while not over() and time.monotonic() < deadline:
        time.sleep(LOOK_S)
    return record.step, over()
