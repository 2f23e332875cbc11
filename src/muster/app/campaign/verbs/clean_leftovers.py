"""`muster clean`: finds what can go, writes the decision down, then deletes exactly what it names."""

# ruff: noqa: PTH114, PTH115, PTH118, PTH119, PTH120 - links are followed step by step, as texts

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from muster.app.campaign.campaign_code import CODE_BOOK
from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.disk_use import (
    KeptPaths,
    Leftover,
    build_clean_decisions,
    find_output_folders,
    find_spare_attempts,
)
from muster.app.campaign.stamp_files import read_all_stamps
from muster.files.bounded_walk import remove_tree, walk_folders
from muster.files.crash_points import reach_crash_point
from muster.files.process_identity import is_lock_held
from muster.files.state_folder import attempt_folder
from muster.model.attempt import Attempt, AttemptKey, CellRecord
from muster.model.campaign_state import CampaignState
from muster.readers.resume import resume_chain

LOG_FILES = ("stdout.log", "stderr.log")
OUTPUT_FOLDER = "out"
ATTEMPT_FILES = frozenset({"attempt.json", "identity.json", "exit.json", "shim.lock", "tree.lock", *LOG_FILES})
MOST_LINKS = 40  # as the kernel has it
YOUNGEST_S = 3600.0  # of files that nobody names: whoever writes one now has not come to naming it yet
_TEMPORARY = re.compile(r"\..+\.(\d+)")
_BACKUP = re.compile(r"decisions\.torn|campaign\.db\.(before-fsck|rebuilding)(-wal|-shm|-journal)?")


@dataclass(frozen=True, slots=True)
class CleanResult:
    found: tuple[Leftover, ...]  # what was decided to go
    refused: dict[str, str]  # name -> why it stays after all
    freed: int


class LeftoverCleaner:
    def __init__(self, desk: CampaignHandle, older_s: float) -> None:
        self.desk, self.older_s = desk, older_s
        self.now = desk.clock.wall()

    def find(self) -> list[Leftover]:
        state = self.desk.load()
        kept = KeptPaths(self._kept(state))
        found = [*self._attempts(state, kept), *self._loose()]
        old = (each for each in found if each.bytes and each.age_s >= self.older_s)
        return [each for each in old if not any(map(kept.touches, each.paths))]

    def carry_out(self, chosen: Sequence[Leftover]) -> CleanResult:
        """The decision first, durably; then the files. Killed in between, nothing else is lost; a second call ends it.

        An attempt that came to count meanwhile is refused by the fold, and stays.
        """
        if not chosen:
            return CleanResult((), {}, 0)
        decisions = build_clean_decisions(self.desk.person, chosen, self.desk.store.where().inside)
        answers = self.desk.decide(decisions)
        refused = {
            (decision.cell, decision.attempt): why for decision, why in zip(decisions, answers, strict=True) if why
        }
        reach_crash_point("clean.decided")
        told: dict[str, str] = {}
        gone: list[Leftover] = []
        for each in chosen:
            key = each.attempt.key if each.attempt else (None, None)
            if key in refused:
                told[each.name] = refused[key]
            else:
                self._delete(each)
                gone.append(each)
        return CleanResult(tuple(gone), told, sum(each.bytes for each in gone))

    def _delete(self, found: Leftover) -> None:
        for path in found.paths:
            if Path(path).is_dir():
                remove_tree(path)  # it follows no link
            else:
                Path(path).unlink(missing_ok=True)
            reach_crash_point("clean.deleted")

    # -- what stays

    def _kept(self, state: CampaignState) -> set[str]:
        """Files behind derived files, and what people pointed at."""
        found: set[str] = set()
        for stamp in read_all_stamps(self.desk.root):
            found.update(str(self.desk.root / path) for path in stamp.files)
            for cell in stamp.basis.cells.values():
                found.update(cell.files)
                found.update([cell.checkpoint.path] if cell.checkpoint else [])
        for event in self.desk.store.events():
            pointed = event.decision.data.get("evidence")
            if isinstance(pointed, dict) and pointed.get("file"):
                found.add(os.path.abspath(self.desk.root / str(pointed["file"])))  # noqa: PTH100 lexical
        for attempt in state.open_attempts:
            found.add(str(attempt_folder(self.desk.state, *attempt.place)))
        spare = {str(attempt_folder(self.desk.state, *each.place)) for _, each in self._spare(state)}
        return found | find_linked_places(
            self.desk.state, spare, {*found, *find_output_folders(state, str(self.desk.root))}
        )

    def _needed(self, state: CampaignState) -> set[AttemptKey]:
        """Attempts that count, that a stamp names, or that one of these has gone on from."""
        stamped = {cell.token for stamp in read_all_stamps(self.desk.root) for cell in stamp.basis.cells.values()}
        return {
            place for record in state.cells.values() for place in find_needed_attempts(self.desk.state, record, stamped)
        }

    def _spare(self, state: CampaignState) -> list[tuple[str, Attempt]]:
        return list(find_spare_attempts(state.cells.values(), self._needed(state)))

    # -- what can go

    def _attempts(self, state: CampaignState, kept: KeptPaths) -> Iterator[Leftover]:
        for kind, attempt in self._spare(state):
            folder = attempt_folder(self.desk.state, *attempt.place)
            paths = [folder / OUTPUT_FOLDER, *(folder / name for name in LOG_FILES)]
            there = [path for path in paths if path.exists() and not path.is_symlink() and not kept.touches(str(path))]
            if there and not is_lock_held(folder / "tree.lock") and not is_lock_held(folder / "shim.lock"):
                yield self._leftover(kind, there, attempt)

    def _loose(self) -> Iterator[Leftover]:
        """Files of the state that nothing names any more."""
        state = self.desk.state
        named = _KnownDigests(state, self.desk.root)
        for kind, pattern in (
            ("environment", "env/*.json"),
            ("snapshot", "campaigns/[0-9a-f]*.json"),
            ("diff", "diffs/*.diff"),
            ("diff", "diffs/files/*"),
        ):
            unnamed = (path for path in sorted(state.glob(pattern)) if path.is_file() and path.stem not in named)
            yield from self._old_enough(kind, unnamed)
        yield from self._old_enough(
            "temporary", (path for path in find_own_files(state) if _is_abandoned_temporary(path))
        )
        backups = (path for path in sorted(state.iterdir()) if _BACKUP.fullmatch(path.name))
        yield from self._old_enough("backup", backups)

    def _old_enough(self, kind: str, paths: Iterator[Path]) -> Iterator[Leftover]:
        for path in paths:
            found = self._leftover(kind, [path])
            if found.age_s >= YOUNGEST_S:
                yield found

    def _leftover(self, kind: str, paths: Sequence[Path], attempt: Attempt | None = None) -> Leftover:
        count, newest = 0, 0.0
        for path in paths:
            for each in _files_below_path(path):
                with contextlib.suppress(OSError):
                    facts = each.lstat()
                    count, newest = count + facts.st_size, max(newest, facts.st_mtime)
        return Leftover(kind, tuple(map(str, paths)), count, max(0.0, self.now - newest), attempt)


def find_needed_attempts(state: Path, record: CellRecord, stamped: Collection[str]) -> set[AttemptKey]:
    """Of one cell: attempts that count, and those they went on from. Where an order is gone nobody knows: all of them.

    A run that was adopted never had an order.
    """
    found: set[AttemptKey] = set()
    for attempt in record.attempts:
        if not (attempt.completed or attempt.open or attempt.token in stamped):
            continue
        chain = resume_chain(state, *attempt.place)
        if not attempt.adopted and any(link.order is None for link in chain):
            return {each.place for each in record.attempts}
        found.update((link.cell, link.n) for link in chain)
    return found


def find_own_files(state: Path) -> Iterator[Path]:
    """All files of the state but those that runs wrote, whatever of their attempt was lost."""
    for folder, folders, names in walk_folders(state):
        if not ATTEMPT_FILES.isdisjoint(names):
            folders.clear()
        if os.path.basename(folder).isdecimal() and OUTPUT_FOLDER in folders:
            folders.remove(OUTPUT_FOLDER)
        yield from (Path(folder, name) for name in sorted(names))


def find_linked_places(state: Path, spare: Collection[str], more: Iterable[str]) -> set[str]:
    """Where links in outputs lead, if that is below an attempt: of attempts that are not spare, and below `more`.

    What is led to stays, and so does what its own links lead to.
    """
    attempts = os.path.realpath(state / "attempts")
    left = [*(path for path in more if not f"{attempts}/".startswith(f"{path}/")), str(state / "attempts")]
    skipped = {os.path.realpath(path) for path in spare}
    found: set[str] = set()
    walked: set[str] = set()
    while left:
        start = left.pop()
        for link in _find_links(start, skipped, walked):
            fresh = {place for place in follow_link_steps(link) if place.startswith(f"{attempts}/")} - found
            found |= fresh
            left += fresh
    return found | {str(state / "attempts") + path.removeprefix(attempts) for path in found}


def _find_links(start: str, skipped: Collection[str], walked: set[str]) -> Iterator[str]:
    """Those at and below a path. A spare attempt is passed over, unless the walk begins in it."""
    if os.path.islink(start):
        yield start
        return
    for folder, folders, names in walk_folders(start):
        if folder in walked:
            folders.clear()
            continue
        walked.add(folder)
        yield from (path for name in (*folders, *names) if os.path.islink(path := f"{folder}/{name}"))
        folders[:] = [name for name in folders if os.path.realpath(f"{folder}/{name}") not in skipped]


def follow_link_steps(path: str) -> Iterator[str]:
    """The real place of a link, of every link on the way to its target, and of the target."""
    for _ in range(MOST_LINKS):
        place = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        yield place
        if not os.path.islink(place):
            return
        target = os.path.join(os.path.dirname(place), os.readlink(place))
        yield from _links_above_path(target)
        path = target


def _links_above_path(path: str) -> Iterator[str]:
    """Links among the folders above a path."""
    above = os.path.dirname(path)
    while above not in ("", "/"):
        if os.path.islink(above):
            yield os.path.join(os.path.realpath(os.path.dirname(above)), os.path.basename(above))
        above = os.path.dirname(above)


class _KnownDigests:
    """Every word that looks like a digest in what the state keeps: decisions, orders, stamps, the last preflight.

    The code that `up` saw last is named by the orders to come.
    """

    _DIGEST = re.compile(rb"[0-9a-f]{8,64}")

    def __init__(self, state: Path, root: Path) -> None:
        self.found: set[bytes] = set()
        own = (state / name for name in ("decisions.jsonl", "preflight.json", CODE_BOOK))
        texts = (*own, *sorted((root / "reports").rglob("*.json")))
        for path in (*texts, *_find_order_files(state)):
            with contextlib.suppress(OSError):
                self.found.update(self._DIGEST.findall(path.read_bytes()))

    def __contains__(self, name: str) -> bool:
        return name.encode() in self.found


def _find_order_files(state: Path) -> Iterator[Path]:
    for folder, folders, names in walk_folders(state / "attempts"):
        if "attempt.json" in names:
            folders.clear()
            yield Path(folder, "attempt.json")


def _is_abandoned_temporary(path: Path) -> bool:
    """`.exit.json.4711`, of a process that is no more."""
    fits = _TEMPORARY.fullmatch(path.name)
    return fits is not None and path.is_file() and not Path(f"/proc/{fits[1]}").exists()


def _files_below_path(path: Path) -> Iterator[Path]:
    if path.is_symlink() or not path.is_dir():
        yield path
        return
    for folder, _, names in walk_folders(path):
        yield from (Path(folder, name) for name in names)
