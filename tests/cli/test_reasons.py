"""What ends or settles more than one cell needs a reason: without it nothing happens, and the command to type is shown."""

from __future__ import annotations

import shlex

import pytest

from muster.app.campaign.verbs.choose_cells import NoReason, require_shared_reason
from muster.faces.cli.common.error_messages import command_with_reason
from muster.model.errors import UsageError
from support.camp import Camp

PROVEN = """\
muster: 1
campaign: proven
axes: {seed: [0, 1]}
slots: {gpus: 0, cpus: 2}
jobs:
  train:
    axes: [seed]
    command: /bin/sh -c 'echo whole > {out}/model.txt; exit 3'
    proof: {files: [model.txt]}
"""


def refused(camp: Camp, *arguments: str, cells: int = 2) -> list[str]:
    """The command is refused, the log is the same, and the hint is the command with a place for the reason."""
    log = camp.root / ".muster" / "decisions.jsonl"
    before = log.read_bytes()
    done = camp(*arguments, code=2)
    assert log.read_bytes()[len(before) :] == b""
    assert done.stdout == ""
    assert f"{cells} cells (" in done.stderr
    assert "nothing was changed" in done.stderr
    (hint,) = [line.partition("say why: ")[2] for line in done.stderr.splitlines() if "say why: " in line]
    words = shlex.split(hint)
    assert words == ["muster", *arguments, "--because", "..."]
    return [*words[1:-1], "the machine is needed"]


def test_stop_and_down_of_many(gated: Camp) -> None:
    gated("up", "--detach", code=0)
    pids = [gated.started("train/0"), gated.started("train/1")]
    refused(gated, "stop", "train/0", "train/1")
    refused(gated, "stop", "*", "--no-wait")
    refused(gated, "down", "--runs")
    assert "empty" in gated("down", "--runs", "--because", "...", code=2).stderr
    assert all(map(gated.alive, pids))
    assert gated.json("status")["intent"] == "running"

    assert gated("stop", "*/0", code=0).stdout.startswith("train/0: stopped")  # a glob that means one run is one
    assert [each["reason"] for each in gated.decisions("stop")] == ["asked by a person"]
    gated("retry", "train/0", "--because", "it was well", code=0)
    gated.started("train/0", 2)
    gated(*refused(gated, "down", "--runs"), code=0)
    assert not any(map(gated.alive, pids))
    told = "muster down --runs: the machine is needed"
    assert [each["reason"] for each in gated.decisions("stop")][1:] == [told, told]


def test_down_stops_one_run_without_a_reason(gated: Camp) -> None:
    gated.write((gated.root / "campaign.yaml").read_text().replace("[0, 1]", "[0]"))
    gated("up", "--detach", code=0)
    pid = gated.started("train/0")
    gated("down", "--runs", code=0)
    assert not gated.alive(pid)
    assert [each["reason"] for each in gated.decisions("stop")] == ["muster down --runs"]


def test_many_are_stopped_with_a_reason_and_without_a_controller(gated: Camp) -> None:
    gated("up", "--detach", code=0)
    gated.started("train/0")
    gated.started("train/1")
    gated("down", "--because", "the controller is not needed", code=0)
    assert gated.decisions("intent")[-1]["reason"] == "muster down: the controller is not needed"
    gated(*refused(gated, "stop", "train/*"), code=0)
    assert {each["reason"] for each in gated.decisions("stop")} == {"the machine is needed"}
    assert "nothing of it runs" in gated("stop", "*", code=0).stdout


def test_accept_and_giveup_of_many(camp: Camp) -> None:
    camp.write(PROVEN)
    camp("up", code=3)
    camp.until(lambda: camp.controller() is None)  # it has said its last word
    refused(camp, "accept", "*")
    assert camp.decisions("accept") == camp.decisions("giveup") == []
    done = camp("giveup", "train/*", code=2)
    assert "say why: muster giveup 'train/*' --because '...'; for example: muster giveup" in done.stderr
    assert camp.decisions("giveup") == []
    camp("accept", "*/0", code=0)
    assert [each["reason"] for each in camp.decisions("accept")] == ["its proof holds"]
    camp("giveup", "*", "--because", "one is enough", code=0)
    assert camp.cells() == {"train/0": "DONE", "train/1": "GIVEN_UP"}


@pytest.mark.parametrize(
    ("arguments", "typed"),
    [
        (["stop", "train/*/2"], "muster stop 'train/*/2' --because '...'"),
        (["-C", "my runs", "down", "--runs"], "muster -C 'my runs' down --runs --because '...'"),
        (["giveup", "--", "a", "b"], "muster giveup --because '...' -- a b"),
    ],
)
def test_the_command_to_type(arguments: list[str], typed: str) -> None:
    assert command_with_reason(arguments) == typed


def test_one_cell_has_the_usual_words() -> None:
    assert require_shared_reason("stopped", ["a"], None, "asked by a person") == "asked by a person"
    assert require_shared_reason("stopped", [], None, "asked by a person") == "asked by a person"
    assert require_shared_reason("stopped", ["a", "b"], " too  slow ", "") == "too slow"
    with pytest.raises(NoReason, match=r"2 cells \(a, b\) would be stopped"):
        require_shared_reason("stopped", ["a", "b"], None, "")
    with pytest.raises(UsageError, match="empty"):
        require_shared_reason("stopped", ["a"], "...", "")
