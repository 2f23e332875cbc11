"""A campaign's state and the files behind it as the facts of a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from muster.app.campaign.campaign_digests import jobs_behind_results
from muster.app.campaign.campaign_status import CellStatus, Status
from muster.app.facts.cell_provenance import find_cell_making, step_of_deciding_metrics
from muster.app.facts.definition_changes import find_definition_mixtures, find_outdated_cells
from muster.app.facts.lost_cells import (
    find_lost_cells,
    find_recovered_cells,
    find_redone_cells,
    jobs_with_unread_results,
    lacks_only_result,
)
from muster.app.facts.past_campaigns import CampaignSnapshot, PastCampaigns
from muster.app.facts.report_facts import (
    AcceptedCell,
    DecisionPlan,
    LearningCurve,
    Measurement,
    MissingCell,
    MissingCurve,
    ReportFacts,
    ResultColumn,
)
from muster.engine.ports.store import LoggedDecision
from muster.model.attempt import Attempt, CellRecord
from muster.model.campaign import Campaign, Job
from muster.model.cell import Cell, list_cells_of_job
from muster.model.errors import UsageError
from muster.model.provenance import ResultOrigins
from muster.model.verdict import VerdictState
from muster.stats.coincidences import MetricScale
from muster.stats.decision_procedure import DecisionProcedure
from muster.stats.red_flags import AcceptedFlag, DeclaredMetrics, DefinitionMixture
from muster.stats.seed_planning import SeedPrice
from muster.text.catalogue import load_catalogue
from muster.text.describe_run import describe_code_of_cells

KNOWN_AXES = ("config", "seed", "split")


@dataclass(frozen=True, slots=True)
class ReportInputs:
    """What was read from the world for a report."""

    origins: Mapping[str, ResultOrigins]  # of DONE cells
    code: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # cell -> commit, dirty
    vouched: Mapping[str, str] = field(default_factory=dict)  # cell -> hash of its checkpoint in the last report
    named: Mapping[str, Sequence[str]] = field(default_factory=dict)  # cell -> files of its needs in its command
    unread: Mapping[str, str] = field(default_factory=dict)  # cell -> why its results can't be read
    at: str = ""
    version: str = ""
    folder: str = ""
    decision_changed_at: int = 0
    accepted: tuple[AcceptedCell, ...] = ()
    accepted_flags: tuple[AcceptedFlag, ...] = ()
    seed_price: float | None = None  # of one more seed of one config
    money_left: float | None = None
    past: PastCampaigns = field(default_factory=PastCampaigns)
    chains: Mapping[str, Sequence[int]] = field(default_factory=dict)  # cell -> the attempts that it rests on
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # cell -> files unlike those of its job
    stepped: Mapping[str, bool | None] = field(default_factory=dict)  # cell that is not DONE -> it made a step


def build_report_facts(status: Status, found: ReportInputs) -> ReportFacts:
    campaign = status.state.campaign
    carrying = [job for job in campaign.jobs if job.results]
    if not carrying:
        raise UsageError(
            "no job has results, so there is nothing to report",
            where=found.folder,
            hint="declare them: `results: {score: {json: result.json, key: score}}`",
        )
    heads = ColumnHeads(campaign)
    names = {job.name for job in carrying}
    lacking = {
        cell.record.cell.id: lacks
        for cell in status.cells
        if cell.record.done
        and (lacks := _lacking_results(cell.record, campaign, found.origins.get(cell.record.cell.id)))
    }
    done = [cell.record for cell in status.cells if cell.record.done and cell.record.cell.job in names]
    done = [record for record in done if record.cell.id not in lacking]
    measured = tuple(_measurement_of_cell(record, campaign, heads, found) for record in done)
    asked = jobs_behind_results(campaign)
    unread = jobs_with_unread_results(cell.record for cell in status.cells)
    missing = tuple(
        _missing_cell_fact(cell, lacking.get(cell.record.cell.id, []), found, unread)
        for cell in status.cells
        if cell.record.cell.job in asked and (not cell.record.done or cell.record.cell.id in lacking)
    )
    if missing and all(each.cell.partition("/")[0] not in names for each in missing):
        names = set(asked)  # all is evaluated, and not all that it rests on is there
    plan = build_decision_plan(campaign, heads)
    out = find_lost_cells(status, found.past, asked, heads.of_cell, _deciding_heads(plan), found.stepped)
    missing += tuple(MissingCell(each.cell, each.how.upper(), each.reason) for each in out.lost)
    places = {(each.config, each.seed, each.head) for each in out.lost}
    seeds = _axis_names_of_jobs(campaign, "seed", carrying)
    gone_seeds = tuple(dict.fromkeys(each.seed for each in out.lost if each.seed not in seeds))
    records = {cell.record.cell.id: cell.record for cell in status.cells}
    splits = campaign.axis("split").values if _has_axis(campaign, "split") else ()
    rested = [record for record in records.values() if record.done and record.cell.job in asked]
    mixed = tuple(find_definition_mixtures(rested, found.past, found.chains))
    return ReportFacts(
        campaign=campaign.name,
        folder=found.folder,
        language=campaign.language,
        at=found.at,
        version=found.version,
        code=describe_code_of_cells(list(found.code.values()), load_catalogue("report", campaign.language)),
        configs=_axis_names_of_jobs(campaign, "config", carrying),
        seeds=(*seeds, *gone_seeds),
        gone_seeds=gone_seeds,
        columns=_main_table_columns(campaign, heads, plan),
        measured=measured,
        k=sum(
            1
            for cell in status.cells
            if cell.record.done and cell.record.cell.job in names and cell.record.cell.id not in lacking
        ),
        n=sum(1 for cell in status.cells if cell.record.cell.job in names)
        + sum(each.cell.partition("/")[0] in names for each in out.lost),
        missing=missing,
        excluded=tuple(each for each in _excluded_points(campaign, carrying, heads) if each not in places),
        lost=out.lost,
        settled=out.settled,
        failures=out.failures,
        dropped=out.dropped,
        refused=tuple(each.cell for each in status.state.refused if each.cell in records),
        plan=plan,
        declared=replace(
            _build_declared_metrics(campaign, plan, found.decision_changed_at),
            redone=tuple(find_redone_cells(status, plan.primary.metric if plan else "")),
            recovered=tuple(find_recovered_cells(status)),
        ),
        proxies={value.name: value.proxy for value in splits if value.proxy},
        split_notes={value.name: value.note for value in splits if value.note},
        notes={value.name: value.note for value in _axis_values(campaign, "config") if value.note},
        made=tuple(find_cell_making(campaign, records, found.origins, found.code, found.vouched, found.named)),
        curves=tuple(_learning_curves(status, found)),
        uncurved=tuple(_missing_curves(found)),
        resumed=tuple((name, each.resumed) for name, each in found.origins.items() if each.resumed),
        accepted=tuple(each for each in found.accepted if each.cell.partition("/")[0] in asked),
        accepted_flags=found.accepted_flags,
        scales={
            result.name: MetricScale(result.grain, result.min, result.max)
            for job in campaign.jobs
            for result in job.results
            if (result.grain, result.min, result.max) != (None, None, None)
        },
        price=_estimate_seed_price(campaign, list(records.values()), found.seed_price),
        currency=campaign.money.currency if campaign.money else "",
        budget_left=found.money_left,
        mixed=mixed,
        sources=found.sources,
        outdated=tuple(
            find_outdated_cells(rested, found.past, _snapshot_of_now(status, found), _cells_of_mixtures(mixed))
        ),
    )


def _snapshot_of_now(status: Status, found: ReportInputs) -> CampaignSnapshot:
    hashes = {name: record.hash for name, record in status.state.cells.items() if record.declared}
    return CampaignSnapshot(status.state.campaign, hashes, found.folder)


def _deciding_heads(plan: DecisionPlan | None) -> frozenset[str]:
    return frozenset(column.head for column in (plan.primary, plan.limit) if column) if plan else frozenset()


def _cells_of_mixtures(mixed: Sequence[DefinitionMixture]) -> frozenset[tuple[str, str]]:
    """Cells, each with a part of its definition whose change is told as mixed."""
    return frozenset((cell, each.part) for each in mixed if not each.as_run for cell in each.cells)


def _missing_cell_fact(
    cell: CellStatus, lacks: Sequence[str], found: ReportInputs, unread: frozenset[str]
) -> MissingCell:
    """`unread`: jobs not one of whose results was ever found."""
    name = cell.record.cell.id
    if cell.verdict.state == VerdictState.DONE and not cell.record.done:
        return MissingCell(
            name, str(VerdictState.UNKNOWN), "it has ended just now and is not recorded yet: ask again in a moment"
        )
    return MissingCell(name, str(cell.verdict.state), _reason_of_missing(cell, lacks, found, unread))


def _reason_of_missing(cell: CellStatus, lacks: Sequence[str], found: ReportInputs, unread: frozenset[str]) -> str:
    if not lacks and cell.record.cell.job in unread and lacks_only_result(cell.record):
        return f"its results can't be read; {cell.verdict.reason}"
    if not lacks:
        return cell.verdict.reason
    if why := found.unread.get(cell.record.cell.id):
        return f"it is done and {', '.join(lacks)} can't be read: {why}"
    return f"it is done and has no {', '.join(lacks)}: declared later, or never written"


# -- what was declared


class ColumnHeads:
    """Over the columns of a campaign's results: the split, or the job where there is none.

    A split that is no name enough has its job before it: two jobs evaluate on it, or a job is called the same.
    """

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign
        splitting = [job for job in campaign.jobs if "split" in job.axes and job.results]
        named = {value.name for value in _axis_values(campaign, "split")} & {job.name for job in campaign.jobs}
        self._long = {
            job.name for job in splitting if named or any(_jobs_share_results(job, other) for other in splitting)
        }

    def of_cell(self, cell: Cell) -> str:
        return self.of(self._campaign.job(cell.job), cell)

    def of(self, job: Job, cell: Cell) -> str:
        values = cell.names
        others = [name for axis, name in values.items() if axis not in KNOWN_AXES]
        if "split" not in values:
            return "/".join([job.name, *others])
        return "/".join([self._split(job, values["split"]), *others])

    def column(self, metric: str, split: str | None, job: str | None = None) -> ResultColumn:
        """Of a metric that the campaign file names; lint has seen to it that exactly one job is meant."""
        jobs = [each for each in self._campaign.jobs if any(result.name == metric for result in each.results)]
        meant = [each for each in jobs if job in (None, each.name) and ("split" in each.axes) == (split is not None)]
        chosen = next(iter([*meant, *jobs]), None)
        if chosen is None:
            return ResultColumn(split or "", metric)
        if "split" not in chosen.axes:
            return ResultColumn(chosen.name, metric)
        only = [value.name for value in _axis_values(self._campaign, "split")]
        return ResultColumn(self._split(chosen, split or only[0]), metric)

    def _split(self, job: Job, split: str) -> str:
        return f"{job.name}/{split}" if job.name in self._long else split


def _jobs_share_results(job: Job, other: Job) -> bool:
    return job is not other and bool({result.name for result in job.results} & {each.name for each in other.results})


def build_decision_plan(campaign: Campaign, heads: ColumnHeads) -> DecisionPlan | None:
    told = campaign.decision
    if not told:
        return None
    limit = told.limit
    procedure = DecisionProcedure(
        baseline=told.baseline,
        higher=told.primary.better == "higher",
        limit=limit.bound if limit else None,
        at_most=limit is not None and limit.better == "lower",
        cap=limit.cap if limit else None,
        delta=told.delta,
        alpha=told.alpha,
        looks=told.looks,
        power=told.power,
    )
    return DecisionPlan(
        procedure,
        heads.column(told.primary.metric, told.primary.split, told.primary.job),
        heads.column(limit.metric, limit.split, limit.job) if limit else None,
        f"best by {told.best_by}" if told.best_by else "last",
        told.factors,
        told.notes,
    )


def _main_table_columns(campaign: Campaign, heads: ColumnHeads, plan: DecisionPlan | None) -> tuple[ResultColumn, ...]:
    """As `report.columns` says; else every result on every split, and those of jobs without one."""
    written = campaign.report.columns if campaign.report else ()
    splits = [value.name for value in _axis_values(campaign, "split")]
    if written:
        parts = [text.rpartition("/") for text in written]
        return tuple(
            heads.column(metric, head) if head in splits else ResultColumn(head, metric) for head, _, metric in parts
        )
    found = dict.fromkeys([plan.primary, *([plan.limit] if plan.limit else [])] if plan else [])
    for job in campaign.jobs:
        cells = list(list_cells_of_job(campaign, job))
        for result in job.results:
            found.update(dict.fromkeys(ResultColumn(heads.of(job, cell), result.name) for cell in cells))
    return tuple(found)


def _build_declared_metrics(campaign: Campaign, plan: DecisionPlan | None, changed_at: int) -> DeclaredMetrics:
    best = campaign.decision.best_by if campaign.decision else ""
    asked = jobs_behind_results(campaign)
    needed = {need for job in campaign.jobs if job.name in asked for need in job.needs}
    training = frozenset(result.name for job in campaign.jobs if job.name in needed for result in job.results)
    evaluated = {result.name for job in campaign.jobs if job.name not in needed for result in job.results}
    return DeclaredMetrics(
        checkpoint="best" if best else "last",
        best_by=best or None,
        primary=plan.primary.metric if plan else "",
        cost=plan.limit.metric if plan and plan.limit else None,
        splits=tuple(value.name for value in _axis_values(campaign, "split")),
        proxies={
            v.name: v.proxy or v.note for v in _axis_values(campaign, "split") if v.name.lower() in ("ood", "proxy")
        },
        train_metrics=training if plan and plan.primary.head in needed else training - evaluated,
        picked=step_of_deciding_metrics(campaign),
        changed_at=changed_at,
    )


def _axis_names_of_jobs(campaign: Campaign, axis: str, jobs: Sequence[Job]) -> tuple[str, ...]:
    if not any(axis in job.axes for job in jobs):
        return ("",)
    return tuple(value.name for value in _axis_values(campaign, axis))


def _axis_values(campaign: Campaign, name: str) -> Sequence[Any]:
    return campaign.axis(name).values if _has_axis(campaign, name) else ()


def _has_axis(campaign: Campaign, name: str) -> bool:
    return any(axis.name == name for axis in campaign.axes)


def _excluded_points(campaign: Campaign, jobs: Sequence[Job], heads: ColumnHeads) -> Iterator[tuple[str, str, str]]:
    for job in jobs:
        kept = {cell.id for cell in list_cells_of_job(campaign, job)}
        for cell in list_cells_of_job(campaign, replace(job, exclude=())) if job.exclude else ():
            if cell.id not in kept:
                names = cell.names
                yield names.get("config", ""), names.get("seed", ""), heads.of(job, cell)


# -- what was measured


def _measurement_of_cell(
    record: CellRecord, campaign: Campaign, heads: ColumnHeads, found: ReportInputs
) -> Measurement:
    origins = found.origins.get(record.cell.id)
    cell, attempt, job = record.cell, _completed_attempt(record), campaign.job(record.cell.job)
    names = cell.names
    declared = {result.name for result in job.results}
    recorded = {name: value for name, value in _recorded_results(record).items() if name in declared}
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


def _recorded_results(record: CellRecord) -> Mapping[str, float]:
    return _completed_attempt(record).results


def _lacking_results(record: CellRecord, campaign: Campaign, origins: ResultOrigins | None) -> list[str]:
    """Results that are declared today and that the DONE cell does not have: they were declared later."""
    known = {*_recorded_results(record), *(origins.values if origins else ())}
    return [result.name for result in campaign.job(record.cell.job).results if result.name not in known]


def _completed_attempt(record: CellRecord) -> Attempt:
    attempt = record.completed
    if attempt is None:  # asked of DONE cells only
        raise LookupError(record.cell.id)
    return attempt


def metrics_with_curves(campaign: Campaign) -> list[str]:
    """The results whose way is shown: those that are decided on, and what the best checkpoint is chosen by."""
    told = campaign.decision
    if told is None:
        return ["score", "cost"]
    named = (told.primary.metric, told.limit.metric if told.limit else "", told.best_by)
    return list(dict.fromkeys(filter(None, named)))


def _learning_curves(status: Status, found: ReportInputs) -> Iterator[LearningCurve]:
    for cell in status.cells:
        names = cell.record.cell.names
        origins = found.origins.get(cell.record.cell.id)
        for metric, (key, (steps, values)) in origins.curves.items() if origins else ():
            yield LearningCurve(
                cell.record.cell.id, names.get("config", ""), names.get("seed", ""), metric, key, steps, values
            )


def _missing_curves(found: ReportInputs) -> Iterator[MissingCurve]:
    """Jobs that log nothing, such as an evaluation without a split, have no curve where others have one."""
    metrics = dict.fromkeys(metric for each in found.origins.values() for metric in each.uncurved)
    for metric in metrics:
        lacks = {name: each.uncurved[metric] for name, each in found.origins.items() if metric in each.uncurved}
        known = {name.partition("/")[0] for name, each in found.origins.items() if metric in each.curves}
        mine = {name: why for name, why in lacks.items() if not known or name.partition("/")[0] in known}
        reason = next((why for why in mine.values() if why.why == "key"), next(iter(mine.values()), None))
        if reason:
            yield MissingCurve(metric, reason, tuple(mine), not known)


def _estimate_seed_price(campaign: Campaign, records: Sequence[CellRecord], money: float | None) -> SeedPrice | None:
    """Of one more seed of one config: the middle duration of each kind of cell that it takes."""
    hours = 0.0
    for job in campaign.jobs:
        if "seed" not in job.axes:
            continue
        known = [
            attempt.outcome.duration_s
            for record in records
            if record.cell.job == job.name
            and (attempt := record.completed)
            and attempt.outcome
            and attempt.outcome.duration_s
        ]
        if not known:
            return None
        others = [len(campaign.axis(axis).values) for axis in job.axes if axis not in ("config", "seed")]
        cells = 1
        for count in others:
            cells *= count
        hours += cells * median(known) / 3600
    return SeedPrice(hours, money)


def find_accepted_cells(status: Status, events: Iterable[LoggedDecision]) -> Iterator[AcceptedCell]:
    """In declared order, each with who took it as done, and why."""
    who: dict[tuple[str | None, int | None], str] = {}
    for event in events:
        decision = event.decision
        if decision.kind == "accept" and not event.void:
            who[decision.cell, decision.attempt] = decision.who
    for cell in status.cells:
        attempt = cell.record.completed
        if attempt is not None and attempt.accepted is not None and not attempt.reread:
            yield AcceptedCell(attempt.cell, attempt.n, who.get(attempt.key, ""), attempt.accepted)
