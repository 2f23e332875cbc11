"""The report of `muster look` as JSON and words: the meaning of a verdict, and what to do about the run. Never: kill
it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from muster.app.campaign.campaign_status import evidence_as_json
from muster.app.campaign.status_json import cadence_as_json, verdict_change_as_json
from muster.engine.judge.liveness import format_elapsed
from muster.engine.judge.signal_history import SignalPulse
from muster.engine.ports.processes import RunSnapshot
from muster.model.calendar import format_iso_time
from muster.model.verdict import LIVE_STATES, Verdict, VerdictState
from muster.text.hide_secrets import hide_secrets_in_words


@dataclass(frozen=True, slots=True)
class LookReport:
    """The answer, for people and programs."""

    sight: RunSnapshot
    verdict: Verdict
    advice: tuple[str, ...]
    step: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def exit(self) -> int:
        if self.verdict.state == VerdictState.DONE:
            return 0
        return 4 if self.verdict.state in LIVE_STATES else 3

    @property
    def pid(self) -> int | None:
        return self.sight.who.pid if self.sight.who and self.sight.fate == "alive" else None

    @property
    def since(self) -> str | None:
        """When it started; of one that is not there, when it last wrote."""
        sight = self.sight
        if self.pid is not None and sight.who:
            return format_iso_time(sight.wall - (sight.boot - sight.who.began))
        return format_iso_time(sight.found.newest) if sight.found.newest is not None else None


# -- steps


def logged_step(sight: RunSnapshot) -> float | None:
    """Of the first signal that counts steps, as the run wrote it."""
    return next((pulse.count for pulse in _log_pulses(sight) if pulse.count is not None), None)


def _log_pulses(sight: RunSnapshot) -> Iterator[SignalPulse]:
    """One number in a log, and no other, may be no step at all: "step 1: load the data"."""
    stand = {trace.progress.path for trace in sight.found.traces if trace.stands} - sight.watch.advanced
    return (pulse for name, pulse in sight.watch.watch.history.pulses.items() if pulse.is_log and name not in stand)


def look_report_as_json(look: LookReport) -> dict[str, Any]:
    """The object of `muster look --json`: a contract."""
    sight, verdict = look.sight, look.verdict
    return {
        "muster": 1,
        "asked": sight.asked.text,
        "verdict": str(verdict.state),
        "kind": verdict.kind,
        "confidence": verdict.confidence,
        "cause": str(verdict.cause) if verdict.cause else None,
        "reason": verdict.reason,
        "next": look.advice[0] if look.advice else "nothing to do",
        "advice": list(look.advice),
        "notes": list(look.notes),
        "pid": look.pid,
        "command": hide_secrets_in_words(sight.who.argv) if sight.who else None,
        "output": sight.found.folder or None,
        "step": look.step,
        "logged_step": logged_step(sight),
        "target": sight.target.step if sight.target else None,
        "since": look.since,
        "evidence": [evidence_as_json(item, sight.boot) for item in verdict.evidence],
        "cadence": cadence_as_json(verdict),
        "turns": verdict_change_as_json(verdict, sight.boot),
        "contributing": list(verdict.contributing),
        "lines": list(verdict.lines),
        "try": verdict.advice or None,
        "files": [_progress_file_as_json(look, index) for index in range(len(sight.found.traces))],
    }


def _progress_file_as_json(look: LookReport, index: int) -> dict[str, Any]:
    trace = look.sight.found.traces[index]
    last = trace.dated.last
    return {
        "file": trace.progress.path,
        "kind": "log" if trace.progress.kind == "stdout" else trace.progress.kind,
        "counts": trace.progress.step if trace.progress.kind in ("jsonl", "csv") else None,
        "age_s": round(max(0.0, look.sight.wall - last), 1) if last is not None else None,
        "advanced": trace.progress.path in look.sight.watch.advanced,
        "trouble": trace.mute or trace.dated.why or None,
    }


LONGEST_LOOK_S = 600.0


VERDICT_MEANINGS = {
    "RUNNING": "It is alive.",
    "QUIET": "It is alive and advances; only its log is silent. That is no reason to restart it.",
    "STALLED": "It is alive but does not advance. Muster only looks: nothing is killed.",
    "DEAD": "It is not running. What it wrote is still there.",
    "DONE": "It is not running any more.",
    "UNKNOWN": "It can't be told just now, so it is called neither running nor dead.",
}


def verdict_meaning(look: LookReport) -> str:
    if look.verdict.state == VerdictState.QUIET and _sees_no_advance(look):
        return "It is alive and busy. Whether it advances can't be seen."
    return VERDICT_MEANINGS[look.verdict.state]


def advise_on_run(look: LookReport) -> Iterator[str]:
    """The first line is what to do next; the others say more."""
    verdict = look.verdict
    if verdict.state == VerdictState.STALLED:
        yield from _advice_for_stalled(look)
    elif verdict.state in (VerdictState.RUNNING, VerdictState.QUIET):
        yield from _advice_for_living(look)
    elif verdict.state == VerdictState.DEAD:
        yield from _advice_for_dead(look)
    elif verdict.state == VerdictState.DONE:
        yield "nothing to do: it has ended well; whether its results are complete only they can tell"
    elif look.pid is not None:
        yield from _advice_for_unclear(look)
    else:
        yield from _advice_without_process(look)


def _advice_for_living(look: LookReport) -> Iterator[str]:
    verdict = look.verdict
    if verdict.kind == "elsewhere":
        yield "nothing to do: it advances; to see its process, look on the machine or in the container where it runs"
        return
    if verdict.kind == "orphans":
        yield "leave them alone until you know what they do: they may still be saving"
        return
    if verdict.kind == "starting":
        yield "nothing to do yet: loading data and compiling may take long; look again later"
    elif verdict.kind == "overdue":
        yield f"wait and look again: it is later than usual, and that is all; {_suggest_longer_look(look)}"
        yield from _inspection_commands(look)
    elif _sees_no_advance(look):
        yield "nothing to do yet: it is busy, but no step can be seen, and being busy is not advancing"
        yield f"what would change this: a file with steps in it; if it writes elsewhere, `muster look {look.pid} DIR`"
        return
    elif verdict.state == VerdictState.QUIET:
        yield "nothing to do: a silent log is no reason to restart it, and a restart would lose work"
        yield from _explain_silence(look)
    elif verdict.confidence == "proven":
        yield "nothing to do: it advances, and a restart would lose work"
    elif look.sight.watch.idle:
        yield "wait and look again: it did nothing while we looked, which may be a pause or the beginning of a stall"
    else:
        yield "nothing to do yet: it is busy, and its last step is not older than it may be"
        yield from _explain_silence(look)
    if verdict.confidence == "presumed" and verdict.kind is None:
        yield f"what would make this sure: {_suggest_longer_look(look)}"
    if verdict.turns is not None:
        wait = max(0.0, verdict.turns - look.sight.boot)
        yield (
            f"what would change this: nothing advances for {format_elapsed(wait)} more, then it is called "
            f"{verdict.into}"
        )


def _explain_silence(look: LookReport) -> Iterator[str]:
    """`log_every: 1000` may count seconds: healthy runs were restarted because nobody knew."""
    for rhythm in look.verdict.rhythms:
        if rhythm.note:
            yield f"why {rhythm.signal} is silent: it is {rhythm.note}"


def _sees_no_advance(look: LookReport) -> bool:
    return not any(pulse.advanced is not None for pulse in look.sight.watch.watch.history.pulses.values())


def _suggest_longer_look(look: LookReport) -> str:
    """A look that is long enough to see the next advance."""
    usual = [rhythm.usual_s for rhythm in look.verdict.rhythms if rhythm.usual_s]
    wanted = 2.5 * min(usual) if usual else 60.0
    seconds = int(min(LONGEST_LOOK_S, max(20.0, wanted)))
    text = f"{seconds}s" if seconds < 120 else f"{seconds // 60}m"
    shown = "see its next advance" if usual else "show more"
    return f"`muster look {look.sight.asked.text} --for {text}` would {shown}"


def _advice_for_stalled(look: LookReport) -> Iterator[str]:
    pid = look.pid
    if look.verdict.kind == "stopped":
        yield f"find out who stopped it, then let it go on: `kill -CONT {pid}` (SIGCONT; it ends nothing)"
        yield "what would change this: as soon as it goes on it is judged by its progress again"
        return
    yield "do not kill it yet: first keep what shows why, for it is lost with the process"
    yield from _inspection_commands(look)
    if saved := _describe_newest_checkpoint(look):
        yield f"what a restart would lose: all since {saved}"
    else:
        yield "what a restart would lose: all of it, for no checkpoint was found"
    longer = f"`muster look {look.sight.asked.text} --for 2m`"
    yield f"what would change this: any advance makes it RUNNING again; {longer} would see one"


def _inspection_commands(look: LookReport) -> Iterator[str]:
    pid = look.pid
    yield f"see where it stands without stopping it: `py-spy dump --pid {pid}`, `cat /proc/{pid}/wchan`, `df -h`"


def _describe_newest_checkpoint(look: LookReport) -> str:
    kept = [trace for trace in look.sight.found.traces if trace.progress.kind == "checkpoint" and trace.dated.last]
    if not kept:
        return ""
    newest = max(kept, key=lambda trace: trace.dated.last or 0.0)
    age = max(0.0, look.sight.wall - (newest.dated.last or 0.0))
    return f"{newest.progress.path}, saved {format_elapsed(age)} ago"


def _advice_for_dead(look: LookReport) -> Iterator[str]:
    verdict = look.verdict
    if verdict.advice:
        yield verdict.advice
    elif verdict.cause and verdict.cause.kind == "unknown":
        yield "look for its output (the terminal, tmux, nohup.out): its last lines say why; then decide about a restart"
    else:
        yield "read its last lines before it is started again: the same cause ends it again"
    if saved := _describe_newest_checkpoint(look):
        yield f"to go on from: {saved}"
    if verdict.cause and verdict.cause.kind == "unknown":
        yield "next time: what `muster up` starts has its exit written down, whatever happens to terminals"


def _advice_for_unclear(look: LookReport) -> Iterator[str]:
    sight = look.sight
    if sight.who and sight.who.sure == "not seen there":
        yield f"see whether {look.pid} is the right process: `muster look {look.pid}` finds where it writes"
        return
    if sight.who and sight.who.sure not in ("was given", "has it open"):
        yield f"if pid {look.pid} is this run, look where it really writes: `muster look {look.pid}`"
        return
    yield "wait and look again: nothing shows whether it works, and nothing shows that it does not"
    if not sight.found.traces:
        yield f"what would change this: a file with steps in it; if it writes elsewhere, `muster look {look.pid} DIR`"
    yield from _inspection_commands(look)


def _advice_without_process(look: LookReport) -> Iterator[str]:
    sight = look.sight
    if sight.fate == "hidden" or sight.hidden:
        yield "ask as the user that it belongs to, or as root: what may not be read here may be read there"
    elif who := next((each for each in sight.doubtful if each.sure in ("names it", "works there")), None):
        yield f"if pid {who.pid} is this run, look where it really writes: `muster look {who.pid}`"
    elif sight.fate == "never" and not sight.found.folder:
        yield "give its output folder: what it left behind may show how it ended (`muster look DIR`)"
    elif not sight.found.traces and not sight.found.logs:
        yield "give the folder that it really writes to, or its process id: `muster look PID`"
    elif look.verdict.kind == "reached":
        yield "see whether its results are there and open: it seems to have come to its end, though nobody saw its exit"
        if saved := _describe_newest_checkpoint(look):
            yield f"its newest checkpoint: {saved}"
    else:
        yield "if it should run on another machine or in another container, look there"
        if not sight.found.logs:
            yield "what would change this: its output (the terminal, tmux), whose last lines say how it ended"
