"""Carries `finish:` out in the controller's turns, and sends notices by the command in `notify:`. Nothing here waits.

Steps that are commands run under a shim of their own, as cells do: at most one execution for each that was recorded,
an exit that is written down whatever dies; whoever comes after a killed controller finds it by the facts in its
folder.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import subprocess
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from muster.app.campaign.campaign_handle import CampaignHandle, revive_command
from muster.app.campaign.finish_steps import (
    MOST_LOST,
    BeginStep,
    FinishStep,
    NothingDue,
    PowerOff,
    TendStep,
    finish_report_verdict,
    given_up_cells,
    list_finish_steps,
    matrix_state_key,
    next_finish_action,
)
from muster.app.campaign.last_report import read_last_verdict, says_no_result
from muster.app.campaign.loop_progress import is_round_step_overtaken, next_round_action, steps_for_next_round
from muster.app.finish.power_off import build_power_switch, read_recorded_environment
from muster.app.finish.power_off_rules import PowerOffStep
from muster.engine.judge.attempt_verdict import LOST_KIND, judge_attempt
from muster.engine.plan.retry import RETRIED_AT_ONCE, RETRIED_ONCE
from muster.engine.ports.clock import Clock
from muster.engine.ports.executor import Lease
from muster.engine.ports.extension import ControllerExtension, ExtensionResult, MakeDecision
from muster.engine.ports.run_host import StepExecutor
from muster.files.atomic_write import umask_of_caller
from muster.files.json_codec import plain_value
from muster.files.known_secrets import mask_secrets
from muster.files.own_processes import own_process_environment, own_python_command, without_code_variables
from muster.files.process_identity import read_boot_id
from muster.model.attempt import Attempt, Order
from muster.model.attempt_snapshot import AttemptSnapshot
from muster.model.campaign import Job
from muster.model.campaign_state import CampaignState, FinishStepRecord
from muster.model.decision import Decision
from muster.model.verdict import Verdict, VerdictState
from muster.readers.background_reader import run_in_daemon_thread
from muster.text.command_template import split_shell_words
from muster.text.phrases import phrase
from muster.text.terminal_text import escape_terminal_json, escape_terminal_line, escape_terminal_text

NOTICE_TIMEOUT_S = 60.0
LONGEST_NOTICE = 8000  # characters of a notice: a variable of the environment has a limit


def notify_people(state: CampaignState, root: str, decision: Decision) -> list[Future[str]]:
    """Under way when it returns; what went wrong with each, or nothing, for who has time to wait for it."""
    notice = _notice_as_json(state, decision)
    commands = state.campaign.notice_commands.values()
    return [run_in_daemon_thread(partial(_run_notice_command, command, root, notice)) for command in commands]


@dataclass(frozen=True, slots=True)
class PeopleNotifier(ControllerExtension):
    root: str

    def notify(self, state: CampaignState, decision: Decision) -> None:
        notify_people(state, self.root, decision)


def _notice_as_json(state: CampaignState, decision: Decision) -> dict[str, object]:
    return {
        "campaign": state.campaign.name,
        "what": decision.data.get("what"),
        "cell": decision.cell,
        "attempt": decision.attempt,
        "text": _safe_notice_line(decision.reason),
        "at": decision.at,
        "verdict": decision.data.get("verdict"),
    }


def _safe_notice_line(text: str) -> str:
    """One line that no terminal or chat obeys: a notice tells what a run said last."""
    line = escape_terminal_text(" ".join(mask_secrets(text).split()))
    return line if len(line) <= LONGEST_NOTICE else f"{line[:LONGEST_NOTICE]}..."


def _run_notice_command(command: str, root: str, notice: Mapping[str, object]) -> str:
    """The notice as JSON on stdin and its text in MUSTER_NOTICE. What goes wrong with it is in controller.log."""
    cell = escape_terminal_line(str(notice["cell"] or ""))
    environment = {**os.environ, "MUSTER_NOTICE": str(notice["text"]), "MUSTER_CELL": cell}
    try:
        done = subprocess.run(
            shlex.split(command),
            input=escape_terminal_json(json.dumps(plain_value(notice), ensure_ascii=False)).encode("utf-8", "replace"),
            cwd=root,
            env=environment,
            stdout=subprocess.DEVNULL,
            timeout=NOTICE_TIMEOUT_S,
            start_new_session=True,
            check=False,
            umask=umask_of_caller(),
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return f"`{command}`: {error}"
    return f"`{command}` ended with {done.returncode}" if done.returncode else ""


STEP_LOOK_S = 0.05
STEP_RELAUNCH_S = 10.0  # a shim that was asked for needs a moment before anyone asks again
SIDECAR_ENDING = (
    ".muster.json"  # beside a text that `muster docs bind` has bound; kept here, for the reports stay out of us
)
INCOMPLETE_EXIT_CODE = 3  # how `muster report` ends where cells are missing
OWN_STEPS = ("report", "docs", "round")
_STEP_JOB = Job("finish", (), ())


class FinishRunner:
    def __init__(
        self, root: Path, clock: Clock, decide: MakeDecision, steps: StepExecutor, *, epoch: int, revive_s: float
    ) -> None:
        self.root, self.state, self.clock, self.decide = root, root / ".muster", clock, decide
        self.epoch, self.revive_s = epoch, revive_s
        self.executor = steps
        self._launched: dict[tuple[str, int], float] = {}
        self._fresh: set[str] = set()  # tokens that we made: nobody else can have launched them
        self._telling: list[Future[str]] | None = None
        self._powering = PowerOffStep(build_power_switch(root), clock, decide)

    def next_finish_step(self, state: CampaignState) -> ExtensionResult:
        """Called in turn after turn while every cell is settled, and again after what it returned was recorded."""
        match next_finish_action(state):
            case NothingDue(over):
                return [], over
            case BeginStep(step, n, lost):
                return [self._began(step, n, lost, state)], False
            case TendStep(record) if record.step == "notify":
                return self._tell(record, state), False
            case TendStep(record):
                return self._tend(record, state), False
            case PowerOff() as due:
                return self._powering(due, state), False

    def next_round_step(self, state: CampaignState) -> ExtensionResult:
        """The same for a loop: called when nothing runs and nothing may start, whatever became of the cells."""
        match next_round_action(state):
            case NothingDue(over):
                return [], over
            case BeginStep(step, n, lost):
                return [self._began(step, n, lost, state)], False
            case TendStep(record):
                return self._tend(record, state), False

    def _began(self, step: FinishStep, n: int, lost: int, state: CampaignState) -> Decision:
        self._fresh.add(token := secrets.token_hex(16))
        data = {
            "what": "began",
            "step": step.name,
            "n": n,
            "lost": lost,
            "key": matrix_state_key(state),
            "token": token,
            "boot_id": read_boot_id(),
            "command": step.what,
        }
        return self.decide("finish", f"{step.name}: `{step.what}`", data=data)

    # -- a command, under a shim

    def _tend(self, record: FinishStepRecord, state: CampaignState) -> list[Decision]:
        attempt = attempt_of_step(record)
        seen = self.executor.probe.look([attempt])[attempt.key]
        verdict = judge_attempt(attempt, seen, _STEP_JOB, explain=False)
        if verdict.final:
            return self._ended(record, verdict, seen, state)
        if verdict.kind == LOST_KIND:  # to do it again might be to do it twice
            return [self._end(record, StepOutcome(False, verdict.reason))]
        now = self.clock.boot()
        if seen.started == "no" and not seen.shim_locked:
            if not seen.searched and attempt.token not in self._fresh:
                return []
            if now - self._launched.get(attempt.key, float("-inf")) > STEP_RELAUNCH_S:
                self._launched[attempt.key] = now
                self._fresh.discard(attempt.token)
                return self._launch(attempt, record, state)
        elif seen.shim == "stopped":
            self.executor.nudge(attempt)
        return []

    def _launch(self, attempt: Attempt, record: FinishStepRecord, state: CampaignState) -> list[Decision]:
        known = {step.name: step for step in (*list_finish_steps(state), *steps_for_next_round(state))}.get(record.step)
        if known is None:  # recorded before the campaign's file lost it, and never started
            return [self._end(record, StepOutcome(None, "it is no longer declared"))]
        if known.kind == "docs" and not has_bound_documents(self.root, state):
            return [self._end(record, StepOutcome(True, "no text is bound"))]
        self.executor.launch(self._order(attempt, known, state), Lease(()))
        return []

    def _order(self, attempt: Attempt, step: FinishStep, state: CampaignState) -> Order:
        folder = self.executor.folder(*attempt.key)
        return Order(
            cell=attempt.cell,
            n=attempt.n,
            token=attempt.token,
            epoch=self.epoch,
            argv=command_of_step(step, self.root),
            cwd=str(self.root),
            env={
                **environment_of_step(step, self.root, state),
                "MUSTER_ATTEMPT": attempt.token,
                "MUSTER_FINISH": step.name,
            },
            env_file=state.env_file,
            slots=(),
            out=str(folder),
            output=str(folder),
            hash="",
            claimed_at=attempt.claimed_at,
            claimed_boot=attempt.claimed_boot,
            boot_id=attempt.boot_id,
            retry_cause=None,
            resumed_from=None,
            state=str(self.state),
            bell=str(self.state / "bell"),
            ballast=str(self.state / "ballast"),
            revive=revive_command(self.root),
            revive_s=self.revive_s,
            axes={},
            code={},
            mkdir=False,
        )

    def _ended(
        self, record: FinishStepRecord, verdict: Verdict, seen: AttemptSnapshot, state: CampaignState
    ) -> list[Decision]:
        self._launched.pop(attempt_of_step(record).key, None)
        found = judge_step_end(record, verdict, seen, partial=bool(given_up_cells(state)))
        failed = found.ok is not None and not found.ok
        said = _last_error_message(self.executor.folder(*attempt_of_step(record).key)) if failed else ""
        if record.step == "docs" and says_no_result(said):  # no failure of the finish: the report says the same
            found, failed = StepOutcome(True, said), False
        elif said:
            found = replace(found, why=f"{found.why}: {said}")
        if record.step == "report" and found.ok:
            return self._reported(record, found, state)
        ended = [self._end(record, found)]
        if failed and not is_round_step_overtaken(state, record.step):
            text = (
                f"{_name_of_stopped_part(record)} stopped: {record.step} failed: {found.why}; fix it, then `muster up`"
            )
            ended.append(self.decide("notice", text, data={"what": "FINISH"}))
        return ended

    def _reported(self, record: FinishStepRecord, found: StepOutcome, state: CampaignState) -> list[Decision]:
        """Whoever is told that all is done hears what came of it; of INVALID also where nobody is told of the end."""
        verdict = read_last_verdict(self.root)
        if verdict is None:
            return [self._end(record, found)]
        ended = [self._end(record, found, verdict=verdict.verdict, flag=verdict.flag)]
        if verdict.verdict == "INVALID" and not (state.campaign.finish and state.campaign.finish.notify):
            text = f"the report says {format_report_verdict(verdict.verdict, verdict.flag)}; {verdict.path}"
            ended.append(self.decide("notice", text, data={"what": "REPORT", "verdict": verdict.verdict}))
        return ended

    def _end(self, record: FinishStepRecord, found: StepOutcome, **more: str) -> Decision:
        data = {
            "what": "ended",
            "step": record.step,
            "n": record.n,
            "key": record.key,
            "ok": found.ok,
            "lost": record.lost + found.lost,
            **more,
        }
        return self.decide("finish", found.why, data=data)

    # -- notices

    def _tell(self, record: FinishStepRecord, state: CampaignState) -> list[Decision]:
        """Waits for the channels, in later turns: nobody hears of it once the machine is off."""
        if self._telling is None:
            data = {"what": "COMPLETE", "verdict": finish_report_verdict(state)[0] or None}
            notice = self.decide("notice", _summarize_campaign(state), data=data)
            self._telling = notify_people(state, str(self.root), notice)
        if not all(told.done() for told in self._telling):
            return []
        troubles = [why for told in self._telling if (why := _notice_trouble(told))]
        count = len(self._telling)
        self._telling = None
        told = "; ".join(troubles) or f"told {count} channel{'s' if count != 1 else ''}"
        return [self._end(record, StepOutcome(True, told))]


@dataclass(frozen=True, slots=True)
class LoopRounds(ControllerExtension):
    """Makes the next round of a loop."""

    runner: FinishRunner

    def at_rest(self, state: CampaignState, *, complete: bool) -> ExtensionResult:  # noqa: ARG002
        return self.runner.next_round_step(state)


@dataclass(frozen=True, slots=True)
class CampaignFinish(ControllerExtension):
    """Carries the finish out."""

    runner: FinishRunner

    def at_rest(self, state: CampaignState, *, complete: bool) -> ExtensionResult:
        return self.runner.next_finish_step(state) if complete else ((), True)


def _name_of_stopped_part(record: FinishStepRecord) -> str:
    return "the loop" if record.step.startswith("round-") else "the finish"


def tokens_of_open_steps(state: CampaignState) -> set[str]:
    return {record.token for record in state.finish.steps.values() if record.ended is None}


def attempt_of_step(record: FinishStepRecord) -> Attempt:
    """An execution of a step, as the probe and the judge know executions."""
    cell = f"finish/{record.step}"
    return Attempt(cell, record.n, record.token, 0, (), "", record.at, record.boot, record.boot_id)


def command_of_step(step: FinishStep, root: Path) -> tuple[str, ...]:
    """Reports are made by a process of their own: what they need stays out of the controller."""
    words = split_shell_words(step.what)
    if step.kind in OWN_STEPS:
        return own_python_command("muster", "-C", str(root), *words[1:])
    return words


def environment_of_step(step: FinishStep, root: Path, state: CampaignState) -> dict[str, str]:
    """What is added to the recorded one: `env` of the campaign. A step of ours loads no code by it."""
    if step.kind not in OWN_STEPS:
        return dict(state.campaign.env)
    recorded = own_process_environment(read_recorded_environment(state) or {}, root)
    return {**without_code_variables(state.campaign.env), "PYTHONPATH": recorded.get("PYTHONPATH", "")}


def has_bound_documents(root: Path, state: CampaignState) -> bool:
    """Whether `muster docs update` has something to do; without, it would call that wrong use."""
    named = [root / name for name in state.campaign.documents]
    return any(root.glob(f"*{SIDECAR_ENDING}")) or any(
        path.with_name(path.name + SIDECAR_ENDING).exists() for path in named
    )


@dataclass(frozen=True, slots=True)
class StepOutcome:
    ok: bool | None  # None: it is to be done again
    why: str
    lost: bool = False  # nobody saw its end


def judge_step_end(record: FinishStepRecord, verdict: Verdict, seen: AttemptSnapshot, *, partial: bool) -> StepOutcome:
    """Whether an execution that has ended counts as done."""
    code = seen.exit.code if seen.exit else None
    if verdict.state == VerdictState.DONE:
        return StepOutcome(True, "exit 0")
    if code == INCOMPLETE_EXIT_CODE and partial and record.step in ("report", "docs"):
        return StepOutcome(True, f"exit {INCOMPLETE_EXIT_CODE}: partial, because cells were given up")
    kind = verdict.cause.kind if verdict.cause else ""
    if kind == "user_stop":
        return StepOutcome(None, verdict.reason)
    lost = kind in RETRIED_AT_ONCE | RETRIED_ONCE and not (seen.exit and seen.exit.exec_error)
    if lost and record.lost + 1 < MOST_LOST:
        return StepOutcome(None, verdict.reason, lost=True)
    return StepOutcome(False, verdict.reason, lost)


def _last_error_message(folder: Path) -> str:
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


def _summarize_campaign(state: CampaignState) -> str:
    done = sum(record.done for record in state.declared)
    missing = given_up_cells(state)
    more = f", {len(missing)} given up" if missing else ""
    told = format_report_verdict(*finish_report_verdict(state))
    more += f"; report: {told}" if told else ""
    return f"{state.campaign.name} is complete: {done} of {phrase('count.cell', n=len(state.declared))} done{more}"


def format_report_verdict(verdict: str, flag: str) -> str:
    return f"{verdict}: {flag}" if flag else verdict


def _notice_trouble(told: Future[str]) -> str:
    try:
        return told.result()
    except Exception as error:
        return str(error)


# -- for `muster down --runs`


def stop_open_step(desk: CampaignHandle, loaded: CampaignState, timeout_s: float) -> tuple[str, bool] | None:
    """Stops the step that is under way, as a run is stopped: its name, and whether it has ended; None: there is none.

    To be called when no controller is left. The step counts as not done, so `muster up` does it again.
    """
    record = next((each for each in loaded.finish.steps.values() if each.ended is None), None)
    if record is None or record.step == "notify":
        return None
    attempt, executor = attempt_of_step(record), desk.services.host.steps(desk.state, desk.clock)

    def over() -> bool:
        return judge_attempt(attempt, executor.probe.look([attempt])[attempt.key], _STEP_JOB, explain=False).final

    if over() or executor.probe.look([attempt])[attempt.key].started == "no":
        return None
    grace_s = float(os.environ.get("MUSTER_GRACE_S", "10"))
    executor.stop(attempt, epoch=loaded.epoch, reason="user_stop", grace_s=grace_s)
    deadline = time.monotonic() + timeout_s
    while not over() and time.monotonic() < deadline:
        time.sleep(STEP_LOOK_S)
    return record.step, over()
