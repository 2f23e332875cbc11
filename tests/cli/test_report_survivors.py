"""Seeds that were declared and are not there any more stay in N, with what became of them."""

from __future__ import annotations

from typing import Any

from support.camp import Camp

# six of ten seeds of `new` survive and look better than `base`; the other four diverge
SURVIVOR = """\
import json, random, sys
out, config, seed = sys.argv[1:]
if config == "new" and seed in "2358":
    raise FloatingPointError(f"loss is nan at step 40 of seed {seed}")
random.seed(config + seed)
json.dump({"score": random.gauss({"base": 10.0, "new": 12.5}[config], 0.6)}, open(f"{out}/result.json", "w"))
"""
SURVIVORS = """\
muster: 1
campaign: survivor
axes: {config: [base, new], seed: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}
slots: {gpus: 0, cpus: 4}
jobs:
  eval:
    axes: [config, seed]
    command: python3 -S train.py {out} {config} {seed}
    results: {score: {json: result.json, key: score}}
decision: {primary: {metric: score, better: higher}, baseline: base, delta: 0.5}
"""
LEFT_OUT = (
    "    exclude: [{config: new, seed: 2}, {config: new, seed: 3}, {config: new, seed: 5}, {config: new, seed: 8}]\n"
)
DIED = [f"eval/new/{seed}" for seed in (2, 3, 5, 8)]
RATES = "new failed on 4 of 10 seeds, base on none (Fisher exact p = 0.087): a mean over the survivors is too good"

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


def test_seeds_that_died_can_not_be_edited_away(camp: Camp) -> None:
    (camp.root / "train.py").write_text(SURVIVOR)
    camp.write(SURVIVORS)
    camp("up", code=3)
    before = camp.json("report", code=3)
    assert before["verdict"] == "INCOMPLETE"
    assert [flag["message"] for flag in before["flags"] if flag["code"] == "failed_seeds"] == [RATES]

    assert "nothing was written; `muster why CELL` says what a dead one needs, " in camp("report", code=3).stdout

    camp.write(SURVIVORS.replace("    results:", LEFT_OUT + "    results:"))
    assert "nothing was written; `muster report --partial` stamps" in camp("report", code=3).stdout  # `up` brings none
    found = camp.json("report", code=3)
    assert (found["verdict"], found["k"], found["n"], found["missing"]) == ("INCOMPLETE", 16, 20, DIED)
    camp("report", "--partial", code=3)
    told = (camp.root / "reports/decision.PARTIAL-16of20.md").read_text()
    assert "| new | 6/10 |" in told
    assert RATES in told
    for kind in ("md", "tex"):
        assert RATES.partition(" (")[0] in (camp.root / f"reports/tables/main.PARTIAL-16of20.{kind}").read_text()
    defence = (camp.root / "reports/defence.PARTIAL-16of20.md").read_text()
    answer = defence.partition("Were seeds left out?")[2].partition("\n## ")[0]
    assert "Yes" in answer
    assert all(cell in answer for cell in DIED)
    assert "non_finite" in answer
    assert RATES in answer
    assert "That was declared in campaign.yaml" not in answer

    refused = camp("flag", "accept", "failed_seeds", "--because", "they look odd", code=1)
    assert "no word can clear it" in refused.stderr
    camp("up", code=0)  # taking the edit in changes nothing of it
    assert camp.json("report", code=3)["missing"] == DIED


def test_seeds_that_were_cut_from_the_axis_stay_in_n(camp: Camp) -> None:
    """Done or not: what was there when the first run began is counted."""
    (camp.root / "score.py").write_text(SCORE)
    camp.write(MIXED.replace("[0, 1, 2]", "[0, 1, 2, 3, 4, 5, 6]"))
    camp("up", "--only", "seed=0,1,2,3,4,5", code=3)
    camp.write(MIXED.replace("[0, 1, 2]", "[0, 1, 2, 3, 4]"))
    found = camp.json("report", code=3)
    assert (found["verdict"], found["k"], found["n"]) == ("INCOMPLETE", 10, 14)
    assert found["missing"] == ["eval/base/5", "eval/base/6", "eval/new/5", "eval/new/6"]
    assert flags(found)["WARN withdrawn"]["cells"] == ["eval/base/5", "eval/new/5"]
    assert flags(found)["WARN lost_seeds"]["cells"] == ["eval/base/6", "eval/new/6"]

    camp("flag", "accept", "lost_seeds", "--because", "the machine was given back before they could start", code=0)
    assert camp.json("report", code=3)["verdict"] == "INCOMPLETE"
    camp("flag", "accept", "withdrawn", "--because", "seed 5 was run on another driver", code=0)
    made = camp.json("report", code=0)
    assert (made["verdict"], made["k"], made["n"], made["missing"]) == ("RECOMMEND", 10, 14, found["missing"])
    told = (camp.root / "reports/decision.md").read_text()
    assert "| new | 5/7 |" in told
    assert "seed 5 was run on another driver" in told
    assert "PARTIAL" not in told
    table = (camp.root / "reports/tables/main.md").read_text()
    assert "2 cells were done and are taken out or lost again: eval/base/5" in table
    assert "seed 5 was run on another driver" in table
    assert "2 cells have no result, by causes that have nothing to do with it: eval/base/6: it never started" in table
    answer = (camp.root / "reports/defence.md").read_text().partition("Were seeds left out?")[2].partition("\n## ")[0]
    assert "Yes, and a person has said why: eval/base/5 (WITHDRAWN: it was DONE; withdrawn since)" in answer
    assert "the machine was given back" in answer
    camp("verify", code=0)
