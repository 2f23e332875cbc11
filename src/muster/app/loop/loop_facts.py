"""The facts of a loop's report: variants with their runs, the course of the best score, what each rule gained. Pure."""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from muster.app.loop.next_round import NOISE_ALPHA, best_after_each_round
from muster.model.campaign import DeclaredLoop
from muster.model.campaign_state import CampaignState
from muster.model.provenance import Resumption
from muster.model.variant import BASE, DEFAULT, SEARCH, LoopRecord, Variant
from muster.rules.evaluate_expressions import MetricSummaries
from muster.rules.expressions import MetricNode, keys_in_expression, parse_expression
from muster.rules.metric_summary import Summary, better_direction_of_key
from muster.rules.rank_variants import FINAL_VERDICTS, TriedVariant, VariantRun, finite_mean, score_variant
from muster.stats.samples import Sample, difference_of_means
from muster.text.phrases import rewrite_phrase

HEALTHY_VERDICTS = frozenset(
    {"PENDING", "RUNNING", "QUIET", "BLOCKED", "HELD"}
)  # not over, and nothing is wrong with it
LEAST_IDENTICAL = 3  # variants with the very same score: two may be chance


@dataclass(frozen=True, slots=True)
class LoopRun:
    """One cell."""

    cell: str
    verdict: str
    why: str = ""  # its cause, where it is not DONE
    unread: str = ""  # why no history of it could be read
    output: str = ""  # its folder; from the campaign's folder, where it lies there
    url: str = ""  # of W&B, if one was logged
    summaries: Mapping[str, Summary] = field(default_factory=dict)
    pruned: bool = False
    resumed: Resumption | None = None  # what counts of the attempts that wrote its history; None: one wrote all

    @property
    def over(self) -> bool:
        return self.verdict in FINAL_VERDICTS

    @property
    def trouble(self) -> bool:
        """Over without a history, or with a bad end, or not to be told."""
        return (
            self.verdict not in HEALTHY_VERDICTS and not self.pruned and (self.verdict != "DONE" or not self.summaries)
        )


@dataclass(frozen=True, slots=True)
class LoopVariant:
    variant: Variant
    config: str  # its file; from the campaign's folder, where it lies there
    runs: tuple[LoopRun, ...] = ()
    values: tuple[float, ...] = ()  # by the expression that ranks: one for each run that is over and tells one
    unscored: str = ""  # why there is none
    gain: float | None = None  # over its parent: above zero is better, whichever direction that is

    @property
    def name(self) -> str:
        return self.variant.name

    @property
    def is_base(self) -> bool:
        return self.variant.by == BASE

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def mean(self) -> float:
        return finite_mean(self.values)

    @property
    def sd(self) -> float | None:
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    @property
    def state(self) -> str:
        """scored | waiting | failed | unscored (it ran, and the expression gives nothing or there is none)"""
        if self.values:
            return "scored"
        if not self.runs or any(run.verdict in HEALTHY_VERDICTS for run in self.runs):
            return "waiting"
        return "failed" if all(run.trouble for run in self.runs) else "unscored"


@dataclass(frozen=True, slots=True)
class RoundBest:
    """After a round. Another variant takes the place only if it is better beyond the noise of the seeds."""

    round: int
    best: str
    gained: bool


@dataclass(frozen=True, slots=True)
class BaseComparison:
    """The best, compared with the base that it comes from."""

    base: str
    difference: float  # above zero: better
    interval: tuple[float, float] | None = None
    p: float | None = None  # Welch's; None: one seed, or no spread
    beyond: bool | None = None  # the noise of the seeds; None: can't be told


@dataclass(frozen=True, slots=True)
class RuleGains:
    """A rule, and what became of the variants that it made."""

    rule: str
    reason: str
    made: int
    gains: tuple[float, ...] = ()  # of those that have a score, as their parents have: above zero is better
    interval: tuple[float, float] | None = None  # of the mean gain, from three on

    @property
    def mean(self) -> float | None:
        return statistics.fmean(self.gains) if self.gains else None

    @property
    def better(self) -> int:
        return sum(gain > 0 for gain in self.gains)


@dataclass(frozen=True, slots=True)
class LoopFacts:
    campaign: str
    language: str
    at: str
    version: str
    job: str
    variants: tuple[LoopVariant, ...]
    round: int  # the newest
    most: int  # rounds that were asked for
    by: str = ""  # the expression that ranks; "": none is declared
    better: str = "higher"
    repeats: int = 1
    stopped: str = ""  # why no further round comes
    intent: str = "running"  # running | held | down
    busy: bool = True  # a controller is at work
    course: tuple[RoundBest, ...] = ()
    against: BaseComparison | None = None
    rules: tuple[RuleGains, ...] = ()
    noise: float | None = None  # sd over the seeds of a variant, pooled over all variants
    keys: tuple[str, ...] = ()  # whose numbers the text shows
    more_keys: int = 0  # that it does not
    directions: Mapping[str, str] = field(default_factory=dict)  # key -> higher | lower, where it is known

    @property
    def best(self) -> LoopVariant | None:
        return self.variant(self.course[-1].best) if self.course else None

    @property
    def top(self) -> LoopVariant | None:
        """By its mean alone, whatever the noise."""
        scored = [each for each in self.variants if each.values]
        sign = 1 if self.better == "higher" else -1
        return max(scored, key=lambda each: sign * each.mean, default=None)

    @property
    def identical(self) -> bool:
        """All scores are the same number: the variants can hardly have been different runs."""
        scored = [each.values for each in self.variants if each.values]
        return len(scored) >= LEAST_IDENTICAL and len({value for values in scored for value in values}) == 1

    @property
    def runs(self) -> list[LoopRun]:
        return [run for each in self.variants for run in each.runs]

    @property
    def over(self) -> bool:
        return all(run.over for run in self.runs)

    def variant(self, name: str) -> LoopVariant:
        return next(each for each in self.variants if each.name == name)

    def of_round(self, number: int) -> list[LoopVariant]:
        return [each for each in self.variants if each.variant.round == number]


STEP_NAMES = frozenset({"step", "_step", "global_step", "globalstep"})
MOST_SHOWN_KEYS = 8  # keys in the text; all of them are in the JSON


@dataclass(frozen=True, slots=True)
class LoopRunPlace:
    """Where a run left its files, and where W&B shows it."""

    output: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class LoopReportContext:
    """What the state does not tell."""

    at: str
    version: str
    root: str
    most: int
    busy: bool
    places: Mapping[str, LoopRunPlace]


def gather_loop_facts(
    state: CampaignState, tried: Sequence[TriedVariant], settings: DeclaredLoop, asked: LoopReportContext
) -> LoopFacts:
    over = [replace(each, runs=tuple(run for run in each.runs if run.over)) for each in tried]
    variants = _add_gains_over_parents([_make_loop_variant(each, settings.by, asked) for each in over], settings.better)
    shown = tuple(
        replace(new, runs=tuple(_make_loop_run(run, asked) for run in each.runs))
        for new, each in zip(variants, tried, strict=True)
    )
    found = best_after_each_round(state.loop, over, settings) if settings.by else []
    course = tuple(RoundBest(each.round, each.best, each.gained) for each in found)
    keys, more = _keys_to_show(tried, settings)
    campaign = state.campaign
    return LoopFacts(
        campaign.name,
        campaign.language,
        asked.at,
        asked.version,
        settings.job,
        shown,
        state.loop.round,
        asked.most,
        settings.by,
        settings.better,
        settings.repeats,
        state.loop.stopped,
        state.intent.kind,
        asked.busy,
        course,
        _compare_best_with_base(state.loop, variants, course, settings.better),
        _gains_of_all_rules(variants, settings),
        _pooled_seed_noise(variants),
        keys,
        more,
        _directions_of_keys(tried, settings),
    )


# -- variants


def _make_loop_variant(of: TriedVariant, by: str, asked: LoopReportContext) -> LoopVariant:
    found = score_variant(of, by) if by else None
    values = found.values if found else ()
    variant = (
        replace(of.variant, source=_path_from_campaign(asked.root, of.variant.source))
        if of.variant.source
        else of.variant
    )
    return LoopVariant(
        variant, _path_from_campaign(asked.root, of.variant.config), (), values, found.why if found else ""
    )


def _make_loop_run(run: VariantRun, asked: LoopReportContext) -> LoopRun:
    place = asked.places.get(run.cell, LoopRunPlace())
    output = _path_from_campaign(asked.root, place.output) if place.output else ""
    why, unread = (
        rewrite_phrase(each, {}, lambda text: text.replace(f"{asked.root}/", "")) for each in (run.why, run.unread)
    )
    return LoopRun(run.cell, run.verdict, why, unread, output, place.url, run.summaries, run.pruned, run.resumed)


def _path_from_campaign(root: str, path: str) -> str:
    """From the campaign's folder, if it lies there."""
    inside = os.path.relpath(path, root) if os.path.isabs(path) else path  # noqa: PTH117
    return path if inside.startswith("..") else inside


def _add_gains_over_parents(variants: Sequence[LoopVariant], better: str) -> list[LoopVariant]:
    known = {each.name: each for each in variants}
    sign = 1 if better == "higher" else -1
    found = []
    for each in variants:
        parent = known.get(each.variant.parent or "")
        both = parent is not None and parent.values and each.values
        found.append(replace(each, gain=sign * (each.mean - parent.mean)) if both and parent else each)
    return found


def _pooled_seed_noise(variants: Sequence[LoopVariant]) -> float | None:
    """Of one seed: the spreads of all variants together, each by its degrees of freedom."""
    repeated = [each for each in variants if each.n > 1]
    free = sum(each.n - 1 for each in repeated)
    if not free:
        return None
    return math.sqrt(sum((each.n - 1) * statistics.variance(each.values) for each in repeated) / free)


def _compare_best_with_base(
    record: LoopRecord, variants: Sequence[LoopVariant], course: Sequence[RoundBest], better: str
) -> BaseComparison | None:
    """The best and the base that it comes from, or the best of the bases where it comes from none. None: it is one."""
    known = {each.name: each for each in variants}
    best = known[course[-1].best] if course else None
    if best is None or best.is_base:
        return None
    sign = 1 if better == "higher" else -1
    own = known[record.lineage(best.name)[0].name]
    bases = [own] if own.is_base else [each for each in variants if each.is_base]
    base = max((each for each in bases if each.values), key=lambda each: sign * each.mean, default=None)
    if base is None:
        return None
    ahead = sign * (best.mean - base.mean)
    if best.n < 2 or base.n < 2:
        return BaseComparison(base.name, ahead)
    found = difference_of_means(_sample_of_variant(best), _sample_of_variant(base))
    ends = found.interval()
    interval = (min(sign * end for end in ends), max(sign * end for end in ends)) if ends else None
    beyond = None if found.p is None else found.p < NOISE_ALPHA and ahead > 0
    return BaseComparison(base.name, ahead, interval, found.p, beyond)


def _sample_of_variant(of: LoopVariant) -> Sample:
    return Sample(of.name, "", "", {str(at): value for at, value in enumerate(of.values)})


# -- rules


def _gains_of_all_rules(variants: Sequence[LoopVariant], settings: DeclaredLoop) -> tuple[RuleGains, ...]:
    """In the declared order, those that never fired, too; then whoever else made a variant."""
    declared = {rule.id: rule.reason for rule in settings.rules}
    if settings.default:
        declared[DEFAULT] = settings.default.reason
    others: dict[str, list[str]] = {}
    for each in variants:
        if not each.is_base and each.variant.by not in declared:
            others.setdefault(each.variant.by, []).append(each.variant.reason)
    every = declared | {by: _common_reason(by, reasons) for by, reasons in others.items()}
    return tuple(_gains_of_rule(rule, reason, variants) for rule, reason in every.items())


def _common_reason(by: str, reasons: Sequence[str]) -> str:
    """One reason for all that it made: a search has another one for each round."""
    if by.startswith(SEARCH):
        return f"points of the space, drawn by {by.removeprefix(SEARCH)}"
    return reasons[0] if len(set(reasons)) == 1 else "each for a reason of its own"


def _gains_of_rule(rule: str, reason: str, variants: Sequence[LoopVariant]) -> RuleGains:
    made = [each for each in variants if each.variant.by == rule and not each.is_base]
    found = tuple(each.gain for each in made if each.gain is not None)
    interval = Sample(rule, "", "", {str(at): gain for at, gain in enumerate(found)}).interval
    return RuleGains(rule, reason, len(made), found, interval)


# -- keys


def _keys_to_show(tried: Sequence[TriedVariant], settings: DeclaredLoop) -> tuple[tuple[str, ...], int]:
    """What ranks first, then what the rules ask for, then the others, less steps and what W&B adds: `_runtime`.

    Of the others first what is better high or low: the order in which a trainer logs them says nothing.
    """
    logged = dict.fromkeys(key for each in tried for run in each.runs for key in run.summaries)
    every = MetricSummaries(
        {key: summary for each in tried for run in each.runs for key, summary in run.summaries.items()}
    )
    named = [found.key for key in _keys_in_settings(settings) if (found := every.find(key)[0])]
    others = [key for key in logged if not key.startswith("_") and not _is_step_column(every.summaries[key])]
    others.sort(key=lambda key: better_direction_of_key(key) is None)
    keys = list(dict.fromkeys([*named, *others]))[:MOST_SHOWN_KEYS]
    return tuple(keys), len(logged) - len(keys)


def _is_step_column(summary: Summary) -> bool:
    """By its name, or because it is the very column that tells the step of each row."""
    name = summary.key.replace("/", ".").rpartition(".")[2].lower()
    return name in STEP_NAMES or (summary.count > 1 and summary.tail == summary.tail_steps)


def _keys_in_settings(settings: DeclaredLoop) -> list[str]:
    nodes = [parse_expression(settings.by, "number")] if settings.by else []
    nodes += [
        parse_expression(each) for each in (settings.stop.target, *(rule.when for rule in settings.rules)) if each
    ]
    return [key for node in nodes for key in keys_in_expression(node)]


def _directions_of_keys(tried: Sequence[TriedVariant], settings: DeclaredLoop) -> dict[str, str]:
    """By its name, and of the key that ranks as it is declared."""
    logged = {key for each in tried for run in each.runs for key in run.summaries}
    found = {key: better for key in logged if (better := better_direction_of_key(key))}
    node = parse_expression(settings.by, "number") if settings.by else None
    if isinstance(node, MetricNode) and node.function in ("last", "best", "min", "max", "mean"):
        every = MetricSummaries(
            {key: summary for each in tried for run in each.runs for key, summary in run.summaries.items()}
        )
        summary, _ = every.find(node.key)
        if summary:
            found[summary.key] = settings.better
    return dict(sorted(found.items()))
