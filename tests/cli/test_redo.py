"""`muster redo` on real processes. Every run counts itself in a file that Muster knows nothing of."""

from __future__ import annotations

from collections import Counter

import pytest

from support.camp import Camp

TRAINED = """\
muster: 1
campaign: trained
axes:
  config: {{a: {{args: "1"}}, b: {{args: "{b}"}}}}
  seed: [0, 1]
slots: {{gpus: 0, cpus: 2}}
jobs:
  train:
    axes: [config, seed]
    command: sh train.sh {{cell}} {{out}} {{config.args}}
    resume: sh train.sh {{cell}} {{out}} {{config.args}} {{last.checkpoint}}
    proof: {{checkpoint: {{path: model.json}}}}
  eval:
    axes: [config, seed]
    needs: [train]
    command: sh eval.sh {{cell}} {{train.output}} {{out}}
    results: {{score: {{json: result.json, key: score}}}}
decision: {{primary: {{metric: score, better: higher}}, baseline: a}}
"""


@pytest.fixture
def trained(camp: Camp) -> Camp:
    """Two configs, two seeds, each trained and evaluated; all DONE."""
    train, evaluate = (
        'echo "$@" >> count\necho "{\\"w\\": $3.${1##*/}}" > "$2/model.json"\n',
        'echo "$@" >> count\necho "{\\"score\\": $(tr -dc 0-9. < "$2/model.json")}" > "$3/result.json"\n',
    )
    (camp.root / "train.sh").write_text(train)
    (camp.root / "eval.sh").write_text(evaluate)
    camp.write(TRAINED.format(b=2))
    camp("up", code=0)
    return camp


def counted(camp: Camp) -> Counter[str]:
    return Counter(line.split()[0] for line in (camp.root / "count").read_text().splitlines())


def test_a_training_and_what_rests_on_it_run_once_more(trained: Camp) -> None:
    trained("report", code=0)
    assert set(counted(trained).values()) == {1}
    told = trained("redo", "train/a/0", "--because", "the reward had the wrong sign", code=0).stdout
    assert "train/a/0: attempt 1 is superseded" in told
    assert "run again with them, because they rest on them: 1 cell: eval/a/0" in told
    trained.json("wait", "--timeout", "60s", code=0)
    counts = counted(trained)
    assert {cell for cell, times in counts.items() if times == 2} == {"train/a/0", "eval/a/0"}
    assert set(counts.values()) == {1, 2}

    why = trained.json("why", "train/a/0")
    assert (why["verdict"], why["attempt"]) == ("DONE", 2)
    first, second = why["attempts"]
    assert (first["verdict"], first["superseded"]) == ("DONE", "the reward had the wrong sign")
    assert second["retry_cause"] == "to be run again, as a person asked: the reward had the wrong sign"
    assert "superseded, it counts no more: the reward had the wrong sign" in trained("why", "train/a/0").stdout
    # from scratch: no word of the old checkpoint
    runs = [line.split() for line in (trained.root / "count").read_text().splitlines() if line.startswith("train/a/0 ")]
    assert [len(words) for words in runs] == [3, 3]
    # the evaluation rests on the new training
    (last,) = [line.split() for line in (trained.root / "count").read_text().splitlines()[-1:]]
    assert last[:2] == ["eval/a/0", str(trained.folder("train/a/0", 2) / "out")]

    stale = trained.json("verify", code=1)["files"]
    assert any("eval/a/0 was run again: attempt 2 counts now, not 1" in each["because"] for each in stale)
    (flag,) = [each for each in trained.json("report", code=0)["flags"] if each["code"] == "redone"]
    assert (flag["level"], flag["cells"]) == ("WARN", ["train/a/0", "eval/a/0"])
    assert "the reward had the wrong sign" in flag["message"]
    assert trained.json("cost")["by_cause"].keys() >= {"superseded"}
    record = trained("record", "--out", "-").stdout
    assert "run again, though DONE: “the reward had the wrong sign”" in record
    assert "which was DONE and has been run again" in record
    trained("down")
    assert "differences to the rebuilt one: 0" in trained("fsck", code=0).stdout
    assert set(trained.cells().values()) == {"DONE"}


def test_outdated_takes_what_the_file_changed_and_only_after_up(trained: Camp) -> None:
    assert "no DONE cell has another definition" in trained("redo", "--outdated", "--because", "x", code=0).stdout
    trained.write(TRAINED.format(b=3))
    refused = trained("redo", "--outdated", "--because", "another rate", code=2).stderr
    assert "would run the old definition" in refused
    assert "muster up" in refused
    assert "would run the old definition" in trained("redo", "train/b/0", "--because", "x", code=2).stderr
    assert "muster redo --outdated" in trained("up", code=0).stdout
    assert [c["cell"] for c in trained.json("status")["cells"] if c["outdated"]] == ["train/b/0", "train/b/1"]
    told = trained.json("redo", "--outdated", "--because", "another rate", code=0)
    assert sorted(told["redone"]) == ["eval/b/0", "eval/b/1", "train/b/0", "train/b/1"]
    assert sorted(told["followers"]) == ["eval/b/0", "eval/b/1"]
    trained.json("wait", "--timeout", "60s", code=0)
    assert {cell: times for cell, times in counted(trained).items() if times != 1} == dict.fromkeys(told["redone"], 2)
    status = trained.json("status")
    assert not [c["cell"] for c in status["cells"] if c["outdated"]]
    report = trained.json("report", code=0)
    assert {row["config"]: row["values"] for row in report["table"]}["b"] == [3.0, 3.1]
    assert not [each for each in report["flags"] if each["code"] == "redone"], "a new definition made them due"


def test_behind_a_hold_nothing_starts_until_release(trained: Camp) -> None:
    trained("hold", "--because", "the machine is needed", code=0)
    told = trained("redo", "eval/a/*", "--because", "more episodes", code=0).stdout
    assert "starts only after `muster release`" in told
    assert trained.cells()["eval/a/0"] == "HELD"
    assert set(counted(trained).values()) == {1}
    trained("release", code=0)
    trained("up", code=0)
    assert {cell for cell, times in counted(trained).items() if times == 2} == {"eval/a/0", "eval/a/1"}


def test_what_is_not_done_is_not_redone(gated: Camp) -> None:
    gated("up", "--detach", code=0)
    gated.started("train/0")
    log = gated.root / ".muster" / "decisions.jsonl"
    assert "it is running and can't be redone" in gated("redo", "train/0", "--because", "x", code=1).stdout
    assert "none of the 4 cells that fit can be redone" in gated("redo", "*", "--because", "x", code=1).stderr
    assert "it has not run yet" in gated("redo", "eval/0", "--because", "x", code=1).stdout
    gated.open(0, "7")
    gated.until(lambda: gated.cells()["train/0"] == "DEAD")
    assert "`muster retry`" in gated("redo", "train/0", "--because", "x", code=1).stdout
    before = log.read_text().count('"redo"')
    for words in (["train/0"], ["--because", "x"], ["train/0", "--outdated", "--because", "x"]):
        gated("redo", *words, code=2)
    assert "is empty" in gated("redo", "train/0", "--because", " ", code=2).stderr
    assert "did you mean train/0" in gated("redo", "trian/0", "--because", "x", code=2).stderr
    assert log.read_text().count('"redo"') == before


def test_what_runs_on_it_is_not_pulled_away(camp: Camp) -> None:
    """The evaluation of a training runs: the training can't be redone under it."""
    camp.write("""\
muster: 1
campaign: gated
axes: {seed: [0]}
slots: {gpus: 0, cpus: 2}
jobs:
  train: {axes: [seed], command: /bin/true, output: 'runs/{seed}'}
  eval: {axes: [seed], needs: [train], command: "/bin/sh -c 'echo started; read word < gate-0; exit $word'"}
""")
    camp.gates(0)
    camp("up", "--detach", code=0)
    camp.started("eval/0")
    assert "eval/0 runs on it" in camp("redo", "train/0", "--because", "x", code=1).stdout
    camp.open(0)
    camp.json("wait", "--timeout", "30s", code=0)
    told = camp("redo", "train/0", "--because", "x", code=0).stdout
    assert "may be overwritten" in told
    assert "train/0" in told.splitlines()[-1]
    camp.open(0)
    camp.json("wait", "--timeout", "30s", code=0)
    assert [each["cell"] for each in camp.decisions("redo")] == ["eval/0", "train/0"]
