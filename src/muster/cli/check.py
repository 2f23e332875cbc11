"""muster check"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from muster.acts.check import Check, as_json
from muster.cli.app import open_folder
from muster.cli.mistakes import show
from muster.cli.paint import paint
from muster.cli.words import say_json
from muster.wiring.checking import check as check_campaign
from muster.wiring.desk import find_root

app = typer.Typer(add_completion=False)


@app.command(epilog="Example:  muster check --json | jq .mistakes")
def check(
    ctx: typer.Context,
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Shows every mistake in campaign.yaml with line and column, then what this machine offers. Starts nothing.

    Exit code: 0 valid (warnings or not), 2 there are mistakes.
    """
    found = check_campaign(find_root(open_folder(ctx)))
    if as_json_:
        say_json(as_json(found))
    else:
        tell(found)
    return 0 if found.valid else 2


def tell(found: Check) -> None:
    show(found.file, [*found.mistakes, *found.warnings])
    if not found.valid:
        return
    warned = f", {len(found.warnings)} warning{'s' if len(found.warnings) != 1 else ''}" if found.warnings else ""
    print(paint(f"{found.file} is valid{warned}", "green"))
    if found.preflight:
        for line in machine_lines(found.preflight):
            print(line)
    if found.saved:
        print(f"saved in {found.saved}")


def machine_lines(record: Mapping[str, Any]) -> list[str]:
    gpus = [
        f"{gpu['index']} {gpu['name']}" + (f" (busy: {gpu['why']})" if gpu["busy"] else "") for gpu in record["gpus"]
    ]
    lines = [f"  GPUs    {', '.join(gpus) or 'none found'}"]
    if record["driver"]:
        lines.append(f"  driver  {record['driver']}")
    if record["disk"]:
        lines.append(f"  disk    {record['disk']['free_bytes'] / 2**30:.1f} GiB free at {record['disk']['path']}")
    lines.append(f"  python  {record['python']} (Muster's own), {record['platform']}, {record['cpus']} CPUs")
    for folder, code in record["code"].items():
        lines.append(f"  code    {folder}: {_code(code)}")
    return lines


def _code(code: Mapping[str, Any]) -> str:
    if not code:
        return "not a git repository: which code ran can't be told later"
    changed = f", with changes that are not committed (diff {code['dirty']})" if code["dirty"] else ", clean"
    return f"commit {code['commit'][:12]}{changed}"
