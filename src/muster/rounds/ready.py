"""Rule sets that come with Muster. `act_ot`: imitation with action chunks and an optimal-transport loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from muster.rounds.rules import Default, Rule

LITTLE_MASS = 0.05  # of 1: most of it is thrown away, the plan aligns next to nothing
MUCH_MASS = 0.5
FLAT_PCT = -2.0  # a cost that fell by less than 2 % did not fall
LARGE_GRADIENT = 10.0


@dataclass(frozen=True, slots=True)
class RuleSet:
    rules: tuple[Rule, ...]
    default: Default | None = None


def act_ot(
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
                (f"{plan}.reg@mul=1.5@max=1", f"{plan}.tau_src@mul=2@max=10", f"{plan}.tau_tgt@mul=2@max=10",
                 f"{ot}.window@mul=1.5@max=10"),
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
        Default((f"{weight}@mul=0.9@min=0.01", f"{plan}.reg@mul=1.1@max=1"), "mild OT"),
    )  # fmt: skip


READY: Mapping[str, Callable[..., RuleSet]] = {"act_ot": act_ot}
