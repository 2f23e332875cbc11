"""A campaign's state and the files behind it as the facts of a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from muster.acts.best_or_last import picked
from muster.acts.definitions import mixtures, outdated_cells
from muster.acts.left_out import lacks_result, left_out, unread_jobs
from muster.acts.made import how_made
from muster.acts.past import Past, Snapshot
from muster.acts.redone import recovered_cells, redone_cells
from muster.acts.stamping import relevant
from muster.acts.status import CellStatus, Status
from muster.domain.attempt import Attempt, CellRecord
from muster.domain.campaign import Campaign, Job
from muster.domain.cell import Cell, cells_of
from muster.domain.errors import UsageError
from muster.domain.origins import Origins
from muster.domain.verdict import State
from muster.report.code_words import codes_words
from muster.report.facts import Accepted, Column, Curve, Facts, Measurement, Missing, Plan, Uncurved
from muster.report.words import Words
from muster.stats.decision import Procedure
from muster.stats.flag_types import Mixture
from muster.stats.flag_weight import AcceptedFlag
from muster.stats.flags import Declared
from muster.stats.more_seeds import Price
from muster.stats.ties import Scale

KNOWN_AXES = ("config", "seed", "split")


@dataclass(frozen=True, slots=True)
class Found:
    """What was read from the world for a report."""

    origins: Mapping[str, Origins]  # of DONE cells
    code: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # cell -> commit, dirty
    vouched: Mapping[str, str] = field(default_factory=dict)  # cell -> hash of its checkpoint in the last report
    named: Mapping[str, Sequence[str]] = field(default_factory=dict)  # cell -> files of its needs in its command
    unread: Mapping[str, str] = field(default_factory=dict)  # cell -> why its results can't be read
    at: str = ""
    version: str = ""
    folder: str = ""
    decision_changed_at: int = 0
    accepted: tuple[Accepted, ...] = ()
    accepted_flags: tuple[AcceptedFlag, ...] = ()
    seed_price: float | None = None  # of one more seed of one config
    money_left: float | None = None
    past: Past = field(default_factory=Past)
    chains: Mapping[str, Sequence[int]] = field(default_factory=dict)  # cell -> the attempts that it rests on
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # cell -> files unlike those of its job
    stepped: Mapping[str, bool | None] = field(default_factory=dict)  # cell that is not DONE -> it made a step


def facts_of(status: Status, found: Found) -> Facts:
    campaign = status.state.campaign
    carrying = [job for job in campaign.jobs if job.results]
    if not carrying:
        raise UsageError(
            "no job has results, so there is nothing to report",
            where=found.folder,
            hint="declare them: `results: {score: {json: result.json, key: score}}`",
        )
    heads = Heads(campaign)
    names = {job.name for job in carrying}
    lacking = {
        cell.record.cell.id: lacks
        for cell in status.cells
        if cell.record.done and (lacks := _without(cell.record, campaign, found.origins.get(cell.record.cell.id)))
    }
    done = [cell.record for cell in status.cells if cell.record.done and cell.record.cell.job in names]
    done = [record for record in done if record.cell.id not in lacking]
    measured = tuple(_measured(record, campaign, heads, found) for record in done)
    asked = relevant(campaign)
    unread = unread_jobs(cell.record for cell in status.cells)
    missing = tuple(
        _missing(cell, lacking.get(cell.record.cell.id, []), found, unread)
        for cell in status.cells
        if cell.record.cell.job in asked and (not cell.record.done or cell.record.cell.id in lacking)
    )
    if missing and all(each.cell.partition("/")[0] not in names for each in missing):
        names = set(asked)  # all is evaluated, and not all that it rests on is there
    plan = plan_of(campaign, heads)
    out = left_out(status, found.past, asked, heads.of_cell, _deciding(plan), found.stepped)
    missing += tuple(Missing(each.cell, each.how.upper(), each.reason) for each in out.lost)
    places = {(each.config, each.seed, each.head) for each in out.lost}
    seeds = _values(campaign, "seed", carrying)
    gone_seeds = tuple(dict.fromkeys(each.seed for each in out.lost if each.seed not in seeds))
    records = {cell.record.cell.id: cell.record for cell in status.cells}
    splits = campaign.axis("split").values if _has(campaign, "split") else ()
    rested = [record for record in records.values() if record.done and record.cell.job in asked]
    mixed = tuple(mixtures(rested, found.past, found.chains))
    return Facts(
        campaign=campaign.name,
        folder=found.folder,
        language=campaign.language,
        at=found.at,
        version=found.version,
        code=codes_words(list(found.code.values()), Words(campaign.language)),
        configs=_values(campaign, "config", carrying),
        seeds=(*seeds, *gone_seeds),
        gone_seeds=gone_seeds,
        columns=_columns(campaign, heads, plan),
        measured=measured,
        k=sum(
            1
            for cell in status.cells
            if cell.record.done and cell.record.cell.job in names and cell.record.cell.id not in lacking
        ),
        n=sum(1 for cell in status.cells if cell.record.cell.job in names)
        + sum(each.cell.partition("/")[0] in names for each in out.lost),
        missing=missing,
        excluded=tuple(each for each in _excluded(campaign, carrying, heads) if each not in places),
        lost=out.lost,
        settled=out.settled,
        failures=out.failures,
        dropped=out.dropped,
        refused=tuple(each.cell for each in status.state.refused if each.cell in records),
        plan=plan,
        declared=replace(
            _declared(campaign, plan, found.decision_changed_at),
            redone=tuple(redone_cells(status, plan.primary.metric if plan else "")),
            recovered=tuple(recovered_cells(status)),
        ),
        proxies={value.name: value.proxy for value in splits if value.proxy},
        split_notes={value.name: value.note for value in splits if value.note},
        notes={value.name: value.note for value in _axis(campaign, "config") if value.note},
        made=tuple(how_made(campaign, records, found.origins, found.code, found.vouched, found.named)),
        curves=tuple(_curves(status, found)),
        uncurved=tuple(_uncurved(found)),
        resumed=tuple((name, each.resumed) for name, each in found.origins.items() if each.resumed),
        accepted=tuple(each for each in found.accepted if each.cell.partition("/")[0] in asked),
        accepted_flags=found.accepted_flags,
        scales={
            result.name: Scale(result.grain, result.min, result.max)
            for job in campaign.jobs
            for result in job.results
            if (result.grain, result.min, result.max) != (None, None, None)
        },
        price=_price(campaign, list(records.values()), found.seed_price),
        currency=campaign.money.currency if campaign.money else "",
        budget_left=found.money_left,
        mixed=mixed,
        sources=found.sources,
        outdated=tuple(outdated_cells(rested, found.past, _now(status, found), _told(mixed))),
    )


def _now(status: Status, found: Found) -> Snapshot:
    hashes = {name: record.hash for name, record in status.state.cells.items() if record.declared}
    return Snapshot(status.state.campaign, hashes, found.folder)


def _deciding(plan: Plan | None) -> frozenset[str]:
    return frozenset(column.head for column in (plan.primary, plan.limit) if column) if plan else frozenset()


def _told(mixed: Sequence[Mixture]) -> frozenset[tuple[str, str]]:
    """Cells, each with a part of its definition whose change is told as mixed."""
    return frozenset((cell, each.part) for each in mixed if not each.as_run for cell in each.cells)


def _missing(cell: CellStatus, lacks: Sequence[str], found: Found, unread: frozenset[str]) -> Missing:
    """`unread`: jobs not one of whose results was ever found."""
    name = cell.record.cell.id
    if cell.verdict.state == State.DONE and not cell.record.done:
        return Missing(name, str(State.UNKNOWN), "it has ended just now and is not recorded yet: ask again in a moment")
    return Missing(name, str(cell.verdict.state), _why(cell, lacks, found, unread))


def _why(cell: CellStatus, lacks: Sequence[str], found: Found, unread: frozenset[str]) -> str:
    if not lacks and cell.record.cell.job in unread and lacks_result(cell.record):
        return f"its results can't be read; {cell.verdict.reason}"
    if not lacks:
        return cell.verdict.reason
    if why := found.unread.get(cell.record.cell.id):
        return f"it is done and {', '.join(lacks)} can't be read: {why}"
    return f"it is done and has no {', '.join(lacks)}: declared later, or never written"


# -- what was declared


class Heads:
    """Over the columns of a campaign's results: the split, or the job where there is none.

    A split that is no name enough has its job before it: two jobs evaluate on it, or a job is called the same.
    """

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign
        splitting = [job for job in campaign.jobs if "split" in job.axes and job.results]
        named = {value.name for value in _axis(campaign, "split")} & {job.name for job in campaign.jobs}
        self._long = {job.name for job in splitting if named or any(_share(job, other) for other in splitting)}

    def of_cell(self, cell: Cell) -> str:
        return self.of(self._campaign.job(cell.job), cell)

    def of(self, job: Job, cell: Cell) -> str:
        values = {axis: value.name for axis, value in cell.values}
        others = [name for axis, name in values.items() if axis not in KNOWN_AXES]
        if "split" not in values:
            return "/".join([job.name, *others])
        return "/".join([self._split(job, values["split"]), *others])

    def column(self, metric: str, split: str | None, job: str | None = None) -> Column:
        """Of a metric that the campaign file names; lint has seen to it that exactly one job is meant."""
        jobs = [each for each in self._campaign.jobs if any(result.name == metric for result in each.results)]
        meant = [each for each in jobs if job in (None, each.name) and ("split" in each.axes) == (split is not None)]
        chosen = next(iter([*meant, *jobs]), None)
        if chosen is None:
            return Column(split or "", metric)
        if "split" not in chosen.axes:
            return Column(chosen.name, metric)
        only = [value.name for value in _axis(self._campaign, "split")]
        return Column(self._split(chosen, split or only[0]), metric)

    def _split(self, job: Job, split: str) -> str:
        return f"{job.name}/{split}" if job.name in self._long else split


def _share(job: Job, other: Job) -> bool:
    return job is not other and bool({result.name for result in job.results} & {each.name for each in other.results})


def plan_of(campaign: Campaign, heads: Heads) -> Plan | None:
    told = campaign.decision
    if not told:
        return None
    limit = told.get("limit")
    bound = limit.get("max", limit.get("min")) if limit else None
    procedure = Procedure(
        baseline=str(told["baseline"]),
        higher=told["primary"]["better"] == "higher",
        limit=None if bound is None else float(bound),
        at_most="max" in (limit or {}),
        cap=(limit or {}).get("cap"),
        delta=told.get("delta"),
        alpha=float(told["alpha"]),
        looks=tuple(told["looks"]),
        power=float(told["power"]),
    )
    best = told.get("checkpoint", "last")
    return Plan(
        procedure,
        heads.column(told["primary"]["metric"], told["primary"].get("split"), told["primary"].get("job")),
        heads.column(limit["metric"], limit.get("split"), limit.get("job")) if limit else None,
        best if isinstance(best, str) else f"best by {best['best']}",
        told.get("factors") or {},
        tuple(told.get("notes") or ()),
    )


def _columns(campaign: Campaign, heads: Heads, plan: Plan | None) -> tuple[Column, ...]:
    """As `report.columns` says; else every result on every split, and those of jobs without one."""
    written = (campaign.report or {}).get("columns") or []
    splits = [value.name for value in _axis(campaign, "split")]
    if written:
        parts = [text.rpartition("/") for text in written]
        return tuple(
            heads.column(metric, head) if head in splits else Column(head, metric) for head, _, metric in parts
        )
    found = dict.fromkeys([plan.primary, *([plan.limit] if plan.limit else [])] if plan else [])
    for job in campaign.jobs:
        cells = list(cells_of(campaign, job))
        for result in job.results:
            found.update(dict.fromkeys(Column(heads.of(job, cell), result.name) for cell in cells))
    return tuple(found)


def _declared(campaign: Campaign, plan: Plan | None, changed_at: int) -> Declared:
    best = plan.checkpoint.partition("best by ")[2] if plan else ""
    asked = relevant(campaign)
    needed = {need for job in campaign.jobs if job.name in asked for need in job.needs}
    training = frozenset(result.name for job in campaign.jobs if job.name in needed for result in job.results)
    evaluated = {result.name for job in campaign.jobs if job.name not in needed for result in job.results}
    return Declared(
        checkpoint="best" if best else "last",
        best_by=best or None,
        primary=plan.primary.metric if plan else "",
        cost=plan.limit.metric if plan and plan.limit else None,
        splits=tuple(value.name for value in _axis(campaign, "split")),
        proxies={v.name: v.proxy or v.note for v in _axis(campaign, "split") if v.name.lower() in ("ood", "proxy")},
        train_metrics=training if plan and plan.primary.head in needed else training - evaluated,
        picked=picked(campaign),
        changed_at=changed_at,
    )


def _values(campaign: Campaign, axis: str, jobs: Sequence[Job]) -> tuple[str, ...]:
    if not any(axis in job.axes for job in jobs):
        return ("",)
    return tuple(value.name for value in _axis(campaign, axis))


def _axis(campaign: Campaign, name: str) -> Sequence[Any]:
    return campaign.axis(name).values if _has(campaign, name) else ()


def _has(campaign: Campaign, name: str) -> bool:
    return any(axis.name == name for axis in campaign.axes)


def _excluded(campaign: Campaign, jobs: Sequence[Job], heads: Heads) -> Iterator[tuple[str, str, str]]:
    for job in jobs:
        kept = {cell.id for cell in cells_of(campaign, job)}
        for cell in cells_of(campaign, replace(job, exclude=())) if job.exclude else ():
            if cell.id not in kept:
                names = {axis: value.name for axis, value in cell.values}
                yield names.get("config", ""), names.get("seed", ""), heads.of(job, cell)


# -- what was measured


def _measured(record: CellRecord, campaign: Campaign, heads: Heads, found: Found) -> Measurement:
    origins = found.origins.get(record.cell.id)
    cell, attempt, job = record.cell, _completed(record), campaign.job(record.cell.job)
    names = {axis: value.name for axis, value in cell.values}
    declared = {result.name for result in job.results}
    recorded = {name: value for name, value in _recorded(record).items() if name in declared}
    # a file that nobody touched since is read as the campaign declares it today; another is held against the record
    touched = origins is not None and bool(origins.rewritten or not origins.values or set(recorded) - {*origins.values})
    now = dict(origins.values) if origins else None
    return Measurement(
        cell=cell.id,
        job=cell.job,
        config=names.get("config", ""),
        seed=names.get("seed", ""),
        head=heads.of(job, cell),
        results=recorded | (now or {}) if not touched else recorded or now or {},
        now=now if touched and recorded else None,
        episodes=(origins.episodes if origins else None) or 1,
        attempt=attempt.n,
        adopted=attempt.adopted,
        unread=found.unread.get(cell.id, ""),
    )


def _recorded(record: CellRecord) -> Mapping[str, float]:
    return _completed(record).results


def _without(record: CellRecord, campaign: Campaign, origins: Origins | None) -> list[str]:
    """Results that are declared today and that the DONE cell does not have: they were declared later."""
    known = {*_recorded(record), *(origins.values if origins else ())}
    return [result.name for result in campaign.job(record.cell.job).results if result.name not in known]


def _completed(record: CellRecord) -> Attempt:
    attempt = record.completed
    if attempt is None:  # asked of DONE cells only
        raise LookupError(record.cell.id)
    return attempt


def curve_metrics(campaign: Campaign) -> list[str]:
    """The results whose way is shown: those that are decided on, and what the best checkpoint is chosen by."""
    told = campaign.decision or {}
    names = [told[part]["metric"] for part in ("primary", "limit") if told.get(part)]
    best = told.get("checkpoint", "last")
    names += [] if isinstance(best, str) else [best["best"]]
    return list(dict.fromkeys(names)) or ["score", "cost"]


def _curves(status: Status, found: Found) -> Iterator[Curve]:
    for cell in status.cells:
        names = {axis: value.name for axis, value in cell.record.cell.values}
        origins = found.origins.get(cell.record.cell.id)
        for metric, (key, (steps, values)) in origins.curves.items() if origins else ():
            yield Curve(cell.record.cell.id, names.get("config", ""), names.get("seed", ""), metric, key, steps, values)


def _uncurved(found: Found) -> Iterator[Uncurved]:
    """Jobs that log nothing, such as an evaluation without a split, have no curve where others have one."""
    metrics = dict.fromkeys(metric for each in found.origins.values() for metric in each.uncurved)
    for metric in metrics:
        lacks = {name: each.uncurved[metric] for name, each in found.origins.items() if metric in each.uncurved}
        known = {name.partition("/")[0] for name, each in found.origins.items() if metric in each.curves}
        mine = {name: why for name, why in lacks.items() if not known or name.partition("/")[0] in known}
        reason = next((why for why in mine.values() if why.why == "key"), next(iter(mine.values()), None))
        if reason:
            yield Uncurved(metric, reason, tuple(mine), not known)


def _price(campaign: Campaign, records: Sequence[CellRecord], money: float | None) -> Price | None:
    """Of one more seed of one config: the middle duration of each kind of cell that it takes."""
    hours = 0.0
    for job in campaign.jobs:
        if "seed" not in job.axes:
            continue
        known = [
            attempt.outcome.duration_s
            for record in records
            if record.cell.job == job.name and (attempt := record.completed) and attempt.outcome
            and attempt.outcome.duration_s
        ]  # fmt: skip
        if not known:
            return None
        others = [len(campaign.axis(axis).values) for axis in job.axes if axis not in ("config", "seed")]
        cells = 1
        for count in others:
            cells *= count
        hours += cells * median(known) / 3600
    return Price(hours, money)
