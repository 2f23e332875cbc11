"""The cause of a death: a corpus of log ends with the cause that must come out, and what no log may bring about."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.engine.judge.cause_rules import CauseReport, find_cause
from muster.engine.judge.log_clues import find_final_exception, read_log_clues
from muster.model.attempt_snapshot import ExitRecord, PostMortem

TAILS = Path(__file__).parent / "tails"


@dataclass(frozen=True)
class Tail:
    name: str
    exit: ExitRecord
    after: PostMortem
    want: str
    sure: str
    pid: int | None = None
    failed: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    adds: str = ""
    note: str = ""
    known: frozenset[str] = field(default_factory=frozenset)

    def found(self) -> CauseReport:
        return find_cause(self.exit, self.after, self.failed, self.unread, pid=self.pid)


def ended(code: int | None = 1, signal: int | None = None, **more: Any) -> ExitRecord:
    return ExitRecord(code, signal, 1010.0, 30.0, 20.0, **more)


def read_tails() -> Iterator[Tail]:
    for path in sorted(TAILS.glob("*.txt")):
        for part in re.split(r"^#### ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            yield read_tail(path.stem, part)


def read_tail(family: str, text: str) -> Tail:
    head, _, logs = text.partition("---- err\n")
    err, _, out = logs.partition("---- out\n")
    name, *rows = head.strip().split("\n")
    said = dict(row.split(": ", 1) for row in rows)
    after = eval(f"dict({said.get('after', '')})")  # our own corpus
    pid = after.pop("pid", None)
    want, sure = said["want"].split(" | ")
    how = said["exit"].removeprefix("signal ")
    more = {"stop_reason": said.get("stop"), "exec_error": said.get("exec_error")}
    exit_ = ended(None, int(how), **more) if "signal" in said["exit"] else ended(int(how), **more)
    logs_read = {"err": real(err), "out": real(out)}
    failed, unread = ((said[key],) if key in said else () for key in ("failed", "unread"))
    tail = Tail(f"{family}: {name}", exit_, PostMortem(**after, **logs_read), want, sure, pid, failed, unread)
    return replace(tail, adds=said.get("adds", ""), note=said.get("note", ""), known=frozenset(said))


def real(text: str) -> str:
    return text.rstrip("\n").replace("␍", "\r").replace("␛", "\x1b") + "\n" if text.strip() else ""


ALL = list(read_tails())
FIELDS = {"exit", "want", "after", "adds", "note", "stop", "failed", "unread", "exec_error"}


def test_the_corpus_is_well_formed() -> None:
    assert len(ALL) >= 160
    assert len({tail.name for tail in ALL}) == len(ALL)
    assert all(tail.known <= FIELDS for tail in ALL)


@pytest.mark.parametrize("tail", ALL, ids=lambda tail: tail.name)
def test_the_cause_of_a_tail(tail: Tail) -> None:
    found = tail.found()
    assert (str(found.cause), found.cause.confidence) == (tail.want, tail.sure), found
    assert tail.note in found.cause.note
    assert not tail.adds or any(tail.adds in text for text in found.contributing), found.contributing
    assert found.cause.note
    assert "\n" not in found.cause.note
    assert len(found.lines) <= 8
    assert all(line.isprintable() and len(line) <= 300 for line in found.lines)


@pytest.mark.parametrize("tail", ALL, ids=lambda tail: tail.name)
def test_windows_line_ends_and_a_cut_head_change_no_cause(tail: Tail) -> None:
    dos = replace(tail, after=replace(tail.after, err=tail.after.err.replace("\n", "\r\n")))
    assert str(dos.found().cause) == tail.want
    longer = "\x1b[32mloading\x1b[0m\n" * 50 + tail.after.err
    if tail.after.err:
        assert str(replace(tail, after=replace(tail.after, err=longer)).found().cause) == tail.want


@pytest.mark.parametrize("tail", ALL, ids=lambda tail: tail.name)
def test_no_cut_of_a_tail_is_proven_and_wrong(tail: Tail) -> None:
    """A log that is cut anywhere may hide the cause, never turn it into another that is called proven.

    Without its beginning the last exception of a chain stands alone: it is what Python ended with.
    """
    final = find_final_exception(read_log_clues(tail.after.err))
    last = f"exception({final.raised.type}" if final else "nothing"
    for at in range(0, len(tail.after.err), max(7, len(tail.after.err) // 120)):
        cause = replace(tail, after=replace(tail.after, err=tail.after.err[at:])).found().cause
        right = str(cause) == tail.want or str(cause).startswith(last)
        assert cause.confidence != "proven" or right or cause.kind in ("signal", "exit_code"), (at, cause)


@pytest.mark.parametrize("tail", ALL, ids=lambda tail: tail.name)
def test_steps_after_an_exception_show_that_it_was_survived(tail: Tail) -> None:
    if tail.exit.code != 1 or "exception" not in tail.want:
        return
    went_on = tail.after.err + "".join(f"step {n} loss 0.{n}\n" for n in range(9000, 9010))
    cause = replace(tail, after=replace(tail.after, err=went_on)).found().cause
    assert cause.kind != "exception" or cause.confidence != "proven"


LAST_WORDS = [
    tail
    for tail in ALL
    if tail.exit.code == 1 and tail.sure == "proven" and "Traceback" in tail.after.err and "exit_code" not in tail.want
]
HAVE_WORDS = [tail for tail in ALL if "Traceback" in tail.after.err and tail.name != "plain: cut before its exception"]


@given(before=st.sampled_from(HAVE_WORDS), tail=st.sampled_from(LAST_WORDS))
@settings(max_examples=400, deadline=None)
def test_what_an_older_traceback_says_is_never_proven(before: Tail, tail: Tail) -> None:
    both = before.after.err + tail.after.err
    cause = replace(tail, after=replace(tail.after, err=both)).found().cause
    assert cause.confidence != "proven" or str(cause) == tail.want


def test_the_order_of_strength() -> None:
    oom = PostMortem(oom_before=0, oom_last=0, oom_after=1, last_look_s=1.0, gpu_lost="GPU 0: lost")
    assert find_cause(ended(1, exec_error="no such file"), oom, (), ()).cause.kind == "never_started"
    assert find_cause(ended(None, 9, stop_reason="user_stop"), oom, (), ()).cause.kind == "user_stop"
    assert find_cause(ended(0), oom, ("x fails",), ()).cause.kind == "early_exit"
    assert find_cause(ended(None, 9), oom, (), ()).cause.kind == "oom_kill"


def test_nothing_is_known() -> None:
    assert str(find_cause(ended(None), PostMortem(), (), ()).cause) == "unknown"


def test_the_log_in_exit_json_is_used_where_no_other_was_read() -> None:
    log = 'Traceback (most recent call last):\n  File "/w/t.py", line 3, in <module>\nKeyError: 1\n'
    assert str(find_cause(ended(1, log=log), PostMortem(), (), ()).cause) == "exception(KeyError, t.py:3)"


@pytest.mark.parametrize(("seen", "want"), [((0, 0, 1), "oom_kill"), ((0, 1, 1), "signal(9)"), ((0, 1, 2), "oom_kill")])
def test_when_the_count_rose(seen: tuple[int, int, int], want: str) -> None:
    after = PostMortem(oom_before=seen[0], oom_last=seen[1], oom_after=seen[2], last_look_s=30.0)
    assert str(find_cause(ended(None, 9), after, (), ()).cause) == want


counts = st.none() | st.integers(0, 3)
worlds = st.builds(
    PostMortem,
    oom_before=counts,
    oom_last=counts,
    oom_after=counts,
    last_look_s=st.none() | st.floats(0, 1000),
    disk_free=st.none() | st.integers(0, 1 << 21),
    gpu_lost=st.sampled_from(["", "GPU 0: NVMLError_GpuIsLost"]),
    non_finite=st.sampled_from(["", "loss = nan"]),
)
PIECES = sorted({line for tail in ALL for line in tail.after.err.split("\n")})
mixed = st.lists(st.sampled_from(PIECES) | st.text(max_size=40), max_size=60).map("\n".join)
exits = st.one_of(st.integers(0, 255).map(ended), st.integers(1, 64).map(lambda number: ended(None, number)))
# Kinds that may be proven, and what must be so for each.
NEEDS = {
    "oom_kill": lambda exit_, after: (
        exit_.signal == 9 and (after.oom_after or 0) > min(after.oom_before or 0, after.oom_last or 9)
    ),
    "cuda_oom": lambda exit_, _: exit_.code == 1 or exit_.signal == 6,
    "disk_full": lambda exit_, _: exit_.code == 1,
    "non_finite": lambda exit_, _: exit_.code == 1,
    "exception": lambda exit_, _: exit_.code == 1,
    "gpu_lost": lambda exit_, after: after.gpu_lost and exit_.code != 0,
    "hangup": lambda exit_, _: exit_.signal == 1 or exit_.code not in (None, 0),
    "preempted": lambda exit_, _: exit_.code != 0,
    "timeout": lambda exit_, _: exit_.code != 0,
}


@given(text=mixed, out=mixed, exit_=exits, after=worlds)
@settings(max_examples=400, deadline=None)
def test_any_mixture_of_lines_keeps_the_rules(text: str, out: str, exit_: ExitRecord, after: PostMortem) -> None:
    found = find_cause(exit_, replace(after, err=text, out=out), ("step fails",), ())
    cause = found.cause
    if exit_.code == 0:
        assert cause.kind == "early_exit"
    if cause.confidence == "proven" and cause.kind in NEEDS:
        assert NEEDS[cause.kind](exit_, after), cause
    if (
        cause.kind in ("signal", "exit_code")
        and cause.confidence == "proven"
        and not re.search("received signal", cause.note)
    ):
        assert cause.detail == str(exit_.signal if exit_.signal is not None else exit_.code)
    assert all(line.isprintable() for line in found.lines)
    assert len(found.lines) <= 8


@given(text=st.text(max_size=400), exit_=exits)
@settings(max_examples=300, deadline=None)
def test_any_text_at_all(text: str, exit_: ExitRecord) -> None:
    cause = find_cause(exit_, PostMortem(err=text, out=text[::-1]), (), ()).cause
    assert cause.confidence in ("proven", "probable", "unknown")


def hostile() -> dict[str, str]:
    size = 64 * 1024
    piled = "".join(tail.after.err for tail in ALL)
    return {
        "spaces": " " * size,
        "one long line": "a" * size,
        "empty lines": "\n" * size,
        "redraws": "\r 12%|#| 1/9 [" * (size // 15),
        "heads": "Traceback (most recent call last):\n" * (size // 35),
        "frames": '  File "/w/t.py", line 3, in f\n' * (size // 31),
        "an open quote": 'File "' * (size // 6),
        "escapes": "\x1b]" * (size // 2),
        "colours": "\x1b[1;31m" * (size // 7),
        "losses": "ValueError: loss is " * (size // 20),
        "loss in a traceback": 'Traceback (most recent call last):\n  File "t.py", line 1, in <module>\nValueError: '
        + "loss grad = nans " * 4000,
        "dots": "a." * (size // 2),
        "boxes": "╭─ Traceback (most recent call last) ─╮\n" + "│ /w/a" * (size // 6),
        "killed": "Killed\n" * (size // 7),
        "what": "terminate called\n" * (size // 17),
        "nccl": "NCCL " * (size // 5),
        "xid": "NVRM: Xid " * (size // 10),
        "spot": "spot instance " * (size // 14),
        "pids": "(pid=" * (size // 5),
        "the corpus": piled[-size:],
    }


@pytest.mark.parametrize("kind", sorted(hostile()))
def test_it_is_fast_whatever_it_reads(kind: str) -> None:
    text = hostile()[kind][: 64 * 1024]
    best = 9.0
    for _ in range(3):
        began = time.perf_counter()
        find_cause(ended(1), PostMortem(err=text), (), ())
        best = min(best, time.perf_counter() - began)
    assert best < 0.1, f"{best * 1000:.0f} ms"  # about 20 ms where nothing else runs


def test_fields_of_the_result() -> None:
    assert [each.name for each in fields(CauseReport)] == ["cause", "contributing", "lines", "try_"]
