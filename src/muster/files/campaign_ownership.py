"""Whose a campaign is, where it is found, and whether this user's own `up` started it here. What is somebody else's
is only read; what was not started here never goes on by itself.

A campaign is the caller's if its folder, its file and its state belong to the effective user, and not everybody may
write to file and state. Exceptions are the folders that this user names in `trusted`, in a file of the user's own. A
campaign is found as git finds its repository: there or above; one of somebody else ends the search.

What proves that it was started here: the register, by the folder and a key that both have. Or, where the register was
deleted under a living campaign, the key as a controller handed it on to guard and shims; or a controller or guard
that lives and holds a lock.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from muster.files.campaign_register import (
    REGISTER_FOLDER,
    find_register_entry,
    is_keyless_entry,
    is_registered_state,
    is_same,
    read_register_key,
    register_campaign,
)
from muster.files.muster_home import make_slots_home, private_home
from muster.files.own_processes import CONTROLLER_MODULES
from muster.files.process_identity import process_has_open
from muster.files.safe_open import read_plain_file
from muster.files.state_folder import close_state_permissions, refuse_links_in_state
from muster.model.calendar import format_iso_time
from muster.model.errors import UsageError
from muster.text.phrases import join_phrases, phrase

TRUSTED_FILE = "trusted"  # in the user's home of Muster: one absolute path a line, without links
NOT_YOURS_CODE = "not_yours"
CAMPAIGN_FILE, STATE, LOG = "campaign.yaml", ".muster", "decisions.jsonl"
LARGEST_TRUSTED_FILE = 1 << 20  # bytes of `trusted`
_OTHERS, _ANYBODY_ELSE = stat.S_IWOTH, stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class ForeignOwner:
    """What says that a campaign is not the caller's."""

    root: Path
    path: Path
    owner: int

    @property
    def whose(self) -> str:
        """What can be said of the campaign: it ..."""
        if self.owner == os.geteuid():
            return phrase("files.open_to_everybody", name=self.path.name)
        return phrase("files.belongs_to_other", owner=name_of_uid(self.owner), you=name_of_uid(os.geteuid()))

    @property
    def fix(self) -> str:
        """Empty: only trust helps."""
        command = f"chmod o-w {shlex.quote(str(self.path))}"
        return phrase("files.close_to_others", command=command) if self.owner == os.geteuid() else ""

    @property
    def only_read(self) -> str:
        return join_phrases("; ", filter(None, [phrase("files.only_read_here", whose=self.whose), self.fix]))


def find_foreign_owner(root: Path) -> ForeignOwner | None:
    """None: it is the caller's own, or one that the caller trusts."""
    found = next(_find_foreign_paths(root), None)
    return None if found is None or is_trusted_folder(root) else found


def _find_foreign_paths(root: Path) -> Iterator[ForeignOwner]:
    me, state = os.geteuid(), root / STATE
    for path, content in (
        (root, False),
        (state, True),
        (root / CAMPAIGN_FILE, True),
        (state / LOG, True),
        (state / "campaign.db", True),
    ):
        for look in (os.lstat, os.stat):  # of a link both: itself, and what it leads to
            try:
                facts = look(path)
            except OSError:
                continue
            link = stat.S_ISLNK(facts.st_mode)
            if facts.st_uid != me or (content and not link and facts.st_mode & _OTHERS):
                yield ForeignOwner(root, path, facts.st_uid)


def refuse_foreign_campaign(root: Path, below: Path | None = None) -> None:
    """`below`: where the command was given, if the campaign was found in a folder above."""
    if found := find_foreign_owner(root):
        raise foreign_campaign_error(found, below)


def foreign_campaign_error(found: ForeignOwner, below: Path | None = None) -> UsageError:
    upwards = phrase("files.folder_lies_in_foreign", below=below) if below and below != found.root else ""
    named = shlex.quote(str(found.root))
    fix = join_phrases("", (found.fix, ". ")) if found.fix else ""
    return UsageError(
        phrase("files.campaign_is_foreign", root=found.root, whose=found.whose, upwards=upwards),
        where=str(found.path),
        hint=phrase("files.status_only_reads", fix=fix, folder=named, command=format_trust_command(found.root)),
        code=NOT_YOURS_CODE,
    )


def unreadable_campaign_error(found: ForeignOwner) -> UsageError:
    return UsageError(
        phrase("files.campaign_unreadable", root=found.root, whose=found.whose),
        where=str(found.path),
        hint=phrase("files.ask_for_pack", owner=name_of_uid(found.owner)),
        code=NOT_YOURS_CODE,
    )


def format_trust_command(root: Path) -> str:
    home = trusted_file_path().parent
    line, path = shlex.quote(str(root.resolve())), shlex.quote(str(home / TRUSTED_FILE))
    fix = f" && chmod go-w {path}" if _is_writable_by_others(home / TRUSTED_FILE) else ""
    return f"`(umask 077; mkdir -p {shlex.quote(str(home))}; printf '%s\\n' {line} >> {path}){fix}`"


def is_trusted_folder(root: Path) -> bool:
    """A folder that this user has named, as it is called without links; neither `*` nor what lies below one."""
    path = trusted_file_path()
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        facts = os.fstat(fd)
        mine = facts.st_uid == os.geteuid() and not facts.st_mode & _ANYBODY_ELSE and stat.S_ISREG(facts.st_mode)
        named = os.read(fd, LARGEST_TRUSTED_FILE).splitlines() if mine else []
    finally:
        os.close(fd)
    return os.fsencode(root.resolve()) in {line.strip().rstrip(b"/") for line in named}


def trusted_file_path() -> Path:
    from muster.files.muster_home import private_home  # only where something is not the caller's

    return private_home() / TRUSTED_FILE


def _is_writable_by_others(path: Path) -> bool:
    try:
        return bool(path.lstat().st_mode & _ANYBODY_ELSE)
    except OSError:
        return False


def current_user_name() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def name_of_uid(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def find_campaign_root(start: Path) -> Path:
    """Of a campaign to act in: one of somebody else is refused."""
    root = find_readable_root(start)
    refuse_foreign_campaign(root)
    return root


def find_readable_root(start: Path) -> Path:
    """One of somebody else is found where it is named itself, and nowhere above: nobody has asked for it there."""
    start = start.absolute()
    if start.is_file():
        import shlex

        hint = phrase("files.name_its_folder", parent=shlex.quote(str(start.parent)))
        raise UsageError(phrase("files.file_is_no_folder"), where=str(start), hint=hint)
    if not start.is_dir():
        raise UsageError(phrase("files.no_such_folder", folder=start), where=str(start))
    for folder in (start, *start.parents):
        if not (os.path.lexists(folder / CAMPAIGN_FILE) or os.path.lexists(folder / STATE)):
            continue
        known = _is_campaign_folder(folder)
        if (folder != start or not known) and (known or _belongs_to_another(folder / STATE)):
            _refuse_unreadable_campaign(folder)  # to who may not read it nobody says how it is read
            refuse_foreign_campaign(folder, start)
        if known:
            _refuse_unreadable_campaign(folder)
            refuse_links_in_state(folder / STATE)
            close_state_permissions(folder / STATE)
            return folder  # a campaign whose file was deleted can still be asked and stopped
    raise UsageError(
        phrase("files.no_campaign_file_above", file=CAMPAIGN_FILE),
        where=str(start),
        hint=phrase("files.write_with_init"),
    )


def language_of_campaign_file(start: Path) -> str | None:
    """What the campaign there or above declares as `language:`; None: nothing, or nothing that can be read."""
    start = start.absolute()
    file = next((found for each in (start, *start.parents) if (found := each / CAMPAIGN_FILE).is_file()), None)
    if file is None:
        return None
    try:
        text = read_plain_file(str(file))
    except OSError:
        return None
    declared = re.search(rb"^language:[ \t]*['\"]?([a-z]+)", text, re.MULTILINE)
    return declared[1].decode() if declared else None


def _is_campaign_folder(folder: Path) -> bool:
    return _is_plain_file(folder / CAMPAIGN_FILE) or _is_plain_file(folder / STATE / LOG)


def _is_plain_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # what can't be looked at is somebody else's
        return False


def _belongs_to_another(path: Path) -> bool:
    try:
        return path.lstat().st_uid != os.geteuid()
    except OSError:
        return False


def _refuse_unreadable_campaign(root: Path) -> None:
    for path in (root / STATE, root / STATE / LOG, root / CAMPAIGN_FILE):
        reachable = os.access(path, os.R_OK | (os.X_OK if path.name == STATE else 0), effective_ids=True)
        if not reachable and os.path.lexists(path) and (found := find_foreign_owner(root)):
            raise unreadable_campaign_error(found)


HANDED_ON_VARIABLE = "MUSTER_STARTED_HERE"  # in the environment of controller, guard and shims: "<key>:<inode>"
LOCK_PROGRAMS = {"controller.lock": CONTROLLER_MODULES, "guard.lock": ("guard.py",)}  # and who holds them
_LONGEST_LOCK = 4096


def was_started_here(state: Path, *, or_earlier: bool = False) -> bool:
    """`or_earlier`: or by that of an earlier version, which knew no keys. Enough for its guard and shims, and for a
    person who ends something; not for who only looks.
    """
    try:
        return _has_inherited_key(state) or _has_living_controller(state) or _is_in_register(state, or_earlier)
    except (OSError, UsageError):  # UsageError: there is no home
        return False


def moved_since(state: Path) -> bool:
    """Started here by this user's `up`, and moved since: nothing goes on by itself before the next one."""
    return not was_started_here(state, or_earlier=True) and _is_ours_elsewhere(state)


def begun_by_us(state: Path) -> bool:
    """Wherever it lies now, and by whatever version: what is in it is our own word, and a person may end it."""
    return was_started_here(state, or_earlier=True) or _is_ours_elsewhere(state)


def _is_ours_elsewhere(state: Path) -> bool:
    from muster.files.muster_home import default_home

    try:
        entries = (find_register_entry(home, state) for home in (_register_folder().parent, default_home()))
        return any(entry is not None and is_same(entry, state) for entry in entries)
    except (OSError, UsageError):
        return False


def key_for_children(state: Path) -> dict[str, str]:
    """For the environment of whoever may have to start a controller again."""
    key = read_register_key(state)
    return {HANDED_ON_VARIABLE: f"{key}:{state.stat().st_ino}"} if key else {}


def refuse_unless_started_here(state: Path, what: str) -> None:
    """Who is named in a state that came from elsewhere may be any process of this user."""
    if not begun_by_us(state):
        raise UsageError(
            phrase("files.refused_nothing_done", reason=describe_not_started_here(), what=what),
            where=str(state),
            hint=phrase(NOT_STARTED_HINT),
            code="not_started",
        )


def refuse_to_revive(state: Path, what: str) -> None:
    """Where there is no controller, and the one that would carry this out would go on with everything else, too."""
    if moved_since(state):
        hint = phrase("files.up_or_down_runs")
        raise UsageError(
            phrase("files.refused_nothing_done", reason=describe_moved_here(), what=what),
            where=str(state),
            hint=hint,
            code="not_started",
        )


NOT_STARTED_HINT = "files.take_over_if_known"


def describe_moved_here() -> str:
    return phrase("files.moved_here")


def describe_not_started_here() -> str:
    return phrase("files.not_started_here", folder=_register_folder())


def _register_folder() -> Path:
    from muster.files.muster_home import private_home

    return private_home() / REGISTER_FOLDER


def _has_inherited_key(state: Path) -> bool:
    told = os.environ.get(HANDED_ON_VARIABLE)
    return bool(told) and key_for_children(state).get(HANDED_ON_VARIABLE) == told


def _is_in_register(state: Path, or_earlier: bool) -> bool:
    from muster.files.muster_home import default_home

    entry = find_register_entry(_register_folder().parent, state)
    if entry and (is_registered_state(entry, state) or (or_earlier and is_keyless_entry(entry, state))):
        return True
    # begun before MUSTER_HOME was set: good enough to end something, but what is started would take slots elsewhere
    entry = find_register_entry(default_home(), state) if or_earlier else None
    return entry is not None and is_registered_state(entry, state)


def _has_living_controller(state: Path) -> bool:
    return any(_is_lock_held_by(state / name, programs) for name, programs in LOCK_PROGRAMS.items())


def _is_lock_held_by(lock: Path, programs: tuple[str, ...]) -> bool:
    """By a process of this user that is such a program and has this very file open."""
    try:
        facts = lock.lstat()
        if not stat.S_ISREG(facts.st_mode) or facts.st_nlink != 1:
            return False
        pid = _read_lock_pid(lock)
        if pid == os.getppid() and lock.name == "guard.lock":
            return False  # who was started by a guard can't be its proof: anybody may have started that one
        folder = Path("/proc", str(pid))
        if folder.stat().st_uid != os.geteuid():
            return False
        command = os.fsdecode((folder / "cmdline").read_bytes())
        if not any(program in command for program in programs):
            return False
    except OSError:
        return False
    return process_has_open(pid, lock)


def _read_lock_pid(lock: Path) -> int:
    """A controller writes JSON, a guard two numbers; 0: nothing is told."""
    text = lock.read_bytes()[:_LONGEST_LOCK].decode("ascii", "replace")
    told = text.partition('"pid": ')[2].partition(",")[0] or text.partition(" ")[0]
    return int(told) if told.isascii() and told.isdigit() else 0


def enter_register(state: Path, name: str, wall: float, *, moving: bool = False) -> None:
    """At `up`, which is `moving`, and whenever a controller starts.

    Where the home can't be written no slot can be leased either.
    """
    with contextlib.suppress(OSError):
        make_slots_home()
        register_campaign(
            private_home(), state, name, format_iso_time(wall), proven=was_started_here(state), moving=moving
        )
