"""What a campaign file may declare already and this version does not act on yet: said, never passed over in silence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from muster.domain.campaign import Campaign
from muster.domain.errors import Mistake


def not_yet(campaign: Campaign) -> Iterator[Mistake]:
    silent = [channel for channel in campaign.notify if not (isinstance(channel, Mapping) and channel.get("run"))]
    if silent:
        yield _warning(
            "notify", "`notify:` knows only `{run: COMMAND}` in this version: the other channels stay silent"
        )


def _warning(path: str, text: str) -> Mistake:
    return Mistake(text, path=path, level="warning")
