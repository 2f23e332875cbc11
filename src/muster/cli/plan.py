"""muster plan"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from muster.cli.app import open_folder
from muster.cli.grid import grids, legend
from muster.cli.paint import paint
from muster.cli.words import change_lines, counted, say_json
from muster.domain.wording import full_stop, span
from muster.plan.outlook import WouldNot
from muster.wiring.desk import FILE
from muster.wiring.hand_started import names_told
from muster.wiring.planning import Foreseen, foresee
from muster.wiring.roots import find_root_to_read

app = typer.Typer(add_completion=False)
LISTED = 40


@app.command("plan", epilog="Example:  muster plan --json | jq '.would_run[].cell'")
def plan(
    ctx: typer.Context,
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """The matrix as a grid, what would run in which order, why the rest would not, hours and money. Starts nothing."""
    root = find_root_to_read(open_folder(ctx))
    found = foresee(root)
    if as_json_:
        say_json(as_json(found))
        return 0
    if found.warnings:
        from muster.cli.mistakes import show

        show(str(root / FILE), found.warnings)
    for line in lines(found):
        print(line)
    return 0


def lines(found: Foreseen) -> Iterator[str]:
    status, seen = found.status, found.outlook
    done = status.counts["DONE"]
    yield paint(f"{status.state.campaign.name}: {counted(len(status.cells))} declared, {done} done", "bold")
    yield ""
    yield from grids(status)
    yield legend(status)
    yield ""
    yield from _changes(found)
    later = [other for other in seen.others if other.later]
    follows = "follows" if len(later) == 1 else "follow"
    more = f"; {len(later)} more {follows} when what they need is DONE" if later else ""
    yield paint(f"would run now: {len(seen.would_run)} of {counted(len(status.cells))}{more}", "bold")
    for item in seen.would_run[:LISTED]:
        yield f"  {item.position:>3}. {item.cell}: {item.why}"
    if len(seen.would_run) > LISTED:
        yield f"  and {len(seen.would_run) - LISTED} more; `muster plan --json` has them all"
    for other in later[:LISTED]:
        yield f"    then {other.cell}: {other.reason}"
    if len(later) > LISTED:
        yield f"    and {len(later) - LISTED} more"
    yield from _left(found)
    if seen.would_run and names_told(status.cells):
        told = "`muster up` starts nothing while such a run lives"
        yield paint(f"{told}; `muster up --only AXIS=VALUE` starts the other cells now", "red")
    if found.mistakes:
        told = f"{counted(found.mistakes, 'mistake')} that {'keeps' if found.mistakes == 1 else 'keep'}"
        yield paint(f"`muster check` finds {told} `muster up` from starting any of it", "red")
    loop = status.state.campaign.loop
    if loop and int(loop.get("rounds", 1)) > 1:
        yield f"rounds: {loop['rounds']} at most; what each further one runs is proposed when the last one is over"
    yield f"expected: {_estimate(found)}"
    if found.status.spending:
        from muster.cli.money import money_line

        yield from money_line(found.status.spending)


def _left(found: Foreseen) -> Iterator[str]:
    """What would not run although it is not done: each is named, with the reason."""
    verdicts = {cell.record.cell.id: cell for cell in found.status.cells}
    left = [other for other in found.outlook.others if not other.later and other.verdict != "DONE"]
    if left:
        yield f"would not run: {len(left)}"
    for other in left[:LISTED]:
        now = verdicts[other.cell]
        yield f"  {now.verdict.state} {other.cell}: {full_stop(now.verdict.reason)} Next: {now.next}"
    if len(left) > LISTED:
        yield f"  and {len(left) - LISTED} more"


def _changes(found: Foreseen) -> Iterator[str]:
    what = found.changes
    if not what:
        return
    yield "`muster up` would take in what changed since the last time:"
    yield from (f"  {line}" for line in change_lines(what))
    if what.code_changed:
        yield "  the code changed"
    yield ""


def _estimate(found: Foreseen) -> str:
    expected = found.estimate
    if expected.slot_seconds is None or expected.wall_seconds is None:
        return f"unknown: {expected.basis}"
    if not expected.cells:
        return expected.basis
    price = f", {_price(found)}" if expected.money is not None else ""
    clock = f"{span(expected.wall_seconds)} on {counted(found.slots, 'slot')}"
    return f"{clock}, {span(expected.slot_seconds)} of slot time{price} ({expected.basis})"


def _price(found: Foreseen) -> str:
    """What is still to be paid, and how sure that is."""
    money, expected = found.status.state.campaign.money, found.estimate
    currency = money.currency if money else ""
    low, high = expected.money_range or (0.0, 0.0)
    between = f" ({low:.2f} to {high:.2f})" if high > low else ""
    return f"{expected.money or 0.0:.2f} {currency}{between}"


def as_json(found: Foreseen) -> dict[str, Any]:
    expected, what, state = found.estimate, found.changes, found.status.state
    return {
        "muster": 1,
        "campaign": state.campaign.name,
        "as_of": found.status.as_of,
        "started": found.started,
        "declared": len(found.status.cells),
        "counts": dict(found.status.counts),
        "would_run": [{"cell": i.cell, "why": i.why, "position": i.position} for i in found.outlook.would_run],
        "not": [_other(other, found) for other in found.outlook.others],
        "mistakes": found.mistakes,
        "changes": {"new": what.new, "gone": what.gone, "changed": what.changed, "changed_done": what.changed_done,
                    "code_changed": what.code_changed},
        "estimate": {
            "cells": expected.cells,
            "slots": found.slots,
            "slot_hours": _in_hours(expected.slot_seconds),
            "wall_hours": _in_hours(expected.wall_seconds),
            "money": expected.money,
            "money_range": expected.money_range,
            "spent": found.status.spending.spent if found.status.spending else None,
            "budget": state.campaign.money.budget if state.campaign.money else None,
            "currency": state.campaign.money.currency if state.campaign.money else None,
            "basis": expected.basis,
        },
    }  # fmt: skip


def _other(other: WouldNot, found: Foreseen) -> dict[str, Any]:
    """An open attempt was looked at; everything else stands as planned."""
    if other.verdict is None:
        now = next(cell for cell in found.status.cells if cell.record.cell.id == other.cell)
        return {"cell": other.cell, "verdict": str(now.verdict.state), "reason": now.verdict.reason, "next": now.next,
                "later": False}  # fmt: skip
    return {"cell": other.cell, "verdict": str(other.verdict), "reason": other.reason, "next": other.next,
            "later": other.later}  # fmt: skip


def _in_hours(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds / 3600, 4)
