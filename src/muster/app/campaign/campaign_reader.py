"""A campaign opened to be read and for nothing else: it takes no lock, folds into memory only and revives nobody.

For whoever looks again and again, such as a page or a tool for assistants: what changed since a revision.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from muster.app.campaign.campaign_handle import CampaignHandle, campaign_not_started
from muster.app.campaign.campaign_status import Status
from muster.app.campaign.observe_campaign import observe_campaign
from muster.engine.ports.store import LoggedDecision
from muster.model.campaign_state import CampaignState


@dataclass(frozen=True, slots=True)
class CampaignChanges:
    """What was decided between two revisions. Runs go on without decisions: their progress is in `status` alone."""

    revision: int  # to ask with the next time
    decisions: tuple[LoggedDecision, ...]  # oldest first; those that were void, too
    anew: bool = False  # the log is not the one that was asked about: these are all its decisions

    @property
    def cells(self) -> tuple[str, ...]:
        """Whose records may have changed. Decisions about the whole campaign name none."""
        return tuple(dict.fromkeys(each.decision.cell for each in self.decisions if each.decision.cell))


class CampaignReader:
    """The revision is the number of decisions in the log, so it means the same to every reader of the campaign."""

    def __init__(self, desk: CampaignHandle) -> None:
        self._desk = desk
        self._log = _log_identity(desk.state)
        self._decisions: list[LoggedDecision] = desk.store.events()

    @classmethod
    def open(cls, start: Path) -> CampaignReader:
        """The campaign of a folder or of one above it, whoever owns it and whoever works on it."""
        return cls(CampaignHandle.open_to_read(start))

    def close(self) -> None:
        self._desk.close()

    def revision(self) -> int:
        self._read_on()
        return len(self._decisions)

    def changes_since(self, revision: int) -> CampaignChanges:
        now = self.revision()
        anew = not 0 <= revision <= now
        return CampaignChanges(now, tuple(self._decisions[0 if anew else revision :]), anew)

    def state(self) -> CampaignState:
        """What was decided."""
        self._read_on()
        state = self._desk.store.load()
        if state is None:
            raise campaign_not_started(self._desk.root)
        return state

    def status(self) -> Status:
        """What was decided, with what can be seen of the runs now."""
        return observe_campaign(self._desk, self.state())

    def _read_on(self) -> None:
        now = _log_identity(self._desk.state)
        if now == self._log:
            return
        if now[0] != self._log[0] or now[1] < self._log[1]:  # repaired, or begun anew
            root = self._desk.root
            self._desk.close()
            self._desk = CampaignHandle.open_to_read(root)
        self._desk.store.commit([])
        self._decisions = self._desk.store.events()
        self._log = now


def _log_identity(state: Path) -> tuple[int, int]:
    """Which file it is, and how long."""
    try:
        found = (state / "decisions.jsonl").stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_ino, found.st_size
