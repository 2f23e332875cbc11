"""The report of a loop in Markdown: the best variant and how sure that is, what comes next, what went wrong; then
runs, lineage, rules and numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from muster.app.loop.lineage_pictures import lineage_as_mermaid
from muster.app.loop.loop_facts import LoopFacts, LoopRun, LoopVariant
from muster.app.loop.loop_wording import LoopWords, cut_at_word_end, escape_table_bars
from muster.rules.metric_summary import Summary
from muster.stats.samples import LEAST_FOR_INTERVAL
from muster.text.describe_run import describe_resumed_log
from muster.text.escape_markup import escape_link_label, escape_link_target, escape_markdown
from muster.text.number_format import format_p_value
from muster.text.sentences import LONGEST_QUOTE, format_inline_code, group_cell_names

MOST_NAMED_CAUSES = 20  # causes that are told one by one


def bottom_line_of_loop(facts: LoopFacts, say: LoopWords) -> Iterator[str]:
    first, *more = _describe_best_variant(facts, say)
    yield f"- {first}"
    yield from (f"  - {each}" for each in more if each)
    yield f"- {_describe_what_follows(facts, say)}"
    yield from _list_troubled_runs(facts, say)


# -- the best


def _describe_best_variant(facts: LoopFacts, say: LoopWords) -> list[str]:
    best = facts.best
    if not facts.by:
        return [say("loop.no_rank")]
    if best is None:
        why = next((each.unscored for each in facts.variants if each.unscored), "")
        if facts.over and facts.runs:
            return [say("loop.no_score_why", by=format_inline_code(facts.by), why=say.recorded(why))]
        return [say("loop.no_score", by=format_inline_code(facts.by))]
    named = say(
        "loop.best",
        name=format_inline_code(best.name),
        round=best.variant.round,
        by=format_inline_code(facts.by),
        score=say.score(best),
        better=say(f"loop.{facts.better}"),
    )
    scored = sum(bool(each.values) for each in facts.variants)
    if facts.identical:
        return [say("loop.identical", n=scored, by=format_inline_code(facts.by), score=say.short(best))]
    sure, top = _describe_certainty(facts, best, say), _describe_better_mean(facts, best, say)
    few = say("loop.few") if _rests_on_few_seeds(facts, best) else ""
    return [
        named,
        sure,
        top,
        few,
        say("loop.chosen", n=scored) if scored > 1 else "",
        _describe_failed_repeats(best, say),
    ]


def _describe_certainty(facts: LoopFacts, best: LoopVariant, say: LoopWords) -> str:
    if best.is_base:
        others = [each for each in facts.variants if each.values and each is not best]
        if all(each.is_base for each in others):
            return say("loop.only_bases_one") if others and best.n == 1 else ""
        return say("loop.is_base" if best.n > 1 else "loop.is_base_one")
    found = facts.against
    if found is None:
        return say("loop.no_base")
    base = facts.variant(found.base)
    parts = {
        "base": format_inline_code(found.base),
        "score": say.inner(base),
        "gain": say.gain_format(found.difference),
    }
    if found.beyond is not None and found.interval is not None:
        interval = say.gain_format.interval(found.interval)
        return say(
            "loop.beyond" if found.beyond else "loop.within", interval=interval, p=format_p_value(found.p), **parts
        )
    return say("loop.no_spread" if best.n > 1 and base.n > 1 else "loop.one_seed", **parts)


def _variant_with_better_mean(facts: LoopFacts, best: LoopVariant) -> LoopVariant | None:
    top = facts.top
    return None if top is None or top is best or top.mean == best.mean else top


def _describe_better_mean(facts: LoopFacts, best: LoopVariant, say: LoopWords) -> str:
    """A better mean that is not beyond the noise is told: somebody will see it in the table."""
    top = _variant_with_better_mean(facts, best)
    return (
        say("loop.top" if top.n > 1 else "loop.top_one", name=format_inline_code(top.name), score=say.inner(top))
        if top
        else ""
    )


def _rests_on_few_seeds(facts: LoopFacts, best: LoopVariant) -> bool:
    """What was said of the noise rests on two seeds somewhere. Of one it is told on the spot."""
    against = facts.variant(facts.against.base) if facts.against and facts.against.p is not None else None
    compared = [each for each in (against, _variant_with_better_mean(facts, best)) if each]
    return bool(compared) and 1 < min(each.n for each in (best, *compared)) < LEAST_FOR_INTERVAL


def _describe_failed_repeats(best: LoopVariant, say: LoopWords) -> str:
    bad = sum(run.verdict != "DONE" and run.over for run in best.runs)
    return say("loop.died", n=bad, all=len(best.runs)) if bad else ""


# -- what comes next


def _describe_what_follows(facts: LoopFacts, say: LoopWords) -> str:
    if facts.stopped:
        return say("loop.stopped", why=say.stop(facts.stopped))
    runs = [run for each in facts.of_round(facts.round) for run in each.runs]
    over = sum(run.over for run in runs)
    parts = {"round": facts.round, "most": facts.most}
    ready = facts.intent if facts.intent != "running" else "busy" if facts.busy else "idle"
    how = say(f"loop.how_{ready}")
    if runs and over == len(runs):
        return say("loop.next_due", how=how, **parts)
    begun = over or any(run.verdict in ("RUNNING", "QUIET", "STALLED", "UNKNOWN") for run in runs)
    if begun:
        return say("loop.next_running", k=over, n=len(runs), **parts)
    variants = say.count("loop_variant", len(facts.of_round(facts.round)))
    return say("loop.next_ready", variants=variants, how=how, **parts)


# -- what went wrong


def _list_troubled_runs(facts: LoopFacts, say: LoopWords) -> Iterator[str]:
    found = [run for run in facts.runs if run.trouble]
    if not found:
        yield f"- {say('loop.fine' if facts.over else 'loop.fine_so_far')}"
        return
    every = len(found) == len(facts.runs)
    yield f"- {say('loop.trouble_all' if every else 'loop.trouble', n=len(found), all=len(facts.runs))}"
    alike: dict[tuple[str, str], list[str]] = {}
    for run in found:
        alike.setdefault((run.verdict, _cause_or_lost_history(run, say)), []).append(run.cell)
    for (verdict, why), cells in list(alike.items())[:MOST_NAMED_CAUSES]:
        named = say("comma").join(format_inline_code(each) for each in group_cell_names(cells))
        yield f"  - {say('loop.told', head=named, text=say('loop.told', head=verdict, text=why))}"
    if len(alike) > MOST_NAMED_CAUSES:
        left = sum(len(cells) for cells in list(alike.values())[MOST_NAMED_CAUSES:])
        yield f"  - {say('loop.trouble_more', n=left)}"


def cause_of_loop_run(run: LoopRun, say: LoopWords, most: int) -> str:
    """Its cause, or that it left no history. The JSON has both in full."""
    if run.why:
        return say.recorded(run.why, most)
    return say("loop.no_cause" if run.summaries else "loop.left_none")


def _cause_or_lost_history(run: LoopRun, say: LoopWords) -> str:
    """Where the cause tells nothing of it, what became of its history, too."""
    if not run.why and run.unread and not run.summaries:
        unread = run.unread.replace(run.output, "its output") if run.output else run.unread
        return say("loop.no_history", why=say.recorded(cut_at_word_end(unread, LONGEST_QUOTE)))
    left = say("semicolon") + say("loop.left_none") if run.why and not run.summaries else ""
    return cause_of_loop_run(run, say, LONGEST_QUOTE) + left


_WANDB = re.compile(r"https://(?:[a-z0-9-]+\.)?wandb\.ai/[\w./~%-]*", re.ASCII)
LONGEST_CAUSE = 90  # characters of a cause in a table
LARGEST_PERCENT = 1e6  # percent that are told: the first value was next to nothing
CURVE, TREE = "best_so_far", "lineage.svg"
DITTO_SIGN = "″"


def loop_report_markdown(
    facts: LoopFacts, drawn: Sequence[str] = (), undrawn: str = "", unnamed: Sequence[str] = ()
) -> str:
    """`drawn`: the pictures that lie beside it. `undrawn`: why the curve does not; `unnamed`: what it can't spell."""
    say = LoopWords(facts)
    parts = [
        [f"# {_loop_report_title(facts, say)}"],
        list(bottom_line_of_loop(facts, say)),
        list(_loop_runs_section(facts, say)),
        list(_loop_lineage_section(facts, say, drawn)),
        list(_loop_curve_section(facts, say, drawn, undrawn, unnamed)),
        list(_loop_rules_section(facts, say)),
        list(_loop_metrics_section(facts, say)),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _loop_report_title(facts: LoopFacts, say: LoopWords) -> str:
    rounds, variants = say.count("loop_round", facts.round), say.count("loop_variant", len(facts.variants))
    title = say("loop.title", campaign=escape_markdown(facts.campaign), rounds=rounds, variants=variants)
    mark = say.unfinished(facts)
    return say("marked", title=title, mark=mark) if mark else title


# -- a row for each run


def _loop_runs_section(facts: LoopFacts, say: LoopWords) -> Iterator[str]:
    urls = any(run.url for run in facts.runs)
    ranked = ["value"] if facts.by else []
    names = ["run", "round", "verdict", *ranked, "parent", "reason", "edits", "config", "output"]
    yield f"## {say('loop.runs')}"
    yield ""
    rows = [row for each in facts.variants for row in _loop_run_rows(facts, each, say, urls=urls)]
    yield from loop_markdown_table(
        [*(say(f"loop.{name}") for name in names), *([say("loop.wandb")] if urls else [])], rows
    )
    note = (
        say("loop.runs_note", by=format_inline_code(facts.by), better=say(f"loop.{facts.better}")) if facts.by else ""
    )
    same = say("loop.same") if any(len(each.runs) > 1 for each in facts.variants) else ""
    if note or same:
        yield ""
        yield say.sentences(note, same)


def _loop_run_rows(facts: LoopFacts, of: LoopVariant, say: LoopWords, *, urls: bool) -> Iterator[list[str]]:
    variant = of.variant
    config = link_loop_file(of.config.rpartition("/")[2], of.config)
    parent = escape_markdown(variant.parent) if variant.parent else say("loop.base")
    told = [parent, _reason_cell(variant.reason, say) or "—", escape_markdown(", ".join(variant.edits)) or "—", config]
    for at, run in enumerate(of.runs or (LoopRun("", "PENDING"),)):
        name = escape_markdown(run.cell) if run.cell else escape_markdown(variant.name)
        score = [_score_cell(of, say) if not at else DITTO_SIGN] if facts.by else []
        output = link_loop_file(say("loop.output"), run.output) if run.output else "—"
        more = [link_loop_file("W&B", run.url) if run.url else "—"] if urls else []
        same = told if not at else [DITTO_SIGN] * len(told)
        yield [name, str(variant.round), _verdict_cell(run, say), *score, *same, output, *more]


def _score_cell(of: LoopVariant, say: LoopWords) -> str:
    if not of.values:
        return say("marked", title="—", mark=say("loop.not_yet")) if of.state == "waiting" else "—"
    return say.short(of) + (say("semicolon") + say.gain(of.gain) if of.gain is not None else "")


def _verdict_cell(run: LoopRun, say: LoopWords) -> str:
    if not run.trouble:
        return run.verdict
    return say("loop.told", head=run.verdict, text=escape_table_bars(cause_of_loop_run(run, say, LONGEST_CAUSE)))


def _reason_cell(reason: str, say: LoopWords) -> str:
    """People's words as they are; those of a search in this language."""
    return escape_table_bars(say.known(reason)) or escape_markdown(reason)


def link_loop_file(text: str, target: str) -> str:
    """To a file of the campaign, from the report's own folder; elsewhere as it is."""
    if target.startswith(("http://", "https://")):
        known = _WANDB.fullmatch(target)  # a run may print whatever address it likes
        return f"[{escape_link_label(text)}]({target})" if known else format_inline_code(target.replace("|", "%7C"))
    return f"[{escape_link_label(text)}]({escape_link_target(target if target.startswith('/') else f'../../{target}')})"


def loop_markdown_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()
) -> Iterator[str]:
    """`numbers`: columns that are set to the right."""
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join('---:' if at in numbers else '---' for at in range(len(head)))} |"
    for row in rows:
        yield f"| {' | '.join(row)} |"


# -- pictures


def _loop_lineage_section(facts: LoopFacts, say: LoopWords, drawn: Sequence[str]) -> Iterator[str]:
    yield f"## {say('loop.lineage')}"
    yield ""
    yield say("loop.lineage_note")
    yield ""
    if TREE in drawn:
        yield f"![{say('loop.picture', campaign=escape_markdown(facts.campaign))}]({TREE})"
        yield ""
    yield from lineage_as_mermaid(facts, say)


def _loop_curve_section(
    facts: LoopFacts, say: LoopWords, drawn: Sequence[str], undrawn: str, unnamed: Sequence[str]
) -> Iterator[str]:
    if not facts.course:
        return
    yield f"## {say('loop.curve')}"
    yield ""
    repeated = any(each.n > 1 for each in facts.variants)
    words = {"by": format_inline_code(facts.by), "better": say(f"loop.{facts.better}")}
    if undrawn:
        yield say("loop.undrawn", why=escape_markdown(undrawn))
        return
    if f"{CURVE}.png" in drawn:
        yield f"![{say('loop.curve')}]({CURVE}.png)"
        yield ""
    caption = say("loop.caption" if repeated else "loop.caption_one", **words)
    left_out = say("loop.unnamed", names=say("comma").join(map(format_inline_code, unnamed))) if unnamed else ""
    yield say.sentences(caption, left_out)


# -- rules


def _loop_rules_section(facts: LoopFacts, say: LoopWords) -> Iterator[str]:
    yield f"## {say('loop.rules')}"
    yield ""
    if not facts.rules:
        yield say("loop.rules_none")
        return
    names = ["rule", "reason", "made", *(["scored", "won", "mean_gain"] if facts.by else [])]
    rows = []
    for each in facts.rules:
        row = [escape_markdown(each.rule), _reason_cell(each.reason, say), str(each.made)]
        if facts.by:
            gain = "—" if each.mean is None else say.signed(each.mean)
            gain += f" {say.gain_format.interval(each.interval)}" if each.interval else ""
            row += [str(len(each.gains)), str(each.better), gain]
        rows.append(row)
    yield from loop_markdown_table([say(f"loop.{name}") for name in names], rows, (2, 3, 4, 5))
    yield ""
    if not facts.by:
        yield say("loop.rules_unranked")
        return
    yield say("loop.rules_note", by=format_inline_code(facts.by), better=say(f"loop.{facts.better}"))
    yield ""
    if facts.noise is None:
        yield say("loop.noise_one")
    else:
        repeats = max(each.n for each in facts.variants)
        pair = facts.noise * (2 / repeats) ** 0.5
        yield say("loop.noise", sd=say.spread(facts.noise), pair=say.spread(pair))


# -- what was logged


def _loop_metrics_section(facts: LoopFacts, say: LoopWords) -> Iterator[str]:
    yield f"## {say('loop.logged')}"
    yield ""
    if not facts.keys:
        yield say("loop.nothing_logged")
        return
    yield say.sentences(say("loop.logged_note"), say("loop.more_keys", n=facts.more_keys) if facts.more_keys else "")
    for key in facts.keys:
        yield ""
        better = facts.directions.get(key)
        head = format_inline_code(key)
        yield f"### {say('marked', title=head, mark=say(f'loop.{better}')) if better else head}"
        yield ""
        names = ["run", "first", "last", "best_value" if better else "range", "delta", "percent"]
        rows = [_metric_cells(run, run.summaries.get(key), better, say) for run in facts.runs if run.summaries]
        yield from loop_markdown_table([say(f"loop.{name}") for name in names], rows, range(1, 6))
    resumed = [(run.cell, describe_resumed_log(run.resumed, facts.language)) for run in facts.runs if run.resumed]
    yield from [""] if resumed else []
    yield from (
        f"- {say('loop.told', head=format_inline_code(cell), text=text)}{say('stop')}" for cell, text in resumed
    )


def _metric_cells(run: LoopRun, summary: Summary | None, better: str | None, say: LoopWords) -> list[str]:
    name = escape_markdown(run.cell)
    if summary is None or not summary.count:
        return [name, *["—"] * 5]
    if summary.nan:
        name = say("marked", title=name, mark=say("loop.nans", n=summary.nan, all=summary.count))
    best = (
        format_logged_number(summary.best(better))
        if better
        else f"{format_logged_number(summary.min)} … {format_logged_number(summary.max)}"
    )
    percent = _percent_cell(summary.pct)
    delta = "—" if summary.delta is None else f"{summary.delta:+.4g}"
    return [name, format_logged_number(summary.first), format_logged_number(summary.last), best, delta, percent]


def _percent_cell(value: float | None) -> str:
    if value is None:
        return "—"
    if abs(value) >= LARGEST_PERCENT:
        return f"{'<' if value < 0 else '>'} {math.copysign(LARGEST_PERCENT, value):+,.0f}"
    shown = f"{value:+,.1f}"
    return "+0.0" if shown == "-0.0" else shown


def format_logged_number(value: float | None) -> str:
    """Four digits that count; what is no number is told as what it is."""
    if value is None:
        return "—"
    if math.isnan(value):
        return "NaN"
    return str(int(value)) if abs(value) < 1e7 and float(value).is_integer() else f"{value:.4g}"
