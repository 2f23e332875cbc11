"""Campaigns as they were taken in: `.muster/campaigns/<hash>.json`, immutable, so that the log can refer to them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import msgspec

from muster.domain.campaign import Campaign
from muster.domain.cell import all_cells
from muster.domain.errors import MusterError
from muster.domain.formats import SNAPSHOT_FORMAT, newer_snapshot
from muster.domain.whereabouts import Whereabouts, campaign_here, campaign_inside
from muster.ports.known_secrets import learn
from muster.ports.no_json import NO_JSON
from muster.ports.plain_files import LARGEST_OF_CELLS, read_plain
from muster.ports.write_files import PRIVATE_FILE, make_private_folder, make_public_folder, write_atomically
from muster.store.place import former_folders, whereabouts
from muster.store.text import encode


class Taken(msgspec.Struct, omit_defaults=True):
    """What `up` took in: the text for people, the campaign for Muster, the hash of each cell's definition."""

    text: str
    campaign: Campaign
    hashes: dict[str, str]
    format: int = SNAPSHOT_FORMAT  # left out while it is 1: the name of a snapshot is the hash of all this


def save(folder: Path, text: str, campaign: Campaign, hashes: Mapping[str, str]) -> str:
    data = encode(Taken(text, campaign_inside(campaign, whereabouts(folder)), dict(hashes)))
    name = _digest(data)
    write_durably(folder / "campaigns" / f"{name}.json", data, PRIVATE_FILE, "campaign.write", inside=folder)
    return name


def save_environment(folder: Path, environment: Mapping[str, str]) -> str:
    """The environment `up` was called in, for every attempt, whoever starts it. It may hold secrets: mode 0600."""
    learn(environment)
    data = json.dumps(dict(sorted(environment.items()))).encode()  # bytes that are no UTF-8 survive as \udcXX
    path = folder / "env" / f"{_digest(data)}.json"
    write_durably(path, data, PRIVATE_FILE, "env.write", inside=folder)
    return str(path)


def _digest(data: bytes) -> str:
    import hashlib  # not at the top: reading needs none, and it loads OpenSSL

    return hashlib.sha256(data).hexdigest()[:16]


def write_durably(path: Path, data: bytes, mode: int, point: str, *, inside: Path | None = None) -> None:
    """Where it is not yet, with its folders; `inside`: but not that one, which may have been moved or deleted."""
    if path.exists():
        return
    make = make_private_folder if mode == PRIVATE_FILE else make_public_folder
    make(path.parent, parents=inside is None, inside=inside)
    write_atomically(path, data, mode=mode, sync=True, point=point)


def taken(folder: Path, name: str, where: Whereabouts | None = None) -> Taken:
    """`where`: the folder with all where it lay, if that is known; its paths lead there."""
    path = folder / "campaigns" / f"{name}.json"
    where = where or whereabouts(folder, former_folders(folder))
    try:
        found = msgspec.json.decode(read_plain(str(path), LARGEST_OF_CELLS), type=Taken)
        if found.format > SNAPSHOT_FORMAT:
            raise newer_snapshot(found.format, str(path))
        return Taken(found.text, campaign_here(found.campaign, where), found.hashes)
    except (OSError, *NO_JSON) as error:
        raise MusterError(
            f"the campaign that was taken in can't be read: {error}",
            where=str(path),
            hint="run `muster fsck`: it restores it if campaign.yaml is unchanged",
        ) from None


def load(folder: Path, name: str, where: Whereabouts | None = None) -> Campaign:
    return taken(folder, name, where).campaign


def cell_rows(folder: Path, name: str) -> list[tuple[str, str, str, str]]:
    """(id, job, axes as JSON, hash) of every declared cell, in order."""
    known = taken(folder, name, Whereabouts(str(folder.parent)))
    return [
        (
            cell.id,
            cell.job,
            json.dumps([[axis, value.name, value.value] for axis, value in cell.values], ensure_ascii=False),
            known.hashes.get(cell.id, ""),
        )
        for cell in all_cells(known.campaign)
    ]
