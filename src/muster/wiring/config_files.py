"""Writes the configs that a campaign's runs will read: copies of bases, and bases with edits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from muster.domain.errors import MusterError
from muster.domain.whereabouts import STATE
from muster.ports.write_files import PRIVATE_FILE, no_more_open_than
from muster.rounds.config import UnreadableConfig, kind_of
from muster.rounds.names import digest_of
from muster.rounds.texts import read_config
from muster.store import campaigns


def write_configs(texts: Mapping[str, str], originals: Mapping[str, Sequence[Path]]) -> None:
    """Durably; what is there already stays, and is refused where it holds other values.

    Nobody may read one who may not read its `originals`, and nobody else one that lies in `.muster`.
    """
    for path, text in texts.items():
        if _other_values(Path(path), text):
            what = "a config with this name is there already, and it is another one; nothing was changed"
            raise MusterError(what, where=path, hint="was it changed by hand? Move it away, and try again")
        mode = PRIVATE_FILE if STATE in Path(path).parts else no_more_open_than(*originals.get(path, ()))
        campaigns.write_durably(Path(path), text.encode(), mode, "campaign.write")


def _other_values(path: Path, text: str) -> bool:
    """Comments may differ."""
    try:
        there = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return False
    except (OSError, UnicodeDecodeError):
        return True
    kind = kind_of(path.name)
    try:
        return there != text and digest_of(read_config(there, kind).tree) != digest_of(read_config(text, kind).tree)
    except UnreadableConfig:
        return True
