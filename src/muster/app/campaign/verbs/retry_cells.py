"""Dead or given-up cells may start again; and what `retry` and `redo` say of each cell that may."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.campaign_status import Status
from muster.app.campaign.observe_campaign import RETRY_HINT, refuse_changed_definitions
from muster.app.campaign.start_controller import Tell, observe_and_revive, start_if_running
from muster.app.campaign.verbs.await_attempts import AttemptEndWaiter
from muster.app.campaign.verbs.choose_cells import choose_cells
from muster.app.campaign.verbs.decide_for_cells import decide_for_cells
from muster.model.campaign_state import Intent
from muster.text.phrases import join_phrases, phrase


@dataclass(frozen=True, slots=True)
class RestartedCell:
    """A cell that may start again: its new attempt, or what it waits for."""

    cell: str
    tried: int  # attempts before
    attempt: int | None  # the new one, if it was claimed already
    state: str
    reason: str  # why it is in that state; empty where a start is only a question of time
    next: str


@dataclass(frozen=True, slots=True)
class RetryResult:
    retried: tuple[RestartedCell, ...]
    refused: Mapping[str, str]  # cell -> why


def retry_cells(desk: CampaignHandle, patterns: Sequence[str], reason: str, tell: Tell) -> RetryResult:
    AttemptEndWaiter(desk).record_ended()
    before = observe_and_revive(desk, tell)
    names = choose_cells("retry", patterns, before)
    refuse_changed_definitions(desk, before.state, names, RETRY_HINT)
    lost = {cell.record.cell.id: cell for cell in before.cells if cell.record.open and cell.verdict.kind == "lost"}
    refused = {name: join_phrases("; ", (lost[name].verdict.reason, lost[name].next)) for name in names if name in lost}
    answers = decide_for_cells(desk, [desk.person("retry", reason, cell=name) for name in names if name not in lost])
    restarted: tuple[RestartedCell, ...] = ()
    if answers.accepted:
        after = start_if_running(desk, tell)
        restarted = tuple(restarted_cells(answers.accepted, before, after, desk.load().intent))
    return RetryResult(restarted, refused | answers.refused)


def restarted_cells(names: Sequence[str], before: Status, after: Status, intent: Intent) -> Iterator[RestartedCell]:
    tried = {cell.record.cell.id: len(cell.record.attempts) for cell in before.cells}
    now = {cell.record.cell.id: cell for cell in after.cells}
    for name in names:
        cell = now[name]
        count = len(cell.record.attempts)
        waits = intent.kind == "running" and not cell.startable
        yield RestartedCell(
            name,
            tried[name],
            count if count > tried[name] else None,
            cell.verdict.state,
            cell.verdict.reason if waits else "",
            cell.next if waits else describe_next_start(intent),
        )


def describe_next_start(intent: Intent) -> str:
    """When a cell starts that may start."""
    if intent.kind == "held":
        return phrase("campaign.starts_after_release", reason=intent.reason)
    if intent.kind == "down":
        return phrase("campaign.starts_after_up")
    return phrase("campaign.starts_when_slot_free")
