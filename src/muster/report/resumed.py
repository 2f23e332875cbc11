"""Says what counts of a history that several attempts wrote, and what is missing of it."""

from __future__ import annotations

from collections.abc import Iterator

from muster.domain.resumed import Resumption
from muster.report.words import Words


def resumed_text(found: Resumption, language: str = "en") -> str:
    """Without a full stop."""
    w = Words(language)
    return w("semicolon").join([w("resumed.times", n=found.times), *_parts(found, w)])


def is_whole(found: Resumption) -> bool:
    """Nothing is missing, as far as can be seen."""
    return not found.gaps and not found.gone and not found.by_order


def _parts(found: Resumption, w: Words) -> Iterator[str]:
    if found.by_order:
        yield w("resumed.by_order")
    for each in found.kept:
        if each.last is not None and not found.by_order:
            again = w("resumed.again", rows=w.count("row", each.lost)) if each.lost else ""
            yield w("resumed.kept", attempt=each.attempt, step=f"{each.last:.12g}") + again
        elif each.lost:
            yield w("resumed.none", attempt=each.attempt)
    for gap in found.gaps:
        yield w("resumed.gap", rows=w.count("row", gap.rows), after=f"{gap.after:.12g}", before=f"{gap.before:.12g}")
    if found.gone:
        attempts = w.several([str(each) for each in found.gone])
        step = f"{found.first:.12g}" if found.first is not None else ""
        yield w("resumed.gone", attempts=attempts, step=step) if step else w("resumed.all_gone", attempts=attempts)
