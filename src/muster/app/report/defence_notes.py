"""The defence notes: what a committee would ask, answered with the numbers there are and with their limits. Here are
the answers about how they came about: checkpoints, splits, seeds left out, identical runs, code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from muster.app.campaign.stamp import ReportText
from muster.app.facts.report_analysis import ReportAnalysis, configs_of_column
from muster.app.facts.report_facts import ResultColumn
from muster.app.report.decision_report import (
    describe_checkpoint_choice,
    invalid_caution,
    path_of_report_text,
    proxy_note_lines,
    report_title,
    splits_in_columns,
    statement_of_matrix,
    statements_of_history,
)
from muster.app.report.defence_numbers import (
    answer_depends_on_one_seed,
    answer_how_many_compared,
    answer_is_it_real,
    answer_is_it_safe,
    answer_what_cannot_be_claimed,
    answer_what_is_claimed,
    answer_what_money_buys,
    answer_what_parts_contribute,
    answer_why_so_many_seeds,
)
from muster.app.report.estimates import format_of_column
from muster.app.report.evidence_chain import (
    EvidenceChain,
    ReportStatement,
    statement_about_all_cells,
    statement_about_columns,
)
from muster.app.report.red_flag_text import (
    describe_flag_meaning,
    describe_flag_weight,
    sort_flags_by_level,
    statement_about_flag,
)
from muster.app.report.seed_statements import describe_all_seeds
from muster.app.report.verdict_sentences import list_missing_cells
from muster.text.catalogue import Catalogue, load_catalogue
from muster.text.escape_markup import escape_markdown

_OF_CHECKPOINTS = (
    "early_checkpoint",
    "other_checkpoint",
    "checkpoint_changed",
    "best_on_reported",
    "cost_at_best",
    "best_at_an_end",
    "best_and_last",
    "best_beside_last",
)
_OF_IDENTITY = (
    "same_values",
    "same_seeds",
    "same_row",
    "one_checkpoint",
    "one_curve",
    "one_result",
    "same_settings",
    "label_contradicts",
)
_OF_SPLITS = ("same_splits", "proxy_undeclared")
_OF_CODE = ("mixed_definitions", "outdated", "mixed_sources", "mixed_commits", "mixed_code")
_OF_LOSSES = ("failed_seeds", "lost_seeds", "withdrawn", "dropped_rows")
_OF_FILES = ("lost_result", "changed_result")
_MOST_FLAGS = 4  # of one code; the decision report has them all


def answer_how_checkpoint_chosen(analysis: ReportAnalysis, chain: EvidenceChain, w: Catalogue) -> Iterator[str]:
    plan, made = analysis.facts.plan, analysis.facts.made
    yield escape_markdown(describe_checkpoint_choice(plan, w)) if plan else w("checkpoint.undeclared")
    held = {each.cell: each.saved_steps for each in made if each.saved_steps is not None}
    timed = {each.cell: each.saved_share for each in made if each.saved_share is not None and each.cell not in held}
    for key, shares in (("checkpoint.held", held), ("checkpoint.saved", timed)):
        if shares:
            percent = int(100 * min(shares.values()))
            text = w(key, trainings=w.count("training", len(shares)), percent=percent)
            yield chain.tell(ReportStatement(text, tuple(shares)))
    if not held and not timed:
        yield w("checkpoint.unknown")
    yield from _flag_lines_of_codes(analysis, _OF_CHECKPOINTS, chain, w)


def answer_what_splits_measure(analysis: ReportAnalysis, chain: EvidenceChain, w: Catalogue) -> Iterator[str]:
    for line in proxy_note_lines(analysis, w):
        yield escape_markdown(line)
    for split in (split for split, note in analysis.facts.proxies.items() if note):
        yield escape_markdown(w("splits.proxy_only", split=split))
    yield from _flag_lines_of_codes(analysis, _OF_SPLITS, chain, w)
    metric, splits = _metric_on_splits(analysis), splits_in_columns(analysis)
    if len(splits) < 2 or metric is None:
        return
    for config in configs_of_column(analysis.facts, ResultColumn(splits[0], metric)):
        columns = [ResultColumn(split, metric) for split in splits]
        shown = [f"{column.name} {_format_mean_of_config(analysis, config, column)}" for column in columns]
        text = w("splits.means", config=config or analysis.facts.campaign, values=w.several(shown))
        yield chain.tell(statement_about_columns(analysis, text, [config], columns))


def answer_what_was_left_out(analysis: ReportAnalysis, chain: EvidenceChain, w: Catalogue) -> Iterator[str]:
    facts = analysis.facts
    if facts.missing:
        yield chain.tell(statement_of_matrix(analysis, w))
        key = "left_out.missing" if facts.partial else "left_out.explained"
        text = w(key, cells=list_missing_cells(analysis, w, most=6))
        yield chain.tell(ReportStatement(text, tuple(each.cell for each in facts.missing)))
    else:
        yield chain.tell(statement_about_all_cells(analysis, w("left_out.whole", n=facts.n)))
    yield from _flag_lines_of_codes(analysis, _OF_LOSSES, chain, w)
    if facts.excluded:
        names = ["/".join(part for part in each if part) for each in facts.excluded]
        places = w.count("place", len(names))
        yield escape_markdown(w("left_out.excluded", places=places, names=w.some(names, most=6)))
    for each in statements_of_history(analysis, w):
        yield chain.tell(each)


def answer_could_be_same_run(analysis: ReportAnalysis, chain: EvidenceChain, w: Catalogue) -> Iterator[str]:
    flagged = list(_flag_lines_of_codes(analysis, _OF_IDENTITY, chain, w))
    if flagged:
        proven = any(flag.grave and flag.code in _OF_IDENTITY for flag in analysis.flags)
        yield w("same_run.flagged" if proven else "same_run.warned")
        yield from flagged
    else:
        yield w("same_run.no_flag")
    made = [each for each in analysis.facts.made if each.trained]
    known = {
        name: sum(getattr(each, name) is not None for each in made) for name in ("checkpoint", "curve", "settings")
    }
    if not any(known.values()):
        yield w("same_run.nothing_known")
        return
    text = w(
        "same_run.known",
        trainings=w.count("training", len(made)),
        checkpoints=known["checkpoint"],
        curves=known["curve"],
        settings=known["settings"],
    )
    yield chain.tell(ReportStatement(text, tuple(each.cell for each in made)))


def answer_is_it_reproducible(analysis: ReportAnalysis, chain: EvidenceChain, w: Catalogue) -> Iterator[str]:
    yield escape_markdown(w("reproduce.code", code=analysis.facts.code or w("code.not_yet")))
    mixed = list(_flag_lines_of_codes(analysis, _OF_CODE, chain, w))
    if mixed:
        yield w("reproduce.mixed")
        yield from mixed
    yield from _flag_lines_of_codes(analysis, _OF_FILES, chain, w)
    yield w("reproduce.how")


def _flag_lines_of_codes(
    analysis: ReportAnalysis, codes: tuple[str, ...], chain: EvidenceChain, w: Catalogue
) -> Iterator[str]:
    """The flags of these codes in words, with what they mean said once for each code."""
    seen: dict[str, int] = {}
    for flag in sort_flags_by_level(analysis.flags):
        if flag.code not in codes:
            continue
        seen[flag.code] = seen.get(flag.code, 0) + 1
        if seen[flag.code] <= _MOST_FLAGS:
            meaning = escape_markdown(describe_flag_meaning(flag, w.language)) if seen[flag.code] == 1 else ""
            made = statement_about_flag(analysis, flag, w)
            standing = escape_markdown(describe_flag_weight(flag, w.language))
            yield f"**{flag.level}** {w.sentences(escape_markdown(made.text), meaning, standing)} {chain.mark(made)}"
    for code, count in seen.items():
        if count > _MOST_FLAGS:
            yield w("flags.more", n=count - _MOST_FLAGS, code=f"`{code}`")


def _metric_on_splits(analysis: ReportAnalysis) -> str | None:
    """The primary one, or the first there is on a split."""
    plan, splits = analysis.facts.plan, splits_in_columns(analysis)
    if plan is not None:
        return plan.primary.metric
    return next((metric for each in analysis.facts.measured if each.head in splits for metric in each.results), None)


def _format_mean_of_config(analysis: ReportAnalysis, config: str, column: ResultColumn) -> str:
    sample = analysis.sample(config, column)
    return format_of_column(analysis, column)(sample.mean) if sample.n else "—"


AnswerFunction = Callable[[ReportAnalysis, EvidenceChain, Catalogue], Iterator[str]]


def render_defence_notes(analysis: ReportAnalysis, path: str = "") -> ReportText:
    """`path`: where the notes will lie, for the commands in them."""
    w, chain = load_catalogue("report", analysis.facts.language), EvidenceChain()
    parts = [
        report_title(analysis, "defence.title", w),
        w("defence.about"),
        *filter(None, [invalid_caution(analysis, w)]),
    ]
    for number, (question, answer) in enumerate(_questions_and_answers(analysis, w), start=1):
        parts.append(f"## {number}. {question}")
        parts.append("\n".join(f"- {line}" for line in answer(analysis, chain, w)))
    parts += [f"## {w('section.evidence')}", chain.table(w, path or path_of_report_text(analysis, "defence"))]
    return ReportText("\n\n".join(parts) + "\n", chain.claims)


def _questions_and_answers(analysis: ReportAnalysis, w: Catalogue) -> Iterator[tuple[str, AnswerFunction]]:
    yield w("ask.claim"), answer_what_is_claimed
    yield w("ask.real"), answer_is_it_real
    yield w("ask.seeds", seeds=describe_all_seeds(analysis, w)), answer_why_so_many_seeds
    yield w("ask.seed"), answer_depends_on_one_seed
    yield w("ask.checkpoint"), answer_how_checkpoint_chosen
    if splits := splits_in_columns(analysis):
        yield (
            w("ask.ood" if any("ood" in split.lower() for split in splits) else "ask.splits"),
            answer_what_splits_measure,
        )
    yield w("ask.safety"), answer_is_it_safe
    yield w("ask.left_out"), answer_what_was_left_out
    yield w("ask.same_run"), answer_could_be_same_run
    yield w("ask.many"), answer_how_many_compared
    if analysis.facts.plan is not None and analysis.facts.plan.factors:
        yield w("ask.parts"), answer_what_parts_contribute
    yield w("ask.reproduce"), answer_is_it_reproducible
    yield w("ask.money"), answer_what_money_buys
    yield w("ask.not"), answer_what_cannot_be_claimed
