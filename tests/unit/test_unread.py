"""Results whose files can't be read any more: which count as such, and when a report is not given up for them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muster.app.campaign.stamp import CellStamp, Stamp, StampBasis
from muster.app.facts.stamp_basis import find_unread_results, refuse_to_lose_report, rests_on_unread_files
from muster.model.attempt import Attempt, CellRecord, Outcome
from muster.model.campaign import DeclaredResult, Job
from muster.model.campaign_location import CampaignLocation
from muster.model.cell import Cell
from muster.model.errors import MusterError
from muster.model.provenance import ResultOrigins, UnreadResults
from muster.model.verdict import VerdictState
from muster.text.describe_run import describe_unread_results

JOB = Job("eval", (), (), results=(DeclaredResult("score", "json", "r.json"), DeclaredResult("cost", "json", "c.json")))
DONE = Outcome(VerdictState.DONE, output="/data/out", results={"score": 1.0})
RECORD = CellRecord(Cell("eval", "eval", ()), 0, attempts=(
    Attempt("eval", 1, "t", 1, (), "h", "", 0.0, "b", outcome=DONE),
))  # fmt: skip
HERE = CampaignLocation("/now", ("/old",))
CELL = CellStamp("eval", 1, "t", "d", "/now/.muster/attempts/eval/1", results={"score": 1.0}, files={"/r.json": "aa"})


def found(*names: str, **paths: str) -> ResultOrigins:
    return ResultOrigins(values=dict.fromkeys(names, 1.0), results=paths)


def test_what_was_recorded_must_be_readable() -> None:
    there = {"/data/out", "/data/out/r.json"}
    assert find_unread_results(RECORD, JOB, found("score"), there.__contains__) is None  # cost was declared later
    lost = find_unread_results(RECORD, JOB, found(score="/data/out/r.json"), there.__contains__)
    assert lost == UnreadResults(("score",), "/data/out/r.json", there=True)
    lost = find_unread_results(RECORD, JOB, found(), lambda _: False)
    assert lost == UnreadResults(("score", "cost"), "/data/out/r.json", there=False)


def test_the_words_never_accuse_a_file_that_is_elsewhere() -> None:
    gone, there = (
        UnreadResults(("score",), "/data/r.json", there=False),
        UnreadResults(("score",), "/data/r.json", there=True),
    )
    said = "recorded at /data/r.json; this campaign's folder is now /now; the file is not there"
    assert describe_unread_results(gone, HERE, "en") == said
    assert describe_unread_results(gone, CampaignLocation("/now"), "en") == "/data/r.json is not there"
    assert describe_unread_results(there, HERE, "en") == "/data/r.json is there, and no score can be read from it"
    assert "/data/r.json" in describe_unread_results(gone, HERE, "zh")


def test_a_sound_report_is_not_given_up() -> None:
    sound = Stamp("report", "muster report", "", "", StampBasis("c", {}, {"eval": CELL}), {})
    refuse_to_lose_report(sound, {}, "/now")
    refuse_to_lose_report(None, {"eval": "gone"}, "/now")
    with pytest.raises(MusterError, match="eval: gone"):
        refuse_to_lose_report(sound, {"eval": "gone"}, "/now")
    for cell in (replace(CELL, unread=("score",)), replace(CELL, files={})):  # the second: of an earlier version
        assert rests_on_unread_files(cell)
        refuse_to_lose_report(replace(sound, basis=StampBasis("c", {}, {"eval": cell})), {"eval": "gone"}, "/now")
