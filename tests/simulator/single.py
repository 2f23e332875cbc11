"""One history: a simulated run is looked at, judged by the real judge, and each verdict is held against the truth.

The judge sees readings alone. What is wrong is kept with its time; `python -m simulator single --seed N` shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

import msgspec

from muster.engine.controller.watch_book import WatchBook, watch_name_of
from muster.engine.judge.liveness import RunWatch, SiblingPrior
from muster.engine.judge.signal_history import EARLY_WATCH_S, SignalHistory
from muster.engine.ports.probe import WatchBookState
from muster.model.attempt_snapshot import AttemptSnapshot, ProgressMark, RunReadings, TreeVitals
from muster.model.verdict import LIVE_STATES, Verdict, VerdictState
from simulator.bounds import Bound, bound_of, seen_by
from simulator.case import Case, Hole
from simulator.drawing import draw
from simulator.judges import REAL, Judge
from simulator.polls import polls
from simulator.run import Freeze, Run
from simulator.scene import Scene, later
from simulator.truth import Moment

AGAIN_S = 0.2  # an attempt that is ending is looked at again
STALE_S, STALE_POLLS = 180.0, 5
ENDS = (VerdictState.DEAD, VerdictState.DONE)
SPARE_POLLS = 5  # a stall that was told is watched on for so long
Trace = Callable[[float, Moment | None, Verdict], None]
_encoder, _decoder = msgspec.json.Encoder(), msgspec.json.Decoder(WatchBookState)


@dataclass(frozen=True, slots=True)
class Wrong:
    kind: str
    t: float
    text: str


@dataclass(slots=True)
class Result:
    seed: int
    shape: str
    fault: str
    poll_s: float
    hours: float = 0.0  # looked at while it worked
    polls: int = 0
    wrongs: list[Wrong] = field(default_factory=list)
    presumed: list[float] = field(default_factory=list)  # when it was presumed stalled although it worked
    stall_s: float | None = None  # from an idle stall to its verdict, with a learned cadence
    stall_ratio: float | None = None  # of that to what the rules allow
    hang_s: float | None = None  # from any other stall
    hang_ratio: float | None = None
    stop_s: float | None = None  # from SIGSTOP
    death_s: float | None = None  # from the end to the verdict
    cause: str = ""  # right, wrong, wrong but called proven
    causes: tuple[str, str] = ("", "")  # the true one, the named one


def simulate(
    seed: int,
    *,
    judge: Judge = REAL,
    shape: str | None = None,
    fault: str | None = None,
    poll_s: float | None = None,
    trace: Trace | None = None,
) -> Result:
    case, rng = draw(seed, shape, fault, poll_s)
    return Play(case, case.weave(rng), judge, trace).play(seeded(seed))


def seeded(seed: int) -> Random:
    """The chance of the looks is another than that of the run: both can be changed apart."""
    return Random(f"looks {seed}")


class _Nowhere:
    """A memory that is not kept: the simulator decides what a controller remembers."""

    def load(self) -> WatchBookState:
        return WatchBookState()

    def save(self, remembered: WatchBookState) -> None: ...


@dataclass(slots=True)
class _Hang:
    """A stall that goes on."""

    freeze: Freeze
    since: float  # from when its verdict is waited for: a late look starts the wait again
    bound: Bound
    polls: int = 0
    reads: int = 0  # of them, with readings
    told: int = 0  # polls since it was told
    step_s: float = 0.0  # the longest time between two polls


class Play:
    def __init__(self, case: Case, run: Run, judge: Judge, trace: Trace | None) -> None:
        self.case, self.run, self.judge, self.trace = case, run, judge, trace
        self.scene = Scene(case)
        self.floors = judge.floors(case.floors)
        self.prior = SiblingPrior(case.style.prior, case.style.prior_first_s)
        self.result = Result(case.seed, case.shape, case.fault, case.poll_s)
        self.times: list[float] = []  # of the polls that the watcher remembers
        self.watched = 0.0  # since when it remembers
        self.before: VerdictState | None = None  # the last verdict's
        self.hang: _Hang | None = None
        self.blind_polls = 0
        self.read = 0.0  # when the signals were read last
        self.told: set[str] = set()

    def wrong(self, kind: str, t: float, text: str) -> None:
        """Once per history and kind: one mistake is seen at every poll after it."""
        if kind not in self.told:
            self.told.add(kind)
            self.result.wrongs.append(Wrong(kind, t, text))

    def play(self, rng: Random) -> Result:
        ticks = polls(self.case.poll_s, self.case.holes, rng)
        first, away = next(ticks)
        self.watch = self._watch(self.judge.begin(self.case.began, self.case.began + first))
        self._live(first, away, ticks)
        return self.result

    def _watch(self, history: SignalHistory) -> RunWatch:
        return RunWatch(history, self.prior, self.floors)

    # -- while it lives

    def _live(self, t: float, away: tuple[Hole, ...], ticks: Iterator[tuple[float, tuple[Hole, ...]]]) -> None:
        run, scene, judge, result, times = self.run, self.scene, self.judge, self.result, self.times
        attempt, job, floors, clocks = scene.attempt, scene.job, self.floors, self.case.style.clocks
        dies, length, began = scene.dies, self.case.length, self.case.began
        step, late_s = self.case.poll_s, self.case.floors.late_s
        marks: tuple[ProgressMark, ...] = ()
        while t < dies:
            if away:
                self._back(away, t)
                times = self.times
            moment = run.look(t)
            boot = began + t
            seen = scene.alive(t, moment.main_state)
            history = self.watch.history
            if not run.veils or run.answers(t):
                judge.note(history, RunReadings(boot, moment.marks, moment.vitals, clocks), moment.main_state, floors)
                judge.confirm(self.watch, job, boot)
                self.read = t
            verdict = judge.verdict(attempt, seen, job, self.watch)
            late = bool(times) and t - times[-1] > late_s
            stalled = run.stalled_since(t) if run.freezes else None
            if verdict.final or verdict.state in ENDS:
                self.wrong("false_dead", t, f"{verdict.state} while it lives")
                break
            if stalled is None:
                self.hang = None
                if verdict.state is VerdictState.STALLED:
                    self._accused(t, verdict, moment, marks)
                result.polls += 1
            elif self._hanging(t, stalled, verdict, late):
                break
            if run.veils:
                self._check_blind(t, moment, verdict)
            if self.trace:
                self.trace(t, moment, verdict)
            times.append(t)
            self.before, marks = verdict.state, moment.marks
            if t > length and stalled is None:
                break
            t, away = next(ticks)
        result.hours = result.polls * step / 3600
        if t >= dies:
            self._end(t, away, ticks)

    def _back(self, away: tuple[Hole, ...], t: float) -> None:
        """A controller that was started anew reads what it had written down, or finds nothing."""
        kinds = {hole.kind for hole in away}
        if "lost" in kinds:
            self.watch = self._watch(self.judge.begin(self.case.began, self.case.began + t))
            self.times, self.watched = [], t
            self.hang = None
        elif "restart" in kinds:
            saved = _encoder.encode(WatchBookState("boot", {"it": self.watch.history}))
            self.watch = self._watch(_decoder.decode(saved).histories["it"])

    def _accused(self, t: float, verdict: Verdict, moment: Moment, marks: tuple[ProgressMark, ...]) -> None:
        """It is called stalled although it works. What it did since the last poll is what can be known of it."""
        if not self.times or not self.run.works(self.times[-1]):
            return
        if verdict.confidence == "proven":
            self.wrong("false_proven", t, f"{verdict.kind}: {verdict.reason}")
        elif self.before is not VerdictState.STALLED:
            self.result.presumed.append(t)
        if any(new.count > old.count for new, old in zip(moment.marks, marks, strict=False) if new.count and old.count):
            self.wrong("stuck", t, f"it advanced and is called stalled: {verdict.reason}")

    def _check_blind(self, t: float, moment: Moment, verdict: Verdict) -> None:
        gpus = [gpu for gpu in moment.vitals.gpus if gpu.utilisation is not None]
        blind = bool(moment.marks) and not gpus and moment.vitals.cpu_s is None and all(m.trouble for m in moment.marks)
        self.blind_polls = self.blind_polls + 1 if blind else 0
        if t - self.read > max(STALE_POLLS * self.case.poll_s, STALE_S) and verdict.confidence == "proven":
            self.wrong("stale", t, f"{verdict.state} is called proven by readings that are {t - self.read:.0f} s old")
        if self.blind_polls > 1 and verdict.state in (VerdictState.RUNNING, VerdictState.QUIET):
            self.wrong("blind", t, f"{verdict.state} although nothing can be read")

    # -- while it hangs

    def _hanging(self, t: float, stalled: float, verdict: Verdict, late: bool) -> bool:
        """Whether enough was seen of it."""
        hang = self.hang
        if hang is None or late:
            freeze = next(each for each in self.run.freezes if each.hangs and each.start <= t < each.end)
            told = hang.told if hang else 0
            since = t if late or not self.times else stalled
            hang = self.hang = _Hang(freeze, since, self._bound(freeze, t), told=told)
        hang.polls += 1
        hang.reads += self.read == t
        hang.step_s = max(hang.step_s, t - self.times[-1] if self.times and not late else 0.0)
        if verdict.state is VerdictState.STALLED:
            if not hang.told:
                self._told(t, hang, verdict)
            hang.told += 1
            if verdict.confidence == "proven" and hang.freeze.kind == "busy":
                self.wrong("proven_busy", t, f"proven although something of it is active: {verdict.reason}")
        elif hang.told and hang.freeze.kind == "stopped" and hang.polls > 2 and self.read == t:
            self.wrong("stop_forgotten", t, f"{verdict.state} although it is still stopped")
        self._check_stop(t, hang, verdict)
        if hang.freeze.end < 1e9:
            return False
        due = hang.since + hang.bound.seconds + 6 * max(hang.step_s, self.case.poll_s)
        if not hang.told and t > due:
            self._missed(t, hang, verdict)
            return True
        return hang.told > SPARE_POLLS

    def _bound(self, freeze: Freeze, t: float) -> Bound:
        seen = seen_by(self.run, [*self.times, t], self.case.floors.late_s)
        hidden = any(
            veil.end > freeze.start and veil.what in ("vitals", "io", "gpus", "marks", "all") for veil in self.run.veils
        )
        idle = freeze.kind == "idle" and not hidden and not self.case.style.shared_gpu
        since = self.watched or (self.times[0] if self.times and self.times[0] > EARLY_WATCH_S else 0.0)
        known = not since or t - since > self.case.floors.grace_s
        return bound_of(seen, self.case.style, self.case.floors, idle=idle, known=known)

    def _told(self, t: float, hang: _Hang, verdict: Verdict) -> None:
        if hang.freeze.kind == "stopped" and verdict.kind == "stopped":
            self.result.stop_s = t - hang.since
            return
        took = t - hang.since
        ratio = took / (hang.bound.seconds + 3 * max(hang.step_s, self.case.poll_s))
        if hang.bound.strict:
            self.result.stall_s, self.result.stall_ratio = took, ratio
            if ratio > 1:
                self.wrong("late_stall", t, f"told after {took:.0f} s, {ratio:.2f} of what the rules allow")
        else:
            self.result.hang_s, self.result.hang_ratio = took, ratio

    def _missed(self, t: float, hang: _Hang, verdict: Verdict) -> None:
        """Without a signal that can be read nobody can tell; then it must not be called proven."""
        hidden = any(veil.end > hang.since and veil.what in ("marks", "all") for veil in self.run.veils)
        if self.run.tracks and not hidden:
            self.wrong("missed_stall", t, f"{verdict.state} {t - hang.since:.0f} s after it stalled")

    def _check_stop(self, t: float, hang: _Hang, verdict: Verdict) -> None:
        letters = hang.freeze.doing.letters[0]
        if hang.freeze.kind != "stopped" or self.read < t or (letters[0] == "S" and self.run.veils):
            return
        allowed = 2 if letters[0] in "Tt" else 3  # a launcher is known by its idle tree, which takes one more look
        if hang.reads == allowed and verdict.kind != "stopped":
            self.wrong("late_stop", t, f"{verdict.state} on look {hang.reads} at a stopped run")

    # -- when it ends

    def _end(self, t: float, away: tuple[Hole, ...], ticks: Iterator[tuple[float, tuple[Hole, ...]]]) -> None:
        """The controller is woken, or sees it at its next poll; what is ending is looked at again at once."""
        scene, woken = self.scene, self.scene.leaving.woken
        poll = t
        if woken is not None and not away and scene.dies + woken < poll:
            t = scene.dies + woken
        shown: Verdict | None = None
        while shown is None or not shown.final:
            if poll <= t:
                if shown is None and not away and int(t) % 5 == 0:
                    self._race(t)
                poll, _ = next(ticks)
            seen = self._remembering(scene.ended(t))
            shown = self.judge.verdict(scene.attempt, seen, scene.job, None)
            if self.trace:
                self.trace(t, None, shown)
            if self._ends_wrong(t, shown):
                return
            t = min(poll, t + AGAIN_S) if shown.kind == "ending" else poll
        self._ended(t, seen, shown, present=not away)

    def _race(self, t: float) -> None:
        """It died between the look at its folder and the look at its processes: nothing is there to read."""
        readings = RunReadings(
            self.case.began + t, self.run.look(t).marks, TreeVitals(trouble=(("process", "process 100 is gone"),))
        )
        if self.scene.leaving.host == "same":
            self.judge.note(self.watch.history, readings, "", self.floors)
            self.judge.confirm(self.watch, self.scene.job, self.case.began + t)

    def _remembering(self, seen: AttemptSnapshot) -> AttemptSnapshot:
        """With what the controller knew of it before it died."""
        watches = WatchBook(self.floors, _Nowhere())
        watches.remembered.histories[watch_name_of(self.scene.attempt)] = self.watch.history
        return watches.with_memory(self.scene.attempt, seen)

    def _ends_wrong(self, t: float, shown: Verdict) -> bool:
        scene = self.scene
        if t < scene.over and shown.final and shown.state is VerdictState.DEAD:
            self.wrong("false_dead", t, f"DEAD ({shown.reason}) while processes of it live on")
            return True
        if t >= scene.over and shown.state in LIVE_STATES:
            self.wrong("alive_while_dead", t, f"{shown.state} {t - scene.over:.1f} s after its end")
            return True
        if t > scene.known and not shown.final:
            self.wrong("late_end", t, f"{shown.state} although all is known: {shown.reason}")
            return True
        return False

    def _ended(self, t: float, seen: AttemptSnapshot, shown: Verdict, *, present: bool) -> None:
        result, ending, scene = self.result, self.case.ending, self.scene
        assert ending is not None
        if present:
            result.death_s = max(0.0, seen.boot - scene.boot_at(scene.over))
        if shown.state != self.case.expected:
            self.wrong("wrong_end", t, f"{shown.state} instead of {self.case.expected}: {shown.reason}")
        if ending.cause:
            named = shown.cause.kind if shown.cause else ""
            result.causes = (ending.cause, named)
            result.cause = "right" if named == ending.cause else "wrong"
            if result.cause == "wrong" and shown.cause and shown.cause.confidence == "proven":
                result.cause = "proven"
                self.wrong("wrong_proven_cause", t, f"{shown.cause} is called proven; it was {ending.cause}")
        for look in later(seen):
            again = self.judge.verdict(scene.attempt, look, scene.job, None)
            if again.state != shown.state or not again.final or (seen.exit and again.cause != shown.cause):
                self.wrong("overwritten", t, f"{shown.state} {shown.cause} became {again.state} {again.cause}")
