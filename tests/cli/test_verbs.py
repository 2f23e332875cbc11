"""The verbs a person has, on real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from muster.faces.cli.common.command_line import COMMANDS
from muster.model.errors import UsageError
from muster.text.sentences import parse_duration
from support.camp import Camp

PROVEN = """\
muster: 1
campaign: proven
axes: {seed: [0, 1, 2]}
slots: {gpus: 0, cpus: 2}
jobs:
  train:
    axes: [seed]
    command: /bin/sh -c 'test {seed} = 1 || echo weights > {out}/model.txt; exit 3'
    proof: {files: [model.txt]}
  eval:
    axes: [seed]
    needs: [train]
    command: /bin/true
"""

VERBS = ("why", "wait", "logs", "stop", "down", "hold", "release", "retry", "giveup", "accept", "note", "manifest")


# -- why


def test_why_tells_the_whole_story_of_a_dead_cell(gated: Camp) -> None:
    gated("up", "--detach", code=0)
    gated.started("train/0")
    running = gated("why", "train/0", code=0).stdout
    assert "train/0 is RUNNING" in running
    assert "start ticks match" in running
    assert "It is alive" in running
    blocked = gated("why", "eval/0", code=0).stdout
    assert "eval/0 is BLOCKED" in blocked
    assert "train/0  RUNNING" in blocked

    gated.open(0, "7")
    gated.ended("train/0")
    gated.until(lambda: gated.cells()["train/0"] == "DEAD")
    gated("note", "look at this", "--cell", "train/0", code=0)
    gated("accept", "train/0", code=1)
    gated("retry", "train/0", "--because", "tried by hand", code=0)
    gated.started("train/0", 2)
    gated("retry", "train/0", "--because", "too early", code=1)

    text = gated("why", "train/0", code=0).stdout
    assert "attempt 1: DEAD, exit_code(7) (proven)" in text
    assert "exit code 7" in text
    assert "attempt 2: RUNNING" in text
    assert "started because: exit_code(7); a person asked: tried by hand" in text
    assert str(gated.folder("train/0", 2) / "stdout.log") in text
    assert "note, look at this" in text
    assert "retry, too early  REFUSED: it is running and can't be retried" in text

    gated.open(0, "8")
    gated.ended("train/0", 2)
    gated.until(lambda: gated.cells()["train/0"] == "DEAD")
    dead = gated("why", "train/0", code=0).stdout
    assert "| trouble of train/0" in dead
    assert "muster retry" in dead


def test_why_of_a_cell_that_is_not_there(gated: Camp) -> None:
    assert "has not been started" in gated("why", "train/0", code=2).stderr
    gated("up", "--detach", code=0)
    assert "did you mean train/0" in gated("why", "trian/0", code=2).stderr
    assert "'train/*' fits 2 cells" in gated("why", "train", code=2).stderr
    told = gated.json("why", "train/*", code=0)
    assert [each["cell"] for each in told] == ["train/0", "train/1"]
    assert gated.json("why", "train/[0]", code=0)["cell"] == "train/0"


def test_reading_revives_a_controller_that_died(gated: Camp) -> None:
    gated.environment["MUSTER_GUARD"] = "off"
    gated("up", "--detach", code=0)
    gated.started("train/0")
    pid = gated.until(gated.controller)
    os.kill(pid, signal.SIGKILL)
    gated.until(lambda: not gated.alive(pid))
    gated("why", "train/0", code=0)
    assert gated.until(gated.controller) != pid


# -- wait


def test_wait_until_the_time_is_up_then_stuck_then_complete(gated: Camp) -> None:
    gated("up", "--detach", code=0)
    gated.started("train/0")
    late = gated.json("wait", "--timeout", "0.2s", code=4)
    assert late["counts"]["RUNNING"] >= 1
    assert "still going on" in gated("wait", "--timeout", "0.1s", code=4).stdout
    waiting = gated.background("wait", "--json")
    gated.open(0)
    gated.open(1, "5")
    out, _ = waiting.communicate(timeout=60)
    assert waiting.returncode == 3
    assert json.loads(out)["counts"]["DEAD"] == 1
    gated("giveup", "train/1", "eval/1", "--because", "enough seen", code=0)
    assert gated.json("wait", code=0)["complete"] is True


@pytest.mark.parametrize(
    ("text", "expected"), [("90s", 90), ("10m", 600), ("2h", 7200), ("1h30m", 5400), ("0.5s", 0.5)]
)
def test_durations(text: str, expected: float) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize("text", ["5", "1.5", "soon", "", "-3s", "3 weeks"])
def test_durations_that_are_none(text: str) -> None:
    with pytest.raises(UsageError):
        parse_duration(text)


def test_a_bare_number_is_asked_for_its_unit(gated: Camp) -> None:
    assert "add the unit: 5s, 5m or 5h" in gated("wait", "--timeout", "5", code=2).stderr


# -- logs


def test_logs_follow_to_the_end_byte_by_byte(camp: Camp) -> None:
    camp.gates(0)
    camp.write(r"""
muster: 1
campaign: bytes
axes: {seed: [0]}
slots: {gpus: 0, cpus: 1}
jobs:
  train:
    axes: [seed]
    command: >-
      /bin/sh -c 'echo started; echo no >&2; read x < gate-0; echo lost; true > {out}/../stdout.log; echo after the cut'
  eval: {axes: [seed], needs: [train], command: /bin/true}
""")
    camp("up", "--detach", code=0)
    camp.started("train/0")
    assert "has not run yet" in camp("logs", "eval/0", code=1).stderr
    assert camp("logs", "train/0", code=0).stdout == "started\n"
    assert camp("logs", "train/*", "--err", code=0).stdout == "no\n"
    assert camp.json("logs", "train/0")["text"] == "started\n"
    assert "it has attempts 1 to 1" in camp("logs", "train/0", "--attempt", "2", code=2).stderr
    assert "2 cells, and one is needed" in camp("logs", "*", code=2).stderr

    left = camp.background("logs", "train/0", "-f")
    assert left.stdout is not None
    assert left.stdout.readline() == b"started\n"
    left.send_signal(signal.SIGINT)
    assert left.communicate(timeout=20) == (b"", b"")
    assert left.returncode == 0

    following = camp.background("logs", "train/0", "-f")
    assert following.stdout is not None
    assert following.stdout.readline() == b"started\n"
    camp.open(0)
    rest, said = following.communicate(timeout=30)
    assert rest.endswith(b"after the cut\n")
    assert (following.returncode, said) == (0, b"")


def test_logs_pass_bytes_through(camp: Camp) -> None:
    camp.write(r"""
muster: 1
campaign: bytes
axes: {}
slots: {gpus: 0, cpus: 1}
jobs:
  one: {axes: [], command: "/bin/sh -c 'printf \"a\\\\000\\\\377\\\\r\\\\nz\"'"}
""")
    camp("up", code=0)
    shown = camp.background("logs", "one").communicate(timeout=30)
    assert shown == (b"a\x00\xff\r\nz", b"")


# -- stop and down


def test_stop_ends_the_whole_tree_and_says_so(camp: Camp) -> None:
    camp.gates(0, 1)
    camp.write("""
muster: 1
campaign: tree
axes: {seed: [0, 1]}
slots: {gpus: 0, cpus: 2}
jobs:
  train:
    axes: [seed]
    command: /bin/sh -c 'echo started; /bin/sh -c "echo \\$$ > child-{seed}; read x < gate-{seed}"; true'
""")
    camp("up", "--detach", code=0)
    main = camp.started("train/0")
    child = int(camp.until(lambda: (f := camp.root / "child-0").exists() and f.read_text().strip()))
    assert child != main
    told = camp("stop", "train/0", "--because", "wrong rate", code=0).stdout
    assert told.startswith("train/0: stopped after")
    assert not camp.alive(main)
    assert not camp.alive(child)
    cells = camp.json("why", "train/*")
    assert (cells[0]["verdict"], cells[0]["cause"]) == ("DEAD", "user_stop")
    assert cells[1]["verdict"] == "RUNNING"
    assert [d["reason"] for d in camp.decisions("stop")] == ["wrong rate"]
    assert "it is not running" in camp("stop", "train/0", code=1).stdout
    camp("stop", "train/*", "--no-wait", code=0)
    camp.ended("train/1")
    camp.until(lambda: camp.cells()["train/1"] == "DEAD")
    assert "nothing of it runs" in camp("stop", "*", code=0).stdout
    assert "name the cells" in camp("stop", code=2).stderr


def test_down_leaves_the_runs_alone_and_stop_still_works(gated: Camp) -> None:
    gated("up", "--detach", code=0)
    pids = [gated.started("train/0"), gated.started("train/1")]
    controller = gated.until(gated.controller)
    told = gated("down", code=0).stdout
    assert not gated.alive(controller)
    assert "2 runs were left alone and live on: train/0, train/1" in told
    assert all(map(gated.alive, pids))
    again = gated("down", code=0).stdout
    assert "down already" in again
    assert "2 runs" in again

    assert gated("stop", "train/0", code=0).stdout.startswith("train/0: stopped")  # there is no controller
    assert not gated.alive(pids[0])
    assert gated.alive(pids[1])
    assert gated.cells()["train/0"] == "DEAD"
    gated.open(1)
    gated.ended("train/1")
    assert gated.cells()["train/1"] == "DONE"  # seen, though nobody has recorded it
    assert "the campaign is down" in gated("retry", "train/0", "--because", "right rate now", code=0).stdout
    assert gated.controller() is None

    gated("up", "--detach", code=0)
    gated.started("train/0", 2)
    assert [d["data"]["retry_cause"] for d in gated.decisions("start") if d["cell"] == "train/0"] == [
        None,
        "user_stop; a person asked: right rate now",
    ]


def test_down_with_runs_starts_nothing_in_the_freed_slots(camp: Camp) -> None:
    camp.gates(0, 1, 2, 3)
    camp.write("""
muster: 1
campaign: more_cells_than_slots
axes: {seed: [0, 1, 2, 3]}
slots: {gpus: 0, cpus: 2}
jobs:
  train: {axes: [seed], command: "/bin/sh -c 'echo started; read x < gate-{seed}'"}
""")
    camp("up", "--detach", code=0)
    pids = [camp.started("train/0"), camp.started("train/1")]
    told = camp("down", "--runs", "--because", "enough", code=0).stdout
    assert not any(map(camp.alive, pids))
    assert "train/0: stopped" in told
    assert "train/1: stopped" in told
    assert camp.controller() is None
    assert camp.json("status", code=3)["counts"] | {"DEAD": 2, "PENDING": 2} == camp.json("status")["counts"]
    assert len(camp.decisions("start")) == 2
    assert "down already" in camp("down", "--runs", "--because", "enough", code=0).stdout


def test_what_the_campaign_file_has_forgotten_can_be_stopped(gated: Camp) -> None:
    gated("up", "--detach", code=0)
    gated.started("train/0")
    pid = gated.started("train/1")
    gated.write((gated.root / "campaign.yaml").read_text().replace("[0, 1]", "[0]"))
    gated("up", "--detach", code=0)
    assert "train/1" not in gated.cells()
    assert "there is no cell 'train/1'" in gated("retry", "train/1", "--because", "it is gone", code=2).stderr
    assert gated("logs", "train/1", code=0).stdout == "started train/1\n"
    assert gated("stop", "train/1", code=0).stdout.startswith("train/1: stopped")
    assert not gated.alive(pid)
    assert gated.cells()["train/0"] == "RUNNING"


def test_a_helper_left_behind_needs_a_word_and_no_second_attempt(camp: Camp) -> None:
    camp.gates("helper")
    camp.write("""
muster: 1
campaign: helper
axes: {}
slots: {gpus: 0, cpus: 2}
jobs:
  train:
    axes: []
    command: /bin/sh -c '(echo started; read x < gate-helper) & exit 0'
""")
    camp("up", "--detach", code=0)
    camp.ended("train")
    camp.until(lambda: camp.json("status")["cells"][0]["kind"] == "orphans")
    assert "`muster stop train` ends them" in camp("accept", "train", code=1).stdout
    assert "had ended: DONE" in camp("stop", "train", code=0).stdout
    assert camp.cells() == {"train": "DONE"}
    assert len(camp.decisions("start")) == 1


# -- hold and release


def test_hold_keeps_everything_from_starting(gated: Camp) -> None:
    gated("up", "--detach", code=0)
    gated.started("train/0")
    assert gated("hold", code=2).returncode == 2
    assert "empty" in gated("hold", "--because", "  ", code=2).stderr
    assert "2 running cells go on" in gated("hold", "--because", "look, do not rerun", code=0).stdout
    gated.open(0)
    gated.open(1, "4")
    gated.ended("train/1")
    status = gated.json("wait", code=3)
    assert status["intent"] == "held"
    gated.until(lambda: gated.controller() is None)
    assert "starts only after `muster release`" in gated("retry", "train/1", "--because", "fixed", code=0).stdout
    assert gated("up", "--detach", code=3).stdout == ""
    assert len(gated.decisions("start")) == 2

    assert "it goes on" in gated("release", code=0).stdout
    gated.open(1)
    assert gated.json("wait", code=0)["complete"]
    assert "the campaign is not held" in gated("release", code=1).stderr


def test_release_returns_to_what_was_before(gated: Camp) -> None:
    gated("up", "--detach", code=0)
    gated("down", "--runs", "--because", "enough", code=0)
    gated("hold", "--because", "wait for Anna", code=0)
    assert "down already" in gated("down", code=0).stdout
    assert "down as it was before" in gated("release", code=0).stdout
    assert gated.controller() is None


# -- retry, giveup, accept


def test_decisions_are_refused_cell_by_cell(gated: Camp) -> None:
    gated("up", "--detach", code=0)
    gated.open(0)
    gated.open(1, "9")
    gated("wait", "--timeout", "60s", code=3)
    assert "Missing option" in gated("retry", "train/1", code=2).stderr
    assert "empty" in gated("giveup", "train/1", "--because", "", code=2).stderr
    assert gated.decisions("retry") == gated.decisions("giveup") == []
    told = gated("giveup", "train/0", "train/1", "eval/*", "--because", "diverges", code=1).stdout
    assert "train/0: not given up: it is DONE" in told
    assert "train/1: given up" in told
    assert "eval/0" not in told  # a glob means those it can be about
    assert gated.cells() == {"train/0": "DONE", "train/1": "GIVEN_UP", "eval/0": "DONE", "eval/1": "GIVEN_UP"}
    assert gated("status").returncode == 0
    assert "can be accepted now" in gated("accept", "*", code=1).stderr
    gated("retry", "*/1", "--because", "once more", code=0)
    gated.open(1)
    assert gated.json("wait", code=0)["counts"]["DONE"] == 4
    assert gated.json("why", "train/1")["attempts"][1]["retry_cause"] == "exit_code(9); a person asked: once more"


def test_accept_reads_the_proof_again(camp: Camp) -> None:
    camp.write(PROVEN)
    camp("up", code=3)
    assert camp.cells()["train/0"] == "DEAD"
    assert "`muster accept train/0` takes them" in camp("why", "train/0").stdout
    assert "its proof does not hold" in camp("accept", "train/1", code=1).stdout
    (camp.folder("train/2") / "out" / "model.txt").unlink()  # held when it ended, and does not any more
    told = camp("accept", "train/*", "--because", "teardown only", code=1).stdout
    assert "train/0: accepted" in told
    assert "train/2: not accepted: its proof does not hold" in told
    assert camp.json("wait", code=3)["counts"]["DONE"] == 2  # eval/0 has started and is done
    cell = camp.json("why", "train/0")
    assert (cell["verdict"], cell["attempts"][0]["verdict"]) == ("DONE", "DEAD")
    assert cell["attempts"][0]["accepted"] == "teardown only"
    assert "it is DONE already" in camp("accept", "train/0", code=1).stdout


def test_accept_without_a_proof(gated: Camp) -> None:
    gated("up", "--detach", code=0)
    gated.started("train/0")
    assert "it is running and can't be accepted" in gated("accept", "train/0", code=1).stdout
    assert "no attempt to accept" in gated("accept", "eval/0", code=1).stdout
    gated.open(0, "2")
    gated.ended("train/0")
    assert "nothing that could hold" in gated("accept", "train/0", code=1).stdout
    assert gated.decisions("accept") == []


# -- note and manifest


def test_note_keeps_the_line_it_points_at(gated: Camp) -> None:
    gated("up", "--detach", code=0)
    (gated.root / "run.log").write_text("fine\nloss is nan\n")
    for wrong in ("run.log:3", "run.log", "none.log:1", "run.log:0", "run.log:x"):
        gated("note", "nan", "--evidence", wrong, code=2)
    gated("note", "nan", "--cell", "train/9", code=2)
    gated("note", " ", code=2)
    assert gated.decisions("note") == []
    gated("note", "nan from here on", "--cell", "train/0", "--evidence", "run.log:2", code=0)
    gated("note", "a quiet day", code=0)
    pointed = {"file": "run.log", "line": 2, "text": "loss is nan"}
    assert [(d["cell"], d["reason"], d["data"]) for d in gated.decisions("note")] == [
        ("train/0", "nan from here on", {"evidence": pointed}),
        (None, "a quiet day", {}),
    ]
    assert gated.json("why", "train/0")["decisions"][-1]["evidence"] == {**pointed, "file": str(gated.root / "run.log")}
    assert "loss is nan" in gated("why", "train/0").stdout


def test_manifest_lists_what_is_there_and_nothing_else(camp: Camp) -> None:
    runs = camp.root / "runs"
    runs.mkdir()
    camp.write("""
muster: 1
campaign: files
axes: {seed: [0]}
slots: {gpus: 0, cpus: 1}
jobs:
  inside: {axes: [seed], command: "/bin/sh -c 'echo 12345 > {out}/result.txt'"}
  outside:
    axes: [seed]
    command: /bin/sh -c 'mkdir runs/run_{seed}; echo 1 > runs/run_{seed}/a; echo 1 > runs/plot_{seed}.txt'
    output: runs/run_{seed}
    artifacts: ["../plot_{seed}.txt"]
""")
    (runs / "mine.txt").write_text("a person's own file")
    camp("up", code=0)
    entries = {entry["path"]: entry for entry in camp.json("manifest", code=0)}
    assert all(Path(path).is_absolute() and os.path.lexists(path) for path in entries)
    there = {str(path) for path in (camp.root / ".muster").rglob("*") if not path.is_dir()}
    assert there <= set(entries)
    result = entries[str(camp.folder("inside/0") / "out" / "result.txt")]
    assert (result["bytes"], result["kind"], result["cell"]) == (6, "output", "inside/0")
    assert entries[str(runs / "run_0" / "a")]["kind"] == "output"
    assert entries[str(runs / "plot_0.txt")]["kind"] == "artifact"
    assert entries[str(camp.folder("inside/0") / "exit.json")]["kind"] == "attempt"
    assert entries[str(camp.root / ".muster" / "campaign.db")]["kind"] == "state"
    assert {str(runs / "mine.txt"), str(camp.root / "campaign.yaml")}.isdisjoint(entries)
    text = camp("manifest", code=0).stdout
    assert all(path in text for path in entries)


# -- help


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(verb: str) -> None:
    assert verb in COMMANDS
    done = subprocess.run([sys.executable, "-m", "muster", verb, "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    assert "Example:" in done.stdout
    assert f"muster {verb}" in done.stdout.partition("Example:")[2]
