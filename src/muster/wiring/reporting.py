"""A campaign as a report sees it: its state as campaign.yaml declares it now, and the files behind every number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import muster
from muster.acts.accepted import accepted_cells, accepted_flags
from muster.acts.beforehand import decision_changed_at
from muster.acts.code_changes import changed_sources
from muster.acts.past import Snapshot, past_of
from muster.acts.report_facts import Found, curve_metrics, facts_of
from muster.acts.stamping import digest_of_flags, load, sections_of
from muster.acts.status import Status
from muster.acts.unread import unread_results
from muster.domain.campaign import Campaign
from muster.domain.cell import needed_cells
from muster.domain.errors import MusterError
from muster.domain.origins import Origins
from muster.observe.code_blobs import blob_sha256, sources_between
from muster.observe.hashes import HashCache
from muster.ports.clock import iso
from muster.report.analysis import find_flags, with_cleared
from muster.report.documents.quantity import Quantity
from muster.report.facts import Facts
from muster.report.quantities import quantities_of
from muster.report.stamp import Basis, CellStamp
from muster.report.unread_words import unread_words
from muster.stats.flags import Flag
from muster.store import campaigns
from muster.wiring.basis import Reader, done_cells, inside_of, named_files, stamp_of, used_files
from muster.wiring.declared import declared_now
from muster.wiring.desk import Desk
from muster.wiring.planning import slot_count

Step = Callable[[str, int, int], None]  # what is done, how many of how many


def silent(what: str, done: int, of: int) -> None: ...


@dataclass(frozen=True, slots=True)
class Gathered:
    root: Path
    status: Status
    facts: Facts
    basis: Basis
    unread: Mapping[str, str] = field(default_factory=dict)  # cell -> why its results can't be read


def gather(desk: Desk, step: Step = silent) -> Gathered:
    """Everything that a report rests on."""
    status = declared_now(desk)
    campaign = status.state.campaign
    reader = Reader(desk, HashCache(desk.state))
    records = list(done_cells(status))
    origins: dict[str, Origins] = {}
    code: dict[str, Mapping[str, Any]] = {}
    metrics = curve_metrics(campaign)
    stamped: dict[str, CellStamp] = {}
    unread: dict[str, str] = {}
    needs = needed_cells(campaign, [cell.record.cell for cell in status.cells])
    named = named_files(reader, records, needs)
    used = used_files(named)
    for at, record in enumerate(records):
        name = record.cell.id
        step("reading results", at, len(records))
        origins[name], order = reader.origins(record, campaign, used.get(name), metrics)
        code[name] = order.code if order else {}
        lost = unread_results(record, campaign.job(record.cell.job), origins[name])
        if lost:
            unread[name] = unread_words(lost, desk.store.where(), campaign.language)
        stamp = stamp_of(desk, record, origins[name], order, needs.get(name, ()))
        stamped[name] = replace(stamp, unread=lost.results if lost else ())
    step("reading results", len(records), len(records))
    reader.hashes.save()
    seed_price, left = _money(desk, status)
    events = desk.store.events()
    past = past_of(events, partial(_snapshot, desk))
    accepted = tuple(accepted_flags(events))
    found = Found(
        origins,
        code,
        vouched=_vouched(desk),
        named=inside_of(named, records),
        unread=unread,
        at=iso(desk.clock.wall()),
        version=muster.__version__,
        folder=str(desk.root),
        decision_changed_at=decision_changed_at(campaign, events, past),
        accepted=tuple(accepted_cells(status, events)),
        accepted_flags=accepted,
        seed_price=seed_price,
        money_left=left,
        past=past,
        chains={record.cell.id: chain for record in records if (chain := reader.chain(record))},
        sources=_sources(desk, campaign, code),
        stepped={
            name: reader.stepped(record, status.state.job(record.cell.job))
            for name, record in status.state.cells.items()
            if record.attempts and not record.done and not record.open
        },
    )
    facts = with_cleared(facts_of(status, found))
    missing = tuple(each.cell for each in facts.missing)
    declared = sections_of(campaign, desk.store.origin())
    told, cleared = digest_of_flags(accepted), tuple(name for name in missing if name in facts.cleared)
    basis = Basis(campaign.name, declared, stamped, facts.k, facts.n, missing, accepted=told, cleared=cleared)
    return Gathered(desk.root, status, facts, basis, unread)


def _sources(desk: Desk, campaign: Campaign, code: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    """Cell -> files of its source that are not those of most cells of its job."""
    found: dict[str, tuple[str, ...]] = {}
    for job in campaign.jobs:
        folder = job.cwd or str(desk.root)
        codes = {name: each for name, each in code.items() if name.partition("/")[0] == job.name}
        found.update(changed_sources(codes, partial(blob_sha256, folder), partial(sources_between, folder)))
    return found


def flags_now(desk: Desk) -> tuple[tuple[Flag, ...], str]:
    """The red flags that a report would raise now, and the campaign's language."""
    facts = gather(desk).facts
    return find_flags(facts), facts.language


def _vouched(desk: Desk) -> dict[str, str]:
    """Checkpoints as the last whole report saw them."""
    try:
        before = load(desk.root, "report")
    except MusterError:
        return {}
    cells = before.basis.cells if before else {}
    return {name: cell.checkpoint.sha256 for name, cell in cells.items() if cell.checkpoint and cell.checkpoint.sha256}


def _money(desk: Desk, status: Status) -> tuple[float | None, float | None]:
    """What one more seed of one config costs, and what of the budget is left."""
    if status.state.campaign.money is None:
        return None, None
    from muster.acts.seed_price import money_left, seed_price
    from muster.wiring.costing import reckon

    _, _, found = reckon(desk)
    return seed_price(status, found.spending, slot_count(status.state.campaign)), money_left(found.spending)


def _snapshot(desk: Desk, name: str) -> Snapshot | None:
    try:
        found = campaigns.taken(desk.state, name, desk.store.where())
    except MusterError:
        return None
    return Snapshot(found.campaign, found.hashes)


@dataclass(frozen=True, slots=True)
class Known:
    """The numbers that documents may be bound to."""

    root: Path
    quantities: tuple[Quantity, ...]
    partial: str | None  # "PARTIAL 16/40"
    documents: tuple[str, ...]  # that the campaign names
    found: Gathered
    invalid: bool = False  # a red flag says that these numbers are no result


def _invalid(facts: Facts) -> bool:
    return any(flag.voids for flag in find_flags(facts))


def quantities(folder: Path) -> Known:
    desk = Desk.open(folder)
    try:
        found = gather(desk)
        named = tuple((found.status.state.campaign.report or {}).get("documents") or ())
        return Known(
            desk.root, tuple(quantities_of(found.facts)), found.facts.mark or None, named, found, _invalid(found.facts)
        )
    finally:
        desk.close()
