"""Rules: a condition on a run's metrics, and the edits of its config that follow from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from muster.model.campaign import LoopDefault, LoopRule
from muster.model.variant import DEFAULT
from muster.rules.edit_config import EditedText, EditsRefused, digest_config, edit_config_text, show_config_value
from muster.rules.edits import EditError, parse_edit
from muster.rules.evaluate_expressions import EvaluatedNode, MetricSummaries, evaluate_expression, explain_evaluation
from muster.rules.expressions import ExpressionError, parse_expression

NOTHING_TRIED: Mapping[str, str] = MappingProxyType({})


class RulesRefused(ValueError):
    """Rules that can't be read: every mistake of theirs."""

    def __init__(self, mistakes: Sequence[RuleMistake]) -> None:
        super().__init__("; ".join(map(str, mistakes)))
        self.mistakes = tuple(mistakes)


@dataclass(frozen=True, slots=True)
class RuleMistake:
    at: int | None  # of which rule, from 0; None: of the default
    field: str  # when | edit | reason | limit
    item: int | None  # of which edit
    message: str

    def __str__(self) -> str:
        rule = DEFAULT if self.at is None else f"rule {self.at + 1}"
        item = "" if self.item is None else f" {self.item + 1}"
        return f"{rule}, {self.field}{item}: {self.message}"


@dataclass(frozen=True, slots=True)
class Proposal:
    rule: str  # its id, or "default"
    reason: str
    edits: tuple[str, ...]
    edited: EditedText
    digest: str  # of the config that comes out


@dataclass(frozen=True, slots=True)
class Ruling:
    """What became of one rule, and why."""

    rule: str
    reason: str
    outcome: str  # proposed | false | unknown | spent | idle (its edits change nothing) | same | tried | refused |
    # unneeded; of a search: scored | failed
    because: str
    trace: EvaluatedNode | None = None
    proposal: Proposal | None = None

    @property
    def fired(self) -> bool:
        """Its condition holds, whatever came of it."""
        return self.outcome in ("proposed", "spent", "idle", "same", "tried", "refused")


def find_rule_mistakes(rules: Sequence[LoopRule], default: LoopDefault | None = None) -> list[RuleMistake]:
    """Every mistake that can be told without a config and without metrics."""
    found: list[RuleMistake] = []
    names: dict[str, int] = {}
    for at, rule in enumerate(rules):
        try:
            parse_expression(rule.when)
        except ExpressionError as error:
            found.append(RuleMistake(at, "when", None, str(error)))
        found += _find_edit_mistakes(at, rule.edit)
        if not rule.reason.strip():
            found.append(RuleMistake(at, "reason", None, "it is empty; say why, for whoever reads the lineage"))
        if rule.limit is not None and rule.limit < 1:
            found.append(RuleMistake(at, "limit", None, f"{rule.limit} times is never; leave the rule out"))
        first = names.setdefault(rule.id, at)
        if first != at:
            found.append(RuleMistake(at, "name" if rule.name else "when", None, _describe_duplicate_rule(rule, first)))
    found += _find_edit_mistakes(None, default.edit) if default else ()
    return found


def _describe_duplicate_rule(rule: LoopRule, first: int) -> str:
    if rule.name:
        return f"rule {first + 1} is called {rule.name}, too; give it another name"
    return f"rule {first + 1} is the same; leave one of them out"


def _find_edit_mistakes(at: int | None, edits: Sequence[str]) -> Iterator[RuleMistake]:
    if not edits:
        yield RuleMistake(at, "edit", None, "there is none; a rule changes something, as in model.lr@mul=0.5")
    for item, text in enumerate(edits):
        try:
            parse_edit(text)
        except EditError as error:
            yield RuleMistake(at, "edit", item, str(error))


def evaluate_rules(
    rules: Sequence[LoopRule],
    default: LoopDefault | None,
    metrics: MetricSummaries,
    text: str,
    kind: str,
    fired_before: Mapping[str, int] | None = None,
    tried: Mapping[str, str] = NOTHING_TRIED,
) -> list[Ruling]:
    """One for each rule, by priority and then by order, and one for the default. `tried`: digest -> name of what was.

    Raises RulesRefused, and UnreadableConfig where the text is no config.
    """
    if mistakes := find_rule_mistakes(rules, default):
        raise RulesRefused(mistakes)
    made: dict[str, str] = {}  # digest of a proposed config -> the reason for it
    found: list[Ruling] = []
    for rule in sorted(rules, key=lambda rule: -rule.priority):
        ruling = _evaluate_rule(rule, metrics, text, kind, (fired_before or {}).get(rule.id, 0), made, tried)
        found.append(ruling)
        if ruling.proposal:
            made[ruling.proposal.digest] = rule.reason
    if default:
        found.append(_evaluate_default(default, found, text, kind, tried))
    return found


def _evaluate_rule(
    rule: LoopRule,
    metrics: MetricSummaries,
    text: str,
    kind: str,
    before: int,
    made: Mapping[str, str],
    tried: Mapping[str, str],
) -> Ruling:
    trace = evaluate_expression(parse_expression(rule.when), metrics)
    told = explain_evaluation(trace)
    if not trace.true:
        return Ruling(rule.id, rule.reason, "unknown" if trace.value is None else "false", told, trace)
    if rule.limit is not None and before >= rule.limit:
        times = f"it has fired {before} of {rule.limit} times along this lineage"
        return Ruling(rule.id, rule.reason, "spent", f"{told}, but {times}", trace)
    outcome, because, proposal = outcome_of_edits(rule.id, rule.reason, rule.edit, text, kind, made, tried)
    return Ruling(rule.id, rule.reason, outcome, f"{told}, but {because}" if because else told, trace, proposal)


def _evaluate_default(
    default: LoopDefault, before: Sequence[Ruling], text: str, kind: str, tried: Mapping[str, str]
) -> Ruling:
    if any(ruling.proposal for ruling in before):
        return Ruling(DEFAULT, default.reason, "unneeded", "a rule has fired")
    fired = any(ruling.fired for ruling in before)
    why = "no rule that fired has anything to propose" if fired else "no rule fired"
    outcome, because, proposal = outcome_of_edits(
        DEFAULT, default.reason, default.edit, text, kind, NOTHING_TRIED, tried
    )
    return Ruling(DEFAULT, default.reason, outcome, f"{why}, but {because}" if because else why, None, proposal)


def outcome_of_edits(
    rule: str,
    reason: str,
    edits: tuple[str, ...],
    text: str,
    kind: str,
    made: Mapping[str, str],
    tried: Mapping[str, str] = NOTHING_TRIED,
) -> tuple[str, str, Proposal | None]:
    """What becomes of its edits, why there is no proposal, and the proposal."""
    try:
        variant = edit_config_text(text, kind, edits)
    except EditsRefused as refused:
        return "refused", f"its edits can't be carried out: {'; '.join(refused.mistakes)}", None
    if not variant.changed:
        return (
            "idle",
            f"its edits change nothing: {_describe_unchanged_paths(variant) or 'it is the same config'}",
            None,
        )
    digest = digest_config(variant.tree)
    if digest in made:
        return "same", f"its edits give the same config as another rule's ({made[digest]})", None
    if digest in tried:
        return "tried", f"the config that its edits give was tried before, as {tried[digest]}", None
    return "proposed", "", Proposal(rule, reason, edits, variant, digest)


def _describe_unchanged_paths(variant: EditedText) -> str:
    places = dict.fromkeys(
        f"{each.path} stays {show_config_value(each.new)}{_bracket_edit_note(each.note)}" for each in variant.changes
    )
    return ", ".join(places)


def _bracket_edit_note(note: str) -> str:
    return f" ({note})" if note else ""


def explain_rulings(found: Sequence[Ruling]) -> Iterator[str]:
    """Line by line why each rule fired or not, with the numbers."""
    words = {
        "proposed": "fired",
        "false": "did not fire",
        "unknown": "did not fire",
        "spent": "may not fire any more",
        "idle": "fired and changes nothing",
        "same": "fired and adds nothing",
        "tried": "fired and adds nothing",
        "refused": "fired in vain",
        "unneeded": "not needed",
        "scored": "scored",
        "failed": "no score",
    }
    for ruling in found:
        yield f"{ruling.reason}: {words[ruling.outcome]}: {ruling.because}"
        for change in ruling.proposal.edited.changes if ruling.proposal else ():
            yield (
                f"  {change.path}: {show_config_value(change.old)} -> "
                f"{show_config_value(change.new)}{_bracket_edit_note(change.note)}"
            )
