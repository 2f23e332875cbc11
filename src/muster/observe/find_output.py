"""Where a process puts its results: a folder that its command names, that of the files it has open, or its own."""

# Paths are texts here, as in the rest of this room.
# ruff: noqa: PTH112, PTH118, PTH119, PTH120

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from muster.domain.look_facts import Supervised, Who
from muster.observe import outputs
from muster.observe.find_process import Opened
from muster.observe.find_target import other_run
from muster.observe.find_walk import walk
from muster.observe.finding import CHECKPOINT_FOLDERS, CHUNK_FOLDERS, PARTS
from muster.ports.regular_files import read_start

_FLAGS = frozenset({
    "logdir", "outputdir", "outdir", "output", "out", "savedir", "savepath", "logpath", "ckptdir", "checkpointdir",
    "workdir", "rundir", "resultsdir", "resultdir", "expdir", "experimentdir", "tensorboardlog", "defaultrootdir",
    "dumpdir", "modeldir", "modelsavedir", "resultpath", "outputpath", "logsdir", "saveto", "logto",
})  # fmt: skip
_PARTS = PARTS | CHUNK_FOLDERS | CHECKPOINT_FOLDERS
_WORD = re.compile(r"-{0,2}([A-Za-z_][\w.-]*)(?:=(.*))?", re.DOTALL)
_TOO_HIGH = ("/", "/tmp", "/home", "/root", "/mnt", "/data", "/var/tmp")
Command = tuple[tuple[str, ...], str | None]  # its words, and the folder it works in
SLACK_S = 2.0  # file times are coarse
MADE_SINCE = "its command names the folder above, and it was made since the start"


@dataclass(frozen=True, slots=True)
class Output:
    folder: str = ""  # empty: none was found
    how: str = ""
    only_since: bool = False  # what lies there may be anybody's: files since the start count
    notes: tuple[str, ...] = ()


def output_of(who: Who, commands: Sequence[Command], opened: Opened, since: float) -> Output:
    """`commands`: of its whole tree, for a script may start the training; `since`: when it began, wall time."""
    for command in commands:
        for folder in named_folders(*command):
            if os.path.isdir(folder):
                return below(folder, opened, since, command[0])
    folders = list(dict.fromkeys(os.path.dirname(path) for path in opened.files))
    if folders:
        top = os.path.commonpath(folders)
        if top in _TOO_HIGH or (who.cwd and who.cwd.startswith(top.rstrip("/") + "/")):
            top = folders[0]
        top = _whole_run(top)
        return Output(top, "it has files open for writing there", only_since=top == who.cwd)
    if opened.outputs:
        return Output(os.path.dirname(opened.outputs[0]), "its output goes to a file there", only_since=True)
    if who.cwd and who.cwd not in _TOO_HIGH:
        return Output(who.cwd, "it works there", only_since=True)
    return Output()


def named_folders(words: Sequence[str], cwd: str | None) -> Iterator[str]:
    """Folders that a command names as its output."""
    for index, word in enumerate(words):
        match = _WORD.fullmatch(word)
        if match is None or ("=" not in word and not word.startswith("-")):
            continue
        key, value = match.groups()
        plain = "rundir" if key == "hydra.run.dir" else re.sub(r"[^a-z]", "", key.split(".")[-1].lower())
        if value is None and index + 1 < len(words):
            value = words[index + 1]
        if plain in _FLAGS and value and (value.startswith("/") or cwd):
            yield os.path.realpath(os.path.join(cwd or "/", value))


def below(folder: str, opened: Opened, since: float, words: Sequence[str] = ()) -> Output:
    """A trainer may make a folder of its own below the one it is given. `words`: of its command."""
    inside = [path for path in opened.files if path.startswith(folder + "/")]
    direct = [each for each in walk(folder, deepest=0).entries if each.is_plain and each.time >= since - SLACK_S]
    if any(os.path.dirname(path) == folder for path in inside) or (direct and not inside):
        return Output(folder, "its command names it")
    if inside:
        first = os.path.relpath(inside[0], folder).split("/")[0]
        if first in _PARTS:
            return Output(folder, "its command names it")
        return Output(os.path.join(folder, first), "its command names the folder above, and it has files open here")
    made = [each for each in outputs.candidates(f"{_escaped(folder)}/*", since) if os.path.isdir(each.path)]
    own = [each for each in made if each.first >= since - SLACK_S and not other_run(words, each.path)]
    own = [each for each in own if each.first >= since] or own  # another may have begun a moment before
    if not own or any(os.path.basename(each.path) in _PARTS for each in made):
        return Output(folder, "its command names it", only_since=bool(made) and not own)
    nearest = min(own, key=lambda each: each.first)
    many = f"{len(own)} folders were made in {folder} since it started; give its folder too, to be sure"
    notes = (many,) if len(own) > 1 else ()
    return Output(nearest.path, MADE_SINCE, notes=notes)


def _whole_run(folder: str) -> str:
    """Of `runs/x/wandb/run-1` that is `runs/x`: W&B's own folder is a part of a run, as checkpoints/ is."""
    parts = folder.split("/")
    at = next((at for at, part in enumerate(parts) if part == "wandb" and at > 1), None)
    return "/".join(parts[:at]) if at else folder


def _escaped(path: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", path)


# -- folders of campaigns


def supervised(folder: str) -> Supervised | None:
    """Whether the folder belongs to a campaign: it, or one above it, is an attempt's, or the campaign's own."""
    place = folder
    for _ in range(12):
        facts = _json(os.path.join(place, "attempt.json"))
        state, cell, n = facts.get("state"), facts.get("cell"), facts.get("n")
        if isinstance(cell, str) and isinstance(state, str):
            return Supervised(os.path.dirname(state.rstrip("/")), cell, n if isinstance(n, int) else None)
        if os.path.isdir(os.path.join(place, ".muster")):
            return Supervised(place) if place == folder else None
        above = os.path.dirname(place)
        if above == place:
            return None
        place = above
    return None


def _json(path: str) -> dict[str, object]:
    try:
        found = json.loads(read_start(path, 1 << 20))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def own_process(folder: str) -> tuple[int, int] | None:
    """(pid, start ticks) of the run whose attempt folder this is."""
    facts = _json(os.path.join(folder, "identity.json"))
    pid, ticks = facts.get("pid"), facts.get("ticks")
    return (pid, ticks) if isinstance(pid, int) and isinstance(ticks, int) else None
