"""A campaign.yaml to start from, and an AGENTS.md for AI assistants: `muster init`."""

from __future__ import annotations

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
            phrase("campaign.file_no_folder"), where=str(folder), hint=phrase("campaign.name_folder_campaign")
        )
    if not folder.is_dir():
        raise UsageError(
            phrase("campaign.there_no_folder", folder=folder), where=str(folder), hint=phrase("campaign.create_first")
        )
    taken = [file for file in files if file.exists() or file.is_symlink()]
    if taken and not replace:
        raise UsageError(
            phrase(
                "campaign.already_nothing_changed",
                taken=" and ".join(file.name for file in taken),
                value="exists" if len(taken) == 1 else "exist",
            ),
            where=", ".join(map(str, taken)),
            hint=phrase("campaign.init_force_replaces_what_exists_keeps"),
        )
    for file in taken:
        if file.is_dir():
            raise UsageError(
                phrase("campaign.folder_nothing_changed", name=file.name),
                where=str(file),
                hint=phrase("campaign.move_away"),
            )
    for file, text in files.items():
        _write_with_backup(file, text)


def _read_template(name: str) -> str:
    try:
        return template_text(name)
    except KeyError:
        import difflib

        near = difflib.get_close_matches(name, template_names(), 1)
        known = phrase("campaign.templates", template_names=", ".join(template_names()))
        hint = phrase("campaign.did_you_mean_3", near=near[0], known=known) if near else known
        raise UsageError(phrase("campaign.there_no_template_nothing_changed", name=name), hint=hint) from None


def _write_with_backup(file: Path, text: str) -> None:
    """All of it or nothing; what was there before is kept beside it."""
    partial = write_partial_file(file, text, mode=PUBLIC_FILE)
    try:
        if file.is_symlink() or (file.exists() and file.read_bytes() != text.encode()):
            file.replace(file.with_name(f"{file.name}.before-init"))
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)
