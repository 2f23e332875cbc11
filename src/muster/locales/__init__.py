"""What Muster says: a folder for each language, a file for each subject. Read when it is first needed.

The texts of reports lie in the folder itself, what commands and engine say in its `messages/`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
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


@cache
def message_lines(subject: str, language: str) -> Mapping[str, str]:
    """Key and sentence of each line, the sentence as it is written. KeyError for a subject that is not there.

    Each line is TOML, `key = "text"`, with no escapes that JSON has not. A process says a few sentences of hundreds:
    the others are not decoded, as every `status` would pay for it. A test holds it to what tomllib reads.
    """
    if not subject.isalpha():  # a log may hold anything as a code, and no path may be made of it
        raise KeyError(subject)
    try:
        text = (Path(__file__).parent / language / "messages" / f"{subject}.toml").read_text("utf-8")
    except FileNotFoundError:
        raise KeyError(subject) from None
    return dict(line.split(" = ", 1) for line in text.splitlines())


def find_message(subject: str, key: str, language: str) -> str:
    """A sentence, in English where a translation is missing. KeyError where there is none at all."""
    with suppress(KeyError):
        return decode_message(message_lines(subject, language)[key])
    return decode_message(message_lines(subject, "en")[key])


def decode_message(written: str) -> str:
    text: str = json.loads(written)
    return text
