"""muster init"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.app.campaign.verbs.write_template import write_campaign_template
from muster.faces.cli.common.command_line import folder_of_context
from muster.spec.campaign_templates import template_names
from muster.text.phrases import phrase

app = typer.Typer(add_completion=False)


@app.command("init", epilog="Example:  muster init safedreamer   then   muster check")
def init_command(
    ctx: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="[TEMPLATE]", help=f"One of {', '.join(template_names())}.", show_default=True)
    ] = "sprint",
    force: Annotated[
        bool, typer.Option("--force", help="Replace files that exist; the old ones are kept as *.before-init.")
    ] = False,
) -> int:
    """Writes a campaign.yaml to start from, and an AGENTS.md that tells AI assistants how to ask and what not to do."""
    folder = folder_of_context(ctx).absolute()
    write_campaign_template(folder, name, replace=force)
    print(phrase("cli.wrote_template", template=name, folder=folder))
    print(phrase("cli.next_after_init"))
    return 0
