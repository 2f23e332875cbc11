"""The facts of a loop's report, out of what was tried. Pure."""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from muster.acts.loop_settings import LoopSettings
from muster.acts.next_round import gains
from muster.acts.tried import ALPHA, Run, Tried, score
from muster.domain.state import CampaignState
from muster.domain.variants import DEFAULT, SEARCH, LoopRecord
from muster.report.loop_facts import Against, LoopFacts, LoopRun, LoopVariant, RoundBest, RulePays
from muster.rounds.evaluating import Metrics
from muster.rounds.expressions import Metric, keys_of, parse
from muster.rounds.summary import Summary, direction_of
from muster.stats.compare import difference
from muster.stats.sample import Sample

STEPS = frozenset({"step", "_step", "global_step", "globalstep"})
SHOWN = 8  # keys in the text; all of them are in the JSON


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run left its files, and where W&B shows it."""

    output: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the state does not tell."""

    at: str
    version: str
    root: str
    most: int
    busy: bool
    places: Mapping[str, Place]


def loop_facts(state: CampaignState, tried: Sequence[Tried], settings: LoopSettings, asked: Asked) -> LoopFacts:
    over = [replace(each, runs=tuple(run for run in each.runs if run.over)) for each in tried]
    variants = _with_gains([_variant(each, settings.by, asked) for each in over], settings.better)
    shown = tuple(
        replace(new, runs=tuple(_run(run, asked) for run in each.runs))
        for new, each in zip(variants, tried, strict=True)
    )
    found = gains(state.loop, over, settings) if settings.by else []
    course = tuple(RoundBest(each.round, each.best, each.gained) for each in found)
    keys, more = _keys(tried, settings)
    campaign = state.campaign
    return LoopFacts(
        campaign.name, campaign.language, asked.at, asked.version, settings.job, shown, state.loop.round, asked.most,
        settings.by, settings.better, settings.repeats, state.loop.stopped, state.intent.kind, asked.busy, course,
        _against(state.loop, variants, course, settings.better), _rules(variants, settings), _noise(variants), keys,
        more, _directions(tried, settings),
    )  # fmt: skip


# -- variants


def _variant(of: Tried, by: str, asked: Asked) -> LoopVariant:
    found = score(of, by) if by else None
    values = found.values if found else ()
    variant = replace(of.variant, source=_from(asked.root, of.variant.source)) if of.variant.source else of.variant
    return LoopVariant(variant, _from(asked.root, of.variant.config), (), values, found.why if found else "")


def _run(run: Run, asked: Asked) -> LoopRun:
    place = asked.places.get(run.cell, Place())
    output = _from(asked.root, place.output) if place.output else ""
    why, unread = (each.replace(f"{asked.root}/", "") for each in (run.why, run.unread))
    return LoopRun(run.cell, run.verdict, why, unread, output, place.url, run.summaries, run.pruned, run.resumed)


def _from(root: str, path: str) -> str:
    """From the campaign's folder, if it lies there."""
    inside = os.path.relpath(path, root) if os.path.isabs(path) else path  # noqa: PTH117
    return path if inside.startswith("..") else inside


def _with_gains(variants: Sequence[LoopVariant], better: str) -> list[LoopVariant]:
    known = {each.name: each for each in variants}
    sign = 1 if better == "higher" else -1
    found = []
    for each in variants:
        parent = known.get(each.variant.parent or "")
        both = parent is not None and parent.values and each.values
        found.append(replace(each, gain=sign * (each.mean - parent.mean)) if both and parent else each)
    return found


def _noise(variants: Sequence[LoopVariant]) -> float | None:
    """Of one seed: the spreads of all variants together, each by its degrees of freedom."""
    repeated = [each for each in variants if each.n > 1]
    free = sum(each.n - 1 for each in repeated)
    if not free:
        return None
    return math.sqrt(sum((each.n - 1) * statistics.variance(each.values) for each in repeated) / free)


def _against(
    record: LoopRecord, variants: Sequence[LoopVariant], course: Sequence[RoundBest], better: str
) -> Against | None:
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
        return Against(base.name, ahead)
    found = difference(_sample(best), _sample(base))
    ends = found.interval()
    interval = (min(sign * end for end in ends), max(sign * end for end in ends)) if ends else None
    beyond = None if found.p is None else found.p < ALPHA and ahead > 0
    return Against(base.name, ahead, interval, found.p, beyond)


def _sample(of: LoopVariant) -> Sample:
    return Sample(of.name, "", "", {str(at): value for at, value in enumerate(of.values)})


# -- rules


def _rules(variants: Sequence[LoopVariant], settings: LoopSettings) -> tuple[RulePays, ...]:
    """In the declared order, those that never fired, too; then whoever else made a variant."""
    declared = {rule.id: rule.reason for rule in settings.rules}
    if settings.default:
        declared[DEFAULT] = settings.default.reason
    others: dict[str, list[str]] = {}
    for each in variants:
        if not each.is_base and each.variant.by not in declared:
            others.setdefault(each.variant.by, []).append(each.variant.reason)
    every = declared | {by: _general(by, reasons) for by, reasons in others.items()}
    return tuple(_pays(rule, reason, variants) for rule, reason in every.items())


def _general(by: str, reasons: Sequence[str]) -> str:
    """One reason for all that it made: a search has another one for each round."""
    if by.startswith(SEARCH):
        return f"points of the space, drawn by {by.removeprefix(SEARCH)}"
    return reasons[0] if len(set(reasons)) == 1 else "each for a reason of its own"


def _pays(rule: str, reason: str, variants: Sequence[LoopVariant]) -> RulePays:
    made = [each for each in variants if each.variant.by == rule and not each.is_base]
    found = tuple(each.gain for each in made if each.gain is not None)
    interval = Sample(rule, "", "", {str(at): gain for at, gain in enumerate(found)}).interval
    return RulePays(rule, reason, len(made), found, interval)


# -- keys


def _keys(tried: Sequence[Tried], settings: LoopSettings) -> tuple[tuple[str, ...], int]:
    """What ranks first, then what the rules ask for, then the others, less steps and what W&B adds: `_runtime`.

    Of the others first what is better high or low: the order in which a trainer logs them says nothing.
    """
    logged = dict.fromkeys(key for each in tried for run in each.runs for key in run.summaries)
    every = Metrics({key: summary for each in tried for run in each.runs for key, summary in run.summaries.items()})
    named = [found.key for key in _asked_for(settings) if (found := every.find(key)[0])]
    others = [key for key in logged if not key.startswith("_") and not _counts(every.summaries[key])]
    others.sort(key=lambda key: direction_of(key) is None)
    keys = list(dict.fromkeys([*named, *others]))[:SHOWN]
    return tuple(keys), len(logged) - len(keys)


def _counts(summary: Summary) -> bool:
    """By its name, or because it is the very column that tells the step of each row."""
    name = summary.key.replace("/", ".").rpartition(".")[2].lower()
    return name in STEPS or (summary.count > 1 and summary.tail == summary.tail_steps)


def _asked_for(settings: LoopSettings) -> list[str]:
    nodes = [parse(settings.by, "number")] if settings.by else []
    nodes += [parse(each) for each in (settings.target, *(rule.when for rule in settings.rules)) if each]
    return [key for node in nodes for key in keys_of(node)]


def _directions(tried: Sequence[Tried], settings: LoopSettings) -> dict[str, str]:
    """By its name, and of the key that ranks as it is declared."""
    logged = {key for each in tried for run in each.runs for key in run.summaries}
    found = {key: better for key in logged if (better := direction_of(key))}
    node = parse(settings.by, "number") if settings.by else None
    if isinstance(node, Metric) and node.function in ("last", "best", "min", "max", "mean"):
        every = Metrics({key: summary for each in tried for run in each.runs for key, summary in run.summaries.items()})
        summary, _ = every.find(node.key)
        if summary:
            found[summary.key] = settings.better
    return dict(sorted(found.items()))
