"""The readings behind a verdict of a living run, in words: rows of the evidence table, the cadence of each signal."""

from __future__ import annotations

from muster.domain.reading import GpuUse
from muster.domain.verdict import Evidence, Rhythm
from muster.judge.history import History, Pulse
from muster.judge.living import Watch, flow, idle_s, percent, said, silence, usual_rate
from muster.judge.patience import clock_of, limits


def evidence_of(watch: Watch, now: float) -> tuple[Evidence, ...]:
    history = watch.history
    rows = [_progress(pulse, watch, now) for pulse in history.pulses.values()]
    rows += _activity(history, now)
    if history.polled > history.began and now - history.polled > watch.floors.late_s:
        rows.append(Evidence("watch", "life", f"nobody has looked for {said(now - history.polled)}", "too old", now))
    return tuple(rows)


def _progress(pulse: Pulse, watch: Watch, now: float) -> Evidence:
    if pulse.trouble:
        return Evidence(pulse.signal, "progress", pulse.trouble, "abstains", pulse.read or None)
    if pulse.advanced is None:
        text = pulse.reading or "nothing yet"
        return Evidence(pulse.signal, "progress", text, "nothing yet", pulse.read or None)
    limit = limits(pulse, watch.history, watch.prior, watch.floors, idle=idle_s(watch.history, now) > 0)
    silent = now - pulse.counted
    says = "advances" if silent <= limit.suspect_s else "overdue" if silent <= limit.convict_s else "silent"
    if says == "advances" and silence(pulse, now) > _usual_gap(pulse, watch):
        says = "not overdue"
    return Evidence(
        pulse.signal, "progress", f"{pulse.reading}, advanced {said(silence(pulse, now))} ago", says, pulse.read
    )


def _usual_gap(pulse: Pulse, watch: Watch) -> float:
    return max(pulse.cadence.longest, watch.floors.poll_s) + watch.floors.poll_s


def _activity(history: History, now: float) -> list[Evidence]:
    vitals, rate, usual, at = history.vitals, history.rate, usual_rate(history), history.polled
    rows = []
    if rate.cpu is not None:
        count = len(vitals.states)
        processes = f"{count} process{'' if count == 1 else 'es'}"
        usually = "" if usual.cpu is None else f" (usually {percent(usual.cpu * 100)})"
        text = f"{percent(rate.cpu * 100)} of a core, {processes}{usually}"
        rows.append(Evidence("cpu", "activity", text, _busy(rate.cpu > 0.002), at))
    if rate.io is not None:
        text = flow(rate.io) + ("" if usual.io is None else f" (usually {flow(usual.io)})")
        rows.append(Evidence("io", "activity", text, _busy(rate.io > 0), at))
    rows += [_gpu(gpu, at) for gpu in vitals.gpus]
    rows += [Evidence(signal, "activity", why, "abstains", at) for signal, why in vitals.trouble]
    idle = idle_s(history, now)
    if idle > 0:
        rows.append(Evidence("tree", "activity", f"no CPU and no I/O in the whole tree for {said(idle)}", "idle", at))
    return rows


def _busy(busy: bool) -> str:
    return "busy" if busy else "idle"


def _gpu(gpu: GpuUse, at: float) -> Evidence:
    name = f"gpu{gpu.device}"
    if gpu.lost:
        return Evidence(name, "activity", gpu.lost, "lost", at)
    if gpu.trouble and gpu.utilisation is None:
        return Evidence(name, "activity", gpu.trouble, "abstains", at)
    parts = []
    if gpu.utilisation is not None:
        parts.append(f"{gpu.utilisation:.0f} % busy")
    if gpu.power_w is not None:
        parts.append(f"{gpu.power_w:.0f} W")
    if gpu.memory_bytes is not None:
        parts.append(f"{gpu.memory_bytes >> 20} MiB")
    if gpu.shared:
        return Evidence(name, "activity", ", ".join(parts) + "; shared with other runs", "abstains", at)
    return Evidence(name, "activity", ", ".join(parts), _busy(bool(gpu.utilisation)), at)


def rhythms_of(watch: Watch, now: float) -> tuple[Rhythm, ...]:
    return tuple(_rhythm(pulse, watch, now) for pulse in watch.history.pulses.values())


def _rhythm(pulse: Pulse, watch: Watch, now: float) -> Rhythm:
    limit = limits(pulse, watch.history, watch.prior, watch.floors, idle=idle_s(watch.history, now) > 0)
    cadence = pulse.cadence
    silent = silence(pulse, now) if pulse.advanced is not None else None
    return Rhythm(
        pulse.signal,
        silent,
        cadence.usual if cadence.count else None,
        max(cadence.gaps) if cadence.gaps else None,
        cadence.count,
        limit.suspect_s,
        limit.convict_s,
        limit.rests_on,
        cadence.phi(silent) if silent is not None else 0.0,
        _clock_note(pulse, watch.history, silent),
    )


def _clock_note(pulse: Pulse, history: History, silent: float | None) -> str:
    """In the reference story `log_every: 1000` was read as steps; it is seconds, and the quiet file was healthy."""
    found = clock_of(pulse, history)
    if found:
        return f"written on a clock of {found[1]:g} s: `{found[0]}` in its config counts seconds, not steps"
    if pulse.is_log and silent is not None and not pulse.cadence.count:
        for name, period in history.clocks:
            if period >= 30 and silent <= 1.25 * period and "log" in name:
                return f"perhaps written on a clock of {period:g} s: `{name}` in its config may count seconds"
    return ""
