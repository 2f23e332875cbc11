"""muster unpack"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from muster.cli.app import open_folder
from muster.cli.manifest import size
from muster.cli.report import progress
from muster.cli.words import counted, placed, say_json

app = typer.Typer(add_completion=False)


@app.command("unpack", epilog="Example:  muster unpack sprint.tar.gz home/sprint && muster -C home/sprint verify")
def unpack(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A pack.", show_default=False)],
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="[DIR]", help="A new folder; default: named as the pack.", show_default=False),
    ] = None,
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Makes a campaign of a pack. Every file is held against the manifest before anything can be seen.

    Nothing of it is run. What was cut or changed is refused, and nothing is left behind.
    """
    from muster.acts import unpack as acts
    from muster.wiring.packing import contents_json, mark_known

    here = open_folder(ctx)
    source = placed(here / file)
    target = placed(here / folder if folder else acts.folder_for(source, here))
    with acts.ended_by_signals(), progress(as_json_) as step:
        found = acts.unpack(source, target, step, mark_known)
    if as_json_:
        say_json({"folder": str(found.folder), **contents_json(found.manifest)})
        return 0
    manifest = found.manifest
    count = counted(len(manifest.files), "file")
    print(f"{found.folder}: campaign {manifest.campaign}, {count}, {size(manifest.size)}, each as the manifest says")
    print(f"  its log is that of {manifest.log.at}; packed by Muster {manifest.version}")
    if manifest.left_out:
        print(
            f"  not in this pack: {counted(len(manifest.left_out), 'checkpoint')}; the recorded hash vouches for each"
        )
    return 0
