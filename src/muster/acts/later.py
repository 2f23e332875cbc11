"""What a campaign file may declare already and this version does not act on yet: said, never passed over in silence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from muster.domain.campaign import Campaign
from muster.domain.errors import Mistake

SECTIONS = {
    "loop": "no rounds are run",
    "gates": "no gate is evaluated",
}


def not_yet(campaign: Campaign) -> Iterator[Mistake]:
    for name, meaning in SECTIONS.items():
        if getattr(campaign, name):
            yield _warning(name, f"`{name}:` is read and checked, but this version does not act on it: {meaning}")
    silent = [channel for channel in campaign.notify if not (isinstance(channel, Mapping) and channel.get("run"))]
    if silent:
        yield _warning(
            "notify", "`notify:` knows only `{run: COMMAND}` in this version: the other channels stay silent"
        )
    for job in campaign.jobs:
        unread = [source.kind for source in job.progress if source.kind in ("wandb", "tensorboard")]
        read = [source for source in job.progress if source.kind in ("jsonl", "csv", "stdout")]
        if job.proof.step and unread and not read:
            text = f"job {job.name}: this version reads no step from {' or '.join(unread)}: its proof could never hold"
            yield Mistake(
                text, path=f"jobs.{job.name}.proof", hint="prove it by `checkpoint:` or `files:`, or log a jsonl too"
            )
    for axis in campaign.axes:
        edited = [value.name for value in axis.values if value.edits]
        if edited:
            text = f"{axis.name} {', '.join(edited[:3])}: `edits:` are read, but this version can't apply them"
            hint = "write the edited config files yourself and name them in `args:`"
            yield Mistake(text, path=f"axes.{axis.name}", hint=hint)


def _warning(path: str, text: str) -> Mistake:
    return Mistake(text, path=path, level="warning")
