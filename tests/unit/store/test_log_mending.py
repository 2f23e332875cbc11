"""decisions.jsonl, mended: nothing that can be read is lost, and a sound log is not touched."""

from __future__ import annotations

from pathlib import Path

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.domain.decision import Decision
from muster.store.log import FileLog
from muster.store.log_mending import mend_log

FIRST = Decision("campaign", "me", data={"hash": "x", "env_file": ""})
lines = st.lists(
    st.one_of(
        st.integers(0, 5).map(lambda n: msgspec.json.encode(Decision("note", "me", str(n)))),
        st.binary(max_size=40).map(lambda data: data.replace(b"\n", b"")),
        st.sampled_from(
            [b"", b"  ", b"\r", b"{}", b'{"kind":1,"who":"x"}', b'{"kind":"note","who":"x","new":[1]}', b"null"]
        ),
    ),
    max_size=12,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=lines, torn=st.binary(max_size=20), seen=st.integers(0, 4))
def test_any_file(tmp_path: Path, parts: list[bytes], torn: bytes, seen: int) -> None:
    path, aside = tmp_path / "decisions.jsonl", tmp_path / "decisions.torn"
    aside.unlink(missing_ok=True)
    before = b"".join(line + b"\n" for line in [msgspec.json.encode(FIRST), *parts]) + torn
    path.write_bytes(before)
    readable = [line for line in before.split(b"\n")[:-1] if _is_decision(line)]
    known = [msgspec.json.decode(line, type=Decision) for line in readable[:seen]]
    known += [Decision("note", "only the database knows", str(n)) for n in range(seen // 2)]
    mended = mend_log(tmp_path, known, [FIRST])
    after = path.read_bytes().split(b"\n")
    assert [line for line in after if line in readable and line.strip()] == [
        line for line in readable if line.strip()
    ] or seen >= 2  # the order of the database goes first
    assert sorted(line for line in after if line in readable) == sorted(readable)
    assert mended.restored == seen // 2
    assert len(mended.torn) == sum(
        bool(line.strip()) and not _is_decision(line) for line in before.split(b"\n")[:-1]
    ) + (bool(before.split(b"\n")[-1].strip()))
    # every entry lies where it says, for the fold goes on from there
    assert list(FileLog(path).read(0)) == list(mended.entries)
    if not mended.torn and not mended.restored:
        assert path.read_bytes() == before
        assert not aside.exists()
    again = mend_log(tmp_path, known, [FIRST])
    assert (again.torn, again.restored, again.entries) == ((), 0, mended.entries)


def _is_decision(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=Decision)
    except msgspec.MsgspecError:
        return False
    return True


def test_a_look_changes_nothing(tmp_path: Path) -> None:
    assert mend_log(tmp_path, [], [], change=False).entries == ()
    assert list(tmp_path.iterdir()) == []
    path = tmp_path / "decisions.jsonl"
    path.write_bytes(b"rubbish\n")
    assert len(mend_log(tmp_path, [], [FIRST], change=False).torn) == 1
    assert path.read_bytes() == b"rubbish\n"
