"""Looks at the histories of a loop's runs while they run, and says which of them are hopeless."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from muster.app.metrics.cell_history import (
    AttemptTrace,
    attempt_that_counts,
    has_newest_attempt_logged,
    runs_logged_in_chain,
)
from muster.engine.ports.clock import Clock
from muster.engine.ports.extension import NOTHING_OBSERVED, ControllerExtension, Observation, StopRequest
from muster.model.attempt import Attempt, AttemptKey, CellRecord
from muster.model.campaign_state import CampaignState
from muster.model.variant import VARIANT_AXIS
from muster.readers.background_reader import BackgroundReader
from muster.readers.discovery.folder_walk import LogSource
from muster.readers.records.metric_reader import MetricReader, MetricRows
from muster.rules.evaluate_expressions import is_same_key, names_matching_key
from muster.rules.loop_settings import prune_rule_of_loop
from muster.rules.rank_variants import BestValueTrail, PruneRule, explain_hopeless_run

PRUNE_EVERY_S = 5.0
FIND_PATIENCE_S = 1.0  # for finding the files of one run; what lies near is found first


@dataclass(slots=True)
class _FollowedSource:
    """One source of a run, and the trails of those of its keys that the rule may mean."""

    reader: MetricReader
    prefix: str
    label: str = ""
    trails: dict[str, BestValueTrail] = field(default_factory=dict)
    some: bool = False  # whether it has held any value

    def read(self, rule: PruneRule) -> bool:
        """What is new; False: it can't be read now. Raises nothing: a run may leave anything behind."""
        try:
            for rows in self.reader.read():
                self._take(rows, rule)
        except OSError:
            return False
        except Exception:  # no look will ever read it
            return True
        return True

    def _take(self, rows: MetricRows, rule: PruneRule) -> None:
        if rows.fresh:
            self.trails.clear()
        self.some |= bool(rows.columns)
        for key, column in rows.columns.items():
            name = self.prefix + key
            if self.label and is_same_key(f"{self.label}/{name}", rule.key):
                name = f"{self.label}/{name}"
            if is_same_key(name, rule.key):
                self.trails.setdefault(name, BestValueTrail(rule.better)).add_many(*column)


class FollowedRun:
    """One run: what it logged under the rule's key. Used by one thread at a time."""

    def __init__(self, variant: str, rule: PruneRule) -> None:
        self.variant = variant
        self.over = False
        self._rule = rule
        self._sources: dict[tuple[str, str, str], _FollowedSource] = {}  # in the order of trust
        self._newest = (
            False  # whether the newest attempt is among them: until it logs, only what was before it is known
        )

    def look(self, chain: Callable[[], Sequence[AttemptTrace]], ended: bool) -> BestValueTrail:
        """What is new is taken in. Raises nothing: what nobody can read prunes nobody and stops no controller."""
        fine = False
        try:
            if self._meant() is None or not self._newest:
                self._find(chain())
            fine = False not in [each.read(self._rule) for each in self._sources.values()]
        except OSError:
            pass  # its files are looked for again at the next look
        except Exception:  # as above: whatever lies there
            fine = True
        self.over = ended and fine
        return self.trail()

    def trail(self) -> BestValueTrail:
        """A copy: the next look may go on with the other one while this one is asked."""
        meant = self._meant()
        if meant is None:
            return BestValueTrail(self._rule.better)
        return BestValueTrail(meant.better, list(meant.steps), list(meant.bests), meant.last)

    def _meant(self) -> BestValueTrail | None:
        """Of the one key that the rule means, from the source that is trusted most; None: there is none yet."""
        held = [each.trails for each in self._sources.values()]
        names = names_matching_key(self._rule.key, {name: None for trails in held for name in trails})
        return next((trails[names[0]] for trails in held if names[0] in trails), None) if len(names) == 1 else None

    def _find(self, chain: Sequence[AttemptTrace]) -> None:
        """Anew, until the key was found: a run may begin with its log and open its metrics late."""
        for run, _ in runs_logged_in_chain(chain, FIND_PATIENCE_S):
            if run is None:
                continue
            self._newest = has_newest_attempt_logged(chain, run)
            self._sources = {
                _identify_source(each): self._sources.get(_identify_source(each)) or _follow_source(each)
                for each in run.sources
            }
            for each in self._sources.values():
                each.read(self._rule)
            if any(each.some for each in self._sources.values()):
                return  # as those read it who rank the runs: what was printed counts where nothing else does


def _identify_source(source: LogSource) -> tuple[str, str, str]:
    return source.kind, source.path, source.prefix


def _follow_source(source: LogSource) -> _FollowedSource:
    return _FollowedSource(source.make(), source.prefix, source.label)


@dataclass(slots=True)
class RunPruner(ControllerExtension):
    """`chain_of`: where the numbers of an attempt may lie, and of those that it goes on from."""

    chain_of: Callable[[CellRecord, Attempt], Sequence[AttemptTrace]]
    clock: Clock
    _rule: PruneRule | None = None
    _runs: dict[AttemptKey, FollowedRun] = field(default_factory=dict)
    _next: float = 0.0
    _shift: BackgroundReader[AttemptKey, BestValueTrail] = field(init=False)

    def __post_init__(self) -> None:
        self._begin(None)

    def _begin(self, rule: PruneRule | None) -> None:
        """With nothing known: another rule may be about another key."""
        self._rule, self._runs, self._next = rule, {}, 0.0
        self._shift = BackgroundReader(self.clock)  # apart from the loop: a history may be long, a file system may hang

    def observe(self, state: CampaignState, *, polling: bool) -> Observation:
        return Observation(stops=self._stops(state)) if polling else NOTHING_OBSERVED

    def _stops(self, state: CampaignState) -> dict[AttemptKey, StopRequest]:
        loop = state.campaign.loop
        rule = prune_rule_of_loop(loop) if loop else None
        if loop is None or rule is None:
            return {}
        if rule != self._rule:
            self._begin(rule)
        now = self.clock.boot()
        if now >= self._next:
            self._next = now + PRUNE_EVERY_S
            self._look(state, loop.job, rule)
        hopeless = self._hopeless(rule, state.job(loop.job).steps)
        return {key: StopRequest("pruned", why, only_running=True) for key, why in hopeless}

    def _look(self, state: CampaignState, job: str, rule: PruneRule) -> None:
        asks: dict[AttemptKey, Callable[[], BestValueTrail]] = {}
        for cell in state.cells.values():
            attempt = cell.open or attempt_that_counts(cell)
            if attempt is None or cell.cell.job != job:
                continue
            known = self._runs.get(attempt.key)
            if known is None:
                known = self._runs[attempt.key] = FollowedRun(cell.cell.value(VARIANT_AXIS).name, rule)
            if not known.over:
                chain = partial(self.chain_of, cell, attempt)
                asks[attempt.key] = partial(known.look, chain, attempt.outcome is not None)
        if asks:
            self._shift.read(asks)

    def _hopeless(self, rule: PruneRule, steps: int | None) -> Iterator[tuple[AttemptKey, str]]:
        trails = {key: read.value for key, read in list(self._shift.newest.items())}
        for key, mine in trails.items():
            if not self._runs[key].over:
                others = [
                    each for other, each in trails.items() if self._runs[other].variant != self._runs[key].variant
                ]
                if why := explain_hopeless_run(rule, mine, others, steps):
                    yield key, why
