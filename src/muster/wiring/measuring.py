"""Finds what was asked for, a folder, a file or a cell, and measures what runs logged there."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from muster.acts.metrics import Block
from muster.acts.status import CellStatus, Status
from muster.domain.errors import MusterError, UsageError
from muster.execute.paths import attempt_folder
from muster.observe.metrics.discover import Discovered, Run, discover, run_of
from muster.observe.metrics.meter import Feed, Measured, Meter
from muster.observe.metrics.names import LOOKED_FOR
from muster.wiring.desk import Desk

Wanted = Callable[[str], bool]


def wanted(globs: Sequence[str]) -> Wanted:
    return lambda key: not globs or any(fnmatchcase(key, each) for each in globs)


# -- folders


def paths_meant(target: str, base: Path) -> list[str]:
    """What exists by that name; a glob may fit many, and of folders within each other the outer ones are meant."""
    path = base / target
    if path.exists():
        return [str(path)]
    if not any(letter in target for letter in "*?["):
        return []
    found = sorted(glob.glob(str(path), recursive=True), key=lambda each: (each.count(os.sep), each))  # noqa: PTH207
    outer: list[str] = []
    for each in found:
        if not any(each.startswith(known.rstrip(os.sep) + os.sep) for known in outer):
            outer.append(each.rstrip(os.sep))
    return sorted(outer)


def of_path(path: str, base: Path, keys: Wanted) -> list[Block]:
    """A block for each run in it. Raises where there is none."""
    found = discover(path)
    if not found.runs:
        raise MusterError(
            f"nothing that a run logged is in {_shown(path, base)}", where=path, hint=f"looked for {_looked(found)}"
        )
    notes = (found.cut,) if found.cut else ()
    return [_block(_shown(run.folder, base), run, keys, (*notes, *found.troubles)) for run in found.runs]


def _looked(found: Discovered) -> str:
    told = "; ".join(filter(None, (found.cut, *found.troubles[:3])))
    return f"{LOOKED_FOR}; {told}" if told else LOOKED_FOR


def _shown(path: str, base: Path) -> str:
    shown = os.path.relpath(path, base)
    return path if shown.startswith("..") else shown


def _block(name: str, run: Run, keys: Wanted, notes: tuple[str, ...] = ()) -> Block:
    whys = [source.why for source in run.sources]
    return measured_block(name, run.feeds(), whys, keys, (*notes, *run.passed))


def measured_block(name: str, feeds: list[Feed], whys: Sequence[str], keys: Wanted, notes: tuple[str, ...]) -> Block:
    meter = Meter(feeds, keys)
    meter.look()
    found: Measured = meter.measured()
    sources = tuple(zip(found.sources, whys, strict=True))
    return Block(name, sources, found.keys, found.ended, found.written, (*notes, *found.troubles))


# -- cells


def of_cell(desk: Desk, cell: CellStatus, keys: Wanted) -> Block:
    """The run of its newest attempt: its output, or what it printed. Raises where there is nothing."""
    name = cell.record.cell.id
    attempt = cell.record.last
    if attempt is None:
        raise MusterError(f"{name} has not run yet", hint=f"`muster why {name}` says what it waits for")
    folder = attempt_folder(desk.state, *attempt.key)
    output = (attempt.outcome.output if attempt.outcome else None) or cell.output or str(folder / "out")
    places = [output, str(folder)]
    for place in places:
        run = run_of(place).run if os.path.lexists(place) else None
        if run is not None:
            return _block(name, run, keys)
    raise MusterError(f"{name} has logged nothing yet", where=output, hint=f"looked for {LOOKED_FOR}")


def cells_named(status: Status, names: Sequence[str]) -> Iterator[CellStatus]:
    known = {cell.record.cell.id: cell for cell in status.cells}
    for name in names:
        if name not in known:
            raise UsageError(f"{name} is no longer declared", hint="name the folder it wrote to")
        yield known[name]


# -- a W&B server


def online(path: str, keys: Wanted) -> list[Block]:
    from muster.observe.metrics.wandb_online import online_runs

    parts = path.strip("/").split("/")
    if len(parts) not in (2, 3) or not all(parts):
        raise UsageError(f"--wandb-online {path}: a project is named ENTITY/PROJECT", hint="for example: me/act-ot")
    why = "asked for on the server"
    blocks = [measured_block(name, [Feed(reader)], [why], keys, ()) for name, reader in online_runs("/".join(parts))]
    if not blocks:
        raise MusterError(f"there is no run in {path}")
    return blocks
