"""The judge's part of `muster look`: a history begun with the times of a run's files, and how a run ended that nobody
watched.

A few looks in a few seconds show little of a run that is hours old. File times tell the rest, by the wall clock,
which may be wrong: what rests on that, or on a run's own last words, is never called proven.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from muster.engine.judge.cause_rules import CauseReport, find_cause
from muster.engine.judge.liveness import (
    NO_SIBLING_PRIOR,
    LivenessFinding,
    RunWatch,
    count_conviction,
    format_elapsed,
    judge_liveness,
    pulse_silence_s,
    silence_limits,
)
from muster.engine.judge.log_clues import LogClues, read_log_clues
from muster.engine.judge.signal_history import ActivityRate, SignalPulse, Thresholds, begin_history, fold_readings
from muster.model.attempt_snapshot import ExitRecord, PostMortem, ProgressMark, RunReadings, TreeVitals
from muster.model.campaign import Job
from muster.model.foreign_run import LogTail, ProgressDates
from muster.model.verdict import Cause, VerdictState
from muster.text.phrases import join_phrases, phrase

LATER_THAN_LOG_S = 60.0  # a run may still save something while it ends
_FATAL = {
    "Segmentation fault": 11,
    "Aborted": 6,
    "Bus error": 7,
    "Floating point exception": 8,
    "Illegal instruction": 4,
}
_NEAR_END = 5  # lines
_FAILED = ExitRecord(
    1, None, 0.0, 0.0, 0.0
)  # nobody saw its exit: taken to have failed, to see what its log would say then


@dataclass(frozen=True, slots=True)
class RunDeath:
    found: CauseReport
    log: LogTail | None  # the one that shows it
    stale: tuple[str, ...] = ()  # logs that tell of a death before the last sign of life


def read_death_from_logs(logs: Sequence[LogTail], alive_at: float | None, exit_: ExitRecord | None) -> RunDeath | None:
    """`alive_at`: when progress was made last, by file times; what a log said before that ended another run.

    None: neither its exit nor any log tells how it ended, or it ended well.
    """
    if exit_ is not None and exit_.code == 0:
        return None
    stale: list[str] = []
    for log in logs:
        found = _cause_in_log(log, exit_)
        if found is None:
            continue
        if alive_at is not None and alive_at > log.at + LATER_THAN_LOG_S:
            stale.append(phrase("judge.tells_but_progress_made_after_earlier", name=log.name, cause=found.cause))
            continue
        return RunDeath(found, log, tuple(stale))
    if exit_ is not None:
        return RunDeath(find_cause(exit_, PostMortem(), (), ()), None, tuple(stale))
    return None


def _cause_in_log(log: LogTail, exit_: ExitRecord | None) -> CauseReport | None:
    found = find_cause(exit_ or _FAILED, PostMortem(err=log.text), (), ())
    if exit_ is not None and exit_.code != 0:
        known = exit_.signal is not None or found.cause.kind == "exit_code"  # that the log is its own is not known
        return found if known else replace(found, cause=replace(found.cause, confidence="probable"))
    if found.cause.kind == "exit_code":  # only our own supposition
        return _cause_in_last_notices(read_log_clues(log.text))
    if found.cause.confidence == "proven":
        return replace(found, cause=replace(found.cause, confidence="probable"))
    return found


def _cause_in_last_notices(clues: LogClues) -> CauseReport | None:
    """What a shell, Python's fault handler or C++ said at the very end."""
    spoken = [row for row, line in enumerate(clues.lines) if line.strip()]
    if not spoken:
        return None
    end = spoken[-_NEAR_END:][0]
    told = [notice for notice in clues.said("shell", "terminate") if notice.row >= end]
    told += clues.said("fatal_python")  # the stacks of its threads follow it
    for notice in reversed(told):
        number = notice.number or next((sign for words, sign in _FATAL.items() if words in notice.text), None)
        if notice.kind == "terminate":
            number = 6
        if number is not None:
            note = phrase("judge.log_says_ended_signal_who_sent_not", number=number)
            return CauseReport(Cause("signal", str(number), "probable", note), (), (notice.text,), "")
    return None


FILE_TIME_SLACK_S = 2.0  # file times are coarse


class UnwatchedRunWatch:
    def __init__(
        self, job: Job, dated: Mapping[str, ProgressDates], began: float, now: float, floors: Thresholds
    ) -> None:
        self.job, self.dated = job, dated
        self.first = now  # the first look
        self.looks = 0
        history = begin_history(began, now)
        history.since = began  # nobody watched before, but its files would tell of progress since its start
        self.watch = RunWatch(history, NO_SIBLING_PRIOR, floors)
        self._counts: dict[str, float | None] = {}  # of each signal at its first sight
        self._counted: dict[str, float] = {}  # from when the silence of a signal counts, by its files
        self._idle = True
        self._start: tuple[float, TreeVitals] | None = None

    def look(self, seen: RunReadings, main_state: str, wall: float, slept: float = 0.0) -> None:
        """Folds one look in. `slept`: how long the machine was suspended since its boot; no run works then."""
        history, floors = self.watch.history, self.watch.floors
        marks = tuple(self._doubted(mark) for mark in seen.marks)
        fold_readings(history, replace(seen, marks=marks), main_state, floors)
        if not self.looks:
            self.first = seen.boot
        self._idle = self._idle and (not self.looks or history.idle_since is not None)
        self.looks += 1
        for pulse in history.pulses.values():
            if pulse.signal not in self._counts:
                self._counts[pulse.signal] = pulse.count
                self._seed(pulse, seen.boot, wall, slept)
            elif pulse.advances == 0 and pulse.signal in self._counted:
                pulse.counted = self._counted[pulse.signal]  # a late look drops what it knows, not what files tell
        history.since = history.began
        self._average(seen)
        self._confirm(seen.boot)

    @property
    def advanced(self) -> frozenset[str]:
        """The signals that were seen to advance, by these looks and not by their files' times."""
        return frozenset(pulse.signal for pulse in self.watch.history.pulses.values() if pulse.advances)

    @property
    def dated_only(self) -> frozenset[str]:
        """Those that are known to have advanced by file times alone."""
        return frozenset(self._counted) - self.advanced

    @property
    def idle(self) -> bool:
        """No CPU and no I/O in the whole tree, in all looks."""
        return self._idle and self.looks > 1

    def find(self, now: float) -> LivenessFinding:
        """The judge's finding, no surer than what was seen by these looks."""
        return self._tempered(find_without_mute_signals(self.watch, self.job, now), now)

    # -- what files tell

    def _doubted(self, mark: ProgressMark) -> ProgressMark:
        """A signal whose last advance can't be dated abstains until it advances before our eyes."""
        why = self.dated[mark.signal].why if mark.signal in self.dated else ""
        still = mark.count is not None and mark.count <= (self._counts.get(mark.signal, mark.count) or 0.0)
        pulse = self.watch.history.pulses.get(mark.signal)
        if why and still and not mark.trouble and not (pulse and pulse.advances):
            return replace(mark, trouble=join_phrases("; ", (mark.reading, why)))
        return mark

    def _seed(self, pulse: SignalPulse, boot: float, wall: float, slept: float) -> None:
        found = self.dated.get(pulse.signal)
        if found is None or found.last is None or pulse.trouble or pulse.count is None:
            return
        at = boot - max(0.0, wall - found.last)
        if at < self.watch.history.began - FILE_TIME_SLACK_S:
            return  # written before it started, by another run
        for gap in found.gaps:
            pulse.cadence.learn(gap)
        pulse.advanced, pulse.torn = at, False
        pulse.counted = self._counted[pulse.signal] = min(boot, at + slept)

    def _average(self, seen: RunReadings) -> None:
        """Activity over all looks: the judge blends it over a minute, which these few seconds are not."""
        if self._start is None or seen.vitals.cpu_s is None:
            self._start = (seen.boot, seen.vitals)
            return
        began, first = self._start
        took = seen.boot - began
        if took <= 0:
            return
        history = self.watch.history
        history.recent = ActivityRate(
            _rate_between_looks(first.cpu_s, seen.vitals.cpu_s, took),
            _rate_between_looks(_io_bytes_of_vitals(first), _io_bytes_of_vitals(seen.vitals), took),
            history.rate.gpu,
        )

    # -- the verdict

    def _confirm(self, now: float) -> None:
        """A tree that did nothing in all looks is taken to have done nothing since its files were last written."""
        history = self.watch.history
        idle = history.idle_since
        if idle is not None and self.idle and self.looks > 3 and history.advanced is not None:
            history.idle_since = min(idle, history.advanced)
        count_conviction(self.watch, self.job, now)
        history.idle_since = idle

    def _tempered(self, found: LivenessFinding, now: float) -> LivenessFinding:
        seen = self.advanced
        if found.state == VerdictState.STALLED and found.kind != "stopped":
            by_files = self._by_files(now)
            sure = "presumed" if by_files else found.confidence
            return replace(
                found,
                confidence=sure,
                reason=join_phrases("; ", (found.reason, by_files)) if by_files else found.reason,
            )
        if found.state == VerdictState.QUIET and found.confidence == "proven":
            spoke = any(pulse.advances and not pulse.is_log for pulse in self.watch.history.pulses.values())
            return (
                found
                if spoke
                else replace(found, confidence="presumed", reason=phrase("judge.by_file_times", reason=found.reason))
            )
        if found.state == VerdictState.RUNNING and found.kind is None and not seen and self.dated_only:
            rest = (
                [phrase("judge.did_nothing_we_looked", elapsed=format_elapsed(now - self.first))] if self.idle else []
            )
            return replace(
                found,
                confidence="presumed",
                reason=join_phrases("; ", (phrase("judge.by_file_times", reason=found.reason), *rest)),
            )
        if found.state == VerdictState.RUNNING and found.kind == "overdue" and self.dated_only:
            return replace(found, reason=join_phrases("; ", (found.reason, phrase("judge.dated_by_file_times"))))
        return found

    def _by_files(self, now: float) -> str:
        """Of a stall that lasts longer than these looks."""
        history = self.watch.history
        floors = self.watch.floors
        needed = [
            silence_limits(each, history, NO_SIBLING_PRIOR, floors, idle=True).convict_s
            for each in history.pulses.values()
        ]
        return "" if now - self.first >= max(needed, default=0.0) else phrase("judge.how_long_known_file_times_only")


def find_without_mute_signals(watch: RunWatch, job: Job, now: float) -> LivenessFinding:
    """A checkpoint of unknown cadence that was saved some time ago can't speak for a silent log."""
    mute = [
        pulse
        for pulse in watch.history.pulses.values()
        if not pulse.is_log
        and not pulse.advances
        and not pulse.cadence.count
        and pulse_silence_s(pulse, now) > watch.floors.suspect_s
    ]
    for pulse in mute:
        pulse.is_log = True
    try:
        return judge_liveness(watch, job, now)
    finally:
        for pulse in mute:
            pulse.is_log = False


def _rate_between_looks(before: float | None, after: float | None, took: float) -> float | None:
    return None if before is None or after is None else max(0.0, after - before) / took


def _io_bytes_of_vitals(vitals: TreeVitals) -> float | None:
    return None if vitals.io_bytes is None else vitals.io_bytes + (vitals.out_bytes or 0)
