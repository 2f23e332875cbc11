"""Whose a campaign is. In one that somebody else may have written nothing is run, recorded or mended: it is only read.

A campaign is the caller's if its folder, its file and its state belong to the effective user, and not everybody may
write to file and state. Exceptions are the folders that this user names in `trusted`, in a file of the user's own.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from muster.domain.errors import UsageError

TRUSTED = "trusted"  # in the user's home of Muster: one absolute path a line, without links
NOT_YOURS = "not_yours"
CAMPAIGN_FILE, STATE, LOG = "campaign.yaml", ".muster", "decisions.jsonl"
LARGEST = 1 << 20  # bytes of `trusted`
_OTHERS, _ANYBODY_ELSE = stat.S_IWOTH, stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class Stranger:
    """What says that a campaign is not the caller's."""

    root: Path
    path: Path
    owner: int

    @property
    def whose(self) -> str:
        """What can be said of the campaign: it ..."""
        if self.owner == os.geteuid():
            return f"may have been written by anybody, as {self.path.name} is open to everybody"
        return f"belongs to {user_name(self.owner)} and not to you ({user_name(os.geteuid())})"

    @property
    def mend(self) -> str:
        """Empty: only trust helps."""
        command = f"chmod o-w {shlex.quote(str(self.path))}"
        return f"see what stands there, then `{command}`" if self.owner == os.geteuid() else ""

    @property
    def only_read(self) -> str:
        return f"{self.whose}: it is only read here" + (f"; {self.mend}" if self.mend else "")


def stranger(root: Path) -> Stranger | None:
    """None: it is the caller's own, or one that the caller trusts."""
    found = next(_not_ours(root), None)
    return None if found is None or is_trusted(root) else found


def _not_ours(root: Path) -> Iterator[Stranger]:
    me, state = os.geteuid(), root / STATE
    for path, content in ((root, False), (state, True), (root / CAMPAIGN_FILE, True), (state / LOG, True),
                          (state / "campaign.db", True)):  # fmt: skip
        for look in (os.lstat, os.stat):  # of a link both: itself, and what it leads to
            try:
                facts = look(path)
            except OSError:
                continue
            link = stat.S_ISLNK(facts.st_mode)
            if facts.st_uid != me or (content and not link and facts.st_mode & _OTHERS):
                yield Stranger(root, path, facts.st_uid)


def refuse_stranger(root: Path, below: Path | None = None) -> None:
    """`below`: where the command was given, if the campaign was found in a folder above."""
    if found := stranger(root):
        raise refusal(found, below)


def refusal(found: Stranger, below: Path | None = None) -> UsageError:
    upwards = f"; {below} lies in it, and nothing above it was looked at" if below and below != found.root else ""
    named = shlex.quote(str(found.root))
    mend = f"{found.mend}. " if found.mend else ""
    return UsageError(
        f"the campaign in {found.root} {found.whose}{upwards}; nothing was changed",
        where=str(found.path),
        hint=f"{mend}`muster -C {named} status` reads it and changes nothing. If you know what is in it and mean to "
        f"work in it: {trust_command(found.root)}",
        code=NOT_YOURS,
    )


def unreadable(found: Stranger) -> UsageError:
    return UsageError(
        f"the campaign in {found.root} {found.whose}, and you may not read it; nothing was changed",
        where=str(found.path),
        hint=f"ask {user_name(found.owner)} for a `muster pack` of it",
        code=NOT_YOURS,
    )


def trust_command(root: Path) -> str:
    home = trusted_file().parent
    line, path = shlex.quote(str(root.resolve())), shlex.quote(str(home / TRUSTED))
    mend = f" && chmod go-w {path}" if _is_unsafe(home / TRUSTED) else ""
    return f"`(umask 077; mkdir -p {shlex.quote(str(home))}; printf '%s\\n' {line} >> {path}){mend}`"


def is_trusted(root: Path) -> bool:
    """A folder that this user has named, as it is called without links; neither `*` nor what lies below one."""
    path = trusted_file()
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        facts = os.fstat(fd)
        mine = facts.st_uid == os.geteuid() and not facts.st_mode & _ANYBODY_ELSE and stat.S_ISREG(facts.st_mode)
        named = os.read(fd, LARGEST).splitlines() if mine else []
    finally:
        os.close(fd)
    return os.fsencode(root.resolve()) in {line.strip().rstrip(b"/") for line in named}


def trusted_file() -> Path:
    from muster.execute.slots import own_home  # only where something is not the caller's

    return own_home() / TRUSTED


def _is_unsafe(path: Path) -> bool:
    try:
        return bool(path.lstat().st_mode & _ANYBODY_ELSE)
    except OSError:
        return False


def user_name(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
