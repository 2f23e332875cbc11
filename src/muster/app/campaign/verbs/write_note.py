"""A finding is written down, with its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.verbs.choose_cells import declared_names, resolve_cells, withdrawn_names
from muster.files.safe_open import open_regular_file
from muster.model.errors import UsageError
from muster.text.phrases import phrase

LONGEST_EVIDENCE_LINE = 2000


def write_note(desk: CampaignHandle, text: str, cell: str | None, evidence: Mapping[str, Any] | None) -> list[str]:
    """The cells that it is about; none: it is about the campaign."""
    state = desk.load()
    cells = [] if cell is None else resolve_cells([cell], declared_names(state), withdrawn_names(state))
    data = {"evidence": evidence} if evidence else {}
    about: list[str | None] = [*cells] or [None]
    desk.decide([desk.person("note", text, cell=name, data=data) for name in about])
    return cells


def read_evidence_line(text: str, folder: Path) -> Mapping[str, Any]:
    """`FILE:LINE` with the line itself, so that the finding can be read when the file has changed."""
    name, _, number = text.rpartition(":")
    if not name or not number.isascii() or not number.isdigit() or int(number) < 1:
        raise UsageError(phrase("campaign.evidence_form", text=text), hint=phrase("campaign.write_evidence_example"))
    path = (folder / name).absolute()
    line, count = _read_numbered_line(path, int(number))
    if line is None:
        raise UsageError(
            phrase("campaign.evidence_line_missing", text=text, lines=phrase("count.line", n=count)), where=str(path)
        )
    return {"file": str(path), "line": int(number), "text": line}


def _read_numbered_line(path: Path, number: int) -> tuple[str | None, int]:
    count = 0
    try:
        with open_regular_file(path) as file:
            for count, data in enumerate(file, 1):
                if count == number:
                    return data.decode("utf-8", "replace").rstrip("\r\n")[:LONGEST_EVIDENCE_LINE], count
    except OSError as error:
        raise UsageError(phrase("campaign.evidence_unreadable", reason=error.strerror), where=str(path)) from None
    return None, count
