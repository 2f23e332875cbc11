"""The decision report: the verdict first, then everything it rests on, what would change it, and the evidence chain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from muster.report import table_markdown
from muster.report.analysis import Analysis
from muster.report.changes import change_statements
from muster.report.comparison_table import comparison_grid, others_grid
from muster.report.declared import declared_lines
from muster.report.escape import label, markdown, target
from muster.report.facts import Text
from muster.report.flag_list import flag_lines
from muster.report.flag_words import moment
from muster.report.grid import Grid
from muster.report.main_table import main_grid
from muster.report.matrix import matrix_grid, missing_grid
from muster.report.next_words import next_statements
from muster.report.safety_table import dominance_statements, safety_grid
from muster.report.seeds_words import at_a_look, seeds_statements
from muster.report.statement import Chain, Statement, about, about_all, cells_behind
from muster.report.verdict import choice_statement, proxy_statements, verdict_statement
from muster.report.words import Words
from muster.stats.flags import Acceptance, Flag


def decision_report(analysis: Analysis, figures: Sequence[tuple[str, str]] = (), path: str = "") -> Text:
    """`figures`: relative path and caption of each. `path`: where the report will lie, for the commands in it."""
    w, chain = Words(analysis.facts.language), Chain()
    parts = [
        title(analysis, "decision.title", w),
        _verdict(analysis, chain, w),
        *_section("rests", _rests(analysis, chain, w), w),
        *_section("matrix", _matrix(analysis, chain, w), w),
        *_section("table", _key_table(analysis, chain, w), w),
        *_section("compare", _comparison(analysis, chain, w), w),
        *_section("safety", _safety(analysis, chain, w), w),
        *_section("flags", ["\n".join(flag_lines(analysis, chain, w))], w),
        *_section("change", [bullets(change_statements(analysis, w), chain)], w),
        *_section("next", [bullets(next_statements(analysis, w), chain)], w),
        *_section("declared", ["\n".join(f"- {markdown(line)}" for line in declared_lines(analysis, w))], w),
        *_section("figures", [_figure(analysis, *each, w) for each in figures], w),
        *_section("evidence", [chain.table(w, path or path_of(analysis, "decision"))], w),
    ]
    return Text("\n\n".join(part for part in parts if part) + "\n", chain.claims)


def path_of(analysis: Analysis, name: str) -> str:
    """Where a text lies; a partial one says so in its name."""
    facts = analysis.facts
    return f"reports/{name}.PARTIAL-{facts.k}of{facts.n}.md" if facts.partial else f"reports/{name}.md"


def title(analysis: Analysis, key: str, w: Words) -> str:
    """With the mark of a partial report, and when and by what it was made."""
    facts = analysis.facts
    shown = w(key, campaign=facts.campaign)
    shown = w("marked", title=shown, mark=facts.mark) if facts.mark else shown
    code = facts.code or w("code.not_yet")
    made = w("decision.made", at=facts.at[:16].replace("T", " "), version=facts.version, code=code, folder=facts.folder)
    return f"# {markdown(shown)}\n\n{markdown(made)}"


def bullets(statements: Iterable[Statement], chain: Chain) -> str:
    return "\n".join(f"- {chain.tell(each)}" for each in statements)


def verdict_line(analysis: Analysis, chain: Chain, w: Words) -> str:
    """In bold, with the mark of a partial report beside it."""
    made, mark = verdict_statement(analysis, w), analysis.facts.mark
    beside = f"{mark} · " if mark else ""
    return f"**{beside}{markdown(made.text)}** {chain.mark(made)}"


def fit_words(analysis: Analysis, w: Words) -> str:
    """Whether this is enough to decide on."""
    decision = analysis.decision
    key: str = "undeclared" if decision.because == "undeclared" else decision.verdict
    decided = decision.verdict in ("RECOMMEND", "EQUIVALENT", "KEEP_BASELINE")
    if decided and not at_a_look(analysis):
        key = "no_look"
    warns = sum(flag.level == "WARN" and flag.accepted is None for flag in analysis.flags)
    cleared = sum(flag.level == "ERROR" and flag.accepted is not None for flag in analysis.flags)
    return w.sentences(
        w(f"fit.{key}"),
        w.count("accepted_error", cleared) if cleared else "",
        w.count("warned", warns) if warns and decided else "",
    )


def _verdict(analysis: Analysis, chain: Chain, w: Words) -> str:
    """The first paragraph: the verdict, who else would do as well, and what the splits stand for."""
    chosen = [choice_statement(analysis, w)] if analysis.decision.rivals else []
    proxies = proxy_statements(analysis, w) if analysis.decision.verdict not in ("INVALID", "INCOMPLETE") else ()
    first = " ".join([verdict_line(analysis, chain, w), *(chain.tell(each) for each in (*chosen, *proxies))])
    return f"{first}\n\n**{w('fit.question')}** {fit_words(analysis, w)}"


def _section(name: str, parts: Iterable[str], w: Words) -> Iterator[str]:
    """A heading and what is under it; no heading over nothing."""
    told = [part for part in parts if part]
    if told:
        yield f"## {w(f'section.{name}')}"
        yield from told


def _rests(analysis: Analysis, chain: Chain, w: Words) -> Iterator[str]:
    lines = [f"- {chain.tell(each)}" for each in seeds_statements(analysis, w)]
    lines.append(f"- {w('seeds.replicate')}")
    lines += [f"- {chain.tell(each)}" for each in history_statements(analysis, w)]
    yield "\n".join(lines)


def history_statements(analysis: Analysis, w: Words) -> Iterator[Statement]:
    """How the cells came about, where it was not in one go."""
    measured = analysis.facts.measured
    adopted = tuple(each.cell for each in measured if each.adopted)
    retried = tuple(each.cell for each in measured if each.attempt > 1)
    if adopted:
        yield Statement(w.count("adopted", len(adopted)), adopted)
    refused = tuple(dict.fromkeys(analysis.facts.refused))
    if refused:
        yield Statement(w.count("refused", len(analysis.facts.refused)), refused)
    if retried:
        yield Statement(w.count("retried", len(retried)), retried)
    yield from accepted_statements(analysis, w)
    yield from accepted_flag_statements(analysis, w)


def accepted_flag_statements(analysis: Analysis, w: Words) -> Iterator[Statement]:
    """Red flags that a person cleared: which, who and why, each word once."""
    told: dict[tuple[Acceptance, str, str], list[Flag]] = {}
    for flag in analysis.flags:
        if flag.accepted is not None:
            told.setdefault((flag.accepted, flag.level, flag.code), []).append(flag)
    for (by, level, code), flags in told.items():
        text = w("history.accepted_flag", code=code, level=level, who=by.who, at=moment(by.at), because=by.because)
        yield Statement(text, cells_behind(analysis, flags))


def accepted_statements(analysis: Analysis, w: Words) -> Iterator[Statement]:
    """What counts by a person's word: who gave it, and why, each reason once."""
    told: dict[tuple[str, str], list[str]] = {}
    for each in analysis.facts.accepted:
        told.setdefault((each.who, each.reason), []).append(each.cell)
    for (who, reason), cells in told.items():
        by = who or w("history.somebody")
        yield Statement(w("history.accepted", cells=w.several(cells), who=by, reason=reason), tuple(cells))


def matrix_statement(analysis: Analysis, w: Words) -> Statement:
    facts = analysis.facts
    key = "claim.matrix" if facts.missing else "claim.matrix_whole"
    return about_all(analysis, w(key, k=facts.k, n=facts.n, missing=w.count("missing", len(facts.missing))))


def _matrix(analysis: Analysis, chain: Chain, w: Words) -> Iterator[str]:
    yield chain.tell(matrix_statement(analysis, w))
    yield table_markdown.render(matrix_grid(analysis, w)).rstrip()
    if missing := missing_grid(analysis, w):
        yield table_markdown.render(missing).rstrip()


def _key_table(analysis: Analysis, chain: Chain, w: Words) -> Iterator[str]:
    yield caution(analysis, w)
    yield _shown(analysis, main_grid(analysis, w), chain, w)


def _comparison(analysis: Analysis, chain: Chain, w: Words) -> Iterator[str]:
    plan = analysis.facts.plan
    if plan is None:
        yield w("compare.no_plan")
        return
    if not analysis.decision.comparisons:
        yield w("compare.none", column=plan.primary.name)
        return
    yield caution(analysis, w)
    yield table_markdown.render(comparison_grid(analysis, plan, chain, w)).rstrip()
    if others := others_grid(analysis, plan, w):
        yield _shown(analysis, others, chain, w)


def _safety(analysis: Analysis, chain: Chain, w: Words) -> Iterator[str]:
    plan = analysis.facts.plan
    if plan is None or plan.limit is None:
        yield w("safety.none")
        return
    yield caution(analysis, w)
    yield table_markdown.render(safety_grid(analysis, plan, chain, w)).rstrip()
    yield from (chain.tell(each) for each in dominance_statements(analysis, w))


def _shown(analysis: Analysis, grid: Grid, chain: Chain, w: Words) -> str:
    """A table whose numbers are one claim."""
    made = about(analysis, w("claim.table", caption=grid.caption), analysis.facts.configs, analysis.facts.columns)
    return f"**{markdown(grid.caption)}** {chain.mark(made)}\n\n{table_markdown.with_notes(grid)}"


def caution(analysis: Analysis, w: Words) -> str:
    """Over numbers that are no result."""
    return f"> {w('invalid.caution')}" if analysis.decision.verdict == "INVALID" else ""


def _figure(analysis: Analysis, path: str, caption: str, w: Words) -> str:
    """The mark of a partial report is told in the caption, unless it is there already."""
    mark = analysis.facts.mark
    shown = w("caption.marked", mark=mark, caption=caption) if mark and mark not in caption else caption
    return f"![{label(PurePosixPath(path).name)}]({target(path)})\n\n{markdown(shown)}"
