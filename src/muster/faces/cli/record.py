"""muster record"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.stamp_files import write_stamped_text
from muster.app.campaign.start_controller import observe_and_revive
from muster.app.facts.stamp_basis import observe_declared_campaign
from muster.app.record.gather_record import gather_record_facts, record_as_json
from muster.app.record.record_markdown import record_markdown
from muster.app.record.write_record import gather_record_sources, record_destination
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.terminal_output import print_json, print_notice
from muster.text.phrases import join_phrases, phrase

app = typer.Typer(add_completion=False)


@app.command("record", epilog="Example:  muster record --out Record.md")
def record_command(
    ctx: typer.Context,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Where to write it, default reports/record.md; - prints it.", show_default=False
        ),
    ] = None,
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Writes the record: scope, changes, observations in order, status, what is missing and why, a fix, the evidence.

    All of it from the event table, the notes and the attempt folders, in the campaign's language. Nothing is started.
    """
    desk = CampaignHandle.open(folder_of_context(ctx))
    file = None if out == "-" else record_destination(desk, folder_of_context(ctx), out)
    if file is not None:
        desk.refuse_stranger()
    status = observe_and_revive(desk, print_notice, observe_declared_campaign)
    events, sources = gather_record_sources(desk, status)
    facts = gather_record_facts(status, events, sources)
    text = record_markdown(facts)
    if file is not None:
        write_stamped_text(desk, status, "record", "muster record", file, text)
    if as_json_:
        print_json(record_as_json(facts, text, str(file) if file else None))
    elif file is None:
        sys.stdout.write(text)
    else:
        cells = phrase("count.cell", n=facts.declared)
        wrote = [phrase("cli.record_written", path=file, done=facts.done, cells=cells)]
        wrote += [phrase("cli.cells_not_done", n=facts.missing)] if facts.missing else []
        print(join_phrases("; ", wrote))
    return 0
