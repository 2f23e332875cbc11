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

from muster.app.campaign.campaign_handle import load_known_state
from muster.app.campaign.load_campaign import LoadedCampaign, find_unfinished_jobs, refuse_preflight_failures
from muster.app.campaign.preflight.python_environments import (
    PythonEnvironment,
    environment_as_json,
    find_environment_mistakes,
    find_python_environments,
)
from muster.engine.ports.machine import PythonAnswer
from muster.engine.ports.services import installed_services
from muster.files.campaign_ownership import was_started_here
from muster.model.campaign import Campaign
from muster.model.campaign_state import CellFilter
from muster.model.errors import Mistake
from muster.readers.git import find_trusted_program, is_within_own_folders, trusted_path
from muster.spec.read_yaml import locate_mistakes
from muster.text.phrases import join_phrases, phrase

OnAskingEnvironment = Callable[[PythonEnvironment], None]  # hears which environment is asked now: it may take a while
WhomToAsk = Literal["all", "own", "none"]
# variables that have a Python, or what starts it, load code of somebody's choice
_LOADER_VARIABLES = ("PYTHON", "LD_", "CONDA", "MAMBA", "XDG_", "GCONV_PATH", "PJRT_")
_PATH_VARIABLES = frozenset({"PATH", "HOME", "ENV", "BASH_ENV", "VIRTUAL_ENV", "TMPDIR"})
_NAMED_ENVIRONMENT_TOOLS = frozenset({"conda", "mamba", "micromamba"})  # `-n NAME`: an environment of the user's


@dataclass(frozen=True, slots=True)
class AskedEnvironment:
    environment: PythonEnvironment
    answer: PythonAnswer | None  # None: nobody was asked

    @property
    def left_out(self) -> bool:
        return self.answer is None and bool(self.environment.words)

    @property
    def record(self) -> dict[str, Any]:
        if self.left_out:
            note = phrase("campaign.environment_not_asked")
            return {"jobs": list(self.environment.jobs), "command": list(self.environment.words), "note": note}
        return environment_as_json(self.environment, self.answer)


def which_pythons_to_ask(root: Path, *, ask: bool) -> WhomToAsk:
    """`ask`: a person says so."""
    return "all" if ask else "own" if was_started_here(root / ".muster") else "none"


def ask_environments(
    campaign: Campaign, root: Path, gpus: Sequence[Mapping[str, Any]], which: WhomToAsk, asking: OnAskingEnvironment
) -> list[AskedEnvironment]:
    """Each environment once."""
    return [
        _ask_environment(each, root, which, asking)
        for each in find_python_environments(campaign, str(root), gpus, os.environ)
    ]


def _ask_environment(
    each: PythonEnvironment, root: Path, which: WhomToAsk, asking: OnAskingEnvironment
) -> AskedEnvironment:
    words, environ = each.words, dict(os.environ)
    if words and which == "own":
        words = trusted_command_words(each, str(root))
        environ["PATH"] = trusted_path(each.cwd)
    if not words or which == "none":
        return AskedEnvironment(each, None)
    asking(each)
    ask = installed_services().machine.ask_python
    return AskedEnvironment(each, ask(words, each.cwd, {**environ, **each.added}, modules=each.modules))


def trusted_command_words(each: PythonEnvironment, root: str) -> tuple[str, ...]:
    """What starts it, where that is a program of the user's which nothing of the campaign can change; else nothing."""
    if any(name in _PATH_VARIABLES or name.startswith(_LOADER_VARIABLES) for name in each.added):
        return ()
    first, *rest = each.words
    if rest and (PurePath(first).name not in _NAMED_ENVIRONMENT_TOOLS or any("/" in word for word in rest)):
        return ()
    found = first if first.startswith("/") else None if "/" in first else find_trusted_program(first, each.cwd)
    if found is None or any(_program_lies_in(folder, found) for folder in (root, each.cwd)):
        return ()
    return (found, *rest)


def _program_lies_in(folder: str, program: str) -> bool:
    """As it is named or as it is: a link in a virtual environment leads out of it, and loads what lies in it."""
    return is_within_own_folders(folder, program) or is_within_own_folders(folder, str(Path(program).parent))


def note_unasked_environments(asked: Sequence[AskedEnvironment]) -> Iterator[Mistake]:
    """In one line, that they were not asked and how to."""
    left_out = [each for each in asked if each.left_out]
    if left_out:
        names = join_phrases(", ", dict.fromkeys(each.environment.name for each in left_out[:4]))
        if len(left_out) > 4:
            names = phrase("list.and_more", shown=names, left=len(left_out) - 4)
        what = phrase("campaign.pythons_not_asked", names=names)
        yield Mistake(what, hint=phrase("campaign.check_ask_asks"), level="note")


def check_gpu_environments(
    root: Path, found: LoadedCampaign, only: CellFilter, asking: OnAskingEnvironment
) -> tuple[Mistake, ...]:
    """Before the first start. Warnings, or an error where a GPU that is asked for is not seen.

    Whatever takes no GPU is not waited for: it fails at once if its Python does not start.
    """
    gpus = [{"index": gpu.index, "busy": gpu.busy} for gpu in installed_services().machine.gpus()]
    if not gpus or found.campaign.slots.gpus == ():
        return ()
    todo = find_unfinished_jobs(found.campaign, load_known_state(root), only)
    noticed: list[Mistake] = []
    for each in find_python_environments(found.campaign, str(root), gpus, os.environ):
        if each.gpus and each.words and todo.intersection(each.jobs):
            answer = _ask_environment(each, root, "all", asking).answer
            noticed += find_environment_mistakes(each, answer) if answer else ()
    return refuse_preflight_failures(root, locate_mistakes(noticed, found.text))
