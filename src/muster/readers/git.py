"""Asks git so that nothing of a stranger's repository is executed, never for longer or more than its limits. Programs
are taken from PATH without the places that a repository could have filled.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import selectors
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY_MARKS = (".git", "campaign.yaml", ".muster")


def trusted_path(folder: str, path: str | None = None) -> str:
    """PATH less what is relative (an empty entry is the working folder) and what lies in the repository of `folder`."""
    given = os.environ.get("PATH", os.defpath) if path is None else path
    return _trusted_entries(os.path.realpath(folder), given, os.path.realpath(Path("~").expanduser()))


def find_trusted_program(name: str, folder: str) -> str | None:
    """Its absolute path by `trusted_path`; None: there is none there."""
    found = shutil.which(name, path=trusted_path(folder))
    return None if found is None or is_within_own_folders(folder, found) else found


def is_within_own_folders(folder: str, place: str) -> bool:
    """Whether a file or a folder, links followed, lies in the repository or the campaign of `folder`."""
    return _lies_in_any(
        os.path.realpath(place), _own_folders(os.path.realpath(folder), os.path.realpath(Path("~").expanduser()))
    )


@functools.lru_cache(maxsize=64)
def _trusted_entries(folder: str, path: str, home: str) -> str:
    own = _own_folders(folder, home)
    entries = (entry for entry in path.split(os.pathsep) if entry.startswith("/"))
    return os.pathsep.join(entry for entry in entries if not _lies_in_any(os.path.realpath(entry), own))


def _own_folders(folder: str, home: str) -> tuple[str, ...]:
    """The folder, and each one above it that is a repository or a campaign; not the home, where dotfiles may be one."""
    return (folder, *_marked_parents(Path(folder), Path(home)))


def _marked_parents(folder: Path, home: Path) -> Iterator[str]:
    for each in folder.parents:
        if each == Path(each.root) or home.is_relative_to(each):
            return
        if any(os.path.lexists(each / mark) for mark in REPOSITORY_MARKS):
            yield str(each)


def _lies_in_any(place: str, folders: tuple[str, ...]) -> bool:
    return any(place == each or place.startswith(f"{each}/") for each in folders)


LIMIT_S = 60.0
MOST_BYTES = 32 << 20  # of what it prints: objects are packed, and a small repository may have a diff of any length
# `safe.directory` stays as its user has it: git itself refuses what belongs to somebody else
_SAFE_OPTIONS = (
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.quotePath=false",
    "-c",
    "safe.bareRepository=explicit",
    "-c",
    "diff.submodule=short",
    "--no-pager",
)
_KEPT_VARIABLES = (
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_EXEC_PATH",
    "GIT_CEILING_DIRECTORIES",
)
_SET_VARIABLES = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "LC_ALL": "C",
}
# commands that `diff` would run on files, or git-lfs in its turn; or git, for a filter that says `git lfs`
_FILTERS = r"^(filter\..*\.(clean|smudge|process)|lfs\.extension\..*\.clean|alias\..*)$"
_LFS = re.compile(
    r"git[- ]lfs (clean( --skip)?( --)? %f|filter-process( --skip)?)"
)  # a shell reads more than its start
_SUBMODULE = "160000 "
# The reader sees the end of a pipe whose other end only we hold, and ends all of the group, however we leave.
# A death signal from the kernel would reach git alone, and not what git has started.
_NEVER_ALONE = """{ read -r x </proc/self/fd/$1; kill -KILL 0; } >/dev/null 2>&1 &
shift; "$@"; code=$?; kill -KILL $!; wait 2>/dev/null; exit $code"""
_LONGEST_GIT_FILE = 1 << 16


class GitTrouble(Exception):
    """It did not do what it was asked: `said` is why, `waited_s` how long it was waited for in vain."""

    def __init__(self, said: str, waited_s: float | None = None) -> None:
        super().__init__(said)
        self.said, self.waited_s = said, waited_s


def git_limit_s() -> float:
    return float(os.environ.get("MUSTER_GIT_S", LIMIT_S))


@dataclass(frozen=True, slots=True)
class Git:
    """In one folder."""

    folder: str
    harmless: tuple[tuple[str, str], ...] = ()  # settings that keep filters from being run, here and in submodules

    def __call__(self, *words: str, pass_fds: tuple[int, ...] = (), fine: tuple[int, ...] = (0,)) -> bytes:
        """What it prints. Raises GitTrouble."""
        command = [_find_git_program(self.folder), *_SAFE_OPTIONS, "-C", self.folder, *words]
        inherited = {
            name: text for name, text in os.environ.items() if name in _KEPT_VARIABLES or not name.startswith("GIT_")
        }
        inherited["PATH"] = trusted_path(self.folder)
        if not _is_outside_of_folder(inherited.get("GIT_EXEC_PATH", "/"), self.folder):
            del inherited["GIT_EXEC_PATH"]
        try:
            left, held = os.pipe()
        except OSError as error:
            raise GitTrouble(f"git can't be started: {error.strerror or error}") from error
        try:
            process = subprocess.Popen(
                ["/bin/sh", "-c", _NEVER_ALONE, "git", str(left), *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=inherited | _SET_VARIABLES | self._settings(),
                pass_fds=(left, *pass_fds),
                start_new_session=True,
            )
            out, err = _await_git_answer(process, git_limit_s())
        except OSError as error:
            raise GitTrouble(f"git can't be started: {error.strerror or error}") from error
        finally:
            os.close(left)
            os.close(held)
        if process.returncode not in fine:
            lines = err.decode("utf-8", "replace").strip().splitlines()
            raise GitTrouble(lines[0] if lines else f"git ended with {process.returncode}")
        return out

    def without_filters(self) -> Git:
        """Filters that the repository itself names are not run, but for git-lfs; those of its user are his own.

        Nor are those of its submodules: `diff` looks into each, by its own settings.
        """
        given: dict[str, str] = {}
        for name in dict.fromkeys(name for git in self._with_submodules(set()) for name in git._foreign_filters()):
            given[name] = ""
            if name.startswith("filter."):
                given[f"{name.rpartition('.')[0]}.required"] = "false"
        return Git(self.folder, tuple(given.items()))

    def _settings(self) -> dict[str, str]:
        """As `-c` would have it, which can't name what has a `=` in its name."""
        named = {f"GIT_CONFIG_KEY_{at}": name for at, (name, _) in enumerate(self.harmless)}
        texts = {f"GIT_CONFIG_VALUE_{at}": text for at, (_, text) in enumerate(self.harmless)}
        return {"GIT_CONFIG_COUNT": str(len(self.harmless)), **named, **texts}

    def _foreign_filters(self) -> Iterator[str]:
        parts = os.fsdecode(self("config", "--show-scope", "-z", "--get-regexp", _FILTERS, fine=(0, 1))).split("\0")
        for scope, entry in zip(parts[::2], parts[1::2], strict=False):
            name, _, command = entry.partition("\n")
            if scope in ("local", "worktree") and not (name.startswith("filter.") and _LFS.fullmatch(command)):
                yield name

    def _with_submodules(self, seen: set[str]) -> Iterator[Git]:
        yield self
        for entry in os.fsdecode(self("ls-files", "-s", "-z")).split("\0"):
            if not entry.startswith(_SUBMODULE):
                continue
            folder = os.path.realpath(Path(self.folder, entry.partition("\t")[2]))
            if folder not in seen and Path(folder, ".git").exists():
                seen.add(folder)
                yield from Git(folder)._with_submodules(seen)


def _find_git_program(folder: str) -> str:
    """git by PATH, but never one that lies in what is asked about. Raises GitTrouble."""
    found = find_trusted_program("git", folder)
    if found is None and shutil.which("git"):
        raise GitTrouble("git is found only by a relative entry of PATH or inside the repository, and is not run there")
    if found is None:
        raise GitTrouble("git is not installed")
    return found


def _is_outside_of_folder(place: str, folder: str) -> bool:
    return place.startswith("/") and not is_within_own_folders(folder, place)


def _await_git_answer(process: subprocess.Popen[bytes], within_s: float) -> tuple[bytes, bytes]:
    """What it printed, and what it said of troubles. Raises GitTrouble."""
    until = time.monotonic() + within_s
    try:
        told = _read_to_the_end(process, until)
        process.wait(max(0.0, until - time.monotonic()))
    except (TimeoutError, subprocess.TimeoutExpired):
        _end(process)
        raise GitTrouble(f"git did not answer in {within_s:g} s", within_s) from None
    except BaseException:
        _end(process)
        raise
    finally:
        for pipe in (process.stdout, process.stderr):
            if pipe:
                pipe.close()
    return told


def _read_to_the_end(process: subprocess.Popen[bytes], until: float) -> tuple[bytes, bytes]:
    assert process.stdout
    assert process.stderr
    told: dict[int, list[bytes]] = {process.stdout.fileno(): [], process.stderr.fileno(): []}
    left = MOST_BYTES
    with selectors.DefaultSelector() as waiting:
        for pipe in told:
            waiting.register(pipe, selectors.EVENT_READ)
        while waiting.get_map():
            ready = waiting.select(max(0.0, until - time.monotonic()))
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                piece = os.read(key.fd, 1 << 16)
                told[key.fd].append(piece)
                left -= len(piece)
                if not piece:
                    waiting.unregister(key.fd)
            if left < 0:
                raise GitTrouble(f"git tells more than {MOST_BYTES >> 20} MiB")
    out, err = (b"".join(pieces) for pieces in told.values())
    return out, err


def _end(process: subprocess.Popen[bytes]) -> None:
    """With all that it has started; nobody has waited for it yet, so that its number is its own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):  # one that hangs in the kernel is left behind
        process.wait(1.0)


def is_within_repository(cwd: str) -> bool:
    """By the looks of it, without git."""
    return any((folder / ".git").exists() for folder in (Path(cwd), *Path(cwd).parents))


def is_working_tree_of(top: str, git_dir: str) -> bool:
    """Whether `.git` there leads to it. `core.worktree` can name any folder, of which we would then read everything."""
    mark = os.path.join(top, ".git")  # noqa: PTH118
    try:
        if not Path(mark).is_dir():
            with open(os.open(mark, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    return False
                kind, _, place = file.read(_LONGEST_GIT_FILE).rstrip(b"\n").partition(b": ")
            mark = os.path.join(top, os.fsdecode(place)) if kind == b"gitdir" else ""  # noqa: PTH118
        return bool(mark) and os.path.realpath(mark) == os.path.realpath(git_dir)
    except (OSError, ValueError):
        return False
