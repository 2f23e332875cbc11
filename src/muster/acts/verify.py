"""`muster verify`: whether a derived file still is what its inputs make of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from muster.acts.unread import rests_on_unread
from muster.report.stamp import Basis, CellStamp, FileStamp, Stamp

State = Literal["fresh", "stale", "broken"]
Hash = Callable[[str], str | None]
TOLD = 3
DOCUMENT = "document"  # a kind of file that is a person's, but for the numbers in it


@dataclass(frozen=True, slots=True)
class FileState:
    path: str
    state: State
    because: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """An input that is not what it was. `gone`: it can't be told any more what it was."""

    what: str
    gone: bool = False


def verify(stamp: Stamp, now: Basis, hash_: Hash, edited: Callable[[str], str] = lambda _: "") -> Iterator[FileState]:
    """`hash_` takes a path relative to the campaign's folder; None: there is no such file.

    `edited`: of a text that people may edit, why its bound numbers are not those that were written; empty: they are.
    """
    shared = [*_sections(stamp.basis, now), *_matrix(stamp.basis, now)]
    known = {**{old: each for each in now.cells.values() for old in each.formerly}, **now.cells}
    by_cell = {name: list(_cell(each, known.get(name))) for name, each in stamp.basis.cells.items()}
    needs = {name: each.needs for name, each in stamp.basis.cells.items()}
    for path, file in stamp.files.items():
        found = hash_(path)
        if file.kind == DOCUMENT and found not in (None, file.sha256):
            if because := edited(path):
                yield FileState(path, "broken", because)
                continue
            found = file.sha256
        names = by_cell if file.cells is None else with_needs(file.cells, needs)
        changes = [*shared, *(change for name in names for change in by_cell.get(name, ()))]
        yield _file(path, file, found, changes)


def with_needs(names: Iterable[str], needs: Mapping[str, Sequence[str]]) -> list[str]:
    """These cells and all that they rest on, each once."""
    seen: dict[str, None] = {}
    left = list(dict.fromkeys(names))[::-1]
    while left:
        name = left.pop()
        if name not in seen:
            seen[name] = None
            left += list(needs.get(name, ()))[::-1]
    return list(seen)


def _file(path: str, file: FileStamp, found: str | None, changes: list[Change]) -> FileState:
    if found is None:
        return FileState(path, "broken", "it was deleted, or can't be read")
    if found != file.sha256:
        return FileState(path, "broken", "it was changed after Muster had made it")
    if not changes:
        return FileState(path, "fresh")
    changes = sorted(changes, key=lambda change: not change.gone)
    more = f"; and {len(changes) - TOLD} more" if len(changes) > TOLD else ""
    told = "; ".join(change.what for change in changes[:TOLD]) + more
    return FileState(path, "broken" if changes[0].gone else "stale", told)


def _sections(before: Basis, now: Basis) -> Iterator[Change]:
    changed = [name for name, digest in before.sections.items() if now.sections.get(name) != digest]
    if changed:
        yield Change(f"campaign.yaml changed: {', '.join(changed)}")


def _matrix(before: Basis, now: Basis) -> Iterator[Change]:
    if before.state and before.state != now.state:
        yield Change("attempts were made or ended since, or another campaign.yaml was taken in")
    if before.state or before.closed:
        return
    if before.accepted != now.accepted:
        yield Change("a red flag was accepted since")
    new = [name for name, each in now.cells.items() if before.cells.keys().isdisjoint((name, *each.formerly))]
    if new:
        yield Change(f"{_few(new)} came in since")
    missing = [name for name in now.missing if name not in before.missing and name not in before.cells]
    if missing:
        yield Change(f"{_few(missing)} is declared and missing")


def _cell(before: CellStamp, now: CellStamp | None) -> Iterator[Change]:
    name = before.cell
    if rests_on_unread(before):
        yield Change(f"{name}: its numbers could not be read when it was made", gone=True)
    if now is None:
        yield Change(f"{name} is not DONE any more, or no longer declared", gone=True)
        return
    if now.cell != name:
        yield Change(f"{name} is called {now.cell} now")
    if now.token != before.token or now.attempt != before.attempt:
        yield Change(f"{name} was run again: attempt {now.attempt} counts now, not {before.attempt}")
        return
    for path, digest in before.files.items():
        if now.files.get(path) is None:
            yield Change(f"{name}: {path} is gone", gone=True)
        elif now.files[path] != digest:
            yield Change(f"{name}: {path} was changed")
    yield from _checkpoint(before, now)
    if dict(now.results) != dict(before.results):
        yield Change(f"{name}: its recorded results changed")


def _checkpoint(before: CellStamp, now: CellStamp) -> Iterator[Change]:
    was, is_ = before.checkpoint, now.checkpoint
    if was is None or was.sha256 is None:
        return
    if is_ is None or is_.sha256 is None:
        yield Change(f"{before.cell}: its checkpoint {was.path} is gone", gone=True)
    elif is_.sha256 != was.sha256:
        yield Change(f"{before.cell}: its checkpoint {was.path} was replaced")


def _few(names: list[str]) -> str:
    return ", ".join(names[:TOLD]) + (f" and {len(names) - TOLD} more" if len(names) > TOLD else "")


def as_json(states: list[FileState]) -> dict[str, Any]:
    """The object of `muster verify --json`."""
    return {"files": [{"path": each.path, "state": each.state, "because": each.because} for each in states]}
