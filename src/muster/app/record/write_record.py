"""Gathers what the written record is made from, and writes it."""

from __future__ import annotations

import os
from pathlib import Path

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.campaign_status import Status
from muster.app.campaign.file_manifest import FILE_KINDS, campaign_files
from muster.app.campaign.load_campaign import count_usable_slots
from muster.app.campaign.stamp_files import REPORTS_FOLDER
from muster.app.record.gather_record import RecordSources
from muster.engine.ports.store import LoggedDecision
from muster.files.campaign_snapshots import load_campaign_snapshot
from muster.files.safe_open import path_holds_something, read_file_start
from muster.files.state_folder import attempt_folder
from muster.locales import LANGUAGES, load_texts
from muster.model.errors import MusterError, UsageError
from muster.readers.attempt_facts import read_order

RECORD_FILE = "record.md"


def gather_record_sources(desk: CampaignHandle, status: Status) -> tuple[list[LoggedDecision], RecordSources]:
    """Everything that the record needs; changes nothing."""
    state = desk.state

    def text_of(name: str) -> str | None:
        try:
            return load_campaign_snapshot(state, name).text
        except MusterError:
            return None

    sources = RecordSources(
        root=str(desk.root),
        state=str(state),
        folder_of=lambda cell, n: str(attempt_folder(state, cell, n)),
        order_of=lambda cell, n: read_order(attempt_folder(state, cell, n)),
        text_of=text_of,
        exists=path_holds_something,
        files=_count_manifest_files(desk, status),
        slots=count_usable_slots(status.state.campaign),
    )
    return desk.store.events(), sources


def _count_manifest_files(desk: CampaignHandle, status: Status) -> dict[str, tuple[int, int]]:
    entries = campaign_files(desk.root, status.state)
    found = {kind: [entry.bytes for entry in entries if entry.kind == kind] for kind in FILE_KINDS}
    return {kind: (len(sizes), sum(sizes)) for kind, sizes in found.items() if sizes}


def record_destination(desk: CampaignHandle, start: Path, out: str | None) -> Path:
    """Where the record goes: reports/record.md, or where it was asked for."""
    if out is None:
        return desk.root / REPORTS_FOLDER / RECORD_FILE
    if not out.strip():
        raise UsageError("--out is empty", hint="name a file, or write --out - to see it here")
    path = (start / out).absolute()
    if path.is_dir():
        raise UsageError(
            f"--out {out}: this is a folder", where=str(path), hint=f"name a file: --out {out}/{RECORD_FILE}"
        )
    if not path.parent.is_dir():
        raise UsageError(f"--out {out}: there is no folder {path.parent}", where=str(path), hint="create it first")
    if not _may_replace_record(path):
        what = f"--out {out}: this file is there already and is no record: it is not overwritten"
        raise UsageError(what, where=str(path), hint="name another file, or move that one away")
    return path


def _may_replace_record(path: Path) -> bool:
    """Only an earlier record, or nothing: a slip of the hand must not cost a campaign file."""
    if not os.path.lexists(path):
        return True
    if not path.is_file():  # a device, a link to nowhere
        return False
    begin = read_file_start(path, 64)
    titles = [load_texts("record", language)["title"].partition("{")[0] for language in LANGUAGES]
    return not begin or any(begin.startswith(f"# {title}".encode()) for title in titles)
