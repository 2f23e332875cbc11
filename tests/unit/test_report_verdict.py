"""What the last report found, as `status` tells it: from the stamp alone, and marked where the matrix went on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from muster.app.campaign.campaign_digests import digest_campaign_sections
from muster.app.campaign.last_report import (
    ReportVerdict,
    format_report_line,
    read_last_verdict,
    read_report_view,
    report_view_as_json,
)
from muster.app.campaign.stamp import CellStamp, StampBasis
from muster.app.campaign.stamp_files import publish_derived_files
from muster.model.attempt import Attempt, CellRecord, Outcome
from muster.model.campaign import Axis, AxisValue, Campaign, Job
from muster.model.campaign_state import CampaignState, Intent
from muster.model.cell import list_campaign_cells
from muster.model.verdict import VerdictState

FOUND = ReportVerdict(
    "INVALID", None, "it is INVALID", "two configs are equal", "same_values", "reports/decision.md", "h", "", ("eval",)
)


def world(*seeds: str, done: int = 2) -> CampaignState:
    axis = Axis("seed", tuple(AxisValue(seed, seed) for seed in seeds or ("0", "1")))
    campaign = Campaign("c", (axis,), (Job("eval", ("seed",), ("true",), results={"score": {}}),))
    cells = {
        cell.id: CellRecord(cell, at, attempts=(attempt(cell.id),) if at < done else ())
        for at, cell in enumerate(list_campaign_cells(campaign))
    }
    return CampaignState(campaign, "h", "", Intent(), 1, (), cells)


def attempt(cell: str, token: str = "t") -> Attempt:
    return Attempt(cell, 1, token, 1, (), "h", "", 0.0, "b", outcome=Outcome(VerdictState.DONE))


def stamp(root: Path, made: str = "report", found: ReportVerdict | None = FOUND, missing: tuple[str, ...] = ()) -> None:
    state = world()
    cells = {name: CellStamp(name, 1, "t", "d", "f") for name in state.cells if name not in missing}
    basis = StampBasis("c", digest_campaign_sections(state.campaign, state.origin), cells, len(cells), 2, missing)
    publish_derived_files(root, made, "muster report", "2026-01-01T00:00:00+00:00", "0", basis, (), found)


def because(root: Path, state: CampaignState) -> str:
    found = read_report_view(root, state)
    assert found is not None
    return found.stale


def test_a_report_of_this_matrix_is_told_as_it_is(tmp_path: Path) -> None:
    assert read_report_view(tmp_path, world()) is None
    stamp(tmp_path)
    found = read_report_view(tmp_path, world())
    assert found is not None
    assert format_report_line(found) == "report: INVALID: two configs are equal; reports/decision.md"
    told = report_view_as_json(found)
    assert (told["verdict"], told["stale"], told["because"]) == ("INVALID", False, None)
    assert told["flag"] == {"level": "ERROR", "code": "same_values", "message": "two configs are equal"}


def test_a_matrix_that_went_on_makes_it_stale(tmp_path: Path) -> None:
    stamp(tmp_path)
    assert because(tmp_path, world(done=1)) == "eval/1: not DONE any more, or no longer declared"
    again = world()
    again.cells["eval/0"] = replace(again.cells["eval/0"], attempts=(attempt("eval/0", "another"),))
    assert because(tmp_path, again) == "eval/0: run again since"
    found = read_report_view(tmp_path, again)
    assert found is not None
    assert "(stale: eval/0: run again since)" in format_report_line(found)


def test_a_flag_that_was_accepted_since_makes_it_stale(tmp_path: Path) -> None:
    stamp(tmp_path)
    found = read_report_view(tmp_path, world(), lambda: "digest")
    assert found is not None
    assert found.stale == "a red flag was accepted since"


def test_a_campaign_that_was_changed_and_taken_in_makes_it_stale_and_a_new_name_for_the_same_one_does_not(
    tmp_path: Path,
) -> None:
    stamp(tmp_path)
    same = world()
    same.campaign_hash = "another"
    assert because(tmp_path, same) == ""
    more = world("0", "1", "2", done=3)
    more.campaign_hash = "another"
    assert because(tmp_path, more) == "campaign.yaml changed: axes"


def test_a_report_of_a_file_that_was_not_taken_in_is_held_against_that_file(tmp_path: Path) -> None:
    from muster.app.campaign.last_report import campaign_file_digest

    (tmp_path / "campaign.yaml").write_text("a")
    changed = world("0", "1", "2")
    made = ReportVerdict("INCOMPLETE", campaign="h", file=campaign_file_digest(tmp_path), jobs=("eval",))
    stamp(tmp_path, found=made)
    assert because(tmp_path, changed) == ""
    (tmp_path / "campaign.yaml").write_text("b")
    assert because(tmp_path, changed) == "campaign.yaml changed: axes"


def test_of_two_reports_the_partial_one_is_the_later(tmp_path: Path) -> None:
    stamp(tmp_path)
    partial = ReportVerdict("INCOMPLETE", campaign="h", jobs=("eval",), path="reports/decision.PARTIAL-1of2.md")
    stamp(tmp_path, "report-partial", partial, ("eval/1",))
    found = read_report_view(tmp_path, world(done=1))
    assert found is not None
    assert format_report_line(found) == "report: INCOMPLETE (PARTIAL); reports/decision.PARTIAL-1of2.md"
    assert because(tmp_path, world()) == "eval/1 came in since"
    stamp(tmp_path)  # a whole one takes its place
    assert read_last_verdict(tmp_path) == FOUND


@pytest.mark.parametrize("text", [b"", b"{", b"[1]", b'{"at": 1}', b"\xff", b'{"at": "\xb8"}', b'{"x": ' + b"[" * 9999])
def test_a_damaged_stamp_tells_nothing(tmp_path: Path, text: bytes) -> None:
    stamp(tmp_path)
    (tmp_path / "reports/stamps/report.json").write_bytes(text)
    assert read_report_view(tmp_path, world()) is None


def test_the_stamp_of_an_earlier_version_tells_nothing(tmp_path: Path) -> None:
    stamp(tmp_path, found=None)
    assert read_report_view(tmp_path, world()) is None
