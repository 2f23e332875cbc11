"""Red flags in words: the flag's own sentence in the reader's language, and what it means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from muster.report.words import TEXTS, Words
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
    elif flag.code == "same_seeds":
        bound = "" if parts["chance"] else "bound"
        key = ".".join(part for part in (key, "_".join(filter(None, ("" if parts["seeds"] else "all", bound)))) if part)
    elif flag.code == "one_curve" and flag.level == "WARN" and not flag.aside:
        key = f"{key}.WARN"
    elif flag.code == "early_checkpoint" and not parts["percent"]:
        key = f"{key}.unknown"
    elif flag.code == "early_checkpoint" and parts.get("steps"):
        key = f"{key}.steps"
    elif flag.code == "failed_seeds" and not parts["other"]:
        key = f"{key}.alone"
    elif flag.code in ("mixed_definitions", "outdated"):
        if parts["part"] == "contents":
            key = f"{key}.contents"
        return w(key, **{name: _listed(value, w) for name, value in parts.items()} | _definition_words(parts, w))
    elif flag.code == "lost_seeds":  # reasons with commas of their own
        return w(key, **parts)
    if "chance" in parts:
        parts["chance"] = parts["chance"].replace("below ", w("flag.chance_below"))
    return w(key, **{name: _listed(value, w) for name, value in parts.items()})


def _definition_words(parts: Mapping[str, str], w: Words) -> dict[str, str]:
    """Texts of people stay as they are."""
    kind, _, name = parts["part"].partition(" ")
    shown = {side: f"`{parts[side]}`" if parts[side] else w("flag.part.unset") for side in ("old", "new")}
    return shown | ({"part": w(f"flag.part.{kind}", name=name)} if w.has(f"flag.part.{kind}") else {})


def flag_meaning(flag: Flag, language: str) -> str:
    """Empty for a code that has no words."""
    w, key = Words(language), f"flag.means.{flag.code}"
    level = "ERROR" if flag.aside else flag.level
    return next((w(each) for each in (f"{key}.{level}", key) if w.has(each)), "")


def flag_standing(flag: Flag, language: str) -> str:
    """Why it weighs less than its kind: a person accepted it, or nothing is decided on it. Empty: neither."""
    w = Words(language)
    told = flag.accepted
    by = w("flags.accepted", who=told.who, at=moment(told.at), because=told.because) if told else ""
    return w.sentences(w("flags.aside") if flag.aside else "", by)


def moment(at: str) -> str:
    """`2026-02-26 10:30`"""
    return at[:16].replace("T", " ")


def known_codes() -> list[str]:
    """Every code that has words."""
    begin = "flag.means."
    return list(
        dict.fromkeys(key.removeprefix(begin).partition(".")[0] for key in TEXTS["en"] if key.startswith(begin))
    )


def by_level(flags: Iterable[Flag]) -> list[Flag]:
    """ERROR before WARN, those of one code together, otherwise as they were found."""
    first: dict[tuple[str, str, bool], int] = {}
    known = list(flags)
    for index, flag in enumerate(known):
        first.setdefault(kind_of(flag), index)
    return sorted(known, key=lambda flag: (flag.level, first[kind_of(flag)]))


def kind_of(flag: Flag) -> tuple[str, str, bool]:
    """Flags of one kind mean the same."""
    return flag.level, flag.code, flag.aside


def _listed(value: str, w: Words) -> str:
    return value if w.language == "en" else value.replace(", ", "、")
