"""muster why"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from muster.acts.status import Status, now_for
from muster.acts.why import AttemptStory, Story, as_json, forgotten, meaning, story, tail
from muster.cli.app import open_folder
from muster.cli.cells import declared, is_glob, looked, resolve, withdrawn
from muster.cli.durations import span
from muster.cli.grid import mark
from muster.cli.paint import paint
from muster.cli.words import padded, say_json, width
from muster.domain.attempt import CellRecord
from muster.domain.terminal_text import without_sequences
from muster.domain.verdict import Evidence, Rhythm
from muster.execute.paths import attempt_folder
from muster.ports.store import Event
from muster.wiring.desk import Desk
from muster.wiring.hand_started import with_unknown_runs
from muster.wiring.mended import as_the_file_says

app = typer.Typer(add_completion=False)
STRIP = 48


@app.command("why", epilog="Example:  muster why train/v2_full/2")
def why(
    ctx: typer.Context,
    cell: Annotated[str, typer.Argument(metavar="CELL", help="A cell, or a glob: 'train/*/2'.", show_default=False)],
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Why a cell has its verdict: the evidence, all attempts with their causes, what happens next."""
    desk = Desk.open(open_folder(ctx))
    found = with_unknown_runs(desk.root, as_the_file_says(desk, looked(desk)))
    names, former = declared(found.state), withdrawn(found.state)
    folder_of = partial(attempt_folder, desk.state)
    chosen = set(resolve([cell], names, former))
    stories = [
        story(found, each, desk.store.events(each.record.cell.id), folder_of, _held)
        for each in (*found.cells, *found.withdrawn, *forgotten(found))
        if each.record.cell.id in chosen
    ]
    if as_json_:
        objects = [as_json(told, found) for told in stories]
        shown = objects if is_glob(cell, [*names, *former]) and len(objects) > 1 else objects[0]
        say_json(shown)
        return 0
    for number, told in enumerate(stories):
        if number:
            print()
        for line in lines(told, found):
            print(line)
    return 0


def _held(checkpoint: str) -> str:
    from muster.observe.checkpoint_steps import step_of  # only attempts that were resumed need it

    return str(step_of(checkpoint) or "")


def lines(told: Story, status: Status) -> Iterator[str]:
    cell, verdict = told.cell, told.cell.verdict
    kind = f"({verdict.kind})" if verdict.kind else ""
    name = paint(cell.record.cell.id, "bold")
    yield f"{mark(verdict.state)} {name} is {verdict.state}{kind}, {verdict.confidence}: {verdict.reason}"
    yield f"  {meaning(verdict)}" + (f" Its cause: {verdict.cause}." if verdict.cause else "")
    yield from _naming(cell.record)
    if cell.since:
        open_ = cell.record.open is not None
        yield f"  {'began' if open_ else 'since'}  {_moment(cell.since)}"
    yield f"  next   {cell.next}"
    if variant := told.variant:
        made = f"from {variant.parent}: {variant.reason} ({', '.join(variant.edits)})" if variant.edits else "a base"
        yield f"  config {variant.config}, round {variant.round}, {made}"
    if verdict.turns is not None:
        left = span(max(0.0, verdict.turns - status.boot))
        yield f"  else   {verdict.into}, if nothing advances for {left} more"
    if verdict.evidence:
        yield from _evidence(verdict.evidence, now_for(cell.record.completed or cell.record.last, status))
    if verdict.rhythms:
        yield _title("Cadence")
        yield from (f"  {rhythm.signal}: {cadence(rhythm)}" for rhythm in verdict.rhythms)
    if len(told.timeline) > 1 and not verdict.final:
        yield from _timeline(told, status)
    if told.needs:
        yield _title("Needs")
        yield from (f"  {mark(state)} {need}  {state}" for need, state in told.needs)
    if told.gates:
        yield from _gates(told)
    if told.attempts:
        yield _title("Attempts")
        for each in told.attempts:
            yield from _attempt(each, last=each is told.attempts[-1])
    if told.decisions:
        yield _title("Decisions")
        yield from (_decision(event) for event in told.decisions)


def _naming(record: CellRecord) -> Iterator[str]:
    if not record.declared:
        yield "  It is no longer declared in the campaign; its attempts are kept."
    if record.formerly:
        yield f"  formerly {', '.join(record.formerly)}: it was renamed, and its attempts are kept"


def _title(text: str) -> str:
    return "\n" + paint(text, "bold")


def _gates(told: Story) -> Iterator[str]:
    yield _title("Gates")
    for gate, row in told.gates.items():
        where = f"at iteration {row['iteration']}{f' ({stage})' if (stage := row['stage']) else ''}"
        yield f"  {gate}: {row['state']} in phase {row['phase']} {where}: {row['why']}"
        yield from (f"    missing: {each}" for each in row["missing"] or ())


def _evidence(evidence: Sequence[Evidence], boot: float) -> Iterator[str]:
    yield _title("Evidence")
    rows = [("signal", "class", "reading", "age", "says")]
    for item in evidence:
        age = span(boot - item.boot) if item.boot is not None and boot >= item.boot else ""
        rows.append((item.signal, item.kind, item.reading, age, item.says))
    widths = [max(width(row[column]) for row in rows) for column in range(5)]
    for number, row in enumerate(rows):
        line = "  ".join(padded(text, most) for text, most in zip(row, widths, strict=True)).rstrip()
        yield "  " + (paint(line, "dim") if number == 0 else line)


def cadence(rhythm: Rhythm) -> str:
    if rhythm.silent_s is None:
        return "has not advanced yet"
    said = [f"silent for {span(rhythm.silent_s)}"]
    if rhythm.usual_s is not None and rhythm.longest_s is not None:
        said.insert(0, f"usually every {span(rhythm.usual_s)}, longest {span(rhythm.longest_s)}")
    limits = f"overdue after {span(rhythm.suspect_s)}, stalled after {span(rhythm.convict_s)} at the earliest"
    text = f"{', '.join(said)}; {limits} ({rhythm.rests_on})"
    return f"{text}; {rhythm.note}" if rhythm.note else text


def _timeline(told: Story, status: Status) -> Iterator[str]:
    """A strip with one sign per part of the attempt's time, and the moments at which it changed."""
    yield _title("Timeline")
    turns = told.timeline
    began, ended = turns[0].boot, turns[-1].boot if turns[-1].verdict in ("DONE", "DEAD") else status.boot
    if ended > began:
        places = (began + (ended - began) * part / (STRIP - 1) for part in range(STRIP))
        states = ([turn.verdict for turn in turns if turn.boot <= place + 1e-6][-1] for place in places)
        yield f"  {''.join(mark(state) for state in states)}  {span(ended - began)}"
    yield from (f"  {_moment(turn.at)}  {turn.text}" for turn in turns)


def _attempt(told: AttemptStory, *, last: bool) -> Iterator[str]:
    attempt = told.attempt
    said = [f"{mark(told.verdict)} attempt {attempt.n}: {told.verdict}"]
    if told.cause:
        said.append(f"{told.cause} ({told.confidence})")
    if told.started:
        said.append(f"started {_moment(told.started)}")
    if told.ended:
        said.append(f"ended {_moment(told.ended)}")
    if told.duration_s is not None:
        said.append(f"took {span(told.duration_s)}")
    if told.signal is not None:
        said.append(f"ended by signal {told.signal}")
    elif told.code is not None:
        said.append(f"exit code {told.code}")
    yield "  " + ", ".join(said)
    yield f"      {told.reason}"
    reread = attempt.reread.reason if attempt.reread else None
    for label, text in (
        ("started because", attempt.retry_cause),
        ("resumed, it did not begin anew", told.resumed),
        ("its proof was read again", reread),
        ("accepted", None if reread else attempt.accepted),
        ("superseded, it counts no more", attempt.superseded),
        ("its output and logs", told.cleaned),
    ):
        if text:
            yield f"      {label}: {text}"
    if attempt.adopted:
        yield "      adopted: something else ran it"
    for label, path in (("output", told.output), ("log", told.log), ("errors", told.err)):
        if path and not (told.cleaned and label == "output" and not Path(path).exists()):
            yield f"      {label:<7}{path}"
    if last:
        yield from _explained(told)


def _explained(told: AttemptStory) -> Iterator[str]:
    """What the log shows of a death, and what to try."""
    for text in told.contributing:
        yield f"      also: {text}"
    if told.lines:
        yield "      the lines of its log that show it:"
        yield from (f"        | {_plain(line)}" for line in told.lines)
    elif told.verdict == "DEAD" and (found := tail(told.err)):
        yield "      the last lines of stderr.log:"
        yield from (f"        | {_plain(line)}" for line in found)
    if told.advice:
        yield f"      try: {told.advice}"


def _decision(event: Event) -> str:
    decision = event.decision
    attempt = f" of attempt {decision.attempt}" if decision.attempt is not None else ""
    text = f"  {_moment(decision.at)}  {decision.who}: {decision.kind}{attempt}"
    if decision.reason:
        text += f", {decision.reason}"
    pointed = decision.data.get("evidence") if decision.kind == "note" else None
    if pointed:
        text += f" [{pointed['file']}:{pointed['line']}: {pointed['text']}]"
    return text + (paint(f"  REFUSED: {event.void}", "yellow") if event.void else "")


def _moment(iso: str) -> str:
    return iso[:19].replace("T", " ")


def _plain(line: str) -> str:
    """A progress bar's last state, and no codes that would play with the terminal."""
    return without_sequences(line.rpartition("\r")[2])
