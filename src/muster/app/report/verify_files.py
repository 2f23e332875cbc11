"""`muster verify`: compares every derived file with what it was made from, and names the commands that make stale
ones anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.last_report import read_last_verdict
from muster.app.campaign.observe_campaign import observe_campaign
from muster.app.campaign.stamp import CellStamp, FileStamp, Stamp, StampBasis
from muster.app.campaign.stamp_files import read_all_stamps
from muster.app.documents.document_files import describe_changed_bound_numbers
from muster.app.facts.stamp_basis import (
    OmittedCheckpoints,
    current_needs,
    current_stamp_basis,
    read_omitted_checkpoints,
    rests_on_unread_files,
)
from muster.model.cell import cells_with_needs
from muster.readers.file_hashes import HashCache
from muster.text.phrases import phrase
from muster.text.sentences import join_few_names

# of files whose stamp is gone
_COMMAND_BY_PATH = {"reports/cost.md": "muster cost --report", "reports/record.md": "muster record"}
GATES_FOLDER = "reports/gates/"  # then the cell


def commands_to_remake(paths: Iterable[str], stamps: Iterable[Stamp]) -> tuple[str, ...]:
    """Each command once, in the order of the files."""
    known = {path: stamp.command for stamp in stamps for path in stamp.files}
    return tuple(dict.fromkeys(known.get(path) or _command_by_path(path) for path in paths))


def _command_by_path(path: str) -> str:
    if path.startswith(GATES_FOLDER):
        return f"muster gates draw {path.removeprefix(GATES_FOLDER).rpartition('/')[0]}"
    return "muster loop report" if path.startswith("reports/loop/") else _COMMAND_BY_PATH.get(path, "muster report")


DerivedState = Literal["fresh", "stale", "broken"]
HashOfPath = Callable[[str], str | None]
MOST_CHANGES_NAMED = 3
DOCUMENT_KIND = "document"  # a kind of file that is a person's, but for the numbers in it


@dataclass(frozen=True, slots=True)
class FileState:
    path: str
    state: DerivedState
    because: str = ""


@dataclass(frozen=True, slots=True)
class InputChange:
    """An input that is not what it was. `gone`: it can't be told any more what it was."""

    what: str
    gone: bool = False


def verify_stamp(
    stamp: Stamp, now: StampBasis, hash_: HashOfPath, edited: Callable[[str], str] = lambda _: ""
) -> Iterator[FileState]:
    """`hash_` takes a path relative to the campaign's folder; None: there is no such file.

    `edited`: of a text that people may edit, why its bound numbers are not those that were written; empty: they are.
    """
    shared = [*_changed_sections(stamp.basis, now), *_changed_matrix(stamp.basis, now)]
    known = {**{old: each for each in now.cells.values() for old in each.formerly}, **now.cells}
    by_cell = {name: list(_changed_cell_inputs(each, known.get(name))) for name, each in stamp.basis.cells.items()}
    needs = {name: each.needs for name, each in stamp.basis.cells.items()}
    for path, file in stamp.files.items():
        found = hash_(path)
        if file.kind == DOCUMENT_KIND and found not in (None, file.sha256):
            if because := edited(path):
                yield FileState(path, "broken", because)
                continue
            found = file.sha256
        names = by_cell if file.cells is None else cells_with_needs(file.cells, needs)
        changes = [*shared, *(change for name in names for change in by_cell.get(name, ()))]
        yield _judge_file_state(path, file, found, changes)


def _judge_file_state(path: str, file: FileStamp, found: str | None, changes: list[InputChange]) -> FileState:
    if found is None:
        return FileState(path, "broken", "it was deleted, or can't be read")
    if found != file.sha256:
        return FileState(path, "broken", "it was changed after Muster had made it")
    if not changes:
        return FileState(path, "fresh")
    changes = sorted(changes, key=lambda change: not change.gone)
    told = join_few_names([change.what for change in changes], MOST_CHANGES_NAMED, "; ")
    return FileState(path, "broken" if changes[0].gone else "stale", told)


def _changed_sections(before: StampBasis, now: StampBasis) -> Iterator[InputChange]:
    changed = [name for name, digest in before.sections.items() if now.sections.get(name) != digest]
    if changed:
        yield InputChange(f"campaign.yaml changed: {', '.join(changed)}")


def _changed_matrix(before: StampBasis, now: StampBasis) -> Iterator[InputChange]:
    if before.state and before.state != now.state:
        yield InputChange("attempts were made or ended since, or another campaign.yaml was taken in")
    if before.state or before.closed:
        return
    if before.accepted != now.accepted:
        yield InputChange("a red flag was accepted since")
    new = [name for name, each in now.cells.items() if before.cells.keys().isdisjoint((name, *each.formerly))]
    if new:
        yield InputChange(f"{join_few_names(new, MOST_CHANGES_NAMED)} came in since")
    missing = [name for name in now.missing if name not in before.missing and name not in before.cells]
    if missing:
        yield InputChange(f"{join_few_names(missing, MOST_CHANGES_NAMED)} is declared and missing")


def _changed_cell_inputs(before: CellStamp, now: CellStamp | None) -> Iterator[InputChange]:
    name = before.cell
    if rests_on_unread_files(before):
        yield InputChange(f"{name}: its numbers could not be read when it was made", gone=True)
    if now is None:
        yield InputChange(f"{name} is not DONE any more, or no longer declared", gone=True)
        return
    if now.cell != name:
        yield InputChange(f"{name} is called {now.cell} now")
    if now.token != before.token or now.attempt != before.attempt:
        yield InputChange(f"{name} was run again: attempt {now.attempt} counts now, not {before.attempt}")
        return
    for path, digest in before.files.items():
        if now.files.get(path) is None:
            yield InputChange(f"{name}: {path} is gone", gone=True)
        elif now.files[path] != digest:
            yield InputChange(f"{name}: {path} was changed")
    yield from _changed_checkpoint(before, now)
    if dict(now.results) != dict(before.results):
        yield InputChange(f"{name}: its recorded results changed")


def _changed_checkpoint(before: CellStamp, now: CellStamp) -> Iterator[InputChange]:
    was, is_ = before.checkpoint, now.checkpoint
    if was is None or was.sha256 is None:
        return
    if is_ is None or is_.sha256 is None:
        yield InputChange(f"{before.cell}: its checkpoint {was.path} is gone", gone=True)
    elif is_.sha256 != was.sha256:
        yield InputChange(f"{before.cell}: its checkpoint {was.path} was replaced")


def file_states_as_json(states: Sequence[FileState]) -> dict[str, Any]:
    """The object of `muster verify --json`."""
    return {"files": [{"path": each.path, "state": each.state, "because": each.because} for each in states]}


LOOP_STAMP = "loop"  # as its stamp is called
GATES_STAMP_PREFIX = "gates-"  # and how those of pictures begin
OWN_FILE_PATTERNS = (
    "decision*.md",
    "defence*.md",
    "tables/main*.*",
    "tables/ablation*.*",
    "figures/*.*",
    "loop/*.*",
    "gates/**/*.*",
    "cost.md",
    "record.md",
)


@dataclass(frozen=True, slots=True)
class VerifiedFiles:
    files: tuple[FileState, ...]
    commands: tuple[str, ...]  # that make anew what is not fresh

    @property
    def bad(self) -> list[FileState]:
        return [each for each in self.files if each.state != "fresh"]


def verify_with_commands(desk: CampaignHandle) -> VerifiedFiles:
    found = VerifiedFiles(tuple(verify_campaign_files(desk)), ())
    return replace(found, commands=commands_to_remake([each.path for each in found.bad], read_all_stamps(desk.root)))


def verify_campaign_files(desk: CampaignHandle) -> list[FileState]:
    made = list(read_all_stamps(desk.root))
    known = {path for stamp in made for path in stamp.files}
    alone = [
        FileState(path, "broken", "it carries no stamp") for path in _find_derived_files(desk.root) if path not in known
    ]
    return [*(file_states_of_stamps(desk, made) if made else []), *alone]


def _find_derived_files(root: Path) -> list[str]:
    """What looks like a file of ours."""
    found = [path for pattern in OWN_FILE_PATTERNS for path in sorted((root / "reports").glob(pattern))]
    return [str(path.relative_to(root)) for path in found]


def file_states_of_stamps(desk: CampaignHandle, made: Sequence[Stamp]) -> list[FileState]:
    now, hashes = current_stamp_basis(desk), HashCache(desk.state)

    def hash_of(path: str) -> str | None:
        return hashes.sha256(desk.root / path)

    def edited(path: str) -> str:
        return describe_changed_bound_numbers(desk.root / path)

    needs = current_needs(desk)
    left = read_omitted_checkpoints(desk.state, desk.store.where().here)
    found: list[FileState] = []
    for stamp in made:
        states = list(verify_stamp(stamp, _current_basis_of_stamp(desk, stamp, now, hashes), hash_of, edited))
        more = [name for name in needs.get(stamp.cell, ()) if name not in stamp.basis.cells] if stamp.cell else []
        if more:
            because = f"{stamp.cell} ran before {more[0]} was done" + (f" and {len(more) - 1} more" if more[1:] else "")
            states = [
                replace(each, state="stale", because=because) if each.state == "fresh" else each for each in states
            ]
        found += [_mention_omitted_checkpoints(each, stamp, left) for each in states]
    hashes.save()
    return found


def _mention_omitted_checkpoints(found: FileState, stamp: Stamp, left: OmittedCheckpoints) -> FileState:
    """What is fresh by the recorded hash of a checkpoint that nobody can look at here says so."""
    tokens = {cell.token for cell in stamp.basis.cells.values()} & set(left.checkpoints)
    if found.state != "fresh" or not tokens:
        return found
    (one, *more) = sorted(tokens)
    digest = left.checkpoints[one].sha256 or ""
    because = f"{phrase('count.checkpoint', n=len(tokens))} not in this pack, recorded hash {digest[:12]}"
    return replace(found, because=because + (f" and {len(more)} more" if more else ""))


def _current_basis_of_stamp(desk: CampaignHandle, stamp: Stamp, now: StampBasis, hashes: HashCache) -> StampBasis:
    """A loop's runs, and the runs behind pictures of gates, need be no part of a matrix with results."""
    if stamp.made == LOOP_STAMP:
        from muster.app.metrics.cell_history import stamp_loop_cells

        return replace(now, cells=stamp_loop_cells(desk, observe_campaign(desk), hashes, stamp.basis.cells))
    if stamp.made.startswith(GATES_STAMP_PREFIX):
        from muster.app.gates.staged_pictures import stamp_staged_cells

        return replace(now, cells=stamp_staged_cells(desk, observe_campaign(desk), stamp, hashes))
    return now


def _documents_waiting_for_verdict(root: Path) -> set[str]:
    """Texts that can't be brought up to date while the matrix is INVALID: nothing of them is lost meanwhile."""
    last = read_last_verdict(root)
    if last is None or last.verdict != "INVALID":
        return set()
    return {path for stamp in read_all_stamps(root) if stamp.made.startswith("document-") for path in stamp.files}


def find_stale_files(root: Path) -> list[str]:
    """Every derived file that is not fresh, with the reason.

    Pictures of a run that was going on say PARTIAL in their names: that it went on makes nothing of them wrong.
    """
    desk = CampaignHandle.open(root)
    try:
        outrun = {
            path
            for stamp in read_all_stamps(root)
            if stamp.made.startswith(GATES_STAMP_PREFIX) and stamp.basis.missing
            for path in stamp.files
        }
        waiting = _documents_waiting_for_verdict(root)
        found = [each for each in verify_campaign_files(desk) if each.state != "fresh" and each.path not in waiting]
        wrong = [each for each in found if each.state == "broken" or each.path not in outrun]
        return [f"{each.path} is {each.state}: {each.because}" for each in wrong]
    finally:
        desk.close()
