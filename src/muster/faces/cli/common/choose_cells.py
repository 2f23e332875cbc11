"""Cells as people name them (`train/v2_full/2`, or a glob), and what all verbs about cells share: choosing them,
asking for a reason where there are many, printing what became of each.
"""

from __future__ import annotations

import difflib
import shlex
import sys
from collections.abc import Callable, Sequence

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.campaign_status import Status
from muster.app.campaign.observe_campaign import observe_campaign
from muster.app.campaign.verbs.act_on_cells import does_verb_concern, require_reason
from muster.faces.cli.common.status_view import REVIVED_LINE, format_not_started_line
from muster.faces.cli.common.terminal_output import counted, paint_text
from muster.faces.cli.up import ensure_controller_started
from muster.files.campaign_ownership import MOVED, describe_not_started_here, moved_since
from muster.model.campaign_state import CampaignState
from muster.model.cell import match_cell_patterns
from muster.model.decision import Decision
from muster.model.errors import MusterError, UsageError
from muster.text.sentences import join_few_names

MOST_MATCHING_CELLS = 5


def observe_and_revive(desk: CampaignHandle, by: Callable[[CampaignHandle], Status] = observe_campaign) -> Status:
    """The truth now; revives a controller that died while something should be going on."""
    found = by(desk)
    if found.going_on and not found.controller.alive:
        if desk.revive():
            print(REVIVED_LINE, file=sys.stderr)
        elif line := format_not_started_line(desk, found):
            print(line, file=sys.stderr)
    return found


def is_cell_glob(pattern: str, names: Sequence[str]) -> bool:
    """A value may hold glob characters: a name that exists is a name."""
    return pattern not in names and any(character in pattern for character in "*?[")


def declared_names(state: CampaignState) -> list[str]:
    return [record.cell.id for record in state.declared]


def withdrawn_names(state: CampaignState) -> list[str]:
    """Cells that are no longer declared and have run: people still ask for them."""
    return [record.cell.id for record in state.cells.values() if not record.declared and record.attempts]


def resolve_cells(patterns: Sequence[str], names: Sequence[str], former: Sequence[str] = ()) -> list[str]:
    """The cells that are meant, in declared order; every pattern must fit at least one.

    `former` cells are meant where they are named, or where a glob fits no other.
    """
    found, useless = match_cell_patterns(patterns, names)
    again, unfit = match_cell_patterns(useless, former)
    if unfit:
        raise unknown_cell_error(unfit[0], [*names, *former])
    return found + again


def resolve_one_cell(pattern: str, names: Sequence[str], former: Sequence[str] = ()) -> str:
    found = resolve_cells([pattern], names, former)
    if len(found) > 1:
        raise UsageError(
            f"{pattern!r} fits {len(found)} cells, and one is needed",
            hint=f"name one of: {join_few_names(found, MOST_MATCHING_CELLS)}",
        )
    return found[0]


def unknown_cell_error(pattern: str, names: Sequence[str]) -> UsageError:
    inside = [name for name in names if name.startswith(pattern.rstrip("/") + "/")]
    near = difflib.get_close_matches(pattern, names, 3, 0.65)
    if inside:
        hint = f"'{pattern.rstrip('/')}/*' fits {counted(len(inside))}, such as {inside[0]}"
    elif near:
        hint = f"did you mean {' or '.join(near)}?"
    else:
        hint = f"cells are {join_few_names(names, MOST_MATCHING_CELLS)}" if names else "this campaign has no cells"
    return UsageError(f"there is no cell {pattern!r}", hint=hint, code="unknown_cell")


VERB_PARTICIPLES = {"stop": "stopped", "retry": "retried", "redo": "redone", "giveup": "given up", "accept": "accepted"}


def choose_cells(verb: str, patterns: Sequence[str], found: Status) -> list[str]:
    """Every cell that was named, and of those that a glob fits the ones the verb is about."""
    if not patterns:
        raise UsageError("name the cells", hint=f"muster {verb} 'train/*/2', or '*' for all of them")
    about = {cell.record.cell.id for cell in found.cells if does_verb_concern(verb, cell)}
    names = declared_names(found.state)
    former: list[str] = []
    if verb == "stop":  # also what the campaign file has forgotten; a glob means what of that still runs
        running = [cell.record.cell.id for cell in found.withdrawn]
        former = [name for name in withdrawn_names(found.state) if name not in running]
        names += running
        about.update(running)
    chosen = resolve_cells(patterns, names, former)
    named = {pattern for pattern in patterns if not is_cell_glob(pattern, [*names, *former])}
    left = [name for name in chosen if name in named or name in about]
    if not left and verb != "stop":
        count = f"none of the {len(chosen)} cells that fit" if len(chosen) > 1 else f"{chosen[0]} is none that"
        raise MusterError(
            f"nothing to do: {count} can be {VERB_PARTICIPLES[verb]} now",
            hint="`muster status` shows where each stands",
        )
    return left


def apply_decisions(desk: CampaignHandle, decisions: Sequence[Decision], done: str) -> tuple[list[str], int]:
    """Decides; tells each cell that was refused why. Returns the others, and the exit code."""
    accepted = []
    for decision, refused in zip(decisions, desk.decide(decisions), strict=True):
        cell = decision.cell or ""
        if refused:
            print_refusal(cell, done, refused)
        else:
            accepted.append(cell)
    return accepted, 0 if len(accepted) == len(decisions) else 1


def print_refusal(cell: str, done: str, why: str) -> None:
    print(f"{cell}: {paint_text('not ' + done, 'yellow')}: {why}")


def start_if_running(desk: CampaignHandle) -> Status:
    """Starts a controller where the decision gives it something to do; returns where everything stands."""
    if desk.load().intent.kind == "running":
        if desk.started_here():
            ensure_controller_started(desk)
        else:
            why = MOVED if moved_since(desk.state) else describe_not_started_here()
            print(f"{why}: it is written down, and nothing starts before `muster up`", file=sys.stderr)
    return observe_campaign(desk)


MOST_NAMED_CELLS = 5


class NoReason(UsageError):
    """`failure.report` knows what was typed, and tells the same command with a reason."""


def require_shared_reason(verb: str, names: Sequence[str], because: str | None, usual: str) -> str:
    """What was given, or for one cell the usual words. NoReason: there are more, and nothing was said."""
    if because is not None:
        return require_reason(because)
    if len(names) > 1:
        told = f"{counted(len(names))} ({join_few_names(names, MOST_NAMED_CELLS)}) would be {verb}"
        raise NoReason(f"{told}, and that needs a reason; nothing was changed")
    return usual


def refuse_many_without_reason(verb: str, patterns: Sequence[str], because: str | None, found: Status) -> None:
    """The same before anything is written, even the end of a run that nobody has recorded yet."""
    try:
        names = choose_cells(verb, patterns, found) if because is None else []
    except MusterError:  # told when the ends are recorded, where it is still so
        return
    require_shared_reason(VERB_PARTICIPLES[verb], running_names(names, found) if verb == "stop" else names, because, "")


def running_names(names: Sequence[str], found: Status) -> list[str]:
    """Those that a stop would end; the others are told that they don't run."""
    return [name for name in names if found.state.cells[name].open is not None]


def command_with_reason(arguments: Sequence[str]) -> str:
    """The command that was typed, and a place for the reason."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return " ".join(
        part for part in ("muster", shlex.join(arguments[:at]), "--because '...'", shlex.join(arguments[at:])) if part
    )
