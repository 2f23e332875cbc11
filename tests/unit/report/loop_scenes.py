"""Loops as their reports see them: made-up runs, real rules, gains and noise."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

from muster.app.loop.loop_facts import LoopFacts, LoopReportContext, LoopRunPlace, gather_loop_facts
from muster.model.campaign import Campaign, DeclaredLoop, Job, LoopDefault, LoopKeep, LoopRule
from muster.model.campaign_state import CampaignState, Intent
from muster.model.variant import LoopRecord, Variant
from muster.rules.metric_summary import Summarizer, Summary
from muster.rules.rank_variants import TriedVariant, VariantRun

ROOT = "/home/me/act"
AT = "2026-03-14T07:30:00.000+08:00"
LITTLE = LoopRule(
    'last("ot.pi_sum") < 0.05', ("ot.reg@mul=1.5", "ot.tau_*@mul=2"), "OT mass too small", name="little_mass"
)
LARGE = LoopRule('max("grad_norm") > 10', ("lr@mul=0.5",), "gradient norm too large", name="large_gradient")
NEVER = LoopRule('missing("ot.pi_sum")', ("lr@mul=1.1",), "no mass was logged")
KEEP = LoopKeep(by='last("train.l1")', better="lower")
SETTINGS = DeclaredLoop(
    "train", (), 3, rules=(LITTLE, LARGE, NEVER), default=LoopDefault(("ot.lambda@mul=0.9",), "mild OT"), keep=KEEP
)  # fmt: skip


def summary(key: str, *values: float) -> Summary:
    found = Summarizer(key)
    for step, value in enumerate(values):
        found.add(step, value)
    return found.summary()


def run(cell: str, l1: float, **more: Any) -> VariantRun:
    made = {
        "train.l1": (0.8, l1 * 1.1, l1),
        "ot.pi_sum": (0.01, 0.04),
        "grad_norm": (math.nan, 2.0, 1.5),
        "_runtime": (1.0, 9.0),
    }
    return VariantRun(cell, "DONE", summaries={key: summary(key, *values) for key, values in made.items()}, **more)


def tried(name: str, number: int, runs: Sequence[VariantRun], **more: Any) -> TriedVariant:
    folder = "configs" if number == 1 else f"loop/round-{number}"
    return TriedVariant(
        Variant(name, f"{ROOT}/{folder}/{name}.json", number, f"digest of {name}", **more), tuple(runs), "{}"
    )


def facts(
    all_tried: Sequence[TriedVariant], settings: DeclaredLoop = SETTINGS, *, language: str = "en", stopped: str = "",
    busy: bool = True, urls: dict[str, str] | None = None,
) -> LoopFacts:  # fmt: skip
    newest = max(each.variant.round for each in all_tried)
    campaign = Campaign("act_ot", (), (Job("train", (), ("train",)),), language=language)
    record = LoopRecord(tuple(each.variant for each in all_tried), newest, stopped)
    state = CampaignState(campaign, "h", "", Intent(), 1, loop=record)
    places = {
        one.cell: LoopRunPlace(f"{ROOT}/outputs/{one.cell}", (urls or {}).get(one.cell, ""))
        for each in all_tried for one in each.runs if one.verdict != "PENDING"
    }  # fmt: skip
    return gather_loop_facts(
        state, all_tried, settings, LoopReportContext(AT, "0.4.0", ROOT, settings.rounds, busy, places)
    )


def seeds(name: str, *values: float) -> list[VariantRun]:
    return [run(f"train/{name}/{seed}", value) for seed, value in enumerate(values)]


def small(language: str = "en") -> LoopFacts:
    """Two bases with three seeds each, one that died, two rounds, a W&B address, a gain beyond the noise."""
    little = {"edits": LITTLE.edit, "reason": LITTLE.reason, "by": "little_mass"}
    dead = VariantRun(
        "train/wide|deep/0",
        "DEAD",
        "exit code 3: torch.cuda.OutOfMemoryError",
        unread="nothing that it logged is in out",
    )
    made = [
        tried("baseline", 1, seeds("baseline", 0.50, 0.52, 0.51), by="base"),
        tried("tau2", 1, seeds("tau2", 0.47, 0.49, 0.48), by="base"),
        tried("wide|deep", 1, [dead], by="base"),
        tried("baseline_1c9f3a", 2, seeds("baseline_1c9f3a", 0.40, 0.42, 0.41), parent="baseline", **little),
        tried("tau2_77de01", 2, seeds("tau2_77de01", 0.47, 0.50, 0.52), parent="tau2", **little),
    ]
    return facts(
        made, language=language, stopped="all 2 rounds are done",
        urls={"train/baseline/0": "https://wandb.ai/me/act/runs/ab12"},
    )  # fmt: skip


def large(bases: int, rounds: int, per: int, repeats: int, *, keep: int = 0, seed: int = 1) -> LoopFacts:
    """A made-up search: each child a little better or worse than its parent; every ninth dies; the last round waits."""
    chance = random.Random(seed)
    level: dict[str, float] = {}
    made: list[TriedVariant] = []

    def add(name: str, number: int, true: float, **more: Any) -> None:
        level[name] = true
        if len(made) % 9 == 7:
            runs = [
                VariantRun(
                    f"train/{name}/0", "DEAD", "exit code 137: killed by the kernel: out of memory", unread="nothing"
                )
            ]
        else:
            runs = seeds(name, *(true + chance.gauss(0, 0.02) for _ in range(repeats)))
        made.append(tried(name, number, runs, **more))

    for at in range(bases):
        add(f"act_fr3_ot_99_20_baseline{at}", 1, 0.6 + chance.gauss(0, 0.05), by="base")
    for number in range(2, rounds + 1):
        pool = [each for each in made if each.runs[0].verdict == "DONE"]
        parents = sorted(pool, key=lambda each: level[each.variant.name])[:keep] if keep else [
            each for each in pool if each.variant.round == number - 1]  # fmt: skip
        for parent in parents:
            for _ in range(per):
                rule = chance.choice([LITTLE, LARGE])
                stem = parent.variant.name.partition("_x")[0]
                name = f"{stem}_x{chance.randrange(16**6):06x}"
                true = level[parent.variant.name] - abs(chance.gauss(0.02, 0.04)) * chance.choice([1, 1, -1])
                add(name, number, true, parent=parent.variant.name, edits=rule.edit, reason=rule.reason, by=rule.name)
    return facts(made, stopped=f"all {rounds} rounds are done")
