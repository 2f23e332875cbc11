"""The next round of a loop: which variants it builds on, what is proposed for it, or why no further round comes.
Better means beyond the noise of the seeds. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from muster.model.campaign import DeclaredLoop
from muster.model.variant import LoopRecord, Variant
from muster.rules.edit_config import make_variant_name
from muster.rules.evaluate_expressions import MetricSummaries, evaluate_expression, evaluation_as_json
from muster.rules.expressions import parse_expression
from muster.rules.proposal_rules import Ruling
from muster.rules.proposer import Proposals, Proposer, ProposerInput
from muster.rules.rank_variants import TriedVariant, VariantRun, VariantScore, rank_scored_variants
from muster.text.describe_run import describe_resumed_log
from muster.text.phrases import english_text, phrase
from muster.text.sentences import join_few_names

if TYPE_CHECKING:
    from muster.stats.samples import Sample

NOISE_ALPHA = 0.05


def beats_beyond_noise(one: VariantScore, other: VariantScore, better: str) -> bool:
    """Better beyond the noise of repeated seeds; with one seed each there is no noise to hold it against.

    One seed that is left of several never beats what has more: the luckiest of them may have survived.
    """
    if not one.values or not other.values:
        return bool(one.values)
    ahead = one.mean - other.mean if better == "higher" else other.mean - one.mean
    if not ahead > 0:
        return False
    if len(one.values) < 2 or len(other.values) < 2:
        return len(one.values) >= len(other.values)
    from muster.stats.samples import difference_of_means

    if one.sd == other.sd == 0:
        return True
    p = difference_of_means(_sample_of_score(one), _sample_of_score(other)).p
    return p is not None and p < NOISE_ALPHA


def _sample_of_score(of: VariantScore) -> Sample:
    from muster.stats.samples import Sample

    return Sample("", "", "", {str(at): value for at, value in enumerate(of.values)})


MOST_NAMED_RUNS = 4


@dataclass(frozen=True, slots=True)
class ProposedVariant:
    """A new variant, and the text of its config. Its file is not written yet."""

    variant: Variant
    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class NextRound:
    round: int
    proposed: tuple[ProposedVariant, ...] = ()
    stopped: str = ""
    parents: tuple[str, ...] = ()
    rulings: tuple[tuple[str, tuple[Ruling, ...]], ...] = ()  # of each parent


@dataclass(frozen=True, slots=True)
class RoundGain:
    """The best so far, after each round."""

    round: int
    best: str
    score: VariantScore
    gained: bool


def plan_next_round(
    record: LoopRecord, tried: Sequence[TriedVariant], settings: DeclaredLoop, most: int, proposer: Proposer
) -> NextRound:
    number = record.round + 1
    if why := _explain_loop_end(record, tried, settings, most):
        return NextRound(number, stopped=why)
    board = make_proposer_board(record, tried, settings)
    found = proposer.propose(board)
    made = _collect_proposed_variants(board, found, settings)
    if not made and settings.top:  # what the best few would give was tried: the next ones get their turn
        others = replace(board, parents=select_parents(record, tried, settings, len(tried)))
        more = proposer.propose(others)
        made = _collect_proposed_variants(others, more, settings)[: settings.top * settings.per_run]
        found = more if made else found
    stopped = "" if made else f"no proposals because {_explain_no_proposals(board, found)}"
    return NextRound(number, tuple(made), stopped, tuple(name for name, _ in found.rulings), found.rulings)


def _collect_proposed_variants(board: ProposerInput, found: Proposals, settings: DeclaredLoop) -> list[ProposedVariant]:
    known = {each.digest for each in board.record.variants}
    names = {each.name for each in board.record.variants}
    made: list[ProposedVariant] = []
    for parent, rulings in found.rulings:
        for proposed in _untried_variants(board.record, board.named(parent), rulings, known, names, settings.per_run):
            made.append(proposed)
            known.add(proposed.variant.digest)
            names.add(proposed.variant.name)
    return made


def make_proposer_board(record: LoopRecord, tried: Sequence[TriedVariant], settings: DeclaredLoop) -> ProposerInput:
    return ProposerInput(record, tried, select_parents(record, tried, settings), settings.by, settings.better)


# -- stop conditions


def _explain_loop_end(record: LoopRecord, tried: Sequence[TriedVariant], settings: DeclaredLoop, most: int) -> str:
    if settings.stop.target and (met := _find_met_target(tried, settings.stop.target)):
        return f"the target is reached: {met}"
    if waiting := _explain_open_round(record, tried):
        return waiting
    if settings.stop.no_gain and settings.by:
        course = best_after_each_round(record, tried, settings)
        without = _count_rounds_without_gain(course)
        if without >= settings.stop.no_gain:
            best = course[-1]
            return (
                f"no gain in {phrase('count.round', n=without)}: {settings.by} is still best with {best.best} "
                f"({best.score.mean:.4g})"
            )
    if record.round >= most:
        return f"all {phrase('count.round', n=most)} are done" if most > 1 else "the one round is done"
    return ""


def _explain_open_round(record: LoopRecord, tried: Sequence[TriedVariant]) -> str:
    """Runs that still run, wait, or may not start: left out by a filter, held for the budget."""
    runs = [run for each in tried if each.variant.round == record.round for run in each.runs]
    waiting = [run for run in runs if not run.over]
    if not waiting:
        return ""
    told = [f"{run.cell} is {run.verdict}: {english_text(run.why)}" for run in waiting]
    have = "has" if len(waiting) == 1 else "have"
    of = f"{len(waiting)} of {phrase('count.run', n=len(runs))}"
    return f"round {record.round} is not over, {of} {have} no end yet: {join_few_names(told, MOST_NAMED_RUNS, '; ')}"


def _find_met_target(tried: Sequence[TriedVariant], target: str) -> str:
    node = parse_expression(target)
    for each in tried:
        done = replace(each, runs=tuple(run for run in each.runs if run.verdict == "DONE"))
        if evaluate_expression(node, MetricSummaries(done.summaries)).true:
            return f"{target} holds for {each.variant.name}"
    return ""


def best_after_each_round(record: LoopRecord, tried: Sequence[TriedVariant], settings: DeclaredLoop) -> list[RoundGain]:
    """The course of the best. Another one takes its place only if it is better beyond the noise of the seeds."""
    found: list[RoundGain] = []
    best: tuple[TriedVariant, VariantScore] | None = None
    for number in range(1, record.round + 1):
        of_round = [each for each in tried if each.variant.round == number]
        gained = False
        for each, scored in rank_scored_variants(of_round, settings.by, settings.better):
            if best is None or beats_beyond_noise(scored, best[1], settings.better):
                best, gained = (each, scored), True
                break
        if best:
            found.append(RoundGain(number, best[0].variant.name, best[1], gained))
    return found


def _count_rounds_without_gain(course: Sequence[RoundGain]) -> int:
    count = 0
    for gain in reversed(course):
        if gain.gained:
            break
        count += 1
    return count


# -- proposals


def select_parents(
    record: LoopRecord, tried: Sequence[TriedVariant], settings: DeclaredLoop, top: int | None = None
) -> list[TriedVariant]:
    """With `keep:` the best of all rounds, else all of this one; in any case with a history and a config."""
    fit = [each for each in tried if each.summaries and not each.trouble]
    if settings.top and settings.by:
        return [each for each, _ in rank_scored_variants(fit, settings.by, settings.better)][: top or settings.top]
    return [each for each in fit if each.variant.round == record.round]


def _untried_variants(
    record: LoopRecord, parent: TriedVariant, found: Sequence[Ruling], known: set[str], names: set[str], most: int
) -> Iterator[ProposedVariant]:
    """Of the rules' proposals the first so many that nobody has tried."""
    root = record.lineage(parent.variant.name)[0].name
    count = 0
    for ruling in found:
        proposal = ruling.proposal
        if proposal is None or proposal.digest in known or count == most:
            continue
        count += 1
        variant = Variant(
            name=make_variant_name(root, proposal.digest, names),
            config="",
            round=record.round + 1,
            digest=proposal.digest,
            parent=parent.variant.name,
            edits=proposal.edits,
            reason=proposal.reason,
            by=proposal.rule,
            notes=tuple(f"{each.path}: {each.note}" for each in proposal.edited.changes if each.note),
        )
        yield ProposedVariant(variant, proposal.edited.text, parent.kind)


def _explain_silent_run(run: VariantRun) -> str:
    """What a run died of explains best why it left nothing."""
    if run.over and run.verdict != "DONE" and run.why:
        return f"{run.cell} is {run.verdict}: {english_text(run.why)}"
    return f"{run.cell}: {english_text(run.unread or run.why or run.verdict)}"


def _explain_no_proposals(board: ProposerInput, found: Proposals) -> str:
    reasons = []
    of_round = [each for each in board.tried if each.variant.round == board.record.round]
    runs = [run for each in of_round for run in each.runs]
    silent = [run for run in runs if not run.readable]
    if silent:
        named = "; ".join(dict.fromkeys(_explain_silent_run(run) for run in silent[:MOST_NAMED_RUNS]))
        more = f"; and {len(silent) - MOST_NAMED_RUNS} more" if len(silent) > MOST_NAMED_RUNS else ""
        reasons.append(f"{len(silent)} of {phrase('count.run', n=len(runs))} left no readable history: {named}{more}")
    reasons += [f"{each.variant.name}: {each.trouble}" for each in board.tried if each.trouble][:MOST_NAMED_RUNS]
    reasons += found.why
    rulings = [ruling for _, of_parent in found.rulings for ruling in of_parent]
    if any(ruling.proposal for ruling in rulings):
        reasons.append("every config that was proposed has been tried before")
    told = dict.fromkeys(f"{ruling.reason}: {ruling.because}" for ruling in rulings if not ruling.proposal)
    return "; ".join([*reasons, *list(told)[:MOST_NAMED_RUNS]]) or "there is no run to build on"


def next_round_as_json(found: NextRound, variants: Sequence[Variant]) -> dict[str, Any]:
    return {
        "round": found.round,
        "stopped": found.stopped or None,
        "parents": list(found.parents),
        "proposed": [asdict(each) for each in variants],
        "rules": {name: [_ruling_as_json(each) for each in rulings] for name, rulings in found.rulings},
    }


def variant_rulings_as_json(of: TriedVariant, rulings: Sequence[Ruling]) -> dict[str, Any]:
    return {
        "variant": asdict(of.variant),
        "runs": [
            {
                "cell": run.cell,
                "verdict": run.verdict,
                "readable": run.readable,
                "because": english_text(run.unread or run.why) or None,
                "history": describe_resumed_log(run.resumed) if run.resumed else None,
            }
            for run in of.runs
        ],
        "rules": [_ruling_as_json(each) for each in rulings],
    }


def _ruling_as_json(each: Ruling) -> dict[str, Any]:
    return {
        "rule": each.rule,
        "reason": each.reason,
        "outcome": each.outcome,
        "because": each.because,
        "trace": evaluation_as_json(each.trace) if each.trace else None,
        "edits": list(each.proposal.edits) if each.proposal else [],
    }
