"""Red flags in words: each flag's sentence in the reader's language, what it means, the list with ERROR before WARN,
and which flags `muster flag accept` may clear.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from muster.app.facts.report_analysis import ReportAnalysis
from muster.app.report.evidence_chain import EvidenceChain, ReportStatement, cells_behind_flags
from muster.locales import load_texts
from muster.model.errors import MusterError, UsageError
from muster.stats.red_flags import RedFlag
from muster.text.catalogue import Catalogue, load_catalogue
from muster.text.escape_markup import escape_markdown


def describe_flag(flag: RedFlag, language: str) -> str:
    """Without a full stop. English is the flag's own message; so is a code that this language has no words for."""
    w = load_catalogue("report", language)
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
        return w(
            key,
            **{name: _localize_flag_list(value, w) for name, value in parts.items()}
            | _describe_definition_parts(parts, w),
        )
    elif flag.code == "lost_seeds":  # reasons with commas of their own
        return w(key, **parts)
    if "chance" in parts:
        parts["chance"] = parts["chance"].replace("below ", w("flag.chance_below"))
    return w(key, **{name: _localize_flag_list(value, w) for name, value in parts.items()})


def _describe_definition_parts(parts: Mapping[str, str], w: Catalogue) -> dict[str, str]:
    """Texts of people stay as they are."""
    kind, _, name = parts["part"].partition(" ")
    shown = {side: f"`{parts[side]}`" if parts[side] else w("flag.part.unset") for side in ("old", "new")}
    return shown | ({"part": w(f"flag.part.{kind}", name=name)} if w.has(f"flag.part.{kind}") else {})


def describe_flag_meaning(flag: RedFlag, language: str) -> str:
    """Empty for a code that has no words."""
    w, key = load_catalogue("report", language), f"flag.means.{flag.code}"
    level = "ERROR" if flag.aside else flag.level
    return next((w(each) for each in (f"{key}.{level}", key) if w.has(each)), "")


def describe_flag_weight(flag: RedFlag, language: str) -> str:
    """Why it weighs less than its kind: a person accepted it, or nothing is decided on it. Empty: neither."""
    w = load_catalogue("report", language)
    told = flag.accepted
    by = w("flags.accepted", who=told.who, at=format_short_time(told.at), because=told.because) if told else ""
    return w.sentences(w("flags.aside") if flag.aside else "", by)


def format_short_time(at: str) -> str:
    """`2026-02-26 10:30`"""
    return at[:16].replace("T", " ")


def known_flag_codes() -> list[str]:
    """Every code that has words."""
    begin, texts = "flag.means.", load_texts("report", "en")
    return list(dict.fromkeys(key.removeprefix(begin).partition(".")[0] for key in texts if key.startswith(begin)))


def sort_flags_by_level(flags: Iterable[RedFlag]) -> list[RedFlag]:
    """ERROR before WARN, those of one code together, otherwise as they were found."""
    first: dict[tuple[str, str, bool], int] = {}
    known = list(flags)
    for index, flag in enumerate(known):
        first.setdefault(kind_of_flag(flag), index)
    return sorted(known, key=lambda flag: (flag.level, first[kind_of_flag(flag)]))


def kind_of_flag(flag: RedFlag) -> tuple[str, str, bool]:
    """Flags of one kind mean the same."""
    return flag.level, flag.code, flag.aside


def _localize_flag_list(value: str, w: Catalogue) -> str:
    return value.replace(", ", w("comma"))


def flags_to_accept(code: str, flags: Sequence[RedFlag]) -> list[RedFlag]:
    """All that are raised under this code. One that nobody may accept refuses all: half an acceptance misleads."""
    meant = [flag for flag in flags if flag.code == code]
    if not meant:
        raise _flag_not_raised_error(code, flags)
    if fixed := next((flag for flag in meant if not flag.acceptable), None):
        why = describe_flag_meaning(fixed, "en") or fixed.message
        raise MusterError(f"{code} can't be accepted: {fixed.message}", hint=f"no word can clear it. {why}")
    return meant


def _flag_not_raised_error(code: str, flags: Sequence[RedFlag]) -> UsageError:
    raised = list(dict.fromkeys(flag.code for flag in flags))
    now = f"raised now: {', '.join(raised)}" if raised else "nothing is to be accepted: no flag is raised now"
    known = dict.fromkeys([*raised, *known_flag_codes()])
    if code in known:
        return UsageError(f"no flag {code} is raised now", hint=now)
    near = difflib.get_close_matches(code, known, 1)
    return UsageError(f"there is no flag {code!r}", hint=f"did you mean {near[0]}? {now}" if near else now)


def flag_list_lines(analysis: ReportAnalysis, chain: EvidenceChain, w: Catalogue) -> list[str]:
    lines: list[str] = []
    for (level, code, _), group in groupby(sort_flags_by_level(analysis.flags), key=kind_of_flag):
        flags = list(group)
        meaning = escape_markdown(describe_flag_meaning(flags[0], w.language) or flags[0].message)
        lines.append(f"- {w('flags.kind', level=level, code=code, meaning=meaning)}")
        lines += [f"  - {_flag_list_item(analysis, flag, chain, w)}" for flag in flags]
    return lines or [w("flags.none")]


def statement_about_flag(analysis: ReportAnalysis, flag: RedFlag, w: Catalogue) -> ReportStatement:
    stop = w("stop")
    text = describe_flag(flag, w.language)
    text = text if text.endswith(("?", "？")) else f"{text}{stop}"
    return ReportStatement(text, cells_behind_flags(analysis, [flag]))


def _flag_list_item(analysis: ReportAnalysis, flag: RedFlag, chain: EvidenceChain, w: Catalogue) -> str:
    made = statement_about_flag(analysis, flag, w)
    unsaid = [name for name in flag.cells if name not in made.text]
    behind = escape_markdown(w("flags.cells", cells=w.several(unsaid))) if unsaid else ""
    standing = escape_markdown(describe_flag_weight(flag, w.language))
    return w.sentences(escape_markdown(made.text), behind, standing) + f" {chain.mark(made)}"
