"""What is found in a folder that nobody described, and who writes there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from living_processes import started

from muster.engine.ports.clock import SystemClock
from muster.hosts.local import find_process
from muster.hosts.local.find_process import OpenedFiles
from muster.hosts.local.process_outputs import find_process_output, find_supervising_campaign, writes_into_folder
from muster.hosts.local.process_tree import ProcessSnapshot
from muster.model.foreign_run import ProgressTrace, RunFolderFacts, RunProcess
from muster.readers.discovery.folder_walk import walk_run_folder
from muster.readers.discovery.progress_files import (
    PROGRESS_LOOKED_FOR,
    find_progress_files,
    find_run_folder,
    progress_source_of_trace,
)
from muster.readers.discovery.run_arguments import target_of_run
from muster.readers.discovery.step_columns import counts_upwards, date_files, dates_of_steps, find_step_column

NOW = 1_800_000_000.0
WAIT = "import sys; print('up', flush=True); sys.stdin.read()"


def rows(path: Path, *values: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return path


def touched(path: Path, at: float) -> Path:
    os.utime(path, (at, at))
    return path


def by_name(found: RunFolderFacts) -> dict[str, ProgressTrace]:
    return {trace.progress.path: trace for trace in found.traces}


# -- which column counts


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ([{"step": 1, "loss": 2}, {"step": 5, "loss": 1}], "step"),
        ([{"loss": 3, "global_step": 1}, {"loss": 4, "global_step": 2}], "global_step"),
        ([{"_step": 0, "epoch": 0}, {"_step": 9, "epoch": 0}], "_step"),
        ([{"train/loss": 3, "trainer/global_step": 7}, {"trainer/global_step": 8}], "trainer/global_step"),
        ([{"TotalEnvSteps": 100.0, "Train/Epoch": 1}, {"TotalEnvSteps": 200.0, "Train/Epoch": 2}], "TotalEnvSteps"),
        ([{"time": {"iteration": 3}}, {"time": {"iteration": 4}}], "time.iteration"),
        ([{"step": 10, "epoch": 1}, {"step": 5, "epoch": 2}, {"step": 1, "epoch": 3}], "epoch"),  # its step falls
        ([{"epoch": 3, "loss": 1}], "epoch"),
        ([{"loss": 1}, {"loss": 2}], None),
        ([{"step": "a"}, {"step": None}], None),
    ],
)
def test_the_column_that_counts(tmp_path: Path, given: list[dict[str, Any]], wanted: str | None) -> None:
    assert find_step_column(str(rows(tmp_path / "m.jsonl", *given)), "jsonl").key == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("epoch,loss\n1,2\n2,1\n", "epoch"),
        ('"TotalEnvSteps","Metrics/EpRet"\n100,1\n200,2\n', "TotalEnvSteps"),
        ("iter\tloss\n1\t2\n2\t1\n", "iter"),
        ("loss,reward\n1,2\n2,1\n", None),
        ("just some text\nand more\n", None),
        ("", None),
    ],
)
def test_the_column_of_a_table(tmp_path: Path, text: str, wanted: str | None) -> None:
    (tmp_path / "progress.csv").write_text(text)
    assert find_step_column(str(tmp_path / "progress.csv"), "csv").key == wanted


@pytest.mark.parametrize(
    ("lines", "step"),
    [
        (["step 100 loss 1", "step 123 loss 0.5"], 123),
        (["Epoch 2/10", "Epoch 3/10"], 3),
        (["[2026-02-23 17:00:00] it 400", "[2026-02-23 17:00:01] it 500"], 500),
        (["INFO step:1K smpl:8K", "INFO step:2K smpl:16K"], 2000),
        (["{'loss': 1.2, 'global_step': 10}", "{'loss': 1.1, 'global_step': 20}"], 20),
        (["Iteration: 1,000", "Iteration: 2,000"], 2000),
        (["Epoch 0:  10%|#  | 10/100 [00:01<00:09]", "Epoch 0:  30%|### | 30/100 [00:03<00:07]"], 30),
        (["max_steps: 1000", "steps per second: 12", "nothing here"], None),
    ],
)
def test_steps_in_a_log(tmp_path: Path, lines: list[str], step: float | None) -> None:
    log = tmp_path / "train.log"
    log.write_text("\n".join(lines) + "\n")
    found = find_progress_files(str(tmp_path), NOW)
    if step is None:
        assert found.traces == ()
        return
    (trace,) = found.traces
    assert progress_source_of_trace(trace).look().count == step
    assert trace.progress.kind == "stdout"


def test_a_counter_may_begin_again() -> None:
    assert counts_upwards([1, 2, 3, 1, 2, 3, 4])
    assert not counts_upwards([3, 2, 1])
    assert not counts_upwards([5, 5, 5])
    assert not counts_upwards([])


# -- when


def test_file_times_give_ages_and_gaps() -> None:
    times = [NOW - 100, NOW - 70, NOW - 40, NOW - 10]
    assert date_files(times, NOW, None).gaps == (30, 30, 30)
    assert date_files(times, NOW, NOW - 50).gaps == (30,)  # what is older than the process is another run's
    assert date_files(times, NOW, NOW - 5).last == NOW - 10
    assert date_files(times, NOW, NOW - 5).gaps == ()
    ahead = date_files([NOW + 3600], NOW, None)
    assert ahead.last is None
    assert "in the future" in ahead.why
    assert len(date_files([NOW - i for i in range(1000)], NOW, None).gaps) == 256


def test_rows_may_tell_their_own_times(tmp_path: Path) -> None:
    path = rows(tmp_path / "metrics.jsonl", *({"step": i, "time": NOW - 5000 + 1000 * i} for i in range(6)))
    found = find_step_column(str(touched(path, NOW + 1)), "jsonl").dated
    assert (found.last, found.gaps) == (NOW + 1, (1000.0,) * 5)
    touched(path, NOW + 4000)  # a copy: its rows are of another time
    assert find_step_column(str(path), "jsonl").dated.gaps == ()


def test_a_log_that_goes_on_without_steps_is_not_dated_by_its_file() -> None:
    heartbeats = [(10.0, None), *[(None, None)] * 50]
    found = dates_of_steps(heartbeats, NOW)
    assert found.last is None
    assert "can't be told" in found.why
    assert dates_of_steps([(10.0, None), (None, None)], NOW).last == NOW
    stamped = [(9.0, NOW - 900), (10.0, NOW - 600), *[(None, None)] * 50]
    assert dates_of_steps(stamped, NOW).last == NOW - 600
    assert dates_of_steps([(3.0, None)] * 50, NOW).why  # an epoch that has not counted up for fifty rows


# -- what is in a folder


def test_what_a_run_leaves_is_found(tmp_path: Path) -> None:
    rows(tmp_path / "metrics.jsonl", {"step": 1}, {"step": 2})
    rows(tmp_path / "scores.jsonl", {"step": 1, "episode/score": 3.0})
    (tmp_path / "config.yaml").write_text("log_every: 1000\n")
    (tmp_path / "replay").mkdir()
    for number in range(4):
        (tmp_path / "replay" / f"{number}.npz").touch()
    (tmp_path / "checkpoint.ckpt").write_bytes(b"x" * 10)
    (tmp_path / "events.out.tfevents.1.host").touch()
    wandb = tmp_path / "wandb" / "run-1"
    wandb.mkdir(parents=True)
    (wandb / "run-1.wandb").touch()
    (wandb / "debug-internal.log").write_text("step 1\nstep 2\n")
    found = by_name(find_progress_files(str(tmp_path), time.time()))
    assert set(found) == {"metrics.jsonl", "scores.jsonl", "replay/*.npz", "checkpoint.ckpt",
                          "events.out.tfevents.*", "wandb/run-1/run-1.wandb"}  # fmt: skip
    kinds = {name: trace.progress.kind for name, trace in found.items()}
    assert kinds["replay/*.npz"] == "files"
    assert kinds["checkpoint.ckpt"] == "checkpoint"
    for name in ("events.out.tfevents.*", "wandb/run-1/run-1.wandb"):
        assert progress_source_of_trace(found[name]).look().reading.startswith("nothing yet: no row in ")


def test_checkpoints_in_folders_are_one_signal(tmp_path: Path) -> None:
    for step in (100, 200):
        weights = tmp_path / "checkpoints" / f"{step:06}" / "pretrained_model"
        weights.mkdir(parents=True)
        (weights / "model.safetensors").write_bytes(b"x")
    for step in (5, 10):
        (tmp_path / f"checkpoint-{step}").mkdir()
        (tmp_path / f"checkpoint-{step}" / "model.pt").write_bytes(b"x")
    (tmp_path / "torch_save").mkdir()
    for epoch in (0, 1):
        (tmp_path / "torch_save" / f"epoch-{epoch}.pt").write_bytes(b"x")
    found = by_name(find_progress_files(str(tmp_path), time.time()))
    assert set(found) == {"checkpoints/*", "checkpoint-*", "torch_save/*.pt"}
    assert {trace.progress.kind for trace in found.values()} == {"checkpoint"}


def test_names_with_odd_characters_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "lr=[1e-3] *run"
    rows(folder / "metrics.jsonl", {"step": 1}, {"step": 7})
    (folder / "replay [0]").mkdir()
    for number in range(3):
        (folder / "replay [0]" / f"{number}.npz").write_bytes(b"x")
    found = by_name(find_progress_files(str(folder), time.time()))
    assert progress_source_of_trace(found["metrics.jsonl"]).look().count == 7
    assert progress_source_of_trace(found["replay [0]/*.npz"]).look().count == 3


def test_data_and_code_are_no_progress(tmp_path: Path) -> None:
    rows(tmp_path / "train.jsonl", {"text": "a"}, {"text": "b"})
    (tmp_path / "notes.md").write_text("step 1\n")
    (tmp_path / "data.csv").write_text("x,y\n1,2\n2,3\n")
    (tmp_path / ".git").mkdir()
    rows(tmp_path / ".git" / "metrics.jsonl", {"step": 1})
    found = find_progress_files(str(tmp_path), NOW)
    assert found.traces == ()
    assert "metrics.jsonl" in PROGRESS_LOOKED_FOR
    assert found.touched is not None


def test_what_can_not_be_read_is_said(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "metrics.jsonl")  # opening it would wait for ever
    os.mkfifo(tmp_path / "train.log")
    rows(tmp_path / "progress.jsonl", {"loss": 1}, {"loss": 2})
    found = find_progress_files(str(tmp_path), NOW)
    assert (
        progress_source_of_trace(by_name(found)["metrics.jsonl"]).look().trouble
        == "metrics.jsonl can't be read: it is no plain file"
    )
    assert "train.log can't be read: it is no plain file" in found.troubles
    assert "progress.jsonl has no column that counts steps; it has loss" in found.troubles


def test_an_endless_line_is_passed_quickly(tmp_path: Path) -> None:
    with open(tmp_path / "metrics.jsonl", "wb") as file:
        file.truncate(2 << 30)
    began = time.monotonic()
    found = find_progress_files(str(tmp_path), NOW)
    reading = progress_source_of_trace(by_name(found)["metrics.jsonl"]).look().reading
    assert time.monotonic() - began < 3
    assert "no newline in the last" in reading


def test_a_folder_of_runs_is_not_a_run(tmp_path: Path) -> None:
    for seed, age in ((0, 100), (1, 10), (2, 1000)):
        touched(rows(tmp_path / f"seed{seed}" / "metrics.jsonl", {"step": 1}), NOW - age)
    folder, notes = find_run_folder(str(tmp_path))
    assert folder == str(tmp_path / "seed1")
    assert notes == [f"3 runs lie in {tmp_path}; this is about seed1, which was written to last"]
    rows(tmp_path / "one" / "train" / "metrics.jsonl", {"step": 1})
    rows(tmp_path / "one" / "eval" / "metrics.jsonl", {"step": 1})
    assert find_run_folder(str(tmp_path / "one"))[1] == []  # parts of one run


def test_the_looking_around_is_bounded(tmp_path: Path) -> None:
    deep = tmp_path
    for number in range(8):
        deep = deep / f"d{number}"
    rows(deep / "metrics.jsonl", {"step": 1})
    assert find_progress_files(str(tmp_path), NOW).traces == ()
    crowded = tmp_path / "crowded"
    crowded.mkdir()
    for number in range(2100):
        (crowded / f"{number:05}.npz").touch()
    rows(crowded / "metrics.jsonl", {"step": 1}, {"step": 2})
    walked = walk_run_folder(str(crowded), ("metrics.jsonl",))
    assert str(crowded) in walked.crowded
    found = by_name(find_progress_files(str(crowded), time.time()))
    assert set(found) == {"metrics.jsonl", "*.npz"}
    assert found["*.npz"].dated.last is not None
    assert len(found["*.npz"].dated.gaps) < 8  # all were made at about one moment: no cadence of its own


def test_files_before_the_start_are_left_out_where_they_may_be_anybodys(tmp_path: Path) -> None:
    touched(rows(tmp_path / "old.jsonl", {"step": 1}), NOW - 100)
    touched(rows(tmp_path / "new.jsonl", {"step": 1}), NOW - 10)
    assert set(by_name(find_progress_files(str(tmp_path), NOW, NOW - 50, only_since=True))) == {"new.jsonl"}
    assert set(by_name(find_progress_files(str(tmp_path), NOW, NOW - 50))) == {"new.jsonl", "old.jsonl"}


# -- where a process writes


def who(cwd: Path, *argv: str) -> RunProcess:
    return RunProcess(1, 1, 0.0, argv, str(cwd))


@pytest.mark.parametrize(
    "words", [("--logdir", "out"), ("--logdir=out",), ("hydra.run.dir=out",), ("--output_dir", "out")]
)
def test_the_command_names_the_output(tmp_path: Path, words: tuple[str, ...]) -> None:
    rows(tmp_path / "out" / "metrics.jsonl", {"step": 1})
    run = who(tmp_path, "python", "train.py", *words)
    found = find_process_output(run, [(run.argv, run.cwd)], OpenedFiles(), time.time() - 5)
    assert (found.folder, found.how) == (str(tmp_path / "out"), "its command names it")


def test_a_trainer_that_names_its_own_folder(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for name in ("a", "b"):
        rows(runs / name / "metrics.jsonl", {"step": 1})
    run = who(tmp_path, "python", "train.py", "--logdir", "runs/")
    commands = [(run.argv, run.cwd)]
    opened = OpenedFiles((str(runs / "b" / "tb" / "events.1"),))
    assert find_process_output(run, commands, opened, time.time() - 5).folder == str(runs / "b")
    found = find_process_output(run, commands, OpenedFiles(), time.time() - 5)
    assert found.folder in (str(runs / "a"), str(runs / "b"))
    assert "2 folders were made" in found.notes[0]


def test_a_record_of_wandb_is_a_part_of_the_run(tmp_path: Path) -> None:
    """LeRobot has nothing else open; its checkpoints lie beside."""
    record = tmp_path / "out" / "wandb" / "run-1" / "run-1.wandb"
    rows(record, {})
    named = who(tmp_path, "python", "train.py", "--output_dir=out")
    for run in (named, who(tmp_path, "python", "train.py")):
        found = find_process_output(run, [(run.argv, run.cwd)], OpenedFiles((str(record),)), time.time() - 5)
        assert found.folder == str(tmp_path / "out")


def test_open_files_and_the_own_folder_tell_too(tmp_path: Path) -> None:
    run = who(tmp_path, "python", "train.py")
    files = (str(tmp_path / "out" / "a.jsonl"), str(tmp_path / "out" / "tb" / "events.1"))
    assert find_process_output(run, [(run.argv, run.cwd)], OpenedFiles(files), NOW).folder == str(tmp_path / "out")
    log = OpenedFiles(outputs=(str(tmp_path / "nohup.out"),))
    assert find_process_output(run, [(run.argv, run.cwd)], log, NOW).only_since
    assert find_process_output(run, [(run.argv, run.cwd)], OpenedFiles(), NOW).how == "it works there"


def test_folders_of_campaigns_are_known(tmp_path: Path) -> None:
    attempt = tmp_path / ".muster" / "attempts" / "train" / "0" / "1"
    (attempt / "out").mkdir(parents=True)
    facts = {"cell": "train/0", "n": 1, "state": str(tmp_path / ".muster")}
    (attempt / "attempt.json").write_text(json.dumps(facts))
    for folder in (attempt, attempt / "out"):
        known = find_supervising_campaign(str(folder))
        assert known
        assert (known.root, known.cell, known.attempt) == (str(tmp_path), "train/0", 1)
    whole = find_supervising_campaign(str(tmp_path))
    assert whole
    assert whole.cell == ""
    (tmp_path / "runs").mkdir()
    assert find_supervising_campaign(str(tmp_path / "runs")) is None


@pytest.mark.parametrize(
    ("argv", "config", "counts", "wanted"),
    [
        (["--steps", "120000"], "", "step", (120000, "`steps` in its command")),
        (["--run.steps=5e3"], "", "step", (5000, "`run.steps` in its command")),
        (["--epochs", "30", "--steps", "9"], "", "Train/Epoch", (30, "`epochs` in its command")),
        (
            [],
            "run:\n  steps: 120000\n  log_every: 1000\neval:\n  steps: 5\n",
            "step",
            (120000, "`run.steps` in config.yaml"),
        ),
        ([], "train:\n  warmup_steps: 10\n  max_steps: 400\n", "step", (400, "`train.max_steps` in config.yaml")),
        ([], "eval_steps: 10\nlog_steps: 5\n", "step", None),
        (["--steps", "many"], "", "step", None),
    ],
)
def test_the_step_that_it_is_to_reach(
    tmp_path: Path, argv: list[str], config: str, counts: str, wanted: tuple[float, str] | None
) -> None:
    (tmp_path / "config.yaml").write_text(config)
    found = target_of_run(argv, str(tmp_path), counts)
    assert (found and (found.step, found.where)) == wanted


# -- who writes there


def writers(folder: Path) -> find_process.FolderWriterProcesses:
    place, snapshot, clock = str(folder.resolve()), ProcessSnapshot.take(), SystemClock()

    def writes(who: RunProcess) -> bool:
        return writes_into_folder(who, place, snapshot, clock.wall() - (clock.boot() - who.began))

    return find_process.find_writers_in_folder(place, snapshot, writes)


def script(folder: Path, code: str, name: str = "job.py") -> tuple[str, ...]:
    path = folder.parent / name
    path.write_text(code)
    return (sys.executable, str(path))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    rows(folder / "metrics.jsonl", {"step": 1})
    return folder


def ready(process: subprocess.Popen[bytes]) -> int:
    assert process.stdout
    assert process.stdout.readline() == b"up\n"
    return process.pid


def test_who_has_a_file_open_for_writing(run: Path) -> None:
    code = f"import sys; file = open({str(run / 'metrics.jsonl')!r}, 'a'); {WAIT}"
    with started(*script(run, code)) as process:
        pid = ready(process)
        found = writers(run)
        assert found.main
        assert (found.main.pid, found.main.sure) == (pid, "has it open")
        assert found.main.because == (f"pid {pid} has metrics.jsonl open for writing",)
        assert find_process.files_opened_by([pid]).files == (str(run / "metrics.jsonl"),)
    assert writers(run).main is None


def test_readers_are_no_writers(run: Path) -> None:
    code = f"import sys; file = open({str(run / 'metrics.jsonl')!r}); {WAIT}"
    with started(*script(run, code)) as process:
        ready(process)
        assert writers(run).main is None
    with subprocess.Popen(["tail", "-f", str(run / "metrics.jsonl")], stdout=subprocess.PIPE) as tail:
        assert tail.stdout
        tail.stdout.readline()
        assert writers(run).main is None
        tail.kill()


# writes a row of metrics.jsonl whenever it is told to, and closes it again: where its second argument says, or where it works
ROWS = (
    "import os, sys\n"
    "folder = sys.argv[2] if len(sys.argv) > 2 else '.'\n"
    "print('up', flush=True)\n"
    "for line in sys.stdin:\n"
    "    with open(folder + '/metrics.jsonl', 'w') as file: file.write('{\"step\": 2}\\n' * 9)\n"
    "    print('wrote', flush=True)\n"
)


def test_who_names_it_or_works_there_is_the_writer_once_it_has_written(run: Path) -> None:
    there = f"import os; os.chdir({str(run)!r})\n{ROWS}"
    for job, sure in (((*script(run, ROWS), "--logdir", str(run)), "names it"), (script(run, there), "works there")):
        with started(*job) as process:
            pid = ready(process)
            found = writers(run)
            assert found.main is None  # what lies there was written before
            assert [(each.pid, each.sure) for each in found.doubtful] == [(pid, sure)]
            write_row(process)
            found = writers(run)
            assert found.main
            assert (found.main.pid, found.main.sure) == (pid, sure)


def test_who_only_shows_the_folder_or_sits_there_is_not_the_dead_ones_life(run: Path) -> None:
    """A viewer, a shell or a notebook that was there before the death: somebody else wrote what came since."""
    sits = f"import os; os.chdir({str(run)!r}); {WAIT}"
    talks = "print('x' * 500)\n" + WAIT.replace("'up'", "'\\nup'")
    names = ("--logdir", str(run))
    for job, sure in (
        ((*script(run, WAIT), *names), "names it"),
        ((*script(run, sits, "sits.py"), *names), "names it"),
        ((*script(run, talks, "talks.py"), str(run)), "names it"),
        (script(run, sits, "works.py"), "works there"),
    ):
        with started(*job) as viewer:
            assert viewer.stdout
            while viewer.stdout.readline() != b"up\n":
                pass
            rows(run / "metrics.jsonl", {"step": 2}, {"step": 3})
            found = writers(run)
            assert found.main is None
            assert [(each.pid, each.sure) for each in found.doubtful] == [(viewer.pid, sure)]


def test_a_shell_did_not_write_what_a_run_wrote_that_it_waited_for(run: Path) -> None:
    """The kernel adds to its counters what children did that it has waited for."""
    writes = "import time\nopen('metrics.jsonl', 'w').write('{}\\n' * 99)\nend = time.process_time() + 0.1\n"
    writes += "while time.process_time() < end: pass\nimport os; os.kill(os.getpid(), 9)"
    (run.parent / "dies.py").write_text(writes)
    text = f"cd {run}; {sys.executable} ../dies.py; echo up; read word"
    with started("bash", "--norc", "-c", text) as shell:
        assert ready(shell) == shell.pid
        found = writers(run)
        assert found.main is None
        assert [(each.pid, each.sure) for each in found.doubtful] == [(shell.pid, "works there")]


def test_who_evaluates_a_checkpoint_does_not_train(run: Path) -> None:
    (run / "last.ckpt").write_bytes(b"x")
    (run.parent / "scores").mkdir()
    for words in ((str(run / "last.ckpt"),), (str(run), "--out", str(run.parent / "scores"))):
        with started(*script(run, WAIT), "--checkpoint", *words) as process:
            ready(process)
            rows(run / "metrics.jsonl", {"step": 2})  # by the training, which may have died since
            found = writers(run)
            assert found.main is None
            assert [each.pid for each in found.doubtful] == [process.pid]


def trainer(folder: Path, name: str, *words: str) -> tuple[str, ...]:
    """It is given the folder above, as `--logdir runs/`, and names its own; a file is open only while it is written."""
    code = (
        "import os, sys\n"
        f"own = {str(folder / name)!r}\n"
        "for line in sys.stdin:\n"
        "    os.makedirs(own, exist_ok=True)\n"
        "    with open(own + '/metrics.jsonl', 'a') as file: file.write('{\"step\": 1}\\n')\n"
        "    print('wrote', flush=True)\n"
    )
    path = folder.parent / f"{name}.py"
    path.write_text(code)
    return (sys.executable, str(path), "--logdir", str(folder), *words)


def write_row(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin
    assert process.stdout
    process.stdin.write(b"go\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"wrote\n"


def test_another_run_of_the_same_trainer_is_not_the_dead_ones_life(tmp_path: Path) -> None:
    above = tmp_path / "runs"
    above.mkdir()
    with started(*trainer(above, "a")) as dying, started(*trainer(above, "b")) as living:
        write_row(dying)
        write_row(living)
        dying.kill()
        os.waitid(os.P_PID, dying.pid, os.WEXITED | os.WNOWAIT)
        found = writers(above / "a")  # it was written to since the other began, and made since
        assert found.main is None
        assert [(each.pid, each.sure) for each in found.doubtful] == [(living.pid, "names the folder above")]
        (above / "a" / "metrics.jsonl").unlink()
        (above / "a").rmdir()
        found = writers(above / "b")
        assert found.main
        assert (found.main.pid, found.main.sure) == (living.pid, "names the folder above")
        (above / "b" / "config.yaml").write_text("method: b\nseed: 1\n")
        with started(*trainer(above, "c", "--seed", "2")):
            found = writers(above / "b")  # the other has made no folder yet, and its seed is another
            assert found.main
            assert found.main.pid == living.pid
            assert not found.others


def test_who_only_shows_the_folder_above_is_not_the_dead_ones_life(tmp_path: Path) -> None:
    """A viewer that was there first, and the only folder that was made since: the viewer has written nothing."""
    above = tmp_path / "runs"
    above.mkdir()
    with started(*script(tmp_path, WAIT), "--logdir", str(above)) as viewer:
        ready(viewer)
        with started(*trainer(above, "a")) as dying:
            for _ in range(5):
                write_row(dying)
            dying.kill()
            os.waitid(os.P_PID, dying.pid, os.WEXITED | os.WNOWAIT)
            found = writers(above / "a")
            assert found.main is None
            assert [each.pid for each in found.doubtful] == [viewer.pid]


def test_a_filter_that_names_the_log_is_no_training(run: Path) -> None:
    """It has not opened its file yet, or only reads it."""
    words = ["sed", "-u", "p", str(run / "metrics.jsonl"), "-"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as sed:
        assert sed.stdout
        sed.stdout.readline()
        rows(run / "metrics.jsonl", {"step": 2})
        assert writers(run) == find_process.FolderWriterProcesses()
        assert sed.stdin
        sed.stdin.close()


def test_it_is_not_tee_that_trains(run: Path) -> None:
    job = script(run, WAIT)
    with started(*job) as process:
        ready(process)
        tee = subprocess.Popen(["tee", str(run / "train.log")], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        assert tee.stdin
        feeding = subprocess.Popen(
            [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE, stdout=tee.stdin
        )
        tee.stdin.close()
        try:
            found = _until(lambda: writers(run).main)
            assert found.pid == feeding.pid
            assert found.because == (f"pid {feeding.pid} writes to tee, which has train.log open for writing",)
        finally:
            assert feeding.stdin
            feeding.stdin.close()
            feeding.wait()
            tee.wait()


def _until(true: Callable[[], RunProcess | None]) -> RunProcess:
    deadline = time.monotonic() + 20
    while (found := true()) is None:
        assert time.monotonic() < deadline
    return found


def test_workers_of_one_launcher_are_one_run(run: Path) -> None:
    path = str(run / "metrics.jsonl")
    code = (
        "import os, sys\n"
        "for number in range(2):\n"
        "    if os.fork() == 0:\n"
        f"        file = open({path!r}, 'a'); os.write(1, b'worker\\n'); sys.stdin.read(); os._exit(0)\n"
        "os.write(1, b'up\\n')\n"
        "for number in range(2): os.wait()\n"
    )
    with started(*script(run, code)) as process:
        assert process.stdout
        assert sorted(process.stdout.readline() for _ in range(3)) == [b"up\n", b"worker\n", b"worker\n"]
        found = writers(run)
        assert found.main
        assert found.main.pid == process.pid
        worker = next(pid for pid, proc in ProcessSnapshot.take().procs.items() if proc.ppid == process.pid)
        snapshot = ProcessSnapshot.take()
        assert find_process.training_process_of_worker(snapshot.procs[worker], snapshot).pid == process.pid


def test_the_kernel_keeps_the_exit_of_a_zombie() -> None:
    with subprocess.Popen([sys.executable, "-c", "import os; os._exit(3)"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert find_process.exit_status_of_zombie(process.pid) == 3 << 8
    assert find_process.exit_status_of_zombie(os.getpid()) is None


def test_names_of_programs() -> None:
    assert find_process.program_of_command(["/usr/bin/python3.11", "-u", "train.py", "--x"]) == "train.py"
    assert find_process.program_of_command(["python", "-m", "tensorboard", "--logdir", "x"]) == "tensorboard"
    assert find_process.program_of_command(["python", "-c", "import time"]) == "python"
    assert find_process.program_of_command(["-bash"]) == "bash"
    assert find_process.program_of_command([]) == ""


def test_a_line_of_no_table_is_no_header(tmp_path: Path) -> None:
    """A carriage return in the middle of it, which no reader of tables takes."""
    (tmp_path / "odd.csv").write_bytes(b"step\rloss\r1\n2\n")
    assert find_step_column(str(tmp_path / "odd.csv"), "csv").key is None
