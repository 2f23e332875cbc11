"""muster edit"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from muster.app.loop.edit_variant import MadeVariant, made_variant_as_json, write_variant_now
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.terminal_output import format_table, paint_text, print_json
from muster.rules.edit_config import show_config_value
from muster.text.phrases import phrase
from muster.text.terminal_text import escape_terminal_line

if TYPE_CHECKING:
    from muster.app.loop.run_variant import ReadyCampaign

app = typer.Typer(add_completion=False)


@app.command(
    "edit",
    epilog="Example:  muster edit configs/base.json --change 'ot.window@mul=1.5@max=10' --reason 'mass too small'",
)
def edit_command(
    ctx: typer.Context,
    base: Annotated[
        str, typer.Argument(metavar="BASE", help="A config: .json, .yaml, .yml or .toml.", show_default=False)
    ],
    change: Annotated[
        list[str],
        typer.Option("--change", metavar="EDIT", help="PATH@set=V, @mul=F or @add=F; repeated: one after the other."),
    ],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why it is tried, for the lineage.")],
    out: Annotated[
        str | None, typer.Option("--out", metavar="FILE", help="Where it goes, instead of beside the base.")
    ] = None,
    run: Annotated[
        bool, typer.Option("--run", help="Run it, too: as one more variant of the campaign's loop.")
    ] = False,
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Writes one variant of a config, with its reason and parent recorded. The base is only read.

    Needs no campaign, unless --run is given. Exit code with --run: 0 it is done, or waits for its turn in a campaign
    that is running; 3 it stopped short, 4 detached while it runs.
    """
    folder = folder_of_context(ctx)
    where = _prepare_run(folder) if run else None
    made = write_variant_now(
        folder / base, change, reason, folder / out if out else None, tried=where.tried if where else None
    )
    if not as_json_:
        for line in made_variant_lines(made):
            print(line)
    if where:
        return _run_made_variant(where, made, as_json_)
    if as_json_:
        print_json(made_variant_as_json(made))
    return 0


def _prepare_run(folder: Path) -> ReadyCampaign:
    from muster.app.loop.run_variant import prepare_variant_run

    return prepare_variant_run(folder)


def _run_made_variant(where: ReadyCampaign, made: MadeVariant, as_json_: bool) -> int:
    from muster.app.campaign.campaign_status import cell_status_as_json
    from muster.app.campaign.observe_campaign import observe_campaign
    from muster.app.campaign.start_controller import ensure_controller_started
    from muster.app.loop.run_variant import run_edited_variant
    from muster.faces.cli.up import attach_until_end

    joined = run_edited_variant(where, made)
    if joined.warnings:
        from muster.faces.cli.common.terminal_output import print_mistakes

        print_mistakes(str(joined.desk.file), joined.warnings)
    if joined.going_on:
        ensure_controller_started(joined.desk)
        status = observe_campaign(joined.desk)
    else:
        status = attach_until_end(joined.desk, quiet=as_json_)
    cells = [cell for cell in status.cells if joined.has(cell.record.cell)]
    if as_json_:
        print_json(made_variant_as_json(made) | {"cells": [cell_status_as_json(cell, status) for cell in cells]})
    elif joined.going_on:
        print(phrase("cli.more_cells_campaign_goes_on", n=len(cells)))
    return joined.exit_code(status)


def made_variant_lines(made: MadeVariant) -> Iterator[str]:
    origin = phrase("cli.variant_from", parent=made.parent.name, reason=escape_terminal_line(made.reason))
    yield f"{paint_text(str(made.path), 'bold')}   {origin}"
    rows = [(phrase("cli.head_path"), phrase("cli.head_before"), phrase("cli.head_after"), "")]
    rows += [
        (
            escape_terminal_line(each.path),
            escape_terminal_line(show_config_value(each.old)),
            escape_terminal_line(show_config_value(each.new)),
            each.note,
        )
        for each in made.changes
    ]
    yield from format_table(rows)
    yield phrase("cli.recorded_in", path=made.record)
