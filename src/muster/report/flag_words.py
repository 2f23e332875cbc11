"""Red flags in words: the flag's own sentence in the reader's language, and what it means."""

from __future__ import annotations

from collections.abc import Iterable

from muster.report.words import Words
from muster.stats.flags import Flag


def flag_text(flag: Flag, language: str) -> str:
    """Without a full stop. English is the flag's own message; so is a code that this language has no words for."""
    w = Words(language)
    if language == "en" or not w.has(f"flag.{flag.code}"):
        return flag.message
    parts = dict(flag.parts)
    key = f"flag.{flag.code}"
    if flag.code == "same_values":
        parts["what"] = w(f"{key}.{parts['what']}")
    elif flag.code == "best_at_an_end":
        parts["end"] = w(f"{key}.{parts['end']}")
    elif flag.code == "same_seeds" and not parts["seeds"]:
        key = f"{key}.all"
    elif flag.code == "early_checkpoint" and not parts["percent"]:
        key = f"{key}.unknown"
    return w(key, **{name: _listed(value, w) for name, value in parts.items()})


def flag_meaning(flag: Flag, language: str) -> str:
    """Empty for a code that has no words."""
    w, key = Words(language), f"flag.means.{flag.code}"
    return next((w(each) for each in (f"{key}.{flag.level}", key) if w.has(each)), "")


def by_level(flags: Iterable[Flag]) -> list[Flag]:
    """ERROR before WARN, those of one code together, otherwise as they were found."""
    first: dict[tuple[str, str], int] = {}
    known = list(flags)
    for index, flag in enumerate(known):
        first.setdefault((flag.level, flag.code), index)
    return sorted(known, key=lambda flag: (flag.level, first[flag.level, flag.code]))


def _listed(value: str, w: Words) -> str:
    return value if w.language == "en" else value.replace(", ", "、")
