"""`muster trace`: from a derived file, or a sentence in it, back to result files, checkpoints, attempts and code,
compared with what is there now.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.stamp import CellStamp, CheckpointStamp, FileStamp, ReportClaim, Stamp
from muster.app.campaign.stamp_files import read_all_stamps
from muster.app.report.verify_files import FileState, file_states_of_stamps
from muster.files.safe_open import read_regular_file
from muster.model.cell import cells_with_needs
from muster.model.errors import UsageError
from muster.text.phrases import phrase
from muster.text.sentences import join_few_names

MOST_CELLS_SHOWN = 8
MOST_NAMES_SHOWN = 12
DIGEST_DIGITS = 12  # of a hash
TABLE_KIND = "table"


@dataclass(frozen=True, slots=True)
class FileTrace:
    stamp: Stamp
    path: str
    file: FileStamp
    state: FileState
    claims: tuple[ReportClaim, ...]  # all, or the one that was asked for
    cells: tuple[CellStamp, ...]  # what it rests on, what these need included
    chosen: bool = False  # a claim was asked for

    @property
    def commits(self) -> list[str]:
        named = [_format_code_of_stamp(cell) for cell in self.cells]
        return list(dict.fromkeys(name for name in named if name))


@dataclass(frozen=True, slots=True)
class TracedLine:
    """A line of the file, whose claims are meant."""

    number: int
    text: str


def trace_file_claims(
    stamp: Stamp, path: str, state: FileState, claim: str | None = None, line: TracedLine | None = None
) -> FileTrace:
    """`claim`: E3, or L5.3 of a table."""
    file = stamp.files[path]
    claims = _choose_claims(file, path, claim, line)
    chosen = claim is not None or line is not None
    names = [name for each in claims for name in each.cells] if chosen else _cells_of_file(stamp, file)
    return FileTrace(stamp, path, file, state, claims, tuple(_cell_stamps_with_needs(stamp, names)), chosen)


def _choose_claims(file: FileStamp, path: str, claim: str | None, line: TracedLine | None) -> tuple[ReportClaim, ...]:
    if claim is not None:
        found = tuple(each for each in file.claims if each.id.lower() == claim.lower())
        if not found:
            known = join_few_names([each.id for each in file.claims], MOST_NAMES_SHOWN) or "none"
            raise UsageError(f"{path} has no claim {claim}", hint=f"its claims: {known}")
        return found
    if line is not None and file.kind == TABLE_KIND:
        return _claims_of_table_line(file, path, line)
    if line is not None:
        found = tuple(each for each in file.claims if f"[{each.id}]" in line.text)
        if not found:
            raise UsageError(
                f"that line of {path} makes no claim that rests on results",
                hint="claims end in a mark such as [E3]; without a line all of them are shown",
            )
        return found
    return file.claims


def _claims_of_table_line(file: FileStamp, path: str, line: TracedLine) -> tuple[ReportClaim, ...]:
    """The numbers of a line of a table."""
    by_line: dict[int, list[ReportClaim]] = {}
    for each in file.claims:
        by_line.setdefault(int(each.id[1:].partition(".")[0]), []).append(each)
    if line.number in by_line:
        return tuple(by_line[line.number])
    hint = f"numbers are in its lines {join_few_names([str(number) for number in by_line], MOST_NAMES_SHOWN)}"
    if not by_line:
        hint = "it was made by an earlier version: `muster report` makes it anew, with lines that can be traced"
    raise UsageError(f"line {line.number} of {path} has no number that rests on results", hint=hint)


def _cells_of_file(stamp: Stamp, file: FileStamp) -> list[str]:
    return list(stamp.basis.cells) if file.cells is None else list(file.cells)


def _cell_stamps_with_needs(stamp: Stamp, names: Sequence[str]) -> Iterator[CellStamp]:
    cells = stamp.basis.cells
    found = cells_with_needs(names, {name: each.needs for name, each in cells.items()})
    return (cells[name] for name in found if name in cells)


def format_trace_lines(found: FileTrace, *, every: bool = False) -> Iterator[str]:
    stamp, basis = found.stamp, found.stamp.basis
    partial = f", PARTIAL: {phrase('count.cell_was', n=len(basis.missing))} missing" if basis.missing else ""
    yield f"{found.path}  {found.state.state}" + (f": {found.state.because}" if found.state.because else "")
    yield (
        f"  made by `{stamp.command}` at {stamp.at}, muster {stamp.version}, sha256 {found.file.sha256[:DIGEST_DIGITS]}"
    )
    yield f"  rests on {basis.k} of {phrase('count.cell', n=basis.n)} of {basis.campaign}{partial}"
    if found.commits:
        yield f"  code: {', '.join(found.commits)}"
    if found.claims and found.file.kind == TABLE_KIND and not found.chosen:
        yield f"  one row of it: `muster trace {found.path}:{found.claims[0].id[1:].partition('.')[0]}`"
    for claim in found.claims if found.chosen or found.file.kind != TABLE_KIND else ():
        count = f"{len(claim.cells)} cells" if len(claim.cells) != 1 else claim.cells[0]
        columns = f", {', '.join(claim.columns)}" if claim.columns else ""
        yield f"  [{claim.id}] {claim.text}"
        yield f"       rests on {count}{columns}"
    shown = found.cells if every or found.chosen else found.cells[:MOST_CELLS_SHOWN]
    for cell in shown:
        yield from _format_cell_stamp(cell)
    if len(shown) < len(found.cells):
        more = phrase("count.more_cell", n=len(found.cells) - len(shown))
        one = ", FILE:LINE those of one row" if found.file.kind == TABLE_KIND else ", --claim E1 those of one sentence"
        yield f"  and {more}: --all shows them{one if found.claims else ''}"


def _format_cell_stamp(cell: CellStamp) -> Iterator[str]:
    how = "adopted" if cell.adopted else f"attempt {cell.attempt}"
    yield f"  {cell.cell}  {how}  {cell.folder if not cell.adopted else cell.output or ''}"
    if cell.formerly:
        yield f"    formerly {', '.join(cell.formerly)}"
    if cell.results:
        yield f"    results: {', '.join(f'{name} = {value:.6g}' for name, value in cell.results.items())}"
    for path, digest in cell.files.items():
        yield f"    file: {path}  {_format_short_sha256(digest)}"
    if cell.checkpoint:
        yield (
            f"    checkpoint: {cell.checkpoint.path}  "
            f"{_format_short_sha256(cell.checkpoint.sha256)}{_format_checkpoint_share(cell.checkpoint)}"
        )
    if cell.command:
        yield f"    command: {cell.command}"
    code = _format_code_of_stamp(cell)
    yield f"    definition {cell.definition or 'not known'}" + (f", code {code}" if code else "")
    if cell.needs:
        yield f"    needs {join_few_names(cell.needs, 3)}"


def _format_checkpoint_share(saved: CheckpointStamp) -> str:
    """By its own step, and by its time."""
    when = "" if saved.share is None else f", saved at {int(saved.share * 100)} % of the training"
    held = "" if saved.step is None else f", holds step {saved.step:.0f}"
    return held + ("" if saved.steps_share is None else f" ({int(saved.steps_share * 100)} % of its steps)") + when


def _format_short_sha256(digest: str | None) -> str:
    return f"sha256 {digest[:DIGEST_DIGITS]}" if digest else "could not be read"


def _format_code_of_stamp(cell: CellStamp) -> str:
    if cell.code and cell.code != cell.commit:
        return f"{cell.code} (diff {cell.dirty})" if cell.commit and cell.dirty else cell.code
    if not cell.commit:
        return ""
    return f"commit {cell.commit[:DIGEST_DIGITS]}" + (f" with changes {cell.dirty}" if cell.dirty else "")


def trace_as_json(found: FileTrace) -> dict[str, Any]:
    stamp = found.stamp
    return {
        "path": found.path,
        "state": found.state.state,
        "because": found.state.because,
        "sha256": found.file.sha256,
        "made": {"command": stamp.command, "at": stamp.at, "version": stamp.version},
        "k": stamp.basis.k,
        "n": stamp.basis.n,
        "missing": list(stamp.basis.missing),
        "claims": [
            {"id": each.id, "text": each.text, "cells": list(each.cells), "columns": list(each.columns)}
            for each in found.claims
        ],
        "cells": [_cell_stamp_as_json(cell) for cell in found.cells],
    }


def _checkpoint_stamp_as_json(saved: CheckpointStamp) -> Mapping[str, Any]:
    return {
        "path": saved.path,
        "sha256": saved.sha256,
        "share": saved.share,
        "step": saved.step,
        "steps_share": saved.steps_share,
    }


def _cell_stamp_as_json(cell: CellStamp) -> Mapping[str, Any]:
    saved = cell.checkpoint
    return {
        "cell": cell.cell,
        "attempt": cell.attempt,
        "adopted": cell.adopted,
        "folder": cell.folder,
        "output": cell.output,
        "definition": cell.definition,
        "command": cell.command,
        "commit": cell.commit,
        "dirty": cell.dirty,
        "code": cell.code,
        "results": dict(cell.results),
        "files": [{"path": path, "sha256": digest} for path, digest in cell.files.items()],
        "checkpoint": _checkpoint_stamp_as_json(saved) if saved else None,
        "needs": list(cell.needs),
        "formerly": list(cell.formerly),
    }


LARGEST_TRACED = 64 << 20  # bytes of a text that is traced by its line


def trace_derived_file(desk: CampaignHandle, file: Path, here: Path, claim: str | None = None) -> FileTrace:
    """`file` is relative to where the command was called, or to the campaign; FILE:12 means its line 12."""
    file, number = _split_line_number(file, here)
    path, stamp = _find_stamped_file(desk, file, here)
    state = next(each for each in file_states_of_stamps(desk, [stamp]) if each.path == path)
    return trace_file_claims(
        stamp, path, state, claim, None if number is None else _read_traced_line(desk.root / path, number)
    )


def _split_line_number(file: Path, here: Path) -> tuple[Path, int | None]:
    name, _, number = str(file).rpartition(":")
    if name and number.isascii() and number.isdigit() and not (here / file).exists():
        return Path(name), int(number)
    return file, None


def _find_stamped_file(desk: CampaignHandle, file: Path, here: Path) -> tuple[str, Stamp]:
    known = {path: stamp for stamp in read_all_stamps(desk.root) for path in stamp.files}
    places = {(desk.root / path).resolve(): path for path in known}
    for start in (here.absolute(), Path.cwd(), desk.root, desk.root / "reports"):
        name = places.get((start / file).resolve())
        if name is not None:
            return name, known[name]
    near = [path for path in known if Path(path).name == file.name]
    if near:
        raise UsageError(f"{file} carries no stamp", hint=f"did you mean {near[0]}?")
    hint = f"stamped are: {join_few_names(list(known), 5)}" if known else "`muster report` makes reports"
    if str(file) in desk.load().cells:
        why = f"`muster why {shlex.quote(str(file))}`"
        raise UsageError(f"{file} is a cell, no file", hint=f"{why} tells how it came about")
    name, _, line = str(file).rpartition(":")
    if name and any((start / name).is_file() for start in (here, Path.cwd(), desk.root)):
        raise UsageError(f"{line!r} is no line of {name}", hint=f"write its number: {name}:12")
    found = [start / file for start in (here, Path.cwd(), desk.root) if (start / file).exists()]
    if found and found[0].is_dir():
        raise UsageError("this is a folder; one file can be traced", where=str(found[0].absolute()), hint=hint)
    what = "was not derived by Muster: it carries no stamp" if found else "does not exist"
    raise UsageError(f"{file} {what}", hint=hint)


def _read_traced_line(path: Path, number: int) -> TracedLine:
    try:
        lines = read_regular_file(path, LARGEST_TRACED).decode("utf-8", "replace").splitlines()
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}", where=str(path)) from None
    if not 0 < number <= len(lines):
        raise UsageError(f"{path.name} has {phrase('count.line', n=len(lines))}", where=str(path))
    return TracedLine(number, lines[number - 1])
