"""A campaign.yaml to start from, and an AGENTS.md for AI assistants: `muster init`."""

from __future__ import annotations

import functools
from pathlib import Path

from muster.files.atomic_write import PUBLIC_FILE, write_partial_file
from muster.model.errors import UsageError
from muster.spec.campaign_templates import agents_md, template_names, template_text
from muster.text.phrases import phrase


def write_campaign_template(folder: Path, name: str, *, replace: bool) -> None:
    """`replace`: files that exist; the old ones are kept as *.before-init."""
    files = {folder / "campaign.yaml": _read_template(name), folder / "AGENTS.md": agents_md(name)}
    if folder.is_file():
        raise UsageError(
            phrase("campaign.file_is_no_folder"), where=str(folder), hint=phrase("campaign.name_campaign_folder")
        )
    if not folder.is_dir():
        raise UsageError(
            phrase("campaign.no_such_folder", folder=folder), where=str(folder), hint=phrase("campaign.create_first")
        )
    taken = [file for file in files if file.exists() or file.is_symlink()]
    if taken and not replace:
        raise UsageError(
            phrase(
                "campaign.files_exist_already",
                files=functools.reduce(_both, (file.name for file in taken)),
                n=len(taken),
            ),
            where=", ".join(map(str, taken)),
            hint=phrase("campaign.init_force_replaces"),
        )
    for file in taken:
        if file.is_dir():
            raise UsageError(
                phrase("campaign.file_is_folder", name=file.name),
                where=str(file),
                hint=phrase("campaign.move_it_away"),
            )
    for file, text in files.items():
        _write_with_backup(file, text)


def _both(one: str, other: str) -> str:
    return phrase("list.one_and_other", one=one, other=other)


def _read_template(name: str) -> str:
    try:
        return template_text(name)
    except KeyError:
        import difflib

        near = difflib.get_close_matches(name, template_names(), 1)
        known = phrase("campaign.templates_are", templates=", ".join(template_names()))
        hint = phrase("campaign.near_and_known", near=near[0], known=known) if near else known
        raise UsageError(phrase("campaign.no_such_template", name=name), hint=hint) from None


def _write_with_backup(file: Path, text: str) -> None:
    """All of it or nothing; what was there before is kept beside it."""
    partial = write_partial_file(file, text, mode=PUBLIC_FILE)
    try:
        if file.is_symlink() or (file.exists() and file.read_bytes() != text.encode()):
            file.replace(file.with_name(f"{file.name}.before-init"))
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)
