"""What a worried person may do about a run, and what would change its verdict. Never: kill it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from muster.domain.verdict import State
from muster.judge.living import said

if TYPE_CHECKING:
    from muster.acts.look import Look

LONGEST_LOOK_S = 600.0


MEANING = {
    "RUNNING": "It is alive.",
    "QUIET": "It is alive and advances; only its log is silent. That is no reason to restart it.",
    "STALLED": "It is alive but does not advance. Muster only looks: nothing is killed.",
    "DEAD": "It is not running. What it wrote is still there.",
    "DONE": "It is not running any more.",
    "UNKNOWN": "It can't be told just now, so it is called neither running nor dead.",
}


def meaning(look: Look) -> str:
    if look.verdict.state == State.QUIET and _blind(look):
        return "It is alive and busy. Whether it advances can't be seen."
    return MEANING[look.verdict.state]


def advise(look: Look) -> Iterator[str]:
    """The first line is what to do next; the others say more."""
    verdict = look.verdict
    if verdict.state == State.STALLED:
        yield from _stalled(look)
    elif verdict.state in (State.RUNNING, State.QUIET):
        yield from _going(look)
    elif verdict.state == State.DEAD:
        yield from _dead(look)
    elif verdict.state == State.DONE:
        yield "nothing to do: it has ended well; whether its results are complete only they can tell"
    elif look.pid is not None:
        yield from _unclear(look)
    else:
        yield from _nobody(look)


def _going(look: Look) -> Iterator[str]:
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
        yield f"wait and look again: it is later than usual, and that is all; {_see_for_yourself(look)}"
        yield from _inspect(look)
    elif _blind(look):
        yield "nothing to do yet: it is busy, but no step can be seen, and being busy is not advancing"
        yield f"what would change this: a file with steps in it; if it writes elsewhere, `muster look {look.pid} DIR`"
        return
    elif verdict.state == State.QUIET:
        yield "nothing to do: a silent log is no reason to restart it, and a restart would lose work"
        yield from _why_silent(look)
    elif verdict.confidence == "proven":
        yield "nothing to do: it advances, and a restart would lose work"
    elif look.sight.watch.idle:
        yield "wait and look again: it did nothing while we looked, which may be a pause or the beginning of a stall"
    else:
        yield "nothing to do yet: it is busy, and its last step is not older than it may be"
        yield from _why_silent(look)
    if verdict.confidence == "presumed" and verdict.kind is None:
        yield f"what would make this sure: {_see_for_yourself(look)}"
    if verdict.turns is not None:
        wait = max(0.0, verdict.turns - look.sight.boot)
        yield f"what would change this: nothing advances for {said(wait)} more, then it is called {verdict.into}"


def _why_silent(look: Look) -> Iterator[str]:
    """`log_every: 1000` may count seconds: healthy runs were restarted because nobody knew."""
    for rhythm in look.verdict.rhythms:
        if rhythm.note:
            yield f"why {rhythm.signal} is silent: it is {rhythm.note}"


def _blind(look: Look) -> bool:
    return not any(pulse.advanced is not None for pulse in look.sight.watch.watch.history.pulses.values())


def _see_for_yourself(look: Look) -> str:
    """A look that is long enough to see the next advance."""
    usual = [rhythm.usual_s for rhythm in look.verdict.rhythms if rhythm.usual_s]
    wanted = 2.5 * min(usual) if usual else 60.0
    seconds = int(min(LONGEST_LOOK_S, max(20.0, wanted)))
    text = f"{seconds}s" if seconds < 120 else f"{seconds // 60}m"
    shown = "see its next advance" if usual else "show more"
    return f"`muster look {look.sight.asked.text} --for {text}` would {shown}"


def _stalled(look: Look) -> Iterator[str]:
    pid = look.pid
    if look.verdict.kind == "stopped":
        yield f"find out who stopped it, then let it go on: `kill -CONT {pid}` (SIGCONT; it ends nothing)"
        yield "what would change this: as soon as it goes on it is judged by its progress again"
        return
    yield "do not kill it yet: first keep what shows why, for it is lost with the process"
    yield from _inspect(look)
    if saved := _newest_checkpoint(look):
        yield f"what a restart would lose: all since {saved}"
    else:
        yield "what a restart would lose: all of it, for no checkpoint was found"
    longer = f"`muster look {look.sight.asked.text} --for 2m`"
    yield f"what would change this: any advance makes it RUNNING again; {longer} would see one"


def _inspect(look: Look) -> Iterator[str]:
    pid = look.pid
    yield f"see where it stands without stopping it: `py-spy dump --pid {pid}`, `cat /proc/{pid}/wchan`, `df -h`"


def _newest_checkpoint(look: Look) -> str:
    kept = [trace for trace in look.sight.found.traces if trace.progress.kind == "checkpoint" and trace.dated.last]
    if not kept:
        return ""
    newest = max(kept, key=lambda trace: trace.dated.last or 0.0)
    age = max(0.0, look.sight.wall - (newest.dated.last or 0.0))
    return f"{newest.progress.path}, saved {said(age)} ago"


def _dead(look: Look) -> Iterator[str]:
    verdict = look.verdict
    if verdict.advice:
        yield verdict.advice
    elif verdict.cause and verdict.cause.kind == "unknown":
        yield "look for its output (the terminal, tmux, nohup.out): its last lines say why; then decide about a restart"
    else:
        yield "read its last lines before it is started again: the same cause ends it again"
    if saved := _newest_checkpoint(look):
        yield f"to go on from: {saved}"
    if verdict.cause and verdict.cause.kind == "unknown":
        yield "next time: what `muster up` starts has its exit written down, whatever happens to terminals"


def _unclear(look: Look) -> Iterator[str]:
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
    yield from _inspect(look)


def _nobody(look: Look) -> Iterator[str]:
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
        if saved := _newest_checkpoint(look):
            yield f"its newest checkpoint: {saved}"
    else:
        yield "if it should run on another machine or in another container, look there"
        if not sight.found.logs:
            yield "what would change this: its output (the terminal, tmux), whose last lines say how it ended"
