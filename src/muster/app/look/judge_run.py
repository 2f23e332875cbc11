"""`muster look`: the same judge over a training that Muster did not start, by its process and its files."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from muster.app.look.look_report import LookReport, advise_on_run, logged_step
from muster.engine.judge.liveness import LivenessFinding, format_elapsed
from muster.engine.judge.run_evidence import list_rhythms, living_run_evidence
from muster.engine.judge.unwatched_run import RunDeath, read_death_from_logs
from muster.engine.ports.clock import SystemClock
from muster.engine.ports.processes import INSPECTION_PERIOD_S, UNDATED, RunSnapshot
from muster.engine.ports.services import installed_services
from muster.model.attempt_snapshot import ExitRecord
from muster.model.foreign_run import RunFolderFacts, RunProcess, RunQuery
from muster.model.verdict import Cause, Evidence, SignalRhythm, Verdict, VerdictState
from muster.text.phrases import has_code, phrase

NO_WONDER_S = 30.0  # a silence that needs no explanation
NEARLY_DONE_SHARE = 0.98  # of the wanted steps: the last row may be a little before the end
OTHER_UNIT_SHARE = 1.05  # above that it is counted in another unit


def judge_run(sight: RunSnapshot) -> LookReport:
    verdict = _judge_living_process(sight) if sight.fate == "alive" else _judge_absent_run(sight)
    step = _step_in_target_unit(sight)
    if step is not None and _has_reached_target(sight, step) and verdict.state == VerdictState.DEAD:
        verdict = replace(verdict, note=_describe_reached_target(sight, step))
    notes = (
        *_note_known_campaign(sight),
        *_note_different_units(sight),
        *_note_lagging_log(sight),
        *sight.notes,
        *sight.found.notes,
        *((verdict.note,) if verdict.note else ()),
    )
    if not sight.found.traces and sight.found.folder:
        notes = (*notes, f"looked for {sight.sought}")
    look = LookReport(sight, verdict, (), step, notes)
    return replace(look, advice=tuple(advise_on_run(look)))


# -- a living process


def _judge_living_process(sight: RunSnapshot) -> Verdict:
    watch = sight.watch
    found = watch.find(sight.boot)
    found = _doubt_if_other_process(sight, found)
    if sight.rival is not None and sight.who is not None and found.kind != "stopped":
        reason = f"{found.reason}; but it is process {sight.rival} that writes there, not {sight.who.pid}"
        sure = "presumed" if found.confidence == "proven" else found.confidence
        found = replace(found, confidence=sure, reason=reason)
    evidence = (*_life_evidence(sight), *_watched_progress_evidence(sight), *_trouble_evidence(sight))
    return Verdict(
        found.state,
        found.reason,
        found.kind,
        found.confidence,
        None,
        evidence,
        turns=found.turns,
        into=found.into,
        rhythms=_rhythms_without_guesses(sight),
    )


HOW_IT_IS_RELATED = {
    "not seen there": "is not seen to write in this folder",
    "names the folder above": "names the folder above this one",
    "works there": "works in this folder",
    "names it": "names this folder in its command",
}


def _doubt_if_other_process(sight: RunSnapshot, found: LivenessFinding) -> LivenessFinding:
    """One that works in the folder or reads from it may be anybody: it can't make a silent run RUNNING or STALLED."""
    who = sight.who
    if who is None or who.sure not in HOW_IT_IS_RELATED or _signals_advanced_in_folder(sight):
        return found
    wrote = _wrote_since_start(sight, who)
    silent = found.state == VerdictState.STALLED or found.kind == "overdue"
    if wrote and (who.sure == "names it" or not silent or found.kind == "stopped"):
        return found
    return LivenessFinding(VerdictState.UNKNOWN, None, "unknown", _why_identity_is_unclear(who, wrote=wrote))


def _signals_advanced_in_folder(sight: RunSnapshot) -> frozenset[str]:
    """What was seen to advance in the folder itself: that a process prints elsewhere says nothing about it."""
    return frozenset(name for name in sight.watch.advanced if not name.startswith("/"))


def _wrote_since_start(sight: RunSnapshot, who: RunProcess) -> bool:
    """Without slack: what was written a moment before it began is another's."""
    return sight.found.touched is not None and sight.found.touched > sight.wall - (sight.boot - who.began)


def _why_identity_is_unclear(who: RunProcess, *, wrote: bool) -> str:
    but = "has no file of it open, and nothing advances" if wrote else "nothing was written there since it started"
    return f"pid {who.pid} {HOW_IT_IS_RELATED[who.sure]}, but {but}: whether it is this run can't be told"


def _life_evidence(sight: RunSnapshot) -> Iterator[Evidence]:
    who, now = sight.who, sight.boot
    if who is not None and sight.fate == "alive":
        state = f", state {sight.state}" if sight.state else ""
        reading = (
            f"pid {who.pid} is alive, started {format_elapsed(now - who.began)} ago (start ticks {who.ticks}){state}"
        )
        yield Evidence("process", "life", reading, "alive", now)
        for text in who.because:
            yield Evidence("writer", "life", text, "alive", now)
        if who.foreign:
            reading = f"it belongs to {who.user}: its folder, its open files and its I/O may not be read"
            yield Evidence("access", "life", reading, "abstains", now)
    for other in sight.others:
        yield Evidence(
            "process", "life", f"pid {other.pid} writes there too ({_shortened_command(other, 40)})", "alive", now
        )
    for other in sight.doubtful:
        text = "; ".join(other.because) + f" ({_shortened_command(other, 40)}), but has no file of it open"
        yield Evidence("process", "life", text, "abstains", now)


def _watched_progress_evidence(sight: RunSnapshot) -> Iterator[Evidence]:
    """The judge's rows, which say where they rest on file times."""
    by_files = sight.watch.dated_only
    for row in living_run_evidence(sight.watch.watch, sight.boot):
        if row.kind == "progress" and row.signal in by_files:
            yield replace(row, reading=f"{row.reading}, by file times")
        elif has_code(row.says, "judge.nothing_yet") and (sight.dated or {}).get(row.signal, UNDATED).last is not None:
            yield replace(row, reading=f"{row.reading}, written before this process started")
        elif row.signal == "output" and row.says == "abstains":
            continue  # its logs have other names than those of an attempt
        else:
            yield row


def _trouble_evidence(sight: RunSnapshot) -> Iterator[Evidence]:
    for trouble in sight.found.troubles:
        yield Evidence("files", "progress", trouble, "abstains", sight.boot)


def _rhythms_without_guesses(sight: RunSnapshot) -> tuple[SignalRhythm, ...]:
    rhythms = list_rhythms(sight.watch.watch, sight.boot)
    return tuple(replace(each, note="") if _is_needless_guess(each) else each for each in rhythms)


def _is_needless_guess(rhythm: SignalRhythm) -> bool:
    """A guess why it is silent, where it is hardly so."""
    return rhythm.note.startswith("perhaps") and (rhythm.silent_s or 0.0) < NO_WONDER_S


# -- no process


def _judge_absent_run(sight: RunSnapshot) -> Verdict:
    evidence = (
        *_missing_process_evidence(sight),
        *_life_evidence(sight),
        *_last_sign_evidence(sight),
        *_trouble_evidence(sight),
    )
    if sight.watch.advanced:
        return _runs_elsewhere(sight, evidence)
    if sight.orphans:
        pids = ", ".join(map(str, sight.orphans))
        reason = f"its main process is gone, but processes of it live on: pid {pids}"
        return Verdict(VerdictState.RUNNING, reason, "orphans", "presumed", None, evidence)
    if sight.fate == "hidden" or _possible_process(sight):
        return Verdict(VerdictState.UNKNOWN, _why_no_process(sight), None, "unknown", None, evidence)
    ended = sight.exit or _exit_in_record(sight)
    death = read_death_from_logs(sight.found.logs, _last_progress_time(sight.found), ended)
    if death is not None:
        return _verdict_of_dead_run(sight, death, evidence)
    if ended is not None:
        return _judge_clean_exit(sight, evidence)
    if sight.fate == "ended":
        return _lost_verdict(evidence)
    step = _step_in_target_unit(sight)
    kind = "reached" if step is not None and _has_reached_target(sight, step) else None
    return Verdict(VerdictState.UNKNOWN, _why_no_process(sight), kind, "unknown", None, evidence)


def _possible_process(sight: RunSnapshot) -> RunProcess | None:
    """A process that may be this run, begun anew: while it lives the run is not called dead."""
    if sight.exit is not None:
        return None
    return next((who for who in sight.doubtful if who.sure in ("names it", "works there")), None)


def _exit_in_record(sight: RunSnapshot) -> ExitRecord | None:
    """Its exit as the run itself wrote it down: W&B does, unless the run is killed."""
    codes = [pulse.ended for pulse in sight.watch.watch.history.pulses.values() if pulse.ended is not None]
    return ExitRecord(codes[0], None, 0.0, 0.0, 0.0) if codes else None


def _runs_elsewhere(sight: RunSnapshot, evidence: tuple[Evidence, ...]) -> Verdict:
    names = ", ".join(sorted(sight.watch.advanced))
    perhaps = "; ".join(
        f"perhaps it is pid {who.pid}, which {HOW_IT_IS_RELATED[who.sure]}" for who in sight.doubtful[:1]
    )
    where = "no process that can be seen here writes there: it runs elsewhere"
    reason = f"{names} advanced while we looked, but {perhaps or where}"
    return Verdict(
        VerdictState.RUNNING, reason, "elsewhere", "presumed", None, evidence, rhythms=_rhythms_without_guesses(sight)
    )


def _verdict_of_dead_run(sight: RunSnapshot, death: RunDeath, evidence: tuple[Evidence, ...]) -> Verdict:
    found, log = death.found, death.log
    rows = list(evidence)
    if log is not None:
        age = sight.boot - max(0.0, sight.wall - log.at)
        last = found.lines[-1] if found.lines else found.cause.note
        rows.append(Evidence(log.name, "exit", f"it ends with: {last}", "ended", age))
    rows += [Evidence("log", "exit", text, "abstains", sight.boot) for text in death.stale]
    recorded = _exit_in_record(sight)
    said = f"; its W&B record ends with exit code {recorded.code}" if recorded else "; nobody saw its exit"
    reason = f"{found.cause.note}{'' if sight.exit is not None else said}"
    sure = "probable" if sight.exit is None and found.cause.confidence == "proven" else found.cause.confidence
    cause = replace(found.cause, confidence=sure)
    return Verdict(
        VerdictState.DEAD,
        reason,
        None,
        sure,
        cause,
        tuple(rows),
        contributing=found.contributing,
        lines=found.lines,
        advice=found.try_,
    )


def _judge_clean_exit(sight: RunSnapshot, evidence: tuple[Evidence, ...]) -> Verdict:
    step = _step_in_target_unit(sight)
    logged = logged_step(sight)  # a trainer with `repeat` may log what it counts, too
    short = step is not None and logged is not None and sight.target and not _has_reached_target(sight, logged)
    if sight.target and step is not None and short and step < NEARLY_DONE_SHARE * sight.target.step:
        note = f"exit 0 at step {step:g} of {sight.target.step:g} ({sight.target.where})"
        return Verdict(VerdictState.DEAD, note, None, "probable", Cause("early_exit", "", "probable", note), evidence)
    said = "it ended with exit 0" if sight.exit is not None else "its W&B record ends with exit code 0"
    return Verdict(VerdictState.DONE, said, None, "presumed", None, evidence)


def _lost_verdict(evidence: tuple[Evidence, ...]) -> Verdict:
    note = "its process has ended; no log shows how"
    return Verdict(VerdictState.DEAD, note, None, "unknown", Cause("unknown", "", "unknown", note), evidence)


def _why_no_process(sight: RunSnapshot) -> str:
    if sight.fate == "hidden":
        return f"process {sight.asked.pid} exists, but /proc does not show it to you"
    if sight.fate == "never" and not sight.found.folder:
        return f"there is no process {sight.asked.pid}; a training of that number has ended, or runs on another machine"
    if who := _possible_process(sight):
        return _why_identity_is_unclear(who, wrote=_wrote_since_start(sight, who))
    writes = f"no process {'that you may look into' if sight.hidden else 'on this machine'} writes there"
    if not sight.found.traces and not sight.found.logs:
        return f"{writes}, and {next(iter(sight.found.troubles), 'no progress file was found in it')}"
    if sight.fate == "never":
        writes = f"there is no process {sight.asked.pid}, and {writes}"
    step = _step_in_target_unit(sight)
    if step is not None and _has_reached_target(sight, step):
        return f"{writes} any more, and {_describe_reached_target(sight, step)}"
    return f"{writes}; silence is no evidence of death"


def _missing_process_evidence(sight: RunSnapshot) -> Iterator[Evidence]:
    now, pid = sight.boot, sight.asked.pid
    if sight.fate == "never":
        yield Evidence("process", "life", f"there is no process {pid} on this machine", "gone", now)
    elif sight.fate == "hidden":
        yield Evidence("process", "life", f"process {pid} is hidden from you", "abstains", now)
    elif sight.fate in ("ended", "zombie"):
        how = "has ended while we looked" if sight.fate == "ended" else "has ended and waits to be fetched (a zombie)"
        yield Evidence("process", "life", f"pid {sight.who.pid if sight.who else pid} {how}", "gone", now)
    if sight.exit is not None:
        text = f"signal {sight.exit.signal}" if sight.exit.signal is not None else f"exit {sight.exit.code}"
        yield Evidence("exit", "exit", f"the kernel still knows how it ended: {text}", "ended", now)
    if sight.found.folder and sight.fate in ("never", "nobody"):
        near = "" if sight.doubtful else ", names it or works in it"
        reading = f"no process has a file open there for writing{near}"
        yield Evidence("writers", "life", reading, "nobody", now)
    if sight.hidden:
        hidden = phrase("count.process", n=sight.hidden)
        reading = f"{hidden} of other users may not be looked into, and may write there"
        yield Evidence("writers", "life", reading, "abstains", now)


def _last_sign_evidence(sight: RunSnapshot) -> Iterator[Evidence]:
    """How far it came, and when it last wrote."""
    dated = sight.dated or {}
    for pulse in sight.watch.watch.history.pulses.values():
        found = dated.get(pulse.signal)
        text = pulse.trouble or pulse.reading or "nothing yet"
        if found and found.last is not None:
            text += f", written {format_elapsed(max(0.0, sight.wall - found.last))} ago, by file times"
        says = "abstains" if pulse.trouble else "advances" if pulse.advances else "silent"
        if pulse.count is None and not pulse.trouble:
            says = phrase("judge.nothing_yet")
        yield Evidence(pulse.signal, "progress", text, says, sight.boot)


def _last_progress_time(found: RunFolderFacts) -> float | None:
    """The last sign of progress that is no log."""
    times = [each.dated.last for each in found.traces if each.progress.kind != "stdout" and each.dated.last is not None]
    return max(times, default=None)


def _step_in_target_unit(sight: RunSnapshot) -> float | None:
    """In the unit of the target: what is logged may be its product with `repeat`. A checkpoint may know a later one."""
    logged, repeat = logged_step(sight), sight.target.repeat if sight.target else None
    step = logged / repeat.times if logged is not None and repeat else logged
    return max((each for each in (step, _newest_checkpoint_step(sight)) if each is not None), default=None)


def _newest_checkpoint_step(sight: RunSnapshot) -> float | None:
    """The step of the newest checkpoint, where it can be compared with the target."""
    pulses = sight.watch.watch.history.pulses.values()
    most = OTHER_UNIT_SHARE * sight.target.step if sight.target else float("inf")
    return max((pulse.held for pulse in pulses if pulse.held is not None and pulse.held <= most), default=None)


def _note_lagging_log(sight: RunSnapshot) -> Iterator[str]:
    logged, held, step = logged_step(sight), _newest_checkpoint_step(sight), _step_in_target_unit(sight)
    if held is not None and held == step and held != logged:
        log = "no log shows a step" if logged is None else "its log lags, for it shows an earlier one"
        yield f"step {held:g} is that of its newest checkpoint; {log}"


def _has_reached_target(sight: RunSnapshot, step: float) -> bool:
    return (
        sight.target is not None
        and NEARLY_DONE_SHARE * sight.target.step <= step <= OTHER_UNIT_SHARE * sight.target.step
    )


def _note_different_units(sight: RunSnapshot) -> Iterator[str]:
    """More than was asked for is no sign of the end: it is counted in something else."""
    target, step = sight.target, _step_in_target_unit(sight)
    if target is not None and step is not None and step > OTHER_UNIT_SHARE * target.step:
        yield (
            f"its last step, {step:g}, is more than the {target.step:g} that {target.where} asks for: they are counted"
            " in different units, so how far it is can't be told"
        )


def _describe_reached_target(sight: RunSnapshot, step: float) -> str:
    assert sight.target is not None
    target = sight.target
    return f"its last step, {step:g}, is the {target.step:g} that {target.where} asks for: it may be complete"


def _note_known_campaign(sight: RunSnapshot) -> Iterator[str]:
    known = sight.supervised
    root = shlex.quote(str(known.root)) if known else ""
    if known and known.cell:
        number = f"attempt {known.attempt} of " if known.attempt is not None else ""
        cell = shlex.quote(known.cell)
        yield f"this is {number}{known.cell} of a campaign: `muster -C {root} why {cell}` knows more"
    elif known:
        yield f"this is a campaign's folder: `muster -C {root} status` and `muster why CELL` know more"
    elif sight.who and sight.who.cell:
        cell = sight.who.cell
        yield f"Muster started it, as {cell}: `muster why {shlex.quote(cell)}` in its campaign's folder knows more"


def _shortened_command(who: RunProcess, most: int) -> str:
    text = " ".join(who.argv)
    return text if len(text) <= most else text[: most - 3] + "..."


def inspect_runs(
    asked: Sequence[RunQuery], for_s: float, told: Callable[[float], None] = lambda _: None
) -> list[LookReport]:
    """All of them at the same time. `told` is called with the seconds that are left."""
    clock = SystemClock()
    peeks = [installed_services().processes.inspect(each, clock) for each in asked]
    end = clock.boot() + for_s
    while True:
        began = clock.boot()
        for each in peeks:
            each.look()
        left = end - clock.boot()
        if left < INSPECTION_PERIOD_S / 2 or not any(each.watchable for each in peeks):
            for each in peeks:
                each.settle()
            return [judge_run(each.sight()) for each in peeks]
        told(left)
        time.sleep(max(0.0, min(INSPECTION_PERIOD_S, left) - (clock.boot() - began)))
