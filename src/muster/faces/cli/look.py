"""muster look"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from muster.app.look.judge_run import inspect_runs
from muster.app.look.look_report import LookReport, logged_step, look_report_as_json, verdict_meaning
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.status_view import confidence_in_words, state_mark
from muster.faces.cli.common.terminal_output import (
    clear_line,
    format_evidence_table,
    pad_label,
    paint_text,
    print_json,
    section_title,
)
from muster.faces.cli.why import format_cadence
from muster.model.errors import UsageError
from muster.model.foreign_run import RunQuery
from muster.text.hide_secrets import hide_secrets_in_words
from muster.text.phrases import join_phrases, phrase
from muster.text.sentences import format_calendar_duration, parse_duration
from muster.text.terminal_text import escape_terminal_line

app = typer.Typer(add_completion=False)
SHORTEST_S = 1.0
LONGEST_PID = 10  # digits
LONGEST_COMMAND = 160


@app.command("look", epilog="Example:  muster look 610925   or   muster look runs/20260223_v2_full_3 --for 30s")
def look_command(
    ctx: typer.Context,
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="PID|DIR...",
            help="A process, the folder that a run writes to, or both side by side: then they are one run.",
            show_default=False,
        ),
    ],
    for_: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="How long to look; a first look proves nothing.")
    ] = "6s",
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """The verdict and the evidence for a training that Muster did not start. Only looks; needs no campaign."""
    for_s = parse_duration(for_, "--for")
    if for_s < SHORTEST_S:
        raise UsageError(phrase("cli.look_too_short", duration=for_), hint=phrase("cli.give_at_least_1s"))
    asked = parse_look_targets(targets, folder_of_context(ctx))
    counting = None if as_json_ or not sys.stderr.isatty() else _print_countdown
    looks = inspect_runs(asked, for_s, *((counting,) if counting else ()))
    if counting:
        sys.stderr.write(clear_line())
    if as_json_:
        objects = [_without_surrogates(look_report_as_json(each)) for each in looks]
        print_json(objects if len(objects) > 1 else objects[0])
    else:
        _print_look_reports(looks)
    codes = {each.exit for each in looks}
    return 4 if 4 in codes else max(codes)


def _print_countdown(left: float) -> None:
    sys.stderr.write(clear_line() + phrase("cli.looking", seconds=left))
    sys.stderr.flush()


# -- what was asked for


def parse_look_targets(targets: Sequence[str], base: Path) -> list[RunQuery]:
    """A process and a folder side by side are one run."""
    found: list[RunQuery] = []
    rest = [_parse_look_target(text, base) for text in targets]
    while rest:
        first = rest.pop(0)
        if rest and (first.pid is None) != (rest[0].pid is None):
            second = rest.pop(0)
            pid, folder = first.pid if first.pid is not None else second.pid, first.folder or second.folder
            first = RunQuery(f"{first.text} {second.text}", pid, folder)
        found.append(first)
    return found


def _parse_look_target(text: str, base: Path) -> RunQuery:
    if not text.strip():
        raise UsageError(phrase("cli.look_target_empty"), hint=phrase("cli.give_process_id_or_folder"))
    if text.isascii() and text.isdecimal():
        if int(text) == 0 or len(text) > LONGEST_PID:
            raise UsageError(phrase("cli.not_a_process_id", text=text), hint=phrase("cli.folder_named_so", text=text))
        return RunQuery(text, pid=int(text))
    path = base / text
    if not path.exists():
        raise UsageError(phrase("cli.no_such_folder_or_process", text=text), hint=_suggest_folder(path))
    if path.is_file():
        path = path.parent
    if path.resolve() == Path("/"):
        raise UsageError(phrase("cli.root_folder_is_everything"), hint=phrase("cli.give_folder_of_one_run"))
    if not path.is_dir():
        raise UsageError(phrase("cli.neither_folder_nor_file", text=text), hint=phrase("cli.give_output_folder"))
    return RunQuery(text, folder=str(path))


def _suggest_folder(path: Path) -> str:
    try:
        names = [each.name for each in path.parent.iterdir() if each.is_dir()]
    except OSError:
        names = []
    near = difflib.get_close_matches(path.name, names, 1)
    return (
        phrase("cli.did_you_mean_folder", folder=path.parent / near[0])
        if near
        else phrase("cli.give_process_id_or_output_folder")
    )


# -- what is shown


def _print_look_reports(looks: Sequence[LookReport]) -> None:
    for number, each in enumerate(looks):
        if number:
            print()
        for line in look_report_lines(each):
            print(line)


def look_report_lines(look: LookReport) -> Iterator[str]:
    verdict, sight = look.verdict, look.sight
    kind = f"({verdict.kind})" if verdict.kind else f"({verdict.cause})" if verdict.cause else ""
    name = paint_text(escape_terminal_line(sight.asked.text), "bold")
    state, reason = f"{verdict.state}{kind}", escape_terminal_line(verdict.reason)
    if verdict.confidence == "unknown":
        stands = phrase("cli.is_in_unsure_state", state=state, reason=reason)
    else:
        sure = confidence_in_words(verdict.confidence)
        stands = phrase("cli.is_in_state", state=state, confidence=sure, reason=reason)
    yield f"{state_mark(verdict.state)} {name} {stands}"
    yield f"  {verdict_meaning(look)}"
    yield from _run_fact_lines(look)
    yield section_title("cli.title_what_to_do")
    yield from (f"  {escape_terminal_line(text)}" for text in look.advice)
    yield section_title("cli.title_evidence")
    yield from _evidence_table_lines(look)
    if known := [rhythm for rhythm in verdict.rhythms if rhythm.silent_s is not None]:
        yield section_title("cli.title_cadence")
        yield from (escape_terminal_line(f"  {rhythm.signal}: {format_cadence(rhythm)}") for rhythm in known)
    if verdict.lines:
        yield section_title("cli.title_log_lines")
        yield from (f"  | {escape_terminal_line(line)}" for line in verdict.lines)
    for text in verdict.contributing:
        yield f"  {phrase('cli.also', text=escape_terminal_line(text))}"


def _run_fact_lines(look: LookReport) -> Iterator[str]:
    sight, who = look.sight, look.sight.who
    rows: list[tuple[str, str]] = []
    if who is not None and look.pid is not None:
        began = look.since[:19].replace("T", " ") if look.since else ""
        rows.append(
            (
                phrase("cli.label_pid"),
                phrase(
                    "cli.process_since",
                    pid=str(who.pid),
                    began=began,
                    duration=format_calendar_duration(sight.boot - who.began),
                    command=_masked_command_line(who.argv),
                ),
            )
        )
    if sight.found.folder:
        rows.append((phrase("cli.label_output"), sight.found.folder))
    if look.step is not None:
        target = sight.target
        said = [f"{look.step:g}"]
        if target:
            goal = phrase("cli.step_of_target", step=said[0], target=f"{target.step:g}", where=target.where)
            said = [goal]
        logged = logged_step(sight)
        if target and target.repeat and logged is not None:
            said.append(phrase("cli.step_as_logged", step=logged, where=target.repeat.where, times=target.repeat.times))
        rows.append((phrase("cli.label_step"), join_phrases("; ", said)))
    rows += [(phrase("cli.label_noted"), text) for text in look.notes]
    yield from (f"  {pad_label(label, 7)}{escape_terminal_line(text)}" for label, text in rows)


def _masked_command_line(argv: Sequence[str]) -> str:
    text = " ".join(" ".join(hide_secrets_in_words(argv)).split())
    return text if len(text) <= LONGEST_COMMAND else text[: LONGEST_COMMAND - 3] + "..."


def _evidence_table_lines(look: LookReport) -> Iterator[str]:
    boot = look.sight.boot
    yield from format_evidence_table(
        (
            escape_terminal_line(item.signal),
            item.kind,
            escape_terminal_line(item.reading),
            format_calendar_duration(max(0.0, boot - item.boot)) if item.boot is not None else "",
            item.says,
        )
        for item in look.verdict.evidence
    )


# -- names of files and commands are whatever somebody made them


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {key: _without_surrogates(each) for key, each in value.items()}
    return [_without_surrogates(each) for each in value] if isinstance(value, list) else value
