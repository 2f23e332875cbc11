"""What a campaign names for the time after its runs, and what is not there: told before the runs, not after them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from muster.acts.programs import found, meant, not_executable
from muster.domain.campaign import Campaign
from muster.domain.errors import Mistake
from muster.domain.template import split_words


def afterwards(campaign: Campaign, root: str, environ: Mapping[str, str]) -> Iterator[Mistake]:
    """Warnings: a text may still be written, a program still be installed."""
    for at, name in enumerate((campaign.report or {}).get("documents") or ()):
        yield from _document(Path(root), str(name), f"report.documents.{at}")
    for at, line in enumerate((campaign.finish or {}).get("run") or ()):
        yield from _program(str(line), root, environ, f"finish.run.{at}", "its step would fail when all cells are done")
    for at, channel in enumerate(campaign.notify):
        if isinstance(channel, Mapping) and isinstance(channel.get("run"), str):
            yield from _program(channel["run"], root, environ, f"notify.{at}.run", "nobody would be told")


def _document(root: Path, name: str, path: str) -> Iterator[Mistake]:
    file = root / name
    if file.is_dir():
        yield _warning(f"report: {name} is a folder, no text", "name the texts in it, one by one", path)
    elif not os.path.lexists(file):  # one that can't be read is told by `docs`
        near = meant(root, name)
        hint = f"did you mean '{near}'?" if near else f"it is looked for in {root}; write it, or drop it from the list"
        yield _warning(f"report: the document {name} does not exist", hint, path)


def _program(line: str, root: str, environ: Mapping[str, str], path: str, what: str) -> Iterator[Mistake]:
    try:
        words = split_words(line)
    except ValueError:  # an open quote: told by who reads the file
        return
    if words and not found(words[0], root, environ.get("PATH", os.defpath)):
        section = path.partition(".")[0]
        if not_executable(words[0], root):
            what = f"{section}: {words[0]} is not executable: {what}"
            yield _warning(what, f"chmod +x {shlex.quote(words[0])}", path)
            return
        hint = f"is it installed? It is looked for in PATH and in {root}"
        yield _warning(f"{section}: the command {words[0]!r} was not found: {what}", hint, path)


def _warning(text: str, hint: str, path: str) -> Mistake:
    return Mistake(text, hint=hint, path=path, level="warning")
