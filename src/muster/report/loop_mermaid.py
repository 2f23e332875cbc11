"""The lineage of a loop as a Mermaid diagram, for texts that are read where no file can be opened."""

from __future__ import annotations

import re
from collections.abc import Iterator

from muster.report.escape import one_line
from muster.report.loop_facts import LoopFacts, LoopVariant
from muster.report.loop_say import Say

LABELLED = 40  # variants up to which the arrows have words
MOST = 200  # variants that a renderer takes
LONGEST = 44  # characters beside an arrow
_SPECIAL = re.compile(r'[#"<>&`\\|\[\]{}]')


def mermaid(facts: LoopFacts, say: Say) -> Iterator[str]:
    if len(facts.variants) > MOST:
        yield say("loop.lineage_large", n=len(facts.variants))
        return
    ids = {each.name: f"v{at}" for at, each in enumerate(facts.variants)}
    yield "```mermaid"
    yield "flowchart LR"
    for each in facts.variants:
        yield f'  {ids[each.name]}["{safe(each.name)}<br/>{safe(score(facts, each, say))}"]'
    for each in facts.variants:
        parent = ids.get(each.variant.parent or "")
        if parent:
            reason = _short(say.in_picture(each.variant.reason)) if len(ids) <= LABELLED else ""
            words = f'|"{safe(reason)}"|' if reason else ""
            yield f"  {parent} -->{words} {ids[each.name]}"
    if facts.best:
        yield f"  style {ids[facts.best.name]} stroke-width:4px"
    for each in facts.variants:
        if lacking(facts, each):
            yield f"  style {ids[each.name]} stroke-dasharray:5 5"
    yield "```"


def score(facts: LoopFacts, of: LoopVariant, say: Say) -> str:
    """What stands below its name: the score, or why there is none."""
    if of.values:
        mark = "" if not of.gain else "▲ " if of.gain > 0 else "▼ "
        return f"{mark}{say.short(of)}"
    if of.state == "waiting":
        return say("loop.not_yet")
    bad = dict.fromkeys(run.verdict for run in of.runs if run.trouble)
    if bad:
        return say("loop.told", head=say("loop.without"), text=", ".join(bad))
    return say("loop.without") if facts.by else say("loop.unranked")


def lacking(facts: LoopFacts, of: LoopVariant) -> bool:
    """It should have a score some day, and has none."""
    return of.state in ("waiting", "failed") or (of.state == "unscored" and bool(facts.by))


def _short(text: str) -> str:
    """Between two words, where there are any."""
    if len(text) <= LONGEST:
        return text
    head, _, _ = text[:LONGEST].rpartition(" ")
    return (head if len(head) > LONGEST // 2 else text[: LONGEST - 1]).rstrip(" ,;:") + "…"


def safe(text: str) -> str:
    """Inside a quoted label: as Mermaid writes characters by their number."""
    return _SPECIAL.sub(lambda found: f"#{ord(found[0])};", one_line(text))
