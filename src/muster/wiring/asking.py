"""Asks the jobs' own Pythons what they are and which devices they see.

That executes what campaign.yaml names. So it is done where a person said so (`check --ask`), before the first start
(`up` is about to execute it anyway), and, once this user has run the campaign, for Pythons that it can not change.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Literal

from muster.acts.check import locate
from muster.acts.environments import Answered, Environment, as_record, environments, judge
from muster.domain.campaign import Campaign
from muster.domain.errors import Mistake
from muster.domain.state import Only
from muster.domain.wording import counted
from muster.execute.gpus import GpuWatch, find_gpus
from muster.observe.search_path import find_program, is_within, trusted_path
from muster.wiring.fitting import jobs_to_do, known_state, refuse_failures
from muster.wiring.started_here import started_here
from muster.wiring.taking import Read

Asking = Callable[[Environment], None]  # hears which environment is asked now: it may take a while
Which = Literal["all", "own", "none"]
# variables that have a Python, or what starts it, load code of somebody's choice
_LOADS = ("PYTHON", "LD_", "CONDA", "MAMBA", "XDG_", "GCONV_PATH", "PJRT_")
_NAMES = frozenset({"PATH", "HOME", "ENV", "BASH_ENV", "VIRTUAL_ENV", "TMPDIR"})
_BY_NAME = frozenset({"conda", "mamba", "micromamba"})  # `-n NAME`: an environment of the user's


@dataclass(frozen=True, slots=True)
class Asked:
    environment: Environment
    answer: Answered | None  # None: nobody was asked

    @property
    def left_out(self) -> bool:
        return self.answer is None and bool(self.environment.words)

    @property
    def record(self) -> dict[str, Any]:
        if self.left_out:
            note = "not asked: `muster check --ask` executes it"
            return {"jobs": list(self.environment.jobs), "command": list(self.environment.words), "note": note}
        return as_record(self.environment, self.answer)


def whom_to_ask(root: Path, *, ask: bool) -> Which:
    """`ask`: a person says so."""
    return "all" if ask else "own" if started_here(root / ".muster") else "none"


def ask_environments(
    campaign: Campaign, root: Path, gpus: Sequence[Mapping[str, Any]], which: Which, asking: Asking
) -> list[Asked]:
    """Each environment once."""
    return [_ask(each, root, which, asking) for each in environments(campaign, str(root), gpus, os.environ)]


def _ask(each: Environment, root: Path, which: Which, asking: Asking) -> Asked:
    from muster.observe.environments import ask

    words, environ = each.words, dict(os.environ)
    if words and which == "own":
        words = own_words(each, str(root))
        environ["PATH"] = trusted_path(each.cwd)
    if not words or which == "none":
        return Asked(each, None)
    asking(each)
    return Asked(each, ask(words, each.cwd, {**environ, **each.added}, modules=each.modules))


def own_words(each: Environment, root: str) -> tuple[str, ...]:
    """What starts it, where that is a program of the user's which nothing of the campaign can change; else nothing."""
    if any(name in _NAMES or name.startswith(_LOADS) for name in each.added):
        return ()
    first, *rest = each.words
    if rest and (PurePath(first).name not in _BY_NAME or any("/" in word for word in rest)):
        return ()
    found = first if first.startswith("/") else None if "/" in first else find_program(first, each.cwd)
    if found is None or any(_lies_in(folder, found) for folder in (root, each.cwd)):
        return ()
    return (found, *rest)


def _lies_in(folder: str, program: str) -> bool:
    """As it is named or as it is: a link in a virtual environment leads out of it, and loads what lies in it."""
    return is_within(folder, program) or is_within(folder, str(Path(program).parent))


def note_left_out(asked: Sequence[Asked]) -> Iterator[Mistake]:
    """In one line, that they were not asked and how to."""
    left_out = [each for each in asked if each.left_out]
    if left_out:
        names = ", ".join(dict.fromkeys(each.environment.name for each in left_out[:4]))
        more = f" and {counted(len(left_out) - 4, 'more')}" if len(left_out) > 4 else ""
        what = f"the jobs' Pythons were not asked what they see, which would execute them: {names}{more}"
        yield Mistake(what, hint="`muster check --ask` asks them", level="note")


def ask_gpu_users(root: Path, found: Read, only: Only, asking: Asking) -> tuple[Mistake, ...]:
    """Before the first start. Warnings, or an error where a GPU that is asked for is not seen.

    Whatever takes no GPU is not waited for: it fails at once if its Python does not start.
    """
    gpus = [{"index": gpu.index, "busy": gpu.busy} for gpu in GpuWatch(find_gpus).gpus]
    if not gpus or found.campaign.slots.gpus == ():
        return ()
    todo = jobs_to_do(found.campaign, known_state(root), only)
    noticed: list[Mistake] = []
    for each in environments(found.campaign, str(root), gpus, os.environ):
        if each.gpus and each.words and todo.intersection(each.jobs):
            answer = _ask(each, root, "all", asking).answer
            noticed += judge(each, answer) if answer else ()
    return refuse_failures(root, locate(noticed, found.text))
