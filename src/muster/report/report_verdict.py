"""What a report found, kept in its stamp for those who only look: `status`, `up` and the finish."""

from __future__ import annotations

import msgspec


class ReportVerdict(msgspec.Struct, frozen=True):
    """A struct, not a dataclass: `status` reads it all day long, and this one is made in no time."""

    verdict: str
    config: str | None = None
    reason: str = ""  # the sentence, in the campaign's language
    flag: str = ""  # the first red flag of level ERROR
    code: str = ""  # of that flag
    path: str = ""  # of the decision report, relative to the campaign's folder
    campaign: str = ""  # hash of the campaign that was taken in last
    file: str = ""  # hash of campaign.yaml where it was not taken in
    jobs: tuple[str, ...] = ()  # that the matrix of results is made of
