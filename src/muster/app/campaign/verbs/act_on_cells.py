"""What people decide about cells (`stop`, `retry`, `redo`, `giveup`, `accept`): which cells a verb concerns, what
must hold first, and what follows.

`AttemptEndWaiter` waits until stopped attempts are recorded as ended. A campaign that is down or held may have no
controller: one is started, which carries out what was decided, records the ends and leaves.
"""

from __future__ import annotations

import glob
import shlex
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.campaign_status import CellStatus
from muster.app.campaign.observe_campaign import observe_campaign
from muster.files.safe_open import open_regular_file
from muster.model.attempt import Attempt, CellRecord
from muster.model.attempt_snapshot import ExitRecord, ProofReading
from muster.model.campaign import Job
from muster.model.campaign_state import CampaignState, Intent
from muster.model.cell import map_needed_cells
from muster.model.decision import Decision
from muster.model.errors import UsageError
from muster.model.verdict import VerdictState
from muster.text.sentences import format_count

LONGEST_EVIDENCE_LINE = 2000


def does_verb_concern(verb: str, cell: CellStatus) -> bool:
    """Whether a glob that fits the cell means it. Who names a cell gets an answer about it in any case."""
    if cell.record.open is not None:
        return verb == "stop"
    if verb == "stop":
        return False
    if verb == "redo":
        return cell.verdict.state == VerdictState.DONE
    if verb == "giveup":
        return cell.verdict.state not in (VerdictState.DONE, VerdictState.GIVEN_UP)
    return cell.verdict.state == VerdictState.DEAD or (verb == "retry" and cell.verdict.state == VerdictState.GIVEN_UP)


def require_reason(reason: str, option: str = "--because") -> str:
    """A reason that says something."""
    text = " ".join(reason.split())
    if not text or (option == "--because" and not any(each.isalnum() for each in text)):  # `...` too, of our hints
        raise UsageError(f"{option} is empty", hint="say why, in words that still mean something next month")
    return text


def describe_next_start(intent: Intent) -> str:
    """When a cell starts that may start."""
    if intent.kind == "held":
        return f"starts only after `muster release`; the campaign is held: {intent.reason}"
    if intent.kind == "down":
        return "the campaign is down; starts after `muster up`"
    return "starts when a slot is free"


def why_not_acceptable(
    record: CellRecord, job: Job, exit_: ExitRecord | None, proof: ProofReading | None
) -> str | None:
    """Why a person's word can't make the last attempt DONE; None: it can. The proof was read just now."""
    last = record.last
    if record.done:
        return "it is DONE already"
    if last is None:
        return "it has no attempt to accept"
    if last.open:
        return _why_not_ended(record, exit_)
    if not job.asks_proof:
        return "no proof is declared, so there is nothing that could hold"
    if proof is None:
        return "its proof does not hold: its attempt.json can't be read"
    if proof.holds:
        return None
    bad = [item.reading for item in proof.evidence if item.says not in ("holds", "abstains")]
    word = "can't be read" if proof.holds is None else "does not hold"
    return f"its proof {word}: {'; '.join(bad) or 'nothing was found'}"


def _why_not_ended(record: CellRecord, exit_: ExitRecord | None) -> str:
    if exit_ is None:
        return "it is running and can't be accepted; wait for its end, or stop it"
    if exit_.code == 0:
        return (
            "its command ended with exit 0, but processes that it left behind live on; "
            f"`muster stop {shlex.quote(record.cell.id)}` ends them, and its exit counts then"
        )
    return "processes of it live on; `muster stop` ends them, then it can be accepted"


def read_evidence_line(text: str, folder: Path) -> Mapping[str, Any]:
    """`FILE:LINE` with the line itself, so that the finding can be read when the file has changed."""
    name, _, number = text.rpartition(":")
    if not name or not number.isascii() or not number.isdigit() or int(number) < 1:
        raise UsageError(f"--evidence {text}: not FILE:LINE", hint="write it as train.log:120")
    path = (folder / name).absolute()
    line, count = _read_numbered_line(path, int(number))
    if line is None:
        raise UsageError(f"--evidence {text}: the file has {format_count(count, 'line')}", where=str(path))
    return {"file": str(path), "line": int(number), "text": line}


def _read_numbered_line(path: Path, number: int) -> tuple[str | None, int]:
    count = 0
    try:
        with open_regular_file(path) as file:
            for count, data in enumerate(file, 1):
                if count == number:
                    return data.decode("utf-8", "replace").rstrip("\r\n")[:LONGEST_EVIDENCE_LINE], count
    except OSError as error:
        raise UsageError(f"--evidence: the file can't be read: {error.strerror}", where=str(path)) from None
    return None, count


@dataclass(frozen=True, slots=True)
class RedoStep:
    """One cell to redo. `needed_by`: every cell that rests on it; none of them may be DONE or running by then."""

    cell: str
    needed_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RedoPlan:
    steps: tuple[RedoStep, ...]  # what rests on a cell comes before it: a DONE cell never rests on a superseded one
    followers: tuple[str, ...]  # nobody named them; they rest on what is redone
    refused: Mapping[str, str]  # named cells that can't be redone, and why
    overwritten: tuple[str, ...]  # cells whose job writes to one and the same place again


def plan_redo(state: CampaignState, names: Sequence[str]) -> RedoPlan:
    """Cells that are not DONE are in it, too: the fold tells why they can't be redone."""
    behind = _followers_of_cells(state)
    refused = {name: why for name in names if (why := _describe_running_followers(behind(name), state))}
    chosen = [name for name in names if name not in refused]
    steps: dict[str, RedoStep] = {}

    def add(name: str) -> None:
        following = behind(name)
        for follower in following:
            if follower not in steps and state.cells[follower].done:
                add(follower)
        steps.setdefault(name, RedoStep(name, following))

    for name in chosen:
        add(name)
    followers = tuple(name for name in state.cells if name in steps and name not in chosen)
    overwritten = tuple(name for name in steps if _overwrites_output(state.cells[name], state))
    return RedoPlan(tuple(steps.values()), followers, refused, overwritten)


def _followers_of_cells(state: CampaignState) -> Callable[[str], tuple[str, ...]]:
    """A function: every cell that needs the given one, directly or through others, in declared order."""
    needs = map_needed_cells(state.campaign, [record.cell for record in state.declared])
    direct: dict[str, list[str]] = {}
    for name, needed in needs.items():
        for need in needed:
            direct.setdefault(need, []).append(name)
    position = {name: at for at, name in enumerate(state.cells)}
    known: dict[str, tuple[str, ...]] = {}

    def behind(name: str) -> tuple[str, ...]:
        if name not in known:
            found = {each for follower in direct.get(name, ()) for each in (follower, *behind(follower))}
            known[name] = tuple(sorted(found, key=position.__getitem__))
        return known[name]

    return behind


def _describe_running_followers(followers: Sequence[str], state: CampaignState) -> str:
    running = [name for name in followers if state.cells[name].open]
    return f"{', '.join(running[:3])} runs on it; stop it first, or wait for its end" if running else ""


def _overwrites_output(record: CellRecord, state: CampaignState) -> bool:
    job: Job = state.job(record.cell.job)
    return not ("{out}" in job.output or "{attempt}" in job.output or glob.has_magic(job.output))


def build_redo_decisions(desk: CampaignHandle, state: CampaignState, plan: RedoPlan, reason: str) -> list[Decision]:
    return [
        desk.person(
            "redo", reason, cell=step.cell, data={"campaign": state.campaign_hash, "needed_by": list(step.needed_by)}
        )
        for step in plan.steps
    ]


AttemptKey = tuple[str, int]
END_LOOK_S = 0.05
RECORD_TIMEOUT_S = 10.0  # an end is recorded within this, even if a controller must be started for it
RESTART_PAUSE_S = 2.0  # a controller that was started needs a moment to take its lock


class AttemptEndWaiter:
    def __init__(self, desk: CampaignHandle) -> None:
        self.desk = desk
        self._asked = float("-inf")

    def ensure_controller(self) -> None:
        if self.desk.controller() is None and time.monotonic() - self._asked > RESTART_PAUSE_S:
            self._asked = time.monotonic()
            self.desk.start_controller()

    def _may_start(self) -> bool:
        """Somebody is there, or one may be started: in what came from elsewhere none is."""
        return self.desk.controller() is not None or self.desk.started_here()

    def until_ended(self, keys: Collection[AttemptKey], timeout_s: float) -> list[Attempt]:
        """Until these attempts have ended and it is recorded; returns those that have not when the time is up."""
        deadline = time.monotonic() + timeout_s
        while True:
            left = [attempt for attempt in self.desk.load().open_attempts if attempt.key in keys]
            if not left or time.monotonic() > deadline:
                return left
            self.ensure_controller()
            time.sleep(END_LOOK_S)

    def record_ended(self) -> CampaignState:
        """What has ended is recorded before anybody decides about it: who is seen dead must not count as running."""
        deadline = time.monotonic() + RECORD_TIMEOUT_S
        while True:
            found = observe_campaign(self.desk)
            ending = any(c.record.open and (c.verdict.final or c.verdict.kind == "ending") for c in found.cells)
            if not ending or time.monotonic() > deadline or not self._may_start():
                return found.state
            self.ensure_controller()
            time.sleep(END_LOOK_S)
