"""Gathers what the written record is made from, and writes it."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import muster
from muster.acts.manifest import KINDS
from muster.acts.record import Sources
from muster.acts.stamping import REPORTS, Derived, digest_of, publish, refused, words_of_people, write
from muster.acts.status import Status
from muster.domain.errors import MusterError, UsageError
from muster.execute.local import read_order
from muster.execute.paths import attempt_folder
from muster.ports.known_secrets import mask_output
from muster.ports.regular_files import read_start
from muster.ports.store import Event
from muster.report.record_wording import TEXTS
from muster.report.stamp import Basis
from muster.store import campaigns
from muster.wiring.desk import Desk
from muster.wiring.listing import files_of
from muster.wiring.planning import slot_count

FILE = "record.md"


def gather(desk: Desk, status: Status) -> tuple[list[Event], Sources]:
    """Everything that the record needs; changes nothing."""
    state = desk.state

    def text_of(name: str) -> str | None:
        try:
            return campaigns.taken(state, name).text
        except MusterError:
            return None

    sources = Sources(
        root=str(desk.root),
        state=str(state),
        folder_of=lambda cell, n: str(attempt_folder(state, cell, n)),
        order_of=lambda cell, n: read_order(attempt_folder(state, cell, n)),
        text_of=text_of,
        exists=holds_something,
        files=_counted(desk, status),
        slots=slot_count(status.state.campaign),
    )
    return desk.store.events(), sources


def holds_something(path: str) -> bool:
    found = Path(path)
    return found.is_dir() or (found.is_file() and found.stat().st_size > 0)


def _counted(desk: Desk, status: Status) -> dict[str, tuple[int, int]]:
    entries = files_of(desk.root, status.state)
    found = {kind: [entry.bytes for entry in entries if entry.kind == kind] for kind in KINDS}
    return {kind: (len(sizes), sum(sizes)) for kind, sizes in found.items() if sizes}


def place(desk: Desk, start: Path, out: str | None) -> Path:
    """Where the record goes: reports/record.md, or where it was asked for."""
    if out is None:
        return desk.root / REPORTS / FILE
    if not out.strip():
        raise UsageError("--out is empty", hint="name a file, or write --out - to see it here")
    path = (start / out).absolute()
    if path.is_dir():
        raise UsageError(f"--out {out}: this is a folder", where=str(path), hint=f"name a file: --out {out}/{FILE}")
    if not path.parent.is_dir():
        raise UsageError(f"--out {out}: there is no folder {path.parent}", where=str(path), hint="create it first")
    if not _may_be_replaced(path):
        what = f"--out {out}: this file is there already and is no record: it is not overwritten"
        raise UsageError(what, where=str(path), hint="name another file, or move that one away")
    return path


def _may_be_replaced(path: Path) -> bool:
    """Only an earlier record, or nothing: a slip of the hand must not cost a campaign file."""
    if not os.path.lexists(path):
        return True
    if not path.is_file():  # a device, a link to nowhere
        return False
    begin = read_start(path, 64)
    titles = [f"# {texts['title'].partition('{')[0]}".encode() for texts in TEXTS.values()]
    return not begin or any(begin.startswith(title) for title in titles)


def write_stamped(desk: Desk, status: Status, made: str, command: str, path: Path, text: str) -> None:
    """With a stamp, so that `verify` can say that it was overtaken; a copy elsewhere carries none."""
    data = mask_output(text).encode("utf-8", "replace")
    home, place_ = desk.root.resolve(), path.parent.resolve() / path.name  # `--out ../x` is elsewhere
    if not place_.is_relative_to(home):
        with refused(path.parent):
            write(path, data)
        return
    campaign, cells = status.state.campaign, status.cells
    missing = tuple(cell.record.cell.id for cell in cells if not cell.record.done)
    done = len(cells) - len(missing)
    told = digest_of(status.state, words_of_people(desk.store.events()))
    basis = Basis(campaign.name, {}, {}, done, len(cells), missing, state=told)
    name = str(place_.relative_to(home))
    if name != f"{REPORTS}/{made}.md":  # each place has a stamp of its own: one record does not replace another
        made, command = f"{made}-{_slug(name)}", f"{command} --out {shlex.quote(name)}"
    publish(desk.root, made, command, status.as_of, muster.__version__, basis, [Derived(name, data, "text")])


def _slug(name: str) -> str:
    """Of a path, for the name of its stamp: no two paths share one, and none is too long for a file's name."""
    import hashlib

    return f"{name.replace('/', '_')[-40:]}-{hashlib.sha256(name.encode('utf-8', 'surrogateescape')).hexdigest()[:8]}"
