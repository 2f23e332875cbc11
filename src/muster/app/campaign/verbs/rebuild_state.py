"""`muster fsck`: rebuilds the state of a campaign while nobody else decides about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from muster.app.campaign.campaign_code import CodeReader
from muster.app.campaign.campaign_handle import CAMPAIGN_FILE_NAME
from muster.app.campaign.cell_definitions import hash_definitions
from muster.app.campaign.load_campaign import read_campaign_file
from muster.engine.ports.clock import SystemClock
from muster.engine.ports.services import installed_services
from muster.engine.ports.store import FsckReport, RebuildRequest
from muster.files.campaign_ownership import current_user_name
from muster.files.campaign_snapshots import StoredSnapshot
from muster.files.state_folder import refuse_bad_state_folder, refuse_copied_state
from muster.model.calendar import format_iso_time
from muster.model.errors import MusterError, UsageError
from muster.text.phrases import phrase


def rebuild_campaign_state(root: Path) -> FsckReport:
    state, storage = root / ".muster", installed_services().storage
    if not (state / "campaigns").is_dir() and not storage.has_decisions(state):
        if (state / "attempts").is_dir():
            raise MusterError(
                phrase("campaign.only_attempts_left"),
                where=str(state / "attempts"),
                hint=phrase("campaign.move_folder_and_adopt"),
            )
        raise UsageError(
            phrase("campaign.campaign_not_started"), where=str(root), hint=phrase("campaign.start_with_up")
        )
    refuse_bad_state_folder(root)
    refuse_copied_state(state)
    clock = SystemClock()
    lock = storage.lock(state, clock)
    if not lock.take():
        holder = lock.holder()
        raise MusterError(
            phrase("campaign.controller_pid_at_work", pid=holder.pid)
            if holder
            else phrase("campaign.controller_at_work"),
            where=str(root),
            hint=phrase("campaign.down_then_fsck"),
            code="controller_lives",
        )
    try:
        asked = RebuildRequest(
            f"fsck by {current_user_name()}",
            format_iso_time(clock.wall()),
            clock.boot(),
            lambda: lock.beat(0),
        )
        return storage.rebuild(state, asked, lambda hashes: _snapshots_of_file(root, hashes))
    finally:
        lock.give_back()


def _snapshots_of_file(root: Path, old_hashes: Mapping[str, str]) -> Iterator[StoredSnapshot]:
    """What would have been stored if campaign.yaml was taken in with the text that it has now."""
    found = read_campaign_file(root / CAMPAIGN_FILE_NAME)
    yield StoredSnapshot(found.text, found.campaign, dict(old_hashes))
    now = hash_definitions(found.campaign, str(root), CodeReader(found.campaign, root))
    yield StoredSnapshot(found.text, found.campaign, dict(now))
