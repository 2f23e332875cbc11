"""Files as commits have them, by hash."""

from __future__ import annotations

import hashlib
import os
import re
from functools import cache

from muster.observe.code import DIFF, NOT_CODE
from muster.observe.git import Git, GitTrouble
from muster.observe.source_files import is_source

_COMMIT = re.compile(r"[0-9a-f]{7,64}")


def is_commit(text: str) -> bool:
    """By its name; a record may say anything, and `--output=FILE` would be an option to git."""
    return _COMMIT.fullmatch(text) is not None


@cache
def blob_sha256(folder: str, commit: str, path: str) -> str | None:
    """None: the commit has no such file, or git does not know the commit here."""
    if not is_commit(commit):
        return None
    try:
        return hashlib.sha256(Git(folder)("cat-file", "blob", f"{commit}:{path}")).hexdigest()
    except GitTrouble:
        return None


@cache
def sources_between(folder: str, one: str, other: str) -> tuple[str, ...]:
    """Files of source that differ between two commits; none where git does not know."""
    if not (is_commit(one) and is_commit(other)):
        return ()
    try:
        told = Git(folder)(*DIFF, "--name-only", "-z", one, other, "--", ":/", *NOT_CODE)
    except GitTrouble:
        return ()
    return tuple(path for each in told.split(b"\0") if is_source(path := os.fsdecode(each)))
