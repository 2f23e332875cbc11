"""The red flags that a report would raise now, and a person's word about those of one code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from muster.app.campaign.accepted_flags import flag_decision_data
from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.facts.gather_facts import current_red_flags
from muster.app.report.red_flag_text import flags_to_accept, sort_flags_by_level
from muster.model.errors import MusterError
from muster.stats.red_flags import FlagAcceptance, RedFlag


@dataclass(frozen=True, slots=True)
class FlagList:
    flags: Sequence[RedFlag]
    language: str  # of the campaign's reports


def list_red_flags(desk: CampaignHandle) -> FlagList:
    """ERROR before WARN, also those that were accepted. Writes nothing."""
    flags, language = current_red_flags(desk)
    return FlagList(sort_flags_by_level(flags), language)


def accept_red_flags(desk: CampaignHandle, code: str, reason: str) -> FlagList:
    """All of this code that are raised now: they no longer void the verdict."""
    desk.refuse_stranger()
    flags, language = current_red_flags(desk)
    meant = flags_to_accept(code, flags)
    decision = desk.person("flag", reason, data=flag_decision_data(code, meant))
    (refused,) = desk.decide([decision])
    if refused:
        raise MusterError(f"{code}: not accepted: {refused}")
    by = FlagAcceptance(decision.who, decision.at, reason)
    return FlagList([replace(flag, accepted=by) for flag in meant], language)
