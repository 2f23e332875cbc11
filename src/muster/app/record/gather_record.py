"""Gathers the written record of a campaign from its events and notes: what it was, what happened, what is missing.

The environment that `up` was called in is never read: only variables that campaign.yaml declares are named.
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
from muster.app.campaign.campaign_status import CellStatus, Status
from muster.app.facts.record_facts import (
    CodeUse,
    EvidencePlace,
    JobScope,
    RecordFacts,
    SeedTally,
    TextChange,
    attempt_log_paths,
    commands_to_complete,
    decisions_about_cells,
    filters_in_order,
    group_absent_cells,
    status_table_places,
)
from muster.app.record.event_story import EventStory, shorten_story
from muster.engine.plan.cell_standing import is_outdated_cell
from muster.engine.ports.store import LoggedDecision
from muster.ledger.billed_spans import priced_unit
from muster.model.attempt import Order, classify_code_state, list_code_changes
from muster.model.campaign import Campaign, Job
from muster.model.verdict import VerdictState
from muster.text.hide_secrets import hide_secrets_in_text, hide_secrets_in_words, hide_secrets_in_yaml
from muster.text.secret_masking import is_secret_name

CHANGED_LINES = 12
MOST_PLACES = 60
DECISIONS_OF_PEOPLE = ("hold", "release", "retry", "redo", "giveup", "accept", "flag", "stop", "note")


@dataclass(frozen=True, slots=True)
class RecordSources:
    """What lies outside the state: folders and files. All paths are absolute."""

    root: str
    state: str  # .muster
    folder_of: Callable[[str, int], str]  # of an attempt
    order_of: Callable[[str, int], Order | None]  # attempt.json; None: adopted, or gone
    text_of: Callable[[str], str | None]  # a campaign text by its hash
    exists: Callable[[str], bool]
    files: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # of the manifest: kind -> (files, bytes)
    slots: int = 1


def gather_record_facts(
    status: Status,
    events: Sequence[LoggedDecision],
    sources: RecordSources,
    *,
    language: str | None = None,
) -> RecordFacts:
    state, campaign = status.state, status.state.campaign
    words = decisions_about_cells(events)
    needs = state.needs

    def logs_of(cell: CellStatus) -> tuple[str, ...]:
        return attempt_log_paths(cell.record.last, sources.folder_of, sources.exists)

    missing = group_absent_cells(status, words, needs, logs_of)
    story = EventStory(state, lambda attempt: attempt_log_paths(attempt, sources.folder_of, sources.exists))
    seen, unseen = shorten_story(story.tell(events))
    places = list(_record_evidence_places(status, events, sources))
    done = [cell.record for cell in status.cells if cell.verdict.state == VerdictState.DONE]
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
        jobs=tuple(_scope_of_job(campaign, job, status, sources.root) for job in campaign.jobs),
        slots=_slots_as_declared(campaign),
        values=tuple(
            (axis.name, value.name, hide_secrets_in_text(value.args), value.note, value.proxy)
            for axis in campaign.axes
            for value in axis.values
            if value.args or value.note or value.proxy
        ),
        env=_environment_without_secrets(campaign.env),
        price=(money.price, money.currency, _billing_unit(status), money.budget) if (money := campaign.money) else None,
        hold=(words.hold.at, words.hold.who, words.hold.reason) if words.hold else None,
        code=tuple(_code_uses(status, sources)),
        texts=tuple(_text_changes(events, sources)),
        filters=tuple(filters_in_order(words, status)),
        people=_decisions_by_people(events),
        files=sources.files,
        seen=tuple(seen),
        unseen=unseen,
        quiet=story.quiet,
        tallies=tuple(_seed_tallies(status)),
        absent=missing,
        adopted=sum(bool((attempt := record.completed) and attempt.adopted) for record in done),
        outdated=sum(is_outdated_cell(record) for record in done),
        fixes=commands_to_complete(status, missing, sources.slots),
        currency=campaign.money.currency if campaign.money else "",
        places=tuple(places[:MOST_PLACES]),
        more_places=max(0, len(places) - MOST_PLACES),
    )


# -- scope


def _billing_unit(status: Status) -> str:
    """As the bill counts."""
    attempts = (attempt for record in status.state.cells.values() for attempt in record.attempts)
    return priced_unit(status.state.campaign, (slot for attempt in attempts for slot in attempt.slots))


def _scope_of_job(campaign: Campaign, job: Job, status: Status, root: str) -> JobScope:
    cells = sum(cell.record.cell.job == job.name for cell in status.cells)
    axes = tuple((name, len(campaign.axis(name).values)) for name in job.axes)
    return JobScope(
        job.name,
        axes,
        cells,
        prod(count for _, count in axes) - cells,
        command_as_typed(hide_secrets_in_words(job.command)),
        command_as_typed(hide_secrets_in_words(job.within)),
        job.cwd or root,
        _environment_without_secrets(job.env),
        job.needs,
        job.steps,
        job.asks_proof,
    )


def _environment_without_secrets(declared: Mapping[str, str]) -> tuple[tuple[str, str | None], ...]:
    return tuple((name, None if is_secret_name(name) else declared[name]) for name in sorted(declared))


def command_as_typed(parts: Sequence[str]) -> str:
    """As a person would type them: placeholders and globs stand bare."""
    return " ".join(part if re.fullmatch(r"[^\s'\"\\$`;&|<>()]+", part) else _single_quoted(part) for part in parts)


def _single_quoted(part: str) -> str:
    return "'" + part.replace("'", "'\"'\"'") + "'"


def _slots_as_declared(campaign: Campaign) -> str:
    slots = campaign.slots
    gpus = "auto" if slots.gpus is None else str(list(slots.gpus)) if slots.gpus else "0"
    shared = f", per_gpu: {slots.per_gpu}" if slots.per_gpu != 1 else ""
    return f"gpus: {gpus}{shared}, cpus: {slots.cpus}"


# -- changes


def _text_changes(events: Sequence[LoggedDecision], sources: RecordSources) -> Iterator[TextChange]:
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
            lines = _masked_line_changes(before[1], text)
            shown = lines[:CHANGED_LINES]
            yield TextChange(decision.at, decision.who, path, tuple(shown), len(lines) - len(shown))
        before = (name, text)


def _masked_line_changes(old: str, new: str) -> list[str]:
    """That a secret changed is shown, and not what it was: hidden after the two were compared."""
    before, after = old.splitlines(), new.splitlines()
    shown = hide_secrets_in_yaml(before), hide_secrets_in_yaml(after)
    found = []
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, before, after).get_opcodes():
        if tag != "equal":
            found += [f"-{line}" for line in shown[0][i1:i2]] + [f"+{line}" for line in shown[1][j1:j2]]
    return found


def _decisions_by_people(events: Sequence[LoggedDecision]) -> Mapping[str, int]:
    counted = Counter(e.decision.kind for e in events if not e.void and e.decision.epoch is None)
    return {kind: counted[kind] for kind in DECISIONS_OF_PEOPLE if counted[kind]}


def _code_uses(status: Status, sources: RecordSources) -> Iterator[CodeUse]:
    found: Counter[tuple[str, str, str | None, str, str]] = Counter()
    files: dict[str | None, tuple[str, ...]] = {}
    for record in status.state.cells.values():
        for attempt in record.attempts:
            order = None if attempt.adopted else sources.order_of(*attempt.place)
            if order:
                code = order.code
                dirty, why = code.get("dirty"), str(code.get("why") or "")
                found[(order.cwd, code.get("commit") or "", dirty, classify_code_state(code), why)] += 1
                files[dirty] = tuple(chain(*list_code_changes(code))) or tuple(code.get("files") or ())
    for (cwd, commit, dirty, state, why), count in found.items():
        diff, kept = f"{sources.state}/diffs/{dirty}.diff", f"{sources.state}/diffs/files"
        yield CodeUse(
            cwd,
            commit,
            dirty,
            count,
            diff if dirty and sources.exists(diff) else None,
            state,
            why,
            files[dirty],
            kept if files[dirty] and sources.exists(kept) else None,
        )


# -- status


def _seed_tallies(status: Status) -> Iterator[SeedTally]:
    """Per job, the values of the last axis (the seeds, as a rule) for each combination of the others."""
    rows: dict[tuple[str, str], tuple[str, list[str], list[str]]] = {}
    for cell in status.cells:
        values = cell.record.cell.values
        last = next((at for at, (axis, _) in enumerate(values) if axis == "seed"), len(values) - 1)
        name = "/".join(value.name for at, (_, value) in enumerate(values) if at != last)
        axis, value = (values[last][0], values[last][1].name) if values else ("", cell.record.cell.id)
        row = rows.setdefault((cell.record.cell.job, name), (axis, [], []))
        row[1].append(value)
        if cell.verdict.state == VerdictState.DONE:
            row[2].append(value)
    for (job, name), (axis, declared, done) in rows.items():
        yield SeedTally(job, name, axis, tuple(done), len(declared))


# -- where the evidence lies


def _record_evidence_places(
    status: Status, events: Sequence[LoggedDecision], sources: RecordSources
) -> Iterator[EvidencePlace]:
    fixed = (
        ("log", "decisions.jsonl"),
        ("database", "campaign.db"),
        ("texts", "campaigns"),
        ("preflight", "preflight.json"),
    )
    for what, name in fixed:
        if sources.exists(f"{sources.state}/{name}"):
            yield EvidencePlace(what, f"{sources.state}/{name}")
    yield from status_table_places(status, sources.root, sources.exists)
    noted = [
        e.decision.data["evidence"] for e in events if e.decision.kind == "note" and e.decision.data.get("evidence")
    ]
    for pointed in noted:
        yield EvidencePlace("noted", f"{pointed['file']}:{pointed['line']}")
    yield EvidencePlace("attempts", f"{sources.state}/attempts")
    for record in status.state.cells.values():
        for attempt in record.attempts:
            folder = sources.folder_of(*attempt.place)
            if not attempt.completed and not attempt.adopted:
                yield EvidencePlace(
                    "superseded" if attempt.was_done else "attempt", folder, f"{record.cell.id}@{attempt.n}"
                )
    for record in status.state.cells.values():
        done = record.completed
        output = done.outcome.output if done and done.outcome else None
        if done and output and not output.startswith(f"{sources.state}/"):
            yield EvidencePlace("adopted" if done.adopted else "output", output, record.cell.id)


# -- as JSON


def record_as_json(facts: RecordFacts, text: str, file: str | None) -> dict[str, Any]:
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
