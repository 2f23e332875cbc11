"""The evidence about a living run in words: rows of the evidence table and the cadence of each signal; and its pace,
for forecasts, never for a verdict.
"""

from __future__ import annotations

from muster.engine.judge.liveness import (
    RunWatch,
    find_config_clock,
    format_activity_percent,
    format_elapsed,
    format_io_rate,
    pulse_silence_s,
    silence_limits,
    tree_idle_s,
    usual_activity_rate,
)
from muster.engine.judge.signal_history import SignalHistory, SignalPulse
from muster.ledger.budget_forecast import ProgressRate
from muster.model.attempt_snapshot import GpuUse
from muster.model.verdict import Evidence, SignalRhythm
from muster.text.phrases import join_phrases, phrase


def progress_rate(
    history: SignalHistory | None, elapsed_s: float, target: float | None, step: float | None = None
) -> ProgressRate:
    """Of the log with the newest step. `step`: of one that was read from its files, where no log shows one."""
    pulses = [pulse for pulse in history.pulses.values() if pulse.is_log] if history else []
    best = max((pulse for pulse in pulses if pulse.count is not None), key=lambda pulse: pulse.count or 0, default=None)
    if best is None:
        return ProgressRate(elapsed_s, step, target)
    return ProgressRate(elapsed_s, best.count, target, _steps_per_second(best))


def seconds_to_checkpoint(history: SignalHistory | None, now: float) -> float | None:
    """Seconds until its next checkpoint, of one that has saved some and whose rhythm is known."""
    for pulse in history.pulses.values() if history else ():
        gap = pulse.cadence.usual if pulse.cadence.count >= 2 else pulse.every_s
        if pulse.kind == "checkpoint" and pulse.advanced is not None and gap:
            return max(0.0, pulse.advanced + gap - now)
    return None


def _steps_per_second(pulse: SignalPulse) -> float | None:
    """Steps a second, between its first advance and its last."""
    if pulse.origin is None or pulse.advanced is None or pulse.count is None:
        return None
    count, since = pulse.origin
    took = pulse.advanced - since
    return (pulse.count - count) / took if took > 0 and pulse.count > count else None


def living_run_evidence(watch: RunWatch, now: float) -> tuple[Evidence, ...]:
    history = watch.history
    rows = [_pulse_evidence(pulse, watch, now) for pulse in history.pulses.values()]
    rows += _activity_evidence(history, now)
    if history.polled > history.began and now - history.polled > watch.floors.late_s:
        rows.append(
            Evidence(
                "watch",
                "life",
                phrase("judge.nobody_looked", elapsed=format_elapsed(now - history.polled)),
                phrase("judge.evidence_too_old"),
                now,
            )
        )
    return tuple(rows)


def _pulse_evidence(pulse: SignalPulse, watch: RunWatch, now: float) -> Evidence:
    if pulse.trouble:
        return Evidence(pulse.signal, "progress", pulse.trouble, "abstains", pulse.read or None)
    if pulse.advanced is None:
        text = pulse.reading or phrase("judge.nothing_yet")
        return Evidence(pulse.signal, "progress", text, phrase("judge.nothing_yet"), pulse.read or None)
    limit = silence_limits(pulse, watch.history, watch.prior, watch.floors, idle=tree_idle_s(watch.history, now) > 0)
    silent = now - pulse.counted
    says = "advances" if silent <= limit.suspect_s else "overdue" if silent <= limit.convict_s else "silent"
    if says == "advances" and pulse_silence_s(pulse, now) > _usual_pulse_gap(pulse, watch):
        says = phrase("judge.not_overdue")
    return Evidence(
        pulse.signal,
        "progress",
        phrase("judge.advanced_ago", reading=pulse.reading, elapsed=format_elapsed(pulse_silence_s(pulse, now))),
        says,
        pulse.read,
    )


def _usual_pulse_gap(pulse: SignalPulse, watch: RunWatch) -> float:
    return max(pulse.cadence.longest, watch.floors.poll_s) + watch.floors.poll_s


def _activity_evidence(history: SignalHistory, now: float) -> list[Evidence]:
    vitals, rate, usual, at = history.vitals, history.rate, usual_activity_rate(history), history.polled
    rows = []
    if rate.cpu is not None:
        count = len(vitals.states)
        processes = phrase("judge.processes", n=count)
        usually = "" if usual.cpu is None else phrase("judge.usually", rate=format_activity_percent(usual.cpu * 100))
        text = phrase(
            "judge.cpu_and_processes",
            activity_percent=format_activity_percent(rate.cpu * 100),
            processes=processes,
            usually=usually,
        )
        rows.append(Evidence("cpu", "activity", text, _busy_word(rate.cpu > 0.002), at))
    if rate.io is not None:
        text = format_io_rate(rate.io)
        if usual.io is not None:
            text = join_phrases("", (text, phrase("judge.usually", rate=format_io_rate(usual.io))))
        rows.append(Evidence("io", "activity", text, _busy_word(rate.io > 0), at))
    rows += [_gpu_evidence(gpu, at) for gpu in vitals.gpus]
    rows += [Evidence(signal, "activity", why, "abstains", at) for signal, why in vitals.trouble]
    idle = tree_idle_s(history, now)
    if idle > 0:
        rows.append(
            Evidence(
                "tree", "activity", phrase("judge.no_cpu_no_i_o_whole_tree", elapsed=format_elapsed(idle)), "idle", at
            )
        )
    return rows


def _busy_word(busy: bool) -> str:
    return "busy" if busy else "idle"


def _gpu_evidence(gpu: GpuUse, at: float) -> Evidence:
    name = f"gpu{gpu.device}"
    if gpu.lost:
        return Evidence(name, "activity", gpu.lost, "lost", at)
    if gpu.trouble and gpu.utilisation is None:
        return Evidence(name, "activity", gpu.trouble, "abstains", at)
    parts = []
    if gpu.utilisation is not None:
        parts.append(phrase("judge.percent_busy", percent=gpu.utilisation))
    if gpu.power_w is not None:
        parts.append(f"{gpu.power_w:.0f} W")
    if gpu.memory_bytes is not None:
        parts.append(f"{gpu.memory_bytes >> 20} MiB")
    if gpu.shared:
        return Evidence(
            name,
            "activity",
            join_phrases("", (join_phrases(", ", parts), phrase("judge.shared_other_runs"))),
            "abstains",
            at,
        )
    return Evidence(name, "activity", join_phrases(", ", parts), _busy_word(bool(gpu.utilisation)), at)


def list_rhythms(watch: RunWatch, now: float) -> tuple[SignalRhythm, ...]:
    return tuple(_pulse_rhythm(pulse, watch, now) for pulse in watch.history.pulses.values())


def _pulse_rhythm(pulse: SignalPulse, watch: RunWatch, now: float) -> SignalRhythm:
    limit = silence_limits(pulse, watch.history, watch.prior, watch.floors, idle=tree_idle_s(watch.history, now) > 0)
    cadence = pulse.cadence
    silent = pulse_silence_s(pulse, now) if pulse.advanced is not None else None
    return SignalRhythm(
        pulse.signal,
        silent,
        cadence.usual if cadence.count else None,
        max(cadence.gaps) if cadence.gaps else None,
        cadence.count,
        limit.suspect_s,
        limit.convict_s,
        limit.rests_on,
        cadence.phi(silent) if silent is not None else 0.0,
        _config_clock_note(pulse, watch.history, silent),
    )


def _config_clock_note(pulse: SignalPulse, history: SignalHistory, silent: float | None) -> str:
    """In the reference story `log_every: 1000` was read as steps; it is seconds, and the quiet file was healthy."""
    found = find_config_clock(pulse, history)
    if found:
        return phrase("judge.written_clock_s_config_counts_seconds", found=found[1], found2=found[0])
    if pulse.is_log and silent is not None and not pulse.cadence.count:
        for name, period in history.clocks:
            if period >= 30 and silent <= 1.25 * period and "log" in name:
                return phrase("judge.perhaps_written_clock_s_config_may", period=period, name=name)
    return ""
