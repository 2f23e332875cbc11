"""Answers about how the numbers came about: checkpoints, splits, seeds left out, identical runs, code."""

from __future__ import annotations

from collections.abc import Iterator

from muster.report.analysis import Analysis
from muster.report.coverage import configs_of
from muster.report.decision_report import history_statements, matrix_statement
from muster.report.declared import checkpoint_words, proxy_lines, splits_of
from muster.report.escape import markdown
from muster.report.estimates import format_of
from muster.report.facts import Column
from muster.report.flag_list import flag_statement
from muster.report.flag_words import by_level, flag_meaning, flag_standing
from muster.report.statement import Chain, Statement, about, about_all
from muster.report.verdict import missing_words
from muster.report.words import Words

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


def how_chosen(analysis: Analysis, chain: Chain, w: Words) -> Iterator[str]:
    plan, made = analysis.facts.plan, analysis.facts.made
    yield markdown(checkpoint_words(plan, w)) if plan else w("checkpoint.undeclared")
    held = {each.cell: each.saved_steps for each in made if each.saved_steps is not None}
    timed = {each.cell: each.saved_share for each in made if each.saved_share is not None and each.cell not in held}
    for key, shares in (("checkpoint.held", held), ("checkpoint.saved", timed)):
        if shares:
            percent = int(100 * min(shares.values()))
            text = w(key, trainings=w.count("training", len(shares)), percent=percent)
            yield chain.tell(Statement(text, tuple(shares)))
    if not held and not timed:
        yield w("checkpoint.unknown")
    yield from _flags(analysis, _OF_CHECKPOINTS, chain, w)


def what_splits_measure(analysis: Analysis, chain: Chain, w: Words) -> Iterator[str]:
    for line in proxy_lines(analysis, w):
        yield markdown(line)
    for split in (split for split, note in analysis.facts.proxies.items() if note):
        yield markdown(w("splits.proxy_only", split=split))
    yield from _flags(analysis, _OF_SPLITS, chain, w)
    metric, splits = _metric(analysis), splits_of(analysis)
    if len(splits) < 2 or metric is None:
        return
    for config in configs_of(analysis.facts, Column(splits[0], metric)):
        columns = [Column(split, metric) for split in splits]
        shown = [f"{column.name} {_mean(analysis, config, column)}" for column in columns]
        text = w("splits.means", config=config or analysis.facts.campaign, values=w.several(shown))
        yield chain.tell(about(analysis, text, [config], columns))


def what_was_left_out(analysis: Analysis, chain: Chain, w: Words) -> Iterator[str]:
    facts = analysis.facts
    if facts.missing:
        yield chain.tell(matrix_statement(analysis, w))
        key = "left_out.missing" if facts.partial else "left_out.explained"
        text = w(key, cells=missing_words(analysis, w, most=6))
        yield chain.tell(Statement(text, tuple(each.cell for each in facts.missing)))
    else:
        yield chain.tell(about_all(analysis, w("left_out.whole", n=facts.n)))
    yield from _flags(analysis, _OF_LOSSES, chain, w)
    if facts.excluded:
        names = ["/".join(part for part in each if part) for each in facts.excluded]
        places = w.count("place", len(names))
        yield markdown(w("left_out.excluded", places=places, names=w.some(names, most=6)))
    for each in history_statements(analysis, w):
        yield chain.tell(each)


def could_be_the_same(analysis: Analysis, chain: Chain, w: Words) -> Iterator[str]:
    flagged = list(_flags(analysis, _OF_IDENTITY, chain, w))
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
    yield chain.tell(Statement(text, tuple(each.cell for each in made)))


def is_it_reproducible(analysis: Analysis, chain: Chain, w: Words) -> Iterator[str]:
    yield markdown(w("reproduce.code", code=analysis.facts.code or w("code.not_yet")))
    mixed = list(_flags(analysis, _OF_CODE, chain, w))
    if mixed:
        yield w("reproduce.mixed")
        yield from mixed
    yield from _flags(analysis, _OF_FILES, chain, w)
    yield w("reproduce.how")


def _flags(analysis: Analysis, codes: tuple[str, ...], chain: Chain, w: Words) -> Iterator[str]:
    """The flags of these codes in words, with what they mean said once for each code."""
    seen: dict[str, int] = {}
    for flag in by_level(analysis.flags):
        if flag.code not in codes:
            continue
        seen[flag.code] = seen.get(flag.code, 0) + 1
        if seen[flag.code] <= _MOST_FLAGS:
            meaning = markdown(flag_meaning(flag, w.language)) if seen[flag.code] == 1 else ""
            made = flag_statement(analysis, flag, w)
            standing = markdown(flag_standing(flag, w.language))
            yield f"**{flag.level}** {w.sentences(markdown(made.text), meaning, standing)} {chain.mark(made)}"
    for code, count in seen.items():
        if count > _MOST_FLAGS:
            yield w("flags.more", n=count - _MOST_FLAGS, code=f"`{code}`")


def _metric(analysis: Analysis) -> str | None:
    """The primary one, or the first there is on a split."""
    plan, splits = analysis.facts.plan, splits_of(analysis)
    if plan is not None:
        return plan.primary.metric
    return next((metric for each in analysis.facts.measured if each.head in splits for metric in each.results), None)


def _mean(analysis: Analysis, config: str, column: Column) -> str:
    sample = analysis.sample(config, column)
    return format_of(analysis, column)(sample.mean) if sample.n else "—"
