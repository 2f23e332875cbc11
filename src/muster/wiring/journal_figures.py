"""The pictures of a journal: drawn from a run's files, kept beside the journal, referred to in it."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import muster
from muster.report.figures.staged import artifacts_of, draw
from muster.report.journal.compose import name_of
from muster.report.journal.facts import Picture, Run, Trouble
from muster.wiring.staged_drawing import PARTIAL
from muster.wiring.staged_files import read_staged

KIND = "png"


@dataclass(frozen=True, slots=True)
class Illustrated:
    run: Run
    files: dict[Path, bytes]
    overtaken: tuple[Path, ...] = ()  # pictures of a run that was not over, which it is now


def illustrated(base: Path, version: int, run: Run, folder: Path, language: str) -> Illustrated:
    """With the pictures that are drawn from its files. They lie beside the journal: a run's own folder stays as it is.

    `base`: the journal's folder, `folder`: the run's.
    """
    mark = PARTIAL if run.state not in ("", "DONE") else ""
    try:
        found = read_staged([folder])
        artifacts = artifacts_of(found.texts, found.hashes, found.thinned, found.notes)
        drawn = draw(artifacts, language, of=run.title, version=muster.__version__, mark=mark, kinds=(KIND,))
    except Exception as error:  # a text without its picture is better than none
        why = f"{type(error).__name__}: {error}"
        return Illustrated(replace(run, troubles=(*run.troubles, Trouble("trouble.figures", {"why": why}))), {})
    place = Path(f"{name_of(version)}_files") / slug(run.name)
    files: dict[Path, bytes] = {}
    pictures: list[Picture] = []
    overtaken: list[Path] = []
    for name, data in drawn.files.items():
        stem = name.rpartition(".")[0]
        file = f"{stem}.{mark}.{KIND}" if mark else name
        files[base / place / file] = data
        pictures.append(Picture(str(place / file).replace(os.sep, "/"), drawn.captions.get(stem, "")))
        overtaken += [] if mark else [base / place / f"{stem}.{PARTIAL}.{KIND}"]
    own = _others(run.pictures, [name.rpartition(".")[0] for name in drawn.files])
    return Illustrated(replace(run, pictures=(*pictures, *own)), files, tuple(overtaken))


def _others(pictures: Sequence[Picture], drawn: Sequence[str]) -> list[Picture]:
    """What the run itself left; of one picture in several formats the first, and none that is drawn here already."""
    found: dict[str, Picture] = {}
    for each in pictures:
        stem = each.path.rpartition(".")[0]
        if stem.rpartition("/")[2] not in drawn:
            found.setdefault(stem, each)
    return list(found.values())


def slug(name: str) -> str:
    """A folder's name for a run; two runs do not share one."""
    plain = re.sub(r"[^\w.-]+", "_", name.removeprefix("cell:")).strip("._") or "run"
    if plain == name:
        return plain
    return f"{plain[-48:]}-{hashlib.sha256(name.encode('utf-8', 'surrogateescape')).hexdigest()[:6]}"
