"""Says beforehand where the exact permutation test can only inform: so few seeds allow no p that small."""

from __future__ import annotations

from collections.abc import Iterator

from muster.model.campaign import Campaign
from muster.model.errors import Mistake
from muster.text.phrases import phrase


def warn_exact_test_cannot_veto(campaign: Campaign) -> Iterator[Mistake]:
    decision = campaign.decision
    axes = {axis.name: len(axis.values) for axis in campaign.axes}
    seeds, candidates = axes.get("seed", 0), axes.get("config", 0) - 1
    if decision is None or seeds < 2 or candidates < 1:
        return
    from muster.stats.decision_procedure import DecisionProcedure, exact_test_can_veto
    from muster.stats.samples import least_permutation_p  # numpy: nobody pays for it who declares no decision

    declared = DecisionProcedure(decision.baseline, alpha=decision.alpha, looks=decision.looks)
    least = least_permutation_p(seeds, seeds)
    if exact_test_can_veto(declared, seeds, candidates):
        return
    looks, asked = len(declared.looks), declared.alpha_a_look / candidates
    counts = phrase("count.seed", n=seeds), phrase("count.candidate", n=candidates), phrase("count.look", n=looks)
    with_ = "{}, {} and {}".format(*counts)
    why = f" (its smallest is {least:.3g})" if least is not None else " (it is not run on so many)"
    yield Mistake(
        f"with {with_} the permutation test can't reach p <= {asked:.3g}{why}: it informs and does not veto",
        path="decision",
        level="note",
    )
