"""The paths of a stamp: relative on the disk, absolute in memory, so that a campaign's folder may move."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace

from muster.domain.whereabouts import Whereabouts, former_folder
from muster.report.stamp import CellStamp, Stamp


def stamp_inside(stamp: Stamp, where: Whereabouts) -> Stamp:
    """As it is written. Where it was made is told beside it: commands name that folder."""
    return _placed(replace(stamp, root=where.now), where.inside, str)


def stamp_here(stamp: Stamp, where: Whereabouts) -> Stamp:
    """As it is read; of earlier versions the folder of any attempt tells where it was made."""
    folders = (stamp.root, *(former_folder(cell.folder) for cell in stamp.basis.cells.values()))
    former = tuple(dict.fromkeys(each for each in folders if each and each not in (where.now, *where.also)))
    place = replace(where, former=former)
    return _placed(stamp, place.here, lambda command: _command(command, place))


def _command(command: str, place: Whereabouts) -> str:
    """Word by word: the folder may have a space in its name now."""
    if not any(each in command for each in place.former):
        return command
    try:
        return shlex.join(map(place.text, shlex.split(command)))
    except ValueError:
        return command


def _placed(stamp: Stamp, path: Callable[[str], str], text: Callable[[str], str]) -> Stamp:
    cells = {name: _cell(cell, path, text) for name, cell in stamp.basis.cells.items()}
    return replace(stamp, basis=replace(stamp.basis, cells=cells))


def _cell(cell: CellStamp, path: Callable[[str], str], text: Callable[[str], str]) -> CellStamp:
    saved = cell.checkpoint
    return replace(
        cell,
        folder=path(cell.folder),
        output=path(cell.output) if cell.output else cell.output,
        files={path(name): digest for name, digest in cell.files.items()},
        checkpoint=replace(saved, path=path(saved.path)) if saved else None,
        command=text(cell.command),
    )
