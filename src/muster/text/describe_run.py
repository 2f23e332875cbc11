"""Sentences about runs for reports: the code that cells ran (a commit alone is named only where nothing else ran),
resumed histories, results that can't be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from muster.model.attempt import classify_code_state, list_code_changes
from muster.model.campaign_location import CampaignLocation
from muster.model.provenance import Resumption, UnreadResults
from muster.text.catalogue import Catalogue, load_catalogue

SHORT_COMMIT = 7


def describe_code_of_cell(code: Mapping[str, Any], w: Catalogue) -> str:
    """Of one cell."""
    state = classify_code_state(code)
    if state == "known":
        return _describe_changed_code(code, w) if code.get("dirty") else str(code["commit"])
    if state == "unknown":
        waited = code.get("waited_s")
        why = w("code.slow", n=f"{waited:g}") if waited else str(code.get("why") or w("code.unreadable"))
        return w("code.unknown", why=why)
    files = len(code.get("files") or ())
    if state == "unrecorded" or not files:
        return w(f"code.{state}")
    return w("code.hashed", state=w(f"code.{state}"), files=w.count("code_file", files))


def _describe_changed_code(code: Mapping[str, Any], w: Catalogue) -> str:
    changed, untracked = list_code_changes(code)
    commit = str(code["commit"])[:SHORT_COMMIT]
    if not changed and not untracked:  # an older record
        return w("code.diff", commit=commit, dirty=code["dirty"])
    named = [*changed, *(w("code.untracked", file=name) for name in untracked)]
    return w("code.changed", commit=commit, files=w.count("code_file", len(named)), names=w.some(named))


def describe_code_of_cells(found: Sequence[Mapping[str, Any]], w: Catalogue) -> str:
    """Of all cells, and of how many it is known; empty where there is no cell yet."""
    known = [each for each in found if classify_code_state(each) not in ("unknown", "unrecorded")]
    if not known:
        return "; ".join(dict.fromkeys(describe_code_of_cell(each, w) for each in found))
    distinct = list(dict.fromkeys(describe_code_of_cell(each, w) for each in known))
    if len(distinct) == 1:
        told = distinct[0]
    elif all(classify_code_state(each) == "known" and not each.get("dirty") for each in known):
        told = w("decision.commits", n=len(distinct), commits=w.some([each[:SHORT_COMMIT] for each in distinct]))
    else:
        told = w("code.states", n=len(distinct), states=w.some(distinct))
    return told if len(known) == len(found) else w("decision.code_known", code=told, k=len(known), n=len(found))


def describe_resumed_log(found: Resumption, language: str = "en") -> str:
    """Without a full stop."""
    w = load_catalogue("report", language)
    return w("semicolon").join([w("resumed.times", n=found.times), *_resumed_log_parts(found, w)])


def is_log_whole(found: Resumption) -> bool:
    """Nothing is missing, as far as can be seen."""
    return not found.gaps and not found.gone and not found.by_order


def _resumed_log_parts(found: Resumption, w: Catalogue) -> Iterator[str]:
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


def describe_unread_results(unread: UnreadResults, where: CampaignLocation, language: str) -> str:
    """Why, without a full stop. A folder that moved is named: what lay outside of it may lie elsewhere, too."""
    w = load_catalogue("report", language)
    if unread.there:
        return w("unread.there", path=unread.path, metric=", ".join(unread.results))
    key = "unread.moved" if where.former else "unread.gone"
    return w(key, path=unread.path, folder=where.now)
