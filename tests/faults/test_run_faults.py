"""Faults 27, 28, 31, 36, 43 and 47: what a run leaves behind, and what can't be executed at all."""

import json

import numpy as np
import pytest
from fault_world import World, kill, letter, ticks, until

COMMAND = "command: 'sh job.sh {cell} {attempt}'"
WAIT = "while [ ! -e go ]; do sleep 0.02; done"
HELPER = "{ (trap '' HUP; setsid sh -c 'echo $$ > helper; while [ ! -e release_helper ]; do sleep 0.02; done' &); until [ -e helper ]; do sleep 0.01; done; }"


def begin(world: World, job: str, **more) -> None:
    world.campaign(f"  train: {{axes: [seed], {', '.join(filter(None, (COMMAND, job)))}}}\n", **more)
    world.take_in()
    world.controller()


def test_27_exit_0_at_40_percent(world: World) -> None:
    job = 'steps: 100, progress: [{jsonl: metrics.jsonl}], proof: {step: {min: "{steps}", within: 2%}}'
    line = """printf '{"step": %s}\\n' """
    begin(world, job, body=f'[ "$1" = train/0 ] && s=40 || s=100; {line} $s > "$MUSTER_OUT/metrics.jsonl"')
    status = world.finish(retry=False)
    first, second = status["cells"]
    assert (first["verdict"], first["cause"], first["attempt_count"]) == ("DEAD", "early_exit", 1)
    assert second["verdict"] == "DONE"
    assert world.counted().of("train/0") == [1]  # held, not run again


def test_28_exit_1_with_complete_artifacts(world: World) -> None:
    write = """echo '{"score": 1}' > "$MUSTER_OUT/result.json"; return 1"""
    begin(world, "proof: {files: [result.json]}", seeds=1, body=write)
    (cell,) = world.finish(retry=False)["cells"]
    assert (cell["verdict"], cell["cause"]) == ("DEAD", "exit_code(1)")
    assert "artifacts complete" in cell["reason"] + cell["next"]
    assert world.counted().of("train/0") == [1]
    answer = world.muster("accept", "train/0", "--because", "it failed in teardown only")
    assert answer.returncode == 0, answer.stderr
    status = world.muster("status", "--json")
    assert (status.returncode, json.loads(status.stdout)["complete"]) == (0, True)
    assert world.counted().of("train/0") == [1]


@pytest.mark.parametrize("size", [0, 200])
def test_31_truncated_checkpoint(world: World, size: int) -> None:
    world.root.mkdir()
    np.savez(world.root / "good.npz", weights=np.arange(1000.0))
    resume = "resume: 'sh job.sh {cell} {attempt} {last.checkpoint}'"
    job = f"{resume}, progress: [{{checkpoint: 'step_*.npz'}}], proof: {{checkpoint: {{path: step_2.npz}}}}"
    good = 'cp good.npz "$MUSTER_OUT/step_1.npz"; '
    bad = f'head -c {size} good.npz > "$MUSTER_OUT/step_2.npz"'
    begin(world, job, seeds=1, body=f'{good} [ "$2" != 1 ] && cp good.npz "$MUSTER_OUT/step_2.npz" || {bad}')
    (cell,) = world.finish(retry=False)["cells"]
    assert (cell["verdict"], cell["cause"]) == ("DEAD", "early_exit")  # DONE is refused
    world.finish()  # a person retries it
    world.check(cells=1)
    order = json.loads((world.folder("train/0", 2) / "attempt.json").read_text())
    assert order["resumed_from"] == str(world.folder("train/0") / "out" / "step_1.npz")  # the one that opens


def test_36_main_gone_grandchild_lives(world: World) -> None:
    begin(world, "", seeds=1, body=f"{HELPER}; return 4")
    cell = world.until_cell("train/0", lambda cell: cell["kind"] == "orphans", "RUNNING(orphans)")
    helper = int((world.root / "helper").read_text())
    assert cell["verdict"] == "RUNNING"
    assert str(helper) in cell["reason"]
    kill(until(world.holder, "a controller"))
    world.controller()
    until(world.holder, "another controller looks at it")
    assert world.cell("train/0")["kind"] == "orphans"
    assert len(world.rows("SELECT * FROM attempt")) == 1
    kill(helper)
    (cell,) = world.finish(retry=False)["cells"]
    assert (cell["verdict"], cell["cause"], cell["attempt_count"]) == ("DEAD", "exit_code(4)", 1)
    assert world.check(cells=1, exits={"train/0": 4}).of("train/0") == [1]


def test_36_main_gone_and_shim_gone_grandchild_lives(world: World) -> None:
    """Nobody can say how the main process ended; the grandchild still keeps a second attempt away."""
    begin(world, "", seeds=1, body=f'[ "$2" != 1 ] || {{ {HELPER}; {WAIT}; }}')
    run = world.running("train/0")
    helper = int(until(lambda: (world.root / "helper").exists() and (world.root / "helper").read_text(), "the helper"))
    kill(world.shim("train/0"))
    kill(run)
    cell = world.until_cell("train/0", lambda cell: cell["kind"] == "orphans", "RUNNING(orphans)")
    assert str(helper) in cell["reason"]
    assert len(world.rows("SELECT * FROM attempt")) == 1
    kill(helper)
    world.finish(retry=False)
    assert world.check(cells=1).of("train/0") == [1, 2]  # unknown: retried once by itself


def test_36_zombie_leader_whose_thread_works_on(world: World) -> None:
    """The main thread has ended, so /proc calls the process a zombie; it is not: a thread of it lives."""
    world.root.mkdir()
    (world.root / "threads.py").write_text(
        "import ctypes, os, threading, time\n"
        "def work():\n"
        "    while not os.path.exists('go'): time.sleep(0.02)\n"
        "    os._exit(0)\n"
        "threading.Thread(target=work).start()\n"
        "ctypes.CDLL(None).syscall(60, 0)\n"
    )
    world.env["MUSTER_POLL_S"] = "0.1"
    world.campaign("  train: {axes: [seed], command: 'python3 threads.py'}\n", seeds=1)
    world.take_in()
    world.controller()
    run = int(until(lambda: (world.identity("train/0") or {}).get("pid"), "it runs"))
    until(lambda: letter(run) == "Z", "its leader is a zombie")
    shim = world.shim("train/0")
    world.until_cell("train/0", lambda cell: cell["verdict"] == "RUNNING", "RUNNING")
    beat = json.loads((world.state / "controller.lock").read_text())["beat"]
    lock = world.state / "controller.lock"
    until(lambda: json.loads(lock.read_text())["beat"] > beat + 4, "more looks than a silent shim is given")
    assert ticks(shim), "its shim was ended"
    assert world.cell("train/0")["verdict"] == "RUNNING"
    (world.root / "go").touch()
    (cell,) = world.finish(retry=False)["cells"]
    assert (cell["verdict"], cell["attempt_count"]) == ("DONE", 1)


@pytest.mark.parametrize("crash", ["", "settle.committed"])
def test_43_leftover_helper_does_not_keep_the_slot_of_a_done_cell(world: World, crash: str) -> None:
    body = f'[ "$1" != train/0 ] || {HELPER}; echo 1 > "$MUSTER_OUT/result"'
    jobs = f"  train: {{axes: [seed], {COMMAND}, proof: {{files: [result]}}}}\n"
    world.campaign(jobs, seeds=3, cpus=1, body=body)
    world.take_in()
    world.controller(world.armed(crash) if crash else {})
    if crash:
        until(world.marker.exists, "the controller dies before it has told the shim to let go")
    status = world.finish(retry=False)
    helper = int((world.root / "helper").read_text())
    assert ticks(helper), "the helper was killed"
    assert status["complete"]  # both others ran on the only slot
    first = next(cell for cell in status["cells"] if cell["cell"] == "train/0")
    assert str(helper) in first["reason"]
    assert world.check(cells=3).executions == 3


def test_43_helper_without_a_proof_keeps_the_cell_running(world: World) -> None:
    begin(world, "", seeds=2, cpus=1, body=f'[ "$1" != train/0 ] || {HELPER}')
    cell = world.until_cell("train/0", lambda cell: cell["kind"] == "orphans", "RUNNING(orphans)")
    helper = int((world.root / "helper").read_text())
    assert str(helper) in cell["reason"]
    assert "stop" in cell["next"]  # what a person can do
    assert len(world.rows("SELECT * FROM attempt")) == 1
    (world.root / "release_helper").touch()
    world.finish(retry=False)
    assert world.check(cells=2).executions == 2


def test_47_three_of_twenty_can_not_be_executed(world: World) -> None:
    world.root.mkdir()
    world.campaign("  train: {axes: [seed], command: './tool_{seed} {cell} {attempt}'}\n", seeds=20,
                   body='[ "$1" != train/0 ] || { rm tool_17; chmod a-x tool_18; echo "#!/no/such/shell" > tool_19; }')  # fmt: skip
    job = (world.root / "job.sh").read_text()
    for seed in range(20):
        tool = world.root / f"tool_{seed}"
        tool.write_text("#!/bin/sh\n" + job)
        tool.chmod(0o755)
    answer = world.muster("up", timeout_s=120)
    assert answer.returncode == 3, answer.stderr
    assert "17 of 20" in answer.stdout
    status = json.loads(world.muster("status", "--json").stdout)
    assert (status["counts"]["DONE"], status["counts"]["DEAD"]) == (17, 3)
    dead = {cell["cell"]: cell for cell in status["cells"] if cell["verdict"] == "DEAD"}
    assert set(dead) == {"train/17", "train/18", "train/19"}
    for name, cell in dead.items():
        assert (cell["cause"], cell["attempt_count"]) == ("never_started", 1), cell
        assert "could not be executed" in cell["reason"]
        assert name in answer.stdout
    assert world.counted().executions == 17


def test_an_attempt_that_can_not_be_laid_out_takes_nobody_with_it(world: World) -> None:
    """Its folder can't be made, in a batch with others: they run, no slot is lost, and it is named."""
    world.campaign(f"  train: {{axes: [seed], {COMMAND}}}\n", seeds=6, cpus=3)
    world.take_in()
    (world.state / "attempts" / "train").mkdir(parents=True)
    (world.state / "attempts" / "train" / "0").touch()
    world.controller()
    until(lambda: len(world.counted().ends) == 5, "the five others run")
    assert world.cell("train/0")["verdict"] != "DONE"
    assert sorted(n for (_, n) in world.counted().begins) == [1] * 5, "a slot was lost with it"
    (world.state / "attempts" / "train" / "0").unlink()
    world.finish(retry=False)
    assert world.check(cells=6).of("train/0") in ([1], [2])
