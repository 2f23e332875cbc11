"""muster why"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.campaign_status import Status, boot_time_for_attempt
from muster.app.campaign.observe_campaign import with_next_by_file
from muster.app.campaign.start_controller import observe_and_revive
from muster.app.campaign.unknown_runs import add_unknown_runs
from muster.app.campaign.verbs.choose_cells import declared_names, is_cell_glob, resolve_cells, withdrawn_names
from muster.app.overview.explain_cell import (
    AttemptStory,
    CellStory,
    build_cell_story,
    cell_story_as_json,
    explain_verdict,
    find_withdrawn_cells,
    read_log_tail,
    reason_in_words,
)
from muster.engine.ports.store import LoggedDecision
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.status_view import confidence_in_words, state_mark
from muster.faces.cli.common.terminal_output import (
    format_evidence_table,
    pad_label,
    paint_text,
    print_json,
    print_notice,
    section_title,
)
from muster.files.state_folder import attempt_folder
from muster.model.attempt import CellRecord
from muster.model.variant import Variant
from muster.model.verdict import Evidence, SignalRhythm
from muster.text.phrases import join_phrases, phrase
from muster.text.sentences import format_calendar_duration
from muster.text.terminal_text import strip_terminal_sequences

app = typer.Typer(add_completion=False)
STRIP_WIDTH = 48


@app.command("why", epilog="Example:  muster why train/v2_full/2")
def why_command(
    ctx: typer.Context,
    cell: Annotated[str, typer.Argument(metavar="CELL", help="A cell, or a glob: 'train/*/2'.", show_default=False)],
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Why a cell has its verdict: the evidence, all attempts with their causes, what happens next."""
    desk = CampaignHandle.open(folder_of_context(ctx))
    found = add_unknown_runs(desk.root, with_next_by_file(desk, observe_and_revive(desk, print_notice)))
    names, former = declared_names(found.state), withdrawn_names(found.state)
    folder_of = partial(attempt_folder, desk.state)
    chosen = set(resolve_cells([cell], names, former))
    stories = [
        build_cell_story(found, each, desk.store.events(each.record.cell.id), folder_of, _checkpoint_step_text)
        for each in (*found.cells, *found.withdrawn, *find_withdrawn_cells(found))
        if each.record.cell.id in chosen
    ]
    if as_json_:
        objects = [cell_story_as_json(told, found) for told in stories]
        shown = objects if is_cell_glob(cell, [*names, *former]) and len(objects) > 1 else objects[0]
        print_json(shown)
        return 0
    for number, told in enumerate(stories):
        if number:
            print()
        for line in format_story_lines(told, found):
            print(line)
    return 0


def _checkpoint_step_text(checkpoint: str) -> str:
    from muster.readers.checkpoints.checkpoint_steps import (
        step_of_checkpoint,
    )  # only attempts that were resumed need it

    return str(step_of_checkpoint(checkpoint) or "")


def format_story_lines(told: CellStory, status: Status) -> Iterator[str]:
    cell, verdict = told.cell, told.cell.verdict
    kind = f"({verdict.kind})" if verdict.kind else ""
    name = paint_text(cell.record.cell.id, "bold")
    state, sure = f"{verdict.state}{kind}", confidence_in_words(verdict.confidence)
    stands = phrase("cli.is_in_state", state=state, confidence=sure, reason=verdict.reason)
    yield f"{state_mark(verdict.state)} {name} {stands}"
    meaning = [explain_verdict(verdict)]
    meaning += [phrase("cli.its_cause", cause=str(verdict.cause))] if verdict.cause else []
    yield "  " + join_phrases(" ", meaning)
    yield from _format_naming(cell.record)
    if cell.since:
        label = phrase("cli.label_began" if cell.record.open else "cli.label_since")
        yield f"  {pad_label(label, 7)}{_format_story_time(cell.since)}"
    yield f"  {pad_label(phrase('cli.label_next'), 7)}{cell.next}"
    if variant := told.variant:
        yield "  " + phrase(
            "cli.config_of_round", config=variant.config, round=variant.round, origin=_say_variant_origin(variant)
        )
    if verdict.turns is not None:
        left = format_calendar_duration(max(0.0, verdict.turns - status.boot))
        label, turns = phrase("cli.label_else"), phrase("cli.turns_into", state=verdict.into, duration=left)
        yield f"  {pad_label(label, 7)}{turns}"
    if verdict.evidence:
        yield from _format_evidence(
            verdict.evidence, boot_time_for_attempt(cell.record.completed or cell.record.last, status)
        )
    if verdict.rhythms:
        yield section_title("cli.title_cadence")
        yield from (f"  {rhythm.signal}: {format_cadence(rhythm)}" for rhythm in verdict.rhythms)
    if len(told.timeline) > 1 and not verdict.final:
        yield from _format_timeline(told, status)
    if told.needs:
        yield section_title("cli.title_needs")
        yield from (f"  {state_mark(state)} {need}  {state}" for need, state in told.needs)
    if told.gates:
        yield from _format_gate_rows(told)
    if told.attempts:
        yield section_title("cli.title_attempts")
        for each in told.attempts:
            yield from _format_attempt(each, last=each is told.attempts[-1])
    if told.decisions:
        yield section_title("cli.title_decisions")
        yield from (_format_decision(event) for event in told.decisions)


def _format_naming(record: CellRecord) -> Iterator[str]:
    if not record.declared:
        yield "  " + phrase("cli.withdrawn_attempts_kept")
    if record.formerly:
        yield "  " + phrase("cli.formerly_named", cells=", ".join(record.formerly))


def _say_variant_origin(variant: Variant) -> str:
    if not variant.edits:
        return phrase("cli.variant_is_base")
    edits = ", ".join(variant.edits)
    return phrase("cli.variant_from_with_edits", parent=variant.parent, reason=variant.reason, edits=edits)


def _format_gate_rows(told: CellStory) -> Iterator[str]:
    yield section_title("cli.title_gates")
    for gate, row in told.gates.items():
        stage = f" ({row['stage']})" if row["stage"] else ""
        said = phrase(
            "cli.gate_row",
            gate=gate,
            state=row["state"],
            phase=row["phase"],
            iteration=row["iteration"],
            stage=stage,
            reason=row["why"],
        )
        yield f"  {said}"
        yield from (f"    {phrase('cli.missing_for_gate', text=each)}" for each in row["missing"] or ())


def _format_evidence(evidence: Sequence[Evidence], boot: float) -> Iterator[str]:
    yield section_title("cli.title_evidence")
    yield from format_evidence_table(
        (
            item.signal,
            item.kind,
            item.reading,
            format_calendar_duration(boot - item.boot) if item.boot is not None and boot >= item.boot else "",
            item.says,
        )
        for item in evidence
    )


def format_cadence(rhythm: SignalRhythm) -> str:
    if rhythm.silent_s is None:
        return phrase("cli.has_not_advanced_yet")
    said = [phrase("cli.silent_for", duration=format_calendar_duration(rhythm.silent_s))]
    if rhythm.usual_s is not None and rhythm.longest_s is not None:
        usual, longest = format_calendar_duration(rhythm.usual_s), format_calendar_duration(rhythm.longest_s)
        said.insert(0, phrase("cli.usual_silence", usual=usual, longest=longest))
    limits = phrase(
        "cli.silence_limits",
        overdue=format_calendar_duration(rhythm.suspect_s),
        stalled=format_calendar_duration(rhythm.convict_s),
        rests_on=rhythm.rests_on,
    )
    return join_phrases("; ", filter(None, (join_phrases(", ", said), limits, rhythm.note)))


def _format_timeline(told: CellStory, status: Status) -> Iterator[str]:
    """A strip with one sign per part of the attempt's time, and the moments at which it changed."""
    yield section_title("cli.title_timeline")
    turns = told.timeline
    began, ended = turns[0].boot, turns[-1].boot if turns[-1].verdict in ("DONE", "DEAD") else status.boot
    if ended > began:
        places = (began + (ended - began) * part / (STRIP_WIDTH - 1) for part in range(STRIP_WIDTH))
        states = ([turn.verdict for turn in turns if turn.boot <= place + 1e-6][-1] for place in places)
        yield f"  {''.join(state_mark(state) for state in states)}  {format_calendar_duration(ended - began)}"
    yield from (f"  {_format_story_time(turn.at)}  {turn.text}" for turn in turns)


def _format_attempt(told: AttemptStory, *, last: bool) -> Iterator[str]:
    attempt = told.attempt
    said = [phrase("cli.attempt_is", attempt=attempt.n, state=told.verdict)]
    if told.cause:
        said.append(f"{told.cause} ({confidence_in_words(told.confidence)})")
    if told.started:
        said.append(phrase("cli.started_at", time=_format_story_time(told.started)))
    if told.ended:
        said.append(phrase("cli.ended_at", time=_format_story_time(told.ended)))
    if told.duration_s is not None:
        said.append(phrase("cli.took_duration", duration=format_calendar_duration(told.duration_s)))
    if told.signal is not None:
        said.append(phrase("cli.ended_by_signal", signal=told.signal))
    elif told.code is not None:
        said.append(phrase("cli.exit_code", code=told.code))
    yield f"  {state_mark(told.verdict)} {join_phrases(', ', said)}"
    yield f"      {told.reason}"
    reread = attempt.reread.reason if attempt.reread else None
    for code, text in (
        ("cli.started_because", attempt.retry_cause),
        ("cli.resumed_from", told.resumed),
        ("cli.proof_read_again", reread),
        ("cli.accepted_because", None if reread else attempt.accepted),
        ("cli.superseded_because", attempt.superseded),
        ("cli.output_and_logs_cleaned", told.cleaned),
    ):
        if text:
            yield f"      {phrase(code, text=text)}"
    if attempt.adopted:
        yield "      " + phrase("cli.attempt_was_adopted")
    for code, path in (
        ("cli.label_output", told.output),
        ("cli.label_log", told.log),
        ("cli.label_errors", told.err),
    ):
        if path and not (told.cleaned and path == told.output and not Path(path).exists()):
            yield f"      {pad_label(phrase(code), 7)}{path}"
    if last:
        yield from _format_death(told)


def _format_death(told: AttemptStory) -> Iterator[str]:
    """What the log shows of a death, and what to try."""
    for text in told.contributing:
        yield f"      {phrase('cli.also', text=text)}"
    if told.lines:
        yield "      " + phrase("cli.log_lines_that_show_it")
        yield from (f"        | {_last_screen_state(line)}" for line in told.lines)
    elif told.verdict == "DEAD" and (found := read_log_tail(told.err)):
        yield "      " + phrase("cli.last_lines_of_stderr")
        yield from (f"        | {_last_screen_state(line)}" for line in found)
    if told.advice:
        yield f"      {phrase('cli.advice', text=told.advice)}"


def _format_decision(event: LoggedDecision) -> str:
    decision = event.decision
    what = decision.kind
    if decision.attempt is not None:
        what = phrase("cli.decision_of_attempt", decision=decision.kind, attempt=decision.attempt)
    said = join_phrases(", ", filter(None, (what, reason_in_words(decision))))
    text = f"  {_format_story_time(decision.at)}  {decision.who}: {said}"
    pointed = decision.data.get("evidence") if decision.kind == "note" else None
    if pointed:
        text += f" [{pointed['file']}:{pointed['line']}: {pointed['text']}]"
    return text + (paint_text("  " + phrase("cli.decision_refused", reason=event.void), "yellow") if event.void else "")


def _format_story_time(iso: str) -> str:
    return iso[:19].replace("T", " ")


def _last_screen_state(line: str) -> str:
    """A progress bar's last state, and no codes that would play with the terminal."""
    return strip_terminal_sequences(line.rpartition("\r")[2])
