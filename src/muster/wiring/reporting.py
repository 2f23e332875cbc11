"""A campaign as a report sees it: its state as campaign.yaml declares it now, and the files behind every number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import muster
from muster.acts.report_facts import Found, facts_of
from muster.acts.stamping import load, sections_of
from muster.acts.status import Status
from muster.domain.campaign import Campaign
from muster.domain.cell import needed_cells
from muster.domain.errors import MusterError
from muster.domain.origins import Origins
from muster.observe.hashes import HashCache
from muster.ports.clock import iso
from muster.report.analysis import find_flags
from muster.report.documents.quantity import Quantity
from muster.report.facts import Facts
from muster.report.quantities import quantities_of
from muster.report.stamp import Basis, CellStamp
from muster.store import campaigns
from muster.wiring.basis import Reader, declared_now, done_cells, inside_of, named_files, stamp_of, used_files
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


def gather(desk: Desk, step: Step = silent) -> Gathered:
    """Everything that a report rests on."""
    status = declared_now(desk)
    campaign = status.state.campaign
    reader = Reader(desk, HashCache(desk.state))
    records = list(done_cells(status))
    origins: dict[str, Origins] = {}
    code: dict[str, Mapping[str, Any]] = {}
    metrics = _curve_metrics(campaign)
    stamped: dict[str, CellStamp] = {}
    needs = needed_cells(campaign, [cell.record.cell for cell in status.cells])
    named = named_files(reader, records, needs)
    used = used_files(named)
    for at, record in enumerate(records):
        name = record.cell.id
        step("reading results", at, len(records))
        origins[name], order = reader.origins(record, campaign, used.get(name), metrics)
        code[name] = order.code if order else {}
        stamped[name] = stamp_of(desk, record, origins[name], order, needs.get(name, ()))
    step("reading results", len(records), len(records))
    reader.hashes.save()
    seed_price, left = _money(desk, status)
    found = Found(
        origins,
        code,
        vouched=_vouched(desk),
        named=inside_of(named, records),
        at=iso(desk.clock.wall()),
        version=muster.__version__,
        folder=str(desk.root),
        decision_changed_at=decision_changed_at(desk, campaign),
        seed_price=seed_price,
        money_left=left,
    )
    facts = facts_of(status, found)
    missing = tuple(each.cell for each in facts.missing)
    return Gathered(
        desk.root, status, facts, Basis(campaign.name, sections_of(campaign), stamped, facts.k, facts.n, missing)
    )


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
    money = status.state.campaign.money
    if money is None:
        return None, None
    from muster.acts.cost import price_of
    from muster.wiring.costing import reckon

    _, _, found = reckon(desk)
    by_seed: dict[tuple[str, str], list[str]] = {}
    for cell in status.cells:
        names = {axis: value.name for axis, value in cell.record.cell.values}
        if "seed" in names:
            by_seed.setdefault((names.get("config", ""), names["seed"]), []).append(cell.record.cell.id)
    known = found.spending.state.cells
    groups = sorted(by_seed.items(), key=lambda item: not item[0][0])  # those with a config first
    one = next((cells for _, cells in groups if all(cell in known for cell in cells)), None)
    price = price_of(found.spending, one, slot_count(status.state.campaign)) if one else None
    spent = found.spending.spent
    return price, money.budget - spent if money.budget is not None and spent is not None else None


def _curve_metrics(campaign: Campaign) -> list[str]:
    told = campaign.decision or {}
    names = [told[part]["metric"] for part in ("primary", "limit") if told.get(part)]
    best = told.get("checkpoint", "last")
    names += [] if isinstance(best, str) else [best["best"]]
    return list(dict.fromkeys(names)) or ["score", "cost"]


def decision_changed_at(desk: Desk, campaign: Campaign) -> int:
    """Cells that had shown their results when the decision became what it is now; 0: none had."""
    told = campaign.decision
    if not told:
        return 0
    metrics = {told[part]["metric"] for part in ("primary", "limit") if told.get(part)}
    jobs = {job.name for job in campaign.jobs if metrics & {result.name for result in job.results}}
    now, shown, changed, same = procedure_of(campaign), 0, 0, False
    for event in desk.store.events():
        decision = event.decision
        if event.void or decision.kind not in ("settle", "adopt", "campaign"):
            continue
        if decision.kind == "campaign":
            was, same = same, _procedure_then(desk, str(decision.data.get("hash"))) == now
            changed = shown if same and not was else changed
        elif (decision.cell or "").partition("/")[0] in jobs:
            shown += decision.data.get("outcome", {}).get("verdict") == "DONE"
    return changed if same else shown


def procedure_of(campaign: Campaign) -> Mapping[str, Any] | None:
    """What decides; factors and notes may be added at any time."""
    told = campaign.decision
    return {key: value for key, value in told.items() if key not in ("factors", "notes")} if told else None


def _procedure_then(desk: Desk, name: str) -> Mapping[str, Any] | None:
    try:
        return procedure_of(campaigns.load(desk.state, name))
    except MusterError:
        return None


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
    return any(flag.level == "ERROR" for flag in find_flags(facts))


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
