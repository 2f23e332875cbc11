"""The red flags as a list: ERROR before WARN, each in words, with its cells and what it means."""

from __future__ import annotations

from itertools import groupby

from muster.report.analysis import Analysis
from muster.report.escape import markdown
from muster.report.flag_words import by_level, flag_meaning, flag_standing, flag_text, kind_of
from muster.report.statement import Chain, Statement, cells_behind
from muster.report.words import Words
from muster.stats.flags import Flag


def flag_lines(analysis: Analysis, chain: Chain, w: Words) -> list[str]:
    lines: list[str] = []
    for (level, code, _), group in groupby(by_level(analysis.flags), key=kind_of):
        flags = list(group)
        meaning = markdown(flag_meaning(flags[0], w.language) or flags[0].message)
        lines.append(f"- {w('flags.kind', level=level, code=code, meaning=meaning)}")
        lines += [f"  - {_told(analysis, flag, chain, w)}" for flag in flags]
    return lines or [w("flags.none")]


def flag_statement(analysis: Analysis, flag: Flag, w: Words) -> Statement:
    stop = w("stop")
    text = flag_text(flag, w.language)
    text = text if text.endswith(("?", "？")) else f"{text}{stop}"
    return Statement(text, cells_behind(analysis, [flag]))


def _told(analysis: Analysis, flag: Flag, chain: Chain, w: Words) -> str:
    made = flag_statement(analysis, flag, w)
    unsaid = [name for name in flag.cells if name not in made.text]
    behind = markdown(w("flags.cells", cells=w.several(unsaid))) if unsaid else ""
    standing = markdown(flag_standing(flag, w.language))
    return w.sentences(markdown(made.text), behind, standing) + f" {chain.mark(made)}"
