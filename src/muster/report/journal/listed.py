"""The list of artifacts in a generated block, read back: what was there when it was filled."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from muster.report.documents.tables import pipe_rows
from muster.report.journal.blocks import Block

_ESCAPED = re.compile(r"\\([\\`*|<~\]&_])")
_FOLDER = re.compile(r"(?P<path>.*?/) ?[(（][0-9]+ [^()（）]*[)）]")
_HASH = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Listed:
    path: str
    sha256: str  # its first digits
    run: str


def listed(blocks: Sequence[Block]) -> Iterator[Listed]:
    """Of blocks that nobody edited: what a person wrote into one says nothing about a file."""
    for block in blocks:
        if block.kind != "artifacts" or block.edited:
            continue
        lines = [(0, line.rstrip("\r")) for line in block.body.split("\n") if line.startswith("|")]
        for row in (pipe_rows(lines) or [])[1:]:
            texts = [_ESCAPED.sub(r"\1", cell.text) for cell in row.cells]
            if len(texts) == 3 and _HASH.fullmatch(texts[2]):
                folder = _FOLDER.fullmatch(texts[0])
                yield Listed(folder["path"] if folder else texts[0], texts[2], block.run)
