"""muster schema"""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from muster.spec import json_schema

app = typer.Typer(add_completion=False)


@app.command(epilog="Example:  muster schema > campaign.schema.json")
def schema(
    _as_json: Annotated[bool, typer.Option("--json", help="The schema is JSON in any case.")] = False,
) -> int:
    """JSON schema of the campaign file, for editors that complete and check while you type."""
    sys.stdout.write(json.dumps(json_schema(), ensure_ascii=False, indent=2) + "\n")
    return 0
