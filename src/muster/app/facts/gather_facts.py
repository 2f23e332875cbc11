"""A campaign as a report sees it: its state as campaign.yaml declares it now, and the files behind every number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import muster
from muster.app.campaign.accepted_flags import find_accepted_flags
from muster.app.campaign.campaign_digests import digest_accepted_flags, digest_campaign_sections
from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.campaign_status import Status
from muster.app.campaign.load_campaign import count_usable_slots
from muster.app.campaign.stamp import CellStamp, StampBasis
from muster.app.campaign.stamp_files import read_stamp
from muster.app.facts.build_report_facts import (
    ReportInputs,
    build_report_facts,
    find_accepted_cells,
    metrics_with_curves,
)
from muster.app.facts.definition_changes import find_changed_sources
from muster.app.facts.past_campaigns import CampaignSnapshot, count_done_at_decision_change, read_past_campaigns
from muster.app.facts.report_analysis import clear_explained_losses, find_red_flags
from muster.app.facts.report_facts import ReportFacts
from muster.app.facts.stamp_basis import (
    OriginReader,
    done_cells_behind_results,
    files_named_by_commands,
    files_used_of_cells,
    find_unread_results,
    make_cell_stamp,
    observe_declared_campaign,
    paths_inside_outputs,
)
from muster.files.campaign_snapshots import load_campaign_snapshot
from muster.model.calendar import format_iso_time
from muster.model.campaign import Campaign
from muster.model.cell import map_needed_cells
from muster.model.errors import MusterError
from muster.model.provenance import ResultOrigins
from muster.readers.file_hashes import HashCache
from muster.readers.source_code import blob_sha256, changed_sources_between
from muster.stats.red_flags import RedFlag
from muster.text.describe_run import describe_unread_results

ProgressStep = Callable[[str, int, int], None]  # what is done, how many of how many


def ignore_progress(what: str, done: int, of: int) -> None: ...


@dataclass(frozen=True, slots=True)
class GatheredFacts:
    root: Path
    status: Status
    facts: ReportFacts
    basis: StampBasis
    unread: Mapping[str, str] = field(default_factory=dict)  # cell -> why its results can't be read


def gather_report_facts(desk: CampaignHandle, step: ProgressStep = ignore_progress) -> GatheredFacts:
    """Everything that a report rests on."""
    status = observe_declared_campaign(desk)
    campaign = status.state.campaign
    reader = OriginReader(desk, HashCache(desk.state))
    records = list(done_cells_behind_results(status))
    origins: dict[str, ResultOrigins] = {}
    code: dict[str, Mapping[str, Any]] = {}
    metrics = metrics_with_curves(campaign)
    stamped: dict[str, CellStamp] = {}
    unread: dict[str, str] = {}
    needs = map_needed_cells(campaign, [cell.record.cell for cell in status.cells])
    named = files_named_by_commands(reader, records, needs)
    used = files_used_of_cells(named)
    for at, record in enumerate(records):
        name = record.cell.id
        step("reading results", at, len(records))
        origins[name], order = reader.origins(record, campaign, used.get(name), metrics)
        code[name] = order.code if order else {}
        lost = find_unread_results(record, campaign.job(record.cell.job), origins[name])
        if lost:
            unread[name] = describe_unread_results(lost, desk.store.where(), campaign.language)
        stamp = make_cell_stamp(desk, record, origins[name], order, needs.get(name, ()))
        stamped[name] = replace(stamp, unread=lost.results if lost else ())
    step("reading results", len(records), len(records))
    reader.hashes.save()
    seed_price, left = _price_and_money_left(desk, status)
    events = desk.store.events()
    past = read_past_campaigns(events, partial(_read_past_snapshot, desk))
    accepted = tuple(find_accepted_flags(events))
    found = ReportInputs(
        origins,
        code,
        vouched=_vouched_checkpoints(desk),
        named=paths_inside_outputs(named, records),
        unread=unread,
        at=format_iso_time(desk.clock.wall()),
        version=muster.__version__,
        folder=str(desk.root),
        decision_changed_at=count_done_at_decision_change(campaign, events, past),
        accepted=tuple(find_accepted_cells(status, events)),
        accepted_flags=accepted,
        seed_price=seed_price,
        money_left=left,
        past=past,
        chains={record.cell.id: chain for record in records if (chain := reader.chain(record))},
        sources=_changed_sources_of_cells(desk, campaign, code),
        stepped={
            name: reader.stepped(record, status.state.job(record.cell.job))
            for name, record in status.state.cells.items()
            if record.attempts and not record.done and not record.open
        },
    )
    facts = clear_explained_losses(build_report_facts(status, found))
    missing = tuple(each.cell for each in facts.missing)
    declared = digest_campaign_sections(campaign, desk.store.origin())
    told, cleared = digest_accepted_flags(accepted), tuple(name for name in missing if name in facts.cleared)
    basis = StampBasis(campaign.name, declared, stamped, facts.k, facts.n, missing, accepted=told, cleared=cleared)
    return GatheredFacts(desk.root, status, facts, basis, unread)


def _changed_sources_of_cells(
    desk: CampaignHandle, campaign: Campaign, code: Mapping[str, Mapping[str, Any]]
) -> dict[str, tuple[str, ...]]:
    """Cell -> files of its source that are not those of most cells of its job."""
    found: dict[str, tuple[str, ...]] = {}
    for job in campaign.jobs:
        folder = job.cwd or str(desk.root)
        codes = {name: each for name, each in code.items() if name.partition("/")[0] == job.name}
        found.update(
            find_changed_sources(codes, partial(blob_sha256, folder), partial(changed_sources_between, folder))
        )
    return found


def current_red_flags(desk: CampaignHandle) -> tuple[tuple[RedFlag, ...], str]:
    """The red flags that a report would raise now, and the campaign's language."""
    facts = gather_report_facts(desk).facts
    return find_red_flags(facts), facts.language


def _vouched_checkpoints(desk: CampaignHandle) -> dict[str, str]:
    """Checkpoints as the last whole report saw them."""
    try:
        before = read_stamp(desk.root, "report")
    except MusterError:
        return {}
    cells = before.basis.cells if before else {}
    return {name: cell.checkpoint.sha256 for name, cell in cells.items() if cell.checkpoint and cell.checkpoint.sha256}


def _price_and_money_left(desk: CampaignHandle, status: Status) -> tuple[float | None, float | None]:
    """What one more seed of one config costs, and what of the budget is left."""
    if status.state.campaign.money is None:
        return None, None
    from muster.app.campaign.campaign_cost import budget_left, price_of_next_seed
    from muster.app.facts.stamp_basis import reckon_open_campaign

    _, _, found = reckon_open_campaign(desk)
    return price_of_next_seed(status, found.spending, count_usable_slots(status.state.campaign)), budget_left(
        found.spending
    )


def _read_past_snapshot(desk: CampaignHandle, name: str) -> CampaignSnapshot | None:
    try:
        found = load_campaign_snapshot(desk.state, name, desk.store.where())
    except MusterError:
        return None
    return CampaignSnapshot(found.campaign, found.hashes)
