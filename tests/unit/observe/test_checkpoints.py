"""Checkpoints are judged by content: whole ones open, every cut-off one is refused, nothing is executed."""

import collections
import io
import json
import os
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.readers.checkpoints import file_formats
from muster.readers.checkpoints.whole_checkpoints import check_checkpoint, checkpoint_saved_at


def npz() -> bytes:
    file = io.BytesIO()
    inner = io.BytesIO()
    np.savez(inner, deep=np.ones(3))
    # bytes of a whole archive inside: a cut right behind it leaves an end record that is not the file's own
    np.savez(
        file, w=np.arange(12.0).reshape(3, 4), name=np.array(["é", "ab"]), raw=np.frombuffer(inner.getvalue(), "u1")
    )
    return file.getvalue()


def torch_like() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"w": [1, 2, 3]}, 2))
        archive.writestr("archive/data/0", os.urandom(2000))
        archive.writestr("archive/version", "3\n")
    return file.getvalue()


def safetensors(extra: int = 0) -> bytes:
    header = {
        "__metadata__": {"format": "pt"},
        "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
        "b": {"dtype": "I8", "shape": [5], "data_offsets": [24, 29]},
        "empty": {"dtype": "F32", "shape": [0], "data_offsets": [29, 29]},
    }
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(29 + extra)


def pickled(protocol: int = 4) -> bytes:
    value = {
        "agent": {f"layer{n}": np.arange(50.0) for n in range(5)},
        "step": 12,
        "order": collections.OrderedDict(a=1),
    }
    return pickle.dumps(value, protocol)


WHOLE = {
    "weights.npz": npz(),
    "model.pt": torch_like(),
    "model.safetensors": safetensors(),
    "checkpoint.ckpt": pickled(),
    "state.pkl": pickled(2),
}


@pytest.fixture
def put(tmp_path: Path) -> Any:
    def put(name: str, data: bytes) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return str(path)

    return put


@pytest.mark.parametrize("name", WHOLE)
def test_whole_ones_open(put: Any, name: str) -> None:
    reading = check_checkpoint(put(name, WHOLE[name]))
    assert reading.valid, reading.reason
    assert reading.how


@settings(max_examples=150, deadline=None)
@given(name=st.sampled_from(sorted(WHOLE)), data=st.data())
def test_every_strict_prefix_is_refused(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    whole = WHOLE[name]
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    reading = check_checkpoint(str(path))
    assert not reading.valid
    assert reading.reason


def test_prefix_that_ends_with_an_inner_archive(put: Any) -> None:
    whole = WHOLE["weights.npz"]
    inner_end = whole.index(b"PK\x05\x06") + 22
    assert inner_end < len(whole)
    assert not check_checkpoint(put("cut.npz", whole[:inner_end])).valid


@pytest.mark.parametrize("protocol", range(6))
def test_pickles_of_every_protocol(put: Any, protocol: int) -> None:
    assert check_checkpoint(put("a.pkl", pickled(protocol))).valid
    assert not check_checkpoint(put("b.pkl", pickled(protocol)[:-1])).valid


def test_a_pickle_is_never_executed(put: Any, tmp_path: Path) -> None:
    trace = tmp_path / "executed"

    class Bomb:
        def __reduce__(self) -> Any:
            return (os.mkdir, (str(trace),))

    assert check_checkpoint(put("bomb.ckpt", pickle.dumps(Bomb()))).valid
    assert not trace.exists()


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("zero.ckpt", b"", "0 bytes"),
        ("tail.ckpt", pickled() + b"\0" * 100, "opcode"),
        ("gap.safetensors", safetensors(extra=7), "bytes of tensors"),
        (
            "half.safetensors",
            safetensors().replace(b'"data_offsets": [0, ', b'"data_offsets": [   '),
            "header can't be read",
        ),
        ("hole.pt", torch_like()[:300] + b"\0" * 500 + torch_like()[800:], "damaged"),
        ("named.npy", b"hello world, this is text", "named so"),
        ("short.npz", b"P", "zip"),
    ],
)
def test_damaged_ones(put: Any, name: str, data: bytes, reason: str) -> None:
    reading = check_checkpoint(put(name, data))
    assert not reading.valid
    assert reason in reading.reason


def test_npy_kinds(tmp_path: Path) -> None:
    records = np.zeros(3, dtype=[("a", "<f4"), ("b", "<i8", (2,))])
    for array in (np.ones((2, 3)), np.array(["ab", "c"]), np.array([True]), records, np.array([1j])):
        path = tmp_path / "array.npy"
        np.save(path, array)
        assert check_checkpoint(str(path)).valid
        path.write_bytes(path.read_bytes()[:-1])
        assert not check_checkpoint(str(path)).valid


def test_other_formats_only_need_content(put: Any) -> None:
    path = put("weights.bin", b"\x01\x02 something else")
    assert "not known" in check_checkpoint(path).how


def test_missing_and_dangling(tmp_path: Path) -> None:
    (tmp_path / "last").symlink_to(tmp_path / "gone")
    assert check_checkpoint(str(tmp_path / "none")).reason == "it does not exist"
    assert check_checkpoint(str(tmp_path / "last")).reason == "a link that leads nowhere"


def test_unreadable_is_not_invalid(put: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put("model.pt", torch_like())

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.open", refuse)
    reading = check_checkpoint(path)
    assert not reading.valid
    assert reading.unread


def test_beyond_the_budget_only_sizes_count(put: Any) -> None:
    path = put("model.pt", torch_like())
    assert "by size only" in file_formats.check_zip(path, file_formats.ChecksumBudget(100))


def test_folders(put: Any, tmp_path: Path) -> None:
    folder = tmp_path / "000100"
    put("000100/pretrained_model/model.safetensors", safetensors())
    put("000100/pretrained_model/config.json", b'{"lr": NaN}')
    put("000100/_METADATA", b"{}")
    put("000100/.lock", b"")
    assert check_checkpoint(str(folder)).valid
    put("000100/_METADATA", b"{")
    assert "_METADATA: its JSON" in check_checkpoint(str(folder)).reason
    put("000100/_METADATA", b"{}")
    put("000100/pretrained_model/model.safetensors", safetensors()[:-1])
    assert "cut off" in check_checkpoint(str(folder)).reason
    put("000100/pretrained_model/model.safetensors", b"")
    assert "0 bytes" in check_checkpoint(str(folder)).reason


def test_folder_without_weights_or_shards(put: Any, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert check_checkpoint(str(tmp_path / "empty")).reason == "an empty folder"
    put("bare/config.json", b"{}")
    assert "no weights" in check_checkpoint(str(tmp_path / "bare")).reason
    put("hf/model-1.safetensors", safetensors())
    put("hf/model.safetensors.index.json", b'{"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}')
    assert "1 of 2 shards" in check_checkpoint(str(tmp_path / "hf")).reason
    put("7.orbax-checkpoint-tmp-3/x", b"abc")
    assert "never finished" in check_checkpoint(str(tmp_path / "7.orbax-checkpoint-tmp-3")).reason


def test_a_folder_is_as_new_as_its_newest_file(put: Any, tmp_path: Path) -> None:
    path = put("ckpt/a.bin", b"x")
    os.utime(path, (5000, 5000))
    assert checkpoint_saved_at(str(tmp_path / "ckpt")) == 5000
