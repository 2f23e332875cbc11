"""Red flags that only the files of a real campaign can raise: which step, which checkpoint, which unit."""

from __future__ import annotations

from typing import Any

from support.camp import Camp

TRAIN = """\
import json, random, sys
out, config, seed = sys.argv[1:]
random.seed(config + seed)
with open(f"{out}/metrics.jsonl", "w") as log:
    for step in range(0, 100, 10):
        print(json.dumps({"step": step, "eval/success": step / 200 + random.random() / 1000}), file=log)
for name in ("best", "last"):
    open(f"{out}/{name}.pt", "w").write(f"{config} {seed} {name}")
"""
EVAL = """\
import json, random, sys
out, config, seed, checkpoint = sys.argv[1:]
random.seed(config + seed)
success = 0.85 + random.random() / 20
json.dump({"success": success * 100 if (config, seed) == ("new", "2") else success}, open(f"{out}/result.json", "w"))
"""
CAMPAIGN = """\
muster: 1
campaign: flags
axes: {config: {base: {args: last}, new: {args: best}}, seed: [0, 1, 2]}
slots: {gpus: 0, cpus: 2}
jobs:
  train:
    axes: [config, seed]
    command: python3 train.py {out} {config} {seed}
    progress: [{jsonl: metrics.jsonl, step: step}]
  eval:
    axes: [config, seed]
    needs: [train]
    command: python3 eval.py {out} {config} {seed} {train.output}/{config.args}.pt
    results: {success: {json: result.json, key: success}}
decision: {primary: {metric: success, better: higher}, baseline: base, checkpoint: {best: success}}
"""


def flags(camp: Camp) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for flag in camp.json("report", code=3)["flags"]:
        found.setdefault(f"{flag['level']} {flag['code']}", []).extend(flag["cells"])
    return found


def test_the_step_the_checkpoint_and_the_unit(camp: Camp) -> None:
    (camp.root / "train.py").write_text(TRAIN)
    (camp.root / "eval.py").write_text(EVAL)
    camp.write(CAMPAIGN)
    camp("up", code=0)
    found = flags(camp)
    assert found["WARN best_at_an_end"] == [f"train/{config}/{seed}" for config in ("base", "new") for seed in range(3)]
    assert found["WARN best_and_last"] == [f"eval/base/{seed}" for seed in range(3)]
    assert found["ERROR mixed_units"] == ["eval/new/2"]
    told = (camp.root / "reports/decision.md").read_text()
    assert "some cells evaluated the best checkpoint, others the last: 3 x last, 3 x best" in told
    lines = enumerate(told.splitlines(), 1)
    line = next(at for at, line in lines if line.startswith("  - ") and "mixed units" in line)
    (claim,) = camp.json("trace", f"reports/decision.md:{line}", code=0)["claims"]
    assert claim["cells"] == ["eval/new/2"]


def test_a_cell_that_a_person_accepted_is_told_in_the_report(camp: Camp) -> None:
    camp.write("""\
muster: 1
campaign: accepted
axes: {config: [base, new], seed: [0, 1]}
slots: {gpus: 0, cpus: 2}
jobs:
  eval:
    axes: [config, seed]
    command: /bin/sh -c 'echo "{{\\"score\\":1.5{seed}$(($$ % 1000))}}" > {out}/result.json; test {config}{seed} != new1'
    results: {score: {json: result.json, key: score}}
    retry: {max: 0}
""")
    camp("up", code=3)
    camp("accept", "eval/new/1", "--because", "the exit code is that of the clean-up", code=0)
    camp("report", code=0)
    told = (camp.root / "reports/decision.md").read_text()
    assert "eval/new/1: DONE by the word of a person and not by the exit code." in told
    assert "accepted it: “the exit code is that of the clean-up”. [E" in told
