"""The event table as a story: what happened in order, many of a kind in one line, nothing routine in the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from muster.app.facts.record_facts import Observation
from muster.engine.ports.store import LoggedDecision
from muster.model.attempt import Attempt
from muster.model.campaign_state import CampaignState

MOST_OBSERVATIONS = 200  # observations that are shown
MOST_LINES_OF_LOG = 5  # of a log
MOST_READINGS = 4
ROUTINE = "routine"
RELEASED_WITHOUT_REASON = "released by a person"  # what `release` records where no reason was given
STOPPED_SHORT = "nothing runs and nothing may start: "  # how a controller says that it ends
# who decides, and what about; the reason is the sentence
_KINDS_OF_PEOPLE = frozenset({"hold", "release", "retry", "redo", "giveup", "accept", "flag", "stop", "note"})
_ALARMING_VERDICTS = ("STALLED", "UNKNOWN")
# told elsewhere, or only a step on the way
_SILENT_KINDS = frozenset({"notice"})
REVIVAL_REASONS = {"revived by a shim": "revived", "revived by the guard": "guarded"}

LogPathsOfAttempt = Callable[[Attempt], tuple[str, ...]]


@dataclass(slots=True)
class EventStory:
    """Events go in one by one; what they add up to comes out."""

    state: CampaignState
    paths_of: LogPathsOfAttempt
    controller: str = ""  # the last one that began
    ended: bool = True  # and it ended in order
    quiet: int = 0

    def tell(self, events: Sequence[LoggedDecision]) -> list[Observation]:
        return fold_observations(list(self._all(events)))

    def _all(self, events: Sequence[LoggedDecision]) -> Iterator[Observation]:
        rest = list(events)
        at = 0
        while at < len(rest):
            together = _events_of_one_up(rest, at)
            if together > 1:
                yield from self._up(rest[at : at + together])
            else:
                yield from self._one(rest[at])
            at += together

    def _one(self, event: LoggedDecision) -> Iterator[Observation]:
        decision = event.decision
        if event.void:
            if decision.kind in _KINDS_OF_PEOPLE:
                parts = {"who": decision.who, "what": decision.kind, "why": event.void}
                yield Observation("refused", decision.at, parts=parts, cells=_cells_of_event(decision.cell))
            return
        teller = _HANDLER_BY_KIND.get(decision.kind)
        if teller:
            yield from teller(self, event)
        elif decision.kind in _KINDS_OF_PEOPLE:
            yield self._person(event)
        elif decision.kind not in _SILENT_KINDS and not (
            decision.kind == "clean" and decision.cell
        ):  # one tells the sum
            parts = {"who": decision.who, "what": decision.kind, "why": decision.reason}
            yield Observation("other", decision.at, parts=parts, cells=_cells_of_event(decision.cell))

    def _person(self, event: LoggedDecision) -> Observation:
        decision = event.decision
        pointed = decision.data.get("evidence") if decision.kind == "note" else None
        evidence = (f"{pointed['file']}:{pointed['line']}: {pointed['text'].strip()}",) if pointed else ()
        kind = "hold_itself" if decision.kind == "hold" and decision.epoch is not None else decision.kind
        if kind == "note" and decision.cell:
            kind = "note_cell"
        if kind == "release" and decision.reason in ("", RELEASED_WITHOUT_REASON):
            kind = "release_plain"
        code = {"code": str(decision.data["code"])} if kind == "flag" else {}
        return Observation(
            kind,
            decision.at,
            parts={"who": decision.who, "why": decision.reason, **code},
            cells=_cells_of_event(decision.cell),
            evidence=evidence,
        )

    def _up(self, events: Sequence[LoggedDecision]) -> Iterator[Observation]:
        first = events[0].decision
        refused = next((event.void for event in events if event.void), None)
        only = next((event.decision for event in events if event.decision.kind == "filter"), None)
        chosen = only.reason.partition(" leaves out ")[0] if only else ""
        if refused:
            yield Observation("refused", first.at, parts={"who": first.who, "what": "up", "why": refused})
        elif only:
            parts = {"who": first.who, "only": chosen, "left": str(len(only.data.get("left_out", ())))}
            yield Observation("up_only", first.at, parts=parts)
        else:
            yield Observation("up", first.at, parts={"who": first.who})

    # -- one kind each

    def _epoch(self, event: LoggedDecision) -> Iterator[Observation]:
        decision = event.decision
        if not decision.who.startswith("controller"):
            return  # a command that decided in a controller's place
        if not self.ended:
            kind = REVIVAL_REASONS.get(decision.reason, "took_over")
            yield Observation(kind, decision.at, parts={"who": decision.who, "before": self.controller})
        self.controller, self.ended = decision.who, False

    def _end(self, event: LoggedDecision) -> Iterator[Observation]:
        self.ended = True
        why = event.decision.reason
        kind = "end_complete" if event.decision.data.get("complete") else "end"
        if kind == "end" and why.startswith(STOPPED_SHORT):
            kind, why = "end_short", why.removeprefix(STOPPED_SHORT)
        yield Observation(kind, event.decision.at, parts={"who": event.decision.who, "why": why})

    def _round(self, event: LoggedDecision) -> Iterator[Observation]:
        decision = event.decision
        made = decision.data.get("variants") or ()
        if decision.data.get("stopped"):
            yield Observation("loop_stopped", decision.at, parts={"why": decision.reason})
            return
        reasons: dict[str, list[str]] = {}
        for each in made:
            reasons.setdefault(each["reason"], []).append(each["name"])
        told = "; ".join(f"{', '.join(names)} ({why})" for why, names in reasons.items())
        yield Observation("round", decision.at, parts={"n": str(decision.data["round"]), "what": told})

    def _finish(self, event: LoggedDecision) -> Iterator[Observation]:
        """A step that proposes a round and goes well is told by its round."""
        decision = event.decision
        well = decision.data.get("ok", True)
        if str(decision.data.get("step", "")).startswith("round-") and (well is None or well):
            return
        parts = {"who": decision.who, "what": decision.kind, "why": decision.reason}
        yield Observation("other", decision.at, parts=parts)

    def _intent(self, event: LoggedDecision) -> Iterator[Observation]:
        decision = event.decision
        if decision.data.get("intent") == "down":
            self.ended = True
            yield Observation("down", decision.at, parts={"who": decision.who})
        else:
            yield Observation("up", decision.at, parts={"who": decision.who})

    def _campaign(self, event: LoggedDecision) -> Iterator[Observation]:
        """By itself: an adoption took it in. The text is told among the changes."""
        yield Observation("taken", event.decision.at, parts={"who": event.decision.who})

    def _start(self, event: LoggedDecision) -> Iterator[Observation]:
        decision = event.decision
        cause = decision.data.get("retry_cause")
        if cause:
            parts = {"n": str(decision.attempt), "why": str(cause)}
            yield Observation("again", decision.at, parts=parts, cells=_cells_of_event(decision.cell))
        else:
            yield Observation(ROUTINE, decision.at, cells=_cells_of_event(decision.cell))

    def _settle(self, event: LoggedDecision) -> Iterator[Observation]:
        decision = event.decision
        attempt = self._attempt(decision.cell, decision.attempt)
        outcome = attempt.outcome if attempt else None
        if attempt is None or outcome is None:
            return
        if str(outcome.verdict) == "DONE":
            yield Observation(ROUTINE, decision.at, cells=_cells_of_event(decision.cell), count=0, done=1)
            return
        cause = outcome.cause
        parts = {
            "n": str(attempt.n),
            "cause": str(cause) if cause else "unknown",
            "confidence": cause.confidence if cause else "unknown",
            "why": outcome.reason,
            "took": f"{outcome.duration_s:.0f}" if outcome.duration_s is not None else "",
        }
        proof = cause is not None and cause.kind == "early_exit"  # else what it did not leave is no news
        shown = [item for item in outcome.evidence if item.says not in ("abstains", "holds") and item.signal != "log"]
        readings = [f"{item.signal}: {item.reading}" for item in shown if proof or item.kind != "proof"]
        kind = "dead" if parts["took"] else "dead_unstarted"
        yield Observation(
            kind,
            decision.at,
            parts=parts,
            cells=_cells_of_event(decision.cell),
            evidence=tuple(readings[:MOST_READINGS]),
            lines=outcome.lines[:MOST_LINES_OF_LOG],
            paths=self.paths_of(attempt),
        )

    def _rename(self, event: LoggedDecision) -> Iterator[Observation]:
        decision = event.decision
        parts = {"who": decision.who, **{key: str(decision.data[key]) for key in ("axis", "old", "new")}}
        yield Observation("rename", decision.at, parts=parts)

    def _reread(self, event: LoggedDecision) -> Iterator[Observation]:
        decision = event.decision
        kind = "reread" if decision.data.get("holds") else "reread_fails"
        parts = {"who": decision.who, "why": decision.reason}
        yield Observation(kind, decision.at, parts=parts, cells=_cells_of_event(decision.cell))

    def _adopt(self, event: LoggedDecision) -> Iterator[Observation]:
        decision = event.decision
        yield Observation("adopt", decision.at, parts={"who": decision.who}, cells=_cells_of_event(decision.cell))

    def _refuse(self, event: LoggedDecision) -> Iterator[Observation]:
        decision = event.decision
        parts = {"who": decision.who, "why": decision.reason, "path": str(decision.data.get("path", ""))}
        yield Observation("refuse", decision.at, parts=parts, cells=_cells_of_event(decision.cell))

    def _verdict(self, event: LoggedDecision) -> Iterator[Observation]:
        """Only what a person should hear of; how often a run was merely quiet is counted."""
        decision = event.decision
        was, now = str(decision.data.get("from", "")), str(decision.data.get("to", ""))
        self.quiet += now.startswith("QUIET")
        parts = {
            "was": was,
            "now": now,
            "n": str(decision.attempt),
            "why": decision.reason.partition(": ")[2],
            "confidence": str(decision.data.get("confidence", "")),
        }
        if now.startswith(_ALARMING_VERDICTS):
            yield Observation("trouble", decision.at, parts=parts, cells=_cells_of_event(decision.cell))
        elif was.startswith(_ALARMING_VERDICTS):
            yield Observation("over", decision.at, parts=parts, cells=_cells_of_event(decision.cell))

    def _found(self, event: LoggedDecision) -> Iterator[Observation]:
        decision = event.decision
        yield Observation("found", decision.at, parts={"why": decision.reason}, cells=_cells_of_event(decision.cell))

    def _attempt(self, cell: str | None, n: int | None) -> Attempt | None:
        record = self.state.cells.get(cell or "")
        return record.attempts[n - 1] if record and n and n <= len(record.attempts) else None


_HANDLER_BY_KIND: Mapping[str, Callable[[EventStory, LoggedDecision], Iterator[Observation]]] = {
    "round": EventStory._round,
    "finish": EventStory._finish,
    "epoch": EventStory._epoch,
    "end": EventStory._end,
    "intent": EventStory._intent,
    "campaign": EventStory._campaign,
    "filter": lambda *_: iter(()),  # told with its `up`, and among the changes
    "start": EventStory._start,
    "settle": EventStory._settle,
    "reread": EventStory._reread,
    "rename": EventStory._rename,
    "adopt": EventStory._adopt,
    "refuse": EventStory._refuse,
    "verdict": EventStory._verdict,
    "found": EventStory._found,
}


def _events_of_one_up(events: Sequence[LoggedDecision], at: int) -> int:
    """How many of the events from here on one `muster up` made: the text, perhaps a filter, the wish to run."""
    first = events[at].decision
    if first.kind != "campaign" or not first.data.get("with_up"):
        return 1
    count = 1
    for event in events[at + 1 : at + 3]:
        if event.decision.kind not in ("filter", "intent") or event.decision.who != first.who:
            break
        count += 1
        if event.decision.kind == "intent":
            break
    return count


def fold_observations(seen: Sequence[Observation]) -> list[Observation]:
    """Neighbours of one kind that say the same become one."""
    folded: list[Observation] = []
    for each in seen:
        last = folded[-1] if folded else None
        if last and _can_be_folded(last, each):
            cells = (*last.cells, *(cell for cell in each.cells if cell not in last.cells))
            count, done = last.count + each.count, last.done + each.done
            folded[-1] = replace(
                last, until=each.at, cells=cells, count=count, done=done, paths=(*last.paths, *each.paths)
            )
        else:
            folded.append(each)
    return folded


def _can_be_folded(one: Observation, other: Observation) -> bool:
    if one.kind != other.kind:
        return False
    if one.kind == ROUTINE:
        return True
    differ = {"n", "took"}
    same = {key: value for key, value in one.parts.items() if key not in differ} == {
        key: value for key, value in other.parts.items() if key not in differ
    }
    # what each one's evidence shows is worth its line, and so is a second death of the same cell
    alone = one.kind.startswith("note") or set(one.cells) & set(other.cells)
    return same and not alone and (bool(one.cells) == bool(other.cells))


def shorten_story(seen: Sequence[Observation], most: int = MOST_OBSERVATIONS) -> tuple[list[Observation], int]:
    """The first and the last ones of too many, and how many lie between them."""
    if len(seen) <= most:
        return list(seen), 0
    half = most // 2
    return [*seen[:half], *seen[-half:]], len(seen) - 2 * half


def _cells_of_event(cell: str | None) -> tuple[str, ...]:
    return (cell,) if cell else ()
