"""What is true of a training that Muster did not start: the same judge, over what its process and its files show."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from muster.acts.look_death import Death, read_death
from muster.acts.look_watch import LookWatch
from muster.acts.look_words import advise
from muster.domain.look_facts import Asked, Dated, Found, Supervised, Target, Who
from muster.domain.sighting import Exit
from muster.domain.verdict import LIVE, Cause, Evidence, Rhythm, State, Verdict
from muster.domain.wording import counted
from muster.judge.history import Pulse
from muster.judge.living import Finding, said
from muster.judge.telling import evidence_of, rhythms_of
from muster.ports.clock import iso

Fate = Literal["alive", "ended", "zombie", "never", "nobody", "hidden"]
NOTHING, UNDATED = Found(), Dated()
NO_WONDER_S = 30.0  # a silence that needs no explanation
NEARLY = 0.98  # of the wanted steps: the last row may be a little before the end
TOO_FAR = 1.05  # above that it is counted in another unit


@dataclass(frozen=True, slots=True)
class Sight:
    """All that the looks at one run brought."""

    asked: Asked
    boot: float
    wall: float
    watch: LookWatch  # without a process it watches the files alone
    fate: Fate
    found: Found = NOTHING
    dated: Mapping[str, Dated] | None = None
    who: Who | None = None
    state: str = ""  # the letter of its main process
    exit: Exit | None = None  # of one that has ended and was not waited for
    others: tuple[Who, ...] = ()
    doubtful: tuple[Who, ...] = ()
    hidden: int = 0  # processes that may not be looked into
    orphans: tuple[int, ...] = ()  # of its tree, when the main process has gone
    target: Target | None = None
    supervised: Supervised | None = None
    notes: tuple[str, ...] = ()
    sought: str = ""  # what was looked for, where nothing was found
    rival: int | None = None  # another process that writes where this one was said to


@dataclass(frozen=True, slots=True)
class Look:
    """The answer, for people and programs."""

    sight: Sight
    verdict: Verdict
    advice: tuple[str, ...]
    step: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def exit(self) -> int:
        if self.verdict.state == State.DONE:
            return 0
        return 4 if self.verdict.state in LIVE else 3

    @property
    def pid(self) -> int | None:
        return self.sight.who.pid if self.sight.who and self.sight.fate == "alive" else None

    @property
    def since(self) -> str | None:
        """When it started; of one that is not there, when it last wrote."""
        sight = self.sight
        if self.pid is not None and sight.who:
            return iso(sight.wall - (sight.boot - sight.who.began))
        return iso(sight.found.newest) if sight.found.newest is not None else None


def judge_sight(sight: Sight) -> Look:
    verdict = _alive(sight) if sight.fate == "alive" else _absent(sight)
    step = _step(sight)
    if step is not None and _reached(sight, step) and verdict.state == State.DEAD:
        verdict = replace(verdict, note=_reached_words(sight, step))
    notes = (
        *_knows_more(sight),
        *_units_differ(sight),
        *_lags(sight),
        *sight.notes,
        *sight.found.notes,
        *((verdict.note,) if verdict.note else ()),
    )
    if not sight.found.traces and sight.found.folder:
        notes = (*notes, f"looked for {sight.sought}")
    look = Look(sight, verdict, (), step, notes)
    return replace(look, advice=tuple(advise(look)))


# -- a living process


def _alive(sight: Sight) -> Verdict:
    watch = sight.watch
    found = watch.find(sight.boot)
    found = _if_it_is_the_run(sight, found)
    if sight.rival is not None and sight.who is not None and found.kind != "stopped":
        reason = f"{found.reason}; but it is process {sight.rival} that writes there, not {sight.who.pid}"
        sure = "presumed" if found.confidence == "proven" else found.confidence
        found = replace(found, confidence=sure, reason=reason)
    evidence = (*_life(sight), *_files_told(sight), *_progress(sight))
    return Verdict(
        found.state, found.reason, found.kind, found.confidence, None, evidence, turns=found.turns, into=found.into,
        rhythms=_rhythms(sight),
    )  # fmt: skip


HOW = {
    "not seen there": "is not seen to write in this folder",
    "names the folder above": "names the folder above this one",
    "works there": "works in this folder",
    "names it": "names this folder in its command",
}


def _if_it_is_the_run(sight: Sight, found: Finding) -> Finding:
    """One that works in the folder or reads from it may be anybody: it can't make a silent run RUNNING or STALLED."""
    who = sight.who
    if who is None or who.sure not in HOW or _advanced_there(sight):
        return found
    wrote = _wrote_since(sight, who)
    silent = found.state == State.STALLED or found.kind == "overdue"
    if wrote and (who.sure == "names it" or not silent or found.kind == "stopped"):
        return found
    return Finding(State.UNKNOWN, None, "unknown", _not_told(who, wrote=wrote))


def _advanced_there(sight: Sight) -> frozenset[str]:
    """What was seen to advance in the folder itself: that a process prints elsewhere says nothing about it."""
    return frozenset(name for name in sight.watch.advanced if not name.startswith("/"))


def _wrote_since(sight: Sight, who: Who) -> bool:
    """Without slack: what was written a moment before it began is another's."""
    return sight.found.touched is not None and sight.found.touched > sight.wall - (sight.boot - who.began)


def _not_told(who: Who, *, wrote: bool) -> str:
    but = "has no file of it open, and nothing advances" if wrote else "nothing was written there since it started"
    return f"pid {who.pid} {HOW[who.sure]}, but {but}: whether it is this run can't be told"


def _life(sight: Sight) -> Iterator[Evidence]:
    who, now = sight.who, sight.boot
    if who is not None and sight.fate == "alive":
        state = f", state {sight.state}" if sight.state else ""
        reading = f"pid {who.pid} is alive, started {said(now - who.began)} ago (start ticks {who.ticks}){state}"
        yield Evidence("process", "life", reading, "alive", now)
        for text in who.because:
            yield Evidence("writer", "life", text, "alive", now)
        if who.foreign:
            reading = f"it belongs to {who.user}: its folder, its open files and its I/O may not be read"
            yield Evidence("access", "life", reading, "abstains", now)
    for other in sight.others:
        yield Evidence("process", "life", f"pid {other.pid} writes there too ({_command(other, 40)})", "alive", now)
    for other in sight.doubtful:
        text = "; ".join(other.because) + f" ({_command(other, 40)}), but has no file of it open"
        yield Evidence("process", "life", text, "abstains", now)


def _files_told(sight: Sight) -> Iterator[Evidence]:
    """The judge's rows, which say where they rest on file times."""
    by_files = sight.watch.dated_only
    for row in evidence_of(sight.watch.watch, sight.boot):
        if row.kind == "progress" and row.signal in by_files:
            yield replace(row, reading=f"{row.reading}, by file times")
        elif row.says == "nothing yet" and (sight.dated or {}).get(row.signal, UNDATED).last is not None:
            yield replace(row, reading=f"{row.reading}, written before this process started")
        elif row.signal == "output" and row.says == "abstains":
            continue  # its logs have other names than those of an attempt
        else:
            yield row


def _progress(sight: Sight) -> Iterator[Evidence]:
    for trouble in sight.found.troubles:
        yield Evidence("files", "progress", trouble, "abstains", sight.boot)


def _rhythms(sight: Sight) -> tuple[Rhythm, ...]:
    rhythms = rhythms_of(sight.watch.watch, sight.boot)
    return tuple(replace(each, note="") if _needless(each) else each for each in rhythms)


def _needless(rhythm: Rhythm) -> bool:
    """A guess why it is silent, where it is hardly so."""
    return rhythm.note.startswith("perhaps") and (rhythm.silent_s or 0.0) < NO_WONDER_S


# -- no process


def _absent(sight: Sight) -> Verdict:
    evidence = (*_missing(sight), *_life(sight), *_last_signs(sight), *_progress(sight))
    if sight.watch.advanced:
        return _elsewhere(sight, evidence)
    if sight.orphans:
        pids = ", ".join(map(str, sight.orphans))
        reason = f"its main process is gone, but processes of it live on: pid {pids}"
        return Verdict(State.RUNNING, reason, "orphans", "presumed", None, evidence)
    if sight.fate == "hidden" or _perhaps(sight):
        return Verdict(State.UNKNOWN, _nobody(sight), None, "unknown", None, evidence)
    ended = sight.exit or _by_its_record(sight)
    death = read_death(sight.found.logs, _alive_at(sight.found), ended)
    if death is not None:
        return _dead(sight, death, evidence)
    if ended is not None:
        return _exit_0(sight, evidence)
    if sight.fate == "ended":
        return _lost(evidence)
    step = _step(sight)
    kind = "reached" if step is not None and _reached(sight, step) else None
    return Verdict(State.UNKNOWN, _nobody(sight), kind, "unknown", None, evidence)


def _perhaps(sight: Sight) -> Who | None:
    """A process that may be this run, begun anew: while it lives the run is not called dead."""
    if sight.exit is not None:
        return None
    return next((who for who in sight.doubtful if who.sure in ("names it", "works there")), None)


def _by_its_record(sight: Sight) -> Exit | None:
    """Its exit as the run itself wrote it down: W&B does, unless the run is killed."""
    codes = [pulse.ended for pulse in sight.watch.watch.history.pulses.values() if pulse.ended is not None]
    return Exit(codes[0], None, 0.0, 0.0, 0.0) if codes else None


def _elsewhere(sight: Sight, evidence: tuple[Evidence, ...]) -> Verdict:
    names = ", ".join(sorted(sight.watch.advanced))
    perhaps = "; ".join(f"perhaps it is pid {who.pid}, which {HOW[who.sure]}" for who in sight.doubtful[:1])
    where = "no process that can be seen here writes there: it runs elsewhere"
    reason = f"{names} advanced while we looked, but {perhaps or where}"
    return Verdict(State.RUNNING, reason, "elsewhere", "presumed", None, evidence, rhythms=_rhythms(sight))


def _dead(sight: Sight, death: Death, evidence: tuple[Evidence, ...]) -> Verdict:
    found, log = death.found, death.log
    rows = list(evidence)
    if log is not None:
        age = sight.boot - max(0.0, sight.wall - log.at)
        last = found.lines[-1] if found.lines else found.cause.note
        rows.append(Evidence(log.name, "exit", f"it ends with: {last}", "ended", age))
    rows += [Evidence("log", "exit", text, "abstains", sight.boot) for text in death.stale]
    recorded = _by_its_record(sight)
    said = f"; its W&B record ends with exit code {recorded.code}" if recorded else "; nobody saw its exit"
    reason = f"{found.cause.note}{'' if sight.exit is not None else said}"
    sure = "probable" if sight.exit is None and found.cause.confidence == "proven" else found.cause.confidence
    cause = replace(found.cause, confidence=sure)
    return Verdict(
        State.DEAD, reason, None, sure, cause, tuple(rows), contributing=found.contributing,
        lines=found.lines, advice=found.try_,
    )  # fmt: skip


def _exit_0(sight: Sight, evidence: tuple[Evidence, ...]) -> Verdict:
    step = _step(sight)
    logged = logged_step(sight)  # a trainer with `repeat` may log what it counts, too
    short = step is not None and logged is not None and sight.target and not _reached(sight, logged)
    if sight.target and step is not None and short and step < NEARLY * sight.target.step:
        note = f"exit 0 at step {step:g} of {sight.target.step:g} ({sight.target.where})"
        return Verdict(State.DEAD, note, None, "probable", Cause("early_exit", "", "probable", note), evidence)
    said = "it ended with exit 0" if sight.exit is not None else "its W&B record ends with exit code 0"
    return Verdict(State.DONE, said, None, "presumed", None, evidence)


def _lost(evidence: tuple[Evidence, ...]) -> Verdict:
    note = "its process has ended; no log shows how"
    return Verdict(State.DEAD, note, None, "unknown", Cause("unknown", "", "unknown", note), evidence)


def _nobody(sight: Sight) -> str:
    if sight.fate == "hidden":
        return f"process {sight.asked.pid} exists, but /proc does not show it to you"
    if sight.fate == "never" and not sight.found.folder:
        return f"there is no process {sight.asked.pid}; a training of that number has ended, or runs on another machine"
    if who := _perhaps(sight):
        return _not_told(who, wrote=_wrote_since(sight, who))
    writes = f"no process {'that you may look into' if sight.hidden else 'on this machine'} writes there"
    if not sight.found.traces and not sight.found.logs:
        return f"{writes}, and {next(iter(sight.found.troubles), 'no progress file was found in it')}"
    if sight.fate == "never":
        writes = f"there is no process {sight.asked.pid}, and {writes}"
    step = _step(sight)
    if step is not None and _reached(sight, step):
        return f"{writes} any more, and {_reached_words(sight, step)}"
    return f"{writes}; silence is no evidence of death"


def _missing(sight: Sight) -> Iterator[Evidence]:
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
        hidden = counted(sight.hidden, "process", "processes")
        reading = f"{hidden} of other users may not be looked into, and may write there"
        yield Evidence("writers", "life", reading, "abstains", now)


def _last_signs(sight: Sight) -> Iterator[Evidence]:
    """How far it came, and when it last wrote."""
    dated = sight.dated or {}
    for pulse in sight.watch.watch.history.pulses.values():
        found = dated.get(pulse.signal)
        text = pulse.trouble or pulse.reading or "nothing yet"
        if found and found.last is not None:
            text += f", written {said(max(0.0, sight.wall - found.last))} ago, by file times"
        says = "abstains" if pulse.trouble else "advances" if pulse.advances else "silent"
        if pulse.count is None and not pulse.trouble:
            says = "nothing yet"
        yield Evidence(pulse.signal, "progress", text, says, sight.boot)


def _alive_at(found: Found) -> float | None:
    """The last sign of progress that is no log."""
    times = [each.dated.last for each in found.traces if each.progress.kind != "stdout" and each.dated.last is not None]
    return max(times, default=None)


# -- steps


def logged_step(sight: Sight) -> float | None:
    """Of the first signal that counts steps, as the run wrote it."""
    return next((pulse.count for pulse in _logs(sight) if pulse.count is not None), None)


def _step(sight: Sight) -> float | None:
    """In the unit of the target: what is logged may be its product with `repeat`. A checkpoint may know a later one."""
    logged, repeat = logged_step(sight), sight.target.repeat if sight.target else None
    step = logged / repeat.times if logged is not None and repeat else logged
    return max((each for each in (step, _held(sight)) if each is not None), default=None)


def _held(sight: Sight) -> float | None:
    """The step of the newest checkpoint, where it can be compared with the target."""
    pulses = sight.watch.watch.history.pulses.values()
    most = TOO_FAR * sight.target.step if sight.target else float("inf")
    return max((pulse.held for pulse in pulses if pulse.held is not None and pulse.held <= most), default=None)


def _lags(sight: Sight) -> Iterator[str]:
    logged, held, step = logged_step(sight), _held(sight), _step(sight)
    if held is not None and held == step and held != logged:
        log = "no log shows a step" if logged is None else "its log lags, for it shows an earlier one"
        yield f"step {held:g} is that of its newest checkpoint; {log}"


def _logs(sight: Sight) -> Iterator[Pulse]:
    """One number in a log, and no other, may be no step at all: "step 1: load the data"."""
    stand = {trace.progress.path for trace in sight.found.traces if trace.stands} - sight.watch.advanced
    return (pulse for name, pulse in sight.watch.watch.history.pulses.items() if pulse.is_log and name not in stand)


def _reached(sight: Sight, step: float) -> bool:
    return sight.target is not None and NEARLY * sight.target.step <= step <= TOO_FAR * sight.target.step


def _units_differ(sight: Sight) -> Iterator[str]:
    """More than was asked for is no sign of the end: it is counted in something else."""
    target, step = sight.target, _step(sight)
    if target is not None and step is not None and step > TOO_FAR * target.step:
        yield (
            f"its last step, {step:g}, is more than the {target.step:g} that {target.where} asks for: they are counted"
            " in different units, so how far it is can't be told"
        )


def _reached_words(sight: Sight, step: float) -> str:
    assert sight.target is not None
    target = sight.target
    return f"its last step, {step:g}, is the {target.step:g} that {target.where} asks for: it may be complete"


def _knows_more(sight: Sight) -> Iterator[str]:
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


def _command(who: Who, most: int) -> str:
    text = " ".join(who.argv)
    return text if len(text) <= most else text[: most - 3] + "..."
