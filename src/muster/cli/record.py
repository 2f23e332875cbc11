"""muster record"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from muster.acts.record import as_json, record_facts
from muster.cli.app import open_folder
from muster.cli.cells import looked
from muster.cli.words import counted, say_json
from muster.report.record import record_markdown
from muster.wiring.declared import declared_now
from muster.wiring.desk import Desk
from muster.wiring.recording import gather, place, write_stamped

app = typer.Typer(add_completion=False)


@app.command("record", epilog="Example:  muster record --out Record.md")
def record(
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
    desk = Desk.open(open_folder(ctx))
    file = None if out == "-" else place(desk, open_folder(ctx), out)
    if file is not None:
        desk.refuse_stranger()
    status = looked(desk, declared_now)
    events, sources = gather(desk, status)
    facts = record_facts(status, events, sources)
    text = record_markdown(facts)
    if file is not None:
        write_stamped(desk, status, "record", "muster record", file, text)
    if as_json_:
        say_json(as_json(facts, text, str(file) if file else None))
    elif file is None:
        sys.stdout.write(text)
    else:
        left = f"; {counted(facts.missing)} not done, each with its reason" if facts.missing else ""
        print(f"wrote {file}: {facts.done} of {counted(facts.declared)} DONE{left}")
    return 0
