"""muster unpack"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.terminal_output import print_json, resolve_parent, show_progress_bar
from muster.text.number_format import format_file_size
from muster.text.phrases import phrase

app = typer.Typer(add_completion=False)


@app.command("unpack", epilog="Example:  muster unpack sprint.tar.gz home/sprint && muster -C home/sprint verify")
def unpack_command(
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
    from muster.app.overview.pack_campaign import mark_unpacked_campaign, pack_contents_as_json
    from muster.app.overview.unpack_campaign import default_unpack_folder, interrupt_on_signals, unpack_campaign

    here = folder_of_context(ctx)
    source = resolve_parent(here / file)
    target = resolve_parent(here / folder if folder else default_unpack_folder(source, here))
    with interrupt_on_signals(), show_progress_bar(as_json_) as step:
        found = unpack_campaign(source, target, step, mark_unpacked_campaign)
    if as_json_:
        print_json({"folder": str(found.folder), **pack_contents_as_json(found.manifest)})
        return 0
    manifest = found.manifest
    print(
        phrase(
            "cli.campaign_unpacked",
            folder=found.folder,
            campaign=manifest.campaign,
            files=phrase("count.file", n=len(manifest.files)),
            size=format_file_size(manifest.size),
        )
    )
    print(f"  {phrase('cli.log_of_pack', time=manifest.log.at, version=manifest.version)}")
    if manifest.left_out:
        print(f"  {phrase('cli.checkpoints_not_in_pack', n=len(manifest.left_out))}")
    return 0
