"""Whether the kernel killed for lack of memory, and when: by its counter and by its log."""

from __future__ import annotations

import re

from muster.judge.cause_case import Case

_RECENT_S = 30.0
_KERNEL_KILL = re.compile(r"(?:Killed process|oom-kill:.*\bpid=|[Oo]ut of memory: Kill\w* process)\s*(\d+)")


def rose(case: Case) -> bool:
    after = case.after
    return after.oom_after is not None and after.oom_before is not None and after.oom_after > after.oom_before


def rose_at_the_end(case: Case) -> bool:
    after = case.after
    if after.last_look_s is None:
        return rose(case) and case.lived_s <= _RECENT_S  # else it may have been counted for a child, long before
    recent = after.oom_after is not None and after.oom_last is not None and after.oom_after > after.oom_last
    return recent and after.last_look_s <= _RECENT_S


def rose_unseen(case: Case) -> bool:
    """It rose, and no look shows that it was long before the end."""
    after = case.after
    return rose(case) and (after.oom_last is None or (after.oom_after or 0) > after.oom_last)


def counts(case: Case) -> str:
    before, last, now = case.after.oom_before, case.after.oom_last, case.after.oom_after
    if last is not None and now is not None and now > last:
        return f"the kernel's oom_kill count rose from {last} to {now} after the last look"
    return f"the kernel's oom_kill count rose from {before} to {now}"


def kernel_kills(case: Case) -> dict[int | None, str]:
    """The kernel's lines by the pid that they say was killed."""
    return {int(match[1][:18]): line for line in case.after.kernel if (match := _KERNEL_KILL.search(line))}
