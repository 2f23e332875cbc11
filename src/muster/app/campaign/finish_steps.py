"""The steps of `finish:`: their order, which one is due now, and how `status` shows them. Pure; `app.finish` carries
them out.

Each step is recorded when it begins and when it ends, for a state of the matrix: the campaign that was taken in, and
which attempt completed each cell. A step that ended well is not done again for the same state; one that failed stops
all that comes after it, until a person says `muster up`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from muster.model.campaign import DeclaredFinish
from muster.model.campaign_state import CampaignState, FinishStepRecord, ShutdownProgress
from muster.text.hide_secrets import hide_secrets_in_text
from muster.text.phrases import join_phrases, phrase

POWER_OFF = "shutdown -h now || poweroff || halt"
MOST_LOST = 3  # executions without a known end; then it counts as failed
POWER_OFF_TIMEOUT_S = 600.0  # a command that powers off returns at once, or never
LATE_COUNTDOWN_S = 60.0  # a countdown that is over for so long was left by who counted

StepKind = Literal["report", "docs", "run", "notify", "shutdown", "round"]
StepStanding = Literal["waiting", "under way", "done", "failed", "refused", "counting down", "cancelled", "unclear"]


@dataclass(frozen=True, slots=True)
class FinishStep:
    name: str  # report, docs, cost, record, run-1, ..., notify, shutdown
    kind: StepKind
    what: str  # its command, as a person would type it
    countdown_s: float = 0.0


# what is due: pure values, carried out by app/finish/run_finish.py


@dataclass(frozen=True, slots=True)
class BeginStep:
    """Record that this step begins; what is recorded is done."""

    step: FinishStep
    n: int
    lost: int


@dataclass(frozen=True, slots=True)
class TendStep:
    """An execution that was recorded and has no end yet: start it if it has not started, else see how it is."""

    record: FinishStepRecord


@dataclass(frozen=True, slots=True)
class PowerOff:
    """Everything else is done: look, count down, power off. `stage`: it was recorded that this begins."""

    step: FinishStep
    stage: ShutdownProgress | None = None


@dataclass(frozen=True, slots=True)
class NothingDue:
    """`over`: nothing of it is left to do."""

    over: bool


FinishAction = BeginStep | TendStep | PowerOff | NothingDue


def has_finish(state: CampaignState) -> bool:
    """Whether there is anything of a finish to tell. Cheap: asked at every look."""
    return bool(state.campaign.finish or state.finish.wish or state.finish.stage or state.finish.steps)


def list_finish_steps(state: CampaignState) -> list[FinishStep]:
    """In their order."""
    wanted = state.campaign.finish or DeclaredFinish()
    partial = " --partial" if given_up_cells(state) else ""
    found: list[FinishStep] = []
    if wanted.report:
        found.append(FinishStep("report", "report", f"muster report{partial} --exit-zero"))  # INVALID is no failure
    if wanted.docs:
        found.append(FinishStep("docs", "docs", "muster docs update"))
    if wanted.report:  # the bill and the record are part of it; last, so that they tell of all
        found += [FinishStep("cost", "report", "muster cost --report"), FinishStep("record", "report", "muster record")]
    found += [FinishStep(f"run-{at}", "run", line) for at, line in enumerate(wanted.run, 1)]
    if wanted.notify:
        found.append(FinishStep("notify", "notify", phrase("campaign.tell_everybody")))
    if wanted.shutdown or state.finish.wish:
        found.append(FinishStep("shutdown", "shutdown", power_off_command(state), countdown_seconds(state)))
    return found


def power_off_command(state: CampaignState) -> str:
    """The command: the campaign's, else the usual one. One that an older version took from an option is not used."""
    declared = state.campaign.finish.shutdown if state.campaign.finish else False
    return declared if isinstance(declared, str) else POWER_OFF


def countdown_seconds(state: CampaignState) -> float:
    asked = state.finish.wish.countdown_s if state.finish.wish else None
    return (state.campaign.finish or DeclaredFinish()).countdown if asked is None else asked


def given_up_cells(state: CampaignState) -> list[str]:
    return [record.cell.id for record in state.declared if not record.done and record.given_up is not None]


def is_matrix_settled(state: CampaignState) -> bool:
    """Every declared cell is done or given up, nothing is open, and no further round of a loop may come."""
    if state.open_attempts or (state.campaign.loop and not state.loop.stopped):
        return False
    return all(record.done or record.given_up is not None for record in state.declared)


def matrix_state_key(state: CampaignState) -> str:
    """Names a state of the matrix: the campaign, and how each cell was settled."""
    import hashlib  # not at the top: most looks need no key

    told = hashlib.sha256(state.campaign_hash.encode())
    for record in state.declared:
        completed = record.completed
        how = (
            f"{completed.n} {completed.token}"
            if completed
            else phrase("campaign.cell_given_up", reason=record.given_up)
        )
        told.update(f"\0{record.cell.id} {how}".encode())
    return told.hexdigest()[:16]


def next_finish_action(state: CampaignState, key: str | None = None) -> FinishAction:
    """What the controller is to do now. One execution at a time: what is under way is seen to its end first.

    A campaign at rest was ended by a controller, an older version's perhaps: only a person's word wakes it.
    """
    if state.intent.kind != "running" or not has_finish(state):
        return NothingDue(over=True)
    if not is_matrix_settled(state):
        return NothingDue(over=False)
    stage = state.finish.stage
    if stage and stage.what == "began" and stage.key == (key or matrix_state_key(state)):  # the wish for it is gone
        return PowerOff(FinishStep("shutdown", "shutdown", stage.command), stage)
    if state.at_rest and not state.finish.wish:
        return NothingDue(over=True)
    for record in state.finish.steps.values():
        if record.ended is None:
            return TendStep(record)
    return _next_step_action(state, key or matrix_state_key(state))


def _next_step_action(state: CampaignState, key: str) -> FinishAction:
    for step in list_finish_steps(state):
        if step.kind == "shutdown":
            return NothingDue(over=True) if state.finish.begun == key or state.finish.cancelled else PowerOff(step)
        last = state.finish.steps.get(step.name)
        mine = last if last and last.key == key else None
        if mine is None or mine.ok is None:
            return BeginStep(step, last.n + 1 if last else 1, mine.lost if mine else 0)
        if not mine.ok:
            break
    return NothingDue(over=True)


# -- telling


@dataclass(frozen=True, slots=True)
class StepView:
    step: FinishStep
    standing: StepStanding
    began: str | None = None
    ended: str | None = None
    why: str = ""
    folder: str | None = None  # with its output, relative to the campaign's folder
    reasons: tuple[str, ...] = ()
    verdict: str = ""  # of a report
    flag: str = ""


@dataclass(frozen=True, slots=True)
class FinishView:
    steps: tuple[StepView, ...]
    settled: bool  # every cell is
    due: bool  # a controller has something to do now

    @property
    def failed(self) -> StepView | None:
        return next((step for step in self.steps if step.standing == "failed"), None)

    @property
    def undone(self) -> list[StepView]:
        """What must be done before the machine may be powered off."""
        return [view for view in self.steps if view.step.kind != "shutdown" and view.standing != "done"]


def build_finish_view(state: CampaignState, boot: float) -> FinishView | None:
    if not has_finish(state):
        return None
    over = is_matrix_settled(state)
    key = matrix_state_key(state) if over else None
    told = [_build_step_view(step, state, key, boot) for step in list_finish_steps(state)]
    stage = state.finish.stage
    if stage and not any(each.step.kind == "shutdown" for each in told):  # a wish that was granted, or a command's own
        alone = _build_shutdown_view(FinishStep("shutdown", "shutdown", stage.command), state, key, boot)
        told += [alone] if alone.standing not in ("waiting", "cancelled") else []
    if not told:
        return None
    return FinishView(tuple(told), over, over and not isinstance(next_finish_action(state, key), NothingDue))


def _build_step_view(step: FinishStep, state: CampaignState, key: str | None, boot: float) -> StepView:
    if step.kind == "shutdown":
        return _build_shutdown_view(step, state, key, boot)
    record = state.finish.steps.get(step.name)
    if record is None or (record.ended is not None and (record.key != key or record.ok is None)):
        return StepView(step, "waiting")
    folder = None if step.kind == "notify" else f".muster/finish/{step.name}/{record.n}"
    standing: StepStanding = "under way" if record.ended is None else "done" if record.ok else "failed"
    return StepView(
        step, standing, record.at, record.ended, record.why, folder, verdict=record.verdict, flag=record.flag
    )


_STAGE_STANDINGS: dict[str, StepStanding] = {
    "refused": "refused",
    "clear": "under way",
    "counting": "counting down",
    "began": "under way",
    "ended": "done",
    "failed": "failed",
    "unclear": "unclear",
}


def _build_shutdown_view(step: FinishStep, state: CampaignState, key: str | None, boot: float) -> StepView:
    stage, cancelled = state.finish.stage, state.finish.cancelled
    if stage is None or stage.key != key or stage.what == "dropped" or _is_stage_abandoned(stage, boot):
        if cancelled:
            return StepView(step, "cancelled", why=phrase("campaign.cancelled_by", who=cancelled))
        return StepView(step, "unclear" if state.finish.begun == key else "waiting")
    step = replace(step, what=stage.command or step.what)  # what is done may be another wish than what is wanted now
    why = {
        "clear": phrase("campaign.shutdown_second_look"),
        "began": phrase("campaign.shutdown_command_runs"),
        "counting": phrase("campaign.countdown_from", countdown_s=stage.countdown_s, at=stage.at[11:19]),
    }.get(stage.what, "")
    if stage.what in ("ended", "failed"):
        return StepView(
            step, _STAGE_STANDINGS[stage.what], None, stage.at, join_phrases("; ", stage.reasons), ".muster/finish"
        )
    return StepView(step, _STAGE_STANDINGS[stage.what], stage.at, None, why, reasons=stage.reasons)


def _is_stage_abandoned(stage: ShutdownProgress, boot: float) -> bool:
    """Nobody is at it any more: who counted was killed, or the machine went down."""
    lasts = {"clear": stage.countdown_s, "counting": stage.countdown_s, "began": POWER_OFF_TIMEOUT_S}.get(stage.what)
    return lasts is not None and not stage.boot <= boot <= stage.boot + lasts + LATE_COUNTDOWN_S


def finish_view_as_json(found: FinishView) -> dict[str, Any]:
    """The `finish` of `muster status --json`: a contract."""
    failed = found.failed
    return {
        "due": found.due,
        "failed": failed.step.name if failed else None,
        "steps": [
            {
                "step": each.step.name,
                "what": hide_secrets_in_text(each.step.what),
                "state": each.standing,
                "began": each.began,
                "ended": each.ended,
                "why": each.why or None,
                "folder": each.folder,
                "reasons": list(each.reasons),
                "verdict": each.verdict or None,
                "flag": each.flag or None,
            }
            for each in found.steps
        ],
    }


def describe_finish(found: FinishView) -> list[str]:
    """For people: one line for what went well, one for each other step that has something to tell."""
    lines = []
    well = [_step_name_with_verdict(each) for each in found.steps if each.standing == "done"]
    if well:
        lines.append(phrase("campaign.finish_done", steps=join_phrases(", ", well)))
    for each in found.steps:
        line = _describe_step(each)
        if line:
            lines.append(phrase("campaign.finish_line", line=line))
    waiting = [each.step.name for each in found.steps if each.standing == "waiting" and each.step.kind != "shutdown"]
    if found.settled and not found.due and waiting and not found.failed:
        lines.append(phrase("campaign.finish_waits_for_up", steps=join_phrases(", ", waiting)))
    return lines


_STANDING_CODES: dict[StepStanding, str] = {
    "waiting": "campaign.standing_waiting",
    "under way": "campaign.standing_under_way",
    "done": "campaign.standing_done",
    "failed": "campaign.standing_failed",
    "refused": "campaign.standing_refused",
    "counting down": "campaign.standing_counting_down",
    "cancelled": "campaign.standing_cancelled",
    "unclear": "campaign.standing_unclear",
}


def describe_step_standing(each: StepView) -> str:
    """`report is failed`."""
    return phrase("campaign.step_is", step=each.step.name, standing=phrase(_STANDING_CODES[each.standing]))


def _step_name_with_verdict(each: StepView) -> str:
    return f"{each.step.name} ({each.verdict})" if each.verdict else each.step.name


def finish_report_verdict(state: CampaignState) -> tuple[str, str]:
    """The verdict of this finish's report and its first red flag; empty: none was made."""
    record = state.finish.steps.get("report")
    return (record.verdict, record.flag) if record and record.ok and record.key == matrix_state_key(state) else ("", "")


def _describe_step(each: StepView) -> str:
    what = hide_secrets_in_text(each.step.what)
    name = f"{each.step.name} (`{what}`)"
    if each.standing == "waiting" and each.step.kind == "shutdown":
        return phrase("campaign.powered_off_when_done", what=what)
    if each.standing == "under way":
        since = phrase("campaign.step_under_way_since", name=name, at=(each.began or "")[11:19])
        return join_phrases(": ", filter(None, (since, each.why)))
    if each.standing == "failed":
        if each.folder:
            return phrase("campaign.step_failed_output", name=name, reason=each.why, folder=each.folder)
        return phrase("campaign.step_failed_because", name=name, reason=each.why)
    if each.standing == "refused":
        return phrase("campaign.shutdown_waits", reasons=join_phrases("; ", each.reasons))
    if each.standing == "counting down":
        return phrase("campaign.shutdown_counts_down", why=each.why, what=what)
    if each.standing == "cancelled":
        return phrase("campaign.shutdown_was_cancelled", why=each.why)
    if each.standing == "unclear":
        return phrase("campaign.powered_off_before")
    return ""
