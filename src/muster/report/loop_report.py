"""The report of a loop in Markdown: the bottom line first, then runs, lineage, curve, rules, numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from muster.report.escape import label, markdown
from muster.report.escape import target as link_target
from muster.report.loop_bottom import bottom, why_of
from muster.report.loop_facts import LoopFacts, LoopRun, LoopVariant
from muster.report.loop_mermaid import mermaid
from muster.report.loop_say import Say, in_cell
from muster.report.record_wording import code
from muster.report.resumed import resumed_text
from muster.rounds.summary import Summary

_WANDB = re.compile(r"https://(?:[a-z0-9-]+\.)?wandb\.ai/[\w./~%-]*", re.ASCII)
SHORT = 90  # characters of a cause in a table
LARGEST = 1e6  # percent that are told: the first value was next to nothing
CURVE, TREE = "best_so_far", "lineage.svg"
SAME = "″"


def loop_markdown(facts: LoopFacts, drawn: Sequence[str] = (), undrawn: str = "", unnamed: Sequence[str] = ()) -> str:
    """`drawn`: the pictures that lie beside it. `undrawn`: why the curve does not; `unnamed`: what it can't spell."""
    say = Say(facts)
    parts = [
        [f"# {_title(facts, say)}"],
        list(bottom(facts, say)),
        list(_runs(facts, say)),
        list(_lineage(facts, say, drawn)),
        list(_curve(facts, say, drawn, undrawn, unnamed)),
        list(_rules(facts, say)),
        list(_logged(facts, say)),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _title(facts: LoopFacts, say: Say) -> str:
    rounds, variants = say.count("loop_round", facts.round), say.count("loop_variant", len(facts.variants))
    title = say("loop.title", campaign=markdown(facts.campaign), rounds=rounds, variants=variants)
    mark = say.unfinished(facts)
    return say("marked", title=title, mark=mark) if mark else title


# -- a row for each run


def _runs(facts: LoopFacts, say: Say) -> Iterator[str]:
    urls = any(run.url for run in facts.runs)
    ranked = ["value"] if facts.by else []
    names = ["run", "round", "verdict", *ranked, "parent", "reason", "edits", "config", "output"]
    yield f"## {say('loop.runs')}"
    yield ""
    rows = [row for each in facts.variants for row in _rows(facts, each, say, urls=urls)]
    yield from table([*(say(f"loop.{name}") for name in names), *([say("loop.wandb")] if urls else [])], rows)
    note = say("loop.runs_note", by=code(facts.by), better=say(f"loop.{facts.better}")) if facts.by else ""
    same = say("loop.same") if any(len(each.runs) > 1 for each in facts.variants) else ""
    if note or same:
        yield ""
        yield say.sentences(note, same)


def _rows(facts: LoopFacts, of: LoopVariant, say: Say, *, urls: bool) -> Iterator[list[str]]:
    variant = of.variant
    config = link(of.config.rpartition("/")[2], of.config)
    parent = markdown(variant.parent) if variant.parent else say("loop.base")
    told = [parent, _reason(variant.reason, say) or "—", markdown(", ".join(variant.edits)) or "—", config]
    for at, run in enumerate(of.runs or (LoopRun("", "PENDING"),)):
        name = markdown(run.cell) if run.cell else markdown(variant.name)
        score = [_score(of, say) if not at else SAME] if facts.by else []
        output = link(say("loop.output"), run.output) if run.output else "—"
        more = [link("W&B", run.url) if run.url else "—"] if urls else []
        same = told if not at else [SAME] * len(told)
        yield [name, str(variant.round), _verdict(run, say), *score, *same, output, *more]


def _score(of: LoopVariant, say: Say) -> str:
    if not of.values:
        return say("marked", title="—", mark=say("loop.not_yet")) if of.state == "waiting" else "—"
    return say.short(of) + (say("semicolon") + say.gain(of.gain) if of.gain is not None else "")


def _verdict(run: LoopRun, say: Say) -> str:
    if not run.trouble:
        return run.verdict
    return say("loop.told", head=run.verdict, text=in_cell(why_of(run, say, SHORT)))


def _reason(reason: str, say: Say) -> str:
    """People's words as they are; those of a search in this language."""
    return in_cell(say.known(reason)) or markdown(reason)


def link(text: str, target: str) -> str:
    """To a file of the campaign, from the report's own folder; elsewhere as it is."""
    if target.startswith(("http://", "https://")):
        known = _WANDB.fullmatch(target)  # a run may print whatever address it likes
        return f"[{label(text)}]({target})" if known else code(target.replace("|", "%7C"))
    return f"[{label(text)}]({link_target(target if target.startswith('/') else f'../../{target}')})"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> Iterator[str]:
    """`numbers`: columns that are set to the right."""
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join('---:' if at in numbers else '---' for at in range(len(head)))} |"
    for row in rows:
        yield f"| {' | '.join(row)} |"


# -- pictures


def _lineage(facts: LoopFacts, say: Say, drawn: Sequence[str]) -> Iterator[str]:
    yield f"## {say('loop.lineage')}"
    yield ""
    yield say("loop.lineage_note")
    yield ""
    if TREE in drawn:
        yield f"![{say('loop.picture', campaign=markdown(facts.campaign))}]({TREE})"
        yield ""
    yield from mermaid(facts, say)


def _curve(facts: LoopFacts, say: Say, drawn: Sequence[str], undrawn: str, unnamed: Sequence[str]) -> Iterator[str]:
    if not facts.course:
        return
    yield f"## {say('loop.curve')}"
    yield ""
    repeated = any(each.n > 1 for each in facts.variants)
    words = {"by": code(facts.by), "better": say(f"loop.{facts.better}")}
    if undrawn:
        yield say("loop.undrawn", why=markdown(undrawn))
        return
    if f"{CURVE}.png" in drawn:
        yield f"![{say('loop.curve')}]({CURVE}.png)"
        yield ""
    caption = say("loop.caption" if repeated else "loop.caption_one", **words)
    left_out = say("loop.unnamed", names=say("comma").join(map(code, unnamed))) if unnamed else ""
    yield say.sentences(caption, left_out)


# -- rules


def _rules(facts: LoopFacts, say: Say) -> Iterator[str]:
    yield f"## {say('loop.rules')}"
    yield ""
    if not facts.rules:
        yield say("loop.rules_none")
        return
    names = ["rule", "reason", "made", *(["scored", "won", "mean_gain"] if facts.by else [])]
    rows = []
    for each in facts.rules:
        row = [markdown(each.rule), _reason(each.reason, say), str(each.made)]
        if facts.by:
            gain = "—" if each.mean is None else say.signed(each.mean)
            gain += f" {say.gain_format.interval(each.interval)}" if each.interval else ""
            row += [str(len(each.gains)), str(each.better), gain]
        rows.append(row)
    yield from table([say(f"loop.{name}") for name in names], rows, (2, 3, 4, 5))
    yield ""
    if not facts.by:
        yield say("loop.rules_unranked")
        return
    yield say("loop.rules_note", by=code(facts.by), better=say(f"loop.{facts.better}"))
    yield ""
    if facts.noise is None:
        yield say("loop.noise_one")
    else:
        repeats = max(each.n for each in facts.variants)
        pair = facts.noise * (2 / repeats) ** 0.5
        yield say("loop.noise", sd=say.spread(facts.noise), pair=say.spread(pair))


# -- what was logged


def _logged(facts: LoopFacts, say: Say) -> Iterator[str]:
    yield f"## {say('loop.logged')}"
    yield ""
    if not facts.keys:
        yield say("loop.nothing_logged")
        return
    yield say.sentences(say("loop.logged_note"), say("loop.more_keys", n=facts.more_keys) if facts.more_keys else "")
    for key in facts.keys:
        yield ""
        better = facts.directions.get(key)
        head = code(key)
        yield f"### {say('marked', title=head, mark=say(f'loop.{better}')) if better else head}"
        yield ""
        names = ["run", "first", "last", "best_value" if better else "range", "delta", "percent"]
        rows = [_numbers(run, run.summaries.get(key), better, say) for run in facts.runs if run.summaries]
        yield from table([say(f"loop.{name}") for name in names], rows, range(1, 6))
    resumed = [(run.cell, resumed_text(run.resumed, facts.language)) for run in facts.runs if run.resumed]
    yield from [""] if resumed else []
    yield from (f"- {say('loop.told', head=code(cell), text=text)}{say('stop')}" for cell, text in resumed)


def _numbers(run: LoopRun, summary: Summary | None, better: str | None, say: Say) -> list[str]:
    name = markdown(run.cell)
    if summary is None or not summary.count:
        return [name, *["—"] * 5]
    if summary.nan:
        name = say("marked", title=name, mark=say("loop.nans", n=summary.nan, all=summary.count))
    best = number(summary.best(better)) if better else f"{number(summary.min)} … {number(summary.max)}"
    percent = _percent(summary.pct)
    delta = "—" if summary.delta is None else f"{summary.delta:+.4g}"
    return [name, number(summary.first), number(summary.last), best, delta, percent]


def _percent(value: float | None) -> str:
    if value is None:
        return "—"
    if abs(value) >= LARGEST:
        return f"{'<' if value < 0 else '>'} {math.copysign(LARGEST, value):+,.0f}"
    shown = f"{value:+,.1f}"
    return "+0.0" if shown == "-0.0" else shown


def number(value: float | None) -> str:
    """Four digits that count; what is no number is told as what it is."""
    if value is None:
        return "—"
    if math.isnan(value):
        return "NaN"
    return str(int(value)) if abs(value) < 1e7 and float(value).is_integer() else f"{value:.4g}"
