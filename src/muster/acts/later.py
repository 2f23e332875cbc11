"""What a campaign file may declare already and this version does not act on yet: said, never passed over in silence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from muster.domain.campaign import Campaign
from muster.domain.errors import Mistake

SECTIONS = {
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
    for axis in campaign.axes:
        edited = [value.name for value in axis.values if value.edits and not value.config]
        if edited:
            text = f"{axis.name} {', '.join(edited[:3])}: `edits:` are read, but this version can't apply them"
            hint = "write the edited config files yourself and name them in `args:`"
            yield Mistake(text, path=f"axes.{axis.name}", hint=hint)


def _warning(path: str, text: str) -> Mistake:
    return Mistake(text, path=path, level="warning")
