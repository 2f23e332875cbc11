"""A mistake in `results:` or `proof:` is fixed in the file and read again. Every run counts itself: none runs twice."""

from __future__ import annotations

import subprocess

import pytest

from support.camp import Camp

MISREAD = """\
muster: 1
campaign: misread
axes: {{seed: [0, 1]}}
slots: {{gpus: 0, cpus: 2}}
jobs:
  train:
    axes: [seed]
    command: sh t.sh {{seed}} {{out}}{more}
    {read}
"""
WRONG = "results: {acc: {json: r.json, key: val.acc}}"
RIGHT = "results: {acc: {json: r.json, key: acc}}"


@pytest.fixture
def misread(camp: Camp) -> Camp:
    (camp.root / "t.sh").write_text('echo $1 >> count\necho "{\\"acc\\": 0.$1, \\"loss\\": 1.5}" > $2/r.json\n')
    camp.write(MISREAD.format(read=WRONG, more=""))
    camp("up", code=3)
    assert set(camp.cells().values()) == {"DEAD"}
    return camp


def test_a_campaign_that_failures_held_goes_on_by_the_mended_file(camp: Camp) -> None:
    """Nobody has to release it first: the rest would start by the file that everything died of."""
    (camp.root / "t.sh").write_text('echo $1 >> count\necho "{\\"acc\\": 0.$1}" > $2/r.json\n')
    text = MISREAD.replace("[0, 1]", "[0, 1, 2, 3, 4, 5, 6, 7]").replace("cpus: 2", "cpus: 1")
    camp.write(text.format(read=WRONG, more=""))
    assert "`muster up` if you fixed campaign.yaml" in camp("up", code=3).stdout
    assert executions(camp) == 5
    assert "held" in camp("up", code=3).stderr  # nothing was fixed
    camp.write(text.format(read=RIGHT, more=""))
    told = camp("up", code=0).stdout
    assert "released: campaign.yaml was changed since the campaign was held" in told
    assert "5 cells whose proof holds now" in told
    assert executions(camp) == 8
    (release,) = camp.decisions("release")
    assert release["data"]["held_for"].startswith("the last 5 cells all died")
    camp("hold", "--because", "look first", code=0)
    camp.write(text.format(read=RIGHT.replace("acc}", "acc, min: 0}"), more=""))
    assert "look first" in camp("up", code=3).stderr  # a person's hold is a person's to end


def executions(camp: Camp) -> int:
    return len((camp.root / "count").read_text().split())


def test_the_mended_file_is_enough_and_nothing_runs(misread: Camp) -> None:
    why = misread("why", "train/0").stdout
    assert "fix `proof:` or `results:` in campaign.yaml, and `muster up` reads it again" in why
    misread.write(MISREAD.format(read=RIGHT.replace("acc}", "accu}"), more=""))  # fixed, and wrong again
    assert "`muster up` reads it again" in misread("plan").stdout
    told = misread("up", code=3).stdout
    assert "2 cells whose proof was read again and does not hold" in told
    (first, _) = misread.json("status")["cells"]
    assert "has no 'accu'" in first["reason"]
    assert "val.acc" not in first["reason"]

    misread.write(MISREAD.format(read=RIGHT, more=""))
    told = misread("up", code=0).stdout
    assert "2 cells whose proof holds now that it was read again: they are DONE, and nothing was run" in told
    assert executions(misread) == 2
    status = misread.json("status")
    assert status["complete"]
    assert {cell["reason"].partition(",")[0] for cell in status["cells"]} == {"exit 0 and its proof holds"}
    assert not any(cell["outdated"] for cell in status["cells"])
    (attempt,) = misread.json("why", "train/0")["attempts"]
    assert (attempt["verdict"], attempt["reread"]["holds"]) == ("DEAD", True)
    read = misread.decisions("reread")
    assert [each["data"]["holds"] for each in read] == [False, False, True, True]
    assert all(each["data"]["evidence"] and each["data"]["campaign"] for each in read)
    report = misread.json("report")
    assert [row["values"] for row in report["table"]] == [[0.0, 0.1]]
    assert "DONE without another run" in misread("record", "--out", "-").stdout
    misread("up", code=0)
    assert executions(misread) == 2
    misread("down")
    assert "differences to the rebuilt one: 0" in misread("fsck", code=0).stdout
    assert set(misread.cells().values()) == {"DONE"}


def test_a_campaign_file_in_git_is_no_reason_to_train_again(misread: Camp) -> None:
    """It is part of the dirty diff: to fix it changes the identity of the code."""
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@t"]
    for words in (["init", "-q"], ["add", "campaign.yaml", "t.sh"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], cwd=misread.root, check=True, capture_output=True)
    misread.write(MISREAD.format(read=RIGHT.replace("acc}", "accu}"), more=""))
    misread("up", code=3)
    assert executions(misread) == 2
    misread.write(MISREAD.format(read=RIGHT, more=""))
    misread("up", code=0)
    assert executions(misread) == 2


def test_a_changed_command_is_another_matter(misread: Camp) -> None:
    """What was run is not what is declared now: it runs, as it always did."""
    misread.write(MISREAD.format(read=RIGHT, more=" --again"))
    misread("up", code=0)
    assert executions(misread) == 4
    assert not misread.decisions("reread")


def test_a_metric_that_is_declared_later_is_read_from_what_is_there(misread: Camp) -> None:
    misread.write(MISREAD.format(read=RIGHT, more=""))
    misread("up", code=0)
    misread.write(MISREAD.format(read=RIGHT.replace("}}", "}, loss: {json: r.json, key: loss}}"), more=""))
    misread("up", code=0)
    rows = {row["metric"]: row["values"] for row in misread.json("report")["table"]}
    assert rows == {"acc": [0.0, 0.1], "loss": [1.5, 1.5]}
    assert executions(misread) == 2
