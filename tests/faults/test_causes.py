"""Fault 26: what a Python run dies of by itself, told apart; and a machine on which everything dies.

The exceptions are raised by classes of the names that torch and jax give theirs; the texts are those of a real GPU.
"""

import json

import pytest
from fault_world import World, evidence, kill, said, until

WORDS = """
def error(module, name, text, base=RuntimeError):
    kind = type(name, (base,), {"__module__": module, "__qualname__": name})
    raise kind(text)

def diverge():
    loss = float("nan")
    assert loss == loss, f"loss is {loss} at step 17"

seed = int(cell.rpartition("/")[2])
log(1)
"""
DEATHS = """
if seed == 0:
    {}["learning_rate"]
elif seed == 1:
    error("torch", "OutOfMemoryError", "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of "
          "139.80 GiB of which 1.02 GiB is free. Process 812 has 138.77 GiB memory in use.")
elif seed == 2:
    error("jax.errors", "JaxRuntimeError", "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 40.0GiB.")
elif seed == 3:
    diverge()
"""
EXPECTED = {
    "train/0": ("exception(KeyError, train.py:", "KeyError: 'learning_rate'", "fix the code"),
    "train/1": ("cuda_oom", "torch.OutOfMemoryError: CUDA out of memory", "smaller batch"),
    "train/2": ("cuda_oom", "JaxRuntimeError: RESOURCE_EXHAUSTED", "smaller batch"),
    "train/3": ("non_finite", "AssertionError: loss is nan at step 17", "learning rate"),
}


def test_26_exception_memory_of_the_gpu_and_nan_are_three_causes(world: World) -> None:
    world.trainer(WORDS + DEATHS, seeds=4)
    world.controller()
    status = world.finish(retry=False)
    assert status["counts"]["DEAD"] == 4
    for cell in status["cells"]:
        cause, line, advice = EXPECTED[cell["cell"]]
        assert said(cell)[:3] == ("DEAD", None, "proven")
        assert cell["cause"].startswith(cause)
        assert "held: " in cell["next"]
        assert "is not retried by itself" in cell["next"]
        (attempt,) = world.why(cell["cell"])["attempts"]
        assert attempt["exit"] == {"code": 1, "signal": None}
        assert line in attempt["lines"][-1]
        assert advice in attempt["try"]
        assert attempt["lines"][-1].strip().startswith(evidence(cell, "log")["reading"][:80])
    assert sorted(world.counted().begins.values()) == [1] * 4
    answer = world.muster("why", "train/1")
    assert answer.returncode == 0
    assert "cuda_oom" in answer.stdout
    assert "Tried to allocate 20.00 GiB" in answer.stdout


def test_26_the_same_words_in_the_log_of_a_run_that_ends_otherwise(world: World) -> None:
    """What it survived is no cause; what its log says while it lives is none either."""
    body = """
import traceback
if is_there("quiet"):
    sys.exit(0)
try:
    error("torch", "OutOfMemoryError", "CUDA out of memory. Tried to allocate 20.00 GiB.")
except RuntimeError:
    traceback.print_exc()
print("out of memory, halving the batch", file=sys.stderr, flush=True)
open("survived", "w").close()
wait_for("go")
for step in range(2, 40):
    log(step)
    print("step", step, "loss 0.5", file=sys.stderr, flush=True)
count("end")
sys.exit(7)
"""
    world.trainer(WORDS + body)
    world.controller()
    world.running("train/0")
    until((world.root / "survived").exists, "it has survived")
    cell = world.until_cell("train/0", lambda cell: cell["verdict"] == "RUNNING", "RUNNING")
    assert cell["cause"] is None
    (world.root / "go").touch()
    (cell,) = world.finish(retry=False)["cells"]
    assert said(cell) == ("DEAD", None, "proven", "exit_code(7)")
    (attempt,) = world.why("train/0")["attempts"]
    assert [text for text in attempt["contributing"] if "survived" in text]
    world.check(cells=1, exits={"train/0": 7})


# -- one machine that fails everything


def test_five_cells_that_all_fail_hold_the_campaign(world: World) -> None:
    body = 'if not is_there("fixed"):\n    raise FileNotFoundError("no dataset here")'
    world.trainer(body, seeds=7, cpus=1)
    world.controller()
    status = world.finish(retry=False)
    assert status["intent"] == "held"
    assert world.counted().executions == 5  # and not seven
    assert (status["counts"]["DEAD"], status["counts"]["HELD"]) == (5, 2)
    left = next(cell for cell in status["cells"] if cell["verdict"] == "HELD")
    assert "the last 5 cells all died" in left["reason"]
    assert "FileNotFoundError" in left["reason"]
    assert "muster release" in left["next"]
    (hold,) = world.rows("SELECT who, reason FROM event WHERE kind = 'hold'")
    assert hold["who"].startswith("controller")
    (world.root / "fixed").touch()
    answer = world.muster("release", "--because", "the dataset is back")
    assert answer.returncode == 0, answer.stderr
    until(world.without_controller, "the rest runs")
    status = world.finish()  # a person retries those that died
    assert status["complete"]
    world.check(cells=7)
    assert len(world.rows("SELECT kind FROM event WHERE kind = 'hold'")) == 1


def test_a_success_in_between_holds_nothing(world: World) -> None:
    world.trainer("sys.exit(0 if cell.endswith('3') else 1)", "", seeds=7, cpus=1)
    world.controller()
    status = world.finish(retry=False)
    assert status["intent"] == "running"
    assert world.counted().executions == 7


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_what_a_person_ends_holds_nothing(world: World, how: str) -> None:
    world.trainer('wait_for("go")', "", seeds=6, cpus=6)
    world.controller()
    runs = [world.running(f"train/{seed}") for seed in range(6)]
    if how == "stopped":
        for seed in range(6):
            world.say("stop", cell=f"train/{seed}")
    else:
        for run in runs:
            kill(run)
    status = world.finish(retry=False)
    assert status["intent"] == "running"
    causes = {cell["cause"] for cell in status["cells"]}
    assert causes == ({"user_stop"} if how == "stopped" else {"signal(9)"}), json.dumps(status["cells"])[:400]
