"""muster init"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from muster.cli.app import open_folder
from muster.domain.errors import UsageError
from muster.ports.write_files import PUBLIC_FILE, write_partial
from muster.spec.templates import agents_md, names, template

app = typer.Typer(add_completion=False)


@app.command("init", epilog="Example:  muster init safedreamer   then   muster check")
def init(
    ctx: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="[TEMPLATE]", help=f"One of {', '.join(names())}.", show_default=True)
    ] = "sprint",
    force: Annotated[
        bool, typer.Option("--force", help="Replace files that exist; the old ones are kept as *.before-init.")
    ] = False,
) -> int:
    """Writes a campaign.yaml to start from, and an AGENTS.md that tells AI assistants how to ask and what not to do."""
    folder = open_folder(ctx).absolute()
    files = {folder / "campaign.yaml": text_of(name), folder / "AGENTS.md": agents_md(name)}
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
        write(file, text)
    print(f"wrote campaign.yaml (template {name}) and AGENTS.md in {folder}")
    print(
        "next: edit campaign.yaml; `muster check` shows every mistake, `muster plan` what would run; `muster up` runs"
    )
    return 0


def text_of(name: str) -> str:
    try:
        return template(name)
    except KeyError:
        import difflib

        near = difflib.get_close_matches(name, names(), 1)
        known = f"templates are {', '.join(names())}"
        hint = f"did you mean {near[0]}? {known}" if near else known
        raise UsageError(f"there is no template {name!r}; nothing was changed", hint=hint) from None


def write(file: Path, text: str) -> None:
    """All of it or nothing; what was there before is kept beside it."""
    partial = write_partial(file, text, mode=PUBLIC_FILE)
    try:
        if file.is_symlink() or (file.exists() and file.read_bytes() != text.encode()):
            file.replace(file.with_name(f"{file.name}.before-init"))
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)
