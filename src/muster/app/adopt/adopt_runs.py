"""Takes in runs that something else produced. The campaign is taken in with them, and nothing starts."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from muster.app.adopt.find_runs import (
    Adoption,
    ProvedRun,
    RefusedRun,
    adoption_decisions,
    find_adoptable_runs,
    refusal_decisions,
    unrecorded_spend,
)
from muster.app.campaign.campaign_code import CodeReader
from muster.app.campaign.campaign_handle import CAMPAIGN_FILE_NAME, CampaignHandle
from muster.app.campaign.cell_definitions import hash_definitions
from muster.app.campaign.load_campaign import (
    LoadedCampaign,
    campaign_decision_data,
    read_campaign_file,
    with_current_variants,
)
from muster.app.campaign.run_configs import write_run_configs
from muster.engine.plan.up_preview import state_as_declared
from muster.engine.ports.services import installed_services
from muster.files.campaign_snapshots import load_campaign_snapshot, lock_environment_recording
from muster.files.process_identity import read_boot_id
from muster.files.state_folder import has_started_state, refuse_bad_state_folder
from muster.model.calendar import format_iso_time
from muster.model.campaign_location import NEVER_MOVED
from muster.model.campaign_state import CampaignState
from muster.model.decision import Decision
from muster.model.errors import Mistake, MusterError, UsageError
from muster.readers.proof import FileProofReader


@dataclass(frozen=True, slots=True)
class AdoptionResult:
    found: Adoption
    taken: tuple[ProvedRun, ...]  # in the record now; with a dry run: what would be
    refused: tuple[RefusedRun, ...]
    took_in: bool  # campaign.yaml was taken in on the way
    declared: int
    done: int
    warnings: tuple[Mistake, ...]
    spent: int = 0  # refused runs that are written down as known spend now


def adopt_found_runs(
    root: Path, patterns: Sequence[str], table: Path | None, *, dry_run: bool, job: str | None = None
) -> AdoptionResult:
    """Where there is nothing to adopt, nothing is changed: the campaign is not taken in either."""
    read_now = read_campaign_file(root / CAMPAIGN_FILE_NAME)
    if not dry_run:
        refuse_bad_state_folder(root)
    desk = CampaignHandle.open(root) if has_started_state(root) else None
    if desk and not dry_run:
        desk.refuse_copy()
    before = desk.store.load() if desk else None
    outdated = before is None or _is_campaign_outdated(root, before, read_now)
    # a campaign that runs takes a new text in only by `muster up`: its new cells would start
    take = outdated and (before is None or before.intent.kind != "running")
    warnings = read_now.warnings
    if outdated and not take:
        warnings = (*warnings, _warn_campaign_differs())
    state = before if before and not take else _state_as_if_submitted(root, read_now, before, desk)
    _refuse_unknown_job(job, state)
    processes = installed_services().processes
    found = find_adoptable_runs(
        state,
        root,
        patterns,
        table,
        FileProofReader(),
        job,
        processes.writer_check(),
        blind=processes.may_miss_other_users(),
    )
    taken, late = found.proved, tuple[RefusedRun, ...]()
    # a campaign that was never begun is not begun by what could not be adopted
    spent = unrecorded_spend(found, state) if found.proved or desk else []
    changes = bool(found.proved or spent) and not dry_run
    if changes:
        desk = desk or CampaignHandle.create(root)
        taken, late = _submit_and_record(desk, found, read_now if take else None, before)
        made = refusal_decisions(
            spent, desk.person("refuse").who, format_iso_time(desk.clock.wall()), desk.clock.boot()
        )
        if made:
            desk.decide([replace(decision, ref=secrets.token_hex(8)) for decision in made])
    done = sum(cell.done for cell in state.declared) + len(taken)
    return AdoptionResult(
        found, taken, (*found.refused, *late), take and changes, len(state.declared), done, warnings, len(spent)
    )


def _submit_and_record(
    desk: CampaignHandle, found: Adoption, to_take_in: LoadedCampaign | None, before: CampaignState | None
) -> tuple[tuple[ProvedRun, ...], tuple[RefusedRun, ...]]:
    if to_take_in:
        submit_without_starting(desk, to_take_in, before)
    return record_adoption(desk, found)


def _refuse_unknown_job(job: str | None, state: CampaignState) -> None:
    names = [each.name for each in state.campaign.jobs]
    if job is not None and job not in names:
        raise UsageError(
            f"--job {job}: there is no job {job!r}; nothing was changed", hint=f"jobs are {', '.join(names)}"
        )


def submit_without_starting(desk: CampaignHandle, found: LoadedCampaign, before: CampaignState | None) -> None:
    """Takes the campaign in and leaves the intent alone: nothing starts until `muster up`."""
    found = with_current_variants(found, before)
    write_run_configs(found.configs, found.originals(desk.file))
    hashed = hash_definitions(
        found.campaign, str(desk.root), CodeReader(found.campaign, desk.root), desk.store.origin()
    )
    with lock_environment_recording(desk.state):
        _decide_to_submit(desk, found, before, hashed)


def _decide_to_submit(
    desk: CampaignHandle, found: LoadedCampaign, before: CampaignState | None, hashed: Mapping[str, str]
) -> None:
    data = campaign_decision_data(desk, found, hashed, before)
    if found.bases:
        data["rounds"] = before.loop.most if before else 0
    taking = [desk.person("campaign", "taken in by adopt", data=data)]
    if before and before.only:  # a filter that was written down outlives the new text
        only = [{axis: list(values) for axis, values in part.items()} for part in before.only]
        taking.append(desk.person("filter", "kept while adopting", data={"only": only}))
    refused = [why for why in desk.decide(taking) if why]
    if refused:
        raise MusterError(f"the campaign could not be taken in: {refused[0]}", where=str(desk.root))


def record_adoption(desk: CampaignHandle, found: Adoption) -> tuple[tuple[ProvedRun, ...], tuple[RefusedRun, ...]]:
    """Durably; what came too late (its cell started meanwhile) is refused and named."""
    who = desk.person("adopt").who
    made = adoption_decisions(found, who, format_iso_time(desk.clock.wall()), desk.clock.boot(), read_boot_id())
    if not made:
        return (), ()
    named: list[Decision] = [replace(decision, ref=secrets.token_hex(8)) for decision in made]
    answers = desk.decide(named)
    taken = tuple(proved for proved, why in zip(found.proved, answers, strict=True) if not why)
    late = tuple(
        RefusedRun(proved.outcome.output or proved.cell, f"{proved.cell}: {why}")
        for proved, why in zip(found.proved, answers, strict=True)
        if why
    )
    return taken, late


def _state_as_if_submitted(
    root: Path, found: LoadedCampaign, before: CampaignState | None, desk: CampaignHandle | None
) -> CampaignState:
    origin = desk.store.origin() if desk else NEVER_MOVED
    hashed = hash_definitions(found.campaign, str(root), CodeReader(found.campaign, root), origin)
    return state_as_declared(found.campaign, hashed, before)


def _is_campaign_outdated(root: Path, before: CampaignState, found: LoadedCampaign) -> bool:
    return load_campaign_snapshot(root / ".muster", before.campaign_hash).text != found.text


def _warn_campaign_differs() -> Mistake:
    return Mistake(
        "it differs from the campaign that runs; runs are matched to the one that runs",
        hint="`muster up` takes the new text in",
        level="warning",
    )
