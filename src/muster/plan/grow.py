"""The campaign with the variants that its loop has so far: a growing axis, and the seeds that repeat each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from muster.domain.campaign import Axis, AxisValue, Campaign
from muster.domain.variants import AXIS, Variant

SEED = "seed"


def grown(campaign: Campaign, variants: Sequence[Variant]) -> Campaign:
    """Every command that tells of the matrix sees it so. A campaign without a loop stays as it is."""
    if not campaign.loop:
        return campaign
    job = campaign.job(campaign.loop["job"])
    own = job.axes[: job.axes.index(AXIS)] if AXIS in job.axes else job.axes  # what stands behind it is ours, too
    added = {AXIS, *job.axes[len(own) :]}
    axes = [axis for axis in campaign.axes if axis.name not in added]
    more = [Axis(AXIS, tuple(map(_value, variants)))]
    repeats = int(campaign.loop.get("repeats", 1))
    if repeats > 1 and not any(axis.name == SEED for axis in axes):
        more.append(Axis(SEED, tuple(AxisValue(str(seed), seed) for seed in range(repeats))))
    names = (*own, *(axis.name for axis in more))
    jobs = tuple(replace(each, axes=names) if each.name == job.name else each for each in campaign.jobs)
    return replace(campaign, axes=(*axes, *more), jobs=jobs)


def _value(variant: Variant) -> AxisValue:
    return AxisValue(variant.name, variant.name, edits=variant.edits, note=variant.reason, config=variant.config)
