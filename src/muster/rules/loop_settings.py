"""The settings of a campaign's `loop:`, ready to use: rules parsed, a rule set of ours added, the search space read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from muster.model.campaign import DeclaredLoop, LoopDefault, LoopRule
from muster.rules.rank_variants import PruneRule, single_key_of_expression
from muster.rules.search_space import SearchSettings, resolve_search_settings


@dataclass(frozen=True, slots=True)
class RuleSet:
    rules: tuple[LoopRule, ...]
    default: LoopDefault | None = None


@dataclass(frozen=True, slots=True)
class LoopSettings:
    job: str
    rounds: int = 1
    per_run: int = 1
    repeats: int = 1
    top: int | None = None  # how many the next round builds on; None: all of this one
    by: str = ""  # the expression that ranks
    better: str = "higher"
    rules: tuple[LoopRule, ...] = ()
    default: LoopDefault | None = None
    no_gain: int | None = None
    target: str = ""  # a condition: one run that meets it ends the loop
    search: SearchSettings | None = None  # instead of rules
    entry: str = ""  # a function that proposes, instead of rules


def resolve_loop_settings(loop: DeclaredLoop) -> LoopSettings:
    ready = read_ready_rules(loop.use) if loop.use else None
    search = resolve_search_settings(loop.search) if loop.search else None
    return LoopSettings(
        job=loop.job,
        rounds=loop.rounds,
        per_run=search.trials if search else loop.variants_per_run,
        repeats=loop.repeats,
        top=loop.keep.top if loop.keep else None,
        by=loop.keep.by if loop.keep else "",
        better=loop.keep.better if loop.keep else "higher",
        rules=(*loop.rules, *(ready.rules if ready else ())),
        default=loop.default or (ready.default if ready else None),
        no_gain=loop.stop.no_gain,
        target=loop.stop.target or "",
        search=search,
        entry=loop.propose or "",
    )


def prune_rule_of_loop(loop: DeclaredLoop) -> PruneRule | None:
    if loop.prune is None:
        return None
    key = loop.prune.key or (single_key_of_expression(loop.keep.by) if loop.keep else None) or ""
    better = loop.keep.better if loop.keep else "higher"
    return PruneRule(key, better, loop.prune.after, loop.prune.least)


@cache
def read_ready_rules(name: str) -> RuleSet:
    """A set that comes with Muster, for `loop: {use: name}`. It is written as a campaign's own rules are."""
    import tomllib  # most loops have rules of their own

    written = tomllib.loads((Path(__file__).parent / "ready" / f"{name}.toml").read_text("utf-8"))
    rules = (LoopRule(**{**each, "edit": tuple(each["edit"])}) for each in written["rules"])
    return RuleSet(tuple(rules), LoopDefault(tuple(written["default"]["edit"]), written["default"]["reason"]))
