"""Reading the end of a log: the exceptions in it, whose they are, and which one ended the run."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.engine.judge.cause_rules import CauseReport, find_cause
from muster.engine.judge.exception_symptoms import judge_not_finite
from muster.engine.judge.log_clues import (
    classify_what_follows,
    find_final_exception,
    lines_of_exception,
    log_went_on,
    read_log_clues,
)
from muster.engine.judge.log_notices import (
    clean_log_lines,
    lines_show_progress,
    read_log_notices,
    read_step_count,
    shorten_log_line,
    strip_worker_label,
)
from muster.engine.judge.tracebacks import RaisedException, read_tracebacks
from muster.model.attempt_snapshot import ExitRecord, PostMortem

PLAIN = """\
loading
Traceback (most recent call last):
  File "/w/train.py", line 9, in <module>
    main()
  File "/opt/venv/lib/python3.11/site-packages/torch/nn.py", line 3, in forward
    raise KeyError("k")
KeyError: 'k'
"""


def only(text: str) -> RaisedException:
    (raised,) = read_log_clues(text).raised
    return raised


def test_an_exception_and_its_places() -> None:
    raised = only(PLAIN)
    assert (raised.type, raised.full, raised.message) == ("KeyError", "KeyError", "'k'")
    assert (raised.at, raised.raised_at, raised.place) == ("train.py:9", "nn.py:3", "train.py:9")
    assert raised.code == "main()"
    assert raised.rows == (1, 2, 3, 4, 5, 6)
    assert raised.top
    assert raised.role == ""


def test_the_lines_to_show() -> None:
    clues = read_log_clues(PLAIN)
    shown_lines = lines_of_exception(clues, clues.raised[0])
    assert shown_lines[-1] == "KeyError: 'k'"
    assert '  File "/w/train.py", line 9, in <module>' in shown_lines


def test_chains_are_linked() -> None:
    text = PLAIN + "\nDuring handling of the above exception, another exception occurred:\n\n" + PLAIN
    first, second = read_log_clues(text).raised
    assert (first.link, second.link) == ("", "context")
    final = find_final_exception(read_log_clues(text))
    assert final is not None
    assert final.earlier == (first,)


def test_workers_are_read_apart() -> None:
    a = [f"[rank0]: {line}" for line in PLAIN.splitlines()]
    b = [f"[rank1]: {line}" for line in PLAIN.replace("KeyError", "ValueError").splitlines()]
    mixed = "\n".join(line for pair in zip(a, b, strict=True) for line in pair)
    assert [(raised.lane, raised.type) for raised in read_log_clues(mixed).raised] == [
        ("[rank0]:", "KeyError"),
        ("[rank1]:", "ValueError"),
    ]


@pytest.mark.parametrize(
    ("line", "label", "body"),
    [
        ("[rank0]: x", "[rank0]: ", "x"),
        ("[rank12]:   File", "[rank12]: ", "  File"),
        ("[default0]:x", "[default0]:", "x"),
        ("[1,0]<stderr>: x", "[1,0]<stderr>: ", "x"),
        ("(train pid=42, ip=10.0.0.1) x", "(train pid=42, ip=10.0.0.1) ", "x"),
        ("(pid=42) x", "(pid=42) ", "x"),
        ("3: x", "3: ", "x"),
        ("2024-11-20 14:37:16 [rank3]: x", "[rank3]: ", "x"),
        ("2024-11-20T14:37:16.123456789Z stderr F   x", "", "  x"),
        ("(no label) x", "", "(no label) x"),
        ("x", "", "x"),
        ("", "", ""),
    ],
)
def test_labels(line: str, label: str, body: str) -> None:
    assert strip_worker_label(line) == (label, body)


@pytest.mark.parametrize(
    ("before", "role"),
    [
        ("Exception ignored in: <function A.__del__ at 0x7f>", "ignored"),
        ("--- Logging error ---", "ignored"),
        ("Error in atexit._run_exitfuncs:", "ignored"),
        ("Exception in thread Thread-3 (work):", "thread"),
        ("Task exception was never retrieved", "thread"),
        ("Process ForkPoolWorker-2:", "child"),
        ("ERROR:root:step failed", "logged"),
        ("2026-01-01 00:00:00,000 - train - CRITICAL - gave up", "logged"),
        ("an ordinary line", ""),
    ],
)
def test_how_it_was_printed(before: str, role: str) -> None:
    assert only(before + "\n" + PLAIN.removeprefix("loading\n")).role == role


def test_a_stack_without_an_exception_is_none() -> None:
    stack = 'Stack (most recent call last):\n  File "/w/t.py", line 3, in <module>\n    f()\nINFO: done\n'
    assert read_log_clues(stack).raised == ()
    fault = 'Current thread 0x7f (most recent call first):\n  File "/w/t.py", line 4 in step\n'
    assert read_log_clues(fault).raised == ()


@pytest.mark.parametrize(
    ("after", "what"),
    [
        ("", "nothing"),
        ("\n\n", "nothing"),
        ("wandb: View run at https://x\n", "nothing"),
        ("srun: error: node01: task 0: Exited with exit code 1\n", "nothing"),
        (
            "/usr/lib/python3.11/multiprocessing/resource_tracker.py:254: UserWarning: resource_tracker: leaked\n",
            "nothing",
        ),
        ("  9%|x | 9/100 [00:01<00:02, 9it/s]\n", "nothing"),
        (" 12%|x | 12/100 [00:01<00:02, 9it/s]\n", "nothing"),
        (" 12%|x | 12/100 [00:01<00:02, 9it/s]\r 13%|x | 13/100 [00:01<00:02, 9it/s]\n", "progress"),
        ("step 8\n", "other"),
        ("step 8\nstep 9\n", "progress"),
        ("{'loss': 0.5, 'epoch': 2}\n", "progress"),
        ("shutting down the simulator\n", "other"),
    ],
)
def test_what_comes_after(after: str, what: str) -> None:
    clues = read_log_clues("  9%|x | 9/100 [00:01<00:02, 9it/s]\n" + PLAIN + after)
    assert classify_what_follows(clues, clues.raised[0]) == what
    assert log_went_on(clues, clues.raised[0].last) == (what == "progress")


def test_counters() -> None:
    assert read_step_count("Epoch 3: loss 1") == ("epoch", 3)
    assert read_step_count(" 13%|# | 130/1000 [") == ("/1000", 130)
    assert read_step_count("global step=12") == ("step", 12)
    assert read_step_count("nothing here") is None
    assert lines_show_progress(["step 5", "step 6"], ["step 5"])
    assert not lines_show_progress(["step 5", "step 5"], ["step 5"])


def test_cleaning() -> None:
    assert clean_log_lines("a\r\nb\rc\x1b[31md\x1b[0m\x00\x07e\n") == ["a", "b", "cde", ""]
    assert clean_log_lines("\x1b]0;title\x07x") == ["x"]
    assert shorten_log_line("a\u202eb" + "c" * 500).isprintable()
    assert len(shorten_log_line("c" * 500)) == 300
    assert len(clean_log_lines("x\n" * 60_000)) <= 4000


@pytest.mark.parametrize(
    ("line", "kind", "number"),
    [
        ("train.sh: line 3: 610925 Killed                  python train.py", "shell", 9),
        ("Killed", "shell", 9),
        ("Segmentation fault (core dumped)", "shell", 11),
        ("process 0 terminated with signal SIGABRT", "worker_signal", 6),
        ("Command '['x']' died with <Signals.SIGKILL: 9>.", "worker_signal", 9),
        ("RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. It is possible", "data_worker", 7),
        ("Fatal Python error: Segmentation fault", "fatal_python", None),
        ("NVRM: Xid (PCI:0000:01:00): 79, pid=1, GPU has fallen off the bus.", "gpu_lost", None),
    ],
)
def test_notices(line: str, kind: str, number: int | None) -> None:
    assert (kind, number) in [(notice.kind, notice.number) for notice in read_log_notices(["a", line, "b"])]


@pytest.mark.parametrize(
    "line", ["the process was Killed by the user", "Terminated early: 3 runs", "0 Killed enemies", "NCCL version 2.21"]
)
def test_words_that_are_no_notice(line: str) -> None:
    assert read_log_notices([line]) == ()


SAYS_NOT_FINITE = [
    "loss is nan at step 1200",
    "Loss became NaN",
    "NaN loss encountered",
    "Non-finite loss",
    "loss: nan",
    "Loss = nan",
    "loss is not finite",
    "loss is tensor(nan, device='cuda:0')",
    "grad norm is inf",
    "gradients contain NaN",
    "NaN in loss",
    "NaN/Inf detected in gradients",
    "nan encountered in grads",
    "NaNs found in layer3.weight",
    "The loss returned in `training_step` is nan.",
    "The total norm of order 2.0 for gradients from `parameters` is non-finite, so it cannot be clipped.",
    "Detected nan and/or inf values in `l.weight`.",
    "Model diverged with loss = NaN",
    "loss must be finite, got nan",
    "NaN loss during training.",
    "policy loss is nan",
    "critic_loss became inf",
    "Non finite gradient norm",
    "found NaN in parameters",
    "Function 'MulBackward0' returned nan values in its 0th output.",
    "actor_loss is NaN!",
    "nan or inf found in input tensor",
    "Loss is infinite",
    "loss went to nan",
    "Got NaN loss at iteration 5",
    "q_value contains NaN or Inf",
    "nan values in loss",
]
SAYS_OTHERWISE = [
    "loss weights must not be nan or inf",
    "loss info file /data/nan/inf.txt has 3 values: see nan_report",
    "max_grad_norm = inf is unsupported with fused clip",
    "NaN check for outputs disabled",
    "infinite recursion in output",
    "Input X contains infinity or a value too large for dtype('float64').",
    "Input contains NaN.",
    "cannot convert float NaN to integer",
    "Out of range float values are not JSON compliant: nan",
    "array must not contain infs or NaNs",
    "values of x, where norm_type is inf",
    "Loss function is not implemented for inf norm",
    "Column 'value' contains NaN",
    "loss/nan_count missing",
    "expected finite loss, got 3.2",
    "no NaN in loss, all good",
    "loss.nan: no such file",
    "checkpoint for banana loss not found",
    "loss is fine, info: nothing",
    "unknown reduction 'nanmean' for loss",
    "could not load weights from runs/inf/weights.pt",
    "the output has information",
    "size mismatch for weight: torch.Size([4]) vs nan_to_num",
]


@pytest.mark.parametrize("message", SAYS_NOT_FINITE)
def test_words_for_numbers_that_are_not_finite(message: str) -> None:
    assert (
        judge_not_finite(RaisedException("RuntimeError", "RuntimeError", message, "", "", "", (0,), 0), "") == "proven"
    )


@pytest.mark.parametrize("message", SAYS_OTHERWISE)
def test_words_that_only_look_like_them(message: str) -> None:
    assert judge_not_finite(RaisedException("RuntimeError", "RuntimeError", message, "", "", "", (0,), 0), "") == ""


@given(st.text(max_size=2000))
@settings(max_examples=300, deadline=None)
def test_any_text_can_be_read(text: str) -> None:
    clues = read_log_clues(text)
    for raised in clues.raised:
        assert 0 <= raised.rows[0] <= raised.rows[-1] <= raised.last < len(clues.lines)
        assert lines_of_exception(clues, raised)
    assert all(0 <= notice.row < len(clues.lines) for notice in clues.notices)


FRAMES = st.sampled_from(
    [*PLAIN.splitlines(), "", "+-+--- 1 ---", "  | x", "│ /w/a.py:3 in f │", '"""', "KeyError", "A: b"]
)


@given(st.lists(FRAMES, max_size=40))
@settings(max_examples=300, deadline=None)
def test_shuffled_pieces_of_tracebacks(lines: list[str]) -> None:
    for raised in read_tracebacks(lines):
        assert raised.rows[-1] < len(lines)
        assert raised.type in lines[raised.rows[-1]]


# Real Python, real exits.


def run(tmp_path: Path, script: str, *flags: str) -> CauseReport:
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(script), encoding="utf-8")
    done = subprocess.run([sys.executable, *flags, str(path)], capture_output=True, cwd=tmp_path, timeout=60)
    code, signal = (None, -done.returncode) if done.returncode < 0 else (done.returncode, None)
    after = PostMortem(err=done.stderr.decode("utf-8", "replace"), out=done.stdout.decode("utf-8", "replace"))
    return find_cause(ExitRecord(code, signal, 0.0, 0.0, 1.0), after, (), ())


LOG_AND_EXIT = """
    import sys, traceback
    def step():
        raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB.")
    def main():
        try:
            step()
        except RuntimeError:
            traceback.print_exc()
        for n in range(3):
            print("step", n, "loss 0.5", file=sys.stderr)
        sys.exit(1)
    main()
"""
REAL = [
    ("raise ValueError('x')", "exception(ValueError, train.py:1)", "proven"),
    ("import nothing_of_that_name", "exception(ModuleNotFoundError, train.py:1)", "proven"),
    ("def f(:\n    pass", "exception(SyntaxError, train.py:1)", "proven"),
    ("class Odd(Exception): pass\nraise Odd", "exception(Odd, train.py:2)", "proven"),
    ("import json\njson.loads('{')", "exception(JSONDecodeError, train.py:2)", "proven"),
    ("raise OSError(28, 'No space left on device', '/x')", "disk_full", "proven"),
    ("raise OSError(122, 'Disk quota exceeded')", "disk_full", "proven"),
    ("open('/dev/full', 'w').write('x' * 100000)", "disk_full", "proven"),
    ("raise RuntimeError('CUDA out of memory. Tried to allocate 2.00 GiB.')", "cuda_oom", "proven"),
    ("loss = float('nan')\nassert loss == loss, f'loss is {loss}'", "non_finite", "proven"),
    ("import math\nloss = float('nan')\nassert math.isfinite(loss)", "non_finite", "probable"),
    ("import numpy as np\nnp.seterr(all='raise')\nnp.log(np.array(-1.0))", "non_finite", "proven"),
    ("raise ExceptionGroup('g', [ValueError(1), ValueError(2)])", "exception(ValueError)", "proven"),
    ("raise KeyboardInterrupt", "signal(2)", "proven"),
    ("import sys; sys.exit(1)", "exit_code(1)", "proven"),
    ("import sys; sys.exit('giving up')", "exit_code(1)", "proven"),
    ("import os; os._exit(137)", "exit_code(137)", "proven"),
    ("import os; os.kill(os.getpid(), 9)", "signal(9)", "proven"),
    ("import os; os.kill(os.getpid(), 1)", "hangup", "proven"),
    ("import os; os.abort()", "signal(6)", "proven"),
    ("import ctypes; ctypes.string_at(0)", "signal(11)", "proven"),
    ("import threading, sys\ndef f(): raise ValueError(1)\nt = threading.Thread(target=f); t.start(); t.join(); sys.exit(1)", "exception(ValueError, train.py:2)", "probable"),
    ("import logging, sys\ntry: 1/0\nexcept ZeroDivisionError: logging.exception('no'); sys.exit(3)", "exit_code(3)", "proven"),
    ("try:\n    1/0\nexcept ZeroDivisionError as e:\n    raise RuntimeError('later') from e", "exception(RuntimeError, train.py:4)", "proven"),
    ("class A:\n    def __del__(self): raise ValueError('late')\na = A()\nimport sys\nraise KeyError('k')", "exception(KeyError, train.py:5)", "proven"),
    (LOG_AND_EXIT, "exit_code(1)", "proven"),
]  # fmt: skip


@pytest.mark.parametrize(("script", "want", "sure"), REAL, ids=[script[:40] for script, _, _ in REAL])
def test_real_python(tmp_path: Path, script: str, want: str, sure: str) -> None:
    found = run(tmp_path, script)
    assert (str(found.cause), found.cause.confidence) == (want, sure), found


def test_real_python_with_a_pool(tmp_path: Path) -> None:
    script = """
        from concurrent.futures import ProcessPoolExecutor
        def work(x):
            return 1 / x
        if __name__ == "__main__":
            with ProcessPoolExecutor(1) as pool:
                print(list(pool.map(work, [0])))
    """
    assert str(run(tmp_path, script).cause) == "exception(ZeroDivisionError, train.py:4)"


def test_real_rich(tmp_path: Path) -> None:
    script = """
        from rich.traceback import install
        install(show_locals=True)
        def main(n):
            raise IndexError("nothing at " + "a very long place " * 8)
        main(3)
    """
    found = run(tmp_path, script)
    assert (str(found.cause), found.cause.confidence) == ("exception(IndexError, train.py:5)", "proven")


def test_real_python_fault_handler(tmp_path: Path) -> None:
    found = run(tmp_path, "import ctypes; ctypes.string_at(0)", "-X", "faulthandler")
    assert str(found.cause) == "signal(11)"
    assert "segmentation fault" in found.cause.note


def test_real_shell_with_a_killed_child(tmp_path: Path) -> None:
    script = tmp_path / "train.sh"
    script.write_text("sh -c 'kill -9 $$'\nexit $?\n", encoding="utf-8")
    done = subprocess.run(["bash", str(script)], capture_output=True, text=True, timeout=60)
    counts = {"oom_before": 0, "oom_last": 0, "oom_after": 1, "last_look_s": 1.0}
    assert (
        str(find_cause(ExitRecord(done.returncode, None, 0, 0, 1), PostMortem(err=done.stderr), (), ()).cause)
        == "exit_code(137)"
    )
    found = find_cause(ExitRecord(done.returncode, None, 0, 0, 1), PostMortem(err=done.stderr, **counts), (), ())
    assert (str(found.cause), found.cause.confidence) == ("oom_kill", "probable")
