"""No file that a run may write takes much more memory or time than an honest one of its size, whoever reads it."""

from __future__ import annotations

import bz2
import io
import json
import os
import struct
import time
import traceback
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from muster.app.campaign.proposer_function import ProposerFunction
from muster.app.journal.run_files import RunFolderReader, read_series_file
from muster.model.campaign import DeclaredResult
from muster.readers.checkpoints.checkpoint_steps import step_of_checkpoint
from muster.readers.checkpoints.whole_checkpoints import check_checkpoint
from muster.readers.discovery.axis_values import config_leaves, load_run_config
from muster.readers.discovery.run_arguments import declared_periods
from muster.readers.records.logged_runs import newest_run_in
from muster.readers.records.record_steps import read_last_step
from muster.readers.results import NoResult, read_cell_result
from muster.spec.read_yaml import read_yaml_document
from muster.text.escape_markup import as_one_safe_line, escape_latex, escape_markdown

MEMORY_MIB = 200
CPU_S = 5.0
MIB = 1 << 20


def peak_kib() -> int:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))


def measured(act: Callable[[], object]) -> tuple[float, float, str]:
    """(MiB, seconds of processor time, what it says), in a process of its own that begins with no peak."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            Path("/proc/self/clear_refs").write_text("5")
            memory, began = peak_kib(), time.process_time()
            try:
                said = repr(act())
            except BaseException:
                said = "RAISED " + traceback.format_exc()[-1500:]
            told = json.dumps([(peak_kib() - memory) / 1024, time.process_time() - began, said[:2000]])
            os.write(theirs, told.encode())
        finally:
            os._exit(0)
    os.close(theirs)
    with open(ours, "rb") as file:
        data = file.read()
    os.waitpid(pid, 0)
    mib, seconds, said = json.loads(data)
    return mib, seconds, said


# -- the bombs


def zip_claiming(name: str, packed: bytes, method: int, claims: int) -> bytes:
    """An archive whose one member says that it unfolds to `claims` bytes."""
    head = struct.pack("<HHHHHIIIHH", 20, 0, method, 0, 33, 0, len(packed), claims, len(name), 0)
    local = b"PK\3\4" + head + name.encode() + packed
    central = b"PK\1\2" + struct.pack("<H", 20) + head + struct.pack("<HHHII", 0, 0, 0, 0, 0) + name.encode()
    return local + central + b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(central), len(local), 0)


def deflated(*members: tuple[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return file.getvalue()


def npy(descr: str, shape: str, data: bytes = b"") -> bytes:
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x02\x00" + struct.pack("<I", len(header)) + header + data


def long_header(text: bytes) -> bytes:
    return b"\x93NUMPY\x02\x00" + struct.pack("<I", len(text)) + text


def safetensors(header: bytes) -> bytes:
    return struct.pack("<Q", len(header)) + header


def bz2_zeros(mebibytes: int) -> bytes:
    packer = bz2.BZ2Compressor()
    block = bytes(MIB)
    return b"".join(packer.compress(block) for _ in range(mebibytes)) + packer.flush()


def deflate_zeros(mebibytes: int, before: bytes = b"") -> bytes:
    packer = zlib.compressobj(wbits=-15)
    block = bytes(MIB)
    return packer.compress(before) + b"".join(packer.compress(block) for _ in range(mebibytes)) + packer.flush()


def many_members(count: int) -> bytes:
    one = b"PK\1\2" + struct.pack("<H", 20) + bytes(24) + struct.pack("<H", 1) + bytes(16) + b"a"
    directory = one * count
    return directory + b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 0xFFFF, 0xFFFF, len(directory), 0, 0)


def overlapping(count: int) -> bytes:
    """Every member of the directory is the same one."""
    whole = zip_claiming("a", deflate_zeros(64), 8, 64 * MIB)
    local, _, rest = whole.partition(b"PK\1\2")
    central = b"PK\1\2" + rest.partition(b"PK\5\6")[0]
    end = struct.pack("<HHHHIIH", 0, 0, count, count, len(central) * count, len(local), 0)
    return local + central * count + b"PK\5\6" + end


ZEROS = 512 * MIB
BOMBS: dict[str, Callable[[], bytes]] = {
    "bzip2.pt": lambda: zip_claiming("archive/data.pkl", bz2_zeros(256), 12, 10),
    "bzip2.npz": lambda: zip_claiming("a.npy", bz2_zeros(256), 12, 10),
    "lzma.npz": lambda: zip_claiming("a.npy", b"\x09\x04\x05\x00\x5d\x00\x00\x80\x00" + bytes(4000), 14, 10),
    "zeros.npz": lambda: zip_claiming(
        "a.npy", deflate_zeros(512, npy("|u1", f"({ZEROS},)")), 8, ZEROS + len(npy("|u1", f"({ZEROS},)"))
    ),
    "claims.npz": lambda: zip_claiming("a.npy", deflate_zeros(512, npy("|u1", f"({ZEROS},)")), 8, 100),
    "small.npz": lambda: deflated(("a.npy", npy("|u1", f"({100 * MIB},)", bytes(100 * MIB)))),
    "members.npz": lambda: many_members(400_000),
    "overlap.npz": lambda: overlapping(2000),
    "header.npy": lambda: long_header(b"(" * 6_000_000),
    "minus.npy": lambda: long_header(b"-" * 9_990 + b"1"),
    "deep.npy": lambda: long_header(b"(" * 9_000),
    "product.npy": lambda: npy("<f8", "(" + "9" * 4000 + ", " + "9" * 4000 + ")"),
    "array.npy": lambda: npy("<f8", "(1,)", bytes(8)),
    "lists.safetensors": lambda: safetensors(b'{"a":[' + b"{}," * 6_000_000 + b"{}]}"),
    "headers.safetensors": lambda: safetensors(b'{"a":[' + b"{}," * 2_500_000 + b"{}]}"),
    "product.safetensors": lambda: safetensors(
        b'{"a":{"dtype":"F32","data_offsets":[0,4],"shape":[' + b",".join([b"9" * 4000] * 1500) + b"]}}"
    ),
    "lists.json": lambda: b'{"a": [' + b"{}," * 10_000_000 + b"{}]}",
    "deep.json": lambda: b"[" * 20_000_000,
    "digits.json": lambda: b'{"a": ' + b"1" * 10_000_000 + b"}",
    "wide.json": lambda: b'{"a": "' + b"x" * 30_000_000 + "😀".encode() + b'"}',
    "lists.jsonl": lambda: (b'{"a": [' + b"{}," * 5_000_000 + b"{}]}\n") * 2,
    "line.jsonl": lambda: b"[" * 60_000_000,
    "keys.jsonl": lambda: b"".join(b'{"step":%d,"k%d":1}\n' % (at, at) for at in range(100_000)),
    "digits.jsonl": lambda: b'{"step": "%s", "a": "%sx"}\n' % (b"1" * 1_000_000 + b"x", b"1" * 1_000_000),
    "line.csv": lambda: b"a,b\n" + b"1," * 30_000_000,
    "quoted.csv": lambda: b"a,b\n" + b'"x\n",' * 1_000_000,
    "digits.csv": lambda: b"a,step\n" + b"1" * 120_000 + b"x,1\n",
    "commas.csv": lambda: b"," * 1_900_000 + b"\n" + b"," * 1_900_000 + b"\n",
    "tuples.pkl": lambda: b"\x80\x04)" + b"\x85" * 1_900_000 + b".",
    "lists.pkl": lambda: b"\x80\x04](" + b"]" * 1_900_000 + b"e.",
    "shared.pkl": lambda: b"\x80\x04](}(" + b"".join(b"\x8c\x02%02dK\x01" % at for at in range(20)) + b"u\x94"
    + b"h\x00" * 800_000 + b"e.",
    "claims.pkl": lambda: b"\x80\x04\x8d" + struct.pack("<Q", 1 << 40) + b"x.",
    "line.pkl": lambda: b"\x80\x04c" + b"x" * 60_000_000,
    "number.pkl": lambda: b"\x80\x04I" + b"1" * 10_000_000 + b"\n.",
    "long.pkl": lambda: b"\x80\x04\x8b" + struct.pack("<i", 20_000_000) + b"\x7f" * 20_000_000 + b".",
    "record.tfevents.1": lambda: struct.pack("<QI", 1 << 29, 0) + bytes(30_000_000),
    "events.tfevents.1": lambda: b"\1\0\0\0\0" * 2_000_000,
    "pieces.wandb": lambda: wandb_pieces(),  # noqa: PLW0108 - it stands below
    "alias.yaml": lambda: "".join(
        f"a{at}: &a{at} {{{', '.join(f'k{key}: *a{at - 1}' for key in range(10))}}}\n" if at else "a0: &a0 {k: 1}\n"
        for at in range(14)
    ).encode(),
    "merge.yaml": lambda: merging("*a", 8000),
    "merges.yaml": lambda: merging(f"[{', '.join(['*a'] * 8000)}]", 1),
    "lists.yaml": lambda: b"seed: " + b"[" * 5000,
}  # fmt: skip


def merging(what: str, times: int) -> bytes:
    """Each mapping has all the keys of the first one."""
    keys = ", ".join(f"k{at}: 1" for at in range(8000))
    return (f"a: &a {{{keys}}}\n" + "".join(f"b{at}: {{<<: {what}}}\n" for at in range(times))).encode()


def wandb_pieces() -> bytes:
    """A record that goes on and on."""
    data = bytearray(b":W&B\xee\x00\x00")
    kind = 2
    while len(data) < 120 * MIB:
        room = 32768 - len(data) % 32768
        if room < 8:
            data += bytes(room)
            continue
        piece = b"x" * (room - 7)
        data += struct.pack("<IHB", zlib.crc32(bytes([kind]) + piece), len(piece), kind) + piece
        kind = 3
    return bytes(data)


# -- the readers


def result(kind: str) -> Callable[[str], object]:
    where = {"key": "a"} if kind != "stdout" else {}

    def read(path: str) -> object:
        asked = DeclaredResult("r", kind, r"a(\d)" if kind == "stdout" else path, reduce="mean", **where)  # type: ignore[arg-type]
        try:
            return read_cell_result(asked, path, path, {"r": asked})
        except NoResult as error:
            return str(error)

    return read


def metrics(path: str) -> object:
    found = newest_run_in(path)
    return [[rows.count for rows in feed.reader.read()] for feed in found.run.feeds()] if found.run else found


def config(path: str) -> object:
    found = load_run_config(Path(path))
    return (len(list(config_leaves(found))) if found else found), declared_periods(str(Path(path).parent))


READERS: dict[str, list[Callable[[str], object]]] = {
    ".pt": [check_checkpoint, step_of_checkpoint],
    ".npz": [check_checkpoint, step_of_checkpoint, result("npz"), read_series_file],
    ".npy": [check_checkpoint],
    ".safetensors": [check_checkpoint],
    ".json": [check_checkpoint, result("json"), config],
    ".jsonl": [result("jsonl"), lambda path: read_last_step(path, "jsonl", "step"), metrics],
    ".csv": [result("csv"), lambda path: read_last_step(path, "csv", "step"), metrics],
    ".pkl": [check_checkpoint, step_of_checkpoint, read_series_file],
    ".1": [metrics],
    ".wandb": [metrics],
    ".yaml": [config],
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_takes_little(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(BOMBS[name]())
    for at, reader in enumerate(READERS[path.suffix]):
        mib, seconds, said = measured(lambda: reader(str(path)))  # noqa: B023 - called at once
        print(f"{name} {path.stat().st_size} bytes, reader {at}: {mib:.0f} MiB, {seconds:.1f} s, {said[:80]}")
        honest = path.stat().st_size / MIB  # its bytes may be held once
        assert "RAISED" not in said, said
        assert mib < MEMORY_MIB + honest, (at, said)
        assert seconds < CPU_S, (at, said)


def test_the_files_of_a_run_folder(tmp_path: Path) -> None:
    """The journal looks at all that lies there."""
    for name, bomb in {
        "eval_history.jsonl": "lists.jsonl", "gate_trace.jsonl": "line.jsonl", "schedule_trace.json": "deep.json",
        "stage_summary.json": "lists.json", "training_stats.pkl": "shared.pkl",
    }.items():  # fmt: skip
        (tmp_path / name).write_bytes(BOMBS[bomb]())
    mib, seconds, said = measured(lambda: RunFolderReader(tmp_path, tmp_path).read(lambda _: None).troubles)
    assert "RAISED" not in said
    assert mib < MEMORY_MIB + 60, said
    assert seconds < 2 * CPU_S


@pytest.mark.parametrize("name", ["merge.yaml", "merges.yaml", "alias.yaml"])
def test_a_campaign_file_that_is_a_bomb_is_a_mistake(name: str) -> None:
    text = BOMBS[name]().decode()
    mib, seconds, said = measured(lambda: [each.message for each in read_yaml_document(text)[1]])
    assert "the file stands for more than 200000 values" in said
    assert mib < MEMORY_MIB, said
    assert seconds < CPU_S


@pytest.mark.parametrize(
    "text",
    ["-" * 100_000 + "1", "a." * 200_000 + "a", "(" * 100_000, "[" * 150 + "]" * 150, "x = 1\n" * 200_000,
     f"import {'各.' * 16_000}a", f"import {'a . ' * 16_000}a"],
)  # fmt: skip
def test_a_proposer_that_is_a_bomb_is_a_mistake(tmp_path: Path, text: str) -> None:
    (tmp_path / "mine.py").write_text(text)
    mib, seconds, said = measured(ProposerFunction("mine.py:propose", tmp_path).mistake)
    assert "RAISED" not in said
    assert "mine.py" in said, said
    assert mib < MEMORY_MIB, said
    assert seconds < CPU_S


def test_a_log_of_holes_is_passed_over(tmp_path: Path) -> None:
    for kind in ("jsonl", "csv", "stdout", "json"):
        path = tmp_path / f"x.{kind}"
        with path.open("wb") as file:
            file.truncate(1 << 42)
        mib, seconds, said = measured(lambda: result(kind)(str(path)))  # noqa: B023 - called at once
        assert "has no" in said or "no line of" in said or "more than" in said, said
        assert mib < MEMORY_MIB
        assert seconds < CPU_S


def test_an_honest_file_of_its_size_is_read(tmp_path: Path) -> None:
    """The limits leave room for what people have."""
    path = tmp_path / "r.json"
    path.write_text(json.dumps({"a": [at / 7 for at in range(300_000)]}))
    assert "300000" in str(result("json")(str(path)))
    np.savez_compressed(tmp_path / "r.npz", a=np.arange(1_000_000.0))
    assert "1000000" in str(result("npz")(str(tmp_path / "r.npz")))
    names = {f"layer.{at}.weight": at for at in range(8000)}
    header: dict[str, Any] = {
        name: {"dtype": "F32", "shape": [1, 1], "data_offsets": [4 * at, 4 * at + 4]} for name, at in names.items()
    }
    (tmp_path / "m.safetensors").write_bytes(safetensors(json.dumps(header).encode()) + bytes(4 * len(names)))
    assert check_checkpoint(str(tmp_path / "m.safetensors")).how == "safetensors, 8000 tensors cover the file exactly"


def test_a_text_of_many_short_words_is_no_bomb() -> None:
    def act() -> list[int]:
        return [len(escape("** " * 1_400_000)) for escape in (as_one_safe_line, escape_markdown, escape_latex)]

    mib, seconds, said = measured(act)
    assert said == "[4199999, 6999999, 9799999]"
    assert mib < 60  # fifteen times its size
    assert seconds < CPU_S
