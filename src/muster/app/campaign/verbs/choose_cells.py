"""Cells as people name them, `train/v2_full/2` or a glob, and the reason that a decision about them needs.

What `stop`, `retry`, `redo`, `giveup` and `accept` share. Without a reason for what ends or settles many cells nothing
happens.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Sequence

from muster.app.campaign.campaign_status import CellStatus, Status
from muster.model.campaign_state import CampaignState
from muster.model.cell import match_cell_patterns
from muster.model.errors import MusterError, UsageError
from muster.model.verdict import VerdictState
from muster.text.phrases import phrase
from muster.text.sentences import join_few_names

MOST_MATCHING_CELLS = 5
MOST_NAMED_CELLS = 5
VERB_PARTICIPLES = {
    "stop": "campaign.stopped",
    "retry": "campaign.retried",
    "redo": "campaign.redone",
    "giveup": "campaign.given_up",
    "accept": "campaign.accepted",
}


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
            phrase("campaign.pattern_fits_many", pattern=pattern, count=len(found)),
            hint=phrase("campaign.name_one", cells=join_few_names(found, MOST_MATCHING_CELLS)),
        )
    return found[0]


def unknown_cell_error(pattern: str, names: Sequence[str]) -> UsageError:
    inside = [name for name in names if name.startswith(pattern.rstrip("/") + "/")]
    near = difflib.get_close_matches(pattern, names, 3, 0.65)
    if inside:
        hint = phrase(
            "campaign.pattern_fits_inside",
            pattern=pattern.rstrip("/"),
            cells=phrase("count.cell", n=len(inside)),
            inside=inside[0],
        )
    elif near:
        hint = phrase("campaign.did_you_mean", near=functools.reduce(_either, near))
    else:
        hint = (
            phrase("campaign.cells_are", cells=join_few_names(names, MOST_MATCHING_CELLS))
            if names
            else phrase("campaign.no_cells")
        )
    return UsageError(phrase("campaign.no_such_cell", pattern=pattern), hint=hint, code="unknown_cell")


def choose_cells(verb: str, patterns: Sequence[str], found: Status) -> list[str]:
    """Every cell that was named, and of those that a glob fits the ones the verb is about."""
    if not patterns:
        raise UsageError(phrase("campaign.name_cells"), hint=phrase("campaign.all_of_them", verb=verb))
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
        count = (
            phrase("campaign.none_of_cells", chosen=len(chosen))
            if len(chosen) > 1
            else phrase("campaign.cell_is_none_that", chosen=chosen[0])
        )
        raise MusterError(
            phrase("campaign.nothing_to_do_for", cells=count, done=phrase(VERB_PARTICIPLES[verb])),
            hint=phrase("campaign.status_shows_cells"),
        )
    return left


def _either(one: str, other: str) -> str:
    return phrase("list.one_or_other", one=one, other=other)


def does_verb_concern(verb: str, cell: CellStatus) -> bool:
    """Whether a glob that fits the cell means it. Who names a cell gets an answer about it in any case."""
    if cell.record.open is not None:
        return verb == "stop"
    if verb == "stop":
        return False
    if verb == "redo":
        return cell.verdict.state == VerdictState.DONE
    if verb == "giveup":
        return cell.verdict.state not in (VerdictState.DONE, VerdictState.GIVEN_UP)
    return cell.verdict.state == VerdictState.DEAD or (verb == "retry" and cell.verdict.state == VerdictState.GIVEN_UP)


def require_reason(reason: str, option: str = "--because") -> str:
    """A reason that says something."""
    text = " ".join(reason.split())
    if not text or (option == "--because" and not any(each.isalnum() for each in text)):  # `...` too, of our hints
        raise UsageError(phrase("campaign.option_is_empty", option=option), hint=phrase("campaign.say_why"))
    return text


class NoReason(UsageError):
    """Many cells were meant, and nothing was said about why."""


def require_shared_reason(done: str, names: Sequence[str], because: str | None, usual: str) -> str:
    """What was given, or for one cell the usual words. NoReason: there are more, and nothing was said.

    `done`: what would happen to them.
    """
    if because is not None:
        return require_reason(because)
    if len(names) > 1:
        told = phrase(
            "campaign.would_change_cells",
            count=phrase("count.cell", n=len(names)),
            cells=join_few_names(names, MOST_NAMED_CELLS),
            done=done,
        )
        raise NoReason(phrase("campaign.needs_a_reason", told=told))
    return usual


def refuse_many_without_reason(verb: str, patterns: Sequence[str], because: str | None, found: Status) -> None:
    """The same before anything is written, even the end of a run that nobody has recorded yet."""
    try:
        names = choose_cells(verb, patterns, found) if because is None else []
    except MusterError:  # told when the ends are recorded, where it is still so
        return
    done = phrase(VERB_PARTICIPLES[verb])
    require_shared_reason(done, running_names(names, found) if verb == "stop" else names, because, "")


def running_names(names: Sequence[str], found: Status) -> list[str]:
    """Those that a stop would end; the others are told that they don't run."""
    return [name for name in names if found.state.cells[name].open is not None]
