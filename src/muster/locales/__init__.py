"""The texts of reports: a folder for each language, a file for each subject. Read when a report first needs them."""

from __future__ import annotations

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
