"""A process that Muster did not start: who it is, what it writes. And the other way round: who writes in a folder."""

# Paths are texts here, as in the rest of this room.

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from muster.files.campaign_ownership import name_of_uid
from muster.files.own_processes import is_own_program
from muster.hosts.local.process_tree import TICKS_PER_S, ProcessSnapshot, ProcessStat
from muster.model.foreign_run import ProcessCertainty, RunProcess
from muster.text.phrases import phrase

MOST_COMMANDS = 64
_WRITE_FLAGS = 0o3  # O_WRONLY or O_RDWR in the flags of fdinfo
_SYSTEM_FOLDERS = (
    "/proc/",
    "/sys/",
    "/dev/",
    "/run/",
    "/usr/",
    "/etc/",
    "/boot/",
    "/snap/",
    "/var/lib/",
    "/var/cache/",
)
SHELLS = frozenset({"sh", "bash", "zsh", "dash", "fish", "ksh", "tcsh", "csh"})
# they name a folder, or sit in it, to read or to show it
_READERS = frozenset(
    {
        "tensorboard",
        "tail",
        "less",
        "more",
        "cat",
        "head",
        "watch",
        "grep",
        "rg",
        "find",
        "ls",
        "vim",
        "vi",
        "nvim",
        "nano",
        "emacs",
        "code",
        "ssh",
        "scp",
        "rsync",
        "rclone",
        "tmux",
        "screen",
        "jupyter",
        "jupyter-lab",
        "top",
        "htop",
        "nvtop",
        "nvidia-smi",
        "gpustat",
        "git",
        "man",
        "sleep",
        "inotifywait",
        "du",
        "df",
        "py-spy",
        "gdb",
        "strace",
        "sshd",
        "su",
        "sudo",
        "login",
        "http.server",
        "aim",
        "mlflow",
        "tensorboard.main",
    }
)
_PIPES = frozenset(
    {"tee", "ts", "rotatelogs", "multilog", "sed", "awk", "gawk", "mawk", "grep", "cat", "logger", "split"}
)
_TRAINERS = ("python", "pypy", "torchrun", "accelerate", "deepspeed", "mpirun", "julia", "conda")
_OPEN, _NAMED, _WORKS, _ABOVE, _NOT = 3, 2, 1, 0, -1  # how near a process is to a folder
_LEVELS: tuple[ProcessCertainty, ...] = (
    "names the folder above",
    "works there",
    "names it",
    "has it open",
    "was given",
)


@dataclass(frozen=True, slots=True)
class OpenedFiles:
    """Files that a tree has open for writing."""

    files: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()  # what stdout and stderr go to, where that is a file
    unread: bool = False  # of some process they may not be listed


@dataclass(frozen=True, slots=True)
class FolderWriterProcesses:
    main: RunProcess | None = None
    others: tuple[RunProcess, ...] = ()  # further trees that write there
    doubtful: tuple[
        RunProcess, ...
    ] = ()  # they name it or sit there, but nothing shows that they write; the likeliest first
    hidden: int = 0  # processes of other users, whose files can't be listed


# -- one process


def leader_of_thread(pid: int) -> int:
    """The process that a thread belongs to."""
    match = re.search(r"^Tgid:\s*(\d+)", _read_proc_file(f"/proc/{pid}/status"), re.MULTILINE)
    return int(match[1]) if match else pid


def read_run_process(proc: ProcessStat) -> RunProcess:
    cwd = read_link_or_none(f"/proc/{proc.pid}/cwd")
    uid = _uid_of_process(proc.pid)
    return RunProcess(
        proc.pid,
        proc.ticks,
        proc.ticks / TICKS_PER_S,
        read_argv(proc.pid),
        cwd,
        "" if uid is None else name_of_uid(uid),
        foreign=cwd is None and uid not in (None, os.geteuid()),
        cell=_cell_in_environment(proc.pid),
    )


def read_argv(pid: int) -> tuple[str, ...]:
    """Empty where it has none: a kernel thread, or one that has ended."""
    text = _read_proc_file(f"/proc/{pid}/cmdline").rstrip("\0")
    return tuple(text.split("\0")) if text else ()


def commands_of_processes(pids: Sequence[int]) -> list[tuple[tuple[str, ...], str | None]]:
    """The words of each, and the folder it works in."""
    return [(read_argv(pid), read_link_or_none(f"/proc/{pid}/cwd")) for pid in pids[:MOST_COMMANDS]]


def program_of_command(argv: Sequence[str]) -> str:
    """What runs: of an interpreter the module or script, of everything else its own name."""
    if not argv:
        return ""
    name = os.path.basename(argv[0]).lstrip("-")
    if name.startswith(("python", "pypy")):
        rest = iter(argv[1:])
        for word in rest:
            if word == "-c":
                return name
            if word == "-m":
                return next(rest, name)
            if not word.startswith("-"):
                return os.path.basename(word)
    return name


def is_kernel_thread(pid: int) -> bool:
    fields = _read_proc_file(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return len(fields) > 6 and bool(int(fields[6]) & 0x00200000)


def is_init_process(pid: int) -> bool:
    """The first process, unless that is the training itself, as it may be in a container."""
    argv = read_argv(1)
    return pid == 1 and not (argv and os.path.basename(argv[0]).startswith(_TRAINERS))


def read_comm(pid: int) -> str:
    return _read_proc_file(f"/proc/{pid}/comm").strip()


def exit_status_of_zombie(pid: int) -> int | None:
    """Of one that has ended and was not waited for, as waitpid would give it: the kernel keeps it until then."""
    fields = _read_proc_file(f"/proc/{pid}/stat").rpartition(")")[2].split()
    if len(fields) <= 49 or fields[0] not in "ZX" or not _may_trace_process(pid):
        return None
    return int(fields[49])


def _may_trace_process(pid: int) -> bool:
    """Of processes that we may not trace the kernel shows 0 for their exit, whatever it was."""
    try:
        return os.geteuid() in (0, os.stat(f"/proc/{pid}").st_uid)
    except OSError:
        return False


def training_process_of_worker(proc: ProcessStat, snapshot: ProcessSnapshot) -> ProcessStat:
    """Of a data worker the process that started it: it is the training that is asked about."""
    for _ in range(8):
        above, argv = snapshot.procs.get(proc.ppid), read_argv(proc.pid)
        helper = any("multiprocessing.spawn" in word or "multiprocessing.forkserver" in word for word in argv[:4])
        if above is None or above.pid == 1 or not argv or not (helper or read_argv(above.pid) == argv):
            break
        if os.path.basename(argv[0]).lstrip("-") in SHELLS:
            break
        proc = above
    return proc


def _muster_home_text() -> str:
    return os.environ.get("MUSTER_HOME") or str(Path.home() / ".local/state/muster")


def files_opened_by(pids: Iterable[int]) -> OpenedFiles:
    files: dict[str, None] = {}
    outputs: dict[str, None] = {}
    unread = False
    for pid in pids:
        links = _open_links(pid)
        if links is None:
            unread = True
            continue
        for fd, path in links.items():
            if not path.startswith("/") or path.startswith(_SYSTEM_FOLDERS) or path.endswith(" (deleted)"):
                continue
            if f"{os.sep}slots{os.sep}" in path and path.startswith(_muster_home_text()):
                continue  # a lease, which every run of a campaign holds open
            if _is_open_for_writing(pid, fd):
                (outputs if fd in (1, 2) else files)[path] = None
    plain = tuple(path for path in files if path not in outputs and not _has_hidden_part(path))
    return OpenedFiles(plain, tuple(outputs), unread)


# -- who writes in a folder


@dataclass(slots=True)
class _MatchedProcess:
    proc: ProcessStat
    level: int = -1
    why: str = ""
    does: str = ""  # of one that has a file open there: its `why` without its pid
    links: dict[int, str] = field(default_factory=dict)
    argv: tuple[str, ...] = ()


def find_writers_in_folder(
    folder: str, snapshot: ProcessSnapshot, writes: Callable[[RunProcess], bool] = lambda _: False
) -> FolderWriterProcesses:
    """`folder` without links in it.

    `writes`: whether one that has no file of it open writes there all the same: trainers open and close their files.
    """
    above = _ancestors_in_snapshot(os.getpid(), snapshot)
    seen: dict[int, _MatchedProcess] = {}
    hidden = 0
    for pid, proc in snapshot.procs.items():
        if pid == os.getpid() or proc.state in "ZX" or proc.ppid == 2 or pid == 2:
            continue
        if is_own_program(read_argv(pid)):
            continue  # who keeps watch is no training
        links = _open_links(pid)
        hidden += links is None
        each = seen[pid] = _MatchedProcess(proc, links=links or {}, argv=read_argv(pid))
        each.level, each.why = _match_process_to_folder(each, folder, ours=pid in above)
    _follow_pipes_to_writers(seen)
    groups = _group_matches_by_tree(seen, snapshot, above)
    return _rank_writers(groups, snapshot, hidden, writes)


def _match_process_to_folder(each: _MatchedProcess, folder: str, *, ours: bool) -> tuple[int, str]:
    pid, argv = each.proc.pid, each.argv
    for fd, path in each.links.items():
        if _is_below_folder(path, folder) and not _is_private_file(path, folder) and _is_open_for_writing(pid, fd):
            opened = os.path.relpath(path, folder)
            each.does = phrase("hosts.has_file_open", path=opened)
            return _OPEN, phrase("hosts.pid_has_file_open", pid=pid, path=opened)
    # one of _PIPES that has just been started has not opened its file yet, and does not train afterwards either
    if ours or only_shows(argv):
        return _NOT, ""
    cwd = read_link_or_none(f"/proc/{pid}/cwd")
    here = cwd is not None and (cwd == folder or _is_below_folder(cwd, folder))
    paths = paths_in_command(argv, None if here else cwd)
    if any(path == folder or (_is_below_folder(path, folder) and os.path.lexists(path)) for path in paths):
        return _NAMED, phrase("hosts.pid_names_folder", pid=pid)
    if here:
        return _WORKS, phrase("hosts.pid_works_there", pid=pid)
    if os.path.dirname(folder) in paths and os.path.dirname(folder) != cwd:
        return _ABOVE, phrase("hosts.pid_names_parent_folder", pid=pid)
    return _NOT, ""


def paths_in_command(argv: Sequence[str], cwd: str | None) -> list[str]:
    """All that a command names."""
    return [path for word in argv[1:] for path in _paths_in_word(word, cwd)]


def _paths_in_word(word: str, cwd: str | None) -> list[str]:
    """`--logdir=runs/x`, `runs/x`, `hydra.run.dir=runs/x`; a relative one only where its folder is known."""
    found = []
    for text in {word, word.partition("=")[2]}:
        if not text or "\n" in text or len(text) > 4096 or not (text.startswith("/") or cwd):
            continue
        if text.startswith("-") or text in (".", ".."):
            continue
        found.append(os.path.realpath(os.path.join(cwd or "/", text)))
    return found


def _is_private_file(path: str, folder: str) -> bool:
    """An editor's swap file, a lock, or the state of a campaign: no output of a training."""
    return _has_hidden_part(os.path.relpath(path, folder)) or path.endswith((".lock", ".swp"))


def _follow_pipes_to_writers(seen: dict[int, _MatchedProcess]) -> None:
    """`python train.py | tee train.log`: it is not tee that trains."""
    for _ in range(4):
        pipes = [each for each in seen.values() if each.level == _OPEN and program_of_command(each.argv) in _PIPES]
        if not pipes:
            return
        for pipe in pipes:
            pipe.level = _NOT
            feed = pipe.links.get(0, "")
            for each in seen.values():
                if feed.startswith("pipe:") and each is not pipe and feed in (each.links.get(1), each.links.get(2)):
                    program = program_of_command(pipe.argv)
                    each.level = _OPEN
                    each.why = phrase("hosts.pid_writes_to_pipe", pid=each.proc.pid, program=program, does=pipe.does)
                    each.does = phrase("hosts.writes_to_pipe", program=program, does=pipe.does)


def _group_matches_by_tree(
    seen: dict[int, _MatchedProcess], snapshot: ProcessSnapshot, above: set[int]
) -> dict[int, list[_MatchedProcess]]:
    """Matches by the process at the top of their tree."""
    groups: dict[int, list[_MatchedProcess]] = {}
    for each in seen.values():
        if each.level < 0:
            continue
        top = each.proc
        while (parent := seen.get(top.ppid)) is not None and parent.level > 0:
            top = parent.proc
        groups.setdefault(top.pid, []).append(each)
    return _merge_workers_of_launcher(groups, snapshot, above, seen)


def _merge_workers_of_launcher(
    groups: dict[int, list[_MatchedProcess]],
    snapshot: ProcessSnapshot,
    above: set[int],
    seen: dict[int, _MatchedProcess],
) -> dict[int, list[_MatchedProcess]]:
    """The workers of one launcher are one run."""
    parents: dict[int, list[int]] = {}
    for pid in groups:
        parents.setdefault(snapshot.procs[pid].ppid, []).append(pid)
    found: dict[int, list[_MatchedProcess]] = {}
    for parent, pids in parents.items():
        launcher = parent in seen and parent not in above and parent > 1 and len(pids) > 1
        known = (
            launcher
            and program_of_command(seen[parent].argv) not in _READERS
            and not _is_interactive_shell(seen[parent].argv)
        )
        for pid in pids:
            found.setdefault(parent if known else pid, []).extend(groups[pid])
    return found


def only_shows(argv: Sequence[str]) -> bool:
    """A program of which it is known that it trains nothing, whatever it names."""
    return not argv or program_of_command(argv) in _READERS | _PIPES or _is_interactive_shell(argv)


def _is_interactive_shell(argv: Sequence[str]) -> bool:
    return not argv or (program_of_command(argv) in SHELLS and len(argv) == 1)


def _rank_writers(
    groups: dict[int, list[_MatchedProcess]],
    snapshot: ProcessSnapshot,
    hidden: int,
    writes: Callable[[RunProcess], bool],
) -> FolderWriterProcesses:
    """One that is near is not the writer for that: not even where there is no other."""
    ranked: list[tuple[bool, int, float, RunProcess]] = []
    for pid, members in groups.items():
        best = max(each.level for each in members)
        proc = snapshot.procs[pid]
        because = tuple(each.why for each in members if each.level == best)[:3]
        who = replace(read_run_process(proc), sure=_LEVELS[best], because=because)
        cpu_s = snapshot.cpu_s(snapshot.tree(pid, proc.ticks, -1))
        ranked.append((best == _OPEN or writes(who), best, cpu_s, who))
    ranked.sort(key=lambda item: item[:3], reverse=True)
    sure = [who for writer, _, _, who in ranked if writer]
    doubtful = tuple(who for writer, _, _, who in ranked if not writer)
    return FolderWriterProcesses(sure[0] if sure else None, tuple(sure[1:]), doubtful, hidden)


def _ancestors_in_snapshot(pid: int, snapshot: ProcessSnapshot) -> set[int]:
    found: set[int] = set()
    while (proc := snapshot.procs.get(pid)) is not None and pid not in found:
        found.add(pid)
        pid = proc.ppid
    return found


# -- /proc


def _is_below_folder(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")


def _has_hidden_part(path: str) -> bool:
    return any(part.startswith(".") and part not in (".", "..") for part in path.split("/"))


def _open_links(pid: int) -> dict[int, str] | None:
    """What it has open; None: that may not be listed."""
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, ProcessLookupError):
        return {}
    except OSError:
        return None
    return {int(name): link for name in names if (link := read_link_or_none(f"{folder}/{name}")) is not None}


def _is_open_for_writing(pid: int, fd: int) -> bool:
    match = re.search(r"^flags:\s*([0-7]+)", _read_proc_file(f"/proc/{pid}/fdinfo/{fd}"), re.MULTILINE)
    return match is not None and bool(int(match[1], 8) & _WRITE_FLAGS)


def read_link_or_none(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None


def _read_proc_file(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(1 << 20).decode("utf-8", "surrogateescape")
    except OSError:
        return ""


def _uid_of_process(pid: int) -> int | None:
    match = re.search(r"^Uid:\s*\d+\s+(\d+)", _read_proc_file(f"/proc/{pid}/status"), re.MULTILINE)
    return int(match[1]) if match else None


def _cell_in_environment(pid: int) -> str:
    match = re.search(r"(?:^|\0)MUSTER_CELL=([^\0]+)", _read_proc_file(f"/proc/{pid}/environ"))
    return match[1] if match else ""
