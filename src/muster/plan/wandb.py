"""What W&B is told through the environment: where it may write, and whether it may call home."""

from __future__ import annotations

from muster.domain.campaign import Job, Wandb


def defaults(wandb: Wandb | None) -> dict[str, str]:
    """Unless the environment of `up` says otherwise: no network, no artifacts, nothing in the home folder."""
    if wandb is None:
        return {}
    folders = dict.fromkeys(("WANDB_CACHE_DIR", "WANDB_DATA_DIR", "WANDB_CONFIG_DIR"), wandb.folder)
    return {"WANDB_MODE": "offline", "WANDB_LOG_MODEL": "false", "WANDB_DISABLE_CODE": "true", **folders}


def declared(wandb: Wandb | None, job: Job, out: str) -> dict[str, str]:
    """What the campaign says; `env:` may still say otherwise. Each run logs into its own folder, where that exists."""
    if wandb is None:
        return {}
    said = {"WANDB_MODE": wandb.mode, "WANDB_ENTITY": wandb.entity, "WANDB_PROJECT": wandb.project}
    where = {"WANDB_DIR": out} if job.mkdir else {}
    return {**{name: value for name, value in said.items() if value}, **where}
