"""`muster trace`: from a derived file, or a sentence in it, back to result files, checkpoints, attempts and code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muster.acts.verify import FileState, with_needs
from muster.domain.errors import UsageError
from muster.domain.wording import counted
from muster.report.claims import Claim
from muster.report.stamp import CellStamp, CheckpointStamp, FileStamp, Stamp

SHOWN = 8
NAMED = 12
DIGITS = 12  # of a hash
TABLE = "table"


@dataclass(frozen=True, slots=True)
class Trace:
    stamp: Stamp
    path: str
    file: FileStamp
    state: FileState
    claims: tuple[Claim, ...]  # all, or the one that was asked for
    cells: tuple[CellStamp, ...]  # what it rests on, what these need included
    chosen: bool = False  # a claim was asked for

    @property
    def commits(self) -> list[str]:
        named = [_code(cell) for cell in self.cells]
        return list(dict.fromkeys(name for name in named if name))


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the file, whose claims are meant."""

    number: int
    text: str


def trace(stamp: Stamp, path: str, state: FileState, claim: str | None = None, line: Line | None = None) -> Trace:
    """`claim`: E3, or L5.3 of a table."""
    file = stamp.files[path]
    claims = _claims(file, path, claim, line)
    chosen = claim is not None or line is not None
    names = [name for each in claims for name in each.cells] if chosen else _cells(stamp, file)
    return Trace(stamp, path, file, state, claims, tuple(_with_needs(stamp, names)), chosen)


def _claims(file: FileStamp, path: str, claim: str | None, line: Line | None) -> tuple[Claim, ...]:
    if claim is not None:
        found = tuple(each for each in file.claims if each.id.lower() == claim.lower())
        if not found:
            known = few([each.id for each in file.claims]) or "none"
            raise UsageError(f"{path} has no claim {claim}", hint=f"its claims: {known}")
        return found
    if line is not None and file.kind == TABLE:
        return _of_row(file, path, line)
    if line is not None:
        found = tuple(each for each in file.claims if f"[{each.id}]" in line.text)
        if not found:
            raise UsageError(
                f"that line of {path} makes no claim that rests on results",
                hint="claims end in a mark such as [E3]; without a line all of them are shown",
            )
        return found
    return file.claims


def _of_row(file: FileStamp, path: str, line: Line) -> tuple[Claim, ...]:
    """The numbers of a line of a table."""
    by_line: dict[int, list[Claim]] = {}
    for each in file.claims:
        by_line.setdefault(int(each.id[1:].partition(".")[0]), []).append(each)
    if line.number in by_line:
        return tuple(by_line[line.number])
    hint = f"numbers are in its lines {few([str(number) for number in by_line])}"
    if not by_line:
        hint = "it was made by an earlier version: `muster report` makes it anew, with lines that can be traced"
    raise UsageError(f"line {line.number} of {path} has no number that rests on results", hint=hint)


def few(names: Sequence[str], most: int = NAMED) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _cells(stamp: Stamp, file: FileStamp) -> list[str]:
    return list(stamp.basis.cells) if file.cells is None else list(file.cells)


def _with_needs(stamp: Stamp, names: Sequence[str]) -> Iterator[CellStamp]:
    cells = stamp.basis.cells
    found = with_needs(names, {name: each.needs for name, each in cells.items()})
    return (cells[name] for name in found if name in cells)


def lines(found: Trace, *, every: bool = False) -> Iterator[str]:
    stamp, basis = found.stamp, found.stamp.basis
    partial = f", PARTIAL: {counted(len(basis.missing), 'cell was', 'cells were')} missing" if basis.missing else ""
    yield f"{found.path}  {found.state.state}" + (f": {found.state.because}" if found.state.because else "")
    yield f"  made by `{stamp.command}` at {stamp.at}, muster {stamp.version}, sha256 {found.file.sha256[:DIGITS]}"
    yield f"  rests on {basis.k} of {counted(basis.n)} of {basis.campaign}{partial}"
    if found.commits:
        yield f"  code: {', '.join(found.commits)}"
    if found.claims and found.file.kind == TABLE and not found.chosen:
        yield f"  one row of it: `muster trace {found.path}:{found.claims[0].id[1:].partition('.')[0]}`"
    for claim in found.claims if found.chosen or found.file.kind != TABLE else ():
        count = f"{len(claim.cells)} cells" if len(claim.cells) != 1 else claim.cells[0]
        columns = f", {', '.join(claim.columns)}" if claim.columns else ""
        yield f"  [{claim.id}] {claim.text}"
        yield f"       rests on {count}{columns}"
    shown = found.cells if every or found.chosen else found.cells[:SHOWN]
    for cell in shown:
        yield from _cell_lines(cell)
    if len(shown) < len(found.cells):
        more = counted(len(found.cells) - len(shown), "more cell")
        one = ", FILE:LINE those of one row" if found.file.kind == TABLE else ", --claim E1 those of one sentence"
        yield f"  and {more}: --all shows them{one if found.claims else ''}"


def _cell_lines(cell: CellStamp) -> Iterator[str]:
    how = "adopted" if cell.adopted else f"attempt {cell.attempt}"
    yield f"  {cell.cell}  {how}  {cell.folder if not cell.adopted else cell.output or ''}"
    if cell.formerly:
        yield f"    formerly {', '.join(cell.formerly)}"
    if cell.results:
        yield f"    results: {', '.join(f'{name} = {value:.6g}' for name, value in cell.results.items())}"
    for path, digest in cell.files.items():
        yield f"    file: {path}  {_short(digest)}"
    if cell.checkpoint:
        yield f"    checkpoint: {cell.checkpoint.path}  {_short(cell.checkpoint.sha256)}{_when(cell.checkpoint)}"
    if cell.command:
        yield f"    command: {cell.command}"
    code = _code(cell)
    yield f"    definition {cell.definition or 'not known'}" + (f", code {code}" if code else "")
    if cell.needs:
        yield f"    needs {', '.join(cell.needs[:3])}" + (f" and {len(cell.needs) - 3} more" if cell.needs[3:] else "")


def _when(saved: CheckpointStamp) -> str:
    """By its own step, and by its time."""
    when = "" if saved.share is None else f", saved at {int(saved.share * 100)} % of the training"
    held = "" if saved.step is None else f", holds step {saved.step:.0f}"
    return held + ("" if saved.steps_share is None else f" ({int(saved.steps_share * 100)} % of its steps)") + when


def _short(digest: str | None) -> str:
    return f"sha256 {digest[:DIGITS]}" if digest else "could not be read"


def _code(cell: CellStamp) -> str:
    if cell.code and cell.code != cell.commit:
        return f"{cell.code} (diff {cell.dirty})" if cell.commit and cell.dirty else cell.code
    if not cell.commit:
        return ""
    return f"commit {cell.commit[:DIGITS]}" + (f" with changes {cell.dirty}" if cell.dirty else "")


def as_json(found: Trace) -> dict[str, Any]:
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
        "cells": [_cell_json(cell) for cell in found.cells],
    }


def _checkpoint_json(saved: CheckpointStamp) -> Mapping[str, Any]:
    return {
        "path": saved.path,
        "sha256": saved.sha256,
        "share": saved.share,
        "step": saved.step,
        "steps_share": saved.steps_share,
    }


def _cell_json(cell: CellStamp) -> Mapping[str, Any]:
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
        "checkpoint": _checkpoint_json(saved) if saved else None,
        "needs": list(cell.needs),
        "formerly": list(cell.formerly),
    }
