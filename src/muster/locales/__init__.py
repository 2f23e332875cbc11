"""What Muster says: a folder for each language, a file for each subject. Read when it is first needed.

The texts of reports lie in the folder itself, what commands and engine say in its `messages/`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

LANGUAGES = ("en", "zh")
SUBJECTS: Mapping[str, tuple[str, ...]] = {  # of each catalogue; where two files have a key, the later one counts
    "report": ("code", "tables", "decision", "defence", "flags", "loop"),
    "record": ("record",),
    "cost": ("record", "cost"),
    "journal": ("journal",),
    "figures": ("figures",),
    "gates": ("gates",),
}


@cache
def load_texts(catalogue: str, language: str) -> Mapping[str, str]:
    """The texts by key, in the order of the files."""
    import tomllib  # nobody pays for it who writes no report

    texts: dict[str, str] = {}
    for subject in SUBJECTS[catalogue]:
        texts |= tomllib.loads((Path(__file__).parent / language / f"{subject}.toml").read_text("utf-8"))
    return texts


_MESSAGE = re.compile(r'^([a-z0-9_]+) = (".*")$', re.MULTILINE)


@cache
def load_messages(subject: str, language: str) -> Mapping[str, str]:
    """The sentences by key. KeyError for a subject that is not there.

    Each line is TOML, `key = "text"`, with no escapes that JSON has not: this takes a hundredth of what tomllib takes,
    and every `status` pays for it. A test holds both to the same result.
    """
    try:
        lines = (Path(__file__).parent / language / "messages" / f"{subject}.toml").read_text("utf-8")
    except FileNotFoundError:
        raise KeyError(subject) from None
    texts: Mapping[str, str] = json.loads(
        "{" + ",".join(f'"{key}":{text}' for key, text in _MESSAGE.findall(lines)) + "}"
    )
    return texts
