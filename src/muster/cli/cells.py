"""Cells as people name them: `train/v2_full/2`, or a glob; and the look that every reading command starts with."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Sequence

from muster.acts.status import Status
from muster.cli.revival import REVIVED, not_started_line
from muster.cli.words import counted, few
from muster.domain.cell import matching
from muster.domain.errors import UsageError
from muster.domain.state import CampaignState
from muster.wiring.desk import Desk
from muster.wiring.survey import look

FEW = 5


def looked(desk: Desk, by: Callable[[Desk], Status] = look) -> Status:
    """The truth now; revives a controller that died while something should be going on."""
    found = by(desk)
    if found.going_on and not found.controller.alive:
        if desk.revive():
            print(REVIVED, file=sys.stderr)
        elif line := not_started_line(desk, found):
            print(line, file=sys.stderr)
    return found


def is_glob(pattern: str, names: Sequence[str]) -> bool:
    """A value may hold glob characters: a name that exists is a name."""
    return pattern not in names and any(character in pattern for character in "*?[")


def declared(state: CampaignState) -> list[str]:
    return [record.cell.id for record in state.declared]


def withdrawn(state: CampaignState) -> list[str]:
    """Cells that are no longer declared and have run: people still ask for them."""
    return [record.cell.id for record in state.cells.values() if not record.declared and record.attempts]


def resolve(patterns: Sequence[str], names: Sequence[str], former: Sequence[str] = ()) -> list[str]:
    """The cells that are meant, in declared order; every pattern must fit at least one.

    `former` cells are meant where they are named, or where a glob fits no other.
    """
    found, useless = matching(patterns, names)
    again, unfit = matching(useless, former)
    if unfit:
        raise unknown(unfit[0], [*names, *former])
    return found + again


def one(pattern: str, names: Sequence[str], former: Sequence[str] = ()) -> str:
    found = resolve([pattern], names, former)
    if len(found) > 1:
        raise UsageError(
            f"{pattern!r} fits {len(found)} cells, and one is needed", hint=f"name one of: {few(found, FEW)}"
        )
    return found[0]


def unknown(pattern: str, names: Sequence[str]) -> UsageError:
    inside = [name for name in names if name.startswith(pattern.rstrip("/") + "/")]
    near = difflib.get_close_matches(pattern, names, 3, 0.65)
    if inside:
        hint = f"'{pattern.rstrip('/')}/*' fits {counted(len(inside))}, such as {inside[0]}"
    elif near:
        hint = f"did you mean {' or '.join(near)}?"
    else:
        hint = f"cells are {few(names, FEW)}" if names else "this campaign has no cells"
    return UsageError(f"there is no cell {pattern!r}", hint=hint, code="unknown_cell")
