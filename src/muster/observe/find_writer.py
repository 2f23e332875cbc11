"""Whether a process that has no file of a folder open writes there all the same: trainers open and close their files.

A dead run must not live on in another of the same trainer, so every doubt says no.
"""

# Paths are texts here, as in the rest of this room.
# ruff: noqa: PTH118, PTH120

from __future__ import annotations

import os
from collections.abc import Sequence

from muster.domain.look_facts import Who
from muster.observe.find_output import MADE_SINCE, Command, named_folders, output_of
from muster.observe.find_process import commands_of, opened_by, paths_in
from muster.observe.find_target import other_run
from muster.observe.find_walk import walk
from muster.observe.probes.tree import TICKS_PER_S, Proc, Snapshot, written_by

ABOVE = "names the folder above"


def writes_there(who: Who, folder: str, snapshot: Snapshot, began: float) -> bool:
    """It may be its own folder, and it wrote so much itself that it is: names and places show a viewer or a shell, too.

    `began`: wall time.
    """
    tree = snapshot.tree(who.pid, who.ticks, -1)
    return _may_be_its(who, folder, tree, began, alone=True) and _wrote_enough(tree, folder, began)


def may_write_there(who: Who, folder: str, snapshot: Snapshot, began: float) -> bool:
    """Something there was written since it began, and nothing leads it elsewhere: who must not run twice waits for it.

    Who only names the folder above has to have written enough: a viewer of all runs would keep every folder.
    """
    tree = snapshot.tree(who.pid, who.ticks, -1)
    if not _may_be_its(who, folder, tree, began, alone=False):
        return False
    return who.sure != ABOVE or _wrote_enough(tree, folder, began)


def _may_be_its(who: Who, folder: str, tree: Sequence[Proc], began: float, *, alone: bool) -> bool:
    """`alone`: of several folders that came since it began none is told to be its own."""
    pids = [proc.pid for proc in tree]
    commands = commands_of(pids)
    if not written_since(folder, began) or any(other_run(words, folder) for words, _ in commands):
        return False
    if who.sure == ABOVE:
        output = output_of(who, commands, opened_by(pids), began)
        return output.folder == folder and output.how == MADE_SINCE and not (alone and output.notes)
    if who.sure == "names it" and not any(folder in paths_in(words, cwd) for words, cwd in commands):
        return False  # only a file in it: a checkpoint that is evaluated
    return not _led_elsewhere(commands, folder)


def is_another_run(who: Who, folder: str, snapshot: Snapshot, began: float) -> bool:
    """It is known what it is: a run with a folder of its own beside this one, or of another seed or method."""
    tree = [proc.pid for proc in snapshot.tree(who.pid, who.ticks, -1)]
    commands = commands_of(tree)
    if any(other_run(words, folder) for words, _ in commands):
        return True
    output = output_of(who, commands, opened_by(tree), began).folder
    return output != folder and os.path.dirname(output) == os.path.dirname(folder)


def written_since(folder: str, began: float) -> bool:
    """No slack for coarse file times: what was written a moment before it began is not its own."""
    began += 1 / TICKS_PER_S  # which the kernel rounds down
    return any(each.is_plain and each.time > began for each in walk(folder).entries)


def _wrote_enough(tree: Sequence[Proc], folder: str, began: float) -> bool:
    """At least half of what came into the folder since it began: the rest may be somebody else's."""
    came = sum(each.size for each in walk(folder).entries if each.is_plain and each.time > began)
    wrote = written_by(tree)
    if wrote is None or (wrote.to_disk == 0 and _is_counted(folder)):
        return False  # at most it talked: to a terminal, a pipe, a browser
    return 2 * wrote.passed >= came


def _is_counted(folder: str) -> bool:
    """Whether the kernel counts what is written there as written to a disk: always on a block device."""
    try:
        return os.major(os.stat(folder).st_dev) != 0  # noqa: PTH116
    except OSError:
        return False


def _led_elsewhere(commands: Sequence[Command], folder: str) -> bool:
    """It has outputs of its own, and this folder is none of them."""
    named = [path for words, cwd in commands for path in named_folders(words, cwd) if os.path.isdir(path)]  # noqa: PTH112
    return bool(named) and not any(_touch(path, folder) for path in named)


def _touch(path: str, folder: str) -> bool:
    """One lies in the other."""
    one, other = os.path.join(path, ""), os.path.join(folder, "")
    return one.startswith(other) or other.startswith(one)
