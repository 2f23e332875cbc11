"""The settings of a campaign's `loop:`, ready to use: rules parsed, a rule set of ours added, the search space read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from muster.rules.proposal_rules import DefaultEdits, Rule
from muster.rules.rank_variants import PruneRule, single_key_of_expression
from muster.rules.search_space import SearchSettings, read_search_space


@dataclass(frozen=True, slots=True)
class RuleSet:
    rules: tuple[Rule, ...]
    default: DefaultEdits | None = None


@dataclass(frozen=True, slots=True)
class LoopSettings:
    job: str
    rounds: int = 1
    per_run: int = 1
    repeats: int = 1
    top: int | None = None  # how many the next round builds on; None: all of this one
    by: str = ""  # the expression that ranks
    better: str = "higher"
    rules: tuple[Rule, ...] = ()
    default: DefaultEdits | None = None
    no_gain: int | None = None
    target: str = ""  # a condition: one run that meets it ends the loop
    search: SearchSettings | None = None  # instead of rules
    prune: PruneRule | None = None  # which runs are stopped before their end
    entry: str = ""  # a function that proposes, instead of rules


def parse_loop_settings(loop: Mapping[str, Any]) -> LoopSettings:
    keep, stop, default = loop.get("keep") or {}, loop.get("stop") or {}, loop.get("default")
    ready = read_ready_rules(loop["use"]) if loop.get("use") else None
    own = tuple(_read_proposal_rule(each) for each in loop.get("rules", ()))
    fallback = _read_default_edits(default) if default else None
    search = _read_search_settings(loop["search"]) if loop.get("search") else None
    return LoopSettings(
        job=loop["job"],
        rounds=int(loop.get("rounds", 1)),
        per_run=search.trials if search else int(loop.get("variants_per_run", 1)),
        repeats=int(loop.get("repeats", 1)),
        top=keep.get("top"),
        by=keep.get("by", ""),
        better=keep.get("better", "higher"),
        rules=(*own, *(ready.rules if ready else ())),
        default=fallback or (ready.default if ready else None),
        no_gain=stop.get("no_gain"),
        target=stop.get("target") or "",
        search=search,
        prune=_read_prune_rule(loop["prune"], keep) if loop.get("prune") else None,
        entry=loop.get("propose") or "",
    )


def _read_prune_rule(written: Mapping[str, Any], keep: Mapping[str, Any]) -> PruneRule:
    key = written.get("key") or single_key_of_expression(keep["by"]) or ""
    return PruneRule(key, keep.get("better", "higher"), int(written.get("after", 0)), int(written.get("least", 4)))


def _read_search_settings(written: Mapping[str, Any]) -> SearchSettings:
    return SearchSettings(
        read_search_space(written["space"]),
        written.get("sampler", "tpe"),
        int(written.get("trials_per_round", 4)),
        int(written.get("seed", 0)),
    )


@cache
def read_ready_rules(name: str) -> RuleSet:
    """A set that comes with Muster, for `loop: {use: name}`. It is written as a campaign's own rules are."""
    import tomllib  # most loops have rules of their own

    written = tomllib.loads((Path(__file__).parent / "ready" / f"{name}.toml").read_text("utf-8"))
    return RuleSet(tuple(map(_read_proposal_rule, written["rules"])), _read_default_edits(written["default"]))


def _read_default_edits(written: Mapping[str, Any]) -> DefaultEdits:
    return DefaultEdits(tuple(written["edit"]), written["reason"])


def _read_proposal_rule(written: Mapping[str, Any]) -> Rule:
    return Rule(
        written["when"],
        tuple(written["edit"]),
        written["reason"],
        int(written.get("priority") or 0),
        written.get("limit"),
        written.get("name") or "",
    )
