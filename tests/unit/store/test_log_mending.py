"""decisions.jsonl, fixed: nothing that can be read is lost, and a sound log is not touched."""

from __future__ import annotations

from pathlib import Path

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.engine.store.decision_log import TAIL_BLOCK, FileDecisionLog, repair_log
from muster.model.decision import Decision

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
    mended = repair_log(tmp_path, known, [FIRST])
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
    assert list(FileDecisionLog(path).read(0)) == list(mended.entries)
    if not mended.torn and not mended.restored:
        assert path.read_bytes() == before
        assert not aside.exists()
    again = repair_log(tmp_path, known, [FIRST])
    assert (again.torn, again.restored, again.entries) == ((), 0, mended.entries)


def _is_decision(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=Decision)
    except msgspec.MsgspecError:
        return False
    return True


def test_a_look_changes_nothing(tmp_path: Path) -> None:
    assert repair_log(tmp_path, [], [], change=False).entries == ()
    assert list(tmp_path.iterdir()) == []
    path = tmp_path / "decisions.jsonl"
    path.write_bytes(b"rubbish\n")
    assert len(repair_log(tmp_path, [], [FIRST], change=False).torn) == 1
    assert path.read_bytes() == b"rubbish\n"


def test_a_torn_line_behind_2_gib_takes_no_whole_one_with_it(tmp_path: Path) -> None:
    """One read ends at 2 GiB - 4 KiB, whatever was asked for. The file has a hole and needs no room."""
    path, line = tmp_path / "decisions.jsonl", msgspec.json.encode(Decision("note", "me", "whole")) + b"\n"
    with open(path, "wb") as file:
        file.seek((2 << 30) + 4096)
        file.write(b"\n" + line + b'{"kind": "no')
    begin, end = FileDecisionLog(path).append([Decision("note", "me", "new")])
    assert begin == (2 << 30) + 4096 + 1 + len(line)
    with open(path, "rb") as file:
        file.seek(begin - len(line))
        assert file.read(len(line)) == line
    assert (path.stat().st_size, path.with_suffix(".torn").read_bytes()) == (end, b'{"kind": "no\n')


def test_a_torn_tail_longer_than_a_block_is_kept_whole(tmp_path: Path) -> None:
    path, line = tmp_path / "decisions.jsonl", msgspec.json.encode(Decision("note", "me", "whole")) + b"\n"
    for before in (line, b""):
        path.write_bytes(before + b"x" * (2 * TAIL_BLOCK + 7))
        path.with_suffix(".torn").unlink(missing_ok=True)
        assert FileDecisionLog(path).append([FIRST])[0] == len(before)
        assert path.with_suffix(".torn").stat().st_size == 2 * TAIL_BLOCK + 8
