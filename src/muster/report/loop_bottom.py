"""What a tired person reads of a loop's report: the best and how sure that is, what comes next, what went wrong."""

from __future__ import annotations

from collections.abc import Iterator

from muster.report.loop_facts import LoopFacts, LoopRun, LoopVariant
from muster.report.loop_say import Say, whole_words
from muster.report.numbers import p_value
from muster.report.record_wording import LONGEST, code, grouped
from muster.stats.sample import LEAST_FOR_INTERVAL

NAMED = 20  # causes that are told one by one


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
            return [say("loop.no_score_why", by=code(facts.by), why=say.recorded(why))]
        return [say("loop.no_score", by=code(facts.by))]
    named = say(
        "loop.best", name=code(best.name), round=best.variant.round, by=code(facts.by), score=say.score(best),
        better=say(f"loop.{facts.better}"),
    )  # fmt: skip
    scored = sum(bool(each.values) for each in facts.variants)
    if facts.identical:
        return [say("loop.identical", n=scored, by=code(facts.by), score=say.short(best))]
    sure, top = _sure(facts, best, say), _top(facts, best, say)
    few = say("loop.few") if _few(facts, best) else ""
    return [named, sure, top, few, say("loop.chosen", n=scored) if scored > 1 else "", _died(best, say)]


def _sure(facts: LoopFacts, best: LoopVariant, say: Say) -> str:
    if best.is_base:
        others = [each for each in facts.variants if each.values and each is not best]
        if all(each.is_base for each in others):
            return say("loop.only_bases_one") if others and best.n == 1 else ""
        return say("loop.is_base" if best.n > 1 else "loop.is_base_one")
    found = facts.against
    if found is None:
        return say("loop.no_base")
    base = facts.variant(found.base)
    parts = {"base": code(found.base), "score": say.inner(base), "gain": say.gain_format(found.difference)}
    if found.beyond is not None and found.interval is not None:
        interval = say.gain_format.interval(found.interval)
        return say("loop.beyond" if found.beyond else "loop.within", interval=interval, p=p_value(found.p), **parts)
    return say("loop.no_spread" if best.n > 1 and base.n > 1 else "loop.one_seed", **parts)


def _better_mean(facts: LoopFacts, best: LoopVariant) -> LoopVariant | None:
    top = facts.top
    return None if top is None or top is best or top.mean == best.mean else top


def _top(facts: LoopFacts, best: LoopVariant, say: Say) -> str:
    """A better mean that is not beyond the noise is told: somebody will see it in the table."""
    top = _better_mean(facts, best)
    return say("loop.top" if top.n > 1 else "loop.top_one", name=code(top.name), score=say.inner(top)) if top else ""


def _few(facts: LoopFacts, best: LoopVariant) -> bool:
    """What was said of the noise rests on two seeds somewhere. Of one it is told on the spot."""
    against = facts.variant(facts.against.base) if facts.against and facts.against.p is not None else None
    compared = [each for each in (against, _better_mean(facts, best)) if each]
    return bool(compared) and 1 < min(each.n for each in (best, *compared)) < LEAST_FOR_INTERVAL


def _died(best: LoopVariant, say: Say) -> str:
    bad = sum(run.verdict != "DONE" and run.over for run in best.runs)
    return say("loop.died", n=bad, all=len(best.runs)) if bad else ""


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
    alike: dict[tuple[str, str], list[str]] = {}
    for run in found:
        alike.setdefault((run.verdict, _why(run, say)), []).append(run.cell)
    for (verdict, why), cells in list(alike.items())[:NAMED]:
        named = say("comma").join(code(each) for each in grouped(cells))
        yield f"  - {say('loop.told', head=named, text=say('loop.told', head=verdict, text=why))}"
    if len(alike) > NAMED:
        left = sum(len(cells) for cells in list(alike.values())[NAMED:])
        yield f"  - {say('loop.trouble_more', n=left)}"


def why_of(run: LoopRun, say: Say, most: int) -> str:
    """Its cause, or that it left no history. The JSON has both in full."""
    if run.why:
        return say.recorded(whole_words(run.why, most))
    return say("loop.no_cause" if run.summaries else "loop.left_none")


def _why(run: LoopRun, say: Say) -> str:
    """Where the cause tells nothing of it, what became of its history, too."""
    if not run.why and run.unread and not run.summaries:
        unread = run.unread.replace(run.output, "its output") if run.output else run.unread
        return say("loop.no_history", why=say.recorded(whole_words(unread, LONGEST)))
    left = say("semicolon") + say("loop.left_none") if run.why and not run.summaries else ""
    return why_of(run, say, LONGEST) + left
