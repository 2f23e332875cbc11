"""muster init"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from muster.faces.cli.common.command_line import folder_of_context
from muster.files.atomic_write import PUBLIC_FILE, write_partial_file
from muster.model.errors import UsageError
from muster.spec.campaign_templates import agents_md, template_names, template_text

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
    files = {folder / "campaign.yaml": read_template(name), folder / "AGENTS.md": agents_md(name)}
    if folder.is_file():
        raise UsageError("this is a file, no folder", where=str(folder), hint="name a folder for the campaign")
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}", where=str(folder), hint="create it first")
    taken = [file for file in files if file.exists() or file.is_symlink()]
    if taken and not force:
        raise UsageError(
            f"{' and '.join(file.name for file in taken)} {'exists' if len(taken) == 1 else 'exist'} already; "
            "nothing was changed",
            where=", ".join(map(str, taken)),
            hint="`muster init --force` replaces what exists and keeps the old as *.before-init; or use -C DIR",
        )
    for file in taken:
        if file.is_dir():
            raise UsageError(f"{file.name} is a folder; nothing was changed", where=str(file), hint="move it away")
    for file, text in files.items():
        write_with_backup(file, text)
    print(f"wrote campaign.yaml (template {name}) and AGENTS.md in {folder}")
    print(
        "next: edit campaign.yaml; `muster check` shows every mistake, `muster plan` what would run; `muster up` runs"
    )
    return 0


def read_template(name: str) -> str:
    try:
        return template_text(name)
    except KeyError:
        import difflib

        near = difflib.get_close_matches(name, template_names(), 1)
        known = f"templates are {', '.join(template_names())}"
        hint = f"did you mean {near[0]}? {known}" if near else known
        raise UsageError(f"there is no template {name!r}; nothing was changed", hint=hint) from None


def write_with_backup(file: Path, text: str) -> None:
    """All of it or nothing; what was there before is kept beside it."""
    partial = write_partial_file(file, text, mode=PUBLIC_FILE)
    try:
        if file.is_symlink() or (file.exists() and file.read_bytes() != text.encode()):
            file.replace(file.with_name(f"{file.name}.before-init"))
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)
