"""The code that cells ran, in words: a commit alone is named only where nothing else ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muster.domain.code import code_files, code_state
from muster.report.words import Words

SHORT = 7


def code_words(code: Mapping[str, Any], w: Words) -> str:
    """Of one cell."""
    state = code_state(code)
    if state == "known":
        return _changed(code, w) if code.get("dirty") else str(code["commit"])
    if state == "unknown":
        waited = code.get("waited_s")
        why = w("code.slow", n=f"{waited:g}") if waited else str(code.get("why") or w("code.unreadable"))
        return w("code.unknown", why=why)
    files = len(code.get("files") or ())
    if state == "unrecorded" or not files:
        return w(f"code.{state}")
    return w("code.hashed", state=w(f"code.{state}"), files=w.count("code_file", files))


def _changed(code: Mapping[str, Any], w: Words) -> str:
    changed, untracked = code_files(code)
    commit = str(code["commit"])[:SHORT]
    if not changed and not untracked:  # an older record
        return w("code.diff", commit=commit, dirty=code["dirty"])
    named = [*changed, *(w("code.untracked", file=name) for name in untracked)]
    return w("code.changed", commit=commit, files=w.count("code_file", len(named)), names=w.some(named))


def codes_words(found: Sequence[Mapping[str, Any]], w: Words) -> str:
    """Of all cells, and of how many it is known; empty where there is no cell yet."""
    known = [each for each in found if code_state(each) not in ("unknown", "unrecorded")]
    if not known:
        return "; ".join(dict.fromkeys(code_words(each, w) for each in found))
    distinct = list(dict.fromkeys(code_words(each, w) for each in known))
    if len(distinct) == 1:
        told = distinct[0]
    elif all(code_state(each) == "known" and not each.get("dirty") for each in known):
        told = w("decision.commits", n=len(distinct), commits=w.some([each[:SHORT] for each in distinct]))
    else:
        told = w("code.states", n=len(distinct), states=w.some(distinct))
    return told if len(known) == len(found) else w("decision.code_known", code=told, k=len(known), n=len(found))
