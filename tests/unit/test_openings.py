"""Whatever a run, a repository or another user may have written is opened by `ports/regular_files`, and nowhere else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import muster

SOURCE = Path(muster.__file__).parent
ROOMS = ("readers", "app", "stages", "rules", "text")
OPENS = {"open", "read_text", "read_bytes", "fdopen", "FileIO", "ZipFile", "mmap", "memmap", "fromfile", "loadtxt"}
WRITES = {"wb", "xb", "ab", "ab+", "w", "a", "x"}
OF_MODULES = {("np", "load"), ("numpy", "load"), ("json", "load"), ("tomllib", "load"), ("pickle", "load"),
              ("torch", "load"), ("tarfile", "open"), ("gzip", "open"), ("io", "open"), ("sqlite3", "connect")}  # fmt: skip

# file -> (how many openings of its own it has, why)
ALLOWED = {
    "hosts/local/kernel.py": (2, "files of the kernel in /sys and /proc"),
    "hosts/local/process_tree.py": (2, "/proc"),
    "files/process_identity.py": (5, "/proc"),
    "hosts/local/living_runs.py": (2, "/proc"),
    "hosts/local/other_users.py": (7, "/proc and /etc"),
    "hosts/local/find_process.py": (1, "/proc"),
    "hosts/local/gpus.py": (1, "/proc"),
    "hosts/local/waker.py": (2, "the bell, a FIFO of Muster's own, never waited for"),
    "readers/git.py": (2, "opened as a regular file would be, by its own check"),
    "app/documents/document_files.py": (1, "a folder, to sync it"),
    "app/campaign/proposer_function.py": (1, "the function that the campaign names is executed"),
    "app/loop/edit_variant.py": (1, "opens to write, and never an existing file"),
    "app/overview/write_pack.py": (2, "writes; and reads a file that it has hashed before"),
    "app/overview/pack_campaign.py": (1, "the campaign file, of this user"),
    "app/campaign/campaign_handle.py": (2, "state of this user's own campaign; a store, through its port"),
    "app/campaign/registered_campaigns.py": (1, "a store, through its port"),
    "app/campaign/load_campaign.py": (2, "the campaign file, of this user"),
    "app/campaign/observe_campaign.py": (1, "the campaign file, of this user"),
    "app/campaign/run_configs.py": (1, "a config of this user, to compare it with what is written"),
    "app/campaign/verbs/clean_leftovers.py": (1, "state and manifests of this user's own campaign"),
    "app/campaign/verbs/rename_axis_value.py": (1, "the campaign file, of this user"),
    "app/campaign/verbs/write_template.py": (1, "the campaign file, of this user"),
    "app/finish/power_off.py": (2, "output of a step that the campaign declares"),
    "app/finish/run_finish.py": (1, "output of a step that the campaign declares"),
    "app/gates/gate_watcher.py": (1, "appends to its own trace"),
    "app/loop/propose_round.py": (1, "a config that it is about to write"),
    "app/loop/run_variant.py": (1, "a config that it has just written"),
    "app/overview/unpack_campaign.py": (1, "opens to write, and never an existing file"),
    "readers/source_code.py": (3, "git's own HEAD; and its own: no link is followed, for a link counts as its text"),
    "readers/checkpoints/file_formats.py": (2, "the archive is on a file that was opened safely"),
    "rules/loop_settings.py": (1, "a rule set of the package"),
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
            if (owner, called.attr) in OF_MODULES or (
                called.attr in OPENS and owner not in ("facts", "CampaignHandle", "cls")
            ):
                yield node.lineno


def files() -> list[Path]:
    return [path for room in ROOMS for path in sorted((SOURCE / room).rglob("*.py")) if "templates" not in path.parts]


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_reader_opens_nothing_itself(path: Path) -> None:
    allowed, why = ALLOWED.get(str(path.relative_to(SOURCE)), (0, ""))
    lines = list(openings(path))
    assert len(lines) == allowed, f"lines {lines}: use muster.files.safe_open; allowed are {allowed} ({why})"


def test_what_is_allowed_exists() -> None:
    assert [name for name in ALLOWED if not (SOURCE / name).is_file()] == []
