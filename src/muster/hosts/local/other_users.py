"""Other people on this machine: their processes (not the system's), and whether another user runs Muster without
sharing its slots.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from muster.engine.ports.machine import OtherUser
from muster.files.campaign_ownership import name_of_uid
from muster.files.own_processes import is_own_program
from muster.files.process_identity import read_process
from muster.hosts.local.find_process import read_argv, read_comm
from muster.model.errors import Mistake
from muster.text.phrases import phrase
from muster.text.secret_masking import mask_secrets_in_text
from muster.text.terminal_text import replace_unprintable

NOBODY = 65534
FIRST_PERSON = 1000  # unless /etc/login.defs says otherwise: below are accounts of the system
LONGEST_COMMAND = 60
# they stay when their user has left
LINGER = frozenset({"systemd", "(sd-pam)", "dbus-daemon", "dbus-broker", "dbus-broker-lau", "gpg-agent", "ssh-agent"})
_HIDES = ("hidepid=2", "hidepid=invisible", "hidepid=4", "hidepid=ptraceable")


def find_other_users() -> list[OtherUser]:
    """Raises OSError where /proc can't be read, or hides what others do."""
    if os.geteuid() != 0 and _proc_hides_others():
        raise PermissionError(1, phrase("hosts.proc_hides_processes"))
    mine, first = own_user_ids(), _first_personal_uid()
    lent = _subordinate_uids(mine)
    oldest: dict[int, tuple[int, int]] = {}  # uid -> (start, pid)
    for name in os.listdir("/proc"):
        pid = int(name) if name.isdigit() else 0
        uid = _real_uid(pid) if pid else None
        if uid is None or uid < first or uid == NOBODY or uid in mine or any(uid in each for each in lent):
            continue
        ticks = _working_since(pid)
        if ticks is not None:
            oldest[uid] = min(oldest.get(uid, (ticks, pid)), (ticks, pid))
    return [
        OtherUser(uid, name_of_uid(uid), pid, short_command_of_process(pid)) for uid, (_, pid) in sorted(oldest.items())
    ]


def own_user_ids() -> frozenset[int]:
    """Ours, and that of whoever became us by `sudo` or `su`: one's own logins."""
    asked = [os.environ.get(name, "") for name in ("SUDO_UID", "PKEXEC_UID")]
    found = {os.getuid(), os.geteuid(), *(int(each) for each in asked if each.isdecimal())}
    try:
        login = int(Path("/proc/self/loginuid").read_text())
        if login != 0xFFFFFFFF:
            found.add(login)
    except (OSError, ValueError):
        pass
    above = [uid for pid in ancestor_pids(os.getpid()) if (uid := _real_uid(pid)) is not None]
    return frozenset({*found, *above})


def ancestor_pids(pid: int) -> list[int]:
    """Up to the first process, without it."""
    found: list[int] = []
    while (parent := _parent_pid(pid)) is not None and parent > 1 and parent not in found:
        found.append(parent)
        pid = parent
    return found


def short_command_of_process(pid: int) -> str:
    """As a person would know it, in a few words."""
    text = mask_secrets_in_text(" ".join(read_argv(pid))) or read_comm(pid) or "?"
    plain = replace_unprintable(text)
    return plain if len(plain) <= LONGEST_COMMAND else plain[: LONGEST_COMMAND - 3] + "..."


def _working_since(pid: int) -> int | None:
    """None: it has ended, or only stays on behind a login that is over."""
    try:
        found = read_process(pid)
    except OSError:  # another user's, and hidden: it is there
        return 0
    if found is None or found.state in "ZX" or read_comm(pid) in LINGER:
        return None
    return found.ticks


def _real_uid(pid: int) -> int | None:
    """The real one. The owner of the folder in /proc is another where a process hides from debuggers."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:  # a name may be any bytes
            return next((int(line.split()[1]) for line in file if line.startswith("Uid:")), None)
    except PermissionError:
        try:
            return Path(f"/proc/{pid}").stat().st_uid
        except OSError:
            return None
    except (OSError, ValueError):
        return None


def _parent_pid(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None


def _first_personal_uid() -> int:
    try:
        lines = Path("/etc/login.defs").read_text(errors="replace").splitlines()
    except OSError:
        return FIRST_PERSON
    told = [words[1] for line in lines if (words := line.split())[:1] == ["UID_MIN"] and len(words) > 1]
    return int(told[-1]) if told and told[-1].isdecimal() else FIRST_PERSON


def _subordinate_uids(mine: frozenset[int]) -> list[range]:
    """The uids of containers that we run without rights: our own work."""
    try:
        lines = Path("/etc/subuid").read_text(errors="replace").splitlines()
    except OSError:
        return []
    names = {name for uid in mine for name in (str(uid), name_of_uid(uid))}
    found = []
    for line in lines:
        owner, start, count, *_ = [*line.split(":"), "", ""]
        if owner in names and start.isdecimal() and count.isdecimal():
            found.append(range(int(start), int(start) + int(count)))
    return found


def _proc_hides_others() -> bool:
    try:
        mounts = Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()
    except OSError:
        return False
    return any(line.split()[4:5] == ["/proc"] and any(word in line for word in _HIDES) for line in mounts)


def note_uncoordinated_users(proc: Path = Path("/proc")) -> list[Mistake]:
    """A note where it matters: with the usual home each user has slots of its own."""
    others = sorted(set(_uids_running_muster(proc)))
    if os.environ.get("MUSTER_HOME") or not others:
        return []
    named = ", ".join(f"uid {uid}" for uid in others)
    return [
        Mistake(
            phrase("hosts.other_user_runs_muster", users=named),
            hint=phrase("hosts.agree_on_muster_home"),
            level="note",
        )
    ]


def _uids_running_muster(proc: Path) -> Iterator[int]:
    for folder in proc.iterdir():
        with contextlib.suppress(OSError):
            if not folder.name.isdigit() or (uid := folder.stat().st_uid) == os.geteuid():
                continue
            if is_own_program(os.fsdecode((folder / "cmdline").read_bytes()).split("\0")):
                yield uid
