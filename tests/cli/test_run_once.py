"""Jobs with `axes: []`: a person's own scripts, once, after all of what they need; with proof, results and retries."""

from __future__ import annotations

import json
import sys

import pytest

from support.camp import Camp

SPRINT = """\
muster: 1
campaign: sprint
axes: {seed: [0, 1]}
slots: {gpus: 0, cpus: 2}
jobs:
  train:
    axes: [seed]
    command: sh -c 'echo started; read word < gate-{seed}; echo {seed} > {out}/weights; exit $word'
    proof: {files: [weights]}
  eval:
    axes: [seed]
    needs: [train]
    command: cp {train.output}/weights {out}/score
    proof: {files: [score]}
  plots:
    axes: []
    needs: [eval]
    uses: {gpu: 0}
    command: PYTHON plots.py {out} {cell} {attempt}
    proof: {files: [main.txt]}
    results: {mean: {json: table.json, key: mean}}
"""
# finds what it needs as a person would: by asking
PLOTS = """\
import json, subprocess, sys
from pathlib import Path
out, cell, attempt = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
status = json.loads(subprocess.run([sys.executable, "-m", "muster", "status", "--json"], capture_output=True).stdout)
scores = [float(Path(c["output"], "score").read_text()) for c in status["cells"] if c["job"] == "eval"]
(out / "table.json").write_text(json.dumps({"mean": sum(scores) / len(scores), "n": len(scores)}))
if Path("draws").exists():
    (out / "main.txt").write_text(f"{cell} {attempt}: {scores}")
"""


@pytest.fixture
def sprint(camp: Camp) -> Camp:
    camp.write(SPRINT.replace("PYTHON", sys.executable))
    (camp.root / "plots.py").write_text(PLOTS)
    camp.gates(0, 1)
    return camp


def test_a_job_that_runs_once(sprint: Camp) -> None:
    planned = sprint.json("plan", code=0)
    assert (planned["declared"], [other["cell"] for other in planned["not"]]) == (5, ["eval/0", "eval/1", "plots"])
    assert "plots  0/1" in sprint("plan", code=0).stdout

    sprint("up", "--detach", code=0)
    sprint.open(0)
    sprint.until(lambda: sprint.cells()["eval/0"] == "DONE", "eval/0 is DONE")
    why = sprint.json("why", "plots")
    assert (why["verdict"], why["reason"]) == ("BLOCKED", "needs eval/1")
    assert why["needs"] == [{"cell": "eval/0", "verdict": "DONE"}, {"cell": "eval/1", "verdict": "BLOCKED"}]
    assert sprint("logs", "plots", code=1).stderr
    sprint.open(1)

    # it ran, and its own proof is missing: exit 0 alone is not DONE
    sprint("wait", code=3)
    assert sprint.cells() | {"plots": "DEAD"} == sprint.cells()
    assert sprint.json("why", "plots")["cause"] == "early_exit"
    (sprint.root / "draws").touch()
    sprint("retry", "plots", "--because", "the plot is drawn now", code=0)
    sprint("wait", code=0)

    done = sprint.json("why", "plots")
    assert (done["verdict"], done["attempt"], done["axes"]) == ("DONE", 2, {})
    assert (sprint.folder("plots", 2) / "out" / "main.txt").read_text() == "plots 2: [0.0, 1.0]"
    assert json.loads((sprint.folder("plots", 2) / "out" / "table.json").read_text()) == {"mean": 0.5, "n": 2}
    (settled,) = [d for d in sprint.decisions("settle") if d["cell"] == "plots" and d["attempt"] == 2]
    assert settled["data"]["outcome"]["results"] == {"mean": 0.5}
    assert "plots  1/1  ✔" in sprint("status", code=0).stdout
    header, row = (sprint.root / "reports" / "status" / "plots_status_latest.tsv").read_text().splitlines()
    assert (header.split("\t")[:2], row.split("\t")[:2]) == (["cell", "verdict"], ["plots", "DONE"])
    sprint("up", code=0)
    assert len(sprint.json("why", "plots")["attempts"]) == 2  # once is once


def test_it_can_not_start_when_something_it_needs_was_given_up(sprint: Camp) -> None:
    sprint("up", "--detach", code=0)
    sprint.open(0)
    sprint.open(1, "3")
    sprint("wait", code=3)
    sprint("giveup", "train/1", "eval/1", "--because", "diverges", code=0)
    why = sprint.json("why", "plots")
    assert (why["verdict"], why["next"]) == ("BLOCKED", "can't start: eval/1 was given up")
    sprint("giveup", "plots", "--because", "nothing to draw", code=0)
    assert sprint.json("status", code=0)["complete"]


@pytest.mark.parametrize(
    ("key", "value"),
    [("command", "cp {eval.output}/score {out}"), ("within", "env FROM={eval.output}"),
     ("artifacts", '["{eval.output}/*"]'), ("output", "'{eval.output}/plots'")],
)  # fmt: skip
def test_an_output_that_would_be_many_is_a_mistake_with_its_place(camp: Camp, key: str, value: str) -> None:
    text = SPRINT.replace("PYTHON plots.py {out} {cell} {attempt}", "ls")
    text = text.replace(
        "    command: ls\n",
        f"    command: {value}\n" if key == "command" else f"    command: ls\n    {key}: {value}\n",
    )
    camp.write(text)
    found = camp.json("check", code=2)
    (mistake,) = found["mistakes"]
    assert mistake["message"] == "{eval.output} stands for 2 folders: a cell of 'plots' needs 2 cells of 'eval'"
    assert "muster status --json" in mistake["hint"]
    assert text.splitlines()[mistake["line"] - 1].strip().startswith(f"{key}:")


def test_one_cell_has_one_output(camp: Camp) -> None:
    camp.write(SPRINT.replace("[0, 1]", "[7]").replace("PYTHON plots.py {out} {cell} {attempt}", "cp {eval.output}/score {out}/main.txt")
               .replace("\n    results: {mean: {json: table.json, key: mean}}", ""))  # fmt: skip
    camp.gates(7)
    camp("up", "--detach", code=0)
    camp.open(7)
    camp("wait", code=0)
    assert (camp.folder("plots") / "out" / "main.txt").read_text() == "7\n"
