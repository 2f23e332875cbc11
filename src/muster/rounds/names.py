"""Names of variants: short, unique, and the same for the same config."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any

DIGITS = 6  # of the digest
LONGEST = 80  # characters of the stem: a name becomes a part of a cell and of file names
_OTHER = re.compile(r"[^A-Za-z0-9_.-]+")


def digest_of(tree: Any) -> str:
    """Of the values, however they are written and in whatever order the keys are; 1 and 1.0 differ."""
    import hashlib

    text = json.dumps(tree, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def root_stem(stem: str, content_digest: str) -> str:
    """Without what an earlier edit put behind it: a variant of `base_1c9f3a` is no `base_1c9f3a_77de01`.

    `content_digest` is that of the config which has this name: only so it is known to be a variant's name.
    """
    head, _, tail = stem.rpartition("_")
    return head if head and len(tail) >= DIGITS and content_digest.startswith(tail) else stem


def variant_name(base_stem: str, content_digest: str, taken: Collection[str] = ()) -> str:
    """`base_1c9f3a`, with more of the digest where another config has that name already."""
    stem = _OTHER.sub("-", base_stem).lstrip(".-")[:LONGEST].rstrip(".-") or "variant"
    for digits in range(DIGITS, len(content_digest)):
        name = f"{stem}_{content_digest[:digits]}"
        if name not in taken:
            return name
    return f"{stem}_{content_digest}"
