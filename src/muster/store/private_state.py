"""`.muster` is this user's alone: a folder of its own, in it no link, and nobody else may enter it."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from muster.domain.errors import UsageError
from muster.ports.write_files import PRIVATE_FOLDER

BELL = "bell"  # the one pipe, which nobody reads by waiting


def refuse_links(state: Path) -> None:
    """Muster makes none there. Through one that came with a folder it would write where somebody else wants it to.

    Nor does it make pipes and the like, which every reader would wait for.
    """
    if state.is_symlink():
        raise _refused("this .muster is a link", state)
    with contextlib.suppress(OSError), os.scandir(state) as found:
        for each in found:
            if each.is_symlink():
                raise _refused(f"{each.name} in .muster is a link", Path(each.path))
            if not (each.is_file(follow_symlinks=False) or each.is_dir(follow_symlinks=False) or each.name == BELL):
                raise _odd(each.name, Path(each.path))


def _odd(name: str, path: Path) -> UsageError:
    return UsageError(
        f"{name} in .muster is neither a file nor a folder: Muster would wait for it; nothing was changed",
        where=str(path),
        hint="Muster made no such thing there: see where this folder comes from, or move it away",
        code="odd_state",
    )


def _refused(what: str, path: Path) -> UsageError:
    try:
        target = os.readlink(path)  # noqa: PTH115 - bytes that are no text survive
    except OSError:
        target = ""
    return UsageError(
        f"{what}{f' to {target!a}' if target else ''}: Muster would write there; nothing was changed",
        where=str(path),
        hint="if the link is yours, move what it leads to into its place. To have large outputs on another disk, "
        "let `output:` point there, or keep the whole campaign folder there",
        code="linked_state",
    )


def mend_modes(state: Path) -> None:
    """Nobody else may enter it, whatever lies in it: one that an older Muster made is closed by whom it belongs to.

    Not one that everybody may write to: who knows who did. `wiring/owner.py` refuses it.
    """
    with contextlib.suppress(OSError):
        facts = state.lstat()
        open_to = facts.st_mode & 0o077
        if stat.S_ISDIR(facts.st_mode) and open_to and not open_to & stat.S_IWOTH and facts.st_uid == os.geteuid():
            state.chmod(PRIVATE_FOLDER)
