"""What reading a campaign file gives."""

from __future__ import annotations

from dataclasses import dataclass

from muster.model.campaign import Campaign
from muster.model.errors import Mistake


@dataclass(frozen=True, slots=True)
class Parsed:
    campaign: Campaign
    warnings: tuple[Mistake, ...] = ()
