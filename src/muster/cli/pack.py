"""muster pack"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from muster.cli.app import open_folder
from muster.cli.manifest import size
from muster.cli.report import progress
from muster.cli.words import counted, few, from_here, placed, say_json
from muster.wiring.desk import Desk

app = typer.Typer(add_completion=False)
NAMED = 5


@app.command("pack", epilog="Example:  muster pack sprint.tar.gz --with checkpoints")
def pack(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="NAME.tar.gz or NAME.tar.zst.", show_default=False)],
    extras: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="WHAT",
            help="checkpoints: those that reports rest on; secrets: pack although "
            "campaign.yaml holds what looks like one.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Takes home what is needed to report, verify and trace elsewhere: results, logs, records, reports; no environment.

    Refused while runs run. `muster unpack` makes a campaign of it again.
    """
    from muster.acts.unpack import ended_by_signals
    from muster.wiring import packing

    wanted = packing.known_extras(extras or [])
    desk = Desk.open(open_folder(ctx))
    desk.refuse_stranger()
    target = placed(open_folder(ctx) / file)
    with ended_by_signals(), progress(as_json_) as step:
        found = packing.pack(desk, target, wanted, step, force=force)
    if as_json_:
        say_json(packing.packed_json(found))
        return 0
    manifest = found.manifest
    print(f"{found.file}: {counted(len(manifest.files), 'file')}, {size(manifest.size)}, packed to {size(found.size)}")
    if manifest.outside:
        print(f"  {counted(manifest.outside, 'file')} from outside of the campaign's folder, in .muster/outside/ there")
    if found.checkpoints:
        print(f"  with {counted(found.checkpoints, 'checkpoint')}")
    if manifest.left_out:
        names = few(manifest.left_out, NAMED)
        print(f"  without {counted(len(manifest.left_out), 'checkpoint')}, whose recorded hashes vouch: {names}")
    print(f"unpacked by `{from_here(Path(), 'unpack', found.file)}`")
    return 0
