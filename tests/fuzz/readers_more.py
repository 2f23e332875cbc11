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

from muster.acts import why
from muster.acts.decisions import pointed_at
from muster.acts.preflight import preflight
from muster.domain.errors import MusterError
from muster.execute.local import read_order
from muster.execute.shim import read_object as shim_json
from muster.observe import environments, facts, find_output, find_target, npz, remains, window
from muster.observe.clocks import clocks
from muster.observe.finding import end_of
from muster.observe.origins import _by_the_way, _more
from muster.observe.zips import DAMAGED, BadMember, open_member, zip_of
from muster.ports import known_secrets
from muster.ports.bounded_json import loads_bounded
from muster.report.journal.flags import read_command
from muster.store import old_database
from muster.store.sqlite import SqliteStore
from muster.wiring import pack_secrets, shutting
from muster.wiring.finishing import _own_words
from muster.wiring.tracing import _text_of

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
        read_order(folder), find_output.supervised(str(folder)), find_output.own_process(str(folder)), shim_json(str(folder / "attempt.json")),
        why._exit_facts(folder, "t"), remains.living_orphans(str(folder)), known_secrets.know_state(folder), known_secrets.mask("x"),
    )  # fmt: skip


def _all_facts(path: Path) -> object:
    """One text as each of the small files of an attempt."""
    data = path.read_bytes()
    for name in ("attempt.json", "exit.json", "identity.json", "started", "stop", "freed", "shim.lock", "stderr.log"):
        (path.parent / name).write_bytes(data)
    folder = str(path.parent)
    found: list[object] = []
    for ask in (
        lambda: facts.read_exit(f"{folder}/exit.json", "t"), lambda: facts.read_identity(f"{folder}/identity.json"), lambda: facts.stop_reason(folder),
        lambda: facts.freed(folder), lambda: facts.shim(folder), lambda: facts.last_sign(folder, 0.0), lambda: remains.living_orphans(folder),
        lambda: read_order(path.parent), lambda: window._text(f"{folder}/started"), lambda: why.tail(f"{folder}/stderr.log"), lambda: end_of(f"{folder}/stderr.log"),
        lambda: _own_words(path.parent), lambda: find_output.supervised(folder), lambda: find_output.own_process(folder), lambda: shim_json(f"{folder}/exit.json"),
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
            find_target.target_of(argv, folder, "step"),
            find_target.repeat_of(folder),
            find_target.other_run(argv, folder),
            clocks(folder, argv),
        )

    return read


def _words(path: Path) -> object:
    argv = path.read_bytes().decode("utf-8", "surrogateescape").split("\n")
    return (
        find_target.target_of(argv, "", "step"),
        clocks(None, argv),
        list(find_output.named_folders(argv, "/x")),
        read_command("\n".join(argv)),
    )


def _answer(path: Path) -> object:
    return environments._heard(("python",), 0, path.read_bytes().decode("utf-8", "replace"), "")


def _by_way(path: Path) -> object:
    found = _by_the_way([str(path)])
    return _more(found, [1.5])


def _database(path: Path) -> object:
    return old_database.read_old(path)


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
        archive = zip_of(file)
        for member in archive.infolist()[:50]:
            with open_member(archive, member) as opened:
                while data := opened.read(1 << 16):
                    found.append(len(data))
    return sum(found)  # type: ignore[arg-type]


class _State:
    def __init__(self, file: Path) -> None:
        self.env_file = str(file)


ANSWER = "".join(f"{environments.MARK}{json.dumps(each)}\n" for each in (
    {"python": "3.11"}, {"packages": {"torch": "2.1"}}, {"begins": "torch"}, {"framework": {"name": "torch", "gpus": 1, "devices": ["x"], "kinds": ["cuda"], "trouble": ""}},
)).encode()  # fmt: skip


def _netrc(path: Path) -> object:
    from dataclasses import replace

    from muster.domain.campaign import Wandb

    online = replace(CAMPAIGN, wandb=Wandb("/x", "online"))
    return preflight(online, str(path.parent), {"NETRC": str(path), "HOME": str(path.parent), "PATH": ""})


def _small() -> list[bytes]:
    return [json.dumps(each).encode() for each in (ORDER, IDENTITY, EXIT)] + [b"12 345", b"revoked: why", b"1.5", b"t"]


def _all() -> Iterable[Reader]:
    yield Reader("attempt", ("muster.execute.local", "muster.execute.shim", "muster.acts.why", "muster.observe.find_output", "muster.observe.remains", "muster.observe.window", "muster.observe.attempts", "muster.observe.aftermath", "muster.observe.finding", "muster.wiring.finishing"),
                 _small, _all_facts, words=(*JSON_WORDS, b'"pid": ', b'"ticks": ', b"revoked:", b'"orphans": [[1, 2]]', b"null"))  # fmt: skip
    yield Reader(
        "attempt.order",
        ("muster.execute.local", "muster.observe.find_output", "muster.ports.known_secrets"),
        _small,
        _as("attempt.json", _attempt),
        (MusterError,),
        words=JSON_WORDS,
    )
    yield Reader(
        "target.yaml",
        ("muster.observe.find_target", "muster.observe.clocks"),
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
        ("muster.observe.find_target", "muster.observe.clocks"),
        lambda: [CONFIGS_JSON, b'{"steps": 5e5, "save_every": 1000}'],
        _target("config.json"),
        words=JSON_WORDS,
    )
    yield Reader(
        "target.words",
        ("muster.observe.find_target", "muster.observe.clocks", "muster.report.journal.flags"),
        lambda: [FLAGS.replace(b" ", b"\n"), SCRIPT, b"--steps\n5e5\n--log_every=7\nrun.save=8\n"],
        _words,
        words=(b"--steps", b"=", b"1e5", b".", b"--"),
    )
    yield Reader(
        "python.answer",
        ("muster.observe.environments",),
        lambda: [ANSWER],
        _answer,
        words=(environments.MARK.encode(), b'"framework":', b'"packages":', *JSON_WORDS),
        codec=LINES,
    )
    yield Reader(
        "origins",
        ("muster.observe.origins", "muster.ports.bounded_json"),
        lambda: [json.dumps({"score": 1.5, "episodes": 5, "checkpoint": "x"}).encode()],
        _by_way,
        file="r.json",
        words=JSON_WORDS,
    )
    yield Reader(
        "json.bounded",
        ("muster.ports.bounded_json",),
        lambda: [CONFIGS_JSON],
        lambda path: loads_bounded(path.read_bytes()),
        (ValueError,),
        words=JSON_WORDS,
    )
    yield Reader(
        "zip",
        ("muster.observe.zips",),
        lambda: ZIP_SEEDS,
        _zip,
        (BadMember, zipfile.BadZipFile, RuntimeError, *DAMAGED),
        codec=ZIP,
    )
    yield Reader(
        "npz",
        ("muster.observe.npz",),
        _npz,
        lambda path: npz.read_arrays(str(path), lambda names: names),
        (npz.NoArrays,),
        file="x.npz",
        codec=ZIP_OF_NPY,
    )
    yield Reader(
        "evidence",
        ("muster.acts.decisions", "muster.wiring.tracing"),
        lambda: [SCRIPT],
        lambda path: (pointed_at(f"{path.name}:3", path.parent), _text_of(path, 2)),
        (MusterError,),
    )
    yield Reader(
        "netrc",
        ("muster.acts.preflight",),
        lambda: [b"machine api.wandb.ai\n  login user\n  password x\n"],
        _netrc,
        words=(b"machine ", b"wandb"),
    )
    yield Reader(
        "environment",
        ("muster.wiring.shutting", "muster.ports.known_secrets"),
        lambda: [b'{"PATH": "/bin", "API_KEY": "abcdefgh"}'],
        lambda path: shutting.environment_of(_State(path)),
        words=JSON_WORDS,
    )  # type: ignore[arg-type]
    yield Reader(
        "pack.facts",
        ("muster.wiring.pack_secrets",),
        _small,
        lambda path: pack_secrets._facts(path.read_bytes(), known_secrets.masker()),
        words=(*JSON_WORDS, b'"argv": ["--key", "x"]', b'"env": {"API_KEY": '),
    )
    yield Reader("database", ("muster.store.old_database",), _databases, _database, (MusterError,), file="campaign.db")


ZIP_SEEDS = _npz()[:1]
MORE = tuple(_all())
