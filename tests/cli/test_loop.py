"""`muster loop` with real processes: rounds to the end, a dead run, no history, stop conditions, a proposer that is killed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from muster.files.crash_points import ROUND_POINTS
from support.camp import Camp

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "schemas" / "loop.schema.json").read_text())
TRAIN = """\
import json, sys
config, out = json.load(open(sys.argv[1])), sys.argv[2]
if config.get("gate"):
    open(config["gate"]).read()
if config.get("dies"):
    sys.exit(3)
if not config.get("silent"):
    with open(f"{out}/metrics.jsonl", "w") as log:
        for step in range(20):
            row = {"step": step, "ot": {"pi_sum": config["reg"] / 10}, "eval/success": config["reg"] / 3}
            log.write(json.dumps(row) + "\\n")
"""
CAMPAIGN = """\
muster: 1
campaign: rounds
slots: {gpus: 0, cpus: 2}
jobs:
  train: {axes: [], command: "python3 train.py {config_file} {out}", retry: {max: 0}}
loop:
  job: train
  base: ["configs/*.json"]
  rounds: 3
  rules:
    - {when: last("ot.pi_sum") < 0.05, edit: ["reg@mul=1.5"], reason: mass too small, name: little}
  default: {edit: ["lam@mul=0.9"], reason: mild}
"""


@pytest.fixture
def loop(camp: Camp) -> Camp:
    (camp.root / "configs").mkdir()
    (camp.root / "train.py").write_text(TRAIN)
    camp.write(CAMPAIGN)
    base(camp, "a", reg=0.2)
    base(camp, "b", reg=0.9)
    return camp


def base(camp: Camp, name: str, **values: Any) -> None:
    (camp.root / "configs" / f"{name}.json").write_text(json.dumps({"reg": 0.5, "lam": 1.0, **values}))


def rounds(camp: Camp) -> list[dict[str, Any]]:
    """What was decided about rounds, in order."""
    lines = (camp.root / ".muster" / "decisions.jsonl").read_text().splitlines()
    return [each["data"] for each in map(json.loads, lines) if each["kind"] == "round"]


def tried(camp: Camp) -> dict[str, Any]:
    """Every variant's config by its cell."""
    found = {}
    for each in rounds(camp):
        found.update(
            {one["name"]: json.loads((camp.root / one["config"]).read_text()) for one in each.get("variants", [])}
        )
    return found


def checked(told: Any, name: str) -> Any:
    Draft202012Validator({"$defs": SCHEMA["$defs"], "$ref": f"#/$defs/{name}"}).validate(told)
    return told


def test_three_rounds_to_the_end(loop: Camp) -> None:
    loop("loop", "run", code=0)
    found = rounds(loop)
    assert [(each["round"], len(each.get("variants", [])), each.get("stopped")) for each in found] == [
        (2, 2, None), (3, 2, None), (4, 0, "all 3 rounds are done"),
    ]  # fmt: skip
    assert sorted(each["reg"] for each in tried(loop).values()) == [0.3, 0.45, 0.9, 0.9]
    assert {cell: state for cell, state in loop.cells().items() if state != "DONE"} == {}
    assert len(loop.cells()) == 6
    for each in found[0]["variants"]:
        assert (loop.root / "loop" / "round-2" / f"{each['name']}.json").read_text()
        assert each["parent"] in ("a", "b")
    told = checked(loop.json("loop", "explain", "train/a", code=0), "explain")
    assert [(each["rule"], each["outcome"]) for each in told["rules"]] == [
        ("little", "proposed"),
        ("default", "unneeded"),
    ]
    assert 'last("ot.pi_sum") = 0.02 < 0.05: true' in loop("loop", "explain", "a", code=0).stdout
    assert "`muster loop run --rounds 4` runs it" in loop("loop", "propose", code=0).stdout
    loop("loop", "run", "--rounds", "4", code=0)
    assert [each["round"] for each in rounds(loop)] == [2, 3, 4, 4, 5]


def test_propose_writes_and_starts_nothing(loop: Camp) -> None:
    loop.write(CAMPAIGN.replace("rounds: 3", "rounds: 1"))
    loop("loop", "run", code=0)
    loop.write(CAMPAIGN)
    before = (loop.root / ".muster" / "decisions.jsonl").read_bytes()
    told = checked(loop.json("loop", "propose", code=0), "propose")
    assert (told["stopped"], len(told["proposed"])) == (None, 2)
    assert len((loop.root / "loop" / "round-2.txt").read_text().split()) == 2
    assert (loop.root / ".muster" / "decisions.jsonl").read_bytes() == before


def test_a_dead_run_and_one_without_a_history_stop_nobody(loop: Camp) -> None:
    base(loop, "c", dies=True)
    base(loop, "d", silent=True)
    loop.write(CAMPAIGN.replace("rounds: 3", "rounds: 2"))
    loop("loop", "run", code=3)
    (second, last) = rounds(loop)
    assert sorted(each["parent"] for each in second["variants"]) == ["a", "b"]
    assert last["stopped"] == "all 2 rounds are done"
    assert loop.cells()["train/c"] == "DEAD"
    told = checked(loop.json("loop", "explain", "train/c", code=0), "explain")
    assert told["runs"][0]["verdict"] == "DEAD"


def test_no_proposals_are_explained(loop: Camp) -> None:
    base(loop, "a", silent=True)
    base(loop, "b", dies=True)
    loop("loop", "run", code=3)
    (only,) = rounds(loop)
    assert only["stopped"].startswith(
        "no proposals because 2 of 2 runs left no readable history: train/a: nothing that"
    )


def test_repeats_are_seeds(loop: Camp) -> None:
    repeated = CAMPAIGN.replace("rounds: 3", "rounds: 2\n  repeats: 2")
    loop.write(repeated)
    assert "campaign.yaml:10:12: error: all 2 runs of a variant would be the same run" in loop("up", code=2).stderr
    loop.write(repeated.replace("{out}", "{out} {seed}"))
    loop("loop", "run", code=0)
    assert sorted(loop.cells())[:2] == ["train/a/0", "train/a/1"]
    assert len(loop.cells()) == 8
    assert loop("loop", "explain", "train/a", code=0).stdout == loop("loop", "explain", "a", code=0).stdout


@pytest.mark.parametrize(
    "point", [ROUND_POINTS[0], *(pytest.param(each, marks=pytest.mark.slow) for each in ROUND_POINTS[1:])]
)
def test_a_proposer_that_is_killed_repeats_and_loses_nothing(loop: Camp, point: str, tmp_path: Path) -> None:
    """Held after round 1, so that nobody else proposes."""
    loop.write(CAMPAIGN.replace("rounds: 3", "rounds: 2"))
    loop.gates("0")
    base(loop, "b", reg=0.9, gate="gate-0")
    loop("up", "--detach", code=0)
    loop("hold", "--because", "to look", code=0)
    loop.open("0")
    loop.until(lambda: loop.cells() == {"train/a": "DONE", "train/b": "DONE"} and loop.controller() is None)
    plain = dict(loop.environment)
    loop.environment |= {"MUSTER_CRASH_AT": point, "MUSTER_CRASH_ONCE": str(tmp_path / "once")}
    assert loop("loop", "propose", "--take").returncode == -9
    loop.environment = plain
    loop("loop", "propose", "--take")  # somebody tries again, not knowing how far it came
    assert [each["round"] for each in rounds(loop) if each.get("variants")] == [2]
    loop("release", code=0)
    loop("up", "--detach", code=0)
    loop.open("0")
    loop("wait", "--timeout", "60s", code=0)
    assert sorted(each["reg"] for each in tried(loop).values()) == [0.3, 0.9]
    assert sorted(path.name for path in (loop.root / "loop" / "round-2").iterdir() if path.suffix == ".json") == sorted(
        f"{name}.json" for name in tried(loop)
    )
    assert len(loop.cells()) == 4


def test_rules_that_could_not_work_are_told_before_anything_runs(loop: Camp) -> None:
    rules = '    - {when: last("x") > 1, edit: ["regg@mul=2"], reason: r, name: little}\n  default'
    loop.write(CAMPAIGN.replace("  default", rules))
    for words in (("check",), ("up",)):
        told = loop(*words, code=2).stderr
        assert "campaign.yaml:12:68: error: rule 1 is called little, too\n    fix: give it another name" in told
        assert "campaign.yaml:12:36: error: regg matches nothing in the config (in every base)" in told
    assert not (loop.root / ".muster" / "decisions.jsonl").exists()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("loop", "rnu"), 2, "did you mean `muster loop run`?"), (("loop",), 2, "say what to do: propose, run, explain or report"),
        (("loop", "explain", "train/x"), 2, "train/x"), (("loop", "run", "--rounds", "0"), 2, "--rounds"),
    ],
)  # fmt: skip
def test_wrong_use_is_told(loop: Camp, words: tuple[str, ...], code: int, said: str) -> None:
    loop.write(CAMPAIGN.replace("rounds: 3", "rounds: 1"))
    loop("up", code=0)
    done = loop(*words, code=code)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_campaign_without_a_loop(camp: Camp) -> None:
    camp.write("muster: 1\ncampaign: c\njobs: {t: {command: /bin/true}}\nslots: {gpus: 0}\n")
    assert "this campaign has no loop" in camp("loop", "run", code=2).stderr
    assert not (camp.root / ".muster").exists()


PRINTS = """\
import json, sys
config = json.load(open(sys.argv[1]))
for step in range(4):
    print(f"step: {step} loss: {config['reg']}", flush=True)
"""


def test_what_runs_print_is_what_the_loop_sees(loop: Camp) -> None:
    """A trainer that writes no file at all: `muster metrics` and the loop look at the same history."""
    (loop.root / "train.py").write_text(PRINTS)
    rules = 'last("ot.pi_sum") < 0.05'
    loop.write(CAMPAIGN.replace(rules, 'last("loss") < 0.5').replace("rounds: 3", "rounds: 2"))
    loop("loop", "run", code=0)
    second, last = rounds(loop)
    assert sorted((each["parent"], each["by"]) for each in second["variants"]) == [("a", "little"), ("b", "default")]
    assert last["stopped"] == "all 2 rounds are done"
    (source,) = {each["format"] for each in loop.json("metrics", "train/a", code=0)["sources"]}
    assert source == "stdout"


# -- one more variant, by a person


EDIT = ("edit", "configs/a.json", "--change", "reg@mul=3", "--reason", "a person's idea", "--run")


def variants(camp: Camp) -> dict[str, Any]:
    return {each["name"]: each for each in camp.json("loop", "report", code=0)["variants"]}


def test_edit_runs_one_variant_and_nothing_else(loop: Camp) -> None:
    told = loop.json(*EDIT, code=0)
    (cell,) = told["cells"]
    name = Path(told["path"]).stem
    assert (cell["cell"], cell["verdict"]) == (f"train/{name}", "DONE")
    assert loop.cells() == {f"train/{name}": "DONE", "train/a": "PENDING", "train/b": "PENDING"}
    assert rounds(loop) == [], "no round is proposed while others of it were left out"
    loop("loop", "run", code=0)  # goes on as if it had been there from the beginning
    assert set(loop.cells().values()) == {"DONE"}
    found = variants(loop)[name]
    assert (found["by"], found["reason"], found["edits"]) == ("a person", "a person's idea", ["reg@mul=3"])
    assert found["parent"] == "a"
    assert loop.json("why", f"train/{name}", code=0)["attempt_count"] == 1


@pytest.mark.slow  # in CI: its siblings here, and tests/unit/test_next_round.py
def test_edit_joins_a_campaign_that_is_going_on(loop: Camp) -> None:
    gate = loop.root / "gate"
    os.mkfifo(gate)
    base(loop, "a", reg=0.2, gate=str(gate))
    loop("loop", "run", "--rounds", "1", "--detach", code=0)
    told = loop(*EDIT[:-1], "--change", "gate@set=", "--run", code=0).stdout
    assert "1 cell more; the campaign goes on" in told
    gate.open("w").close()
    loop("wait", code=0)
    assert sorted(loop.cells().values()) == ["DONE"] * 3
    assert rounds(loop)[-1]["stopped"] == "the one round is done", "the rounds that were asked for stay"


def test_edit_after_the_last_round(loop: Camp) -> None:
    """The loop was over and stays so; its report has the new run."""
    loop("loop", "run", "--rounds", "1", code=0)
    name = Path(loop.json(*EDIT, code=0)["path"]).stem
    told = loop.json("status", code=0)
    assert (told["complete"], told["counts"]["DONE"]) == (True, 3)
    assert told["loop"]["stopped"] == "the one round is done"
    written = json.loads((loop.root / "reports/loop/summary.json").read_text())
    assert {each["name"] for each in written["variants"]} == {"a", "b", name}
    again = loop(*EDIT, code=2).stderr
    assert "this very config was run already, as a_" in again


@pytest.mark.parametrize("dies", [True, False])
def test_edit_tells_of_a_death_and_of_a_detour(loop: Camp, dies: bool) -> None:
    if dies:
        base(loop, "a", reg=0.2, dies=False)
        loop("edit", "configs/a.json", "--change", "dies@set=true", "--reason", "r", "--run", code=3)
        assert "DEAD" in loop.cells().values()
    else:
        loop("edit", "configs/a.json", "--change", "nothing@mul=2", "--reason", "r", "--run", code=2)
        loop.write(CAMPAIGN.partition("loop:")[0].replace("{config_file} ", ""))
        told = loop(*EDIT, code=2).stderr
        assert "--run needs a campaign with a loop" in told
        assert not list((loop.root / "configs").glob("a_*")), "nothing is written"
        assert not (loop.root / ".muster").exists()


# -- a round that is not over


def test_a_filter_keeps_the_next_round_back_and_says_so(loop: Camp) -> None:
    loop("up", "--only", "job=train", "--only", "variant=a", code=3)
    assert rounds(loop) == []
    told = loop("loop", "propose", code=0).stdout
    assert "no round 2: round 1 is not over, 1 of 2 runs has no end yet: train/b is PENDING: left out by --only" in told


@pytest.mark.slow  # in CI: its siblings here, and tests/unit/test_next_round.py
def test_a_budget_that_is_spent_is_told_as_the_reason(loop: Camp) -> None:
    base(loop, "a", reg=0.2)
    loop.write(CAMPAIGN.replace("jobs:", "money: {price: 3600000, budget: 0.001, per: gpu}\njobs:"))
    loop("loop", "run", code=3)
    stopped = rounds(loop)[-1]["stopped"]
    assert "round 2 is not over, 2 of 2 runs have no end yet" in stopped
    assert "the budget of 0.001 CNY is spent" in stopped
    assert "the budget of 0.001 CNY is spent" in loop("loop", "report", code=0).stdout
    loop.write(CAMPAIGN)
    loop("loop", "run", code=0)  # no budget any more: it goes on where it stopped
    assert rounds(loop)[-1]["stopped"] == "all 3 rounds are done"


def test_a_round_under_way_is_not_taken_in_by_hand(loop: Camp) -> None:
    gate = loop.root / "gate"
    os.mkfifo(gate)
    base(loop, "a", reg=0.2, gate=str(gate))
    loop("loop", "run", "--rounds", "1", "--detach", code=0)
    loop.until(lambda: loop.cells()["train/b"] == "DONE", "the end of train/b")
    told = loop("loop", "propose", "--take", code=3).stderr
    assert "round 1 is not over" in told
    assert "train/a is" in told
    assert rounds(loop) == []
    gate.open("w").close()
    loop("wait", code=0)
    assert [each["stopped"] for each in rounds(loop)] == ["the one round is done"]


# -- runs that are stopped before their end


LONG = """\
import json, sys, time
config, out = json.load(open(sys.argv[1])), sys.argv[2]
with open(f"{out}/metrics.jsonl", "w", buffering=1) as log:
    for step in range(20):
        log.write(json.dumps({"step": step, "eval/loss": config["loss"] - step * 0.01}) + "\\n")
    if config["loss"] > 5:
        time.sleep(600)  # it would go on for long
"""
PRUNED = (
    CAMPAIGN.partition("  rules:")[0]
    + """\
  keep: {top: 4, by: last("eval/loss"), better: lower}
  prune: {after: 10, least: 3}
  default: {edit: ["loss@mul=0.5"], reason: lower}
"""
)


def test_a_hopeless_run_is_pruned_and_the_loop_goes_on(loop: Camp) -> None:
    for name in "ab":
        (loop.root / "configs" / f"{name}.json").unlink()
    for name, loss in (("c", 1.0), ("d", 2.0), ("e", 3.0), ("z", 9.0)):
        (loop.root / "configs" / f"{name}.json").write_text(json.dumps({"loss": loss}))
    (loop.root / "train.py").write_text(LONG)
    loop.write(PRUNED.replace("rounds: 3", "rounds: 2"))
    loop("loop", "run", code=0)
    found = loop.json("why", "train/z", code=0)
    assert found["verdict"] == "GIVEN_UP"
    assert "pruned: its best eval/loss at step 19 is 8.81, the median of the 3 others there is 1.81" in found["reason"]
    (attempt,) = found["attempts"]
    assert (attempt["verdict"], attempt["cause"]) == ("DEAD", "pruned")
    second, last = rounds(loop)
    assert "z" not in {each["parent"] for each in second["variants"]}, "half a run is nothing to build on"
    assert last["stopped"] == "all 2 rounds are done"
    told = loop.json("loop", "report", code=0)
    assert told["trouble"] == []
    assert {each["name"]: each["score"] for each in told["variants"]}["z"]["values"] == []


# -- it never stops without a word


def test_why_it_stopped_is_told_by_everybody_who_is_asked(loop: Camp) -> None:
    told = loop("loop", "run", code=0).stdout
    line = (
        "loop: round 3 of 3, 6 variants; no round 4: all 3 rounds are done. `muster loop report` tells what it brought"
    )
    assert line in told
    assert line in loop("status", code=0).stdout
    found = loop.json("status", code=0)["loop"]
    assert found == {
        "round": 3, "rounds": 3, "variants": 6, "stopped": "all 3 rounds are done", "failed": None, "due": False,
    }  # fmt: skip


def test_a_proposer_that_fails_is_no_end(loop: Camp) -> None:
    (loop.root / "mine.py").write_text("def propose(run):\n    return run['nope']\n")
    head = CAMPAIGN.partition("  rules:")[0]
    loop.write(head + "  propose: mine.py:propose\nfinish: {run: ['touch finished']}\n")
    told = loop("loop", "run", code=3).stdout
    assert "round 2 could not be proposed" in told
    assert "KeyError" in told
    assert "stopped short" in told
    assert not (loop.root / "finished").exists(), "nothing is finished"
    status = loop.json("status", code=3)
    assert (status["complete"], status["loop"]["stopped"]) == (False, None)
    assert "KeyError" in status["loop"]["failed"]
    assert loop("wait", code=3).returncode == 3
    (loop.root / "mine.py").write_text("def propose(run):\n    return []\n")
    loop("loop", "run", code=0)
    assert (loop.root / "finished").exists()


def test_up_beside_a_round_that_is_taken_in_loses_nothing(loop: Camp, monkeypatch: pytest.MonkeyPatch) -> None:
    loop("loop", "run", "--rounds", "1", code=0)
    from muster.app.campaign import load_campaign
    from muster.app.campaign.campaign_handle import CampaignHandle
    from muster.app.loop import propose_round

    found = load_campaign.read_runnable_campaign(loop.root / "campaign.yaml")  # a person's `up` has read the file ...
    desk = CampaignHandle.open(loop.root)
    status = propose_round.observe_loop_campaign(desk)
    assert (
        propose_round.record_next_round(desk, status, propose_round.propose_next_round(desk, status, most=3)) is None
    )  # ... and a round is taken in
    desk.close()
    desk = CampaignHandle.open(loop.root)
    monkeypatch.setenv("MUSTER_HOME", loop.environment["MUSTER_HOME"])
    assert load_campaign.submit_campaign(desk, found, ()).gone == ()
    desk.close()
    assert len(loop.cells()) == 4


@pytest.mark.slow  # in CI: its siblings here, and tests/unit/test_next_round.py
def test_a_round_that_is_asked_for_by_number_is_taken_in_once(loop: Camp) -> None:
    loop("loop", "run", "--rounds", "1", code=0)
    for number in ("3", "7"):
        assert (
            f"round {number} was decided already" in loop("loop", "propose", "--take", "--round", number, code=0).stdout
        )
    before = rounds(loop)
    assert "no round 2: the one round is done" in loop("loop", "propose", "--take", "--round", "2", code=0).stdout
    assert rounds(loop) == [*before, before[-1]]


@pytest.mark.slow  # in CI: its siblings here, and tests/unit/test_next_round.py
def test_the_next_round_may_be_looked_at_whatever_was_asked_for(loop: Camp) -> None:
    loop("loop", "run", "--rounds", "1", code=0)
    shown = loop("loop", "propose", code=0).stdout
    assert "round 2: 2 variants" in shown
    assert "`muster loop run --rounds 2` runs it" in shown
    loop("loop", "run", "--rounds", "2", code=0)
    listed = (loop.root / "loop" / "round-2.txt").read_text().split()
    assert [each.partition("/round-2/")[2][:-5] for each in listed] == list(tried(loop))


# -- bases


@pytest.mark.slow  # in CI: its siblings here, and tests/unit/test_next_round.py
def test_each_file_runs_once_whatever_its_name(loop: Camp) -> None:
    for folder in ("x", "y"):
        (loop.root / folder).mkdir()
    (loop.root / "y" / "base.json").write_text(json.dumps({"reg": 0.3, "lam": 1.0}))
    (loop.root / "y" / "twin.json").write_text(json.dumps({"lam": 1.0, "reg": 0.3}))
    loop.write(CAMPAIGN.replace('["configs/*.json"]', '["x/*.json", "y/*.json"]').replace("rounds: 3", "rounds: 1"))
    (loop.root / "x" / "more.json").write_text(json.dumps({"reg": 0.4, "lam": 1.0}))
    told = loop("loop", "run", code=0).stderr
    assert "y/twin.json is the same config as y/base.json, and is not run again" in told
    (loop.root / "x" / "base.json").write_text(json.dumps({"reg": 0.9, "lam": 1.0}))  # sorts before the other
    loop("loop", "run", code=0)
    first, second, third = sorted(loop.cells())
    assert (first, third) == ("train/base", "train/more")
    assert second.startswith("train/base-")


def test_a_base_that_is_edited_while_others_wait_changes_no_run(loop: Camp) -> None:
    loop("loop", "run", "--rounds", "1", code=0)
    base(loop, "a", reg=7.0)
    told = loop("loop", "run", "--rounds", "2", code=0).stderr
    assert "configs/a.json has changed since it was taken in: a stays as it was" in told
    child = next(each for each in rounds(loop)[-2]["variants"] if each["parent"] == "a")
    assert json.loads((loop.root / child["config"]).read_text())["reg"] == pytest.approx(0.3)


@pytest.mark.slow  # in CI: its siblings here, and tests/unit/test_next_round.py
def test_a_base_that_comes_later_joins_the_newest_round(loop: Camp) -> None:
    loop("loop", "run", "--rounds", "2", code=0)
    base(loop, "late", reg=0.1)
    loop("loop", "run", "--rounds", "3", code=0)
    assert "late" in {each["parent"] for each in rounds(loop)[-2]["variants"]}


@pytest.mark.slow  # in CI: its siblings here, and tests/unit/test_next_round.py
def test_a_config_that_is_broken_is_told_and_stops_nobody(loop: Camp) -> None:
    loop("loop", "run", "--rounds", "1", code=0)
    (broken,) = (loop.root / "loop" / "round-1").glob("a_*.json")
    broken.write_text("{")
    told = loop("loop", "explain", "a", code=1).stderr
    assert "can't be read" in told
    assert "mistake in Muster" not in told
    loop("loop", "run", "--rounds", "2", code=0)
    assert {each["parent"] for each in rounds(loop)[-2]["variants"]} == {"b"}


@pytest.mark.slow  # in CI: its siblings here, and tests/unit/test_next_round.py
def test_a_variant_that_was_only_made_is_taken_up_by_run(loop: Camp) -> None:
    loop(*EDIT[:-1], code=0)
    told = loop.json(*EDIT, code=0)
    (cell,) = told["cells"]
    assert cell["verdict"] == "DONE"
    assert variants(loop)[Path(told["path"]).stem]["parent"] == "a"
