"""The built-in proposers: rules, and a function of the user's (plain data in, `{edit, reason}` out, for each parent
by itself). `make_proposer` chooses one for a loop; the search has a module of its own.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from muster.app.campaign.proposer_function import ProposerFunction
from muster.app.loop.next_round import NextRound
from muster.app.loop.search_proposer import seed_from_parts
from muster.files.atomic_write import make_private_folder, write_atomically
from muster.model.campaign import DeclaredLoop, LoopDefault, LoopRule
from muster.model.errors import MusterError
from muster.model.variant import Variant
from muster.rules.config_paths import format_config_path, value_at_place
from muster.rules.edit_config import differing_places, parse_config, show_config_value
from muster.rules.evaluate_expressions import MetricSummaries
from muster.rules.metric_summary import metric_summary_as_json
from muster.rules.proposal_rules import Ruling, evaluate_rules, outcome_of_edits
from muster.rules.proposer import Proposals, Proposer, ProposerInput
from muster.rules.rank_variants import TriedVariant, score_variant
from muster.text.phrases import english_text

ANSWER_KEYS = ("edit", "config", "reason", "name")


@dataclass(frozen=True, slots=True)
class FunctionProposer:
    entry: ProposerFunction

    def propose(self, board: ProposerInput) -> Proposals:
        function = self.entry.load()
        return Proposals(tuple((each.variant.name, self._rulings(function, board, each)) for each in board.parents))

    def explain(self, board: ProposerInput, of: TriedVariant) -> tuple[Ruling, ...]:
        return self._rulings(self.entry.load(), board, of)

    def _rulings(self, function: Callable[[Any], Any], board: ProposerInput, of: TriedVariant) -> tuple[Ruling, ...]:
        tree = parse_config(of.text, of.kind).tree
        given = make_function_input(board, of, copy.deepcopy(tree))
        answer = self.entry.call(function, given, given["seed"])
        if answer is None or answer == []:
            why = f"{self.entry.name}() proposes nothing for {of.variant.name}"
            return (Ruling(self.entry.text, self.entry.text, "false", why),)
        if not isinstance(answer, list | tuple):
            raise self._wrong(f"it returned {show_config_value(answer)} and not a list")
        made: dict[str, str] = {}
        found = []
        for at, item in enumerate(answer, 1):
            by, reason, edits = self._read(item, at, tree)
            outcome, because, proposal = outcome_of_edits(by, reason, edits, of.text, of.kind, made)
            if proposal and "config" in item and proposal.edited.tree != item["config"]:
                because, outcome, proposal = "a value would be of another kind than in its parent", "refused", None
            if proposal:
                made[proposal.digest] = reason
            found.append(Ruling(by, reason, outcome, because, None, proposal))
        return tuple(found)

    def _read(self, item: Any, at: int, tree: Any) -> tuple[str, str, tuple[str, ...]]:
        if not isinstance(item, Mapping):
            raise self._wrong(f"item {at} is {show_config_value(item)} and not a mapping")
        for key in item:
            if key not in ANSWER_KEYS:
                near = get_close_matches(str(key), ANSWER_KEYS, 1)
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
            raise self._wrong(
                f"item {at}: edit is {show_config_value(edit)} and not a list of texts such as lr@mul=0.5"
            )
        return str(name), reason, tuple(edit)

    def _edits(self, config: Any, at: int, tree: Any) -> tuple[str, ...]:
        """A whole config as the edits that lead to it: lineages show what has changed."""
        try:
            places = list(differing_places(tree, config))
            if () in places:
                raise self._wrong(f"item {at}: {_describe_other_keys(tree, config)}; edits can't add or remove keys")
            return tuple(
                f"{format_config_path(place)}@set={json.dumps(value_at_place(config, place))}" for place in places
            )
        except (TypeError, ValueError, RecursionError) as error:
            raise self._wrong(f"item {at}: the config is no plain data: {error}") from None

    def _wrong(self, what: str) -> MusterError:
        return MusterError(
            f"loop.propose: {what}",
            where=self.entry.text,
            hint='it returns a list such as [{"edit": ["lr@mul=0.5"], "reason": "the loss does not fall"}]',
        )


def _describe_other_keys(tree: Any, config: Any) -> str:
    """Which keys a config has more or less than its parent."""
    if not isinstance(tree, Mapping) or not isinstance(config, Mapping):
        return "the config is no mapping as its parent is"
    more = [str(key) for key in config if key not in tree]
    less = [str(key) for key in tree if key not in config]
    parts = [f"the config has {', '.join(more)}, which its parent has not"] if more else []
    parts += [f"the config lacks {', '.join(less)} of its parent"] if less else []
    return "; ".join(parts) or "the keys of the config are in another order than those of its parent"


def make_function_input(board: ProposerInput, of: TriedVariant, tree: Any) -> dict[str, Any]:
    """What the function gets: plain data that it may change as it likes."""
    return {
        "variant": of.variant.name,
        "round": board.round,
        "config": tree,
        "metrics": {
            key: {**metric_summary_as_json(each), "tail": list(each.tail)} for key, each in of.summaries.items()
        },
        "score": _mean_score_or_none(board, of),
        "runs": [
            {"cell": run.cell, "verdict": run.verdict, "why": english_text(run.unread or run.why)} for run in of.runs
        ],
        "lineage": [_lineage_entry(each) for each in board.record.lineage(of.variant.name)],
        "tried": [{**_lineage_entry(each.variant), "score": _mean_score_or_none(board, each)} for each in board.tried],
        "seed": seed_from_parts(board.round, of.variant.name),
    }


def _mean_score_or_none(board: ProposerInput, of: TriedVariant) -> float | None:
    found = score_variant(of, board.by)
    return found.mean if found.values else None


def _lineage_entry(each: Variant) -> dict[str, Any]:
    return {
        "variant": each.name,
        "round": each.round,
        "parent": each.parent,
        "edits": list(each.edits),
        "reason": each.reason,
        "by": each.by,
    }


@dataclass(frozen=True, slots=True)
class RuleProposer:
    rules: tuple[LoopRule, ...]
    default: LoopDefault | None = None

    def propose(self, board: ProposerInput) -> Proposals:
        if not self.rules and not self.default:
            return Proposals(why=("the campaign has neither rules nor a default to propose anything by",))
        tried = {each.digest: each.name for each in board.record.variants}
        return Proposals(tuple((each.variant.name, self._rulings(board, each, tried)) for each in board.parents))

    def explain(self, board: ProposerInput, of: TriedVariant) -> tuple[Ruling, ...]:
        """What each rule says about a run, with the numbers; as it said when its children were made."""
        others = [each for each in board.record.variants if each.parent != of.variant.name]
        return self._rulings(board, of, {each.digest: each.name for each in others})

    def _rulings(self, board: ProposerInput, of: TriedVariant, tried: Mapping[str, str]) -> tuple[Ruling, ...]:
        every = {key for each in board.tried for run in each.runs for key in run.summaries}
        fired: dict[str, int] = {}
        for each in board.record.lineage(of.variant.name):
            fired[each.by] = fired.get(each.by, 0) + 1
        return tuple(
            evaluate_rules(
                self.rules, self.default, MetricSummaries(of.summaries, every), of.text, of.kind, fired, tried
            )
        )


STUDY_FILE = Path("loop") / "optuna.log"  # in the campaign's `.muster`


def make_proposer(settings: DeclaredLoop, root: Path) -> Proposer:
    if settings.search:
        from muster.app.loop.search_proposer import SearchProposer
        from muster.rules.search_space import resolve_search_settings

        return SearchProposer(resolve_search_settings(settings.search))
    if settings.propose:
        from muster.app.campaign.proposer_function import ProposerFunction

        return FunctionProposer(ProposerFunction(settings.propose, root))
    return RuleProposer(settings.rules, settings.default)


def write_optuna_study(state: Path, settings: DeclaredLoop, board: ProposerInput, found: NextRound) -> None:
    """For optuna-dashboard: what was tried, and the next round as running. Nobody here reads it."""
    from muster.app.loop.search_proposer import SearchProposer
    from muster.rules.search_space import find_missing_package, resolve_search_settings

    if settings.search is None or (found.stopped and find_missing_package(settings.search.sampler)[0]):
        return
    proposed: dict[str, list[tuple[Variant, Any]]] = {}
    for each in found.proposed:
        tree = parse_config(each.text, each.kind).tree
        proposed.setdefault(each.variant.parent or "", []).append((each.variant, tree))
    path = state / STUDY_FILE
    try:
        make_private_folder(path.parent)
        write_atomically(path, SearchProposer(resolve_search_settings(settings.search)).journal(board, proposed))
    except OSError as error:
        raise MusterError(
            f"the study can't be written: {error.strerror}", where=str(path), hint="nothing was proposed; fix it"
        ) from None
