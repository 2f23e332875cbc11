"""Pickles are read by a machine that executes nothing: plain containers and arrays come out, all else is refused."""

from __future__ import annotations

import collections
import contextlib
import io
import os
import pickle
import resource
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.readers.checkpoints import plain_pickles
from muster.readers.checkpoints.arrays import PickleNotPlain
from muster.readers.checkpoints.plain_pickles import load_plain_pickle, read_plain_pickle

PROTOCOLS = range(6)
PLAIN: dict[str, Any] = {
    "list": [1, -2.5, None, True, False, "文", 10**30, 2**40],
    "tuples": ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)),
    "nested": {"a": {"b": [{"c": 1}]}, 1: "int key", (1, "x"): "tuple key"},
    "ordered": collections.OrderedDict(x=1, y=[2]),
    "default": collections.defaultdict(list, {"q": [1, 2]}),
    "deque": collections.deque([1, 2, 3], maxlen=3),
    "sets": [{1, 2}, frozenset([3])],
    "bytes": [b"\xff\x00", bytearray(b"xy"), b""],
    "complex": 1 + 2j,
}
ARRAYS: dict[str, Any] = {
    "floats": np.linspace(0, 1, 7),
    "float32": np.arange(6, dtype=np.float32).reshape(2, 3),
    "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "strided": np.arange(10)[::2],
    "big_endian": np.arange(3, dtype=">i4"),
    "bools": np.array([True, False]),
    "texts": np.array(["ab", "c"]),
    "bytes": np.array([b"ab", b"c"]),
    "empty": np.zeros((0, 3)),
    "zero_d": np.array(4.5),
    "halves": np.arange(3, dtype=np.float16),
}


def plain(value: Any) -> Any:
    if isinstance(value, collections.deque | bytearray):
        return list(value) if isinstance(value, collections.deque) else bytes(value)
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(plain, value))
    return value


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_plain_containers_of_every_protocol(protocol: int) -> None:
    assert load_plain_pickle(pickle.dumps(PLAIN, protocol)) == plain(PLAIN)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_arrays_of_every_protocol(protocol: int) -> None:
    found = load_plain_pickle(pickle.dumps(ARRAYS, protocol))
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype, name
        assert found[name].shape == array.shape, name
        assert np.array_equal(found[name], array), name


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_scalars_and_arrays_of_objects(protocol: int) -> None:
    ragged = np.array([[1.0], [2.0, 3.0]], dtype=object)
    found = load_plain_pickle(pickle.dumps([np.float32(3.5), np.int64(4), np.bool_(True), ragged], protocol))
    assert found == [3.5, 4, True, [[1.0], [2.0, 3.0]]]


@pytest.mark.parametrize("core", [b"numpy.core", b"numpy._core"])
def test_both_names_of_numpy(core: bytes) -> None:
    text = pickle.dumps(np.arange(3.0), 2).replace(b"numpy._core", b"numpy.core").replace(b"numpy.core", core)
    assert load_plain_pickle(text).tolist() == [0, 1, 2]


def test_one_array_in_two_places_is_one(tmp_path: Path) -> None:
    array = np.arange(4)
    (tmp_path / "a.pkl").write_bytes(pickle.dumps({"a": array, "b": [array, array]}))
    found = read_plain_pickle(str(tmp_path / "a.pkl"))
    assert found["a"] is found["b"][0] is found["b"][1]


SIMPLE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner, inner),
    max_leaves=20,
)


@settings(max_examples=100, deadline=None)
@given(SIMPLE, st.sampled_from(list(PROTOCOLS)))
def test_whatever_is_plain_comes_back(value: Any, protocol: int) -> None:
    assert load_plain_pickle(pickle.dumps(value, protocol)) == value


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(PickleNotPlain):
        load_plain_pickle(data)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_damaged_pickle_is_read_or_refused(data: st.DataObject) -> None:
    whole = bytearray(pickle.dumps({**PLAIN, "array": np.arange(3)}, data.draw(st.sampled_from([0, 2, 5]))))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)))
    with contextlib.suppress(PickleNotPlain):
        load_plain_pickle(bytes(whole[:cut]))


# -- pickles that would do something


class Calls:
    def __init__(self, what: Any, *arguments: Any) -> None:
        self.what, self.arguments = what, arguments

    def __reduce__(self) -> Any:
        return self.what, self.arguments


class Own:
    def __init__(self) -> None:
        self.a = 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("what", [os.system, eval, exec, getattr, subprocess.Popen, open, __import__, print, bytes])
def test_nothing_is_called(what: Any, protocol: int, tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    bomb = Calls(what, 10**9) if what is bytes else Calls(what, f"touch {witness}")
    for held in (bomb, [bomb], {"a": bomb}, (1, bomb), np.array([bomb], dtype=object)):
        with pytest.raises(PickleNotPlain):
            load_plain_pickle(pickle.dumps(held, protocol))
    assert not witness.exists()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_call_within_a_call_is_refused(protocol: int) -> None:
    inner = Calls(getattr, "os", "system")
    with pytest.raises(PickleNotPlain, match=r"asks for|calls"):
        load_plain_pickle(pickle.dumps(Calls(map, inner, ["true"]), protocol))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_objects_of_classes_are_refused(protocol: int) -> None:
    with pytest.raises(PickleNotPlain):
        load_plain_pickle(pickle.dumps(Own(), protocol))


@pytest.mark.parametrize("text", [
    b"cos\nsystem\n(S'true'\ntR.", b"(S'true'\nios\nsystem\n.", b"(cos\nsystem\nS'true'\no.", b"\x80\x02cos\nsystem\n.",
    b"\x82\x01.", b"\x83\x01\x00.", b"Pid\n.", b"K\x01Q.", b"cnumpy\nndarray\n(K\x05tR.", b"cnumpy\nload\n(S'x'\ntR.",
    b"cnumpy.core.multiarray\n_reconstruct\n(cos\nsystem\nK\x00\x85S'b'\ntR.", b"\x80\x05\x97.", b"]K\x01b.", b"]",
    b"cnumpy\nndarray\n.", b"(lp0\nI1\nh\x05a.", b"\x80\x02}(K\x01u.", b"0.", b"(.", b"(1.", b"", b"\x80\x05.", b"K\x01K\x02.",
    b"cbuiltins\nbytearray\n(K\xfftR.", b"cbuiltins\nlist\n(tR.", b"ccollections\ndefaultdict\n(cos\nsystem\ntR.",
    b"}(]K\x01u.", b"}(}K\x01u.", b"\x8f(]\x90.",
])  # fmt: skip
def test_odd_opcodes_are_refused(text: bytes) -> None:
    with pytest.raises(PickleNotPlain) as refused:
        load_plain_pickle(text)
    assert len(str(refused.value)) < 300


# -- pickles that claim much


def array_pickle(shape: tuple[int, ...], raw: bytes, code: str = "f8") -> bytes:
    """As numpy would write it, with a shape that may be a lie."""

    class Lie:
        def __reduce__(self) -> Any:
            function, arguments, _ = np.zeros(1).__reduce__()
            return function, arguments, (1, shape, np.dtype(code), False, raw)

    return pickle.dumps(Lie())


def test_a_shape_that_the_bytes_do_not_fill() -> None:
    assert load_plain_pickle(array_pickle((2,), bytes(16))).tolist() == [0, 0]
    for shape in ((10**12,), (3,), (2, 10**9), (1,), (-1,), (2**70,)):
        with pytest.raises(PickleNotPlain, match="array"):
            load_plain_pickle(array_pickle(shape, bytes(16)))
    with pytest.raises(PickleNotPlain, match="array"):
        load_plain_pickle(array_pickle((10**15,), b"", "S0"))


HUGE = struct.pack("<Q", 1 << 50)
BOMBS = {
    "bytes": b"\x80\x04\x8e" + HUGE + b"x.",
    "text": b"\x80\x04\x8d" + HUGE + b"x.",
    "bytearray": b"\x80\x05\x96" + HUGE + b"x.",
    "frame": b"\x80\x04\x95" + HUGE + b"N.",
    "memo": b"\x80\x02Nr\xff\xff\xff\x7f.",
    "memo in text": b"Np99999999999999999999\n.",
    "long": b"\x80\x02\x8b\xff\xff\xff\x7fx.",
    "digits": b"L" + b"9" * 200_000 + b"L\n.",
    "laughs": b"\x80\x02]q\x00" + b"(h\x00h\x00lq\x00" * 60 + b".",
    "hash": b"\x80\x02}K\x01q\x00" + b"0h\x00h\x00\x86q\x00" * 60 + b"h\x00K\x01s.",
    "deep": b"\x80\x02" + b"]" * 50_000 + b"a" * 49_999 + b".",
    "self": b"\x80\x02]q\x00h\x00a.",
    "encode": b"\x80\x02(" + b"X\x00\x00\x10\x00" + b"a" * (1 << 20) + b"q\x000"
    + b"c_codecs\nencode\nh\x00U\x06latin1\x86R" * 2000 + b"l.",
    "sets": b"\x80\x02(lq\x00" + b"(" + b"N" * 100_000 + b"e0" + b"(" + b"cbuiltins\nset\nh\x00\x85R" * 5000 + b"l.",
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_small_pickles_with_large_claims_do_no_harm(name: str, tmp_path: Path) -> None:
    """In a process that may take 2 GiB and ten seconds, and needs neither."""
    (tmp_path / "bomb.pkl").write_bytes(BOMBS[name])
    code = (
        "import sys, resource\n"
        "from muster.readers.checkpoints.arrays import PickleNotPlain as NotPlain; from muster.readers.checkpoints.plain_pickles import read_plain_pickle as read_pickle\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30)); resource.setrlimit(resource.RLIMIT_CPU, (10, 10))\n"
        "try: print('read', type(read_pickle(sys.argv[1])).__name__)\n"
        "except NotPlain as error: print('refused', error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "bomb.pkl")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.startswith(("refused", "read")), done.stdout
    if name not in ("frame", "memo", "memo in text", "deep"):
        assert done.stdout.startswith("refused"), done.stdout


def test_bounds_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_pickles, "MOST_OPCODES", 10)
    with pytest.raises(PickleNotPlain, match="more than 10 steps"):
        load_plain_pickle(pickle.dumps(list(range(100))))
    monkeypatch.setattr(plain_pickles, "MOST_PICKLE_BYTES", 1 << 20)
    (tmp_path / "large.pkl").write_bytes(bytes((1 << 20) + 1))
    with pytest.raises(PickleNotPlain, match="more than 1 MiB"):
        read_plain_pickle(str(tmp_path / "large.pkl"))
    assert resource.getrlimit(resource.RLIMIT_AS)[0] != 2 << 30  # only the children were bound


def test_a_real_pickler_with_out_of_band_buffers_is_refused() -> None:
    kept: list[pickle.PickleBuffer] = []
    text = io.BytesIO()
    pickle.Pickler(text, 5, buffer_callback=kept.append).dump(np.arange(10))
    with pytest.raises(PickleNotPlain, match="NEXT_BUFFER"):
        load_plain_pickle(text.getvalue())
