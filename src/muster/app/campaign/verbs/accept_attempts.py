"""An attempt of a dead cell is taken as DONE by a person's word: the newest whose proof holds when it is read again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.observe_campaign import observe_campaign
from muster.app.campaign.start_controller import Tell, observe_and_revive, start_if_running
from muster.app.campaign.verbs.await_attempts import AttemptEndWaiter
from muster.app.campaign.verbs.choose_cells import choose_cells, refuse_many_without_reason, require_shared_reason
from muster.app.campaign.verbs.decide_for_cells import decide_for_cells
from muster.engine.ports.run_host import RunObserver
from muster.files.state_folder import attempt_folder
from muster.model.attempt import CellRecord
from muster.model.attempt_snapshot import ExitRecord, ProofReading
from muster.model.campaign import Job
from muster.model.campaign_state import CampaignState
from muster.model.decision import Decision
from muster.readers.attempt_facts import read_order
from muster.text.phrases import join_phrases, phrase


@dataclass(frozen=True, slots=True)
class AcceptedAttempt:
    cell: str
    attempt: int
    of: int  # attempts of the cell


@dataclass(frozen=True, slots=True)
class AcceptResult:
    accepted: tuple[AcceptedAttempt, ...]
    refused: Mapping[str, str]  # cell -> why


def accept_attempts(
    desk: CampaignHandle,
    patterns: Sequence[str],
    because: str | None,
    tell: Tell,
    *,
    attempt: int | None = None,
) -> AcceptResult:
    """`attempt`: this one and no other."""
    refuse_many_without_reason("accept", patterns, because, observe_campaign(desk))
    state = AttemptEndWaiter(desk).record_ended()
    names = choose_cells("accept", patterns, observe_and_revive(desk, tell))
    reason = require_shared_reason(phrase("campaign.accepted"), names, because, phrase("campaign.proof_holds"))
    observer = desk.observer()
    observer.configure(state)
    decisions: list[Decision] = []
    refused: dict[str, str] = {}
    for name in names:
        found = _find_acceptable(desk, observer, state, state.cells[name], attempt)
        if isinstance(found, str):
            refused[name] = found
        else:
            number, proof = found
            data = {"proof": [item.reading for item in proof.evidence], "output": proof.output}
            decisions.append(desk.person("accept", reason, cell=name, attempt=number, data=data))
    answers = decide_for_cells(desk, decisions)
    if answers.accepted:
        start_if_running(desk, tell)  # what waited for it may start
    taken = {decision.cell: decision.attempt or 0 for decision in decisions}
    accepted = (AcceptedAttempt(name, taken[name], len(state.cells[name].attempts)) for name in answers.accepted)
    return AcceptResult(tuple(accepted), refused | answers.refused)


def _find_acceptable(
    desk: CampaignHandle, observer: RunObserver, state: CampaignState, record: CellRecord, wanted: int | None
) -> tuple[int, ProofReading] | str:
    """An attempt and its proof, or why there is none. Nothing is believed from the record: the files are read now."""
    attempts = [each for each in reversed(record.attempts) if wanted in (None, each.n)]
    if wanted is not None and not attempts:
        return phrase("campaign.no_such_attempt", n=wanted, count=len(record.attempts))
    job = state.job(record.cell.job)
    refusals: dict[str, list[str]] = {}  # why -> the attempts that it is true of
    for each in attempts:
        exit_ = observer.probe.look([each])[each.key].exit
        order = read_order(attempt_folder(desk.state, *each.place))
        proof = observer.proofs.read(job, record.cell, order, exit_) if order else None
        refused = why_not_acceptable(record, job, exit_, proof)
        if not refused and proof is not None:
            return each.n, proof
        refusals.setdefault(refused or phrase("campaign.order_unreadable"), []).append(str(each.n))
    if len(refusals) > 1:
        return join_phrases(
            "; ",
            [
                phrase("campaign.attempts_refused", numbers=", ".join(numbers), reason=why)
                for why, numbers in refusals.items()
            ],
        )
    return (
        next(iter(refusals), None)
        or why_not_acceptable(record, job, None, None)
        or phrase("campaign.no_attempt_to_accept")
    )


def why_not_acceptable(
    record: CellRecord, job: Job, exit_: ExitRecord | None, proof: ProofReading | None
) -> str | None:
    """Why a person's word can't make the last attempt DONE; None: it can. The proof was read just now."""
    last = record.last
    if record.done:
        return phrase("campaign.cell_is_done_already")
    if last is None:
        return phrase("campaign.no_attempt_to_accept")
    if last.open:
        return _why_not_ended(record, exit_)
    if not job.asks_proof:
        return phrase("campaign.no_proof_declared")
    if proof is None:
        return phrase("campaign.proof_order_unreadable")
    if proof.holds:
        return None
    bad = [item.reading for item in proof.evidence if item.says not in ("holds", "abstains")]
    word = phrase("campaign.proof_unreadable") if proof.holds is None else phrase("campaign.proof_does_not_hold")
    return phrase(
        "campaign.proof_says", verdict=word, readings=join_phrases("; ", bad or [phrase("campaign.nothing_was_found")])
    )


def _why_not_ended(record: CellRecord, exit_: ExitRecord | None) -> str:
    if exit_ is None:
        return phrase("campaign.running_cannot_accept")
    if exit_.code == 0:
        return phrase("campaign.left_processes_live", cell=shlex.quote(record.cell.id))
    return phrase("campaign.processes_live_on")
