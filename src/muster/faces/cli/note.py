"""muster note"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.verbs.choose_cells import require_reason
from muster.app.campaign.verbs.write_note import read_evidence_line, write_note
from muster.faces.cli.common.command_line import folder_of_context
from muster.text.phrases import join_phrases, phrase

app = typer.Typer(add_completion=False)


@app.command(
    "note", epilog="Example:  muster note 'the loss is NaN from here on' --cell train/v2_full/2 --evidence run.log:412"
)
def note_command(
    ctx: typer.Context,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What was found.", show_default=False)],
    cell: Annotated[str | None, typer.Option(metavar="CELL", help="The cell it is about.", show_default=False)] = None,
    evidence: Annotated[
        str | None,
        typer.Option(metavar="FILE:LINE", help="Where it can be seen; the line is kept.", show_default=False),
    ] = None,
) -> int:
    """Writes a finding down, with its evidence. It goes into the record."""
    said = require_reason(text, phrase("cli.the_note"))
    folder = folder_of_context(ctx)
    pointed = read_evidence_line(evidence, folder) if evidence is not None else None
    cells = write_note(CampaignHandle.open_to_act(folder), said, cell, pointed)
    noted = [phrase("cli.noted_about", cells=", ".join(cells)) if cells else phrase("cli.noted")]
    noted += [phrase("cli.with_line", line=pointed["line"], file=pointed["file"])] if pointed else []
    print(join_phrases(", ", noted))
    return 0
