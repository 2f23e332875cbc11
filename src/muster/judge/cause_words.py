"""The plain sentences around causes: what a signal or a code means, and what a person may try."""

from __future__ import annotations

import signal

from muster.domain.sighting import Exit

SIGNAL_NOTES = {
    2: "interrupted by SIGINT, as Ctrl-C sends it; who sent it is not known",
    3: "ended by SIGQUIT; who sent it is not known",
    4: "it crashed: illegal instruction (SIGILL)",
    6: "it gave up by abort (SIGABRT)",
    7: "it crashed: bus error (SIGBUS), often a file or shared memory that could not be backed",
    8: "it crashed: arithmetic error (SIGFPE)",
    11: "it crashed: segmentation fault (SIGSEGV)",
    13: "ended by SIGPIPE: what it wrote to was closed",
    24: "its limit of CPU time was reached (SIGXCPU)",
    25: "its limit of file size was reached (SIGXFSZ)",
}


def signal_name(number: int | None) -> str:
    """`signal 9 (SIGKILL)`."""
    try:
        return f"signal {number} ({signal.Signals(number or 0).name})"
    except ValueError:
        return f"signal {number}"


EXIT_NOTES = {
    120: "Python ends so when its last output could not be written",
    124: "`timeout` reports so that the time was over",
    126: "a shell reports so that the command can't be executed",
    127: "a shell reports so that the command was not found",
    130: "128+2: a shell reports an interrupted child this way",
    134: "128+6: a shell reports an aborted child this way",
    135: "128+7: a shell reports a child with a bus error this way",
    137: "128+9: a shell reports a killed child this way",
    139: "128+11: a shell reports a child with a segmentation fault this way",
    143: "128+15: a shell reports a terminated child this way",
}

TRY = {
    "never_started": "check that the command exists, is executable and is spelled right",
    "oom_kill": "give it more memory, or use fewer data workers, a smaller replay or smaller batches",
    "hangup": "start it where no terminal owns it; what muster starts is not hung up",
    "timeout": "raise its timeout, or save checkpoints and resume",
    "preempted": "retry it; save checkpoints often enough to resume",
    "gpu_lost": "retry it on another GPU; this one needs a reset or a look by its owner",
    "cuda_oom": "use a smaller batch or model, or see who else is on that GPU",
    "disk_full": "free space where it writes, or raise the quota; keep fewer checkpoints",
    "non_finite": "lower the learning rate, clip gradients, or look at the data of the last steps",
    "stalled": "look at the evidence before the stop; a longer declared period avoids a false one",
    "early_exit": "see what its proof misses; it may have stopped by a setting of its own",
    "signal(7)": "give it more shared memory (docker --shm-size), or use fewer data workers",
    "signal(9)": "find out who sent it: a memory watchdog, a scheduler, a person; the machine's log may tell",
    "signal(15)": "find out who sent it: a scheduler, a shutdown, a person",
    "exit_code": "read its last lines",
    "exception": "read the lines above; mend the code or the config, then retry",
}


def how_it_ended(exit_: Exit) -> str:
    return f"signal {exit_.signal}" if exit_.signal is not None else f"exit {exit_.code}"
