"""`muster loop run` with a search and with a function of the user's, with real processes."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.camp import Camp

TRAIN = """\
import json, math, sys
config, out = json.load(open(sys.argv[1])), sys.argv[2]
if config.get("gate"):
    open(config["gate"]).read()
if config["opt"]["lr"] > 0.09:
    sys.exit(3)
loss = (math.log10(config["opt"]["lr"]) + 3) ** 2 + ((config["window"] - 7) / 3) ** 2
with open(f"{out}/metrics.jsonl", "w") as log:
    for step in range(5):
        log.write(json.dumps({"step": step, "loss": loss + 1 / (step + 1)}) + "\\n")
"""
CAMPAIGN = """\
muster: 1
campaign: search
slots: {gpus: 0, cpus: 2}
jobs:
  train: {axes: [], command: "python3 train.py {config_file} {out}", retry: {max: 0}}
loop:
  job: train
  base: [base.json]
  rounds: ROUNDS
  keep: {by: last("loss"), better: lower}
"""
SEARCH = """\
  search:
    space:
      opt.lr: {low: 1e-5, high: 1e-1, log: true}
      window: {low: 1, high: 10}
    trials_per_round: 4
    seed: 1
"""


@pytest.fixture
def loop(camp: Camp) -> Camp:
    (camp.root / "train.py").write_text(TRAIN)
    (camp.root / "base.json").write_text(json.dumps({"opt": {"lr": 0.05}, "window": 2}))
    return camp


def write(camp: Camp, proposer: str = SEARCH, rounds: int = 2) -> None:
    camp.write(CAMPAIGN.replace("ROUNDS", str(rounds)) + proposer)


def rounds(camp: Camp) -> list[dict[str, Any]]:
    lines = (camp.root / ".muster" / "decisions.jsonl").read_text().splitlines()
    return [each["data"] for each in map(json.loads, lines) if each["kind"] == "round"]


def loss(config: str) -> float:
    found = json.loads(Path(config).read_text())
    return float((math.log10(found["opt"]["lr"]) + 3) ** 2 + ((found["window"] - 7) / 3) ** 2)


@pytest.mark.slow  # tests/contract/test_proposers.py is its sibling in CI
def test_tpe_improves_over_four_rounds(loop: Camp) -> None:
    write(loop, rounds=5)
    loop("loop", "run")
    found = rounds(loop)
    assert [(each["round"], len(each.get("variants", []))) for each in found] == [
        (2, 4),
        (3, 4),
        (4, 4),
        (5, 4),
        (6, 0),
    ]
    losses = [[loss(str(loop.root / each["config"])) for each in one["variants"]] for one in found[:4]]
    assert min(map(min, losses)) < loss(str(loop.root / "base.json")) / 10
    assert min(losses[2] + losses[3]) < min(losses[0]), "what was learnt is better than what was drawn"
    variants = [each for one in found[:4] for each in one["variants"]]
    assert {(each["parent"], each["by"]) for each in variants} == {("base", "search:tpe")}
    assert {each["reason"] for each in found[0]["variants"]} == {"drawn at random, tpe begins with 5 scores"}
    assert all(each["reason"].startswith("tpe of ") for each in found[3]["variants"])
    assert all(each["edits"][0].startswith("opt.lr@set=") for each in variants)
    assert all(isinstance(json.loads((loop.root / each["config"]).read_text())["window"], int) for each in variants)
    told = loop("loop", "explain", "base", code=0).stdout
    assert 'scored: last("loss") = ' in told
    _the_study_has_it_all(loop, len(variants))


def _the_study_has_it_all(loop: Camp, count: int) -> None:
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    storage = JournalStorage(JournalFileBackend(str(loop.root / ".muster" / "loop" / "optuna.log")))
    study = optuna.load_study(study_name="loop", storage=storage)
    dead = [cell for cell, state in loop.cells().items() if state == "DEAD"]
    states = [trial.state.name for trial in study.trials]
    assert (len(states), states.count("FAIL")) == (count + 1, len(dead))
    assert study.best_trial.user_attrs["variant"] in {cell.removeprefix("train/") for cell in loop.cells()}
    assert study.best_value == pytest.approx(min(t.value for t in study.trials if t.value is not None))


@pytest.mark.slow  # tests/contract/test_proposers.py is its sibling in CI
def test_a_search_that_is_killed_proposes_the_same_again(loop: Camp, tmp_path: Path) -> None:
    """Held after round 1, so that nobody else proposes; and without the study: the decisions are the truth."""
    write(loop)
    loop.gates("0")
    (loop.root / "base.json").write_text(json.dumps({"opt": {"lr": 0.05}, "window": 2, "gate": "gate-0"}))
    loop("up", "--detach", code=0)
    loop("hold", "--because", "to look", code=0)
    loop.open("0")
    loop.until(lambda: loop.cells() == {"train/base": "DONE"} and loop.controller() is None)
    first = loop.json("loop", "propose", code=0)["proposed"]
    plain = dict(loop.environment)
    loop.environment |= {"MUSTER_CRASH_AT": "round.written", "MUSTER_CRASH_ONCE": str(tmp_path / "once")}
    assert loop("loop", "propose", "--take").returncode == -9
    loop.environment = plain
    study = loop.root / ".muster" / "loop" / "optuna.log"
    study.unlink()
    loop("loop", "propose", "--take", code=0)
    (only,) = rounds(loop)
    assert [{**each, "config": str(loop.root / each["config"])} for each in only["variants"]] == first
    assert len(first) == 4
    assert {path.name for path in (loop.root / "loop" / "round-2").iterdir()} == {
        f"{each['name']}.json" for each in first
    }
    assert study.exists()


def test_a_function_of_ones_own(loop: Camp) -> None:
    write(loop, '  propose: "mine.py:propose"\n')
    (loop.root / "mine.py").write_text(
        "def propose(run):\n    print('looking')\n    run['config']['window'] = 6\n"
        "    return [{'config': run['config'], 'reason': f\"loss {run['metrics']['loss']['last']:.2f}\"}]\n"
    )
    loop("loop", "run", code=0)
    (only,) = rounds(loop)[0]["variants"]
    assert (only["edits"], only["by"], only["reason"]) == (["window@set=6"], "mine.py:propose", "loss 5.86")
    told = loop.json("loop", "explain", "base", code=0)
    assert [(each["outcome"], each["edits"]) for each in told["rules"]] == [("proposed", ["window@set=6"])]
    assert not list(loop.root.glob("__pycache__"))


def test_a_function_that_fails_is_told_by_its_line(loop: Camp) -> None:
    write(loop, '  propose: "mine.py:propose"\n')
    (loop.root / "mine.py").write_text(
        "def propose(run):\n    return helper(run)\n\ndef helper(run):\n    return 1 / 0\n"
    )
    loop("loop", "run")
    done = loop("loop", "propose", code=1)
    assert "mine.py, line 5" in done.stderr
    assert "ZeroDivisionError: division by zero" in done.stderr
    assert "Traceback" not in done.stderr
    assert rounds(loop) == []
    (loop.root / "mine.py").write_text("def propose(run):\n    return [{'edit': 'window@set=3', 'reason': 'fixed'}]\n")
    loop("up", code=0)
    assert [each["reason"] for each in rounds(loop)[0]["variants"]] == ["fixed"]


@pytest.mark.parametrize(
    ("proposer", "said"),
    [
        (SEARCH.replace("opt.lr", "optimizer.lr"), "campaign.yaml:13:21: error: base: optimizer.lr matches nothing in the config"),
        ('  propose: "mine.py:proposed"\n', "campaign.yaml:11:12: error: mine.py has no function proposed"),
        ('  propose: "other.py:propose"\n', "other.py can't be read: No such file or directory"),
        ('  propose: "nowhere.rules:propose"\n', "there is no module nowhere.rules"),
    ],
)  # fmt: skip
def test_mistakes_before_anything_runs(loop: Camp, proposer: str, said: str) -> None:
    (loop.root / "mine.py").write_text("def propose(run):\n    return []\n")
    write(loop, proposer)
    for words in (("check",), ("up",)):
        done = loop(*words, code=2)
        assert said in done.stdout + done.stderr
    assert not (loop.root / ".muster" / "decisions.jsonl").exists()


def test_without_optuna_it_says_what_to_install(loop: Camp) -> None:
    write(loop)
    (loop.root / "site").mkdir()
    (loop.root / "site" / "sitecustomize.py").write_text(
        "import importlib.util as u\nreal = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'optuna' else real(name, *more)\n"
    )
    loop.environment |= {"PYTHONPATH": str(loop.root / "site")}
    done = loop("up", code=2)
    assert "loop.search needs the package optuna, which is not installed" in done.stderr
    assert "pip install 'optuna>=4.2,<6'" in done.stderr
    assert not (loop.root / ".muster" / "decisions.jsonl").exists()


def test_optuna_is_imported_only_where_it_is_used(loop: Camp) -> None:
    write(loop, "  default: {edit: [window@add=1], reason: mild}\n")
    loop("loop", "run", code=0)
    code = (
        "import sys\nfrom muster.faces.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print([name for name in ('optuna', 'sqlalchemy') if name in sys.modules], file=sys.stderr)\n"
    )
    for words in (["status"], ["loop", "propose"], ["loop", "explain", "base"]):
        done = subprocess.run([sys.executable, "-c", code, "-C", str(loop.root), *words], capture_output=True, text=True,
                              env=loop.environment)  # fmt: skip
        assert done.stderr.splitlines()[-1] == "[]", done.stderr
