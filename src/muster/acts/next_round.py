"""The next round of a loop: what it builds on, what is proposed for it, or why no further round comes. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from muster.acts.loop_settings import LoopSettings
from muster.acts.tried import Run, Score, Tried, beats, ranked
from muster.domain.variants import LoopRecord, Variant
from muster.domain.wording import counted
from muster.ports.proposer import Board, Proposals, Proposer
from muster.rounds.evaluating import Metrics, evaluate
from muster.rounds.expressions import parse
from muster.rounds.names import variant_name
from muster.rounds.rules import Ruling

NAMED = 4


@dataclass(frozen=True, slots=True)
class Proposed:
    """A new variant, and the text of its config. Its file is not written yet."""

    variant: Variant
    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class Next:
    round: int
    proposed: tuple[Proposed, ...] = ()
    stopped: str = ""
    parents: tuple[str, ...] = ()
    rulings: tuple[tuple[str, tuple[Ruling, ...]], ...] = ()  # of each parent


@dataclass(frozen=True, slots=True)
class Gain:
    """The best so far, after each round."""

    round: int
    best: str
    score: Score
    gained: bool


def next_round(
    record: LoopRecord, tried: Sequence[Tried], settings: LoopSettings, most: int, proposer: Proposer
) -> Next:
    number = record.round + 1
    if why := _over(record, tried, settings, most):
        return Next(number, stopped=why)
    board = board_of(record, tried, settings)
    found = proposer.propose(board)
    made = _proposed(board, found, settings)
    if not made and settings.top:  # what the best few would give was tried: the next ones get their turn
        others = replace(board, parents=survivors(record, tried, replace(settings, top=len(tried))))
        more = proposer.propose(others)
        made = _proposed(others, more, settings)[: settings.top * settings.per_run]
        found = more if made else found
    stopped = "" if made else f"no proposals because {_why_none(board, found)}"
    return Next(number, tuple(made), stopped, tuple(name for name, _ in found.rulings), found.rulings)


def _proposed(board: Board, found: Proposals, settings: LoopSettings) -> list[Proposed]:
    known = {each.digest for each in board.record.variants}
    names = {each.name for each in board.record.variants}
    made: list[Proposed] = []
    for parent, rulings in found.rulings:
        for proposed in _fresh(board.record, board.named(parent), rulings, known, names, settings.per_run):
            made.append(proposed)
            known.add(proposed.variant.digest)
            names.add(proposed.variant.name)
    return made


def board_of(record: LoopRecord, tried: Sequence[Tried], settings: LoopSettings) -> Board:
    return Board(record, tried, survivors(record, tried, settings), settings.by, settings.better)


# -- stop conditions


def _over(record: LoopRecord, tried: Sequence[Tried], settings: LoopSettings, most: int) -> str:
    if settings.target and (met := _meets(tried, settings.target)):
        return f"the target is reached: {met}"
    if waiting := _not_over(record, tried):
        return waiting
    if settings.no_gain and settings.by:
        course = gains(record, tried, settings)
        without = _without_gain(course)
        if without >= settings.no_gain:
            best = course[-1]
            return (
                f"no gain in {counted(without, 'round')}: {settings.by} is still best with {best.best} "
                f"({best.score.mean:.4g})"
            )
    if record.round >= most:
        return f"all {counted(most, 'round')} are done" if most > 1 else "the one round is done"
    return ""


def _not_over(record: LoopRecord, tried: Sequence[Tried]) -> str:
    """Runs that still run, wait, or may not start: left out by a filter, held for the budget."""
    runs = [run for each in tried if each.variant.round == record.round for run in each.runs]
    waiting = [run for run in runs if not run.over]
    if not waiting:
        return ""
    named = "; ".join(f"{run.cell} is {run.verdict}: {run.why}" for run in waiting[:NAMED])
    more = f"; and {len(waiting) - NAMED} more" if len(waiting) > NAMED else ""
    have = "has" if len(waiting) == 1 else "have"
    of = f"{len(waiting)} of {counted(len(runs), 'run')}"
    return f"round {record.round} is not over, {of} {have} no end yet: {named}{more}"


def _meets(tried: Sequence[Tried], target: str) -> str:
    node = parse(target)
    for each in tried:
        done = replace(each, runs=tuple(run for run in each.runs if run.verdict == "DONE"))
        if evaluate(node, Metrics(done.summaries)).true:
            return f"{target} holds for {each.variant.name}"
    return ""


def gains(record: LoopRecord, tried: Sequence[Tried], settings: LoopSettings) -> list[Gain]:
    """The course of the best. Another one takes its place only if it is better beyond the noise of the seeds."""
    found: list[Gain] = []
    best: tuple[Tried, Score] | None = None
    for number in range(1, record.round + 1):
        of_round = [each for each in tried if each.variant.round == number]
        gained = False
        for each, scored in ranked(of_round, settings.by, settings.better):
            if best is None or beats(scored, best[1], settings.better):
                best, gained = (each, scored), True
                break
        if best:
            found.append(Gain(number, best[0].variant.name, best[1], gained))
    return found


def _without_gain(course: Sequence[Gain]) -> int:
    count = 0
    for gain in reversed(course):
        if gain.gained:
            break
        count += 1
    return count


# -- proposals


def survivors(record: LoopRecord, tried: Sequence[Tried], settings: LoopSettings) -> list[Tried]:
    """With `keep:` the best of all rounds, else all of this one; in any case with a history and a config."""
    fit = [each for each in tried if each.summaries and not each.trouble]
    if settings.top and settings.by:
        return [each for each, _ in ranked(fit, settings.by, settings.better)][: settings.top]
    return [each for each in fit if each.variant.round == record.round]


def _fresh(
    record: LoopRecord, parent: Tried, found: Sequence[Ruling], known: set[str], names: set[str], most: int
) -> Iterator[Proposed]:
    """Of the rules' proposals the first so many that nobody has tried."""
    root = record.lineage(parent.variant.name)[0].name
    count = 0
    for ruling in found:
        proposal = ruling.proposal
        if proposal is None or proposal.digest in known or count == most:
            continue
        count += 1
        variant = Variant(
            name=variant_name(root, proposal.digest, names),
            config="",
            round=record.round + 1,
            digest=proposal.digest,
            parent=parent.variant.name,
            edits=proposal.edits,
            reason=proposal.reason,
            by=proposal.rule,
            notes=tuple(f"{each.path}: {each.note}" for each in proposal.edited.changes if each.note),
        )
        yield Proposed(variant, proposal.edited.text, parent.kind)


def _silent(run: Run) -> str:
    """What a run died of explains best why it left nothing."""
    if run.over and run.verdict != "DONE" and run.why:
        return f"{run.cell} is {run.verdict}: {run.why}"
    return f"{run.cell}: {run.unread or run.why or run.verdict}"


def _why_none(board: Board, found: Proposals) -> str:
    reasons = []
    of_round = [each for each in board.tried if each.variant.round == board.record.round]
    runs = [run for each in of_round for run in each.runs]
    silent = [run for run in runs if not run.readable]
    if silent:
        named = "; ".join(dict.fromkeys(_silent(run) for run in silent[:NAMED]))
        more = f"; and {len(silent) - NAMED} more" if len(silent) > NAMED else ""
        reasons.append(f"{len(silent)} of {counted(len(runs), 'run')} left no readable history: {named}{more}")
    reasons += [f"{each.variant.name}: {each.trouble}" for each in board.tried if each.trouble][:NAMED]
    reasons += found.why
    rulings = [ruling for _, of_parent in found.rulings for ruling in of_parent]
    if any(ruling.proposal for ruling in rulings):
        reasons.append("every config that was proposed has been tried before")
    told = dict.fromkeys(f"{ruling.reason}: {ruling.because}" for ruling in rulings if not ruling.proposal)
    return "; ".join([*reasons, *list(told)[:NAMED]]) or "there is no run to build on"
