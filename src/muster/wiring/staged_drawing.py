"""Draws what a staged training left: of a folder as plain files, of a cell with their stamp."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import muster
from muster.acts.stamping import REPORTS, Derived, publish, refused, write
from muster.acts.status import CellStatus, Status
from muster.domain.errors import MusterError
from muster.domain.origins import Origins
from muster.execute.paths import attempt_folder
from muster.observe.hashes import HashCache
from muster.ports.write_files import make_public_folder
from muster.report.figures.staged import Drawn, artifacts_of, draw
from muster.report.figures.staged.artifacts import ENDINGS
from muster.report.figures.staged.words import Say
from muster.report.stamp import Basis, CellStamp, Stamp
from muster.wiring.basis import Reader, stamp_of
from muster.wiring.desk import Desk
from muster.wiring.histories import attempt_of, output_of
from muster.wiring.staged_files import StagedFiles, read_staged

FOLDER = f"{REPORTS}/gates"
MADE = "gates-"  # how the names of its stamps begin
PARTIAL = "PARTIAL"


@dataclass(frozen=True, slots=True)
class DrawnFiles:
    folder: Path
    files: tuple[Path, ...]
    captions: Mapping[str, str]
    notes: Sequence[str]
    contradictions: Sequence[str]
    inputs: Mapping[str, str] = field(default_factory=dict)  # path -> sha256
    stamped: bool = False


def draw_folder(folder: Path, into: Path | None, language: str) -> DrawnFiles:
    """`into`: where to; else its own folder `figures`."""
    found = read_staged([folder])
    drawn = _drawn(found, language, str(folder), folder.resolve().name)
    out = into or folder / "figures"
    return _written(out, found, drawn)


def draw_cell(desk: Desk, status: Status, cell: CellStatus, into: Path | None, language: str) -> DrawnFiles:
    """Of the attempt that counts. What lies inside of the campaign's folder gets a stamp."""
    name = cell.record.cell.id
    attempt, output = attempt_of(cell.record), output_of(desk.state, cell)
    if attempt is None or output is None:
        raise MusterError(f"{name} has not run yet", hint=f"`muster why {shlex.quote(name)}` says what it waits for")
    found = read_staged([Path(output), attempt_folder(desk.state, *attempt.place)])
    over = cell.record.done
    drawn = _drawn(found, language, output, f"{name}, attempt {attempt.n}", "" if over else PARTIAL)
    out = into or desk.root / FOLDER / name
    if not out.resolve().is_relative_to(desk.root.resolve()):
        return _written(out, found, drawn)
    hashes = HashCache(desk.state)
    cells = {name: _stamp(desk, cell, [str(path) for path in found.paths.values()], hashes)}
    hashes.save()
    basis = Basis(status.state.campaign.name, {}, cells, int(over), 1, () if over else (name,), closed=True)
    inside = out.resolve().relative_to(desk.root.resolve())
    derived = [Derived(str(inside / _named(each, over)), data, "figure", (name,)) for each, data in drawn.files.items()]
    made, command = f"{MADE}{name.replace('/', '_')}", f"muster gates draw {name}"
    kept = publish(desk.root, made, command, status.as_of, muster.__version__, basis, derived)
    return _told(out, [desk.root / path for path in kept.written], found, drawn, stamped=True)


def _named(file: str, over: bool) -> str:
    """`gate_timeline.PARTIAL.png`: a later, whole one takes its place."""
    stem, _, suffix = file.rpartition(".")
    return file if over else f"{stem}.{PARTIAL}.{suffix}"


def staged_cells(desk: Desk, status: Status, stamp: Stamp, hashes: HashCache) -> dict[str, CellStamp]:
    """What a stamp of these pictures rests on, as it is now."""
    cells = {cell.record.cell.id: cell for cell in (*status.cells, *status.withdrawn)}
    return {
        name: _stamp(desk, cells[name], list(before.files), hashes)
        for name, before in stamp.basis.cells.items()
        if name in cells and attempt_of(cells[name].record) is not None
    }


def _stamp(desk: Desk, cell: CellStatus, paths: Sequence[str], hashes: HashCache) -> CellStamp:
    attempt = attempt_of(cell.record)
    if attempt is None:
        raise LookupError(cell.record.cell.id)
    order, _ = Reader(desk, hashes, values=False).order(cell.record, attempt)
    files = {path: hashes.sha256(path) for path in paths}
    return stamp_of(desk, cell.record, Origins(files=files), order, (), attempt)


def _drawn(found: StagedFiles, language: str, where: str, of: str, mark: str = "") -> Drawn:
    if not found.texts:
        said = [Say(language).note(each) for each in found.notes]
        hint = "; ".join([*said[:4], f"looked for {', '.join(ENDINGS)}"])
        raise MusterError("nothing that a staged training leaves can be read there", where=where, hint=hint)
    artifacts = artifacts_of(found.texts, found.hashes, found.thinned, found.notes)
    drawn = draw(artifacts, language, of=of, version=muster.__version__, mark=mark)
    if not drawn.files:
        hint = "; ".join(drawn.notes[:6]) or "its files hold no rows yet"
        raise MusterError("there is nothing to draw in it", where=where, hint=hint)
    return drawn


def _written(out: Path, found: StagedFiles, drawn: Drawn) -> DrawnFiles:
    paths = [out / name for name in drawn.files]
    with refused(out):
        make_public_folder(out, parents=True)
        for path, data in zip(paths, drawn.files.values(), strict=True):
            write(path, data)
    return _told(out, paths, found, drawn)


def _told(out: Path, paths: Sequence[Path], found: StagedFiles, drawn: Drawn, *, stamped: bool = False) -> DrawnFiles:
    inputs = {str(path): found.hashes[name] for name, path in found.paths.items()}
    return DrawnFiles(out, tuple(paths), drawn.captions, drawn.notes, drawn.contradictions, inputs, stamped)
