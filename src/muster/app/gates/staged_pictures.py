"""Draws the pictures of a staged training: of a folder as plain files, of a cell with their stamp.

    artifacts = parse_staged_artifacts({"gate_trace.jsonl": text, "schedule_trace.json": ...})
    drawn = draw_staged_pictures(artifacts, "zh")

Nothing here raises for odd data: what can't be read or drawn is named in `notes`, and long files are thinned out.
Words inside a picture are English, since its font has no Chinese; captions and notes are in the language that is
asked for.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import muster
from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.campaign_status import CellStatus, Status
from muster.app.campaign.stamp import CellStamp, Stamp, StampBasis
from muster.app.campaign.stamp_files import (
    REPORTS_FOLDER,
    DerivedFile,
    explain_failed_writes,
    publish_derived_files,
    write_derived_file,
)
from muster.app.campaign.start_controller import Tell, observe_and_revive
from muster.app.campaign.verbs.choose_cells import declared_names, resolve_one_cell, withdrawn_names
from muster.app.facts.stamp_basis import OriginReader, make_cell_stamp
from muster.app.gates.picture_captions import StageCaptions
from muster.app.gates.staged_artifacts import (
    GATE,
    STAGED_FILE_ENDINGS,
    StagedArtifacts,
    StagedNote,
    parse_staged_artifacts,
    staged_file_kind,
)
from muster.app.metrics.cell_history import attempt_that_counts, output_of_cell
from muster.app.metrics.measure_runs import open_campaign_instead_of_path, select_named_cells
from muster.files.atomic_write import make_public_folder
from muster.files.safe_open import NotRegularFile, open_regular_file
from muster.files.state_folder import attempt_folder
from muster.model.errors import MusterError, UsageError
from muster.model.provenance import ResultOrigins
from muster.readers.file_hashes import HashCache


class DrawnPictures(NamedTuple):
    files: dict[str, bytes]  # gate_timeline.png, .svg, .pdf, ...
    notes: list[str]  # what could not be read or drawn, and labels that contradict the schedule
    captions: dict[str, str]  # by the file's name without its suffix
    contradictions: list[str]  # of the notes, those about labels


def draw_staged_pictures(
    artifacts: StagedArtifacts,
    language: str = "en",
    *,
    of: str = "",
    version: str = "",
    mark: str = "",
    kinds: tuple[str, ...] = ("png", "svg", "pdf"),
) -> DrawnPictures:
    """Every picture for which there is data. `of`: the run's name, for the foot; `mark`: PARTIAL, for the titles."""
    from muster.app.facts.drawing.figure_style import with_bundled_fonts_only

    with with_bundled_fonts_only():
        from muster.app.gates.picture_plan import StagedScene, draw_planned_pictures
    files: dict[str, bytes] = {}
    captions: dict[str, str] = {}
    notes, contradictions = draw_planned_pictures(
        StagedScene(artifacts, language, of, version, mark), kinds, files, captions
    )
    return DrawnPictures(files, notes, captions, contradictions)


LARGEST_KEPT = 16 << 20  # bytes that are kept of one file: some ten thousand rows of a gate
LONGEST_STAGED_LINE = 1 << 20  # bytes of a line
MOST_FOLDERS = 200  # below the run's own that are looked into
MOST_GATES = 12
FIGURES_FOLDER = "figures"
_ITERATION_FIELD = re.compile(rb'"(?:iteration|iter|step|_step|epoch)"\s*:\s*(\d{1,12})\b')
_PHASE_CHANGE_WORDS = (b'"advance"', b'"fall_back"')


@dataclass(slots=True)
class StagedFiles:
    """What was read, by the name of the file."""

    paths: dict[str, Path] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)
    thinned: dict[str, int] = field(default_factory=dict)  # lines that the file has
    notes: list[StagedNote] = field(default_factory=list)


def read_staged_files(folders: Sequence[Path]) -> StagedFiles:
    """Of a kind that is in several of these folders, those of the first one."""
    found = StagedFiles()
    for kind in STAGED_FILE_ENDINGS:
        for path in _find_files_of_kind(kind, folders, found.notes):
            name = path.name if path.name not in found.paths else str(path)
            _read_staged_file(path, name, found)
    return found


def _find_files_of_kind(kind: str, folders: Sequence[Path], notes: list[StagedNote]) -> list[Path]:
    for folder in folders:
        here = _files_of_kind_in(folder, kind)
        if not here:
            below = {sub: paths for sub in _folders_below_run(folder) if (paths := _files_of_kind_in(sub, kind))}
            here = next(iter(below.values()), [])
            if len(below) > 1:  # whose they are can't be told
                notes.append(
                    StagedNote("several", {"file": kind, "where": ", ".join(sorted(sub.name for sub in below)[:4])})
                )
                return []
        if here:
            return here[:MOST_GATES] if kind == GATE else _exact_name_first(kind, here)
    return []


def _exact_name_first(kind: str, paths: list[Path]) -> list[Path]:
    """The one that is called so and nothing more comes first."""
    return sorted(paths, key=lambda path: path.name != kind)


def _files_of_kind_in(folder: Path, kind: str) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if staged_file_kind(path.name) == kind)
    except OSError:
        return []


def _folders_below_run(folder: Path) -> list[Path]:
    try:
        inside = sorted(
            path for path in folder.iterdir() if not path.name.startswith(".") and path.name != FIGURES_FOLDER
        )
        return [path for path in inside[:MOST_FOLDERS] if path.is_dir()]
    except OSError:
        return []


def _read_staged_file(path: Path, name: str, into: StagedFiles) -> None:
    try:
        with open_regular_file(path) as file:
            facts = os.fstat(file.fileno())
            if facts.st_size <= LARGEST_KEPT:
                _keep_whole_file(file.read(LARGEST_KEPT + 1), path, name, into)
            elif path.suffix == ".jsonl":
                _keep_thinned_file(file, path, name, into)
            else:
                into.notes.append(StagedNote("too_large", {"file": name, "most": LARGEST_KEPT >> 20}))
    except (IsADirectoryError, NotRegularFile):
        into.notes.append(StagedNote("no_file", {"file": name}))
    except OSError as error:
        into.notes.append(StagedNote("unreadable", {"file": name, "why": error.strerror or str(error)}))


def _keep_whole_file(data: bytes, path: Path, name: str, into: StagedFiles) -> None:
    into.paths[name] = path
    into.texts[name] = data.decode("utf-8", "replace").removeprefix("\ufeff")
    into.hashes[name] = hashlib.sha256(data).hexdigest()


def _keep_thinned_file(file: BinaryIO, path: Path, name: str, into: StagedFiles) -> None:
    digest = hashlib.sha256()
    kept, total = thin_out_lines(_iterate_bounded_lines(file, digest.update), LARGEST_KEPT)
    _keep_whole_file(b"\n".join(kept), path, name, into)
    into.hashes[name] = digest.hexdigest()
    into.thinned[name] = total


def _iterate_bounded_lines(file: BinaryIO, seen: Callable[[bytes], object]) -> Iterator[bytes]:
    """One that is endless is cut off, and so is no row."""
    while piece := file.readline(LONGEST_STAGED_LINE):
        seen(piece)
        yield piece.rstrip(b"\n")
        while len(piece) == LONGEST_STAGED_LINE and not piece.endswith(b"\n"):
            piece = file.readline(LONGEST_STAGED_LINE)
            seen(piece)


def thin_out_lines(lines: Iterable[bytes], most: int) -> tuple[list[bytes], int]:
    """Every n-th line, the head, and where a gate moved, in `most` bytes; and how many lines there are.

    Where a run was resumed its later rows take the place of the earlier ones, as if all were there.
    """
    kept: list[tuple[int, int, bytes, bool]] = []  # number, iteration, line, whether it must stay
    every, size, total, newest = 1, 0, 0, -1
    for number, line in enumerate(lines):
        total += 1
        found = _ITERATION_FIELD.search(line)
        at = int(found[1]) if found else newest
        if found and at <= newest:
            while kept and kept[-1][1] >= at:
                size -= len(kept.pop()[2])
        newest = at
        moved = any(word in line for word in _PHASE_CHANGE_WORDS)
        if not moved and number % every and found:
            continue
        kept.append((number, at, line, moved))
        size += len(line)
        while size > most and len(kept) > 2:
            every *= 2
            kept = _halve_kept_lines(kept, every, most)
            size = sum(len(each[2]) for each in kept)
    return [line for _, _, line, _ in kept], total


def _halve_kept_lines(
    kept: list[tuple[int, int, bytes, bool]], every: int, most: int
) -> list[tuple[int, int, bytes, bool]]:
    found = [each for place, each in enumerate(kept) if place == 0 or each[3] or each[0] % every == 0]
    # moves alone may be too many: then they are halved too
    return found if sum(len(each[2]) for each in found) <= 0.75 * most else [kept[0], *kept[1::2]]


GATES_REPORT_FOLDER = f"{REPORTS_FOLDER}/gates"
GATES_STAMP_PREFIX = "gates-"  # how the names of its stamps begin
PARTIAL_MARK = "PARTIAL"


@dataclass(frozen=True, slots=True)
class DrawnRunFiles:
    folder: Path
    files: tuple[Path, ...]
    captions: Mapping[str, str]
    notes: Sequence[str]
    contradictions: Sequence[str]
    inputs: Mapping[str, str] = field(default_factory=dict)  # path -> sha256
    stamped: bool = False


def drawn_files_as_json(made: DrawnRunFiles) -> dict[str, Any]:
    return {
        "folder": str(made.folder),
        "files": [str(path) for path in made.files],
        "captions": dict(made.captions),
        "notes": list(made.notes),
        "contradictions": list(made.contradictions),
        "inputs": [{"path": path, "sha256": digest} for path, digest in made.inputs.items()],
        "stamped": made.stamped,
    }


def draw_run_or_cell(target: str, base: Path, into: Path | None, language: str | None, tell: Tell) -> DrawnRunFiles:
    """The folder of a run, one of its files, or a cell. What exists as a path is a path."""
    path = base / target
    if target.strip() and path.exists():
        return draw_run_folder(_folder_of_run(path, target), into, language or "en")
    missing = UsageError(
        f"there is no folder {target!r}", hint="name the folder of a run, or a cell where a campaign is"
    )
    desk = open_campaign_instead_of_path(base, missing)
    desk.refuse_stranger()
    status = observe_and_revive(desk, tell)
    name = resolve_one_cell(target, declared_names(status.state), withdrawn_names(status.state))
    (cell,) = select_named_cells(status, [name])
    return draw_cell_pictures(desk, status, cell, into, language or status.state.campaign.language)


def _folder_of_run(path: Path, target: str) -> Path:
    if path.is_dir():
        return path
    if staged_file_kind(path.name) is None:
        raise UsageError(
            f"{target} is none of the files of a run", hint=f"those are called {', '.join(STAGED_FILE_ENDINGS)}"
        )
    return path.parent


def draw_run_folder(folder: Path, into: Path | None, language: str) -> DrawnRunFiles:
    """`into`: where to; else its own folder `figures`."""
    found = read_staged_files([folder])
    drawn = _draw_read_files(found, language, str(folder), folder.resolve().name)
    out = into or folder / "figures"
    return _write_drawn_pictures(out, found, drawn)


def draw_cell_pictures(
    desk: CampaignHandle, status: Status, cell: CellStatus, into: Path | None, language: str
) -> DrawnRunFiles:
    """Of the attempt that counts. What lies inside of the campaign's folder gets a stamp."""
    name = cell.record.cell.id
    attempt, output = attempt_that_counts(cell.record), output_of_cell(desk.state, cell)
    if attempt is None or output is None:
        raise MusterError(f"{name} has not run yet", hint=f"`muster why {shlex.quote(name)}` says what it waits for")
    found = read_staged_files([Path(output), attempt_folder(desk.state, *attempt.place)])
    over = cell.record.done
    drawn = _draw_read_files(found, language, output, f"{name}, attempt {attempt.n}", "" if over else PARTIAL_MARK)
    out = into or desk.root / GATES_REPORT_FOLDER / name
    if not out.resolve().is_relative_to(desk.root.resolve()):
        return _write_drawn_pictures(out, found, drawn)
    hashes = HashCache(desk.state)
    cells = {name: _stamp_staged_cell(desk, cell, [str(path) for path in found.paths.values()], hashes)}
    hashes.save()
    basis = StampBasis(status.state.campaign.name, {}, cells, int(over), 1, () if over else (name,), closed=True)
    inside = out.resolve().relative_to(desk.root.resolve())
    derived = [
        DerivedFile(str(inside / _mark_name_partial(each, over)), data, "figure", (name,))
        for each, data in drawn.files.items()
    ]
    made, command = f"{GATES_STAMP_PREFIX}{name.replace('/', '_')}", f"muster gates draw {name}"
    kept = publish_derived_files(desk.root, made, command, status.as_of, muster.__version__, basis, derived)
    return _make_drawn_run_files(out, [desk.root / path for path in kept.written], found, drawn, stamped=True)


def _mark_name_partial(file: str, over: bool) -> str:
    """`gate_timeline.PARTIAL.png`: a later, whole one takes its place."""
    stem, _, suffix = file.rpartition(".")
    return file if over else f"{stem}.{PARTIAL_MARK}.{suffix}"


def stamp_staged_cells(desk: CampaignHandle, status: Status, stamp: Stamp, hashes: HashCache) -> dict[str, CellStamp]:
    """What a stamp of these pictures rests on, as it is now."""
    cells = {cell.record.cell.id: cell for cell in (*status.cells, *status.withdrawn)}
    return {
        name: _stamp_staged_cell(desk, cells[name], list(before.files), hashes)
        for name, before in stamp.basis.cells.items()
        if name in cells and attempt_that_counts(cells[name].record) is not None
    }


def _stamp_staged_cell(desk: CampaignHandle, cell: CellStatus, paths: Sequence[str], hashes: HashCache) -> CellStamp:
    attempt = attempt_that_counts(cell.record)
    if attempt is None:
        raise LookupError(cell.record.cell.id)
    order, _ = OriginReader(desk, hashes, values=False).order(cell.record, attempt)
    files = {path: hashes.sha256(path) for path in paths}
    return make_cell_stamp(desk, cell.record, ResultOrigins(files=files), order, (), attempt)


def _draw_read_files(found: StagedFiles, language: str, where: str, of: str, mark: str = "") -> DrawnPictures:
    if not found.texts:
        said = [StageCaptions(language).note(each) for each in found.notes]
        hint = "; ".join([*said[:4], f"looked for {', '.join(STAGED_FILE_ENDINGS)}"])
        raise MusterError("nothing that a staged training leaves can be read there", where=where, hint=hint)
    artifacts = parse_staged_artifacts(found.texts, found.hashes, found.thinned, found.notes)
    drawn = draw_staged_pictures(artifacts, language, of=of, version=muster.__version__, mark=mark)
    if not drawn.files:
        hint = "; ".join(drawn.notes[:6]) or "its files hold no rows yet"
        raise MusterError("there is nothing to draw in it", where=where, hint=hint)
    return drawn


def _write_drawn_pictures(out: Path, found: StagedFiles, drawn: DrawnPictures) -> DrawnRunFiles:
    paths = [out / name for name in drawn.files]
    with explain_failed_writes(out):
        make_public_folder(out, parents=True)
        for path, data in zip(paths, drawn.files.values(), strict=True):
            write_derived_file(path, data)
    return _make_drawn_run_files(out, paths, found, drawn)


def _make_drawn_run_files(
    out: Path, paths: Sequence[Path], found: StagedFiles, drawn: DrawnPictures, *, stamped: bool = False
) -> DrawnRunFiles:
    inputs = {str(path): found.hashes[name] for name, path in found.paths.items()}
    return DrawnRunFiles(out, tuple(paths), drawn.captions, drawn.notes, drawn.contradictions, inputs, stamped)
