"""The written record of a campaign, from its event table and notes: what it was, what happened, what is missing.

Everything in it comes from what was recorded. The environment that `up` was called in is never read: only variables
that campaign.yaml declares are named.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import prod
from typing import Any

from muster import __version__
from muster.acts.masking import hidden_lines, hidden_text, hidden_words, is_secret
from muster.acts.record_missing import Words, absent, decided, fixes
from muster.acts.record_story import Story, shortened
from muster.acts.status import CellStatus, Status
from muster.domain.attempt import Attempt
from muster.domain.campaign import Campaign, Job
from muster.domain.cell import needed_cells
from muster.domain.code import code_files, code_state
from muster.domain.order import Order
from muster.domain.verdict import State
from muster.ledger.units import unit
from muster.plan.standing import describe, outdated, wanted
from muster.ports.store import Event
from muster.report.record import record_markdown
from muster.report.record_facts import (
    CodeUse,
    FilterSet,
    JobScope,
    Place,
    RecordFacts,
    Tally,
    TextChange,
)  # fmt: skip

CHANGED_LINES = 12
MOST_PLACES = 60
PEOPLE = ("hold", "release", "retry", "redo", "giveup", "accept", "flag", "stop", "note")


@dataclass(frozen=True, slots=True)
class Sources:
    """What lies outside the state: folders and files. All paths are absolute."""

    root: str
    state: str  # .muster
    folder_of: Callable[[str, int], str]  # of an attempt
    order_of: Callable[[str, int], Order | None]  # attempt.json; None: adopted, or gone
    text_of: Callable[[str], str | None]  # a campaign text by its hash
    exists: Callable[[str], bool]
    files: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # of the manifest: kind -> (files, bytes)
    slots: int = 1


def record_text(
    status: Status,
    events: Sequence[Event],
    sources: Sources,
    *,
    language: str | None = None,
) -> str:
    """The record as Markdown, in the campaign's language."""
    return record_markdown(record_facts(status, events, sources, language=language))


def record_facts(
    status: Status,
    events: Sequence[Event],
    sources: Sources,
    *,
    language: str | None = None,
) -> RecordFacts:
    state, campaign = status.state, status.state.campaign
    words = decided(events)
    needs = needed_cells(campaign, [record.cell for record in state.declared])
    missing = absent(status, words, needs, lambda cell: _logs(cell, sources))
    story = Story(state, lambda attempt: _log_paths(attempt, sources))
    seen, unseen = shortened(story.tell(events))
    places = list(_places(status, events, sources))
    done = [cell.record for cell in status.cells if cell.verdict.state == State.DONE]
    chosen: Any = language or campaign.language
    return RecordFacts(
        campaign=campaign.name,
        folder=sources.root,
        language=chosen,
        at=status.as_of,
        version=__version__,
        declared=len(status.cells),
        counts=dict(status.counts),
        intent=state.intent.kind,
        alive=status.controller.alive,
        axes=tuple((axis.name, tuple(value.name for value in axis.values)) for axis in campaign.axes),
        jobs=tuple(_job(campaign, job, status, sources.root) for job in campaign.jobs),
        slots=_slots(campaign),
        values=tuple(
            (axis.name, value.name, hidden_text(value.args), value.note, value.proxy)
            for axis in campaign.axes
            for value in axis.values
            if value.args or value.note or value.proxy
        ),
        env=_env(campaign.env),
        price=(money.price, money.currency, _unit(status), money.budget) if (money := campaign.money) else None,
        hold=(words.hold.at, words.hold.who, words.hold.reason) if words.hold else None,
        code=tuple(_code(status, sources)),
        texts=tuple(_texts(events, sources)),
        filters=tuple(_filters(words, status)),
        people=_people(events),
        files=sources.files,
        seen=tuple(seen),
        unseen=unseen,
        quiet=story.quiet,
        tallies=tuple(_tallies(status)),
        absent=missing,
        adopted=sum(bool((attempt := record.completed) and attempt.adopted) for record in done),
        outdated=sum(outdated(record) for record in done),
        fixes=fixes(status, missing, sources.slots),
        currency=campaign.money.currency if campaign.money else "",
        places=tuple(places[:MOST_PLACES]),
        more_places=max(0, len(places) - MOST_PLACES),
    )


# -- scope


def _unit(status: Status) -> str:
    """As the bill counts."""
    attempts = (attempt for record in status.state.cells.values() for attempt in record.attempts)
    return unit(status.state.campaign, (slot for attempt in attempts for slot in attempt.slots))


def _job(campaign: Campaign, job: Job, status: Status, root: str) -> JobScope:
    cells = sum(cell.record.cell.job == job.name for cell in status.cells)
    axes = tuple((name, len(campaign.axis(name).values)) for name in job.axes)
    return JobScope(
        job.name, axes, cells, prod(count for _, count in axes) - cells, words(hidden_words(job.command)),
        words(hidden_words(job.within)), job.cwd or root, _env(job.env), job.needs,
        job.steps, job.asks_proof,
    )  # fmt: skip


def _env(declared: Mapping[str, str]) -> tuple[tuple[str, str | None], ...]:
    return tuple((name, None if is_secret(name) else declared[name]) for name in sorted(declared))


def words(parts: Sequence[str]) -> str:
    """As a person would type them: placeholders and globs stand bare."""
    return " ".join(part if re.fullmatch(r"[^\s'\"\\$`;&|<>()]+", part) else _quoted(part) for part in parts)


def _quoted(part: str) -> str:
    return "'" + part.replace("'", "'\"'\"'") + "'"


def _slots(campaign: Campaign) -> str:
    slots = campaign.slots
    gpus = "auto" if slots.gpus is None else str(list(slots.gpus)) if slots.gpus else "0"
    shared = f", per_gpu: {slots.per_gpu}" if slots.per_gpu != 1 else ""
    return f"gpus: {gpus}{shared}, cpus: {slots.cpus}"


# -- changes


def _texts(events: Sequence[Event], sources: Sources) -> Iterator[TextChange]:
    """The first one, and every one that differs from the one before."""
    before: tuple[str, str] | None = None
    for event in events:
        decision = event.decision
        if decision.kind != "campaign" or event.void:
            continue
        name = str(decision.data.get("hash", ""))
        text = sources.text_of(name) or ""
        if before and (before[0] == name or before[1] == text):
            continue
        path = f"{sources.state}/campaigns/{name}.json"
        if before is None:
            yield TextChange(decision.at, decision.who, path)
        else:
            lines = _difference(before[1], text)
            shown = lines[:CHANGED_LINES]
            yield TextChange(decision.at, decision.who, path, tuple(shown), len(lines) - len(shown))
        before = (name, text)


def _difference(old: str, new: str) -> list[str]:
    """That a secret changed is shown, and not what it was: hidden after the two were compared."""
    before, after = old.splitlines(), new.splitlines()
    shown = hidden_lines(before), hidden_lines(after)
    found = []
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, before, after).get_opcodes():
        if tag != "equal":
            found += [f"-{line}" for line in shown[0][i1:i2]] + [f"+{line}" for line in shown[1][j1:j2]]
    return found


def _filters(decided_: Words, status: Status) -> Iterator[FilterSet]:
    cells = [record.cell for record in status.state.declared]
    for decision, only in decided_.filters:
        if "left_out" in decision.data:
            left = tuple(map(str, decision.data["left_out"]))
        else:
            left = tuple(cell.id for cell in cells if not wanted(cell, only))
        yield FilterSet(decision.at, decision.who, describe(only), left)


def _people(events: Sequence[Event]) -> Mapping[str, int]:
    counted = Counter(e.decision.kind for e in events if not e.void and e.decision.epoch is None)
    return {kind: counted[kind] for kind in PEOPLE if counted[kind]}


def _code(status: Status, sources: Sources) -> Iterator[CodeUse]:
    found: Counter[tuple[str, str, str | None, str, str]] = Counter()
    files: dict[str | None, tuple[str, ...]] = {}
    for record in status.state.cells.values():
        for attempt in record.attempts:
            order = None if attempt.adopted else sources.order_of(*attempt.place)
            if order:
                code = order.code
                dirty, why = code.get("dirty"), str(code.get("why") or "")
                found[(order.cwd, code.get("commit") or "", dirty, code_state(code), why)] += 1
                files[dirty] = tuple(chain(*code_files(code))) or tuple(code.get("files") or ())
    for (cwd, commit, dirty, state, why), count in found.items():
        diff, kept = f"{sources.state}/diffs/{dirty}.diff", f"{sources.state}/diffs/files"
        yield CodeUse(
            cwd, commit, dirty, count, diff if dirty and sources.exists(diff) else None, state, why, files[dirty],
            kept if files[dirty] and sources.exists(kept) else None,
        )  # fmt: skip


# -- status


def _tallies(status: Status) -> Iterator[Tally]:
    """Per job, the values of the last axis (the seeds, as a rule) for each combination of the others."""
    rows: dict[tuple[str, str], tuple[str, list[str], list[str]]] = {}
    for cell in status.cells:
        values = cell.record.cell.values
        last = next((at for at, (axis, _) in enumerate(values) if axis == "seed"), len(values) - 1)
        name = "/".join(value.name for at, (_, value) in enumerate(values) if at != last)
        axis, value = (values[last][0], values[last][1].name) if values else ("", cell.record.cell.id)
        row = rows.setdefault((cell.record.cell.job, name), (axis, [], []))
        row[1].append(value)
        if cell.verdict.state == State.DONE:
            row[2].append(value)
    for (job, name), (axis, declared, done) in rows.items():
        yield Tally(job, name, axis, tuple(done), len(declared))


# -- where the evidence lies


def _log_paths(attempt: Attempt, sources: Sources) -> tuple[str, ...]:
    folder = sources.folder_of(*attempt.place)
    named = [f"{folder}/{name}" for name in ("stderr.log", "stdout.log")]
    return tuple(path for path in named if sources.exists(path))


def _logs(cell: CellStatus, sources: Sources) -> tuple[str, ...]:
    return _log_paths(cell.record.last, sources) if cell.record.last else ()


def _places(status: Status, events: Sequence[Event], sources: Sources) -> Iterator[Place]:
    fixed = (
        ("log", "decisions.jsonl"),
        ("database", "campaign.db"),
        ("texts", "campaigns"),
        ("preflight", "preflight.json"),
    )
    for what, name in fixed:
        if sources.exists(f"{sources.state}/{name}"):
            yield Place(what, f"{sources.state}/{name}")
    for job in status.state.campaign.jobs:
        table = f"{sources.root}/reports/status/{job.name}_status_latest.tsv"
        if sources.exists(table):
            yield Place("table", table, job.name)
    noted = [
        e.decision.data["evidence"] for e in events if e.decision.kind == "note" and e.decision.data.get("evidence")
    ]
    for pointed in noted:
        yield Place("noted", f"{pointed['file']}:{pointed['line']}")
    yield Place("attempts", f"{sources.state}/attempts")
    for record in status.state.cells.values():
        for attempt in record.attempts:
            folder = sources.folder_of(*attempt.place)
            if not attempt.completed and not attempt.adopted:
                yield Place("superseded" if attempt.was_done else "attempt", folder, f"{record.cell.id}@{attempt.n}")
    for record in status.state.cells.values():
        done = record.completed
        output = done.outcome.output if done and done.outcome else None
        if done and output and not output.startswith(f"{sources.state}/"):
            yield Place("adopted" if done.adopted else "output", output, record.cell.id)


# -- as JSON


def as_json(facts: RecordFacts, text: str, file: str | None) -> dict[str, Any]:
    """The object of `muster record --json`: a contract."""
    return {
        "muster": 1,
        "campaign": facts.campaign,
        "as_of": facts.at,
        "language": facts.language,
        "file": file,
        "declared": facts.declared,
        "counts": dict(facts.counts),
        "missing": [
            {"cells": list(each.cells), "verdict": each.state, "why": each.why, "details": dict(each.parts)}
            for each in facts.absent
        ],
        "fix": [
            {
                "command": fix.command,
                "cells": list(fix.cells),
                "slot_hours": fix.hours,
                "wall_hours": fix.wall_hours,
                "money": fix.money,
            }
            for fix in facts.fixes
        ],
        "text": text,
    }
