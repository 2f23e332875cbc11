"""Random campaigns: jobs with axes and needs, slots, retry policies, timeouts, signals; and random changes of them."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from muster.engine.plan.scheduling import slots_needed
from muster.model.campaign import (
    Axis,
    AxisValue,
    Campaign,
    DeclaredFinish,
    DeclaredProgress,
    Job,
    Money,
    Proof,
    Slots,
    SlotUse,
    StepProof,
)
from muster.model.cell import list_campaign_cells
from simulator.campaign_runs import Habit

METRICS = DeclaredProgress("jsonl", "metrics.jsonl", "step")
CHECKPOINT = DeclaredProgress("checkpoint", "checkpoint.ckpt")
STDOUT = DeclaredProgress("stdout", r"step (\d+)")
LOOKS = 700  # polls that a campaign should take at most: what is long is polled less often


@dataclass(frozen=True, slots=True)
class Made:
    campaign: Campaign
    habits: dict[str, Habit]
    poll_s: float
    lasts_s: float  # about how long the whole campaign takes


def make_campaign(rng: random.Random) -> Made:
    while True:
        campaign = _campaign(rng)
        count = len(list_campaign_cells(campaign))
        if 4 <= count <= 30:
            break
    mean = rng.choice((60.0, 150.0, 600.0, 1800.0, 5400.0))
    fails, hangs = rng.choice((0.0, 0.1, 0.25)), rng.choice((0.0, 0.03, 0.1))
    habits = {
        job.name: Habit(mean * rng.choice((0.3, 1.0)), fails, hangs, rng.choice((0.3, 1.0, 4.0)))
        for job in campaign.jobs
    }
    slots = _slot_count(campaign.slots)
    lasts = sum(habits[cell.job].mean_s for cell in list_campaign_cells(campaign)) / max(1, slots) * 1.4
    poll = min(60.0, max(5.0, lasts * slots / LOOKS))
    timed = _timed(rng, campaign, habits)
    whole = replace(timed, money=_money(timed, habits), finish=_finish(timed))
    return Made(whole, habits, round(poll), lasts)


def _finish(campaign: Campaign) -> DeclaredFinish | None:
    """Some ask for a power-off at the end. Drawn apart, as the budget is."""
    own = random.Random(f"finish of {campaign!r}")
    return DeclaredFinish(shutdown=True, countdown=own.choice((0.0, 60.0))) if own.random() < 0.4 else None


def _money(campaign: Campaign, habits: dict[str, Habit]) -> Money | None:
    """A third has a budget, of one a second for each unit. Drawn apart: the rest of the story stays as it was."""
    own = random.Random(repr((campaign, habits)))
    if own.random() > 0.35:
        return None
    whole = sum(
        habits[cell.job].mean_s * sum(slots_needed(campaign.job(cell.job), has_gpus=bool(campaign.slots.gpus)))
        for cell in list_campaign_cells(campaign)
    )
    gpu = Money(3600.0, "CNY", budget=whole * own.choice((0.3, 0.7, 1.0, 3.0)), at_cap=own.choice(("hold", "stop")))
    assert gpu.budget is not None
    if own.random() < 0.6:
        return gpu
    return replace(gpu, per="machine", budget=gpu.budget / max(1, _slot_count(campaign.slots)))


def richer(campaign: Campaign) -> Campaign:
    """Somebody pays more."""
    money = campaign.money
    assert money is not None
    assert money.budget is not None
    return replace(campaign, money=replace(money, budget=money.budget * 2))


def _slot_count(slots: Slots) -> int:
    return slots.cpus + len(slots.gpus or ()) * slots.per_gpu


def _campaign(rng: random.Random) -> Campaign:
    axes = (_axis("config", rng.randint(1, 4)), _axis("seed", rng.randint(1, 5)), _axis("split", rng.randint(1, 2)))
    gpus = tuple(range(rng.choice((0, 0, 1, 2))))
    slots = Slots(gpus=gpus, per_gpu=rng.choice((1, 1, 2)) if gpus else 1, cpus=rng.randint(0 if gpus else 1, 3))
    jobs = [_job(rng, "train", ("config", "seed"), (), slots)]
    if rng.random() < 0.6:
        jobs.append(_job(rng, "eval", rng.choice((("config", "seed"), ("config", "seed", "split"))), ("train",), slots))
    if rng.random() < 0.4:
        jobs.append(_job(rng, "report", rng.choice((("config",), ())), (jobs[-1].name,), slots))
    return Campaign("c", axes, tuple(jobs), slots=slots)


def _axis(name: str, count: int) -> Axis:
    return Axis(name, tuple(AxisValue(f"{name[0]}{at}", at) for at in range(count)))


def _job(rng: random.Random, name: str, axes: tuple[str, ...], needs: tuple[str, ...], slots: Slots) -> Job:
    every = rng.choice((None, None, 10.0))
    progress = rng.choice(
        (
            (),
            (replace(METRICS, every_s=every),),
            (METRICS, CHECKPOINT),
            (replace(STDOUT, every_s=every),),
            (CHECKPOINT,),
        )
    )
    return Job(
        name,
        axes,
        ("python", f"{name}.py"),
        needs=needs,
        uses=_uses(rng, slots),
        progress=progress,
        proof=Proof(step=StepProof("100")) if rng.random() < 0.7 else Proof(),
        max_retries=rng.choice((0, 1, 3, 3)),
        on_stall=rng.choice(("notify", "restart")),
        grace_s=rng.choice((None, 600.0)),
    )


def _uses(rng: random.Random, slots: Slots) -> SlotUse:
    choices = [SlotUse(), SlotUse()]
    if slots.cpus:
        choices.append(SlotUse(cpu=rng.randint(1, slots.cpus)))
    if slots.gpus:
        choices.append(SlotUse(gpu=rng.randint(1, len(slots.gpus))))
    if rng.random() < 0.02:
        choices = [SlotUse(gpu=7)]  # no slot can ever hold it
    return rng.choice(choices)


def _timed(rng: random.Random, campaign: Campaign, habits: dict[str, Habit]) -> Campaign:
    jobs = tuple(
        replace(job, timeout_s=habits[job.name].mean_s * rng.choice((1.0, 2.0, 4.0))) if rng.random() < 0.35 else job
        for job in campaign.jobs
    )
    return replace(campaign, jobs=jobs)


def changed(rng: random.Random, campaign: Campaign) -> tuple[Campaign, str]:
    """The campaign file as somebody edited it, and what was done."""
    what = rng.choice(("more", "fewer", "slots", "policy", "job", "same"))
    if what in ("more", "fewer"):
        axis = rng.choice([axis for axis in campaign.axes if axis.name != "split"])
        names = [value.value for value in axis.values]
        fresh = AxisValue(f"{axis.name[0]}{max(map(int, names)) + 1}", int(max(map(int, names))) + 1)
        values = (*axis.values, fresh) if what == "more" or len(names) == 1 else axis.values[:-1]
        other = replace(axis, values=values)
        return replace(campaign, axes=tuple(other if each is axis else each for each in campaign.axes)), what
    if what == "slots":
        return replace(
            campaign, slots=replace(campaign.slots, cpus=max(1, campaign.slots.cpus + rng.choice((-1, 1))))
        ), what
    if what == "policy":
        jobs = tuple(replace(job, max_retries=rng.randint(0, 3)) for job in campaign.jobs)
        return replace(campaign, jobs=jobs), what
    if what == "job" and len(campaign.jobs) > 1:
        return replace(campaign, jobs=campaign.jobs[:-1]), what
    return campaign, "same"


def hashes(campaign: Campaign, version: dict[str, int]) -> dict[str, str]:
    """`<definition>-<code>` of each cell; `version` counts the edits of each config."""
    return {
        cell.id: f"{cell.id}#{version.get(cell.id, 0)}-code{version.get('code', 0)}"
        for cell in list_campaign_cells(campaign)
    }
