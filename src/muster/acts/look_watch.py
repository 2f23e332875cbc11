"""The watch over a training that Muster did not start: the judge's own history, begun with what its files tell.

A few looks in a few seconds show little of a run that is hours old. When its files were written tells the rest, by the
wall clock, which may be wrong: what rests on that is never called proven.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from muster.domain.campaign import Job
from muster.domain.look_facts import Dated
from muster.domain.reading import Mark, Readings, Vitals
from muster.domain.verdict import State
from muster.judge.floors import Floors
from muster.judge.history import Pulse, Rate, begin, note
from muster.judge.living import Finding, Watch, confirm, find, said, silence
from muster.judge.patience import NO_PRIOR, limits

SLACK_S = 2.0  # file times are coarse


class LookWatch:
    def __init__(self, job: Job, dated: Mapping[str, Dated], began: float, now: float, floors: Floors) -> None:
        self.job, self.dated = job, dated
        self.first = now  # the first look
        self.looks = 0
        history = begin(began, now)
        history.since = began  # nobody watched before, but its files would tell of progress since its start
        self.watch = Watch(history, NO_PRIOR, floors)
        self._counts: dict[str, float | None] = {}  # of each signal at its first sight
        self._counted: dict[str, float] = {}  # from when the silence of a signal counts, by its files
        self._idle = True
        self._start: tuple[float, Vitals] | None = None

    def look(self, seen: Readings, main_state: str, wall: float, slept: float = 0.0) -> None:
        """Folds one look in. `slept`: how long the machine was suspended since its boot; no run works then."""
        history, floors = self.watch.history, self.watch.floors
        marks = tuple(self._doubted(mark) for mark in seen.marks)
        note(history, replace(seen, marks=marks), main_state, floors)
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

    def find(self, now: float) -> Finding:
        """The judge's finding, no surer than what was seen by these looks."""
        return self._tempered(find_fairly(self.watch, self.job, now), now)

    # -- what files tell

    def _doubted(self, mark: Mark) -> Mark:
        """A signal whose last advance can't be dated abstains until it advances before our eyes."""
        why = self.dated[mark.signal].why if mark.signal in self.dated else ""
        still = mark.count is not None and mark.count <= (self._counts.get(mark.signal, mark.count) or 0.0)
        pulse = self.watch.history.pulses.get(mark.signal)
        if why and still and not mark.trouble and not (pulse and pulse.advances):
            return replace(mark, trouble=f"{mark.reading}; {why}")
        return mark

    def _seed(self, pulse: Pulse, boot: float, wall: float, slept: float) -> None:
        found = self.dated.get(pulse.signal)
        if found is None or found.last is None or pulse.trouble or pulse.count is None:
            return
        at = boot - max(0.0, wall - found.last)
        if at < self.watch.history.began - SLACK_S:
            return  # written before it started, by another run
        for gap in found.gaps:
            pulse.cadence.learn(gap)
        pulse.advanced, pulse.torn = at, False
        pulse.counted = self._counted[pulse.signal] = min(boot, at + slept)

    def _average(self, seen: Readings) -> None:
        """Activity over all looks: the judge blends it over a minute, which these few seconds are not."""
        if self._start is None or seen.vitals.cpu_s is None:
            self._start = (seen.boot, seen.vitals)
            return
        began, first = self._start
        took = seen.boot - began
        if took <= 0:
            return
        history = self.watch.history
        history.recent = Rate(
            _per_second(first.cpu_s, seen.vitals.cpu_s, took),
            _per_second(_bytes(first), _bytes(seen.vitals), took),
            history.rate.gpu,
        )

    # -- the verdict

    def _confirm(self, now: float) -> None:
        """A tree that did nothing in all looks is taken to have done nothing since its files were last written."""
        history = self.watch.history
        idle = history.idle_since
        if idle is not None and self.idle and self.looks > 3 and history.advanced is not None:
            history.idle_since = min(idle, history.advanced)
        confirm(self.watch, self.job, now)
        history.idle_since = idle

    def _tempered(self, found: Finding, now: float) -> Finding:
        seen = self.advanced
        if found.state == State.STALLED and found.kind != "stopped":
            by_files = self._by_files(now)
            sure = "presumed" if by_files else found.confidence
            return replace(found, confidence=sure, reason=found.reason + by_files)
        if found.state == State.QUIET and found.confidence == "proven":
            spoke = any(pulse.advances and not pulse.is_log for pulse in self.watch.history.pulses.values())
            return found if spoke else replace(found, confidence="presumed", reason=f"{found.reason}, by file times")
        if found.state == State.RUNNING and found.kind is None and not seen and self.dated_only:
            rest = f"; it did nothing in the {said(now - self.first)} that we looked" if self.idle else ""
            return replace(found, confidence="presumed", reason=f"{found.reason}, by file times{rest}")
        if found.state == State.RUNNING and found.kind == "overdue" and self.dated_only:
            return replace(found, reason=f"{found.reason}; by file times")
        return found

    def _by_files(self, now: float) -> str:
        """Of a stall that lasts longer than these looks."""
        history = self.watch.history
        floors = self.watch.floors
        needed = [limits(each, history, NO_PRIOR, floors, idle=True).convict_s for each in history.pulses.values()]
        return "" if now - self.first >= max(needed, default=0.0) else "; how long is known by file times only"


def find_fairly(watch: Watch, job: Job, now: float) -> Finding:
    """A checkpoint of unknown cadence that was saved some time ago can't speak for a silent log."""
    mute = [
        pulse
        for pulse in watch.history.pulses.values()
        if not pulse.is_log
        and not pulse.advances
        and not pulse.cadence.count
        and silence(pulse, now) > watch.floors.suspect_s
    ]
    for pulse in mute:
        pulse.is_log = True
    try:
        return find(watch, job, now)
    finally:
        for pulse in mute:
            pulse.is_log = False


def _per_second(before: float | None, after: float | None, took: float) -> float | None:
    return None if before is None or after is None else max(0.0, after - before) / took


def _bytes(vitals: Vitals) -> float | None:
    return None if vitals.io_bytes is None else vitals.io_bytes + (vitals.out_bytes or 0)
