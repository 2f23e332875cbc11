"""What a row of a report stands for: every seed that was declared, and one definition for all of them."""

from __future__ import annotations

import subprocess
from typing import Any

from support.camp import Camp

SCORE = """\
import json, random, sys
out, gain, seed = sys.argv[1:]
random.seed(seed)
json.dump({"score": random.gauss(float(gain), 0.3)}, open(f"{out}/result.json", "w"))
"""
MIXED = """\
muster: 1
campaign: mixed
axes:
  config: {base: {args: "5.0"}, new: {args: "7.0"}}
  seed: [0, 1, 2]
slots: {gpus: 0, cpus: 4}
jobs:
  eval:
    axes: [config, seed]
    command: python3 -S score.py {out} {config.args} {config}{seed}
    results: {score: {json: result.json, key: score}}
decision: {primary: {metric: score, better: higher}, baseline: base, delta: 0.5}
"""


def flags(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {f"{flag['level']} {flag['code']}": flag for flag in found["flags"]}


def test_one_row_has_one_definition(camp: Camp) -> None:
    (camp.root / "score.py").write_text(SCORE)
    camp.write(MIXED)
    camp("up", code=0)
    camp.write(MIXED.replace("7.0", "9.0").replace("[0, 1, 2]", "[0, 1, 2, 3, 4]"))
    camp("up", code=0)
    found = camp.json("report")
    assert found["verdict"] == "INVALID"
    flag = flags(found)["ERROR mixed_definitions"]
    assert flag["cells"] == [f"eval/new/{seed}" for seed in range(3)]
    assert "`7.0`" in flag["message"]
    assert "`9.0`" in flag["message"]
    assert "new, seeds 0, 1, 2" in flag["message"]
    assert "new, seeds 3, 4" in flag["message"]
    assert "muster redo --outdated" in flag["message"]
    told = (camp.root / "reports/decision.md").read_text()
    assert "`mixed_definitions`" in told
    shown = camp("status").stdout
    assert "3 of them outdated" in shown
    assert "eval/new/0, eval/new/1, eval/new/2" in shown


def test_status_names_cells_that_ended_before_a_result_was_declared(camp: Camp) -> None:
    (camp.root / "score.py").write_text(SCORE)
    camp.write(MIXED)
    camp("up", code=0)
    assert "was declared" not in camp("status", code=0).stdout
    camp.write(MIXED.replace("key: score}}", "key: score}, cost: {json: result.json, key: cost}}"))
    camp("up", code=0)
    shown = camp("status", code=0).stdout
    assert "6 DONE before `cost` was declared: eval/base/0, " in shown
    assert "`muster report` looks for it in their files" in shown
    assert camp.json("report")["verdict"] == "INCOMPLETE"
    camp.write(MIXED.replace("key: score}}", "key: score}, cost: {json: result.json, key: score}}"))
    camp("up", code=0)
    assert "6 DONE before `cost` was declared" in camp("status", code=0).stdout
    assert camp.json("report")["verdict"] != "INCOMPLETE"
    assert "was declared" not in camp("status", code=0).stdout, "it was found: the line of the report is enough"


def test_a_row_of_which_one_seed_ran_under_a_new_name_has_two_commands(camp: Camp) -> None:
    """The command says `{config}`, and what a trainer makes of another name nobody knows. A rename alone is no run."""
    (camp.root / "score.py").write_text(SCORE)
    camp.write(MIXED)
    camp("up", code=0)
    camp("rename", "config", "base=plain", code=0)
    assert "mixed_definitions" not in str(camp.json("report")["flags"])
    camp("redo", "eval/plain/0", "--because", "look again", code=0)
    camp("wait", code=0)
    found = camp.json("report", code=3)
    assert found["verdict"] == "INVALID"
    flag = flags(found)["ERROR mixed_definitions"]
    assert flag["cells"] == ["eval/plain/1", "eval/plain/2"]
    assert "`base{seed}` for plain, seeds 1, 2, and `plain{seed}` for plain, seed 0" in flag["message"]
    camp("redo", "eval/plain/1", "eval/plain/2", "--because", "the same command for all", code=0)
    camp("wait", code=0)
    assert "mixed_definitions" not in str(camp.json("report")["flags"])


def git(camp: Camp, *words: str) -> None:
    named = ["-c", "user.name=me", "-c", "user.email=me@home"]
    subprocess.run(["git", *named, *words], cwd=camp.root, check=True, capture_output=True)


def test_code_that_changed_between_the_seeds_of_a_table(camp: Camp) -> None:
    """Documents are no code; a commit that changes the script is another one."""
    (camp.root / "score.py").write_text(SCORE)
    (camp.root / "notes.md").write_text("first\n")
    (camp.root / ".gitignore").write_text(".muster/\nreports/\n")
    git(camp, "init", "-q")
    git(camp, "add", "score.py", "notes.md", ".gitignore")
    git(camp, "commit", "-qm", "one")
    camp.write(MIXED)
    camp("up", code=0)
    (camp.root / "notes.md").write_text("second\n")
    git(camp, "commit", "-qam", "two")
    camp.write(MIXED.replace("[0, 1, 2]", "[0, 1, 2, 3]"))
    camp("up", code=0)
    found = flags(camp.json("report", code=0))
    assert "WARN mixed_commits" in found
    assert not [name for name in found if name.startswith("ERROR")]
    (camp.root / "score.py").write_text(SCORE.replace("0.3", "0.4"))
    git(camp, "commit", "-qam", "three")
    camp.write(MIXED.replace("[0, 1, 2]", "[0, 1, 2, 3, 4]"))
    camp("up", code=0)
    made = camp.json("report", code=3)
    assert made["verdict"] == "INVALID"
    flag = flags(made)["ERROR mixed_sources"]
    assert flag["cells"] == ["eval/base/4", "eval/new/4"]
    assert flag["message"] == "eval: 2 cells were made by other code than the rest: score.py differs"
