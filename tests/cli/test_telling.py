"""What people are shown: every cell that is not done with its reason, grids that line up, starts and ends in a pipe."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from muster.app.campaign.campaign_status import build_status
from muster.faces.cli.common import status_view, terminal_output
from muster.faces.cli.common.terminal_output import is_utf8_stream
from muster.model.attempt import CellRecord
from muster.model.campaign import Axis, AxisValue, Campaign, Job
from muster.model.campaign_state import CampaignState, Intent
from muster.model.cell import list_campaign_cells
from support.camp import Camp

TWO_JOBS = """\
muster: 1
campaign: 两步
axes: {config: [a, b, c, d, e], seed: [0, 1]}
slots: {gpus: 0, cpus: 2}
jobs:
  train: {axes: [config, seed], command: "true"}
  eval: {axes: [config, seed], needs: [train], command: "true"}
  plots: {axes: [], needs: [eval], command: "true"}
"""
C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def named(output: str, count: int, state: str) -> str:
    """The line of a group."""
    (line,) = [line for line in output.splitlines() if f" {count} {state}" in line]
    return line


def told_of(output: str) -> int:
    """How many cells that are not done the lines below the legend speak of."""
    lines = [line for line in output.splitlines() if re.match(r"  [✘▶?·○‖—] ", line)]
    return sum(int(found[1]) if (found := re.match(r"  . (\d+) ", line)) else 1 for line in lines)


# -- status


def test_what_a_filter_leaves_out_is_named(camp: Camp) -> None:
    camp.write(TWO_JOBS)
    for shown in (camp("up", "--only", "seed=1", code=3).stdout, camp("status", code=3).stdout):
        left_out = named(shown, 5, "PENDING")
        assert "left out by --only seed=1: train/a/0, train/b/0" in left_out
        assert "Next: `muster up` without --only" in left_out
        blocked = named(shown, 5, "BLOCKED of eval")
        assert "need train/a/0, train/b/0" in blocked
        assert "left out by --only seed=1 too" in blocked
        assert "plots: BLOCKED, needs eval/a/0" in shown
        assert told_of(shown) == 11
        assert "stopped short: 11 cells are missing and nothing runs" in shown
        assert not [line for line in shown.splitlines() if line.endswith(" ")]


def test_held_and_given_up_cells_are_grouped_and_few_are_named(camp: Camp) -> None:
    camp.write(TWO_JOBS)
    camp("up", "--only", "job=train", "--only", "seed=0", "--only", "config=a", code=3)
    camp("giveup", "train/*", "--because", "no money", code=0)
    shown = camp("status", code=3).stdout
    given_up = named(shown, 9, "GIVEN_UP")
    assert "given up: no money: train/a/1" in given_up
    assert " and 1 more. Next: `muster retry`" in given_up
    assert "something they need was given up" in named(shown, 9, "BLOCKED of eval")
    camp("hold", "--because", "look first", code=0)
    assert "the campaign is held: look first: eval/a/0" in named(camp("status", code=3).stdout, 11, "HELD")
    camp("release", code=0)
    camp("giveup", "eval/*", "plots", "--because", "no money", code=0)
    assert "complete, with 20 cells given up" in camp("status", code=0).stdout
    camp("hold", "--because", "look first", code=0)
    assert "released; the campaign is complete" in camp("release", code=0).stdout


def test_one_cell_is_one_cell(camp: Camp) -> None:
    camp.write("muster: 1\ncampaign: one\nslots: {gpus: 0}\njobs: {train: {axes: [], command: 'false'}}\n")
    shown = camp("up", code=3).stdout
    assert "stopped short: 1 cell is missing" in shown
    assert "train  0/1  ✘\n" in shown
    assert "1 cell declared" in camp("plan", code=0).stdout


# -- grids


def status(configs: list[str], seeds: int) -> Any:
    axes = (
        Axis("config", tuple(AxisValue(name, name) for name in configs)),
        Axis("seed", tuple(AxisValue(str(n), n) for n in range(seeds))),
    )
    jobs = (Job("train", ("config", "seed"), ("true",)), Job("plots", (), ("true",)))
    campaign = Campaign("grids", axes, jobs)
    cells = {cell.id: CellRecord(cell, at) for at, cell in enumerate(list_campaign_cells(campaign))}
    state = CampaignState(campaign, "", "", Intent(), 0, cells=cells)
    return build_status(state, {}, Any, wall=0.0, boot=0.0, boot_id="")  # type: ignore[arg-type]


@pytest.fixture
def wide_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_view, "is_utf8_stream", lambda: True)
    monkeypatch.setattr(terminal_output, "is_utf8_stream", lambda *_: True)
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.mark.usefixtures("wide_characters")
def test_grids_line_up_with_wide_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = list(status_view.format_grids(status(["基线", "full"], 3)))
    assert lines == [
        "train  0/6   train/CONFIG/SEED",
        "   seed 0 1 2",
        "  基线  · · ·",
        "  full  · · ·",
        "",
        "plots  0/1  ·",
        "",
    ]
    assert len({terminal_output.display_width(line) for line in lines[1:4]}) == 1


@pytest.mark.usefixtures("wide_characters")
@pytest.mark.parametrize("columns", [20, 33, 80])
def test_columns_that_do_not_fit_are_wrapped(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = list(status_view.format_grids(status(["基线", "full"], 30)))[1:]
    table = lines[: lines.index("")]
    assert max(map(terminal_output.display_width, table)) <= columns
    heads = [line.split()[1:] for line in table if line.split()[0] == "seed"]
    assert [head for block in heads for head in block] == [str(n) for n in range(30)]
    assert len(heads) > 1
    assert sum(line.count("·") for line in table) == 60
    assert not [line for line in lines if line.endswith(" ")]


@pytest.mark.usefixtures("wide_characters")
def test_long_heads_are_cut_unless_they_would_look_the_same() -> None:
    assert terminal_output.cut_to_width("一二三四五六七", 12) == "一二三四五…"
    assert list(status_view._grid_column_heads(["a" * 20, "b"]).values()) == ["a" * 11 + "…", "b"]
    alike = ["the_same_beginning_1", "the_same_beginning_2"]
    assert list(status_view._grid_column_heads(alike).values()) == alike


def test_marks_stay_marks_while_rich_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    class StandIn:
        encoding = None

    real = sys.__stdout__
    monkeypatch.setattr(sys, "stdout", StandIn())
    assert is_utf8_stream() == (real is not None and real.encoding.lower().replace("-", "") == "utf8")


def test_the_live_view_has_marks(gated: Camp) -> None:
    gated.environment |= {"PYTHONUTF8": "1"}
    pid, screen = gated.on_a_terminal("up")
    shown = b""
    try:
        gated.started("train/0")
        gated.started("train/1")
        while "▶".encode() not in shown:
            shown += os.read(screen, 4096)
        os.write(screen, b"\x03")
    finally:
        os.waitpid(pid, 0)
        os.close(screen)


def test_a_name_that_the_locale_can_not_print(camp: Camp) -> None:
    camp.write(TWO_JOBS)
    camp.environment |= C_LOCALE
    assert "??: 21 of 21 cells done" in camp("up", code=0).stdout
    assert "D DONE 21" in camp("status", code=0).stdout
    assert camp.json("status", code=0)["campaign"] == "两步"
    assert "train/a/0" in camp("plan", code=0).stdout + camp("why", "train/a/0", code=0).stdout


# -- in a pipe


def test_starts_are_told_at_once_and_deaths_once(gated: Camp) -> None:
    following = gated.background("up")
    assert following.stdout is not None
    lines: list[str] = []
    while sum(": RUNNING, pid" in line for line in lines) < 2:
        lines.append(following.stdout.readline().decode())
    assert re.match(r"\d\d:\d\d:\d\d  0 of 4 cells done, 0 under way", lines[0])
    told = [re.match(r"\d\d:\d\d:\d\d  \S (train/\d) attempt 1: RUNNING", line) for line in lines[1:]]
    assert {found[1] for found in told if found} == {"train/0", "train/1"}  # which shim was quicker is nobody's promise
    gated.open(0)
    gated.open(1, "3")
    rest, said = following.communicate(timeout=60)
    shown = rest.decode()
    assert (following.returncode, said) == (3, b"")
    assert shown.count("train/1 attempt 1: DEAD(exit_code(3))") == 1
    assert shown.count("RUNNING") == 0
    assert "eval/1: BLOCKED, needs train/1" in shown.partition("train/SEED")[2]
    assert "stopped short: 2 cells are missing" in shown
    again = gated("up", code=3).stdout  # it was so before: no news, but still not done
    assert "under way" not in again
    assert again.count("train/1 attempt 1: DEAD(exit_code(3))") == 1


def test_orphans_are_told_with_what_to_do(camp: Camp) -> None:
    camp.gates("helper")
    camp.write("""
muster: 1
campaign: helper
slots: {gpus: 0, cpus: 2}
jobs: {train: {axes: [], command: "/bin/sh -c '(echo started; read x < gate-helper) & exit 0'"}}
""")
    following = camp.background("up")
    assert following.stdout is not None
    line = ""
    while "RUNNING(orphans)" not in line:
        line = following.stdout.readline().decode()
    assert re.search(r"pid \d+.*`muster stop train` ends them", line)
    camp("stop", "train", code=0)
    following.communicate(timeout=60)


# -- the command line


def test_bare_muster_is_help_and_nothing_else(camp: Camp) -> None:
    done = camp(code=2)
    assert "Usage" in done.stdout
    assert "adopt" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["status", "-C", "there"], "-C goes before the command: `muster -C DIR status ...`"),
        (["hold"], 'for example: muster hold --because "waiting for the new data"'),
        (["retry", "train/0"], "for example: muster retry train/v2_full/2 --because"),
        (["giveup", "train/0"], "for example: muster giveup train/v2_full/4 --because"),
    ],
)
def test_wrong_use_is_answered_with_the_right_one(camp: Camp, arguments: list[str], hint: str) -> None:
    assert hint in camp(*arguments, code=2).stderr


def test_the_command_that_is_shown_works(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mine, other = tmp_path / "mine" / "muster", tmp_path / "other" / "muster"
    for file in (mine, other):
        file.parent.mkdir()
        file.touch(0o755)
    monkeypatch.setattr(sys, "argv", [str(mine)])
    monkeypatch.setenv("PATH", str(mine.parent))
    assert terminal_output.find_muster_command() == "muster"
    monkeypatch.setenv("PATH", str(other.parent))
    assert terminal_output.find_muster_command() == str(mine)
    monkeypatch.setenv("PATH", "")
    assert terminal_output.find_muster_command() == str(mine)
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "muster" / "__main__.py")])
    assert terminal_output.find_muster_command() == f"{sys.executable} -P -m muster"


# -- cells that are gone from the file


def test_what_is_no_longer_declared_can_be_asked_for(gated: Camp) -> None:
    gated("up", "--detach", code=0)
    gated.open(0)
    gated.open(1, "4")
    gated("wait", "--timeout", "60s", code=3)
    gated.write((gated.root / "campaign.yaml").read_text().replace("[0, 1]", "[0]"))
    assert "2 cells that are no longer declared" in gated("up", code=0).stdout
    shown = gated("why", "train/1", code=0).stdout
    assert "train/1 is DEAD" in shown
    assert "no longer declared" in shown
    assert "next   nothing to do" in shown
    assert "exit_code(4)" in shown
    told = gated.json("why", "train/1", code=0)
    assert (told["verdict"], told["attempts"][0]["exit"]["code"]) == ("DEAD", 4)
    assert gated.json("why", "train/*", code=0)["cell"] == "train/0"
    assert gated("logs", "train/1", code=0).stdout == "started train/1\n"
    assert "it is not running" in gated("stop", "train/1", code=1).stdout
    gated("note", "it had diverged", "--cell", "train/1", code=0)
    assert "it had diverged" in gated("why", "train/1", code=0).stdout
    assert "there is no cell 'eval/1'" in gated("why", "eval/1", code=2).stderr  # it never ran


def test_stop_of_a_cell_that_waits(gated: Camp) -> None:
    gated("up", "--detach", "--only", "seed=0", code=0)
    gated.started("train/0")
    told = gated("stop", "train/1", code=1).stdout
    assert "it is not running, it is PENDING; `muster giveup train/1` or `muster hold` keeps it from starting" in told
    both = gated("stop", "train/0", "eval/0", code=1).stdout
    assert "eval/0: not stopped: it is not running, it is BLOCKED" in both
    assert "train/0: stopped" in both
    assert [d["cell"] for d in gated.decisions("stop")] == ["train/0"]


# -- accept


def test_accept_finds_the_attempt_whose_proof_holds(camp: Camp) -> None:
    """Attempt 1 finished all its work and did not end well; attempt 2 failed at once, attempt 3 too."""
    camp.write("""
muster: 1
campaign: again
axes: {seed: [0, 1]}
slots: {gpus: 0, cpus: 2}
jobs:
  train:
    axes: [seed]
    command: /bin/sh -c 'test {attempt} != 1 || echo weights > {out}/model.txt; exit 3'
    proof: {files: [model.txt]}
""")
    camp("up", code=3)
    for _ in range(2):
        camp("retry", "train/*", "--because", "perhaps now", code=0)
        camp("wait", "--timeout", "60s", code=3)
    refused = camp("accept", "train/0", "--attempt", "2", code=1).stdout
    assert "not accepted: its proof does not hold" in refused
    assert "it has no attempt 7; it has 3" in camp("accept", "train/0", "--attempt", "7", code=1).stdout
    assert "train/0: accepted (attempt 1 of 3), it counts as DONE" in camp("accept", "train/0", code=0).stdout
    assert "accepted (attempt 1 of 3)" in camp("accept", "train/1", "--attempt", "1", code=0).stdout
    assert [d["attempt"] for d in camp.decisions("accept")] == [1, 1]
    told = camp.json("why", "train/0", code=0)
    assert (told["verdict"], told["attempt"], told["attempts"][0]["accepted"]) == ("DONE", 1, "its proof holds")
    assert json.loads(camp("status", "--json", code=0).stdout)["complete"]


def test_accept_takes_work_whose_exit_was_lost(camp: Camp) -> None:
    """The shim was killed, the run finished all the same; the attempt after it failed."""
    camp.gates(0)
    camp.write("""
muster: 1
campaign: lost
axes: {seed: [0]}
slots: {gpus: 0}
jobs:
  train:
    axes: [seed]
    command: /bin/sh -c 'echo started; read x < gate-0; test $x != 0 || echo weights > {out}/model.txt; exit $x'
    proof: {files: [model.txt]}
""")
    camp("up", "--detach", code=0)
    camp.started("train/0")
    os.kill(json.loads((camp.folder("train/0") / "identity.json").read_text())["shim_pid"], signal.SIGKILL)
    camp.open(0)
    camp.until(lambda: camp.cells()["train/0"] == "DEAD")
    camp("retry", "train/0", "--because", "perhaps now", code=0)
    camp.started("train/0", 2)
    camp.open(0, "5")
    camp("wait", "--timeout", "60s", code=3)
    assert "accepted (attempt 1 of 2)" in camp("accept", "train/0", code=0).stdout
    assert camp.cells() == {"train/0": "DONE"}


def test_accept_says_why_none_holds(camp: Camp) -> None:
    camp.write("""
muster: 1
campaign: none
slots: {gpus: 0}
jobs: {train: {axes: [], command: "false", proof: {files: [model.txt]}}}
""")
    camp("up", code=3)
    camp("retry", "train", "--because", "perhaps now", code=0)
    camp("wait", "--timeout", "60s", code=3)
    assert "its proof does not hold" in camp("accept", "train", code=1).stdout
    assert camp.decisions("accept") == []
