"""Keeps the watch over living runs: folds each poll's readings in, remembers them, and tells which verdicts changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from muster.engine.judge.liveness import NO_SIBLING_PRIOR, RunWatch, SiblingPrior, count_conviction
from muster.engine.judge.signal_history import Thresholds, begin_history, fold_readings
from muster.engine.ports.probe import GroupCadence, RunSignals, WatchBookStorage
from muster.engine.ports.store import LoggedDecision
from muster.model.attempt import Attempt, AttemptKey
from muster.model.attempt_snapshot import AttemptSnapshot, RunReadings
from muster.model.campaign import Job
from muster.model.campaign_state import CampaignState
from muster.model.verdict import Verdict, VerdictState

VerdictSort = tuple[str, str | None, str]
DISK_POLLS, DISK_SAMPLES = 12, 120  # a sample each minute, for two hours
PASSING_KINDS = ("claimed", "ending")  # the moments before a start and after an end


def is_living_run(seen: AttemptSnapshot) -> bool:
    begun = seen.started in ("yes", "lost")
    return begun and seen.exit is None and seen.host == "same" and seen.lives


def watch_name_of(attempt: Attempt) -> str:
    return f"{attempt.cell}@{attempt.n}"


def cadence_group(attempt: Attempt, job: Job) -> str:
    """Siblings share the job and the code; their configs may differ."""
    return f"{job.name}@{attempt.hash.partition('-')[2]}"


class WatchBook:
    def __init__(self, floors: Thresholds, memory: WatchBookStorage) -> None:
        self.floors, self.memory = floors, memory
        self.remembered = memory.load()

    def output_of(self, attempt: Attempt) -> str | None:
        """Where a living run writes, once that was found."""
        history = self.remembered.histories.get(watch_name_of(attempt))
        return history.output if history else None

    def of(self, attempt: Attempt, seen: AttemptSnapshot, job: Job) -> RunWatch | None:
        """None: it does not live, so there is nothing to watch."""
        if not is_living_run(seen) or seen.identity is None:
            return None
        histories = self.remembered.histories
        name = watch_name_of(attempt)
        if name not in histories:
            histories[name] = begin_history(seen.identity.boot, seen.boot)
        return RunWatch(histories[name], self._prior(attempt, job), self.floors)

    def _prior(self, attempt: Attempt, job: Job) -> SiblingPrior:
        kin = self.remembered.siblings.get(cadence_group(attempt, job))
        return SiblingPrior(kin.longest, kin.first_s) if kin else NO_SIBLING_PRIOR

    def poll(self, state: CampaignState, sightings: Mapping[AttemptKey, AttemptSnapshot], signals: RunSignals) -> None:
        """Reads the signals of all that lives, folds them in, and remembers."""
        living = [
            (state.cells[cell].attempts[n - 1], seen) for (cell, n), seen in sightings.items() if is_living_run(seen)
        ]
        readings = signals.read(living)
        for attempt, seen in living:
            job = state.job(state.cells[attempt.cell].cell.job)
            watch = self.of(attempt, seen, job)
            if watch and attempt.key in readings:
                fold_readings(watch.history, readings[attempt.key], seen.main_state, watch.floors)
                count_conviction(watch, job, readings[attempt.key].boot)
        self._note_disk([each for each in readings.values() if each.vitals.disk_free is not None])
        self._save(state)

    def _note_disk(self, readings: Sequence[RunReadings]) -> None:
        """The free space of the disk that has least, every so often: its trend says whether it lasts."""
        known = self.remembered.disk
        if not readings or (known and readings[0].boot - known[-1][0] < DISK_POLLS * self.floors.poll_s):
            return
        known.append((readings[0].boot, min(each.vitals.disk_free or 0 for each in readings)))
        del known[:-DISK_SAMPLES]

    def with_memory(self, attempt: Attempt, seen: AttemptSnapshot) -> AttemptSnapshot:
        """How a run was at the last look helps to tell what it died of."""
        history = self.remembered.histories.get(watch_name_of(attempt))
        if seen.exit is None or seen.aftermath is None or history is None:
            return seen
        known = replace(
            seen.aftermath,
            oom_last=history.oom_kills,
            last_look_s=max(0.0, seen.exit.boot - history.polled) if history.vitals.states else None,
            gpu_lost=seen.aftermath.gpu_lost or history.gpu_lost,
            non_finite=seen.aftermath.non_finite or history.non_finite,
        )
        return replace(seen, aftermath=known)

    def changed(self, attempt: Attempt, verdict: Verdict) -> VerdictSort | None:
        """What it was before, if that is worth an event. The first RUNNING of a run is not: its start was recorded."""
        if verdict.kind in PASSING_KINDS:
            return None
        before = self.remembered.told.get(watch_name_of(attempt), (str(VerdictState.RUNNING), None, ""))
        now = (str(verdict.state), verdict.kind, verdict.confidence)
        self.remembered.told[watch_name_of(attempt)] = now
        return before if _verdict_change_key(before) != _verdict_change_key(now) else None

    def recall(self, attempt: Attempt, events: Iterable[LoggedDecision]) -> None:
        """What was recorded last: the log knows better than what an earlier controller may not have saved."""
        self.remembered.told.pop(watch_name_of(attempt), None)
        for event in events:
            decision = event.decision
            if decision.kind == "verdict" and decision.attempt == attempt.n and not event.void:
                state, _, kind = str(decision.data["to"]).partition("(")
                told = (state, kind.rstrip(")") or None, str(decision.data["confidence"]))
                self.remembered.told[watch_name_of(attempt)] = told

    def learn(self, attempt: Attempt, job: Job) -> None:
        """A run that has ended teaches its siblings; one that was never convicted, so that a hang teaches nothing."""
        history = self.remembered.histories.pop(watch_name_of(attempt), None)
        self.remembered.told.pop(watch_name_of(attempt), None)
        if history is None or history.convicted_polls:
            return
        kin = self.remembered.siblings.setdefault(cadence_group(attempt, job), GroupCadence())
        for pulse in history.pulses.values():
            longest = max((cadence.longest for cadence in pulse.cadences.values()), default=0.0)
            if longest:
                kin.longest[pulse.signal] = max(longest, kin.longest.get(pulse.signal, 0.0))
        if history.first is not None:
            kin.first_s = max(history.first, kin.first_s or 0.0)

    def _save(self, state: CampaignState) -> None:
        kept = {watch_name_of(attempt) for attempt in state.open_attempts}
        remembered = self.remembered
        remembered.histories = {name: each for name, each in remembered.histories.items() if name in kept}
        remembered.told = {name: each for name, each in remembered.told.items() if name in kept}
        self.memory.save(remembered)


def _verdict_change_key(sort: VerdictSort) -> VerdictSort:
    """`starting`, and how sure a RUNNING is, come and go without anything having happened."""
    state, kind, confidence = sort
    if state == VerdictState.RUNNING:
        return (state, None if kind == "starting" else kind, "")
    return (state, kind, confidence)
