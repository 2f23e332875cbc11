"""Readers of Muster's own files, which another user, another machine or a broken disk may have changed: state, packs, stamps."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from containers import LINES, TAR_GZ
from harness import Reader
from readers_runs import JSON_WORDS

from muster.app.campaign import last_report, stamp_files
from muster.app.campaign.campaign_code import load_code_book
from muster.app.facts import stamp_basis
from muster.app.overview.pack_format import PACK_FORMAT, LogRevision, PackManifest, decode_manifest
from muster.app.overview.unpack_campaign import unpack_campaign
from muster.app.overview.write_pack import PackSource, describe_pack_files, write_pack
from muster.engine.ports.clock import SystemClock
from muster.engine.ports.store import RebuildRequest
from muster.engine.store import database_rebuild
from muster.engine.store.controller_files import ControllerLock, WatchBookFile
from muster.engine.store.database_checks import refuse_newer_state
from muster.engine.store.decision_log import FileDecisionLog
from muster.engine.store.sqlite_store import SqliteStore
from muster.files import campaign_register, campaign_snapshots, state_folder
from muster.files.state_folder import read_outside_paths
from muster.hosts.local.guard_keeper import living_guard_pid, read_guard_report
from muster.hosts.local.launch_orders import LaunchBook
from muster.hosts.local.slot_leases import SlotLeases
from muster.model.errors import MusterError
from muster.readers.file_hashes import HashCache

LOGS = Path(__file__).parents[1] / "fixtures" / "logs"
NAMES = ("adopt-0.1", "budget-0.1", "demo-0.1", "gates-0.1", "loop-0.1", "words-0.1")


def _logs() -> list[bytes]:
    """What earlier versions decided in real campaigns; their beginnings."""
    return [
        b"".join(gzip.decompress((LOGS / name / "decisions.jsonl.gz").read_bytes()).splitlines(True)[:60])
        for name in NAMES
    ]


def _state(path: Path) -> Path:
    """A campaign's state around a log: with all snapshots that any of the logs names."""
    state = path.parent / ".muster"
    state.mkdir()
    (state / "campaigns").mkdir()
    for name in NAMES:
        for file in (LOGS / name / "campaigns").iterdir():
            target = state / "campaigns" / file.name.removesuffix(".gz")
            if not target.exists():
                data = file.read_bytes()
                target.write_bytes(gzip.decompress(data) if file.suffix == ".gz" else data)
    path.rename(state / "decisions.jsonl")
    return state


def _log(path: Path) -> object:
    path = path.rename(path.with_name("decisions.jsonl"))
    log = FileDecisionLog(path)
    return (
        campaign_register.read_campaign_id(path.parent),
        state_folder.former_campaign_folders(path.parent),
        log.size(),
        refuse_newer_state(path.parent),
    )


def _fold(path: Path) -> object:
    store = SqliteStore.of_log(_state(path))
    try:
        found = store.load()
        store.events()
        return found
    finally:
        store.close()


def _fsck(path: Path) -> object:
    state = _state(path)
    found = database_rebuild.rebuild_database(state, RebuildRequest("me", "2026-01-01T00:00:00+08:00", 1.0))
    return (
        found,
        database_rebuild.list_missing_snapshots(state),
        database_rebuild.has_known_decisions(state),
        database_rebuild.old_cell_hashes(state),
    )


def _snapshots() -> list[bytes]:
    found = []
    for name in NAMES:
        for file in sorted((LOGS / name / "campaigns").iterdir())[:1]:
            data = file.read_bytes()
            found.append(gzip.decompress(data) if file.suffix == ".gz" else data)
    return found


def _snapshot(path: Path) -> object:
    (path.parent / "campaigns").mkdir()
    path.rename(path.parent / "campaigns" / "abc.json")
    found = campaign_snapshots.load_snapshotted_campaign(path.parent, "abc")
    campaign_snapshots.snapshot_cell_rows(path.parent, "abc")
    return found


def _as(name: str, read: Callable[[Path], object]) -> Callable[[Path], object]:
    """The file under its name in a state; `read` gets the state."""

    def renamed(path: Path) -> object:
        target = path.parent / name
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
        return read(path.parent)

    return renamed


def _lock(state: Path) -> object:
    lock = ControllerLock(state, SystemClock())
    return lock.holder(), lock.hung()


def _launched(state: Path) -> object:
    book = LaunchBook(state / "launched")
    try:
        return book.known()
    finally:
        book.close()


def _slot(folder: Path) -> object:
    house = SlotLeases(folder)
    return house.holder("gpu0.0"), house.signed_for_s("gpu0.0")


def _stamp(root: Path) -> object:
    return (
        stamp_files.read_stamp(root, "report"),
        list(stamp_files.read_all_stamps(root)),
        last_report.read_last_verdict(root),
    )


STAMP = {
    "format": 1, "made": "report", "command": "muster report", "at": "2026-01-01T00:00:00+08:00", "version": "0.1",
    "basis": {"campaign": "c", "campaign_hash": "abc", "sections": {"train": "x"}, "cells": {}, "missing": {}, "code": {}, "seeds": {}},
    "files": {"reports/main.md": {"sha256": "0" * 64, "cells": ["train/a/0"]}},
    "verdict": None,
}  # fmt: skip


def _stamps() -> list[bytes]:
    """A real one where it can be made, and one by hand."""
    return [json.dumps(STAMP).encode(), *_real_stamps()]


def _real_stamps() -> list[bytes]:
    import msgspec

    from muster.app.campaign.stamp import CellStamp, CheckpointStamp, FileStamp, Stamp, StampBasis

    def made(kind: type) -> object:
        values = {"str": "x", "int": 1, "float": 0.5, "bool": True}
        fields = {}
        for field in msgspec.inspect.type_info(kind).fields:  # type: ignore[union-attr]
            if field.required:
                told = type(field.type).__name__.removesuffix("Type").lower()
                fields[field.name] = {"dict": {}, "list": [], "vartuple": (), "tuple": ()}.get(told, values.get(told))
        return fields

    cell = {**made(CellStamp), "checkpoint": None}  # type: ignore[dict-item]
    basis = {**made(StampBasis), "cells": {"train/a/0": cell}}  # type: ignore[dict-item]
    whole = {**made(Stamp), "basis": basis, "files": {"reports/main.md": made(FileStamp)}}  # type: ignore[dict-item]
    with_checkpoint = json.loads(json.dumps(whole))
    with_checkpoint["basis"]["cells"]["train/a/0"]["checkpoint"] = made(CheckpointStamp)
    return [json.dumps(whole).encode(), json.dumps(with_checkpoint).encode()]


def _packs() -> list[bytes]:
    files = {
        "campaign.yaml": b"muster: 1\n",
        ".muster/decisions.jsonl": b'{"kind": "campaign"}\n' * 4,
        "a/" + "long name " * 12 + "/x.txt": bytes(range(256)),
    }
    with tempfile.TemporaryDirectory() as name:
        folder, sources = Path(name), []
        for at, (path, data) in enumerate(files.items()):
            (folder / f"source-{at}").write_bytes(data)
            sources.append(PackSource(path, str(folder / f"source-{at}")))
        listed = describe_pack_files(sources, lambda *_: None)
        manifest = PackManifest(PACK_FORMAT, "0", "c", LogRevision(1, "now"), tuple(listed))
        write_pack(folder / "made.tar.gz", manifest, sources, lambda *_: None)
        return [(folder / "made.tar.gz").read_bytes()]


def _manifests() -> list[bytes]:
    return [
        b'{"muster_pack": 1, "version": "0", "campaign": "c", "log": {"lines": 1, "at": "now"}, "files": [{"path": "campaign.yaml", "size": 1, "sha256": "'
        + b"0" * 64
        + b'", "mtime_ns": 5}], "folders": [], "left_out": []}'
    ]


def _unpacked(path: Path) -> object:
    return unpack_campaign(path, path.parent / "there", lambda *_: None, lambda *_: None)


REMEMBERED = b'{"boot_id": "b", "histories": {}, "siblings": {}, "readings": {}}'
ENTRY = b'{"id": "x", "path": "/nowhere/c", "inode": 5, "name": "c", "at": "2026"}'
HOLDER = b'{"folder": "/x", "cell": "train/a/0", "attempt": 1, "token": "t", "pid": 5}'
LOCK = b'{"pid": 1, "ticks": 5, "since": 1.0, "format": 1, "version": "0.1", "epoch": 3, "beat": 5.5, "trouble": ""}'
MARK = b'{"path": "/x", "inode": 5, "machine": "m", "former": ["/y"], "id": "z"}'
LINE = b'{"token": "t", "identity": {"boot_id": "b", "pid_ns": 1, "init_ticks": 1, "pid": 4, "ticks": 5, "shim_pid": 6, "shim_ticks": 7}}\n{"token": "u"}\n'
HASHES = b'{"files": [["/x/a", 1, 2, 3, 4, "00"], ["/x/b", 1, 2, 3, 4, "11"]]}'
BOOK = b'{"/x": {"code": {"commit": "abc", "files": {"a.py": "00"}}, "top": "/x", "diff": "", "paths": ["a.py"]}}'
LEFT = b'{"checkpoints": {"t": {"path": "a/b.pt", "sha256": "00", "saved": 0.9, "step": 5}}, "muster": 1}'
DECISION_WORDS = (*JSON_WORDS, b'"kind": "start"', b'"kind": "settle"', b'"kind": "campaign"', b'"cell": "train/v2_full/1"', b'"attempt": 99999999999', b'"epoch":', b'"data": {', b'"token": ', b'"slots": ["gpu0.0"]',
                  b'"outcome":', b'"verdict": "DONE"', b'"root": "/etc"', b'"hash": "../../x"', b'"at": "2026', b'"boot": 1e999', b"null", b"true", b"\n", b'"kind": "rename"', b'"kind": "epoch"', b'"format": 2')  # fmt: skip


def _all() -> Iterable[Reader]:
    yield Reader(
        "log",
        (
            "muster.engine.store.decision_log",
            "muster.files.json_codec",
            "muster.files.campaign_register",
            "muster.files.state_folder",
            "muster.engine.store.database_checks",
        ),
        _logs,
        _log,
        (MusterError,),
        words=DECISION_WORDS,
        codec=LINES,
    )
    yield Reader(
        "log.folded",
        ("muster.engine.store.sqlite_store", "muster.engine.store.fold", "muster.engine.store.decision_log"),
        _logs,
        _fold,
        (MusterError,),
        words=DECISION_WORDS,
        codec=LINES,
        share=2,
        most=256 << 10,
    )
    yield Reader(
        "log.fsck",
        ("muster.engine.store.database_rebuild", "muster.engine.store.decision_log"),
        _logs,
        _fsck,
        (MusterError,),
        words=DECISION_WORDS,
        codec=LINES,
        most=256 << 10,
    )
    yield Reader(
        "snapshot", ("muster.files.campaign_snapshots",), _snapshots, _snapshot, (MusterError,), words=JSON_WORDS
    )
    yield Reader(
        "register",
        ("muster.files.campaign_register",),
        lambda: [ENTRY],
        _as("campaigns/x.json", campaign_register.list_register_entries),
        words=JSON_WORDS,
    )
    yield Reader(
        "place",
        ("muster.files.state_folder",),
        lambda: [MARK],
        _as(
            "place",
            lambda state: (
                state_folder.state_folder_standing(state),
                state_folder.locate_campaign(state),
                state_folder.original_campaign_folder(state),
            ),
        ),
        (MusterError,),
        words=JSON_WORDS,
    )
    yield Reader(
        "watch",
        ("muster.engine.store.controller_files",),
        lambda: [REMEMBERED],
        _as("watch.json", lambda state: WatchBookFile(state, "b").load()),
        words=JSON_WORDS,
    )
    yield Reader(
        "launched",
        ("muster.hosts.local.launch_orders",),
        lambda: [LINE],
        _as("launched", _launched),
        words=JSON_WORDS,
        codec=LINES,
    )
    yield Reader(
        "guard.words",
        ("muster.hosts.local.guard_keeper",),
        lambda: [b'{"times": 3, "failed": 1, "code": 2, "said": "x", "next": 1.5}'],
        _as("guard.json", lambda state: (read_guard_report(state), living_guard_pid(state))),
        words=JSON_WORDS,
    )
    yield Reader(
        "lock",
        ("muster.engine.store.controller_files",),
        lambda: [LOCK],
        _as("controller.lock", _lock),
        words=(*JSON_WORDS, b'"pid": 1', b'"ticks": '),
    )
    yield Reader("slot", ("muster.hosts.local.slot_leases",), lambda: [HOLDER], _as("gpu0.0", _slot), words=JSON_WORDS)
    yield Reader(
        "hashes",
        ("muster.readers.file_hashes",),
        lambda: [HASHES],
        _as("hashes.json", lambda state: HashCache(state).sha256(state / "hashes.json")),
        words=JSON_WORDS,
    )
    yield Reader(
        "codes",
        ("muster.app.campaign.campaign_code",),
        lambda: [BOOK],
        _as("code.json", load_code_book),
        words=JSON_WORDS,
    )
    yield Reader(
        "left_out",
        ("muster.app.facts.stamp_basis",),
        lambda: [LEFT],
        _as("left_out.json", lambda state: stamp_basis.read_omitted_checkpoints(state, str)),
        words=JSON_WORDS,
    )
    yield Reader(
        "outside",
        ("muster.files.state_folder",),
        lambda: [b'["/a", "/b"]'],
        _as("outside.json", read_outside_paths),
        words=JSON_WORDS,
    )
    yield Reader(
        "stamp",
        ("muster.app.campaign.stamp_files", "muster.app.campaign.last_report"),
        _stamps,
        _as("reports/stamps/report.json", _stamp),
        (MusterError,),
        words=JSON_WORDS,
    )
    yield Reader(
        "pack",
        (
            "muster.app.overview.unpack_campaign",
            "muster.app.overview.unpack_campaign",
            "muster.app.overview.pack_format",
        ),
        _packs,
        _unpacked,
        (MusterError,),
        file="x.tar.gz",
        codec=TAR_GZ,
        words=(b"ustar", b"\0" * 512, b"size=999999999999", b"path=../x"),
        share=2,
    )
    yield Reader(
        "pack.manifest",
        ("muster.app.overview.pack_format",),
        _manifests,
        lambda path: decode_manifest(path.read_bytes(), "x"),
        (MusterError,),
        words=(*JSON_WORDS, b'"../x"', b'"path":', b'".muster/"'),
    )


STATE = tuple(_all())
