"""The verdict of a run whose process lives: RUNNING, QUIET, STALLED or UNKNOWN, from its history and the time; and
how long each signal may be silent.

Activity is never progress. A run is convicted only when every progress signal that has ever advanced is silent beyond
its limit, on several looks in a row; it is *proven* stalled only when nothing of it can be working.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from muster.engine.judge.signal_history import (
    STANDARD_THRESHOLDS,
    ActivityRate,
    Cadence,
    SignalHistory,
    SignalPulse,
    Thresholds,
)
from muster.model.attempt import Attempt
from muster.model.attempt_snapshot import AttemptSnapshot
from muster.model.campaign import Job
from muster.model.verdict import VerdictState
from muster.text.phrases import join_phrases, phrase


@dataclass(frozen=True, slots=True)
class SiblingPrior:
    """What sibling cells with the same code showed, where a run has not shown enough itself."""

    longest: Mapping[str, float] = field(default_factory=dict)  # signal -> its longest gap
    first_s: float | None = None  # the slowest first progress


NO_SIBLING_PRIOR = SiblingPrior()


@dataclass(frozen=True, slots=True)
class SilenceLimits:
    suspect_s: float
    convict_s: float
    rests_on: str  # its own cadence, siblings, `every:`, a clock in its config, nothing


def silence_limits(
    pulse: SignalPulse, history: SignalHistory, prior: SiblingPrior, floors: Thresholds, *, idle: bool
) -> SilenceLimits:
    """What its writer keeps back for a while is no silence of the run."""
    found = _known_silence_limits(pulse, history, prior, floors, idle=idle)
    return replace(found, suspect_s=found.suspect_s + pulse.delay_s, convict_s=found.convict_s + pulse.delay_s)


def _known_silence_limits(
    pulse: SignalPulse, history: SignalHistory, prior: SiblingPrior, floors: Thresholds, *, idle: bool
) -> SilenceLimits:
    cadence = pulse.cadence
    if not history.whole and history.polled - history.watched < floors.grace_s:
        return _limits_without_cadence(cadence, floors, phrase("judge.watched_too_short_time"))
    if cadence.count >= floors.enough:
        return _limits_from_gaps(cadence.quantile(0.99), cadence.longest, phrase("judge.own_cadence"), floors)
    known, rests_on = _period_hint(pulse, history, prior)
    base = max(known, cadence.longest)
    if known or (idle and cadence.count):  # an idle tree does not save the checkpoint that it may be waited for
        return _limits_from_gaps(base, base, rests_on or phrase("judge.few_gaps_shown"), floors)
    return _limits_without_cadence(cadence, floors, phrase("judge.no_cadence_known_yet"))


def _limits_without_cadence(cadence: Cadence, floors: Thresholds, rests_on: str) -> SilenceLimits:
    suspect = floors.stranger_s / floors.convict_factor * floors.suspect_factor
    convict = max(floors.stranger_s, floors.convict_factor * cadence.longest)
    return SilenceLimits(max(floors.suspect_s, suspect), convict, rests_on)


def _limits_from_gaps(usual: float, longest: float, rests_on: str, floors: Thresholds) -> SilenceLimits:
    suspect = max(floors.suspect_s, floors.suspect_factor * usual)
    return SilenceLimits(suspect, max(floors.convict_s, floors.convict_factor * longest, suspect), rests_on)


def _period_hint(pulse: SignalPulse, history: SignalHistory, prior: SiblingPrior) -> tuple[float, str]:
    if pulse.signal in prior.longest:
        return prior.longest[pulse.signal], phrase("judge.sibling_cells_same_code")
    if pulse.every_s is not None:
        return pulse.every_s, phrase("judge.declared_every")
    clock = find_config_clock(pulse, history)
    return (clock[1], phrase("judge.clock_own_config", clock=clock[0])) if clock else (0.0, "")


def find_config_clock(pulse: SignalPulse, history: SignalHistory) -> tuple[str, float] | None:
    """The period in its config that its gaps follow as seconds: `log_every: 1000` is often no number of steps."""
    if not pulse.is_log or not pulse.cadence.count:
        return None
    gap = pulse.cadence.usual
    near = [(abs(gap - period), name, period) for name, period in history.clocks if 0.8 <= gap / period <= 1.25]
    return min(near)[1:] if near else None


def first_progress_grace(job_grace_s: float | None, prior: SiblingPrior, floors: Thresholds) -> float:
    return max(job_grace_s or 0.0, floors.convict_factor * (prior.first_s or 0.0), floors.grace_s)


@dataclass(frozen=True, slots=True)
class RunWatch:
    """All that is known of a living run, besides the look of this moment."""

    history: SignalHistory
    prior: SiblingPrior = NO_SIBLING_PRIOR
    floors: Thresholds = STANDARD_THRESHOLDS


WatchOf = Callable[[Attempt, AttemptSnapshot, Job], RunWatch | None]


@dataclass(frozen=True, slots=True)
class LivenessFinding:
    """A verdict without its evidence."""

    state: VerdictState
    kind: str | None
    confidence: str
    reason: str
    turns: float | None = None  # when it becomes another verdict if nothing happens, in boot time
    into: str = ""  # which one


def judge_liveness(watch: RunWatch, job: Job, now: float) -> LivenessFinding:
    history, prior, floors = watch.history, watch.prior, watch.floors
    if now - history.polled > floors.stale_s:
        reason = phrase("judge.signals_not_read_what_they_said_too", elapsed=format_elapsed(now - history.polled))
        return LivenessFinding(VerdictState.UNKNOWN, None, "unknown", reason)
    if history.stopped_polls >= floors.confirm_stopped:
        sure = "proven" if now - history.polled <= floors.late_s else "presumed"
        return LivenessFinding(
            VerdictState.STALLED, "stopped", sure, phrase("judge.stopped_state_t_somebody_sent_sigstop")
        )
    usable = [pulse for pulse in history.pulses.values() if not pulse.trouble]
    moving = [pulse for pulse in usable if pulse.advanced is not None]
    if moving:
        return _judge_moving(history, moving, now, prior, floors)
    if history.pulses and not usable:
        return _judge_blind(
            history,
            phrase("judge.no_progress_signal_can_read", signal_troubles=_describe_signal_troubles(history)),
            now,
            floors,
        )
    return _judge_starting(history, job, now, prior, floors)


def count_conviction(watch: RunWatch, job: Job, now: float) -> None:
    """Counts this look for or against a conviction. Once per poll, after `note`."""
    watch.history.convicted_polls = (
        watch.history.convicted_polls + 1 if _is_silent_beyond_limits(watch, job, now) else 0
    )


# -- runs that have advanced


def _judge_moving(
    history: SignalHistory, moving: list[SignalPulse], now: float, prior: SiblingPrior, floors: Thresholds
) -> LivenessFinding:
    idle = tree_idle_s(history, now)
    held = [(pulse, silence_limits(pulse, history, prior, floors, idle=idle > 0)) for pulse in moving]
    newest = min(moving, key=lambda pulse: pulse_silence_s(pulse, now))
    logs = [pulse for pulse in history.pulses.values() if pulse.is_log and not pulse.trouble]
    proof = _find_advancing_pulse(
        history, [pulse for pulse, limit in held if now - pulse.counted <= limit.convict_s], now, floors
    )
    if (
        logs
        and proof
        and not proof.is_log
        and all(pulse_silence_s(log, now) > _log_silence_limit(log, floors) for log in logs)
    ):
        log = min(logs, key=lambda pulse: pulse_silence_s(pulse, now))
        quiet = phrase("judge.signal_silent_for", signal=log.signal, elapsed=format_elapsed(pulse_silence_s(log, now)))
        return LivenessFinding(
            VerdictState.QUIET, None, "proven", join_phrases("; ", (quiet, _describe_advance(proof, now)))
        )
    inside = [pulse for pulse, limit in held if now - pulse.counted <= limit.suspect_s]
    if inside:
        sure = "proven" if proof else "presumed"
        turns = max(pulse.counted + limit.convict_s for pulse, limit in held)
        return LivenessFinding(VerdictState.RUNNING, None, sure, _describe_advance(newest, now), turns, "STALLED")
    turns = conviction_time(history, held, floors)
    if history.convicted_polls >= floors.confirm and now >= turns:
        longest = max(limit.convict_s for _, limit in held)
        return _stalled_finding(history, newest, now, longest, floors)
    reason = phrase(
        "judge.longer_than_usual", advance=_describe_advance(newest, now), busyness=_describe_busyness(history, now)
    )
    return LivenessFinding(VerdictState.RUNNING, "overdue", "presumed", reason, turns, "STALLED")


def _find_advancing_pulse(
    history: SignalHistory, moving: list[SignalPulse], now: float, floors: Thresholds
) -> SignalPulse | None:
    """A signal that advanced as lately as its own gaps say it should; a log that is not silent first, then others."""
    inside = [pulse for pulse in moving if pulse_silence_s(pulse, now) <= _own_silence_limit(history, pulse, floors)]
    loud = [
        pulse for pulse in inside if pulse.is_log and pulse_silence_s(pulse, now) <= _log_silence_limit(pulse, floors)
    ]
    return min(loud or inside, key=lambda pulse: (pulse.is_log, pulse_silence_s(pulse, now)), default=None)


def pulse_silence_s(pulse: SignalPulse, now: float) -> float:
    """As people would count it; a conviction counts from `counted`, which a late look moves."""
    return max(0.0, now - (pulse.advanced if pulse.advanced is not None else pulse.counted))


def _own_silence_limit(history: SignalHistory, pulse: SignalPulse, floors: Thresholds) -> float:
    cadence = pulse.cadence
    seen = cadence.quantile(0.99) if cadence.count >= floors.enough else cadence.longest
    if not cadence.count and pulse.advanced is not None:
        seen = pulse.advanced - history.began  # the way to its first advance is all that it has shown
    return max(floors.suspect_s, floors.suspect_factor * seen) + pulse.delay_s


def _log_silence_limit(pulse: SignalPulse, floors: Thresholds) -> float:
    """A log whose cadence is not learned yet is called silent early: another signal must speak for the run then."""
    learned = pulse.cadence.count >= floors.enough
    usual = floors.suspect_factor * pulse.cadence.quantile(0.99) if learned else 0.0
    return max(floors.suspect_s, usual) + pulse.delay_s


# -- conviction


def _is_silent_beyond_limits(watch: RunWatch, job: Job, now: float) -> bool:
    history, prior, floors = watch.history, watch.prior, watch.floors
    early = (floors.confirm - 1) * floors.poll_s  # so that the last of the looks in a row is the first beyond the limit
    usable = [pulse for pulse in history.pulses.values() if not pulse.trouble]
    moving = [pulse for pulse in usable if pulse.advanced is not None]
    if moving and len(usable) < len(history.pulses) and _has_unreadable_mover(history):
        return False  # a signal that used to advance can't be read now: it may be advancing
    if moving:
        idle = tree_idle_s(history, now)
        held = [(pulse, silence_limits(pulse, history, prior, floors, idle=idle > 0)) for pulse in moving]
        return now >= conviction_time(history, held, floors) - early
    if all(pulse.never_fits for pulse in usable):
        return False
    return now - history.since > first_progress_grace(job.grace_s, prior, floors) - early


def _has_unreadable_mover(history: SignalHistory) -> bool:
    return any(pulse.trouble and pulse.advanced is not None for pulse in history.pulses.values())


def conviction_time(history: SignalHistory, held: list[tuple[SignalPulse, SilenceLimits]], floors: Thresholds) -> float:
    """When every one of them is silent beyond its limit: sooner if it does little, or nothing for as long."""
    working = works_as_usual(history, floors)
    times = []
    for pulse, limit in held:
        patient = working and pulse.every_s is None
        at = pulse.counted + (max(limit.convict_s, floors.active_s) if patient else limit.convict_s)
        if patient and _awaits_first_advance(history):
            at = max(at, history.began + floors.grace_s)
        if history.idle_since is not None:
            at = min(at, max(pulse.counted, history.idle_since) + limit.convict_s)
        times.append(at)
    return max(times)


def _awaits_first_advance(history: SignalHistory) -> bool:
    """A declared signal has not spoken yet: the first evaluation, or the first checkpoint, may be under way."""
    return any(pulse.advanced is None and not pulse.trouble for pulse in history.pulses.values())


def works_as_usual(history: SignalHistory, floors: Thresholds) -> bool:
    """While the tree does about as much as it does when it advances."""
    rate = history.recent
    if rate.cpu is None or rate.io is None:
        return True  # what can't be read counts as active
    usual = usual_activity_rate(history)
    return any(
        now is not None and now > least and now >= floors.alike * (before or 0.0)
        for now, before, least in (
            (rate.cpu, usual.cpu, floors.idle_cpu),
            (rate.io, usual.io, floors.idle_io),
            (rate.gpu, usual.gpu, floors.idle_gpu),
        )
    )


def usual_activity_rate(history: SignalHistory) -> ActivityRate:
    def middle(values: list[float | None]) -> float | None:
        known = sorted(value for value in values if value is not None)
        return known[len(known) // 2] if known else None

    profile = history.profile
    return ActivityRate(
        middle([each.cpu for each in profile]),
        middle([each.io for each in profile]),
        middle([each.gpu for each in profile]),
    )


def _stalled_finding(
    history: SignalHistory, newest: SignalPulse | None, now: float, limit_s: float, floors: Thresholds
) -> LivenessFinding:
    what = phrase(
        "judge.nothing_advanced",
        elapsed=format_elapsed(pulse_silence_s(newest, now) if newest else now - history.began),
    )
    idle = tree_idle_s(history, now)
    if history.blocked_polls >= floors.confirm:
        reason = phrase("judge.waits_inside_kernel_state_d_mostly", what=what)
        return LivenessFinding(VerdictState.STALLED, "blocked", "presumed", reason)
    if idle >= limit_s:
        reason = phrase("judge.whole_tree_used_no_cpu_done_no_i_o", what=what, elapsed=format_elapsed(idle))
        # while nobody looked it may have had longer pauses than those that were seen
        known = history.whole and idle >= floors.convict_factor * history.blind_s
        return LivenessFinding(VerdictState.STALLED, "waiting", "proven" if known else "presumed", reason)
    if works_as_usual(history, floors):
        return LivenessFinding(
            VerdictState.STALLED,
            "spinning",
            "presumed",
            phrase("judge.although_works_usual", what=what, activity_rate=_describe_activity_rate(history.recent)),
        )
    return LivenessFinding(
        VerdictState.STALLED,
        "waiting",
        "presumed",
        phrase("judge.does_little", what=what, activity_rate=_describe_activity_rate(history.recent)),
    )


# -- runs that have not advanced, or can't be seen to


def _judge_starting(
    history: SignalHistory, job: Job, now: float, prior: SiblingPrior, floors: Thresholds
) -> LivenessFinding:
    allowed = first_progress_grace(job.grace_s, prior, floors)
    until = history.since + allowed
    if now <= until:
        if not job.progress:
            reason = phrase("judge.no_progress_signal_declared")
            return LivenessFinding(VerdictState.RUNNING, None, "presumed", reason, until, phrase("judge.quiet_unknown"))
        reason = phrase(
            "judge.no_progress_yet_after_start_grace",
            elapsed=format_elapsed(now - history.began),
            elapsed2=format_elapsed(allowed),
        )
        return LivenessFinding(
            VerdictState.RUNNING, "starting", "presumed", _with_misfits(reason, history), until, "STALLED"
        )
    if not history.pulses:
        why = (
            phrase("judge.progress_signals_were_not_read_yet")
            if job.progress
            else phrase("judge.no_progress_signal_declared")
        )
        return _judge_blind(history, why, now, floors)
    if all(pulse.never_fits or pulse.trouble for pulse in history.pulses.values()):
        return _judge_blind(
            history,
            phrase("judge.nothing_writes_what_declared", signal_troubles=_describe_signal_troubles(history)),
            now,
            floors,
        )
    if history.convicted_polls >= floors.confirm:
        return _stalled_finding(history, None, now, floors.convict_s, floors)
    return LivenessFinding(
        VerdictState.RUNNING,
        "overdue",
        "presumed",
        _with_misfits(phrase("judge.no_progress_grace", elapsed=format_elapsed(allowed)), history),
    )


def _judge_blind(history: SignalHistory, why: str, now: float, floors: Thresholds) -> LivenessFinding:
    if works_as_usual(history, floors) and (history.recent.cpu is not None or history.recent.gpu is not None):
        reason = phrase("judge.activity_working_run", why=why, activity_rate=_describe_activity_rate(history.recent))
        return LivenessFinding(VerdictState.QUIET, None, "presumed", reason)
    idle = tree_idle_s(history, now)
    told = phrase("judge.idle_for", elapsed=format_elapsed(idle)) if idle else phrase("judge.activity_cant_read")
    return LivenessFinding(
        VerdictState.UNKNOWN, None, "unknown", phrase("judge.whether_works_cant_told", why=why, told=told)
    )


def tree_idle_s(history: SignalHistory, now: float) -> float:
    return max(0.0, now - history.idle_since) if history.idle_since is not None else 0.0


# -- words


def format_elapsed(seconds: float) -> str:
    if seconds < 120:
        return phrase("span.seconds", n=f"{seconds:.0f}")
    if seconds < 7200:
        return phrase("span.minutes", n=f"{seconds / 60:.0f}")
    return phrase("span.hours", n=f"{seconds / 3600:.1f}")


def format_activity_percent(value: float) -> str:
    return f"{value:.1f} %" if 0 < value < 1 else f"{value:.0f} %"


def format_io_rate(bytes_a_second: float) -> str:
    return f"{bytes_a_second:.0f} B/s" if bytes_a_second < 1024 else f"{bytes_a_second / 1024:.0f} KiB/s"


def _describe_advance(pulse: SignalPulse, now: float) -> str:
    return phrase(
        "judge.pulse_advanced_ago",
        signal=pulse.signal,
        reading=pulse.reading,
        elapsed=format_elapsed(pulse_silence_s(pulse, now)),
    )


def _describe_signal_troubles(history: SignalHistory) -> str:
    troubled = (join_phrases(": ", (pulse.signal, pulse.trouble)) for pulse in history.pulses.values() if pulse.trouble)
    return join_phrases("; ", (*troubled, *_describe_misfits(history)))


def _describe_misfits(history: SignalHistory) -> list[str]:
    return [
        phrase("judge.fitted_none_lines_pattern_key_right", signal=pulse.signal, unfit=pulse.unfit)
        for pulse in history.pulses.values()
        if pulse.never_fits
    ]


def _with_misfits(reason: str, history: SignalHistory) -> str:
    misfits = _describe_misfits(history)
    return join_phrases("; ", (reason, *misfits)) if misfits else reason


def _describe_busyness(history: SignalHistory, now: float) -> str:
    idle = tree_idle_s(history, now)
    return (
        phrase("judge.idle_for", elapsed=format_elapsed(idle))
        if idle
        else phrase("judge.busy_with", activity_rate=_describe_activity_rate(history.recent))
    )


def _describe_activity_rate(rate: ActivityRate) -> str:
    parts = []
    if rate.cpu is not None:
        parts.append(phrase("judge.cpu_core", activity_percent=format_activity_percent(rate.cpu * 100)))
    if rate.io is not None:
        parts.append(f"I/O {format_io_rate(rate.io)}")
    if rate.gpu is not None:
        parts.append(f"GPU {rate.gpu:.0f} %")
    return join_phrases(", ", parts) if parts else phrase("judge.activity_cant_read")
