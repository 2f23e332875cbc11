"""Results whose files can't be read any more: which count as such, and when a report is not given up for them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muster.acts.unread import refuse_to_lose, rests_on_unread, unread_results
from muster.domain.attempt import Attempt, CellRecord, Outcome
from muster.domain.campaign import Job, Result
from muster.domain.cell import Cell
from muster.domain.errors import MusterError
from muster.domain.origins import Origins, Unread
from muster.domain.verdict import State
from muster.domain.whereabouts import Whereabouts
from muster.report.stamp import Basis, CellStamp, Stamp
from muster.report.unread_words import unread_words

JOB = Job("eval", (), (), results=(Result("score", "json", "r.json"), Result("cost", "json", "c.json")))
DONE = Outcome(State.DONE, output="/data/out", results={"score": 1.0})
RECORD = CellRecord(Cell("eval", "eval", ()), 0, attempts=(
    Attempt("eval", 1, "t", 1, (), "h", "", 0.0, "b", outcome=DONE),
))  # fmt: skip
HERE = Whereabouts("/now", ("/old",))
CELL = CellStamp("eval", 1, "t", "d", "/now/.muster/attempts/eval/1", results={"score": 1.0}, files={"/r.json": "aa"})


def found(*names: str, **paths: str) -> Origins:
    return Origins(values=dict.fromkeys(names, 1.0), results=paths)


def test_what_was_recorded_must_be_readable() -> None:
    there = {"/data/out", "/data/out/r.json"}
    assert unread_results(RECORD, JOB, found("score"), there.__contains__) is None  # cost was declared later
    lost = unread_results(RECORD, JOB, found(score="/data/out/r.json"), there.__contains__)
    assert lost == Unread(("score",), "/data/out/r.json", there=True)
    lost = unread_results(RECORD, JOB, found(), lambda _: False)
    assert lost == Unread(("score", "cost"), "/data/out/r.json", there=False)


def test_the_words_never_accuse_a_file_that_is_elsewhere() -> None:
    gone, there = Unread(("score",), "/data/r.json", there=False), Unread(("score",), "/data/r.json", there=True)
    said = "recorded at /data/r.json; this campaign's folder is now /now; the file is not there"
    assert unread_words(gone, HERE, "en") == said
    assert unread_words(gone, Whereabouts("/now"), "en") == "/data/r.json is not there"
    assert unread_words(there, HERE, "en") == "/data/r.json is there, and no score can be read from it"
    assert "/data/r.json" in unread_words(gone, HERE, "zh")


def test_a_sound_report_is_not_given_up() -> None:
    sound = Stamp("report", "muster report", "", "", Basis("c", {}, {"eval": CELL}), {})
    refuse_to_lose(sound, {}, "/now")
    refuse_to_lose(None, {"eval": "gone"}, "/now")
    with pytest.raises(MusterError, match="eval: gone"):
        refuse_to_lose(sound, {"eval": "gone"}, "/now")
    for cell in (replace(CELL, unread=("score",)), replace(CELL, files={})):  # the second: of an earlier version
        assert rests_on_unread(cell)
        refuse_to_lose(replace(sound, basis=Basis("c", {}, {"eval": cell})), {"eval": "gone"}, "/now")
