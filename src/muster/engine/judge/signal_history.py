"""The history of a living run: all looks folded together, signal by signal, with the cadence that each signal has
shown and the thresholds of the judge. Nothing here judges.

All times are CLOCK_BOOTTIME. A look that comes late (a busy machine, a suspend, a controller that was away) drops the
gaps that run across it, because nobody knows when in between something happened. Gaps have many modes (a log clock in
seconds, evaluations, checkpoints): nothing is fitted, the empirical tail is used.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, field

from muster.model.attempt_snapshot import GpuUse, ProgressMark, RunReadings, TreeVitals

KEPT_GAPS = 256
GAP_FADE = 0.5 ** (1 / 1024)  # per gap: a long pause that comes back every few hundred gaps must not be forgotten


@dataclass
class Cadence:
    gaps: list[float] = field(default_factory=list)  # the last ones, oldest first
    longest: float = 0.0  # fades
    count: int = 0  # all that were ever seen

    def __post_init__(self) -> None:
        self._ordered: list[float] | None = None  # not a field: it is not saved

    def learn(self, gap: float) -> None:
        self.count += 1
        self.longest = max(gap, self.longest * GAP_FADE)
        self.gaps.append(round(gap, 3))
        if len(self.gaps) > KEPT_GAPS:
            del self.gaps[0]
        self._ordered = None

    @property
    def ordered(self) -> list[float]:
        if self._ordered is None:
            self._ordered = sorted(self.gaps)
        return self._ordered

    def quantile(self, share: float) -> float:
        """Of the kept gaps; 0 where there are none."""
        if not self.gaps:
            return 0.0
        return self.ordered[max(0, math.ceil(share * len(self.gaps)) - 1)]

    @property
    def usual(self) -> float:
        return self.quantile(0.5)

    def phi(self, silent_s: float) -> float:
        """How unusual this silence is, as a power of ten: for people."""
        longer = len(self.gaps) - bisect_left(self.ordered, silent_s)
        return -math.log10((1 + longer) / (len(self.gaps) + 1))


@dataclass(frozen=True, slots=True)
class Thresholds:
    poll_s: float = 5.0
    late_s: float = 12.0  # polls further apart than this were late: what happened in between is not learned from
    stale_s: float = 150.0  # readings older than this say nothing any more
    suspect_s: float = 30.0
    suspect_factor: float = 2.0  # x the 99th percentile of the signal's own gaps
    convict_s: float = 120.0
    convict_factor: float = 5.0  # x its longest gap, which fades slowly
    enough: int = 8  # gaps, before its own cadence is believed
    stranger_s: float = 2700.0  # conviction of a signal whose cadence nobody knows
    grace_s: float = 3600.0  # until the first progress
    active_s: float = 1800.0  # no conviction before this while it works as it usually does
    confirm: int = 3  # polls in a row
    confirm_stopped: int = 2
    idle_cpu: float = 0.002  # of a core; and one clock tick per look
    tick_s: float = 0.011
    idle_io: float = 1.0  # bytes a second, over `recent_s`: less is what is left of an earlier burst
    idle_gpu: float = 0.5  # percent
    alike: float = 0.1  # of its usual activity: less is another one
    recent_s: float = 60.0  # over which activity is judged: one quiet look proves nothing

    @classmethod
    def paced(cls, factor: float, poll_s: float) -> Thresholds:
        """All times shrunk by a factor, for tests with real processes."""
        base = cls()
        return cls(
            poll_s=poll_s,
            late_s=max(3 * poll_s, 1.0),
            stale_s=max(30 * poll_s, 10.0),
            suspect_s=base.suspect_s * factor,
            convict_s=base.convict_s * factor,
            stranger_s=base.stranger_s * factor,
            grace_s=base.grace_s * factor,
            active_s=base.active_s * factor,
            recent_s=base.recent_s * factor,
        )


STANDARD_THRESHOLDS = Thresholds()

EARLY_WATCH_S = 60.0  # a watch that began this soon after the run has seen all of it
UNMATCHED_LINES = 20  # lines or rows without a step, before its pattern is doubted
PROFILE_LENGTH = 64  # intervals with progress, whose activity is the run's usual one


@dataclass(slots=True)
class SignalPulse:
    """One progress signal over time."""

    signal: str
    kind: str
    is_log: bool
    counted: float  # silence counts from here: the last advance, or what else it can be counted from
    count: float | None = None
    reading: str = ""
    every_s: float | None = None
    delay_s: float = 0.0
    stage: str = ""
    advanced: float | None = None  # when it was seen to advance last
    advances: int = 0
    torn: bool = True  # the running gap is not whole: it is not learned
    trouble: str = ""
    unfit: int = 0
    ended: int | None = None  # the exit code that its file records
    held: float | None = None  # the step that its newest checkpoint holds
    read: float = 0.0  # when it was last read
    blind_s: float = 0.0  # for how long it has not been readable
    cadences: dict[str, Cadence] = field(default_factory=dict)  # by stage
    origin: tuple[float, float] | None = None  # count and time of the first advance: the pace is measured from there

    @property
    def never_fits(self) -> bool:
        """It is written, and nothing in it is what was declared: a wrong pattern or key, and no sign of a stall."""
        return self.count is None and self.unfit >= UNMATCHED_LINES

    @property
    def cadence(self) -> Cadence:
        return self.cadences.setdefault(self.stage, Cadence())


@dataclass(slots=True)
class ActivityRate:
    """Activity of the tree between two looks; None: can't be told."""

    cpu: float | None = None  # cores
    io: float | None = None  # bytes a second, output to the log included
    gpu: float | None = None  # percent, where the GPU is this run's alone


@dataclass(slots=True)
class SignalHistory:
    began: float  # when the run started
    polled: float  # the last look
    since: float  # silence counts from here until something advances: the start, or when the watch began
    watched: float  # since when
    whole: bool = True  # since its start
    pulses: dict[str, SignalPulse] = field(default_factory=dict)
    first: float | None = None  # seconds from the start to the first progress
    vitals: TreeVitals = field(default_factory=TreeVitals)
    rate: ActivityRate = field(default_factory=ActivityRate)  # since the look before
    recent: ActivityRate = field(default_factory=ActivityRate)  # over about a minute
    idle_since: float | None = None  # the whole tree without CPU and I/O since then
    profile: list[ActivityRate] = field(default_factory=list)  # of intervals in which it advanced
    late_polls: int = 0
    blind_s: float = 0.0  # the longest time in which nobody could look: pauses of that length may have been missed
    stopped_polls: int = 0  # in a row
    blocked_polls: int = 0
    convicted_polls: int = 0
    clocks: tuple[tuple[str, float], ...] = ()
    output: str | None = None
    gpu_lost: str = ""
    non_finite: str = ""
    oom_kills: int | None = None

    @property
    def step(self) -> float | None:
        """The newest step that any of its logs holds."""
        steps = [pulse.count for pulse in self.pulses.values() if pulse.is_log and pulse.count is not None]
        return max(steps, default=None)

    @property
    def advanced(self) -> float | None:
        times = [pulse.advanced for pulse in self.pulses.values() if pulse.advanced is not None]
        return max(times, default=None)


def begin_history(began: float, now: float) -> SignalHistory:
    watched = began if now - began <= EARLY_WATCH_S else now
    return SignalHistory(began, max(began, now), watched, watched, whole=watched == began)


def fold_readings(history: SignalHistory, seen: RunReadings, main_state: str, floors: Thresholds) -> None:
    """Folds one look in."""
    now = seen.boot
    took = now - history.polled
    if took < 0:
        return  # an older look than the last one
    late = took > floors.late_s
    if late:
        history.blind_s = max(history.blind_s, took)
        _tear_gaps(history, now)
    moved = [_fold_mark(history, mark, now, took) for mark in seen.marks]
    _fold_activity(history, seen.vitals, took, advanced=any(moved), late=late, floors=floors)
    # what its files show may be old; without its CPU they are all there is
    stood = _used_no_cpu(history.rate, took, floors) if history.rate.cpu is not None else not any(moved)
    unsure = late and not (stood and history.rate.cpu is not None)
    _count_process_states(history, main_state, seen.vitals.states, unsure=unsure, stood=stood)
    if history.stopped_polls >= floors.confirm_stopped:
        _shift_for_stop(history, took)
    history.polled = now
    history.clocks = seen.clocks or history.clocks
    history.output = seen.output or history.output


def _tear_gaps(history: SignalHistory, now: float) -> None:
    history.late_polls += 1
    history.convicted_polls = 0
    history.since = now
    for pulse in history.pulses.values():
        pulse.torn = True
        pulse.counted = max(pulse.counted, now)


def _shift_for_stop(history: SignalHistory, took: float) -> None:
    """Time in which it was stopped is no silence of its own: after SIGCONT it may finish the pause that it was in."""
    history.since += took
    if history.idle_since is not None:
        history.idle_since += took
    for pulse in history.pulses.values():
        pulse.counted += took


def _fold_mark(history: SignalHistory, mark: ProgressMark, now: float, took: float) -> bool:
    """Whether the signal advanced.

    What is there at the first sight may be an earlier attempt's, and no progress yet; but not in a folder of its own.
    """
    pulse = history.pulses.get(mark.signal)
    if pulse is None:
        own = mark.own and history.whole
        pulse = SignalPulse(
            mark.signal, mark.kind, mark.is_log, counted=history.since, count=None if own else mark.count
        )
        history.pulses[mark.signal] = pulse
    _copy_mark_details(pulse, mark, now)
    if mark.trouble:  # while it can't be read it may be advancing: neither silence nor a gap to learn from
        pulse.torn, pulse.counted = True, min(now, pulse.counted + took)
        pulse.blind_s += took
        history.blind_s = max(history.blind_s, pulse.blind_s)
        return False
    pulse.blind_s = 0.0
    if mark.count is None:
        return False
    if mark.non_finite:
        history.non_finite = mark.non_finite
    if pulse.count is None or mark.count > pulse.count:
        pulse.count = mark.count
        return _record_advance(history, pulse, now, learn=pulse.advanced is not None and not pulse.torn)
    pulse.count = mark.count
    return False


def _copy_mark_details(pulse: SignalPulse, mark: ProgressMark, now: float) -> None:
    pulse.trouble, pulse.unfit = mark.trouble, mark.unfit
    pulse.every_s, pulse.delay_s = mark.every_s, mark.delay_s
    if not mark.trouble:
        pulse.reading, pulse.read, pulse.ended, pulse.held = mark.reading, now, mark.ended, mark.held
    if mark.stage and mark.stage != pulse.stage:
        pulse.stage, pulse.torn = mark.stage, True


def _record_advance(history: SignalHistory, pulse: SignalPulse, now: float, *, learn: bool) -> bool:
    if learn:
        pulse.cadence.learn(now - pulse.counted)
    elif pulse.advanced is not None:
        history.blind_s = max(history.blind_s, now - pulse.advanced)  # a pause that was seen in part only
    pulse.advanced, pulse.counted, pulse.torn = now, now, False
    pulse.advances += 1
    if pulse.origin is None and pulse.count is not None:
        pulse.origin = (pulse.count, now)
    if history.first is None:
        history.first = now - history.began
    return True


def _fold_activity(
    history: SignalHistory, vitals: TreeVitals, took: float, *, advanced: bool, late: bool, floors: Thresholds
) -> None:
    before = history.vitals
    history.rate = rate = ActivityRate(
        _counter_rate(before.cpu_s, vitals.cpu_s, took),
        _counter_rate(_bytes_moved(before), _bytes_moved(vitals), took),
        _own_gpu_utilisation(vitals.gpus),
    )
    share = 1 - math.exp(-took / floors.recent_s)
    history.recent = ActivityRate(
        _blend_rates(history.recent.cpu, rate.cpu, share),
        _blend_rates(history.recent.io, rate.io, share),
        _blend_rates(history.recent.gpu, rate.gpu, share),
    )
    since = history.idle_since if history.idle_since is not None else history.polled
    history.idle_since = since if took > 0 and not advanced and _is_tree_idle(rate, vitals, took, floors) else None
    if late and history.idle_since is not None:
        history.idle_since = history.polled + took
    if advanced and not late and took > 0:
        history.profile.append(rate)
        del history.profile[:-PROFILE_LENGTH]
    history.vitals = vitals
    if vitals.oom_kills is not None:
        history.oom_kills = vitals.oom_kills
    if any(gpu.lost or gpu.utilisation is not None for gpu in vitals.gpus):  # one that reads well again is not lost
        history.gpu_lost = next((gpu.lost for gpu in vitals.gpus if gpu.lost), "")


def _counter_rate(before: float | None, after: float | None, took: float) -> float | None:
    if before is None or after is None or took <= 0:
        return None
    return max(0.0, after - before) / took


def _blend_rates(before: float | None, now: float | None, share: float) -> float | None:
    return now if before is None or now is None else before + share * (now - before)


def _bytes_moved(vitals: TreeVitals) -> float | None:
    if vitals.io_bytes is None:
        return None
    return vitals.io_bytes + (vitals.out_bytes or 0)


def _own_gpu_utilisation(gpus: tuple[GpuUse, ...]) -> float | None:
    own = [gpu.utilisation for gpu in gpus if not gpu.shared and gpu.utilisation is not None]
    return max(own, default=None)


def _is_tree_idle(rate: ActivityRate, vitals: TreeVitals, took: float, floors: Thresholds) -> bool:
    """No CPU and no I/O in the whole tree, and no work on a GPU. What can't be read is not idle."""
    if rate.cpu is None or rate.io is None or not _used_no_cpu(rate, took, floors):
        return False
    if rate.io > 0 or "D" in vitals.states or "R" in vitals.states[:1]:
        return False
    if vitals.gpus:
        return all(gpu.utilisation == 0 for gpu in vitals.gpus)
    return not vitals.opens_gpu  # one that was not leased can't be read


def _used_no_cpu(rate: ActivityRate, took: float, floors: Thresholds) -> bool:
    """No CPU since the look before, or none that can be read."""
    return rate.cpu is None or rate.cpu * took <= floors.idle_cpu * took + floors.tick_s


def _count_process_states(history: SignalHistory, main_state: str, states: str, *, unsure: bool, stood: bool) -> None:
    """One that worked between two looks is not stopped for good: a tracer or a CPU limiter stops it again and again."""
    stopped = _is_tree_stopped(main_state, states, idle=history.idle_since is not None)
    history.stopped_polls = (history.stopped_polls + 1 if stood else 1) if stopped else 0
    history.blocked_polls = history.blocked_polls + 1 if main_state == "D" or "D" in states else 0
    if unsure:
        history.stopped_polls = min(history.stopped_polls, 1)


def _is_tree_stopped(main_state: str, states: str, *, idle: bool) -> bool:
    """The main process, or all that it waits for: a launcher sleeps while its stopped child does nothing."""
    if main_state in ("T", "t"):
        return True
    below = [letter for letter in states[1:] if letter not in "ZX"]
    return idle and main_state == "S" and bool(below) and all(letter in "Tt" for letter in below)
