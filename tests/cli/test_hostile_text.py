"""No text of a run, a repository or another user does anything to a terminal, whichever command shows it."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import termios
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from muster.faces.cli.common.command_line import COMMANDS
from muster.faces.cli.common.terminal_output import COLOUR_CODES
from support.camp import Camp

EVIL = "E\x1b[41mV\x1b]0;title\x07\x9b2J\u202eI\x7f\x08\u200bL\x1b[32mGREEN\nFORGED line"
IN_YAML = json.dumps(EVIL).replace("\\u007f", "\\x7f")  # JSON's escapes are YAML's
OUTSIDE = EVIL.replace("\x1b", "").replace("\x9b", "")
# what is asked of each command, once with and once without somebody's hostile words
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "demo": ("--no-such",), "init": (), "schema": (), "check": ("--quick",), "plan": (), "status": (), "ls": (),
    "up": ("--detach",), "why": ("train/1",), "look": ("out", "--for", "1s"), "metrics": ("out/0",), "wait": ("--timeout", "0s"),
    "logs": ("train/1",), "stop": ("train/1",), "down": (), "hold": ("--because", EVIL), "release": (),
    "retry": ("train/0", "--because", EVIL), "redo": ("train/1", "--because", EVIL), "note": (EVIL,),
    "giveup": ("train/1", "--because", EVIL), "accept": ("train/0", "--because", EVIL), "flag": ("list",),
    "rename": ("seed", "9=10"), "adopt": ("out/*",), "report": ("--partial",), "trace": ("reports/partial/decision.md",),
    "verify": (), "record": (), "manifest": (), "pack": ("x.tar.gz",), "unpack": ("no.tar.gz",), "cost": ("--report",),
    "docs": ("audit", "text.md"), "edit": ("base.json", "--change", "lr@mul=2", "--reason", EVIL), "loop": ("explain", "x"),
    "gates": ("check",), "journal": ("fill", "--run", "out/0"), "shutdown": ("--dry-run",), "clean": (), "fsck": (),
}  # fmt: skip
DRAWN = ("up", "wait", "report", "manifest", "pack", "unpack")  # rich draws a bar with codes of its own

CAMPAIGN = f"""\
muster: 1
campaign: hostile
axes:
  seed:
    0: {{note: {IN_YAML}}}
    1: {{args: {IN_YAML}}}
env: {{TOLD: {IN_YAML}}}
slots: {{gpus: 0, cpus: 2}}
jobs:
  train:
    axes: [seed]
    command: [{sys.executable!r}, train.py, "{{seed}}", {IN_YAML}]
    output: out/{{seed}}
    results: {{score: {{json: result.json, key: score}}}}
    retry: {{max: 0}}
"""
TRAIN = """\
import json, os, pathlib, sys
EVIL = json.loads(os.environ["HOSTILE"])
out = pathlib.Path("out", sys.argv[1]); out.mkdir(parents=True, exist_ok=True)
with open(out / "metrics.jsonl", "w") as file:
    for step in range(3):
        print(json.dumps({"step": step, EVIL + "loss": step, "x": EVIL}), file=file)
(out / EVIL).write_text(EVIL)
os.close(os.open(os.fsencode(str(out)) + b"/raw-\\xff\\x9b", os.O_CREAT | os.O_WRONLY))
(out / "result.json").write_text(json.dumps({"score": 1.0, EVIL: EVIL}))
print(EVIL, flush=True)
print(EVIL, file=sys.stderr)
if sys.argv[1] == "1":
    raise RuntimeError("CUDA error " + EVIL)
"""
DRIVER = """\
import json, sys
from muster.faces.cli.common.entrypoint import run_command_line as leave
for words in json.loads(sys.stdin.readline()):
    print(f"\\0{json.dumps(words)}\\0", flush=True)
    code = leave(words)
    sys.stdout.flush(); sys.stderr.flush()
    print(f"\\0{code}\\0", flush=True)
"""
OWN = re.compile("\x1b\\[(?:0|" + "|".join(COLOUR_CODES.values()) + ")m|\x1b\\[G\x1b\\[K")
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def on_a_screen(
    calls: Sequence[Sequence[str]], camp: Camp, more: Mapping[str, str]
) -> list[tuple[list[str], str, int]]:
    """(words, what the screen got, exit code) of each call, all in one process at a pseudo terminal."""
    screen, theirs = pty.openpty()
    mode = termios.tcgetattr(theirs)
    mode[1] &= ~termios.OPOST  # \n stays \n
    termios.tcsetattr(theirs, termios.TCSANOW, mode)
    environment = {name: value for name, value in camp.environment.items() if name != "NO_COLOR"}
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER], stdin=subprocess.PIPE, stdout=theirs, stderr=theirs, cwd=camp.root,
        env=environment | {"TERM": "xterm"} | more, start_new_session=True,
    ) as driver:  # fmt: skip
        os.close(theirs)
        assert driver.stdin
        driver.stdin.write(json.dumps(calls).encode() + b"\n")
        driver.stdin.close()
        shown = b"".join(_pieces(screen))
    os.close(screen)
    assert driver.returncode == 0, shown
    parts = shown.decode().split("\0")
    assert len(parts) == 4 * len(calls) + 1, parts[-4:]
    return [(json.loads(parts[at]), parts[at + 1][1:], int(parts[at + 2])) for at in range(1, len(parts), 4)]


def _pieces(screen: int) -> Iterator[bytes]:
    while True:
        try:
            piece = os.read(screen, 1 << 16)
        except OSError:  # nobody is left at the other end
            return
        if not piece:
            return
        yield piece


@pytest.fixture
def hostile(camp: Camp) -> Camp:
    camp.write(CAMPAIGN)
    (camp.root / "train.py").write_text(TRAIN)
    (camp.root / "text.md").write_text(f"score 1.0 {EVIL} 2.0\n")
    (camp.root / "base.json").write_text(json.dumps({"lr": 1, EVIL: EVIL}))
    (camp.root / OUTSIDE).mkdir()
    camp.environment["HOSTILE"] = json.dumps(EVIL)
    camp("up", code=3)
    slots = Path(camp.environment["MUSTER_HOME"]) / "slots"
    (slots / "cpu7").write_text(json.dumps({"campaign": EVIL, "cell": EVIL, "n": 1, "token": ""}))
    return camp


def calls() -> Iterator[list[str]]:
    yield from ([*words] for words in (("note", EVIL), ("journal", "new"), ("hold", "--because", EVIL), ("status",)))
    yield ["release"]
    for name, arguments in ARGUMENTS.items():
        yield [name, *arguments]
        yield [name, *(["x"] if name == "demo" else []), EVIL]  # one folder more than it takes: nothing is run
        yield [name, f"--{EVIL}"]
    yield [EVIL]
    yield ["-C", EVIL, "status"]
    yield ["-C", OUTSIDE, "init", EVIL]


def test_every_command_prints_text_and_nothing_else(hostile: Camp) -> None:
    assert set(ARGUMENTS) == set(COMMANDS), "a new command: what does it print of a hostile run?"
    wrong: list[Any] = []
    found = on_a_screen(list(calls()), hostile, {})
    for words, shown, _ in found:
        left = OWN.sub("", shown)
        if words[0] in DRAWN:
            left = re.sub("\x1b\\[(?:\\?25[lh]|[12]?[AK]|[0-9;]*m)|\r", "", left)
        forged = words[0] != "logs" and re.search("(?m)^FORGED", shown)
        if (bad := UNSAFE.search(left)) or forged or "\x1b[32mGREEN" in shown:
            wrong.append((words, (bad and left[max(0, bad.start() - 80) : bad.end() + 40]) or shown))
        assert "Traceback" not in shown or words[0] in ("why", "logs"), shown
        assert "mistake in Muster" not in shown, (words, shown)
    assert not wrong, "\n\n".join(f"{words}: {shown!r}" for words, shown in wrong)
    said = "".join(shown for _, shown, _ in found)
    assert said.count("GREEN") > len(ARGUMENTS)  # it was there to be shown
    assert "\x1b[31m" in said  # and our own colours are


def test_json_pipes_and_poor_locales_are_served_too(hostile: Camp) -> None:
    asked = ("status", "why train/1", "metrics out/0", "logs train/1", "manifest", "check --quick", "record")
    for words, shown, _ in on_a_screen([[*each.split(), "--json"] for each in asked], hostile, {}):
        assert not UNSAFE.search(shown), words
        told = json.loads(shown)
        assert words[0] != "logs" or EVIL in told["text"]
    asked = ("status", "why train/1", "metrics out/0", "logs train/1", "manifest", "status --json")
    for poor in ({"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}):
        for words, shown, code in on_a_screen([each.split() for each in asked], hostile, poor):
            assert code in (0, 3), (words, shown)
            assert shown.isascii(), words
            assert not UNSAFE.search(OWN.sub("", shown)), words
    done = subprocess.run(
        [sys.executable, "-m", "muster", "logs", "train/1"], cwd=hostile.root, env=hostile.environment,
        capture_output=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout == (hostile.folder("train/1") / "stdout.log").read_bytes()
    assert b"\x1b[41m" in done.stdout
