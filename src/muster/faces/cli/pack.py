"""muster pack"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.terminal_output import command_from_here, print_json, resolve_parent, show_progress_bar
from muster.text.number_format import format_file_size
from muster.text.phrases import phrase
from muster.text.sentences import join_few_names

app = typer.Typer(add_completion=False)
MOST_NAMED = 5


@app.command("pack", epilog="Example:  muster pack sprint.tar.gz --with checkpoints")
def pack_command(
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
    from muster.app.overview.pack_campaign import pack_campaign, pack_result_as_json, parse_pack_extras
    from muster.app.overview.unpack_campaign import interrupt_on_signals

    wanted = parse_pack_extras(extras or [])
    desk = CampaignHandle.open(folder_of_context(ctx))
    desk.refuse_stranger()
    target = resolve_parent(folder_of_context(ctx) / file)
    with interrupt_on_signals(), show_progress_bar(as_json_) as step:
        found = pack_campaign(desk, target, wanted, step, force=force)
    if as_json_:
        print_json(pack_result_as_json(found))
        return 0
    manifest = found.manifest
    print(
        phrase(
            "cli.packed",
            pack=found.file,
            files=phrase("count.file", n=len(manifest.files)),
            size=format_file_size(manifest.size),
            packed_size=format_file_size(found.size),
        )
    )
    if manifest.outside:
        files = phrase("count.file", n=manifest.outside)
        print(f"  {phrase('cli.packed_from_outside', files=files)}")
    if found.checkpoints:
        print(f"  {phrase('cli.packed_with_checkpoints', n=found.checkpoints)}")
    if manifest.left_out:
        names = join_few_names(manifest.left_out, MOST_NAMED)
        print(f"  {phrase('cli.packed_without_checkpoints', n=len(manifest.left_out), cells=names)}")
    print(phrase("cli.unpacked_by", command=command_from_here(Path(), "unpack", found.file)))
    return 0
