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
)
from muster.engine.ports.store import LoggedDecision
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.status_view import state_mark
from muster.faces.cli.common.terminal_output import display_width, pad_name, paint_text, print_json, print_notice
from muster.files.state_folder import attempt_folder
from muster.model.attempt import CellRecord
from muster.model.verdict import Evidence, SignalRhythm
from muster.text.durations import format_calendar_duration
from muster.text.phrases import phrase
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
    yield f"{state_mark(verdict.state)} {name} is {verdict.state}{kind}, {verdict.confidence}: {verdict.reason}"
    yield f"  {explain_verdict(verdict)}" + (phrase("cli.cause", cause=verdict.cause) if verdict.cause else "")
    yield from _format_naming(cell.record)
    if cell.since:
        open_ = cell.record.open is not None
        yield f"  {'began' if open_ else 'since'}  {_format_story_time(cell.since)}"
    yield f"  next   {cell.next}"
    if variant := told.variant:
        made = (
            f"from {variant.parent}: {variant.reason} ({', '.join(variant.edits)})"
            if variant.edits
            else phrase("cli.base")
        )
        yield phrase("cli.config_round", config=variant.config, round=variant.round, made=made)
    if verdict.turns is not None:
        left = format_calendar_duration(max(0.0, verdict.turns - status.boot))
        yield phrase("cli.else_if_nothing_advances_more", into=verdict.into, left=left)
    if verdict.evidence:
        yield from _format_evidence(
            verdict.evidence, boot_time_for_attempt(cell.record.completed or cell.record.last, status)
        )
    if verdict.rhythms:
        yield _bold_section_title("Cadence")
        yield from (f"  {rhythm.signal}: {format_cadence(rhythm)}" for rhythm in verdict.rhythms)
    if len(told.timeline) > 1 and not verdict.final:
        yield from _format_timeline(told, status)
    if told.needs:
        yield _bold_section_title("Needs")
        yield from (f"  {state_mark(state)} {need}  {state}" for need, state in told.needs)
    if told.gates:
        yield from _format_gate_rows(told)
    if told.attempts:
        yield _bold_section_title("Attempts")
        for each in told.attempts:
            yield from _format_attempt(each, last=each is told.attempts[-1])
    if told.decisions:
        yield _bold_section_title("Decisions")
        yield from (_format_decision(event) for event in told.decisions)


def _format_naming(record: CellRecord) -> Iterator[str]:
    if not record.declared:
        yield phrase("cli.no_longer_declared_campaign_attempts")
    if record.formerly:
        yield phrase("cli.formerly_renamed_attempts_kept", formerly=", ".join(record.formerly))


def _bold_section_title(text: str) -> str:
    return "\n" + paint_text(text, "bold")


def _format_gate_rows(told: CellStory) -> Iterator[str]:
    yield _bold_section_title("Gates")
    for gate, row in told.gates.items():
        where = phrase(
            "cli.iteration", iteration=row["iteration"], value=f" ({stage})" if (stage := row["stage"]) else ""
        )
        yield phrase("cli.phase", gate=gate, state=row["state"], phase=row["phase"], where=where, why=row["why"])
        yield from (f"    missing: {each}" for each in row["missing"] or ())


def _format_evidence(evidence: Sequence[Evidence], boot: float) -> Iterator[str]:
    yield _bold_section_title("Evidence")
    rows = [("signal", "class", "reading", "age", "says")]
    for item in evidence:
        age = format_calendar_duration(boot - item.boot) if item.boot is not None and boot >= item.boot else ""
        rows.append((item.signal, item.kind, item.reading, age, item.says))
    widths = [max(display_width(row[column]) for row in rows) for column in range(5)]
    for number, row in enumerate(rows):
        line = "  ".join(pad_name(text, most) for text, most in zip(row, widths, strict=True)).rstrip()
        yield "  " + (paint_text(line, "dim") if number == 0 else line)


def format_cadence(rhythm: SignalRhythm) -> str:
    if rhythm.silent_s is None:
        return phrase("cli.not_advanced_yet")
    said = [phrase("cli.silent", calendar_duration=format_calendar_duration(rhythm.silent_s))]
    if rhythm.usual_s is not None and rhythm.longest_s is not None:
        said.insert(
            0,
            phrase(
                "cli.usually_every_longest",
                calendar_duration=format_calendar_duration(rhythm.usual_s),
                calendar_duration2=format_calendar_duration(rhythm.longest_s),
            ),
        )
    limits = phrase(
        "cli.overdue_after_stalled_after_earliest",
        calendar_duration=format_calendar_duration(rhythm.suspect_s),
        calendar_duration2=format_calendar_duration(rhythm.convict_s),
    )
    text = f"{', '.join(said)}; {limits} ({rhythm.rests_on})"
    return f"{text}; {rhythm.note}" if rhythm.note else text


def _format_timeline(told: CellStory, status: Status) -> Iterator[str]:
    """A strip with one sign per part of the attempt's time, and the moments at which it changed."""
    yield _bold_section_title("Timeline")
    turns = told.timeline
    began, ended = turns[0].boot, turns[-1].boot if turns[-1].verdict in ("DONE", "DEAD") else status.boot
    if ended > began:
        places = (began + (ended - began) * part / (STRIP_WIDTH - 1) for part in range(STRIP_WIDTH))
        states = ([turn.verdict for turn in turns if turn.boot <= place + 1e-6][-1] for place in places)
        yield f"  {''.join(state_mark(state) for state in states)}  {format_calendar_duration(ended - began)}"
    yield from (f"  {_format_story_time(turn.at)}  {turn.text}" for turn in turns)


def _format_attempt(told: AttemptStory, *, last: bool) -> Iterator[str]:
    attempt = told.attempt
    said = [f"{state_mark(told.verdict)} attempt {attempt.n}: {told.verdict}"]
    if told.cause:
        said.append(f"{told.cause} ({told.confidence})")
    if told.started:
        said.append(f"started {_format_story_time(told.started)}")
    if told.ended:
        said.append(f"ended {_format_story_time(told.ended)}")
    if told.duration_s is not None:
        said.append(f"took {format_calendar_duration(told.duration_s)}")
    if told.signal is not None:
        said.append(phrase("cli.ended_signal", signal=told.signal))
    elif told.code is not None:
        said.append(phrase("cli.exit_code", code=told.code))
    yield "  " + ", ".join(said)
    yield f"      {told.reason}"
    reread = attempt.reread.reason if attempt.reread else None
    for label, text in (
        (phrase("cli.started_because"), attempt.retry_cause),
        (phrase("cli.resumed_did_not_begin_anew"), told.resumed),
        (phrase("cli.proof_read_again"), reread),
        ("accepted", None if reread else attempt.accepted),
        (phrase("cli.superseded_counts_no_more"), attempt.superseded),
        (phrase("cli.output_logs"), told.cleaned),
    ):
        if text:
            yield f"      {label}: {text}"
    if attempt.adopted:
        yield phrase("cli.adopted_something_else_ran")
    for label, path in (("output", told.output), ("log", told.log), ("errors", told.err)):
        if path and not (told.cleaned and label == "output" and not Path(path).exists()):
            yield f"      {label:<7}{path}"
    if last:
        yield from _format_death(told)


def _format_death(told: AttemptStory) -> Iterator[str]:
    """What the log shows of a death, and what to try."""
    for text in told.contributing:
        yield f"      also: {text}"
    if told.lines:
        yield phrase("cli.lines_log_show")
        yield from (f"        | {_last_screen_state(line)}" for line in told.lines)
    elif told.verdict == "DEAD" and (found := read_log_tail(told.err)):
        yield phrase("cli.last_lines_stderr_log")
        yield from (f"        | {_last_screen_state(line)}" for line in found)
    if told.advice:
        yield f"      try: {told.advice}"


def _format_decision(event: LoggedDecision) -> str:
    decision = event.decision
    attempt = phrase("cli.attempt", attempt=decision.attempt) if decision.attempt is not None else ""
    text = f"  {_format_story_time(decision.at)}  {decision.who}: {decision.kind}{attempt}"
    if decision.reason:
        text += f", {decision.reason}"
    pointed = decision.data.get("evidence") if decision.kind == "note" else None
    if pointed:
        text += f" [{pointed['file']}:{pointed['line']}: {pointed['text']}]"
    return text + (paint_text(f"  REFUSED: {event.void}", "yellow") if event.void else "")


def _format_story_time(iso: str) -> str:
    return iso[:19].replace("T", " ")


def _last_screen_state(line: str) -> str:
    """A progress bar's last state, and no codes that would play with the terminal."""
    return strip_terminal_sequences(line.rpartition("\r")[2])
