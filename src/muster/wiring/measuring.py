"""Finds what was asked for, a folder, a file or a cell, and measures what runs logged there."""

from __future__ import annotations

import difflib
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from muster.acts.metrics import CLOCKS, Block
from muster.acts.status import CellStatus, Status
from muster.domain.errors import MusterError, UsageError
from muster.domain.wording import counted
from muster.observe.metrics.discover import Discovered, Run, discover
from muster.observe.metrics.meter import Feed, Measured, Meter
from muster.observe.metrics.names import LOOKED_FOR
from muster.ports.folders import glob_paths
from muster.report.resumed import resumed_text
from muster.wiring.desk import Desk
from muster.wiring.histories import history_of, measure

NAMED = 12  # keys, where none fits


@dataclass(frozen=True, slots=True)
class Wanted:
    """The keys that were asked for; no glob asks for all."""

    globs: tuple[str, ...] = ()

    def __call__(self, key: str) -> bool:
        return not self.globs or any(fnmatchcase(key, each) for each in self.globs)

    def unmet(self, keys: Sequence[str]) -> list[str]:
        """Globs that no key fits."""
        return [each for each in self.globs if not any(fnmatchcase(key, each) for key in keys)]


Asked = tuple[str, Callable[[], list[Block]]]  # its name, and how it is read


def of_all(asked: Iterable[Asked], wanted: Wanted) -> list[Block]:
    """The runs of all that was asked for; where one has nothing that is noted. Raises where all have nothing."""
    blocks: list[Block] = []
    missing: list[MusterError] = []
    for name, read in asked:
        try:
            blocks += read()
        except UsageError:
            raise
        except MusterError as error:
            missing.append(error)
            blocks.append(Block(name, (), {}, notes=(error.message,)))
    if missing and len(missing) == len(blocks):
        first, more = missing[0], len(missing) - 1
        told = f"; nor do {more} others hold any" if more > 1 else "; nor does the other hold any" if more else ""
        raise MusterError(f"{first.message}{told}", where=first.where, hint=first.hint)
    _refuse_unknown(blocks, wanted)
    return blocks


def _refuse_unknown(blocks: Sequence[Block], wanted: Wanted) -> None:
    """A key that no run has is a slip of the pen, where some run has others."""
    others = list(dict.fromkeys(key for block in blocks for key in block.others))
    if not others or any(block.keys for block in blocks):
        return
    known = sorted(set(others) - CLOCKS) or others
    near = difflib.get_close_matches(wanted.globs[0], known, 1)
    more = f" and {len(known) - NAMED} more" if len(known) > NAMED else ""
    meant = f"did you mean {near[0]}? " if near else ""
    raise UsageError(f"no key fits {_flags(wanted.globs)}", hint=f"{meant}logged are: {', '.join(known[:NAMED])}{more}")


def _flags(globs: Sequence[str]) -> str:
    return " ".join(f"--key {each}" for each in globs)


# -- folders


def paths_meant(target: str, base: Path) -> list[str]:
    """What exists by that name; a glob may fit many, and of folders within each other the outer ones are meant."""
    path = base / target
    if path.exists():
        return [str(path)]
    if not any(letter in target for letter in "*?["):
        return []
    found = sorted(glob_paths(str(path)), key=lambda each: (each.count(os.sep), each))
    outer: list[str] = []
    for each in found:
        if not any(each.startswith(known.rstrip(os.sep) + os.sep) for known in outer):
            outer.append(each.rstrip(os.sep))
    return sorted(outer)


def asked_path(path: str, base: Path, keys: Wanted) -> Asked:
    return shown(path, base), lambda: of_path(path, base, keys)


def of_path(path: str, base: Path, keys: Wanted) -> list[Block]:
    """A block for each run in it. Raises where there is none."""
    found = discover(path)
    if not found.runs:
        raise MusterError(
            f"nothing that a run logged is in {shown(path, base)}", where=path, hint=f"looked for {_looked(found)}"
        )
    notes = (*filter(None, [found.cut]), *found.troubles)
    return [_block(shown(run.folder, base), run, measure(run, keys), keys, notes) for run in found.runs]


def _looked(found: Discovered) -> str:
    told = "; ".join(filter(None, (found.cut, *found.troubles[:3])))
    return f"{LOOKED_FOR}; {told}" if told else LOOKED_FOR


def shown(path: str, base: Path) -> str:
    short = os.path.relpath(path, base)
    return path if short.startswith("..") else short


def _block(name: str, run: Run, found: Measured, keys: Wanted, notes: tuple[str, ...] = ()) -> Block:
    whys = [source.why for source in run.sources]
    return measured_block(name, found, whys, keys, (*notes, *run.passed))


def measured_block(name: str, found: Measured, whys: Sequence[str], keys: Wanted, notes: tuple[str, ...]) -> Block:
    sources = tuple(zip(found.sources, whys, strict=True))
    unmet = keys.unmet([*found.keys, *found.others]) if found.keys or found.others else []
    told = [f"none of its keys fits {_flags(unmet)}"] if unmet else []
    notes = (*notes, *found.troubles, *told)
    return Block(name, sources, found.keys, found.ended, found.written, notes, found.others)


# -- cells


def asked_cell(desk: Desk, cell: CellStatus, keys: Wanted) -> Asked:
    return cell.record.cell.id, lambda: [of_cell(desk, cell, keys)]


def of_cell(desk: Desk, cell: CellStatus, keys: Wanted) -> Block:
    """The run of the attempt that counts: its output, or what it printed. Raises where there is nothing."""
    name = cell.record.cell.id
    found = history_of(desk.state, cell, keys)
    if found is None:
        raise MusterError(f"{name} has not run yet", hint=f"`muster why {shlex.quote(name)}` says what it waits for")
    if found.run is None or found.measured is None:
        hint = f"looked for {'; '.join([LOOKED_FOR, *found.told[:4]])}"
        raise MusterError(f"{name} has logged nothing yet", where=found.output, hint=hint)
    resumed = (resumed_text(found.resumed),) if found.resumed else ()
    return _block(name, found.run, found.measured, keys, (*resumed, *found.told))


def cells_named(status: Status, names: Sequence[str]) -> Iterator[CellStatus]:
    known = {cell.record.cell.id: cell for cell in status.cells}
    for name in names:
        if name not in known:
            raise UsageError(f"{name} is no longer declared", hint="name the folder it wrote to")
        yield known[name]


# -- a W&B server


def online(path: str, keys: Wanted) -> list[Block]:
    from muster.observe.metrics.wandb_online import MOST_RUNS, online_runs

    parts = path.strip("/").split("/")
    if len(parts) not in (2, 3) or not all(parts):
        raise UsageError(f"--wandb-online {path}: a project is named ENTITY/PROJECT", hint="for example: me/act-ot")
    blocks = []
    for name, reader, more in online_runs("/".join(parts)):
        meter = Meter([Feed(reader)], keys)
        meter.look()
        notes = (f"only the first {counted(MOST_RUNS, 'run')} of {path} were asked for",) if more else ()
        blocks.append(measured_block(name, meter.measured(), ["asked for on the server"], keys, notes))
    if not blocks:
        raise MusterError(f"there is no run in {path}")
    return blocks
