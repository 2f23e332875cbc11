"""A function of the user's as a proposer: plain data in, `{edit, reason}` out, for each parent by itself."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from muster.acts.entry_point import EntryPoint
from muster.acts.study import seed_of
from muster.domain.errors import MusterError
from muster.domain.variants import Variant
from muster.ports.proposer import Board, Proposals
from muster.rounds.paths import at_place, told
from muster.rounds.rules import Ruling, outcome_of
from muster.rounds.summary import facts
from muster.rounds.texts import differing, read_config, shown
from muster.rounds.tried import Tried, score

KEYS = ("edit", "config", "reason", "name")


@dataclass(frozen=True, slots=True)
class EntryPointProposer:
    entry: EntryPoint

    def propose(self, board: Board) -> Proposals:
        function = self.entry.load()
        return Proposals(tuple((each.variant.name, self._rulings(function, board, each)) for each in board.parents))

    def explain(self, board: Board, of: Tried) -> tuple[Ruling, ...]:
        return self._rulings(self.entry.load(), board, of)

    def _rulings(self, function: Callable[[Any], Any], board: Board, of: Tried) -> tuple[Ruling, ...]:
        tree = read_config(of.text, of.kind).tree
        given = told_of(board, of, copy.deepcopy(tree))
        answer = self.entry.call(function, given, given["seed"])
        if answer is None or answer == []:
            why = f"{self.entry.name}() proposes nothing for {of.variant.name}"
            return (Ruling(self.entry.text, self.entry.text, "false", why),)
        if not isinstance(answer, list | tuple):
            raise self._wrong(f"it returned {shown(answer)} and not a list")
        made: dict[str, str] = {}
        found = []
        for at, item in enumerate(answer, 1):
            by, reason, edits = self._read(item, at, tree)
            outcome, because, proposal = outcome_of(by, reason, edits, of.text, of.kind, made)
            if proposal and "config" in item and proposal.edited.tree != item["config"]:
                because, outcome, proposal = "a value would be of another kind than in its parent", "refused", None
            if proposal:
                made[proposal.digest] = reason
            found.append(Ruling(by, reason, outcome, because, None, proposal))
        return tuple(found)

    def _read(self, item: Any, at: int, tree: Any) -> tuple[str, str, tuple[str, ...]]:
        if not isinstance(item, Mapping):
            raise self._wrong(f"item {at} is {shown(item)} and not a mapping")
        for key in item:
            if key not in KEYS:
                near = get_close_matches(str(key), KEYS, 1)
                raise self._wrong(f"item {at} has the key {key!r}; " + (f"did you mean {near[0]!r}?" if near else ""))
        reason, name = item.get("reason"), item.get("name") or self.entry.text
        if not isinstance(reason, str) or not reason.strip():
            raise self._wrong(f"item {at} has no reason; say why, for whoever reads the lineage")
        if ("edit" in item) == ("config" in item):
            raise self._wrong(f"item {at} needs either 'edit' or 'config'")
        if "config" in item:
            return str(name), reason, self._edits(item["config"], at, tree)
        edit = [item["edit"]] if isinstance(item["edit"], str) else item["edit"]
        if not isinstance(edit, list | tuple) or not edit or not all(isinstance(each, str) for each in edit):
            raise self._wrong(f"item {at}: edit is {shown(edit)} and not a list of texts such as lr@mul=0.5")
        return str(name), reason, tuple(edit)

    def _edits(self, config: Any, at: int, tree: Any) -> tuple[str, ...]:
        """A whole config as the edits that lead to it: lineages show what has changed."""
        try:
            places = list(differing(tree, config))
            if () in places:
                raise self._wrong(f"item {at}: {_other_keys(tree, config)}; edits can't add or remove keys")
            return tuple(f"{told(place)}@set={json.dumps(at_place(config, place))}" for place in places)
        except (TypeError, ValueError, RecursionError) as error:
            raise self._wrong(f"item {at}: the config is no plain data: {error}") from None

    def _wrong(self, what: str) -> MusterError:
        return MusterError(
            f"loop.propose: {what}", where=self.entry.text,
            hint='it returns a list such as [{"edit": ["lr@mul=0.5"], "reason": "the loss does not fall"}]',
        )  # fmt: skip


def _other_keys(tree: Any, config: Any) -> str:
    """Which keys a config has more or less than its parent."""
    if not isinstance(tree, Mapping) or not isinstance(config, Mapping):
        return "the config is no mapping as its parent is"
    more = [str(key) for key in config if key not in tree]
    less = [str(key) for key in tree if key not in config]
    parts = [f"the config has {', '.join(more)}, which its parent has not"] if more else []
    parts += [f"the config lacks {', '.join(less)} of its parent"] if less else []
    return "; ".join(parts) or "the keys of the config are in another order than those of its parent"


def told_of(board: Board, of: Tried, tree: Any) -> dict[str, Any]:
    """What the function gets: plain data that it may change as it likes."""
    return {
        "variant": of.variant.name,
        "round": board.round,
        "config": tree,
        "metrics": {key: {**facts(each), "tail": list(each.tail)} for key, each in of.summaries.items()},
        "score": _score(board, of),
        "runs": [{"cell": run.cell, "verdict": run.verdict, "why": run.unread or run.why} for run in of.runs],
        "lineage": [_line(each) for each in board.record.lineage(of.variant.name)],
        "tried": [{**_line(each.variant), "score": _score(board, each)} for each in board.tried],
        "seed": seed_of(board.round, of.variant.name),
    }


def _score(board: Board, of: Tried) -> float | None:
    found = score(of, board.by)
    return found.mean if found.values else None


def _line(each: Variant) -> dict[str, Any]:
    return {
        "variant": each.name, "round": each.round, "parent": each.parent, "edits": list(each.edits),
        "reason": each.reason, "by": each.by,
    }  # fmt: skip
