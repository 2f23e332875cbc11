"""`decision.md`: the verdict first, then what was declared (word for word), what the verdict rests on, what would
change it, and the evidence chain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from muster.app.campaign.stamp import ReportText
from muster.app.facts.report_analysis import ReportAnalysis, column_heads
from muster.app.facts.report_facts import DecisionPlan
from muster.app.report.comparison_tables import (
    comparison_table_grid,
    other_columns_grid,
    safety_table_grid,
    statements_of_dominance,
)
from muster.app.report.estimates import format_limit_rule
from muster.app.report.evidence_chain import (
    EvidenceChain,
    ReportStatement,
    cells_behind_flags,
    statement_about_all_cells,
    statement_about_columns,
)
from muster.app.report.next_steps import statements_of_next_step
from muster.app.report.red_flag_text import flag_list_lines, format_short_time
from muster.app.report.result_tables import coverage_matrix_grid, main_table_grid, missing_cells_grid
from muster.app.report.seed_statements import is_at_declared_look, statements_about_seeds
from muster.app.report.verdict_changes import statements_of_verdict_changes
from muster.app.report.verdict_sentences import statement_of_choice, statement_of_verdict, statements_about_proxies
from muster.stats.red_flags import FlagAcceptance, RedFlag
from muster.text.catalogue import Catalogue, load_catalogue
from muster.text.describe_run import describe_resumed_log, is_log_whole
from muster.text.escape_markup import escape_link_label, escape_link_target, escape_markdown
from muster.text.number_format import format_declared_number
from muster.text.table_grid import TableGrid, markdown_table_with_notes, render_markdown_table


def declaration_lines(analysis: ReportAnalysis, w: Catalogue) -> Iterator[str]:
    facts, plan = analysis.facts, analysis.facts.plan
    if plan is None:
        yield w("declared.none")
    else:
        yield from _procedure_lines(analysis, plan, w)
    yield from proxy_note_lines(analysis, w)
    for config, note in facts.notes.items():
        if note:
            yield w("declared.config_note", config=config, note=note)
    if plan is not None:
        yield from plan.notes
    yield from _log_gap_lines(analysis, w)
    yield w("declared.scope")


def _log_gap_lines(analysis: ReportAnalysis, w: Catalogue) -> Iterator[str]:
    """What is missing of the logs: curves that nobody can draw, rows that a killed run did not write down."""
    for each in analysis.facts.uncurved:
        why = w(f"uncurved.{each.reason.why}", path=each.reason.path, name=each.reason.key)
        cells = "" if each.all else w("uncurved.cells", cells=w.some(each.cells))
        yield w("uncurved.told", metric=each.metric, cells=cells, why=why)
    for cell, resumed in analysis.facts.resumed:
        if not is_log_whole(resumed):
            yield w("declared.resumed", cell=cell, text=describe_resumed_log(resumed, w.language))


def proxy_note_lines(analysis: ReportAnalysis, w: Catalogue) -> Iterator[str]:
    proxies = {split: text for split, text in analysis.facts.proxies.items() if text}
    for split, text in proxies.items():
        yield w("declared.proxy", split=split, note=text)
    for split, note in analysis.facts.split_notes.items():
        yield w("declared.split_note", split=split, note=note)
    splits = splits_in_columns(analysis)
    if not proxies and splits:
        yield w("declared.no_proxy", splits=w.several(splits))


def splits_in_columns(analysis: ReportAnalysis) -> list[str]:
    """The heads that are splits and not jobs."""
    jobs = {each.job for each in analysis.facts.measured}
    return [head for head in column_heads(analysis.facts) if head and head not in jobs]


def describe_checkpoint_choice(plan: DecisionPlan, w: Catalogue) -> str:
    if plan.checkpoint.startswith("best"):
        return w("declared.checkpoint.best", metric=plan.checkpoint.removeprefix("best by ").removeprefix("best"))
    return w("declared.checkpoint.last")


def _procedure_lines(analysis: ReportAnalysis, plan: DecisionPlan, w: Catalogue) -> Iterator[str]:
    procedure = plan.procedure
    direction = w("direction.higher" if procedure.higher else "direction.lower")
    yield w("declared.primary", column=plan.primary.name, direction=direction, baseline=procedure.baseline)
    yield (
        w("declared.limit", rule=format_limit_rule(analysis)) if format_limit_rule(analysis) else w("declared.no_limit")
    )
    known = procedure.delta is not None
    yield w("declared.delta", delta=format_declared_number(procedure.delta or 0.0)) if known else w("declared.no_delta")
    yield describe_checkpoint_choice(plan, w)
    looks = w.several([str(look) for look in procedure.looks])
    yield w(
        "declared.test",
        alpha=format_declared_number(procedure.alpha),
        looks=looks,
        last=procedure.looks[-1],
        power=format_declared_number(procedure.power),
    )


def render_decision_report(
    analysis: ReportAnalysis, figures: Sequence[tuple[str, str]] = (), path: str = ""
) -> ReportText:
    """`figures`: relative path and caption of each. `path`: where the report will lie, for the commands in it."""
    w, chain = load_catalogue("report", analysis.facts.language), EvidenceChain()
    parts = [
        report_title(analysis, "decision.title", w),
        _verdict_paragraph(analysis, chain, w),
        *_report_section("rests", _seed_and_history_lines(analysis, chain, w), w),
        *_report_section("matrix", _matrix_section(analysis, chain, w), w),
        *_report_section("table", _main_table_section(analysis, chain, w), w),
        *_report_section("compare", _comparison_section(analysis, chain, w), w),
        *_report_section("safety", _safety_section(analysis, chain, w), w),
        *_report_section("flags", ["\n".join(flag_list_lines(analysis, chain, w))], w),
        *_report_section("change", [statement_bullets(statements_of_verdict_changes(analysis, w), chain)], w),
        *_report_section("next", [statement_bullets(statements_of_next_step(analysis, w), chain)], w),
        *_report_section(
            "declared", ["\n".join(f"- {escape_markdown(line)}" for line in declaration_lines(analysis, w))], w
        ),
        *_report_section("figures", [_figure_section_item(analysis, *each, w) for each in figures], w),
        *_report_section("evidence", [chain.table(w, path or path_of_report_text(analysis, "decision"))], w),
    ]
    return ReportText("\n\n".join(part for part in parts if part) + "\n", chain.claims)


def path_of_report_text(analysis: ReportAnalysis, name: str) -> str:
    """Where a text lies; a partial one says so in its name."""
    facts = analysis.facts
    return f"reports/{name}.PARTIAL-{facts.k}of{facts.n}.md" if facts.partial else f"reports/{name}.md"


def report_title(analysis: ReportAnalysis, key: str, w: Catalogue) -> str:
    """With the mark of a partial report, and when and by what it was made."""
    facts = analysis.facts
    shown = w(key, campaign=facts.campaign)
    shown = w("marked", title=shown, mark=facts.mark) if facts.mark else shown
    code = facts.code or w("code.not_yet")
    made = w("decision.made", at=format_short_time(facts.at), version=facts.version, code=code, folder=facts.folder)
    return f"# {escape_markdown(shown)}\n\n{escape_markdown(made)}"


def statement_bullets(statements: Iterable[ReportStatement], chain: EvidenceChain) -> str:
    return "\n".join(f"- {chain.tell(each)}" for each in statements)


def bold_verdict_line(analysis: ReportAnalysis, chain: EvidenceChain, w: Catalogue) -> str:
    """In bold, with the mark of a partial report beside it."""
    made, mark = statement_of_verdict(analysis, w), analysis.facts.mark
    beside = f"{mark} · " if mark else ""
    return f"**{beside}{escape_markdown(made.text)}** {chain.mark(made)}"


def describe_fitness(analysis: ReportAnalysis, w: Catalogue) -> str:
    """Whether this is enough to decide on."""
    decision = analysis.decision
    key: str = "undeclared" if decision.because == "undeclared" else decision.verdict
    decided = decision.verdict in ("RECOMMEND", "EQUIVALENT", "KEEP_BASELINE")
    if decided and not is_at_declared_look(analysis):
        key = "no_look"
    warns = sum(flag.level == "WARN" and flag.accepted is None for flag in analysis.flags)
    cleared = sum(flag.level == "ERROR" and flag.accepted is not None for flag in analysis.flags)
    return w.sentences(
        w(f"fit.{key}"),
        w.count("accepted_error", cleared) if cleared else "",
        w.count("warned", warns) if warns and decided else "",
    )


def _verdict_paragraph(analysis: ReportAnalysis, chain: EvidenceChain, w: Catalogue) -> str:
    """The first paragraph: the verdict, who else would do as well, and what the splits stand for."""
    chosen = [statement_of_choice(analysis, w)] if analysis.decision.rivals else []
    proxies = (
        statements_about_proxies(analysis, w) if analysis.decision.verdict not in ("INVALID", "INCOMPLETE") else ()
    )
    first = " ".join([bold_verdict_line(analysis, chain, w), *(chain.tell(each) for each in (*chosen, *proxies))])
    return f"{first}\n\n**{w('fit.question')}** {describe_fitness(analysis, w)}"


def _report_section(name: str, parts: Iterable[str], w: Catalogue) -> Iterator[str]:
    """A heading and what is under it; no heading over nothing."""
    told = [part for part in parts if part]
    if told:
        yield f"## {w(f'section.{name}')}"
        yield from told


def _seed_and_history_lines(analysis: ReportAnalysis, chain: EvidenceChain, w: Catalogue) -> Iterator[str]:
    lines = [f"- {chain.tell(each)}" for each in statements_about_seeds(analysis, w)]
    lines.append(f"- {w('seeds.replicate')}")
    lines += [f"- {chain.tell(each)}" for each in statements_of_history(analysis, w)]
    yield "\n".join(lines)


def statements_of_history(analysis: ReportAnalysis, w: Catalogue) -> Iterator[ReportStatement]:
    """How the cells came about, where it was not in one go."""
    measured = analysis.facts.measured
    adopted = tuple(each.cell for each in measured if each.adopted)
    retried = tuple(each.cell for each in measured if each.attempt > 1)
    if adopted:
        yield ReportStatement(w.count("adopted", len(adopted)), adopted)
    refused = tuple(dict.fromkeys(analysis.facts.refused))
    if refused:
        yield ReportStatement(w.count("refused", len(analysis.facts.refused)), refused)
    if retried:
        yield ReportStatement(w.count("retried", len(retried)), retried)
    yield from statements_of_accepted_cells(analysis, w)
    yield from statements_of_accepted_flags(analysis, w)


def statements_of_accepted_flags(analysis: ReportAnalysis, w: Catalogue) -> Iterator[ReportStatement]:
    """Red flags that a person cleared: which, who and why, each word once."""
    told: dict[tuple[FlagAcceptance, str, str], list[RedFlag]] = {}
    for flag in analysis.flags:
        if flag.accepted is not None:
            told.setdefault((flag.accepted, flag.level, flag.code), []).append(flag)
    for (by, level, code), flags in told.items():
        text = w(
            "history.accepted_flag", code=code, level=level, who=by.who, at=format_short_time(by.at), because=by.because
        )
        yield ReportStatement(text, cells_behind_flags(analysis, flags))


def statements_of_accepted_cells(analysis: ReportAnalysis, w: Catalogue) -> Iterator[ReportStatement]:
    """What counts by a person's word: who gave it, and why, each reason once."""
    told: dict[tuple[str, str], list[str]] = {}
    for each in analysis.facts.accepted:
        told.setdefault((each.who, each.reason), []).append(each.cell)
    for (who, reason), cells in told.items():
        by = who or w("history.somebody")
        yield ReportStatement(w("history.accepted", cells=w.several(cells), who=by, reason=reason), tuple(cells))


def statement_of_matrix(analysis: ReportAnalysis, w: Catalogue) -> ReportStatement:
    facts = analysis.facts
    key = "claim.matrix" if facts.missing else "claim.matrix_whole"
    return statement_about_all_cells(
        analysis, w(key, k=facts.k, n=facts.n, missing=w.count("missing", len(facts.missing)))
    )


def _matrix_section(analysis: ReportAnalysis, chain: EvidenceChain, w: Catalogue) -> Iterator[str]:
    yield chain.tell(statement_of_matrix(analysis, w))
    yield render_markdown_table(coverage_matrix_grid(analysis, w)).rstrip()
    if missing := missing_cells_grid(analysis, w):
        yield render_markdown_table(missing).rstrip()


def _main_table_section(analysis: ReportAnalysis, chain: EvidenceChain, w: Catalogue) -> Iterator[str]:
    yield invalid_caution(analysis, w)
    yield _grid_as_claim(analysis, main_table_grid(analysis, w), chain, w)


def _comparison_section(analysis: ReportAnalysis, chain: EvidenceChain, w: Catalogue) -> Iterator[str]:
    plan = analysis.facts.plan
    if plan is None:
        yield w("compare.no_plan")
        return
    if not analysis.decision.comparisons:
        yield w("compare.none", column=plan.primary.name)
        return
    yield invalid_caution(analysis, w)
    yield render_markdown_table(comparison_table_grid(analysis, plan, chain, w)).rstrip()
    if others := other_columns_grid(analysis, plan, w):
        yield _grid_as_claim(analysis, others, chain, w)


def _safety_section(analysis: ReportAnalysis, chain: EvidenceChain, w: Catalogue) -> Iterator[str]:
    plan = analysis.facts.plan
    if plan is None or plan.limit is None:
        yield w("safety.none")
        return
    yield invalid_caution(analysis, w)
    yield render_markdown_table(safety_table_grid(analysis, plan, chain, w)).rstrip()
    yield from (chain.tell(each) for each in statements_of_dominance(analysis, w))


def _grid_as_claim(analysis: ReportAnalysis, grid: TableGrid, chain: EvidenceChain, w: Catalogue) -> str:
    """A table whose numbers are one claim."""
    made = statement_about_columns(
        analysis, w("claim.table", caption=grid.caption), analysis.facts.configs, analysis.facts.columns
    )
    return f"**{escape_markdown(grid.caption)}** {chain.mark(made)}\n\n{markdown_table_with_notes(grid)}"


def invalid_caution(analysis: ReportAnalysis, w: Catalogue) -> str:
    """Over numbers that are no result."""
    return f"> {w('invalid.caution')}" if analysis.decision.verdict == "INVALID" else ""


def _figure_section_item(analysis: ReportAnalysis, path: str, caption: str, w: Catalogue) -> str:
    """The mark of a partial report is told in the caption, unless it is there already."""
    mark = analysis.facts.mark
    shown = w("caption.marked", mark=mark, caption=caption) if mark and mark not in caption else caption
    return f"![{escape_link_label(PurePosixPath(path).name)}]({escape_link_target(path)})\n\n{escape_markdown(shown)}"
