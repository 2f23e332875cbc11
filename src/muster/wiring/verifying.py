"""Holds every derived file against what it was made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from muster.acts.docs_stamp import bound_numbers_changed
from muster.acts.left_checkpoints import LeftOut, read_left_out
from muster.acts.report_verdict import last_verdict
from muster.acts.stamping import stamps
from muster.acts.verify import FileState, verify
from muster.domain.wording import counted
from muster.observe.hashes import HashCache
from muster.report.stamp import Basis, Stamp
from muster.wiring.basis import basis_now, needs_now
from muster.wiring.desk import Desk
from muster.wiring.survey import look

LOOP = "loop"  # as its stamp is called
GATES = "gates-"  # and how those of pictures begin
OURS = ("decision*.md", "defence*.md", "tables/main*.*", "tables/ablation*.*", "figures/*.*", "loop/*.*",
        "gates/**/*.*", "cost.md", "record.md")  # fmt: skip


def verified(desk: Desk) -> list[FileState]:
    made = list(stamps(desk.root))
    known = {path for stamp in made for path in stamp.files}
    alone = [FileState(path, "broken", "it carries no stamp") for path in _derived(desk.root) if path not in known]
    return [*(states_of(desk, made) if made else []), *alone]


def _derived(root: Path) -> list[str]:
    """What looks like a file of ours."""
    found = [path for pattern in OURS for path in sorted((root / "reports").glob(pattern))]
    return [str(path.relative_to(root)) for path in found]


def states_of(desk: Desk, made: Sequence[Stamp]) -> list[FileState]:
    now, hashes = basis_now(desk), HashCache(desk.state)

    def hash_of(path: str) -> str | None:
        return hashes.sha256(desk.root / path)

    def edited(path: str) -> str:
        return bound_numbers_changed(desk.root / path)

    needs = needs_now(desk)
    left = read_left_out(desk.state, desk.store.where().here)
    found: list[FileState] = []
    for stamp in made:
        states = list(verify(stamp, _basis_of(desk, stamp, now, hashes), hash_of, edited))
        more = [name for name in needs.get(stamp.cell, ()) if name not in stamp.basis.cells] if stamp.cell else []
        if more:
            because = f"{stamp.cell} ran before {more[0]} was done" + (f" and {len(more) - 1} more" if more[1:] else "")
            states = [
                replace(each, state="stale", because=because) if each.state == "fresh" else each for each in states
            ]
        found += [_with_left_out(each, stamp, left) for each in states]
    hashes.save()
    return found


def _with_left_out(found: FileState, stamp: Stamp, left: LeftOut) -> FileState:
    """What is fresh by the recorded hash of a checkpoint that nobody can look at here says so."""
    tokens = {cell.token for cell in stamp.basis.cells.values()} & set(left.checkpoints)
    if found.state != "fresh" or not tokens:
        return found
    (one, *more) = sorted(tokens)
    digest = left.checkpoints[one].sha256 or ""
    because = f"{counted(len(tokens), 'checkpoint')} not in this pack, recorded hash {digest[:12]}"
    return replace(found, because=because + (f" and {len(more)} more" if more else ""))


def _basis_of(desk: Desk, stamp: Stamp, now: Basis, hashes: HashCache) -> Basis:
    """A loop's runs, and the runs behind pictures of gates, need be no part of a matrix with results."""
    if stamp.made == LOOP:
        from muster.wiring.loop_basis import loop_cells

        return replace(now, cells=loop_cells(desk, look(desk), hashes, stamp.basis.cells))
    if stamp.made.startswith(GATES):
        from muster.wiring.staged_drawing import staged_cells

        return replace(now, cells=staged_cells(desk, look(desk), stamp, hashes))
    return now


def _waiting(root: Path) -> set[str]:
    """Texts that can't be brought up to date while the matrix is INVALID: nothing of them is lost meanwhile."""
    last = last_verdict(root)
    if last is None or last.verdict != "INVALID":
        return set()
    return {path for stamp in stamps(root) if stamp.made.startswith("document-") for path in stamp.files}


def stale(root: Path) -> list[str]:
    """Every derived file that is not fresh, with the reason.

    Pictures of a run that was going on say PARTIAL in their names: that it went on makes nothing of them wrong.
    """
    desk = Desk.open(root)
    try:
        outrun = {path for stamp in stamps(root) if stamp.made.startswith(GATES) and stamp.basis.missing
                  for path in stamp.files}  # fmt: skip
        waiting = _waiting(root)
        found = [each for each in verified(desk) if each.state != "fresh" and each.path not in waiting]
        wrong = [each for each in found if each.state == "broken" or each.path not in outrun]
        return [f"{each.path} is {each.state}: {each.because}" for each in wrong]
    finally:
        desk.close()
