"""Stamps of people's texts: what their bound numbers rest on. The words around them may change as they like."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from muster.acts.docs_files import load_sidecar, read_document
from muster.domain.errors import MusterError
from muster.report.claims import Claim
from muster.report.documents.sidecar import find_again
from muster.report.stamp import FileStamp

KIND = "document"


def document_stamp(path: Path, cells: Mapping[str, tuple[str, ...]]) -> FileStamp | None:
    """`cells`: key of a quantity -> the cells it is made of. None: nothing in the text is bound."""
    document = read_document(path)
    sidecar = load_sidecar(document)
    if sidecar is None:
        return None
    claims = []
    for number, each in enumerate(sidecar.bindings, 1):
        names = tuple(dict.fromkeys(cell for key in each.keys for cell in cells.get(key, ())))
        claims.append(Claim(f"E{number}", f"line {each.line}: {each.token}", names, each.keys))
    every = tuple(dict.fromkeys(cell for claim in claims for cell in claim.cells))
    return FileStamp(hashlib.sha256(document.data).hexdigest(), KIND, every, tuple(claims))


def bound_numbers_changed(path: Path) -> str:
    """Why the bound numbers of an edited text are not those that were written; empty: they are."""
    try:
        document = read_document(path)
        sidecar = load_sidecar(document)
    except MusterError as error:
        return error.message
    if sidecar is None:
        return "its bindings are gone"
    _, gone = find_again(sidecar, document.text)
    return "; ".join(f"line {each.binding.line}: {each.binding.token} was changed by hand" for each in gone[:3])
