"""Whatever a run, a repository or another user may have written is opened by `ports/regular_files`, and nowhere else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import muster

SOURCE = Path(muster.__file__).parent
ROOMS = ("observe", "acts", "stages", "report", "rounds")
MORE = ("gate_files", "staged_files", "tracing", "recording", "histories", "journaling", "journal_runs", "peeking")
OPENS = {"open", "read_text", "read_bytes", "fdopen", "FileIO", "ZipFile", "mmap", "memmap", "fromfile", "loadtxt"}
WRITES = {"wb", "xb", "ab", "ab+", "w", "a", "x"}
OF_MODULES = {("np", "load"), ("numpy", "load"), ("json", "load"), ("tomllib", "load"), ("pickle", "load"),
              ("torch", "load"), ("tarfile", "open"), ("gzip", "open"), ("io", "open"), ("sqlite3", "connect")}  # fmt: skip

# file -> (how many openings of its own it has, why)
ALLOWED = {
    "observe/probes/cgroup.py": (1, "files of the kernel in /sys and /proc"),
    "observe/probes/tree.py": (2, "/proc"),
    "observe/probes/kernel.py": (1, "/dev/kmsg"),
    "observe/process.py": (5, "/proc"),
    "observe/open_files.py": (1, "/proc"),
    "observe/left_runs.py": (1, "/proc"),
    "observe/other_users.py": (7, "/proc and /etc"),
    "observe/find_process.py": (1, "/proc"),
    "observe/driver.py": (1, "/proc"),
    "observe/waker.py": (2, "the bell, a FIFO of Muster's own, never waited for"),
    "observe/code.py": (1, "git's own HEAD, beside the index that git itself reads"),
    "observe/git.py": (2, "opened as a regular file would be, by its own check"),
    "acts/docs_files.py": (1, "a folder, to sync it"),
    "acts/entry_point.py": (1, "the function that the campaign names is executed"),
    "acts/edit.py": (1, "opens to write, and never an existing file"),
    "acts/pack.py": (1, "writes"),
    "acts/unpack.py": (1, "opens to write, and never an existing file"),
    "observe/source_files.py": (2, "its own: no link is followed, for a link counts as its text"),
    "observe/zips.py": (2, "the archive is on a file that was opened safely"),
    "observe/metrics/tailing.py": (1, "opened by regular_opener"),
}


def openings(path: Path) -> Iterator[int]:
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if any(isinstance(each, ast.Constant) and str(each.value) in WRITES for each in node.args[1:2]):
            continue
        if isinstance(called, ast.Name) and called.id in OPENS - {"read_text", "read_bytes"}:
            yield node.lineno
        elif isinstance(called, ast.Attribute):
            owner = called.value.id if isinstance(called.value, ast.Name) else ""
            if (owner, called.attr) in OF_MODULES or (called.attr in OPENS and owner not in ("facts", "Desk")):
                yield node.lineno


def files() -> list[Path]:
    found = [path for room in ROOMS for path in sorted((SOURCE / room).rglob("*.py")) if "templates" not in path.parts]
    return found + [SOURCE / "wiring" / f"{name}.py" for name in MORE]


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_reader_opens_nothing_itself(path: Path) -> None:
    allowed, why = ALLOWED.get(str(path.relative_to(SOURCE)), (0, ""))
    lines = list(openings(path))
    assert len(lines) == allowed, f"lines {lines}: use muster.ports.regular_files; allowed are {allowed} ({why})"


def test_what_is_allowed_exists() -> None:
    assert [name for name in ALLOWED if not (SOURCE / name).is_file()] == []
