"""A run that leaves a FIFO, a socket, a device or a folder where a file belongs; and lines that make a pattern explode."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

ODD = """\
import os, socket, sys
role, kind, out = sys.argv[1:]
os.chdir(out)
name = {"json": "r.json", "csv": "r.csv", "npz": "r.npz", "proof": "last.pt", "steps": "m.jsonl"}[role]
if kind == "fifo":
    os.mkfifo(name)
elif kind == "zero":
    os.symlink("/dev/zero", name)
elif kind == "folder":
    os.mkdir(name)
else:
    socket.socket(socket.AF_UNIX).bind(name)
"""
NAMED = {"fifo": "a FIFO", "zero": "a device", "socket": "a socket", "folder": "Is a directory"}
ROLES = {
    "json": "results: {x: {json: r.json, key: x}}",
    "csv": "results: {x: {csv: r.csv, key: x}}",
    "npz": "results: {x: {npz: r.npz, key: x}}",
    "proof": "proof: {checkpoint: {path: last.pt}}",
    "steps": "steps: 10\n    progress: [{jsonl: m.jsonl, step: step}]\n    proof: {step: {min: '{steps}'}}",
}


def job(role: str, what: str) -> str:
    return (
        f"  {role}:\n    axes: [kind]\n    command: python odd.py {role} {{kind}} {{out}}\n"
        f"    retry: {{max: 0}}\n    {what}\n"
    )


def campaign(jobs: str, kinds: str) -> str:
    return f"muster: 1\ncampaign: odd\naxes: {{kind: [{kinds}]}}\nslots: {{gpus: 0, cpus: 4}}\njobs:\n{jobs}"


def evidence(camp: Any, cell: str) -> str:
    return str(camp("why", cell).stdout)


@pytest.mark.parametrize(
    ("roles", "kinds"),
    [(("json", "npz"), "fifo, zero"), (("csv", "proof"), "fifo, zero"), (("json", "steps"), "folder, fifo")],
)  # five deaths in a row would hold the rest
def test_every_cell_ends_and_says_what_lies_there(camp: Any, roles: tuple[str, ...], kinds: str) -> None:
    (camp.root / "odd.py").write_text(ODD)
    camp.write(campaign("".join(job(role, ROLES[role]) for role in roles), kinds))
    camp("up", code=3)
    assert set(camp.cells().values()) == {"DEAD"}
    for role in roles:
        for kind in kinds.split(", "):
            told = evidence(camp, f"{role}/{kind}")
            assert NAMED[kind] in told or (role, kind) == ("steps", "folder"), (role, kind, told)


def test_what_a_living_run_left_hangs_neither_stop_nor_down(camp: Any) -> None:
    """The run goes on; its progress is read meanwhile."""
    (camp.root / "odd.py").write_text(ODD + "print('started', flush=True)\nimport time\ntime.sleep(600)\n")
    camp.write(campaign(job("steps", ROLES["steps"]), "fifo, zero, socket"))
    assert camp("up", "--detach").returncode == 0
    for kind in ("fifo", "zero", "socket"):
        camp.started(f"steps/{kind}")
    camp.until(lambda: NAMED["fifo"] in evidence(camp, "steps/fifo"), "that its progress is read")
    began = time.monotonic()
    camp("stop", "steps/fifo", "--because", "to see whether it ends", code=0)
    assert camp.cells()["steps/fifo"] == "DEAD"
    camp("down", "--runs", "--because", "to see whether they end", code=0)
    assert set(camp.cells().values()) == {"DEAD"}
    assert time.monotonic() - began < 60


PATTERN = "(?:a+)+b([0-9]+)"
LINES = "print('started', flush=True)\nprint('a' * 46, flush=True)\n"


def test_a_pattern_that_explodes_stops_nobody(camp: Any) -> None:
    """`check` warns of it; status, why and stop answer; the other cell and its controller go on."""
    (camp.root / "run.py").write_text(LINES + "import sys, time\ntime.sleep(600 * int(sys.argv[1]))\n")
    camp.write(
        "muster: 1\ncampaign: slow\naxes: {seed: [0, 1]}\nslots: {gpus: 0, cpus: 4}\njobs:\n"
        "  train:\n    axes: [seed]\n    command: python run.py 1\n    steps: 10\n"
        f"    progress: [{{stdout: '{PATTERN}'}}]\n    proof: {{step: {{min: '{{steps}}'}}}}\n"
        "  quick:\n    axes: [seed]\n    command: python run.py 0\n"
    )
    warned = [each for each in camp.json("check")["warnings"] if "more ways than a machine can" in each["message"]]
    assert [(each["line"], each["path"]) for each in warned] == [(10, "jobs.train.progress.0.stdout")]
    assert camp("up", "--detach").returncode == 0
    camp.started("train/0")
    told = camp.until(lambda: _if("too slow", evidence(camp, "train/0")), "that the pattern is given up")
    assert PATTERN in told
    assert camp.cells()["train/0"] in ("RUNNING", "QUIET", "UNKNOWN")  # never taken for dead
    camp.until(lambda: camp.cells()["quick/0"] == "DONE", "the controller, which goes on")
    camp("stop", "train/*", "--because", "to see whether they end", code=0)
    assert camp.cells()["train/1"] == "DEAD"


def _if(part: str, text: str) -> str:
    return text if part in text else ""


@pytest.mark.parametrize("kind", ["fifo", "zero"])
def test_what_a_person_names_is_refused_with_its_kind(camp: Any, kind: str) -> None:
    """A file of a repository that is none: nothing waits for it."""
    import os

    path: Path = camp.root / "odd"
    if kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    for words in (
        ["adopt", "--status-tsv", "odd", "--dry-run"], ["metrics", "odd"], ["gates", "replay", "odd", "--rules", "odd"],
        ["edit", "odd", "a=1"], ["docs", "bind", "odd"],
    ):  # fmt: skip
        camp.write("muster: 1\ncampaign: c\njobs: {t: {command: 'true'}}\n")
        done = camp(*words)
        assert done.returncode in (1, 2, 3), (words, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
