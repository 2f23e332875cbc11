"""The verdict of a run whose process lives: RUNNING, QUIET, STALLED or UNKNOWN, from its history and the time.

Activity is never progress. A run is convicted only when every progress signal that has ever advanced is silent beyond
its limit, on several looks in a row; it is *proven* stalled only when nothing of it can be working.
"""

from __future__ import annotations

from dataclasses import dataclass

from muster.domain.campaign import Job
from muster.domain.verdict import State
from muster.judge.floors import STANDARD, Floors
from muster.judge.history import History, Pulse, Rate
from muster.judge.patience import NO_PRIOR, Limits, Prior, grace, limits

STOPPED = "it is stopped (state T): somebody sent SIGSTOP or Ctrl-Z; SIGCONT lets it go on"


@dataclass(frozen=True, slots=True)
class Watch:
    """All that is known of a living run, besides the look of this moment."""

    history: History
    prior: Prior = NO_PRIOR
    floors: Floors = STANDARD


@dataclass(frozen=True, slots=True)
class Finding:
    """A verdict without its evidence."""

    state: State
    kind: str | None
    confidence: str
    reason: str
    turns: float | None = None  # when it becomes another verdict if nothing happens, in boot time
    into: str = ""  # which one


def find(watch: Watch, job: Job, now: float) -> Finding:
    history, prior, floors = watch.history, watch.prior, watch.floors
    if now - history.polled > floors.stale_s:
        reason = f"its signals have not been read for {said(now - history.polled)}: what they said is too old"
        return Finding(State.UNKNOWN, None, "unknown", reason)
    if history.stopped_polls >= floors.confirm_stopped:
        sure = "proven" if now - history.polled <= floors.late_s else "presumed"
        return Finding(State.STALLED, "stopped", sure, STOPPED)
    usable = [pulse for pulse in history.pulses.values() if not pulse.trouble]
    moving = [pulse for pulse in usable if pulse.advanced is not None]
    if moving:
        return _moving(history, moving, now, prior, floors)
    if history.pulses and not usable:
        return _blind(history, f"no progress signal can be read: {_troubles(history)}", now, floors)
    return _starting(history, job, now, prior, floors)


def confirm(watch: Watch, job: Job, now: float) -> None:
    """Counts this look for or against a conviction. Once per poll, after `note`."""
    watch.history.convicted_polls = watch.history.convicted_polls + 1 if _silent(watch, job, now) else 0


# -- runs that have advanced


def _moving(history: History, moving: list[Pulse], now: float, prior: Prior, floors: Floors) -> Finding:
    idle = idle_s(history, now)
    held = [(pulse, limits(pulse, history, prior, floors, idle=idle > 0)) for pulse in moving]
    newest = min(moving, key=lambda pulse: silence(pulse, now))
    logs = [pulse for pulse in history.pulses.values() if pulse.is_log and not pulse.trouble]
    proof = _advancing(history, [pulse for pulse, limit in held if now - pulse.counted <= limit.convict_s], now, floors)
    if logs and proof and not proof.is_log and all(silence(log, now) > _log_limit(log, floors) for log in logs):
        log = min(logs, key=lambda pulse: silence(pulse, now))
        quiet = f"{log.signal} silent for {said(silence(log, now))}"
        return Finding(State.QUIET, None, "proven", f"{quiet}; {_advanced(proof, now)}")
    inside = [pulse for pulse, limit in held if now - pulse.counted <= limit.suspect_s]
    if inside:
        sure = "proven" if proof else "presumed"
        turns = max(pulse.counted + limit.convict_s for pulse, limit in held)
        return Finding(State.RUNNING, None, sure, _advanced(newest, now), turns, "STALLED")
    turns = convicted_at(history, held, floors)
    if history.convicted_polls >= floors.confirm and now >= turns:
        longest = max(limit.convict_s for _, limit in held)
        return _stalled(history, newest, now, longest, floors)
    reason = f"{_advanced(newest, now)}, longer than usual: {_busy_words(history, now)}"
    return Finding(State.RUNNING, "overdue", "presumed", reason, turns, "STALLED")


def _advancing(history: History, moving: list[Pulse], now: float, floors: Floors) -> Pulse | None:
    """A signal that advanced as lately as its own gaps say it should; a log that is not silent first, then others."""
    inside = [pulse for pulse in moving if silence(pulse, now) <= _own_limit(history, pulse, floors)]
    loud = [pulse for pulse in inside if pulse.is_log and silence(pulse, now) <= _log_limit(pulse, floors)]
    return min(loud or inside, key=lambda pulse: (pulse.is_log, silence(pulse, now)), default=None)


def silence(pulse: Pulse, now: float) -> float:
    """As people would count it; a conviction counts from `counted`, which a late look moves."""
    return max(0.0, now - (pulse.advanced if pulse.advanced is not None else pulse.counted))


def _own_limit(history: History, pulse: Pulse, floors: Floors) -> float:
    cadence = pulse.cadence
    seen = cadence.quantile(0.99) if cadence.count >= floors.enough else cadence.longest
    if not cadence.count and pulse.advanced is not None:
        seen = pulse.advanced - history.began  # the way to its first advance is all that it has shown
    return max(floors.suspect_s, floors.suspect_factor * seen) + pulse.delay_s


def _log_limit(pulse: Pulse, floors: Floors) -> float:
    """A log whose cadence is not learned yet is called silent early: another signal must speak for the run then."""
    learned = pulse.cadence.count >= floors.enough
    usual = floors.suspect_factor * pulse.cadence.quantile(0.99) if learned else 0.0
    return max(floors.suspect_s, usual) + pulse.delay_s


# -- conviction


def _silent(watch: Watch, job: Job, now: float) -> bool:
    history, prior, floors = watch.history, watch.prior, watch.floors
    early = (floors.confirm - 1) * floors.poll_s  # so that the last of the looks in a row is the first beyond the limit
    usable = [pulse for pulse in history.pulses.values() if not pulse.trouble]
    moving = [pulse for pulse in usable if pulse.advanced is not None]
    if moving and len(usable) < len(history.pulses) and _was_moving(history):
        return False  # a signal that used to advance can't be read now: it may be advancing
    if moving:
        idle = idle_s(history, now)
        held = [(pulse, limits(pulse, history, prior, floors, idle=idle > 0)) for pulse in moving]
        return now >= convicted_at(history, held, floors) - early
    if all(pulse.never_fits for pulse in usable):
        return False
    return now - history.since > grace(job.grace_s, prior, floors) - early


def _was_moving(history: History) -> bool:
    return any(pulse.trouble and pulse.advanced is not None for pulse in history.pulses.values())


def convicted_at(history: History, held: list[tuple[Pulse, Limits]], floors: Floors) -> float:
    """When every one of them is silent beyond its limit: sooner if it does little, or nothing for as long."""
    working = works_as_usual(history, floors)
    times = []
    for pulse, limit in held:
        patient = working and pulse.every_s is None
        at = pulse.counted + (max(limit.convict_s, floors.active_s) if patient else limit.convict_s)
        if patient and _awaited(history):
            at = max(at, history.began + floors.grace_s)
        if history.idle_since is not None:
            at = min(at, max(pulse.counted, history.idle_since) + limit.convict_s)
        times.append(at)
    return max(times)


def _awaited(history: History) -> bool:
    """A declared signal has not spoken yet: the first evaluation, or the first checkpoint, may be under way."""
    return any(pulse.advanced is None and not pulse.trouble for pulse in history.pulses.values())


def works_as_usual(history: History, floors: Floors) -> bool:
    """While the tree does about as much as it does when it advances."""
    rate = history.recent
    if rate.cpu is None or rate.io is None:
        return True  # what can't be read counts as active
    usual = usual_rate(history)
    return any(
        now is not None and now > least and now >= floors.alike * (before or 0.0)
        for now, before, least in (
            (rate.cpu, usual.cpu, floors.idle_cpu),
            (rate.io, usual.io, floors.idle_io),
            (rate.gpu, usual.gpu, floors.idle_gpu),
        )
    )


def usual_rate(history: History) -> Rate:
    def middle(values: list[float | None]) -> float | None:
        known = sorted(value for value in values if value is not None)
        return known[len(known) // 2] if known else None

    profile = history.profile
    return Rate(
        middle([each.cpu for each in profile]),
        middle([each.io for each in profile]),
        middle([each.gpu for each in profile]),
    )


def _stalled(history: History, newest: Pulse | None, now: float, limit_s: float, floors: Floors) -> Finding:
    what = f"nothing has advanced for {said(silence(newest, now) if newest else now - history.began)}"
    idle = idle_s(history, now)
    if history.blocked_polls >= floors.confirm:
        reason = f"{what}; it waits inside the kernel (state D), mostly for a disk or a network file system"
        return Finding(State.STALLED, "blocked", "presumed", reason)
    if idle >= limit_s:
        reason = f"{what}, and the whole tree has used no CPU and done no I/O for {said(idle)}"
        # while nobody looked it may have had longer pauses than those that were seen
        known = history.whole and idle >= floors.convict_factor * history.blind_s
        return Finding(State.STALLED, "waiting", "proven" if known else "presumed", reason)
    if works_as_usual(history, floors):
        return Finding(
            State.STALLED, "spinning", "presumed", f"{what}, although it works as usual: {_rate_words(history.recent)}"
        )
    return Finding(State.STALLED, "waiting", "presumed", f"{what}; it does little: {_rate_words(history.recent)}")


# -- runs that have not advanced, or can't be seen to


def _starting(history: History, job: Job, now: float, prior: Prior, floors: Floors) -> Finding:
    allowed = grace(job.grace_s, prior, floors)
    until = history.since + allowed
    if now <= until:
        if not job.progress:
            reason = "no progress signal is declared"
            return Finding(State.RUNNING, None, "presumed", reason, until, "QUIET or UNKNOWN")
        hint = _unfit(history)
        reason = f"no progress yet, {said(now - history.began)} after its start; grace until {said(allowed)}"
        return Finding(State.RUNNING, "starting", "presumed", reason + hint, until, "STALLED")
    if not history.pulses:
        why = "its progress signals were not read yet" if job.progress else "no progress signal is declared"
        return _blind(history, why, now, floors)
    if all(pulse.never_fits or pulse.trouble for pulse in history.pulses.values()):
        return _blind(history, f"nothing that it writes is what was declared: {_troubles(history)}", now, floors)
    if history.convicted_polls >= floors.confirm:
        return _stalled(history, None, now, floors.convict_s, floors)
    return Finding(
        State.RUNNING, "overdue", "presumed", f"no progress in its grace of {said(allowed)}{_unfit(history)}"
    )


def _blind(history: History, why: str, now: float, floors: Floors) -> Finding:
    if works_as_usual(history, floors) and (history.recent.cpu is not None or history.recent.gpu is not None):
        reason = f"{why}; its activity is that of a working run: {_rate_words(history.recent)}"
        return Finding(State.QUIET, None, "presumed", reason)
    idle = idle_s(history, now)
    told = f"idle for {said(idle)}" if idle else "its activity can't be read"
    return Finding(State.UNKNOWN, None, "unknown", f"{why}; {told}: whether it works can't be told")


def idle_s(history: History, now: float) -> float:
    return max(0.0, now - history.idle_since) if history.idle_since is not None else 0.0


# -- words


def said(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def percent(value: float) -> str:
    return f"{value:.1f} %" if 0 < value < 1 else f"{value:.0f} %"


def flow(bytes_a_second: float) -> str:
    return f"{bytes_a_second:.0f} B/s" if bytes_a_second < 1024 else f"{bytes_a_second / 1024:.0f} KiB/s"


def _advanced(pulse: Pulse, now: float) -> str:
    return f"{pulse.signal}: {pulse.reading}, {said(silence(pulse, now))} ago"


def _troubles(history: History) -> str:
    troubled = (f"{pulse.signal}: {pulse.trouble}" for pulse in history.pulses.values() if pulse.trouble)
    return "; ".join((*troubled, *_misfits(history)))


def _misfits(history: History) -> list[str]:
    return [
        f"{pulse.signal} has fitted none of {pulse.unfit} lines: is its pattern or key right?"
        for pulse in history.pulses.values()
        if pulse.never_fits
    ]


def _unfit(history: History) -> str:
    return "".join(f"; {text}" for text in _misfits(history))


def _busy_words(history: History, now: float) -> str:
    idle = idle_s(history, now)
    return f"idle for {said(idle)}" if idle else f"it is busy ({_rate_words(history.recent)})"


def _rate_words(rate: Rate) -> str:
    parts = []
    if rate.cpu is not None:
        parts.append(f"CPU {percent(rate.cpu * 100)} of a core")
    if rate.io is not None:
        parts.append(f"I/O {flow(rate.io)}")
    if rate.gpu is not None:
        parts.append(f"GPU {rate.gpu:.0f} %")
    return ", ".join(parts) or "its activity can't be read"
