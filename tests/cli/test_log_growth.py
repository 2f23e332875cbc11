"""A run that prints without end: told, and cut only where the campaign says so; the run and its readers go on."""

from __future__ import annotations

import json
from pathlib import Path

from support.camp import Camp, until

TALKER = """\
import sys, os
line = "step=%d " + "x" * 200
for step in range(int(sys.argv[1])):
    print(line % step)
sys.stdout.flush()
open("said", "w").close()
while not os.path.exists("go"):
    import time; time.sleep(0.02)
print("step=%d score: 7.5" % int(sys.argv[1]))
"""
CAMPAIGN = """\
muster: 1
campaign: talker
axes: {seed: [0]}
slots: {gpus: 0, cpus: 1}
{logs}
jobs:
  train:
    axes: [seed]
    steps: 20000
    command: python3 talk.py 20000
    progress: [{stdout: 'step=(\\d+)'}]
    proof: {step: {min: "{steps}"}}
    results: {score: {stdout: 'score: ([\\d.]+)'}}
"""


def talk(camp: Camp, logs: str) -> Path:
    camp.environment["MUSTER_POLL_S"] = "0.2"
    (camp.root / "talk.py").write_text(TALKER)
    camp.write(CAMPAIGN.replace("{logs}", logs))
    camp("up", "--detach", code=0)
    until((camp.root / "said").exists, "it has said all but its last word")
    return camp.folder("train/0") / "stdout.log"


def blocks(path: Path) -> int:
    return path.stat().st_blocks * 512


def test_it_is_cut_and_nobody_notices(camp: Camp) -> None:
    log = talk(camp, "logs: {max: 1M}")
    size = log.stat().st_size
    assert size > 4 << 20
    until(lambda: blocks(log) <= 1 << 20, "its middle is cut out")
    assert log.stat().st_size == size
    (camp.root / "go").touch()
    camp("wait", "--timeout", "60s", code=0)
    (cell,) = camp.json("status", code=0)["cells"]
    assert (cell["verdict"], cell["attempt_count"]) == ("DONE", 1)
    said = camp("logs", "train/0", code=0).stdout
    assert said.startswith("step=0 x")
    assert said.endswith("step=20000 score: 7.5\n")
    assert "bytes were cut out here]" in said
    assert "\0" not in said
    assert "\0" not in camp.json("logs", "train/0", code=0)["text"]
    settled = camp.decisions("settle")[-1]["data"]["outcome"]
    assert settled["results"] == {"score": 7.5}


def test_without_a_word_nothing_is_cut(camp: Camp) -> None:
    log = talk(camp, "")
    before = log.read_bytes()
    (camp.root / "go").touch()
    camp("wait", "--timeout", "60s", code=0)
    assert log.read_bytes().startswith(before)
    assert b"\0" not in before
    assert camp("logs", "train/0", code=0).stdout == log.read_text()


def test_a_mean_over_a_log_that_may_be_cut_is_a_mistake(camp: Camp) -> None:
    text = CAMPAIGN.replace("{logs}", "logs: {max: 1M}").replace("([\\d.]+)'}", "([\\d.]+)', reduce: mean}")
    camp.write(text)
    (camp.root / "talk.py").write_text(TALKER)
    assert "may cut what this is read from" in camp("check", "--quick", code=2).stdout + camp("check", "--quick").stderr
    for size, said in (("5", "has no unit"), ("5k", "a size such as"), ("0.5M", "too little")):
        camp.write(CAMPAIGN.replace("{logs}", f"logs: {{max: {size}}}"))
        found = camp("check", "--quick", "--json", code=2)
        assert said in json.dumps(json.loads(found.stdout)["mistakes"])


def test_status_warns_of_a_disk_that_will_not_last(camp: Camp) -> None:
    """As the controller remembers it: samples of the free space."""
    talk(camp, "")
    camp("down", code=0)
    path = camp.root / ".muster" / "watch.json"
    known = json.loads(path.read_text())
    now = next(iter(known["histories"].values()))["polled"]
    known["disk"] = [[now - 60.0 * (30 - at), 40_000_000_000 - at * 1_000_000_000] for at in range(31)]
    path.write_text(json.dumps(known))
    told = camp("status", code=4).stdout
    assert "the disk will be full in about" in told
    assert "10.0 GB are left" in told
    found = camp.json("status", code=4)
    assert found["disk"]["too_small"]
    assert found["disk"]["ends_in_s"] is None
    (camp.root / "go").touch()
    camp("up", code=0)
    assert camp.json("status", code=0)["disk"] is None
