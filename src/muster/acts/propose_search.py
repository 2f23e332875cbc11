"""A search as a proposer: points of a space, by a sampler that is told every score so far.

Configs that differ outside the space can't be compared, and each kind of them is searched by itself: a pool. The
trials of a round are dealt to the pools in turn.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from muster.acts import study
from muster.acts.study import STARTUP, Trial
from muster.domain.variants import SEARCH, Variant
from muster.domain.wording import counted
from muster.ports.proposer import Board, Proposals
from muster.rounds.config import UnreadableConfig
from muster.rounds.rules import Ruling, outcome_of
from muster.rounds.space import Knob, Point, Search, SpaceMisfit, edits_of, fitted, grid, point_of, points, rest_of
from muster.rounds.texts import read_config
from muster.rounds.tried import Score, Tried, ranked, score

TRIES = 50  # points in vain, before those that are left are looked for one by one
MOST_GRID = 10_000
Asked = Callable[[Search, Sequence[Knob], Sequence[Trial], str, int], Iterator[Point]]


@dataclass(frozen=True, slots=True)
class Pool:
    """Variants that differ in the space alone."""

    base: Tried  # whose config the edits are of
    knobs: tuple[Knob, ...]
    tried: tuple[tuple[Tried, Score, Point], ...]  # an empty point: outside the space

    @property
    def name(self) -> str:
        return self.base.variant.name

    @property
    def scored(self) -> bool:
        return any(scored.values for _, scored, _ in self.tried)

    @property
    def few(self) -> int:
        """How many points there are, if they can be gone through one by one; else 0."""
        many = points(self.knobs)
        return many if many is not None and many <= MOST_GRID else 0

    def trials(self) -> list[Trial]:
        return [_trial(each, scored, point) for each, scored, point in self.tried if point]


@dataclass(frozen=True, slots=True)
class SearchProposer:
    search: Search
    asked: Asked = field(default=study.asked)

    @property
    def by(self) -> str:
        return f"{SEARCH}{self.search.sampler}"

    def propose(self, board: Board) -> Proposals:
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

    def explain(self, board: Board, of: Tried) -> tuple[Ruling, ...]:
        reason = f"{self.search.sampler} over {counted(len(self.search.space), 'path')}"
        order = [each.variant.name for each, _ in ranked(board.tried, board.by, board.better)]
        scored = score(of, board.by)
        if not scored.values:
            return (Ruling(self.by, reason, "failed", scored.why),)
        means = f", the mean of {len(scored.values)} seeds" if len(scored.values) > 1 else ""
        because = f"{board.by} = {scored.mean:.6g}{means}, rank {order.index(of.variant.name) + 1} of {len(order)}"
        outside = next((_outside(pool, of) for pool in self.pools(board)[0] if _outside(pool, of)), "")
        return (Ruling(self.by, reason, "scored", f"{because}; {outside}" if outside else because),)

    def journal(self, board: Board, proposed: Mapping[str, Sequence[tuple[Variant, Any]]]) -> bytes:
        """Every study with what was tried, and what is proposed now (by its parent) as running."""
        pools, _ = self.pools(board)
        named = {f"loop-{pool.name}" if len(pools) > 1 else "loop": pool for pool in pools}
        studies = {name: (pool.knobs, [*pool.trials(), *_running(pool, proposed)]) for name, pool in named.items()}
        return study.journal(studies, board.better, self.search.sampler)

    def pools(self, board: Board) -> tuple[list[Pool], list[str]]:
        """In the order of their first variants; and why some variants are in none."""
        found: dict[str, list[tuple[Tried, Any]]] = {}
        for each in board.tried:
            try:
                tree = read_config(each.text, each.kind).tree if not each.trouble else None
            except UnreadableConfig:
                tree = None
            if tree is not None:
                found.setdefault(rest_of(self.search.space, tree), []).append((each, tree))
        pools, why = [], []
        for members in found.values():
            try:
                knobs = fitted(self.search.space, *(tree for _, tree in members))
            except SpaceMisfit as misfit:
                why.append(f"{members[0][0].variant.name}: {misfit}")
                continue
            tried = tuple((each, score(each, board.by), point_of(knobs, tree)[0]) for each, tree in members)
            pools.append(Pool(members[0][0], knobs, tried))
        return pools, why

    def _before(self, board: Board) -> int:
        """Trials of earlier rounds: the turn goes on where it stood."""
        return (board.round - 2) * self.search.trials

    def _drawn(self, board: Board, pool: Pool, count: int, known: set[str]) -> tuple[list[Ruling], str]:
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

    def _points(self, board: Board, pool: Pool) -> Iterator[Point]:
        """The sampler's; it may come back to the same ones, and where there are few, the others follow in any order."""
        seed = study.seed_of(self.search.seed, board.round, pool.name)
        drawn = self.asked(self.search, pool.knobs, pool.trials(), board.better, seed)
        yield from itertools.islice(drawn, TRIES + self.search.trials)
        left = list(grid(pool.knobs)) if pool.few else []
        random.Random(seed).shuffle(left)
        yield from left

    def _ruling(self, pool: Pool, point: Point, reason: str) -> Ruling:
        edits = edits_of(pool.knobs, point)
        outcome, because, proposal = outcome_of(self.by, reason, edits, pool.base.text, pool.base.kind, {})
        return Ruling(self.by, reason, outcome, because, None, proposal)

    def _reason(self, board: Board, pool: Pool) -> str:
        told = [each for each, scored, point in pool.tried if point and scored.values]
        if self.search.sampler == "random" or len(told) < STARTUP:
            more = "" if self.search.sampler == "random" else f", {self.search.sampler} begins with {STARTUP} scores"
            return f"drawn at random{more}"
        best, scored = ranked(told, board.by, board.better)[0]
        return f"{self.search.sampler} of {len(told)} scores, the best {scored.mean:.4g} of {best.variant.name}"


def _running(pool: Pool, proposed: Mapping[str, Sequence[tuple[Variant, Any]]]) -> Iterator[Trial]:
    for variant, tree in proposed.get(pool.name, ()):
        point, _ = point_of(pool.knobs, tree)
        if point:
            yield Trial(point, None, running=True, told={"variant": variant.name, "round": variant.round})


def _trial(each: Tried, scored: Score, point: Point) -> Trial:
    if scored.cut:
        return Trial(point, scored.cut[0], pruned_at=scored.cut[1], told=_told(each, scored))
    return Trial(point, scored.mean if scored.values else None, told=_told(each, scored))


def _told(each: Tried, scored: Score) -> dict[str, Any]:
    found: dict[str, Any] = {"variant": each.variant.name, "round": each.variant.round, "by": each.variant.by}
    if scored.values:
        return found | {"scores": list(scored.values)}
    return found | {"why": scored.why}


def _outside(pool: Pool, of: Tried) -> str:
    if all(each.variant.name != of.variant.name or point for each, _, point in pool.tried):
        return ""
    return point_of(pool.knobs, read_config(of.text, of.kind).tree)[1] + ": the search does not learn from it"
