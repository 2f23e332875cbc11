"""Readers that look at one small thing each: facts of attempts, what a Python answers, configs that tell a target."""

from __future__ import annotations

import json
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

from containers import LINES, ZIP
from harness import Reader
from readers_runs import (
    CAMPAIGN,
    CONFIGS_JSON,
    CONFIGS_YAML,
    EXIT,
    FLAGS,
    JSON_WORDS,
    SCRIPT,
    YAML_BYTES,
    YAML_WORDS,
    ZIP_OF_NPY,
    _npz,
    honest_yaml,
)
from readers_state import NAMES, _as, _logs

from muster.app.campaign.preflight.missing_programs import find_preflight_mistakes
from muster.app.campaign.verbs.write_note import read_evidence_line
from muster.app.finish import power_off
from muster.app.finish.run_finish import _last_error_message
from muster.app.journal.recorded_run import split_command_text
from muster.app.overview import explain_cell, write_pack
from muster.app.report.trace_files import _read_traced_line
from muster.engine.store import database_checks
from muster.engine.store.sqlite_store import SqliteStore
from muster.files import known_secrets
from muster.files.json_codec import load_bounded_json
from muster.hosts.local import living_runs, process_outputs, python_probe
from muster.hosts.local.shim import read_object_or_none
from muster.model.errors import MusterError
from muster.readers import attempt_facts, run_times
from muster.readers.attempt_facts import read_order
from muster.readers.checkpoints import arrays
from muster.readers.checkpoints.file_formats import DAMAGED_FILE_ERRORS, UnreadableMember, open_zip, open_zip_member
from muster.readers.discovery import run_arguments
from muster.readers.discovery.progress_files import read_log_end
from muster.readers.discovery.run_arguments import declared_periods
from muster.readers.result_origins import _first_result_object, _other_result_texts

ORDER = {
    "muster": 1, "state": "/x/.muster", "cell": "train/a/0", "n": 1, "token": "t", "command": ["python", "train.py"], "cwd": "/x", "env": {"A": "b"}, "env_file": "/x/.muster/env/1.json",
    "output": "/x/out", "slots": ["gpu0.0"], "shell": False, "mkdir": True, "bell": "/x/bell", "epoch": 1, "hash": "abc", "campaign": "def", "at": "2026", "boot": 5.0,
}  # fmt: skip
IDENTITY = {
    "boot_id": "b",
    "pid_ns": 5,
    "init_ticks": 1,
    "pid": 4,
    "ticks": 9,
    "shim_pid": 7,
    "shim_ticks": 8,
    "token": "t",
}


def _attempt(folder: Path) -> object:
    return (
        read_order(folder), process_outputs.find_supervising_campaign(str(folder)), process_outputs.process_of_attempt_folder(str(folder)), read_object_or_none(str(folder / "attempt.json")),
        explain_cell._read_exit_facts(folder, "t"), living_runs.find_living_orphans(str(folder)), known_secrets.register_state_secrets(folder), known_secrets.mask_secrets("x"),
    )  # fmt: skip


def _all_facts(path: Path) -> object:
    """One text as each of the small files of an attempt."""
    data = path.read_bytes()
    for name in ("attempt.json", "exit.json", "identity.json", "started", "stop", "freed", "shim.lock", "stderr.log"):
        (path.parent / name).write_bytes(data)
    folder = str(path.parent)
    found: list[object] = []
    for ask in (
        lambda: attempt_facts.read_exit_file(f"{folder}/exit.json", "t"), lambda: attempt_facts.read_identity_file(f"{folder}/identity.json"), lambda: attempt_facts.read_stop_reason(folder),
        lambda: attempt_facts.read_freed_time(folder), lambda: attempt_facts.shim_state(folder), lambda: attempt_facts.last_sign_of_attempt(folder, 0.0), lambda: living_runs.find_living_orphans(folder),
        lambda: read_order(path.parent), lambda: run_times._read_stripped_text(f"{folder}/started"), lambda: explain_cell.read_log_tail(f"{folder}/stderr.log"), lambda: read_log_end(f"{folder}/stderr.log"),
        lambda: _last_error_message(path.parent), lambda: process_outputs.find_supervising_campaign(folder), lambda: process_outputs.process_of_attempt_folder(folder), lambda: read_object_or_none(f"{folder}/exit.json"),
    ):  # fmt: skip
        try:
            found.append(ask())
        except (OSError, MusterError) as error:
            found.append(str(error))
    return found


def _target(name: str) -> Callable[[Path], object]:
    def read(path: Path) -> object:
        path.rename(path.with_name(name))
        folder = str(path.parent)
        argv = ["python", "train.py", "--steps", "5", "--seed=1"]
        return (
            run_arguments.target_of_run(argv, folder, "step"),
            run_arguments.action_repeat_of_run(folder),
            run_arguments.is_config_of_other_run(argv, folder),
            declared_periods(folder, argv),
        )

    return read


def _words(path: Path) -> object:
    argv = path.read_bytes().decode("utf-8", "surrogateescape").split("\n")
    return (
        run_arguments.target_of_run(argv, "", "step"),
        declared_periods(None, argv),
        list(process_outputs.output_folders_in_command(argv, "/x")),
        split_command_text("\n".join(argv)),
    )


def _answer(path: Path) -> object:
    return python_probe._parse_python_answer(("python",), 0, path.read_bytes().decode("utf-8", "replace"), "")


def _by_way(path: Path) -> object:
    found = _first_result_object([str(path)])
    return _other_result_texts(found, [1.5])


def _database(path: Path) -> object:
    return database_checks.read_old_database(path)


def _databases() -> list[bytes]:
    """One of a real log, and an old one of few pages."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "decisions.jsonl").write_bytes(_logs()[NAMES.index("demo-0.1")])
        store = SqliteStore(Path(folder))
        try:
            store.db.execute("PRAGMA journal_mode = DELETE")
            store.db.execute(
                "INSERT INTO event (kind, who, at, boot, data) VALUES ('note', 'me', '2026', 1.0, '{\"a\": [1]}')"
            )
        except sqlite3.Error:
            pass
        finally:
            store.close()
        return [Path(folder, "campaign.db").read_bytes()]


def _zip(path: Path) -> object:
    found: list[object] = []
    with path.open("rb") as file:
        archive = open_zip(file)
        for member in archive.infolist()[:50]:
            with open_zip_member(archive, member) as opened:
                while data := opened.read(1 << 16):
                    found.append(len(data))
    return sum(found)  # type: ignore[arg-type]


class _State:
    def __init__(self, file: Path) -> None:
        self.env_file = str(file)


ANSWER = "".join(f"{python_probe.PROBE_MARK}{json.dumps(each)}\n" for each in (
    {"python": "3.11"}, {"packages": {"torch": "2.1"}}, {"begins": "torch"}, {"framework": {"name": "torch", "gpus": 1, "devices": ["x"], "kinds": ["cuda"], "trouble": ""}},
)).encode()  # fmt: skip


def _netrc(path: Path) -> object:
    from dataclasses import replace

    from muster.model.campaign import WandbSettings

    online = replace(CAMPAIGN, wandb=WandbSettings("/x", "online"))
    return find_preflight_mistakes(online, str(path.parent), {"NETRC": str(path), "HOME": str(path.parent), "PATH": ""})


def _small() -> list[bytes]:
    return [json.dumps(each).encode() for each in (ORDER, IDENTITY, EXIT)] + [b"12 345", b"revoked: why", b"1.5", b"t"]


def _all() -> Iterable[Reader]:
    yield Reader("attempt", ("muster.hosts.local.executor", "muster.hosts.local.shim", "muster.app.overview.explain_cell", "muster.hosts.local.process_outputs", "muster.hosts.local.living_runs", "muster.readers.run_times", "muster.hosts.local.attempt_probe", "muster.hosts.local.attempt_observer", "muster.readers.discovery.progress_files", "muster.app.finish.run_finish"),
                 _small, _all_facts, words=(*JSON_WORDS, b'"pid": ', b'"ticks": ', b"revoked:", b'"orphans": [[1, 2]]', b"null"))  # fmt: skip
    yield Reader(
        "attempt.order",
        ("muster.hosts.local.executor", "muster.hosts.local.process_outputs", "muster.files.known_secrets"),
        _small,
        _as("attempt.json", _attempt),
        (MusterError,),
        words=JSON_WORDS,
    )
    yield Reader(
        "target.yaml",
        ("muster.readers.discovery.run_arguments", "muster.readers.discovery.run_arguments"),
        lambda: [
            CONFIGS_YAML,
            b"steps: 5e5\nrun: {log_every: 120, save_every: 1e3}\ntask: dmc_x\nenv: {dmc: {repeat: 2}}\n",
        ],
        _target("config.yaml"),
        most=YAML_BYTES,
        honest=honest_yaml,
        words=YAML_WORDS,
    )
    yield Reader(
        "target.json",
        ("muster.readers.discovery.run_arguments", "muster.readers.discovery.run_arguments"),
        lambda: [CONFIGS_JSON, b'{"steps": 5e5, "save_every": 1000}'],
        _target("config.json"),
        words=JSON_WORDS,
    )
    yield Reader(
        "target.words",
        (
            "muster.readers.discovery.run_arguments",
            "muster.readers.discovery.run_arguments",
            "muster.app.journal.recorded_run",
        ),
        lambda: [FLAGS.replace(b" ", b"\n"), SCRIPT, b"--steps\n5e5\n--log_every=7\nrun.save=8\n"],
        _words,
        words=(b"--steps", b"=", b"1e5", b".", b"--"),
    )
    yield Reader(
        "python.answer",
        ("muster.hosts.local.python_probe",),
        lambda: [ANSWER],
        _answer,
        words=(python_probe.PROBE_MARK.encode(), b'"framework":', b'"packages":', *JSON_WORDS),
        codec=LINES,
    )
    yield Reader(
        "origins",
        ("muster.readers.result_origins", "muster.files.json_codec"),
        lambda: [json.dumps({"score": 1.5, "episodes": 5, "checkpoint": "x"}).encode()],
        _by_way,
        file="r.json",
        words=JSON_WORDS,
    )
    yield Reader(
        "json.bounded",
        ("muster.files.json_codec",),
        lambda: [CONFIGS_JSON],
        lambda path: load_bounded_json(path.read_bytes()),
        (ValueError,),
        words=JSON_WORDS,
    )
    yield Reader(
        "zip",
        ("muster.readers.checkpoints.file_formats",),
        lambda: ZIP_SEEDS,
        _zip,
        (UnreadableMember, zipfile.BadZipFile, RuntimeError, *DAMAGED_FILE_ERRORS),
        codec=ZIP,
    )
    yield Reader(
        "npz",
        ("muster.readers.checkpoints.arrays",),
        _npz,
        lambda path: arrays.read_npz_arrays(str(path), lambda names: names),
        (arrays.UnreadableArrays,),
        file="x.npz",
        codec=ZIP_OF_NPY,
    )
    yield Reader(
        "evidence",
        ("muster.app.campaign.verbs.write_note", "muster.app.report.trace_files"),
        lambda: [SCRIPT],
        lambda path: (read_evidence_line(f"{path.name}:3", path.parent), _read_traced_line(path, 2)),
        (MusterError,),
    )
    yield Reader(
        "netrc",
        ("muster.app.campaign.preflight.missing_programs",),
        lambda: [b"machine api.wandb.ai\n  login user\n  password x\n"],
        _netrc,
        words=(b"machine ", b"wandb"),
    )
    yield Reader(
        "environment",
        ("muster.app.finish.power_off", "muster.files.known_secrets"),
        lambda: [b'{"PATH": "/bin", "API_KEY": "abcdefgh"}'],
        lambda path: power_off.read_recorded_environment(_State(path)),
        words=JSON_WORDS,
    )  # type: ignore[arg-type]
    yield Reader(
        "pack.facts",
        ("muster.app.overview.write_pack",),
        _small,
        lambda path: write_pack._mask_json_facts(path.read_bytes(), known_secrets.current_masker()),
        words=(*JSON_WORDS, b'"argv": ["--key", "x"]', b'"env": {"API_KEY": '),
    )
    yield Reader(
        "database", ("muster.engine.store.database_checks",), _databases, _database, (MusterError,), file="campaign.db"
    )


ZIP_SEEDS = _npz()[:1]
MORE = tuple(_all())
