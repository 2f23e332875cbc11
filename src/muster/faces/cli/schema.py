"""muster schema"""

from __future__ import annotations

from typing import Annotated

import typer

from muster.faces.cli.common.terminal_output import print_json
from muster.spec import json_schema

app = typer.Typer(add_completion=False)


@app.command("schema", epilog="Example:  muster schema > campaign.schema.json")
def schema_command(
    _as_json: Annotated[bool, typer.Option("--json", help="The schema is JSON in any case.")] = False,
) -> int:
    """JSON schema of the campaign file, for editors that complete and check while you type."""
    print_json(json_schema(), indent=2)
    return 0
