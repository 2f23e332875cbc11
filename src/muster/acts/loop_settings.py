"""What a campaign's `loop:` asks for, ready to use: rules parsed, the ready set filled in, the space read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from muster.rounds.pruning import PruneRule, key_of
from muster.rounds.ready import READY
from muster.rounds.rules import Default, Rule
from muster.rounds.space import Search, space_of


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
    default: Default | None = None
    no_gain: int | None = None
    target: str = ""  # a condition: one run that meets it ends the loop
    search: Search | None = None  # instead of rules
    prune: PruneRule | None = None  # which runs are stopped before their end
    entry: str = ""  # a function that proposes, instead of rules


def loop_settings(loop: Mapping[str, Any]) -> LoopSettings:
    keep, stop, default = loop.get("keep") or {}, loop.get("stop") or {}, loop.get("default")
    ready = READY[loop["use"]]() if loop.get("use") else None
    own = tuple(_rule(each) for each in loop.get("rules", ()))
    fallback = Default(tuple(default["edit"]), default["reason"]) if default else None
    search = _search(loop["search"]) if loop.get("search") else None
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
        prune=_prune(loop["prune"], keep) if loop.get("prune") else None,
        entry=loop.get("propose") or "",
    )


def _prune(written: Mapping[str, Any], keep: Mapping[str, Any]) -> PruneRule:
    key = written.get("key") or key_of(keep["by"]) or ""
    return PruneRule(key, keep.get("better", "higher"), int(written.get("after", 0)), int(written.get("least", 4)))


def _search(written: Mapping[str, Any]) -> Search:
    return Search(
        space_of(written["space"]), written.get("sampler", "tpe"), int(written.get("trials_per_round", 4)),
        int(written.get("seed", 0)),
    )  # fmt: skip


def _rule(written: Mapping[str, Any]) -> Rule:
    return Rule(
        written["when"],
        tuple(written["edit"]),
        written["reason"],
        int(written.get("priority") or 0),
        written.get("limit"),
        written.get("name") or "",
    )
