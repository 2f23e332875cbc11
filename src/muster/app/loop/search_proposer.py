"""The search as a proposer: Optuna samples points of a space, given every score so far.

The decisions are the truth: a study that lived on beside them could differ from them after a kill, so it is made anew
each time. The same scores and the same seed give the same answers. Configs that differ outside the space can't be
compared: each kind of them is a pool that is searched by itself, and the points of a round are dealt to the pools in
turn. Optuna is imported only where a search is carried out.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from muster.model.errors import UsageError
from muster.model.variant import SEARCH, Variant
from muster.rules.config_paths import UnreadableConfig
from muster.rules.edit_config import parse_config
from muster.rules.proposal_rules import Ruling, outcome_of_edits
from muster.rules.proposer import Proposals, ProposerInput
from muster.rules.rank_variants import TriedVariant, VariantScore, rank_scored_variants, score_variant
from muster.rules.search_space import (
    FittedDimension,
    SearchSettings,
    SpaceMisfit,
    SpacePoint,
    count_space_points,
    digest_outside_space,
    edits_for_point,
    find_missing_package,
    fit_space_to_configs,
    iterate_grid_points,
    locate_config_in_space,
)
from muster.text.phrases import phrase

STARTUP_SCORES = 5  # scores before a sampler that learns takes over: loops are short, and 10 would be a whole one


@dataclass(frozen=True, slots=True)
class SearchTrial:
    point: SpacePoint
    value: float | None  # None: it has failed
    running: bool = False
    pruned_at: int | None = None  # the step that it had reached
    told: Mapping[str, Any] = field(default_factory=dict)  # what people want to read beside it


def ask_sampler(
    search: SearchSettings, knobs: Sequence[FittedDimension], trials: Sequence[SearchTrial], better: str, seed: int
) -> Iterator[SpacePoint]:
    """Points without end, as the sampler gives them; the ones before count as running."""
    optuna = _import_optuna(search.sampler)
    space = {knob.path: _optuna_distribution(optuna, knob) for knob in knobs}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about what is experimental in it
        study = optuna.create_study(
            direction=_optuna_direction(better), sampler=_make_optuna_sampler(optuna, search.sampler, seed)
        )
        _add_optuna_trials(optuna, study, space, [each for each in trials if not each.running])
    while True:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            drawn = study.ask(space).params
        yield {knob.path: knob.tidy(drawn[knob.path]) for knob in knobs}


def studies_as_optuna_journal(
    studies: Mapping[str, tuple[Sequence[FittedDimension], Sequence[SearchTrial]]], better: str, sampler: str
) -> bytes:
    """The studies as a journal file of Optuna's, for optuna-dashboard and for optuna.load_study."""
    optuna = _import_optuna(sampler)
    kept = _make_memory_backend(optuna)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        storage = optuna.storages.JournalStorage(kept)
        for name, (knobs, trials) in studies.items():
            study = optuna.create_study(study_name=name, direction=_optuna_direction(better), storage=storage)
            _add_optuna_trials(optuna, study, {knob.path: _optuna_distribution(optuna, knob) for knob in knobs}, trials)
    return "".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in kept.lines).encode()


def seed_from_parts(*parts: object) -> int:
    """32 bits that the parts alone decide."""
    text = json.dumps([str(part) for part in parts])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def _import_optuna(sampler: str) -> Any:
    lacks, how = find_missing_package(sampler)
    if lacks:
        raise UsageError(f"loop.search needs the package {lacks}, which is not installed", hint=how)
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def _optuna_direction(better: str) -> str:
    return "maximize" if better == "higher" else "minimize"


def _make_optuna_sampler(optuna: Any, name: str, seed: int) -> Any:
    if name == "tpe":
        return optuna.samplers.TPESampler(
            seed=seed,
            n_startup_trials=STARTUP_SCORES,
            multivariate=False,
            constant_liar=True,  # a round is asked for at once
        )
    if name == "gp":
        return optuna.samplers.GPSampler(seed=seed, n_startup_trials=STARTUP_SCORES)
    return optuna.samplers.RandomSampler(seed=seed)


def _optuna_distribution(optuna: Any, knob: FittedDimension) -> Any:
    of, kinds = knob.dimension, optuna.distributions
    if of.values:
        return kinds.CategoricalDistribution(of.values)
    if knob.whole:
        return kinds.IntDistribution(of.low, of.high, log=of.log, step=of.step or 1)
    return kinds.FloatDistribution(float(of.low), float(of.high), log=of.log, step=of.step)


def _add_optuna_trials(optuna: Any, study: Any, space: Mapping[str, Any], trials: Sequence[SearchTrial]) -> None:
    states = optuna.trial.TrialState
    for each in trials:
        state = states.RUNNING if each.running else states.FAIL if each.value is None else states.COMPLETE
        said: dict[str, Any] = {"value": each.value}
        if each.pruned_at is not None and each.value is not None:  # samplers trust a value less that was cut short
            state, said = states.PRUNED, {"value": each.value, "intermediate_values": {each.pruned_at: each.value}}
        study.add_trial(
            optuna.trial.create_trial(
                state=state, params=each.point, distributions=dict(space), user_attrs=dict(each.told), **said
            )
        )


def _make_memory_backend(optuna: Any) -> Any:
    """A journal in memory: the file comes into being at once or not at all."""

    class Kept(optuna.storages.journal.BaseJournalBackend):  # type: ignore[misc]
        def __init__(self) -> None:
            self.lines: list[dict[str, Any]] = []

        def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:
            yield from self.lines[log_number_from:]

        def append_logs(self, logs: list[dict[str, Any]]) -> None:
            self.lines += logs

    return Kept()


MOST_VAIN_DRAWS = 50  # points in vain, before those that are left are looked for one by one
MOST_GRID = 10_000
SamplerAsker = Callable[
    [SearchSettings, Sequence[FittedDimension], Sequence[SearchTrial], str, int], Iterator[SpacePoint]
]


@dataclass(frozen=True, slots=True)
class SearchPool:
    """Variants that differ in the space alone."""

    base: TriedVariant  # whose config the edits are of
    knobs: tuple[FittedDimension, ...]
    tried: tuple[tuple[TriedVariant, VariantScore, SpacePoint], ...]  # an empty point: outside the space

    @property
    def name(self) -> str:
        return self.base.variant.name

    @property
    def scored(self) -> bool:
        return any(scored.values for _, scored, _ in self.tried)

    @property
    def few(self) -> int:
        """How many points there are, if they can be gone through one by one; else 0."""
        many = count_space_points(self.knobs)
        return many if many is not None and many <= MOST_GRID else 0

    def trials(self) -> list[SearchTrial]:
        return [_trial_of_variant(each, scored, point) for each, scored, point in self.tried if point]


@dataclass(frozen=True, slots=True)
class SearchProposer:
    search: SearchSettings
    asked: SamplerAsker = field(default=ask_sampler)

    @property
    def by(self) -> str:
        return f"{SEARCH}{self.search.sampler}"

    def propose(self, board: ProposerInput) -> Proposals:
        pools, why = self.pools(board)
        live = [pool for pool in pools if pool.scored]
        why += [f"no run of {pool.name} tells {board.by}: {pool.tried[0][1].why}" for pool in pools if not pool.scored]
        known = {each.digest for each in board.record.variants}
        told = []
        for at, pool in enumerate(live):
            count = sum(1 for trial in range(self.search.trials) if (self._before(board) + trial) % len(live) == at)
            rulings, dry = self._drawn(board, pool, count, known)
            why += [dry] if dry else []
            told.append((pool.name, tuple(rulings)))
        return Proposals(tuple(told), tuple(why))

    def explain(self, board: ProposerInput, of: TriedVariant) -> tuple[Ruling, ...]:
        reason = f"{self.search.sampler} over {phrase('count.path', n=len(self.search.space))}"
        order = [each.variant.name for each, _ in rank_scored_variants(board.tried, board.by, board.better)]
        scored = score_variant(of, board.by)
        if not scored.values:
            return (Ruling(self.by, reason, "failed", scored.why),)
        means = f", the mean of {len(scored.values)} seeds" if len(scored.values) > 1 else ""
        because = f"{board.by} = {scored.mean:.6g}{means}, rank {order.index(of.variant.name) + 1} of {len(order)}"
        outside = next(
            (_explain_outside_space(pool, of) for pool in self.pools(board)[0] if _explain_outside_space(pool, of)), ""
        )
        return (Ruling(self.by, reason, "scored", f"{because}; {outside}" if outside else because),)

    def journal(self, board: ProposerInput, proposed: Mapping[str, Sequence[tuple[Variant, Any]]]) -> bytes:
        """Every study with what was tried, and what is proposed now (by its parent) as running."""
        pools, _ = self.pools(board)
        named = {f"loop-{pool.name}" if len(pools) > 1 else "loop": pool for pool in pools}
        studies = {
            name: (pool.knobs, [*pool.trials(), *_running_trials(pool, proposed)]) for name, pool in named.items()
        }
        return studies_as_optuna_journal(studies, board.better, self.search.sampler)

    def pools(self, board: ProposerInput) -> tuple[list[SearchPool], list[str]]:
        """In the order of their first variants; and why some variants are in none."""
        found: dict[str, list[tuple[TriedVariant, Any]]] = {}
        for each in board.tried:
            try:
                tree = parse_config(each.text, each.kind).tree if not each.trouble else None
            except UnreadableConfig:
                tree = None
            if tree is not None:
                found.setdefault(digest_outside_space(self.search.space, tree), []).append((each, tree))
        pools, why = [], []
        for members in found.values():
            try:
                knobs = fit_space_to_configs(self.search.space, *(tree for _, tree in members))
            except SpaceMisfit as misfit:
                why.append(f"{members[0][0].variant.name}: {misfit}")
                continue
            tried = tuple(
                (each, score_variant(each, board.by), locate_config_in_space(knobs, tree)[0]) for each, tree in members
            )
            pools.append(SearchPool(members[0][0], knobs, tried))
        return pools, why

    def _before(self, board: ProposerInput) -> int:
        """Trials of earlier rounds: the turn goes on where it stood."""
        return (board.round - 2) * self.search.trials

    def _drawn(self, board: ProposerInput, pool: SearchPool, count: int, known: set[str]) -> tuple[list[Ruling], str]:
        """So many proposals that nobody has tried, or fewer, and why."""
        rulings: list[Ruling] = []
        reason = self._reason(board, pool)
        for point in self._points(board, pool) if count else ():
            ruling = self._ruling(pool, point, reason)
            if ruling.outcome == "refused":
                return [*rulings, ruling], ""
            if ruling.proposal and ruling.proposal.digest not in known:
                known.add(ruling.proposal.digest)
                rulings.append(ruling)
            if len(rulings) == count:
                return rulings, ""
        return rulings, f"all {pool.few} points of {pool.name} have been tried" if count and pool.few else ""

    def _points(self, board: ProposerInput, pool: SearchPool) -> Iterator[SpacePoint]:
        """The sampler's; it may come back to the same ones, and where there are few, the others follow in any order."""
        seed = seed_from_parts(self.search.seed, board.round, pool.name)
        drawn = self.asked(self.search, pool.knobs, pool.trials(), board.better, seed)
        yield from itertools.islice(drawn, MOST_VAIN_DRAWS + self.search.trials)
        left = list(iterate_grid_points(pool.knobs)) if pool.few else []
        random.Random(seed).shuffle(left)
        yield from left

    def _ruling(self, pool: SearchPool, point: SpacePoint, reason: str) -> Ruling:
        edits = edits_for_point(pool.knobs, point)
        outcome, because, proposal = outcome_of_edits(self.by, reason, edits, pool.base.text, pool.base.kind, {})
        return Ruling(self.by, reason, outcome, because, None, proposal)

    def _reason(self, board: ProposerInput, pool: SearchPool) -> str:
        told = [each for each, scored, point in pool.tried if point and scored.values]
        if self.search.sampler == "random" or len(told) < STARTUP_SCORES:
            more = (
                ""
                if self.search.sampler == "random"
                else f", {self.search.sampler} begins with {STARTUP_SCORES} scores"
            )
            return f"drawn at random{more}"
        best, scored = rank_scored_variants(told, board.by, board.better)[0]
        return f"{self.search.sampler} of {len(told)} scores, the best {scored.mean:.4g} of {best.variant.name}"


def _running_trials(pool: SearchPool, proposed: Mapping[str, Sequence[tuple[Variant, Any]]]) -> Iterator[SearchTrial]:
    for variant, tree in proposed.get(pool.name, ()):
        point, _ = locate_config_in_space(pool.knobs, tree)
        if point:
            yield SearchTrial(point, None, running=True, told={"variant": variant.name, "round": variant.round})


def _trial_of_variant(each: TriedVariant, scored: VariantScore, point: SpacePoint) -> SearchTrial:
    if scored.cut:
        return SearchTrial(point, scored.cut[0], pruned_at=scored.cut[1], told=_trial_attributes(each, scored))
    return SearchTrial(point, scored.mean if scored.values else None, told=_trial_attributes(each, scored))


def _trial_attributes(each: TriedVariant, scored: VariantScore) -> dict[str, Any]:
    found: dict[str, Any] = {"variant": each.variant.name, "round": each.variant.round, "by": each.variant.by}
    if scored.values:
        return found | {"scores": list(scored.values)}
    return found | {"why": scored.why}


def _explain_outside_space(pool: SearchPool, of: TriedVariant) -> str:
    if all(each.variant.name != of.variant.name or point for each, _, point in pool.tried):
        return ""
    return (
        locate_config_in_space(pool.knobs, parse_config(of.text, of.kind).tree)[1]
        + ": the search does not learn from it"
    )
