"""Rule sets that come with Muster, and which runs of a loop are stopped before their end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from muster.model.campaign import DeclaredLoop, LoopDefault, LoopRule
from muster.rules.rank_variants import PruneRule, single_key_of_expression


@dataclass(frozen=True, slots=True)
class RuleSet:
    rules: tuple[LoopRule, ...]
    default: LoopDefault


def add_ready_rules(loop: DeclaredLoop) -> DeclaredLoop:
    """With those of `use:` behind its own."""
    if loop.use is None:
        return loop
    ready = read_ready_rules(loop.use)
    return replace(loop, rules=(*loop.rules, *ready.rules), default=loop.default or ready.default)


def prune_rule_of_loop(loop: DeclaredLoop) -> PruneRule | None:
    if loop.prune is None:
        return None
    key = loop.prune.key or (loop.by and single_key_of_expression(loop.by)) or ""
    return PruneRule(key, loop.better, loop.prune.after, loop.prune.least)


@cache
def read_ready_rules(name: str) -> RuleSet:
    """A set that comes with Muster, for `loop: {use: name}`. It is written as a campaign's own rules are."""
    import tomllib  # most loops have rules of their own

    written = tomllib.loads((Path(__file__).parent / "ready" / f"{name}.toml").read_text("utf-8"))
    rules = (LoopRule(**{**each, "edit": tuple(each["edit"])}) for each in written["rules"])
    return RuleSet(tuple(rules), LoopDefault(tuple(written["default"]["edit"]), written["default"]["reason"]))
