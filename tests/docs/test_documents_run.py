"""Every command in the documents is run, and does and prints what the document says."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from documents import DOCS, FRONT, ROOT, Step, blocks, name

RUN = [path for path in (*FRONT[:2], *DOCS) if any(block.runs for block in blocks(path))]
CHANGES = (  # what differs from time to time
    (r"\d{4}-\d\d-\d\d[T ]", ""),
    (r"\d\d:\d\d:\d\d(\.\d+)?([+-]\d\d:\d\d|Z)?", "TIME"),
    (r"\b(pid|controller) \d+", r"\1 N"),
    (r"\b\d+(\.\d+)? (s|ms|min|h)\b", r"N \2"),
    (r" +$", ""),
)


def normal(line: str, folder: Path) -> str:
    line = line.replace(f"{folder}/", "").replace(str(folder), ".")
    for pattern, text in CHANGES:
        line = re.sub(pattern, text, line)
    return line


def fits(shown: str, real: str) -> bool:
    if shown.startswith("...") and shown.endswith("...") and len(shown) > 3:
        return shown[3:-3].strip() in real
    if shown.startswith("..."):
        return real.endswith(shown[3:].strip())
    if shown.endswith("..."):
        return real.startswith(shown[:-3].rstrip())
    return shown == real


def missing(shown: list[str], output: str, folder: Path) -> str | None:
    """The first line that is not in the output, after those before it."""
    real = iter([normal(line, folder) for line in output.splitlines()])
    for line in shown:
        wanted = normal(line, folder)
        if wanted in ("", "..."):
            continue
        if not any(fits(wanted, each) for each in real):
            return line
    return None


class Place:
    """A folder of its own for one document; nothing that it started outlives it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "here"
        self.folder.mkdir()
        kept = {key: value for key, value in os.environ.items() if not key.startswith("MUSTER_")}
        bin_ = str(Path(sys.executable).parent)
        self.environment = kept | {
            "PATH": f"{bin_}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "MUSTER_HOME": str(folder / "home"), "MUSTER_GRACE_S": "2", "NO_COLOR": "1", "PYTHONUTF8": "1",
        }  # fmt: skip

    def run(self, command: str) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.folder, env=self.environment, text=True, encoding="utf-8", timeout=90,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        return done.returncode, done.stdout

    def check(self, path: Path, step: Step) -> None:
        where = f"{name(path)}:{step.line}: {step.command.splitlines()[0]}"
        code, output = self.run(step.command)
        assert code == step.exit, f"{where}\nexits with {code}, the document says {step.exit}:\n{output}"
        lost = missing(step.shown, output, self.folder)
        assert lost is None, f"{where}\ndoes not print, or not there: {lost!r}\nIt prints:\n{output}"

    def close(self) -> None:
        if not (self.folder / ".muster").exists():
            return
        self.run("muster down --runs --because 'the test is over' --timeout 20s")
        who = [json.loads(path.read_text()) for path in self.folder.glob(".muster/attempts/**/identity.json")]
        pids = {
            (each[pid], each[ticks]) for each in who for pid, ticks in (("pid", "ticks"), ("shim_pid", "shim_ticks"))
        }
        deadline = time.monotonic() + 5
        while (left := [pid for pid, ticks in pids if started(pid) == ticks]) and time.monotonic() < deadline:
            time.sleep(0.02)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        assert not left, f"left alive: {left}"


def started(pid: int) -> int | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def test_there_is_something_to_run() -> None:
    assert {name(path) for path in RUN} >= {"README.md", "README.zh-CN.md", "docs/interface.md"}


def _param(path: Path) -> object:
    """The Chinese README has the commands of the other one, which CI runs."""
    return pytest.param(path, marks=pytest.mark.slow) if path == FRONT[1] else path


@pytest.mark.parametrize("path", [_param(path) for path in RUN], ids=[name(path) for path in RUN])
def test_commands_do_what_the_document_says(path: Path, tmp_path: Path) -> None:
    place = Place(tmp_path)
    try:
        for block in blocks(path):
            for step in block.steps() if block.runs else []:
                place.check(path, step)
    finally:
        place.close()


@pytest.mark.parametrize("path", [*FRONT, *DOCS], ids=name)
def test_what_is_not_run_exists(path: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for block in blocks(path):
        for step in block.steps() if block.commands and not block.runs else []:
            words = step.command.partition("#")[0].split()
            if words[0] == "make":
                assert set(words[1:]) <= targets, f"{name(path)}:{step.line}: no such target in the Makefile"
            else:
                assert words[:2] == ["muster", "demo"], f"{name(path)}:{step.line}: nobody checks this command"


def test_the_demo_still_says_these_things() -> None:
    done = subprocess.run([sys.executable, "-m", "muster", "demo", "--help"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    messages = ROOT / "src" / "muster" / "locales" / "en" / "messages"
    said = "".join((messages / f"{subject}.toml").read_text() for subject in ("cli", "overview"))
    for phrase in ("FAULT 1: killing the run", "FAULT 2: killing the controller", "resumes from the last checkpoint",
                   "without a controller, still RUNNING by their own processes", "nothing was started twice"):  # fmt: skip
        assert phrase in said
        for readme in FRONT[:2]:
            assert phrase in readme.read_text(encoding="utf-8"), f"{name(readme)} shows another demo"


def test_both_readmes_have_the_same_commands() -> None:
    def commands(path: Path) -> list[str]:
        found = [step.command for block in blocks(path) if block.commands for step in block.steps()]
        return [re.sub(r'"[^"]*"', '""', re.sub(r" *#.*", "", text)) for text in found]

    assert commands(FRONT[0]) == commands(FRONT[1])
    assert len(FRONT[0].read_text().splitlines()) <= 200
