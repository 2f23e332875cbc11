"""How many slots a cell takes, and which of the free ones."""

from __future__ import annotations

from collections.abc import Sequence

from muster.domain.campaign import Job


def need(job: Job, *, has_gpus: bool) -> tuple[int, int]:
    """(gpu slots, cpu slots). By default one slot of the campaign's kind; a job without GPUs takes one of CPUs."""
    return job.uses.take(has_gpus=has_gpus)


def choose(wanted: tuple[int, int], gpu_slots: Sequence[str], cpu_slots: Sequence[str]) -> tuple[str, ...] | None:
    """Free slots for it, GPUs first; None: not enough are free. Several GPU slots come from different GPUs."""
    gpus: list[str] = []
    for slot in gpu_slots:
        if len(gpus) < wanted[0] and all(slot.split(".")[0] != other.split(".")[0] for other in gpus):
            gpus.append(slot)
    if len(gpus) < wanted[0] or len(cpu_slots) < wanted[1]:
        return None
    return (*gpus, *cpu_slots[: wanted[1]])
