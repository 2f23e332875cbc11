"""Where a process that Muster did not start puts its results, and which processes write into a folder. For `look` and
`adopt`.

Trainers open and close their files, so a process with no open file may write there all the same; a dead run must not
live on in another one of the same trainer, so every doubt says no.
"""

# Paths are texts here, as in the rest of this room.

from __future__ import annotations

import json
import os
import re
import shlex
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from muster.engine.ports.clock import SystemClock
from muster.files.safe_open import read_file_start
from muster.hosts.local.find_process import (
    FolderWriterProcesses,
    OpenedFiles,
    commands_of_processes,
    files_opened_by,
    find_writers_in_folder,
    paths_in_command,
)
from muster.hosts.local.living_runs import is_own_process
from muster.hosts.local.other_users import find_other_users
from muster.hosts.local.process_tree import TICKS_PER_S, ProcessSnapshot, ProcessStat, written_by
from muster.model.foreign_run import RunProcess, SupervisedFolder
from muster.readers.discovery.folder_walk import walk_run_folder
from muster.readers.discovery.progress_files import CHECKPOINT_FOLDERS, CHUNK_FOLDERS, PART_FOLDER_NAMES
from muster.readers.discovery.run_arguments import is_config_of_other_run
from muster.readers.output_files import output_candidates
from muster.text.phrases import join_phrases, phrase

_OUTPUT_OPTIONS = frozenset(
    {
        "logdir",
        "outputdir",
        "outdir",
        "output",
        "out",
        "savedir",
        "savepath",
        "logpath",
        "ckptdir",
        "checkpointdir",
        "workdir",
        "rundir",
        "resultsdir",
        "resultdir",
        "expdir",
        "experimentdir",
        "tensorboardlog",
        "defaultrootdir",
        "dumpdir",
        "modeldir",
        "modelsavedir",
        "resultpath",
        "outputpath",
        "logsdir",
        "saveto",
        "logto",
    }
)
_PART_FOLDERS = PART_FOLDER_NAMES | CHUNK_FOLDERS | CHECKPOINT_FOLDERS
_OPTION_WORD = re.compile(r"-{0,2}([A-Za-z_][\w.-]*)(?:=(.*))?", re.DOTALL)
_TOO_HIGH = ("/", "/tmp", "/home", "/root", "/mnt", "/data", "/var/tmp")
ProcessCommand = tuple[tuple[str, ...], str | None]  # its words, and the folder it works in
OUTPUT_SLACK_S = 2.0  # file times are coarse


@dataclass(frozen=True, slots=True)
class ProcessOutput:
    folder: str = ""  # empty: none was found
    how: str = ""
    only_since: bool = False  # what lies there may be anybody's: files since the start count
    notes: tuple[str, ...] = ()
    made_since: bool = False  # the command names the folder above, and this one came since the start


def find_process_output(
    who: RunProcess, commands: Sequence[ProcessCommand], opened: OpenedFiles, since: float
) -> ProcessOutput:
    """`commands`: of its whole tree, for a script may start the training; `since`: when it began, wall time."""
    for command in commands:
        for folder in output_folders_in_command(*command):
            if os.path.isdir(folder):
                return find_run_folder_below(folder, opened, since, command[0])
    folders = list(dict.fromkeys(os.path.dirname(path) for path in opened.files))
    if folders:
        top = os.path.commonpath(folders)
        if top in _TOO_HIGH or (who.cwd and who.cwd.startswith(top.rstrip("/") + "/")):
            top = folders[0]
        top = _folder_of_whole_run(top)
        return ProcessOutput(top, phrase("hosts.output_open_for_writing"), only_since=top == who.cwd)
    if opened.outputs:
        return ProcessOutput(os.path.dirname(opened.outputs[0]), phrase("hosts.output_file_there"), only_since=True)
    if who.cwd and who.cwd not in _TOO_HIGH:
        return ProcessOutput(who.cwd, phrase("hosts.process_works_there"), only_since=True)
    return ProcessOutput()


def output_folders_in_command(words: Sequence[str], cwd: str | None) -> Iterator[str]:
    """Folders that a command names as its output."""
    for index, word in enumerate(words):
        match = _OPTION_WORD.fullmatch(word)
        if match is None or ("=" not in word and not word.startswith("-")):
            continue
        key, value = match.groups()
        plain = "rundir" if key == "hydra.run.dir" else re.sub(r"[^a-z]", "", key.split(".")[-1].lower())
        if value is None and index + 1 < len(words):
            value = words[index + 1]
        if plain in _OUTPUT_OPTIONS and value and (value.startswith("/") or cwd):
            yield os.path.realpath(os.path.join(cwd or "/", value))


def find_run_folder_below(folder: str, opened: OpenedFiles, since: float, words: Sequence[str] = ()) -> ProcessOutput:
    """A trainer may make a folder of its own below the one it is given. `words`: of its command."""
    inside = [path for path in opened.files if path.startswith(folder + "/")]
    direct = [
        each
        for each in walk_run_folder(folder, deepest=0).entries
        if each.is_plain and each.time >= since - OUTPUT_SLACK_S
    ]
    if any(os.path.dirname(path) == folder for path in inside) or (direct and not inside):
        return ProcessOutput(folder, phrase("hosts.command_names_folder"))
    if inside:
        first = os.path.relpath(inside[0], folder).split("/")[0]
        if first in _PART_FOLDERS:
            return ProcessOutput(folder, phrase("hosts.command_names_folder"))
        return ProcessOutput(os.path.join(folder, first), phrase("hosts.command_names_parent_files_open"))
    made = [each for each in output_candidates(f"{_escape_glob(folder)}/*", since) if os.path.isdir(each.path)]
    own = [
        each for each in made if each.first >= since - OUTPUT_SLACK_S and not is_config_of_other_run(words, each.path)
    ]
    own = [each for each in own if each.first >= since] or own  # another may have begun a moment before
    if not own or any(os.path.basename(each.path) in _PART_FOLDERS for each in made):
        return ProcessOutput(folder, phrase("hosts.command_names_folder"), only_since=bool(made) and not own)
    nearest = min(own, key=lambda each: each.first)
    many = phrase("hosts.several_new_folders", count=len(own), folder=folder)
    notes = (many,) if len(own) > 1 else ()
    return ProcessOutput(nearest.path, phrase("hosts.command_names_parent_made_since"), notes=notes, made_since=True)


def _folder_of_whole_run(folder: str) -> str:
    """Of `runs/x/wandb/run-1` that is `runs/x`: W&B's own folder is a part of a run, as checkpoints/ is."""
    parts = folder.split("/")
    at = next((at for at, part in enumerate(parts) if part == "wandb" and at > 1), None)
    return "/".join(parts[:at]) if at else folder


def _escape_glob(path: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", path)


# -- folders of campaigns


def find_supervising_campaign(folder: str) -> SupervisedFolder | None:
    """Whether the folder belongs to a campaign: it, or one above it, is an attempt's, or the campaign's own."""
    place = folder
    for _ in range(12):
        facts = _read_attempt_json(os.path.join(place, "attempt.json"))
        state, cell, n = facts.get("state"), facts.get("cell"), facts.get("n")
        if isinstance(cell, str) and isinstance(state, str):
            return SupervisedFolder(os.path.dirname(state.rstrip("/")), cell, n if isinstance(n, int) else None)
        if os.path.isdir(os.path.join(place, ".muster")):
            return SupervisedFolder(place) if place == folder else None
        above = os.path.dirname(place)
        if above == place:
            return None
        place = above
    return None


def _read_attempt_json(path: str) -> dict[str, object]:
    try:
        found = json.loads(read_file_start(path, 1 << 20))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def process_of_attempt_folder(folder: str) -> tuple[int, int] | None:
    """(pid, start ticks) of the run whose attempt folder this is."""
    facts = _read_attempt_json(os.path.join(folder, "identity.json"))
    pid, ticks = facts.get("pid"), facts.get("ticks")
    return (pid, ticks) if isinstance(pid, int) and isinstance(ticks, int) else None


ABOVE = "names the folder above"


def writes_into_folder(who: RunProcess, folder: str, snapshot: ProcessSnapshot, began: float) -> bool:
    """It may be its own folder, and it wrote so much itself that it is: names and places show a viewer or a shell, too.

    `began`: wall time.
    """
    tree = snapshot.tree(who.pid, who.ticks, -1)
    return _may_be_its(who, folder, tree, began, alone=True) and _wrote_enough(tree, folder, began)


def may_write_there(who: RunProcess, folder: str, snapshot: ProcessSnapshot, began: float) -> bool:
    """Something there was written since it began, and nothing leads it elsewhere: who must not run twice waits for it.

    Who only names the folder above has to have written enough: a viewer of all runs would keep every folder.
    """
    tree = snapshot.tree(who.pid, who.ticks, -1)
    if not _may_be_its(who, folder, tree, began, alone=False):
        return False
    return who.sure != ABOVE or _wrote_enough(tree, folder, began)


def _may_be_its(who: RunProcess, folder: str, tree: Sequence[ProcessStat], began: float, *, alone: bool) -> bool:
    """`alone`: of several folders that came since it began none is told to be its own."""
    pids = [proc.pid for proc in tree]
    commands = commands_of_processes(pids)
    if not was_written_since(folder, began) or any(is_config_of_other_run(words, folder) for words, _ in commands):
        return False
    if who.sure == ABOVE:
        output = find_process_output(who, commands, files_opened_by(pids), began)
        return output.folder == folder and output.made_since and not (alone and output.notes)
    if who.sure == "names it" and not any(folder in paths_in_command(words, cwd) for words, cwd in commands):
        return False  # only a file in it: a checkpoint that is evaluated
    return not _has_other_output(commands, folder)


def is_process_of_another_run(who: RunProcess, folder: str, snapshot: ProcessSnapshot, began: float) -> bool:
    """It is known what it is: a run with a folder of its own beside this one, or of another seed or method."""
    tree = [proc.pid for proc in snapshot.tree(who.pid, who.ticks, -1)]
    commands = commands_of_processes(tree)
    if any(is_config_of_other_run(words, folder) for words, _ in commands):
        return True
    output = find_process_output(who, commands, files_opened_by(tree), began).folder
    return output != folder and os.path.dirname(output) == os.path.dirname(folder)


def was_written_since(folder: str, began: float) -> bool:
    """No slack for coarse file times: what was written a moment before it began is not its own."""
    began += 1 / TICKS_PER_S  # which the kernel rounds down
    return any(each.is_plain and each.time > began for each in walk_run_folder(folder).entries)


def _wrote_enough(tree: Sequence[ProcessStat], folder: str, began: float) -> bool:
    """At least half of what came into the folder since it began: the rest may be somebody else's."""
    came = sum(each.size for each in walk_run_folder(folder).entries if each.is_plain and each.time > began)
    wrote = written_by(tree)
    if wrote is None or (wrote.to_disk == 0 and _is_counted(folder)):
        return False  # at most it talked: to a terminal, a pipe, a browser
    return 2 * wrote.passed >= came


def _is_counted(folder: str) -> bool:
    """Whether the kernel counts what is written there as written to a disk: always on a block device."""
    try:
        return os.major(os.stat(folder).st_dev) != 0
    except OSError:
        return False


def _has_other_output(commands: Sequence[ProcessCommand], folder: str) -> bool:
    """It has outputs of its own, and this folder is none of them."""
    named = [path for words, cwd in commands for path in output_folders_in_command(words, cwd) if os.path.isdir(path)]
    return bool(named) and not any(_paths_overlap(path, folder) for path in named)


def _paths_overlap(path: str, folder: str) -> bool:
    """One lies in the other."""
    one, other = os.path.join(path, ""), os.path.join(folder, "")
    return one.startswith(other) or other.startswith(one)


JUST_NOW_S = 60.0


class FolderWriterSearch:
    """Processes are listed once."""

    def __init__(self) -> None:
        self.snapshot, self.clock = ProcessSnapshot.take(), SystemClock()

    def began(self, who: RunProcess) -> float:
        return self.clock.wall() - (self.clock.boot() - who.began)

    def find(self, folder: str) -> FolderWriterProcesses:
        """`folder` without links in it."""
        return find_writers_in_folder(
            folder, self.snapshot, lambda who: writes_into_folder(who, folder, self.snapshot, self.began(who))
        )

    def doubtful(self, folder: str, found: FolderWriterProcesses) -> RunProcess | None:
        """One that may write there, by what came since it began; or where something was written a moment ago."""
        for who in found.doubtful:
            if self.may_write(who, folder):
                return who
        if not found.doubtful or _seconds_since_change(folder) >= JUST_NOW_S:
            return None
        near = (
            who for who in found.doubtful if not is_process_of_another_run(who, folder, self.snapshot, self.began(who))
        )
        return next(near, None)

    def may_write(self, who: RunProcess, folder: str) -> bool:
        return may_write_there(who, folder, self.snapshot, self.began(who))


SURE_RELATIONS = ("has it open", "names it", "names the folder above")  # who only works there may be an editor


def find_strange_writers(folders: Collection[str], state: str, known: Collection[str]) -> dict[str, int]:
    """Folder -> the pid of one that writes there and is not of the campaign with this .muster."""
    search = FolderWriterSearch()
    found: dict[str, int] = {}
    for folder in folders:
        looked = search.find(folder)
        others: list[RunProcess] = [looked.main, *looked.others] if looked.main else []
        others += [who for who in looked.doubtful if search.may_write(who, folder)]
        sure = (who.pid for who in others if who.sure in SURE_RELATIONS)
        strange = next((pid for pid in sure if not is_own_process(pid, state, known)), None)
        if strange is not None:
            found[folder] = strange
    return found


def make_writer_check() -> Callable[[str], str]:
    """Asks why the run of a folder is not over, in words; empty: nobody writes there."""
    writers = FolderWriterSearch()

    def lives(path: str) -> str:
        folder = os.path.realpath(path)
        found = writers.find(folder)
        if found.main is not None:
            return phrase("hosts.run_still_lives", reasons=join_phrases("; ", found.main.because))
        if near := writers.doubtful(folder, found):
            because = join_phrases("; ", near.because)
            when = (
                phrase("hosts.changed_moment_ago")
                if _seconds_since_change(folder) < JUST_NOW_S
                else phrase("hosts.changed_since_process_began")
            )
            look = f"`muster look {shlex.quote(path)}`"
            return phrase("hosts.run_may_live", changed=when, reasons=because, command=look)
        return ""

    return lives


def may_miss_other_users() -> bool:
    """Whether another person's processes are there, or may be, into which we may not look."""
    try:
        return os.geteuid() != 0 and bool(find_other_users())
    except OSError:
        return True


def _seconds_since_change(folder: str) -> float:
    newest = max((each.time for each in walk_run_folder(folder).entries if each.is_plain), default=0.0)
    return time.time() - newest
