"""Takes in runs that something else produced. The campaign is taken in with them, and nothing starts."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from muster.acts.adopt import Adoption, Proved, Refused, decisions, find_runs, known_spend, refusals
from muster.acts.take_in import hashes
from muster.domain.decision import Decision
from muster.domain.errors import Mistake, MusterError, UsageError
from muster.domain.state import CampaignState
from muster.domain.whereabouts import STAYED
from muster.observe import process
from muster.observe.proof import FileProofReader
from muster.plan.outlook import as_if_taken_in
from muster.ports.clock import iso
from muster.store import campaigns
from muster.store.environments import recording
from muster.store.place import refuse_bad_place
from muster.wiring.codes import CodeReader
from muster.wiring.config_files import write_configs
from muster.wiring.desk import FILE, Desk
from muster.wiring.folder_writers import is_blind, writer_of
from muster.wiring.planning import was_begun
from muster.wiring.taking import Read, read, taken_data, up_to_date


@dataclass(frozen=True, slots=True)
class Adopted:
    found: Adoption
    taken: tuple[Proved, ...]  # in the record now; with a dry run: what would be
    refused: tuple[Refused, ...]
    took_in: bool  # campaign.yaml was taken in on the way
    declared: int
    done: int
    warnings: tuple[Mistake, ...]
    spent: int = 0  # refused runs that are written down as known spend now


def adopt(root: Path, patterns: Sequence[str], table: Path | None, *, dry_run: bool, job: str | None = None) -> Adopted:
    """Where there is nothing to adopt, nothing is changed: the campaign is not taken in either."""
    read_now = read(root / FILE)
    if not dry_run:
        refuse_bad_place(root)
    desk = Desk.open(root) if was_begun(root) else None
    if desk and not dry_run:
        desk.refuse_copy()
    before = desk.store.load() if desk else None
    outdated = before is None or _outdated(root, before, read_now)
    # a campaign that runs takes a new text in only by `muster up`: its new cells would start
    take = outdated and (before is None or before.intent.kind != "running")
    warnings = read_now.warnings
    if outdated and not take:
        warnings = (*warnings, _differs())
    state = before if before and not take else _as_if_taken_in(root, read_now, before, desk)
    _refuse_unknown(job, state)
    found = find_runs(state, root, patterns, table, FileProofReader(), job, writer_of(), blind=is_blind())
    taken, late = found.proved, tuple[Refused, ...]()
    # a campaign that was never begun is not begun by what could not be adopted
    spent = known_spend(found, state) if found.proved or desk else []
    changes = bool(found.proved or spent) and not dry_run
    if changes:
        desk = desk or Desk.create(root)
        taken, late = _carry_out(desk, found, read_now if take else None, before)
        made = refusals(spent, desk.person("refuse").who, iso(desk.clock.wall()), desk.clock.boot())
        if made:
            desk.decide([replace(decision, ref=secrets.token_hex(8)) for decision in made])
    done = sum(cell.done for cell in state.declared) + len(taken)
    return Adopted(
        found, taken, (*found.refused, *late), take and changes, len(state.declared), done, warnings, len(spent)
    )


def _carry_out(
    desk: Desk, found: Adoption, to_take_in: Read | None, before: CampaignState | None
) -> tuple[tuple[Proved, ...], tuple[Refused, ...]]:
    if to_take_in:
        take_in_only(desk, to_take_in, before)
    return record(desk, found)


def _refuse_unknown(job: str | None, state: CampaignState) -> None:
    names = [each.name for each in state.campaign.jobs]
    if job is not None and job not in names:
        raise UsageError(
            f"--job {job}: there is no job {job!r}; nothing was changed", hint=f"jobs are {', '.join(names)}"
        )


def take_in_only(desk: Desk, found: Read, before: CampaignState | None) -> None:
    """Takes the campaign in and leaves the intent alone: nothing starts until `muster up`."""
    found = up_to_date(found, before)
    write_configs(found.configs, found.originals(desk.file))
    hashed = hashes(found.campaign, str(desk.root), CodeReader(found.campaign, desk.root), desk.store.origin())
    with recording(desk.state):
        _take_in_only(desk, found, before, hashed)


def _take_in_only(desk: Desk, found: Read, before: CampaignState | None, hashed: Mapping[str, str]) -> None:
    data = taken_data(desk, found, hashed, before)
    if found.bases:
        data["rounds"] = before.loop.most if before else 0
    taking = [desk.person("campaign", "taken in by adopt", data=data)]
    if before and before.only:  # a filter that was written down outlives the new text
        only = [{axis: list(values) for axis, values in part.items()} for part in before.only]
        taking.append(desk.person("filter", "kept while adopting", data={"only": only}))
    refused = [why for why in desk.decide(taking) if why]
    if refused:
        raise MusterError(f"the campaign could not be taken in: {refused[0]}", where=str(desk.root))


def record(desk: Desk, found: Adoption) -> tuple[tuple[Proved, ...], tuple[Refused, ...]]:
    """Durably; what came too late (its cell started meanwhile) is refused and named."""
    who = desk.person("adopt").who
    made = decisions(found, who, iso(desk.clock.wall()), desk.clock.boot(), process.boot_id())
    if not made:
        return (), ()
    named: list[Decision] = [replace(decision, ref=secrets.token_hex(8)) for decision in made]
    answers = desk.decide(named)
    taken = tuple(proved for proved, why in zip(found.proved, answers, strict=True) if not why)
    late = tuple(
        Refused(proved.outcome.output or proved.cell, f"{proved.cell}: {why}")
        for proved, why in zip(found.proved, answers, strict=True)
        if why
    )
    return taken, late


def _as_if_taken_in(root: Path, found: Read, before: CampaignState | None, desk: Desk | None) -> CampaignState:
    origin = desk.store.origin() if desk else STAYED
    hashed = hashes(found.campaign, str(root), CodeReader(found.campaign, root), origin)
    return as_if_taken_in(found.campaign, hashed, before)


def _outdated(root: Path, before: CampaignState, found: Read) -> bool:
    return campaigns.taken(root / ".muster", before.campaign_hash).text != found.text


def _differs() -> Mistake:
    return Mistake(
        "it differs from the campaign that runs; runs are matched to the one that runs",
        hint="`muster up` takes the new text in",
        level="warning",
    )
