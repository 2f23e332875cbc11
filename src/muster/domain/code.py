"""The code that an attempt ran, as attempt.json records it; older records have a commit alone, or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

State = Literal["known", "unknown", "no_repository", "no_commit", "unrecorded"]
STATES: tuple[State, ...] = ("known", "unknown", "no_repository", "no_commit", "unrecorded")


def code_state(code: Mapping[str, Any]) -> State:
    """`unrecorded`: by an older Muster, which wrote the same where git was slow and where there was no repository."""
    for state in STATES:
        if code.get("state") == state:
            return state
    if not code.get("commit"):
        return "unrecorded"
    return "known" if code.get("readable", True) else "unknown"


def code_files(code: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """(changed since the commit, not under version control)."""
    untracked = [str(each) for each in code.get("untracked") or ()]
    changed = [str(each) for each in code.get("changed") or ()]
    return changed, untracked


def code_key(code: Mapping[str, Any]) -> dict[str, Any]:
    """What makes it the same code or another; of committed code the same words as ever, so that old hashes hold."""
    if code_state(code) == "known":
        return {"commit": code.get("commit"), "dirty": code.get("dirty"), "readable": True}
    told = {name: code[name] for name in ("commit", "dirty") if code.get(name)}
    return told if code_state(code) != "unknown" else {**told, "readable": False}
