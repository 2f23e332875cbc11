"""What is billed: GPUs. Two runs that share one GPU share its price; where a campaign has no GPU, each slot is one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from muster.domain.campaign import Campaign, Job


def billed(slots: Sequence[str], job: Job, campaign: Campaign) -> tuple[str, ...]:
    """The billed units that an attempt held: `gpu6` of the slot `gpu6.0`; its CPU slots where no GPU is to be had.

    A CPU slot beside GPUs costs nothing of its own.
    """
    gpus = tuple(dict.fromkeys(slot.partition(".")[0] for slot in slots if slot.startswith("gpu")))
    if gpus or not _bills_slots(job, campaign):
        return gpus
    return tuple(slots)


def unit(campaign: Campaign, held: Iterable[str]) -> str:
    """What the price is for, in a word: `gpu`, `slot` or `machine`. `held`: all slots that attempts had so far."""
    if campaign.money and campaign.money.per == "machine":
        return "machine"
    if campaign.slots.gpus is not None:
        return "gpu" if campaign.slots.gpus else "slot"
    kinds = {slot.startswith("gpu") for slot in held}
    return "slot" if kinds == {False} else "gpu"  # `auto`: nothing held yet, or adopted runs: it asks for GPUs


def asked(job: Job, campaign: Campaign) -> int:
    """How many units one more cell of the job would hold."""
    gpus, cpus = job.uses.take(has_gpus=campaign.slots.gpus != ())
    return gpus or (cpus if campaign.slots.gpus == () else 0)


def share(job: Job, campaign: Campaign) -> float:
    """The part of its units that one more cell pays for, if all shares of a GPU are in use."""
    gpus, _ = job.uses.take(has_gpus=campaign.slots.gpus != ())
    return 1 / campaign.slots.per_gpu if gpus else 1.0


def _bills_slots(job: Job, campaign: Campaign) -> bool:
    """`gpus: 0`; or `auto`, and a job that asks for a GPU ran on CPU slots because there was none."""
    if campaign.slots.gpus is None:
        return job.uses.take(has_gpus=True)[0] > 0
    return campaign.slots.gpus == ()
