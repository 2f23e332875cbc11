"""`muster fsck`: rebuilds the state of a campaign while nobody else decides about it."""

from __future__ import annotations

import contextlib
from pathlib import Path

from muster.app.campaign.campaign_code import CodeReader
from muster.app.campaign.campaign_handle import CAMPAIGN_FILE_NAME
from muster.app.campaign.cell_definitions import hash_definitions
from muster.app.campaign.load_campaign import read_campaign_file
from muster.engine.ports.clock import SystemClock
from muster.engine.ports.store import FsckReport, RebuildRequest
from muster.engine.store.controller_files import ControllerLock
from muster.engine.store.database_checks import refuse_newer_state
from muster.engine.store.database_rebuild import (
    has_known_decisions,
    list_missing_snapshots,
    old_cell_hashes,
    rebuild_database,
    restore_missing_snapshot,
)
from muster.files.campaign_ownership import current_user_name
from muster.files.campaign_snapshots import StoredSnapshot
from muster.files.state_folder import refuse_bad_state_folder, refuse_copied_state
from muster.model.calendar import format_iso_time
from muster.model.errors import MusterError, UsageError


def rebuild_campaign_state(root: Path) -> FsckReport:
    state = root / ".muster"
    if not (state / "campaigns").is_dir() and not has_known_decisions(state):
        if (state / "attempts").is_dir():
            raise MusterError(
                "only attempt folders are left of this campaign: what was decided, and for which matrix, is gone",
                where=str(state / "attempts"),
                hint="move that folder away, `muster up` anew, and let `muster adopt` take in what had finished",
            )
        raise UsageError("this campaign has not been started", where=str(root), hint="start it with `muster up`")
    refuse_bad_state_folder(root)
    refuse_copied_state(state)
    clock = SystemClock()
    lock = ControllerLock(state, clock)
    if not lock.take():
        holder = lock.holder()
        pid = f" (pid {holder.pid})" if holder else ""
        raise MusterError(
            f"a controller{pid} is at work; nothing was changed",
            where=str(root),
            hint="`muster down` first: it ends the controller and leaves the runs alone. Then `muster fsck`",
            code="controller_lives",
        )
    try:
        refuse_newer_state(state)
        for name in list_missing_snapshots(state):
            _restore_snapshot_from_file(root, state, name)
        asked = RebuildRequest(
            f"fsck by {current_user_name()}", format_iso_time(clock.wall()), clock.boot(), lambda: lock.beat(0)
        )
        return rebuild_database(state, asked)
    finally:
        lock.give_back()


def _restore_snapshot_from_file(root: Path, state: Path, name: str) -> bool:
    """A snapshot that is missing, if campaign.yaml is still the text it was made from."""
    with contextlib.suppress(MusterError, OSError):
        found = read_campaign_file(root / CAMPAIGN_FILE_NAME)
        for known in (
            old_cell_hashes(state),
            hash_definitions(found.campaign, str(root), CodeReader(found.campaign, root)),
        ):
            if restore_missing_snapshot(state, name, StoredSnapshot(found.text, found.campaign, dict(known))):
                return True
    return False
