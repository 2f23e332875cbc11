"""The settings of a campaign's `loop:`, ready to use: rules parsed, built-in rule sets filled in (`act_ot`: imitation
with action chunks and an optimal-transport loss), the search space read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from muster.rules.proposal_rules import DefaultEdits, Rule
from muster.rules.rank_variants import PruneRule, single_key_of_expression
from muster.rules.search_space import SearchSettings, read_search_space

LITTLE_MASS = 0.05  # of 1: most of it is thrown away, the plan aligns next to nothing
MUCH_MASS = 0.5
FLAT_PCT = -2.0  # a cost that fell by less than 2 % did not fall
LARGE_GRADIENT = 10.0


@dataclass(frozen=True, slots=True)
class RuleSet:
    rules: tuple[Rule, ...]
    default: DefaultEdits | None = None


def act_ot_rule_set(
    *,
    pi_sum: str = "ot.pi_sum",
    pi_diag: str = "ot.pi_diag",
    cost: str = "ot.cost",
    l1: str = "train.l1",
    loss: str = "loss",
    grad_norm: str = "grad_norm",
    ot: str = "ot",
    lr: str = "optimizer.lr",
    weight_decay: str = "optimizer.weight_decay",
    batch: str = "batch_size",
) -> RuleSet:
    """The keys of the metrics, and where things stand in the config."""
    plan, label = f"{ot}.loss_config", f"{ot}.loss_config.features.*.weight_label"
    weight = f"{ot}.lambda_ot"
    many = f'last("{pi_sum}") >= {MUCH_MASS} or last("{pi_diag}") >= {MUCH_MASS}'
    flat = f'delta_pct("{l1}") > {FLAT_PCT} or missing("{l1}") and delta_pct("{loss}") > {FLAT_PCT}'
    return RuleSet(
        (
            Rule(
                f'last("{pi_sum}") < {LITTLE_MASS}',
                (
                    f"{plan}.reg@mul=1.5@max=1",
                    f"{plan}.tau_src@mul=2@max=10",
                    f"{plan}.tau_tgt@mul=2@max=10",
                    f"{ot}.window@mul=1.5@max=10",
                ),
                "OT mass too small: larger reg and tau, wider window",
                name="act_ot.little_mass",
            ),
            Rule(
                f'({many}) and delta_pct("{cost}") > {FLAT_PCT}',
                (f"{label}@mul=0.5@min=0.0001", f"{weight}@mul=0.9@min=0.01"),
                "OT mass high and its cost does not fall: lower label weight, slightly lower lambda",
                name="act_ot.flat_cost",
            ),
            Rule(
                flat,
                (f"{lr}@mul=1.2@max=0.01", f"{batch}@mul=1.25@max=256"),
                "L1 does not fall: slightly larger learning rate and batch",
                name="act_ot.flat_l1",
            ),
            Rule(
                f'window("{grad_norm}", 50).mean > {LARGE_GRADIENT} or nan("{grad_norm}") > 0',
                (f"{lr}@mul=0.5@min=1e-7", f"{weight_decay}@mul=2@max=0.1"),
                "gradient norm too large: lower learning rate, more regularisation",
                priority=1,  # before a larger learning rate is tried
                name="act_ot.large_gradient",
            ),
        ),
        DefaultEdits((f"{weight}@mul=0.9@min=0.01", f"{plan}.reg@mul=1.1@max=1"), "mild OT"),
    )


READY_RULE_SETS: Mapping[str, Callable[..., RuleSet]] = {"act_ot": act_ot_rule_set}


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
    ready = READY_RULE_SETS[loop["use"]]() if loop.get("use") else None
    own = tuple(_read_proposal_rule(each) for each in loop.get("rules", ()))
    fallback = DefaultEdits(tuple(default["edit"]), default["reason"]) if default else None
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


def _read_proposal_rule(written: Mapping[str, Any]) -> Rule:
    return Rule(
        written["when"],
        tuple(written["edit"]),
        written["reason"],
        int(written.get("priority") or 0),
        written.get("limit"),
        written.get("name") or "",
    )
