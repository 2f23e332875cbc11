"""Gathers what a loop's report is made from, and writes it with its stamp."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import muster
from muster.acts.loop_report import Asked, Place, loop_facts
from muster.acts.loop_report_json import summary_json
from muster.acts.rounds_due import most_rounds
from muster.acts.stamping import REPORTS, Derived, digest_of, publish, words_of_people
from muster.acts.status import CellStatus, Status
from muster.acts.tried import Tried
from muster.domain.errors import MusterError
from muster.execute.paths import attempt_folder
from muster.observe.hashes import HashCache
from muster.observe.metrics.wandb_url import logged_url
from muster.report.loop_facts import LoopFacts
from muster.report.loop_pictures import curve, tree, unnamed
from muster.report.loop_report import loop_markdown
from muster.report.stamp import Basis, CellStamp, footer
from muster.wiring import looping
from muster.wiring.desk import Desk
from muster.wiring.histories import attempt_of, output_of
from muster.wiring.loop_basis import loop_cells

FOLDER = f"{REPORTS}/loop"
MADE, COMMAND = "loop", "muster loop report"


@dataclass(frozen=True, slots=True)
class Written:
    facts: LoopFacts
    summary: dict[str, Any]
    files: tuple[str, ...]
    undrawn: str = ""  # why there is no curve


def report(desk: Desk, status: Status, known: Sequence[Tried] = ()) -> Written:
    """`known`: variants whose runs have been read already, and are over."""
    settings = looping.settings_of(status)
    cells = loop_cells(desk, status, HashCache(desk.state))  # first: what is logged from here on makes it stale
    found = looping.tried(desk, status, known)
    asked = Asked(
        status.as_of, muster.__version__, str(desk.root), most_rounds(status.state), status.controller.alive,
        {cell.record.cell.id: _place(desk, cell) for cell in status.cells if cell.record.cell.job == settings.job},
    )  # fmt: skip
    return _write(desk, status, loop_facts(status.state, found, settings, asked), cells)


def after_round(desk: Desk, before: Sequence[Tried]) -> str:
    """The report of a round that was just taken in; why it could not be written. A round never fails for its report."""
    try:
        report(desk, looping.opened(desk), before)
    except MusterError as error:
        return str(error)
    except Exception as error:  # whatever it is: the round goes on
        return f"{type(error).__name__}: {error}"
    return ""


def _place(desk: Desk, cell: CellStatus) -> Place:
    attempt = attempt_of(cell.record)
    if attempt is None:
        return Place()
    url = logged_url(str(attempt_folder(desk.state, *attempt.place)))
    return Place(output_of(desk.state, cell) or "", url)


def _write(desk: Desk, status: Status, facts: LoopFacts, cells: Mapping[str, CellStamp]) -> Written:
    pictures, undrawn, left_out = tree(facts), "", list[str]()
    try:
        pictures |= curve(facts)
        left_out = unnamed(facts)
    except Exception as error:  # a text without its picture is better than none
        undrawn = f"{type(error).__name__}: {error}"
    files = [f"{FOLDER}/{name}" for name in ("summary.md", "summary.json", *pictures)]
    summary = summary_json(facts, files)
    basis = _basis(desk, status, facts, cells)
    text = loop_markdown(facts, list(pictures), undrawn, left_out)
    text += f"\n---\n{footer(basis, facts.version, files[0])}; {facts.at}\n"
    data = json.dumps(summary, ensure_ascii=False, indent=1, allow_nan=False)
    derived = [
        Derived(files[0], text.encode("utf-8", "replace"), "text"),
        Derived(files[1], f"{data}\n".encode("utf-8", "replace"), "text"),
        *(Derived(f"{FOLDER}/{name}", data, "figure") for name, data in pictures.items()),
    ]
    kept = publish(desk.root, MADE, COMMAND, status.as_of, muster.__version__, basis, derived)
    return Written(facts, summary, kept.written, undrawn)


def _basis(desk: Desk, status: Status, facts: LoopFacts, cells: Mapping[str, CellStamp]) -> Basis:
    """Missing is what is not over: a run that died is told of, and no later report will have more of it.

    Of campaign.yaml that counts which was taken in, and `state` has its hash.
    """
    told = digest_of(status.state, words_of_people(desk.store.events()))
    missing = tuple(run.cell for run in facts.runs if not run.over)
    every = len(facts.runs)
    return Basis(facts.campaign, {}, cells, every - len(missing), every, missing, state=told)
