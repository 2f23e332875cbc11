"""The reference story in a two hundredth of its time: a log on a clock of 1000 s, replay chunks every minute, and a death
with the terminal, which nobody sees who looks at the log alone. And whom Muster tells of such things.
"""

import json
import os
import signal
import time
from typing import Any

import pytest
from fault_world import World, kill, said, ticks, until

PACE = 0.005
CLOCK_S = 1000 * PACE
POLL_S = 0.1
# log_every is a clock in seconds, as in the story; an hour of it is 18 s here
STORY = f"""
import signal
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # what Muster starts is not hung up; this one was started by a terminal
with open(os.path.join(out, "config.yaml"), "w") as file:
    file.write("run:\\n  steps: 120000\\n  log_every: {CLOCK_S:g}\\n  save_every: 10000\\n")
number, step, logged = 0, 0, time.monotonic() - {CLOCK_S} + 1
while True:
    work(60 * {PACE}, share=0.3)
    chunk(number)
    number, step = number + 1, step + 700
    if time.monotonic() - logged >= {CLOCK_S}:
        logged += {CLOCK_S}
        log(step)
"""
BOTH = "steps: 120000, progress: [{jsonl: metrics.jsonl}, {files: 'replay/*.npz'}]"


def test_the_reference_story(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.pace(monkeypatch, PACE, POLL_S)
    world.trainer(STORY, BOTH)
    world.controller()
    run = world.running("train/0")

    def chunks(seen: Any) -> int:
        return int(seen.pulses["replay/*.npz"].advances) if "replay/*.npz" in seen.pulses else 0

    world.until_seen("train/0", lambda seen: chunks(seen) >= 3, "the first chunks")

    def logged_twice() -> bool:
        found = world.history("train/0")
        return bool(found and found.pulses["metrics.jsonl"].advances >= 2 and silent(found) > 2)

    seen = world.verdicts_until("train/0", logged_twice, "two lines of the log, and silence again")
    quiet = [cell for cell in seen if said(cell) == ("QUIET", None, "proven", None)]
    assert len(quiet) > 0.8 * len(seen)  # the rest: just after a line of the log
    assert {cell["verdict"] for cell in seen} <= {"QUIET", "RUNNING"}
    assert "metrics.jsonl silent for" in quiet[-1]["reason"]
    assert "replay/*.npz" in quiet[-1]["reason"]
    assert not [turn for turn in world.turns("train/0") if turn.startswith(("STALLED", "UNKNOWN"))]
    found = world.why("train/0")
    note = found["cadence"]["metrics.jsonl"]["note"]
    assert f"clock of {CLOCK_S:g} s" in note
    assert "log_every" in note
    answer = world.muster("why", "train/0")
    assert f"written on a clock of {CLOCK_S:g} s" in answer.stdout
    assert "QUIET" in answer.stdout
    assert world.counted().of("train/0") == [1]  # "restarting it" is what cost more than the failure
    assert ticks(run)

    began = time.monotonic()
    os.killpg(os.getpgid(run), signal.SIGHUP)  # the terminal takes its session with it; the shim ignores that
    cell = world.until_cell("train/0", lambda cell: cell["verdict"] == "DEAD", "DEAD")
    assert time.monotonic() - began < 5
    assert said(cell) == ("DEAD", None, "proven", "hangup")
    until(world.without_controller, "nothing is left to do")
    for _ in range(5):
        cell = world.cell("train/0")
        assert said(cell) == ("DEAD", None, "proven", "hangup")
        assert "held: hangup is not retried by itself" in cell["next"]
    told = json.loads(world.muster("status", "--json").stdout)
    assert (told["counts"]["RUNNING"], told["counts"]["QUIET"], told["counts"]["DEAD"]) == (0, 0, 1)
    assert world.counted().of("train/0") == [1]
    assert "terminal" in world.muster("why", "train/0").stdout


def silent(seen: Any) -> float:
    return float(seen.polled - seen.pulses["metrics.jsonl"].advanced)


# -- notices

TELL = """\
cat > "notices/$$.json"
printf '%s|%s' "$MUSTER_CELL" "$MUSTER_NOTICE" > "notices/$$.env"
"""


def notices(world: World) -> list[dict[str, Any]]:
    found = []
    for path in (world.root / "notices").glob("*.json"):
        if path.with_suffix(".env").exists():  # it has been written to its end
            found.append(json.loads(path.read_text()))
    return sorted(found, key=lambda notice: notice["at"])


def of_kind(world: World, what: str) -> list[dict[str, Any]]:
    return [notice for notice in notices(world) if notice["what"] == what]


def test_a_stall_and_a_death_are_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.pace(monkeypatch, 0.005, 0.1)
    (world.root / "notices").mkdir(parents=True)
    (world.root / "tell.sh").write_text(TELL)
    world.trainer("train(10)\ndeadlock()", top="notify: [{run: sh tell.sh}]")
    world.controller()
    run = world.running("train/0")
    until(lambda: of_kind(world, "STALLED(waiting)"), "the stall is told")
    stall = of_kind(world, "STALLED(waiting)")[0]
    assert (stall["campaign"], stall["cell"], stall["attempt"]) == ("faults", "train/0", 1)
    assert stall["text"].startswith("train/0 is STALLED(waiting), ")
    assert "nothing has advanced" in stall["text"]
    assert stall["at"]
    kill(run)
    until(lambda: of_kind(world, "DEAD"), "the death is told")
    (death,) = of_kind(world, "DEAD")
    assert "DEAD(signal(9))" in death["text"]
    assert "next: held" in death["text"]
    assert [
        path
        for path in (world.root / "notices").glob("*.env")
        if path.read_text().startswith("train/0|train/0 is DEAD")
    ]
    world.finish(retry=False)
    recorded = [json.loads(row["data"])["what"] for row in world.rows("SELECT data FROM event WHERE kind = 'notice'")]
    until(
        lambda: sorted(recorded) == sorted(notice["what"] for notice in notices(world)), "all that is recorded is told"
    )


@pytest.mark.parametrize("command", ["sh -c 'sleep 1000'", "/no/such/program", "sh -c 'exit 3'", "cat '"])
def test_a_channel_that_fails_holds_nobody_up(world: World, command: str) -> None:
    world.trainer("sys.exit(1)", "", seeds=3, cpus=1, top=f"notify: [{{run: {json.dumps(command)}}}]")
    world.controller()
    status = world.finish(retry=False)
    assert status["counts"]["DEAD"] == 3
    assert status["controller"]["trouble"] is None
