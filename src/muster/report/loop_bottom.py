"""What a tired person reads of a loop's report: the best and how sure that is, what comes next, what went wrong."""

from __future__ import annotations

from collections.abc import Iterator

from muster.report.escape import markdown
from muster.report.loop_facts import LoopFacts, LoopRun, LoopVariant
from muster.report.loop_say import Say
from muster.report.numbers import p_value
from muster.report.record_wording import code, plain, short
from muster.stats.sample import LEAST_FOR_INTERVAL

NAMED = 20  # runs in trouble that are told one by one


def bottom(facts: LoopFacts, say: Say) -> Iterator[str]:
    first, *more = _best(facts, say)
    yield f"- {first}"
    yield from (f"  - {each}" for each in more if each)
    yield f"- {_next(facts, say)}"
    yield from _trouble(facts, say)


# -- the best


def _best(facts: LoopFacts, say: Say) -> list[str]:
    best = facts.best
    if not facts.by:
        return [say("loop.no_rank")]
    if best is None:
        why = next((each.unscored for each in facts.variants if each.unscored), "")
        if facts.over and facts.runs:
            return [say("loop.no_score_why", by=code(facts.by), why=plain(why))]
        return [say("loop.no_score", by=code(facts.by))]
    named = say(
        "loop.best", name=code(best.name), round=best.variant.round, by=code(facts.by), score=say.score(best),
        better=say(f"loop.{facts.better}"),
    )  # fmt: skip
    scored = sum(bool(each.values) for each in facts.variants)
    return [
        named,
        _sure(facts, best, say),
        _top(facts, best, say),
        say("loop.chosen", n=scored) if scored > 1 else "",
        say("loop.died", n=bad) if (bad := sum(run.verdict != "DONE" and run.over for run in best.runs)) else "",
    ]


def _sure(facts: LoopFacts, best: LoopVariant, say: Say) -> str:
    if best.is_base:
        others = sum(bool(each.values) for each in facts.variants if each is not best)
        return say("loop.is_base" if best.n > 1 else "loop.is_base_one") if others else ""
    found = facts.against
    if found is None:
        return say("loop.no_base")
    base = facts.variant(found.base)
    parts = {"base": code(found.base), "score": say.short(base), "gain": say.gain_format(found.difference)}
    if found.beyond is not None and found.interval is not None:
        interval = say.gain_format.interval(found.interval)
        return say("loop.beyond" if found.beyond else "loop.within", interval=interval, p=p_value(found.p), **parts)
    return say("loop.no_spread" if best.n > 1 and base.n > 1 else "loop.one_seed", **parts)


def _top(facts: LoopFacts, best: LoopVariant, say: Say) -> str:
    """A better mean that is not beyond the noise is told: somebody will see it in the table."""
    top = facts.top
    if top is None or top is best or top.mean == best.mean:
        return ""
    few = min(top.n, best.n) < LEAST_FOR_INTERVAL
    return say("loop.top_few" if few else "loop.top", name=code(top.name), score=say.short(top))


# -- what comes next


def _next(facts: LoopFacts, say: Say) -> str:
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


def _trouble(facts: LoopFacts, say: Say) -> Iterator[str]:
    found = [run for run in facts.runs if run.trouble]
    if not found:
        yield f"- {say('loop.fine' if facts.over else 'loop.fine_so_far')}"
        return
    every = len(found) == len(facts.runs)
    yield f"- {say('loop.trouble_all' if every else 'loop.trouble', n=len(found), all=len(facts.runs))}"
    for run in found[:NAMED]:
        yield f"  - {say('loop.trouble_run', cell=code(run.cell), verdict=run.verdict, why=_why(run, say))}"
    if len(found) > NAMED:
        yield f"  - … +{len(found) - NAMED}"


def _why(run: LoopRun, say: Say) -> str:
    """Its cause; where that tells nothing, where its history was looked for. The JSON has both in full."""
    if run.why:
        left = "" if run.summaries else say("semicolon") + say("loop.left_none")
        return plain(short(run.why)) + left
    return say("loop.no_history", why=plain(short(run.unread))) if run.unread else markdown(run.verdict)
