"""Stamps: written with their files, and held against what is there now."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from muster.app.campaign.stamp import CellStamp, CheckpointStamp, FileStamp, ReportClaim, Stamp, StampBasis
from muster.app.campaign.stamp_files import (
    DerivedFile,
    publish_derived_files,
    read_all_stamps,
    read_stamp,
    write_stamp,
)
from muster.app.report.trace_files import TracedLine, format_trace_lines, trace_as_json, trace_file_claims
from muster.app.report.verify_files import FileState, verify_stamp
from muster.model.errors import MusterError, UsageError

TRAIN = CellStamp(
    "train/full/0", 1, "t0", "d0-c0", "/home/me/c/.muster/attempts/train/full/0/1", "/home/me/c/out",
    commit="a" * 40, checkpoint=CheckpointStamp("/home/me/c/out/model.npz", "11" * 32, 0.99),
)  # fmt: skip
EVAL = CellStamp(
    "eval/full/0/ood", 1, "t1", "d1-c0", "/home/me/c/.muster/attempts/eval/full/0/ood/1", "/home/me/c/eval",
    results={"score": 5.5}, files={"/home/me/c/eval/result.json": "22" * 32}, needs=("train/full/0",),
)  # fmt: skip
BASIS = StampBasis("sprint", {"axes": "a", "decision": "b"}, {c.cell: c for c in (TRAIN, EVAL)}, 1, 1)
CLAIM = ReportClaim("E1", "full scores 5.5.", ("eval/full/0/ood",), ("ood/score",))
STAMP = Stamp(
    "report", "muster report", "2026-02-25T10:00:00+08:00", "0.3.0", BASIS,
    {"reports/decision.md": FileStamp("33" * 32, "text", None, (CLAIM,)),
     "reports/figures/train.png": FileStamp("44" * 32, "figure", ("train/full/0",))},
)  # fmt: skip
HASHES = {"reports/decision.md": "33" * 32, "reports/figures/train.png": "44" * 32}


def states(now: StampBasis, hashes: dict[str, str] | None = None) -> dict[str, FileState]:
    found = HASHES if hashes is None else hashes
    return {each.path: each for each in verify_stamp(STAMP, now, found.get)}


def with_cell(cell: CellStamp) -> StampBasis:
    return replace(BASIS, cells={**BASIS.cells, cell.cell: cell})


def test_what_did_not_change_is_fresh() -> None:
    assert {each.state for each in states(BASIS).values()} == {"fresh"}


def test_an_edited_result_makes_stale_what_rests_on_it_and_only_that() -> None:
    found = states(with_cell(replace(EVAL, files={"/home/me/c/eval/result.json": "99" * 32})))
    assert found["reports/decision.md"].state == "stale"
    assert "eval/full/0/ood: /home/me/c/eval/result.json was changed" in found["reports/decision.md"].because
    assert found["reports/figures/train.png"].state == "fresh"


def test_a_deleted_result_breaks_the_chain() -> None:
    found = states(with_cell(replace(EVAL, files={})))
    assert found["reports/decision.md"].state == "broken"
    assert "is gone" in found["reports/decision.md"].because


def test_a_replaced_and_a_deleted_checkpoint() -> None:
    other = replace(TRAIN, checkpoint=CheckpointStamp("/home/me/c/out/model.npz", "55" * 32))
    assert states(with_cell(other))["reports/figures/train.png"] == FileState(
        "reports/figures/train.png", "stale", "train/full/0: its checkpoint /home/me/c/out/model.npz was replaced"
    )
    gone = replace(TRAIN, checkpoint=CheckpointStamp("/home/me/c/out/model.npz", None))
    assert states(with_cell(gone))["reports/figures/train.png"].state == "broken"


def test_a_cell_that_was_run_again() -> None:
    found = states(with_cell(replace(EVAL, attempt=2, token="t9")))
    assert found["reports/decision.md"].because == "eval/full/0/ood was run again: attempt 2 counts now, not 1"


def test_an_edited_and_a_deleted_table() -> None:
    found = states(BASIS, {"reports/decision.md": "00" * 32})
    assert found["reports/decision.md"].state == "broken"
    assert "changed after Muster had made it" in found["reports/decision.md"].because
    assert "deleted" in found["reports/figures/train.png"].because


def test_a_changed_campaign_file_names_its_sections() -> None:
    found = states(replace(BASIS, sections={"axes": "a", "decision": "other"}))
    assert {each.because for each in found.values()} == {"campaign.yaml changed: decision"}
    assert {each.state for each in found.values()} == {"stale"}


def test_a_deleted_seed_breaks_and_a_new_one_makes_stale() -> None:
    fewer = replace(BASIS, cells={"train/full/0": TRAIN})
    assert states(fewer)["reports/decision.md"].state == "broken"
    more = with_cell(replace(EVAL, cell="eval/full/1/ood"))
    assert "eval/full/1/ood came in since" in states(more)["reports/decision.md"].because
    declared = replace(BASIS, missing=("eval/full/1/ood",))
    assert "eval/full/1/ood is declared and missing" in states(declared)["reports/decision.md"].because


def test_many_reasons_are_told_in_a_few_words() -> None:
    files = {f"/home/me/{n}.json": f"{n:064x}" for n in range(9)}
    before = replace(STAMP, basis=with_cell(replace(EVAL, files=files)))
    now = with_cell(replace(EVAL, files=dict.fromkeys(files, "ff" * 32)))
    found = next(iter(verify_stamp(before, now, HASHES.get)))
    assert found.because.endswith("and 6 more")


def test_paths_below_the_folder_are_relative_on_the_disk(tmp_path: Path) -> None:
    here = str(tmp_path)
    outside = replace(EVAL, output="/data/eval", files={"/data/eval/result.json": "22" * 32}, command=f"x {here}/a")
    basis = replace(BASIS, cells={c.cell: _below(c, here) for c in (TRAIN, outside)})
    write_stamp(tmp_path, replace(STAMP, basis=basis))
    written = json.loads((tmp_path / "reports/stamps/report.json").read_text())
    train, evaluated = written["basis"]["cells"].values()
    assert (train["folder"], train["output"]) == (".muster/attempts/train/full/0/1", "out")
    assert train["checkpoint"]["path"] == "out/model.npz"
    assert list(evaluated["files"]) == ["/data/eval/result.json"]  # not in the folder: it moves with nobody
    found = read_stamp(tmp_path, "report")
    assert found is not None
    assert found.basis == basis
    moved = tmp_path.with_name(f"{tmp_path.name} moved")
    tmp_path.rename(moved)
    found = read_stamp(moved, "report")
    assert found is not None
    assert found.basis.cells[TRAIN.cell] == _below(TRAIN, str(moved))
    assert found.basis.cells[EVAL.cell].command == f"x '{moved}/a'"


def test_a_stamp_with_absolute_paths_of_a_former_folder(tmp_path: Path) -> None:
    (tmp_path / "reports/stamps").mkdir(parents=True)
    old = replace(STAMP, basis=replace(BASIS, cells={TRAIN.cell: TRAIN}))
    (tmp_path / "reports/stamps/report.json").write_bytes(msgspec.json.encode(old))
    found = read_stamp(tmp_path, "report")
    assert found is not None
    assert found.basis.cells[TRAIN.cell] == _below(TRAIN, str(tmp_path))


def _below(cell: CellStamp, root: str) -> CellStamp:
    """As TRAIN and EVAL, of a campaign in another folder than /home/me/c."""
    saved = cell.checkpoint and replace(cell.checkpoint, path=cell.checkpoint.path.replace("/home/me/c", root))
    output = (cell.output or "").replace("/home/me/c", root)
    return replace(cell, folder=cell.folder.replace("/home/me/c", root), output=output, checkpoint=saved)


def test_publish_writes_files_and_stamp_and_reads_it_back(tmp_path: Path) -> None:
    files = [DerivedFile("reports/tables/main.csv", b"a,b\n", "table", ("train/full/0",), (CLAIM,))]
    kept = publish_derived_files(tmp_path, "report", "muster report", "now", "0.3.0", BASIS, files)
    assert kept.written == ("reports/tables/main.csv",)
    assert (tmp_path / "reports/tables/main.csv").read_bytes() == b"a,b\n"
    found = read_stamp(tmp_path, "report")
    assert found is not None
    assert found.basis.sections == BASIS.sections
    assert found.files["reports/tables/main.csv"].claims == (CLAIM,)
    assert [stamp.made for stamp in read_all_stamps(tmp_path)] == ["report"]
    assert not [path for path in tmp_path.rglob(".*") if path.is_file()]  # nothing half written is left


def test_a_whole_report_takes_the_partial_one_away_unless_somebody_changed_it(tmp_path: Path) -> None:
    partial = [DerivedFile(f"reports/{name}.PARTIAL-1of2.md", b"x", "text") for name in ("a", "b")]
    publish_derived_files(tmp_path, "report", "muster report --partial", "now", "0.3.0", BASIS, partial)
    (tmp_path / "reports/b.PARTIAL-1of2.md").write_text("mine now")
    kept = publish_derived_files(
        tmp_path, "report", "muster report", "now", "0.3.0", BASIS, [DerivedFile("reports/a.md", b"x", "text")]
    )
    assert kept.removed == ("reports/a.PARTIAL-1of2.md",)
    assert kept.left == ("reports/b.PARTIAL-1of2.md",)
    assert not (tmp_path / "reports/a.PARTIAL-1of2.md").exists()
    assert (tmp_path / "reports/b.PARTIAL-1of2.md").read_text() == "mine now"


def test_what_stays_the_same_keeps_its_times(tmp_path: Path) -> None:
    files = [DerivedFile("reports/a.md", b"x", "text")]
    publish_derived_files(tmp_path, "report", "muster report", "now", "0.3.0", BASIS, files)
    before = (tmp_path / "reports/a.md").stat()
    publish_derived_files(tmp_path, "report", "muster report", "later", "0.3.0", BASIS, files)
    after = (tmp_path / "reports/a.md").stat()
    assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)


def test_a_place_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "reports").write_text("a file where a folder should be")
    with pytest.raises(MusterError) as told:
        publish_derived_files(
            tmp_path, "report", "muster report", "now", "0.3.0", BASIS, [DerivedFile("reports/a.md", b"x", "text")]
        )
    assert "could not be written" in told.value.message


def test_a_damaged_stamp_is_an_error_and_not_nothing(tmp_path: Path) -> None:
    publish_derived_files(
        tmp_path, "report", "muster report", "now", "0.3.0", BASIS, [DerivedFile("reports/a.md", b"x", "text")]
    )
    (tmp_path / "reports/stamps/report.json").write_text('{"made": 3')
    with pytest.raises(MusterError) as told:
        list(read_all_stamps(tmp_path))
    assert told.value.hint == "make it anew: `muster report`"


# -- trace


@pytest.mark.parametrize(
    ("made", "command"),
    [
        ("report", "muster report"), ("report-partial", "muster report"), ("job-plots", "muster report"),
        ("cost", "muster cost --report"), ("cost-notes_md", "muster cost --report"), ("record", "muster record"),
        ("record-notes_md", "muster record"), ("document-ppt.md", "muster docs update"),
    ],
)  # fmt: skip
def test_a_damaged_stamp_names_the_command_that_makes_it_anew(tmp_path: Path, made: str, command: str) -> None:
    path = tmp_path / f"reports/stamps/{made}.json"
    path.parent.mkdir(parents=True)
    path.write_text("{")
    with pytest.raises(MusterError) as error:
        read_stamp(tmp_path, made)
    assert error.value.hint == f"make it anew: `{command}`"


def test_trace_of_a_sentence_goes_to_result_checkpoint_and_commit() -> None:
    found = trace_file_claims(STAMP, "reports/decision.md", FileState("reports/decision.md", "fresh"), "e1")
    text = "\n".join(format_trace_lines(found))
    for wanted in ("[E1] full scores 5.5.", "eval/full/0/ood", "score = 5.5", "/home/me/c/eval/result.json",
                   "train/full/0", "/home/me/c/out/model.npz", "saved at 99 %", "aaaaaaaaaaaa", "d1-c0"):  # fmt: skip
        assert wanted in text
    told = trace_as_json(found)
    assert [cell["cell"] for cell in told["cells"]] == ["eval/full/0/ood", "train/full/0"]
    assert told["cells"][1]["checkpoint"]["sha256"] == "11" * 32


def test_trace_of_a_line_and_of_one_that_claims_nothing() -> None:
    fresh = FileState("reports/decision.md", "fresh")
    assert trace_file_claims(STAMP, "reports/decision.md", fresh, line=TracedLine(3, "| full | 5.5 | [E1]")).claims == (
        CLAIM,
    )
    with pytest.raises(UsageError):
        trace_file_claims(STAMP, "reports/decision.md", fresh, line=TracedLine(1, "# A title"))
    with pytest.raises(UsageError) as told:
        trace_file_claims(STAMP, "reports/decision.md", fresh, claim="E7")
    assert "E1" in told.value.hint


def test_trace_of_a_row_of_a_table() -> None:
    path = "reports/tables/main.md"
    fresh = FileState(path, "fresh")
    own = [
        ReportClaim("L5.3", "full, ood/score: 5.5", ("eval/full/0/ood",)),
        ReportClaim("L6.3", "base", ("train/full/0",)),
    ]
    stamp = replace(STAMP, files={path: FileStamp("00" * 32, "table", None, tuple(own))})
    found = trace_file_claims(stamp, path, fresh, line=TracedLine(5, "| full | 1/1 | 5.5 |"))
    assert found.claims == (own[0],)
    assert [cell.cell for cell in found.cells] == ["eval/full/0/ood", "train/full/0"]
    assert trace_file_claims(stamp, path, fresh, claim="l6.3").claims == (own[1],)
    text = "\n".join(format_trace_lines(trace_file_claims(stamp, path, fresh)))
    assert "[L5.3]" not in text
    assert "one row of it: `muster trace reports/tables/main.md:5`" in text
    with pytest.raises(UsageError) as told:
        trace_file_claims(stamp, path, fresh, line=TracedLine(1, "**Main**"))
    assert told.value.hint == "numbers are in its lines 5, 6"
    older = replace(STAMP, files={path: FileStamp("00" * 32, "table")})
    with pytest.raises(UsageError) as told:
        trace_file_claims(older, path, fresh, line=TracedLine(5, "| full | 1/1 | 5.5 |"))
    assert "`muster report` makes it anew" in told.value.hint


def test_trace_of_a_figure_shows_its_own_cells() -> None:
    found = trace_file_claims(STAMP, "reports/figures/train.png", FileState("reports/figures/train.png", "fresh"))
    assert [cell.cell for cell in found.cells] == ["train/full/0"]


def test_outside_reports_nothing_is_ever_removed(tmp_path: Path) -> None:
    mine = [DerivedFile(path, b"mine", "text") for path in ("Record.md", "reports/../Second.md", "notes/reports/a.md")]
    publish_derived_files(
        tmp_path, "record", "muster record", "now", "0.3.0", BASIS, [*mine, DerivedFile("reports/b.md", b"x", "text")]
    )
    kept = publish_derived_files(
        tmp_path, "record", "muster record", "now", "0.3.0", BASIS, [DerivedFile("reports/a.md", b"x", "text")]
    )
    assert kept.removed == ("reports/b.md",)
    assert [(tmp_path / each.path).read_bytes() for each in mine] == [b"mine"] * 3
