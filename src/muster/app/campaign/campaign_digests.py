"""Digests of what reports rest on: sections of `campaign.yaml`, accepted flags, the decided state. Stamps record
them, and `verify` compares.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import msgspec

from muster.engine.ports.store import LoggedDecision
from muster.files.json_codec import plain_value
from muster.model.campaign import Campaign
from muster.model.campaign_location import CampaignLocation, resolve_campaign_paths
from muster.model.campaign_state import CampaignState
from muster.stats.red_flags import AcceptedFlag

KINDS_BY_PEOPLE = frozenset(
    {"note", "hold", "release", "giveup", "retry", "redo", "accept", "flag", "stop", "filter", "adopt"}
)
# what of a campaign file changes what is reported, and not only how it is run
REPORTED_SECTIONS = ("name", "language", "axes", "env", "money", "jobs", "decision", "report")


def jobs_behind_results(campaign: Campaign) -> frozenset[str]:
    """The jobs that carry results and all that these need. What only uses results is no part of the matrix."""
    found: set[str] = set()
    left = [job.name for job in campaign.jobs if job.results]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += campaign.job(name).needs
    return frozenset(found)


def digest_campaign_sections(campaign: Campaign, origin: CampaignLocation) -> dict[str, str]:
    """`origin`: where the campaign was first taken in. A folder that moved declares the same as before."""
    then = resolve_campaign_paths(campaign, origin)
    return {name: _short_sha256(msgspec.json.encode(getattr(then, name), order="sorted")) for name in REPORTED_SECTIONS}


def count_decisions_by_people(events: Iterable[LoggedDecision]) -> int:
    """Decisions that a record tells of and no attempt shows."""
    return sum(event.decision.kind in KINDS_BY_PEOPLE and not event.void for event in events)


def digest_accepted_flags(accepted: Sequence[AcceptedFlag]) -> str:
    """Empty where there is none, as in stamps of older versions."""
    return _short_sha256(msgspec.json.encode(plain_value(accepted), order="sorted")) if accepted else ""


def digest_campaign_state(state: CampaignState, words: int) -> str:
    """Every attempt and how it ended, the campaign that was taken in, and how often people had their say."""
    rows = [
        (attempt.cell, attempt.n, attempt.token, attempt.outcome.verdict if attempt.outcome else "", attempt.accepted)
        for record in state.cells.values()
        for attempt in record.attempts
    ]
    return _short_sha256(msgspec.json.encode([state.campaign_hash, state.intent.kind, words, rows]))


def _short_sha256(data: bytes, length: int = 16) -> str:
    return hashlib.sha256(data).hexdigest()[:length]
