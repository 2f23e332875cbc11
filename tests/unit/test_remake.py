"""A file that is not fresh is named with the command that makes it anew."""

from __future__ import annotations

from muster.app.campaign.stamp import FileStamp, Stamp, StampBasis
from muster.app.report.verify_files import commands_to_remake


def stamp(made: str, command: str, *paths: str) -> Stamp:
    basis = StampBasis("c", {}, {}, 1, 1)
    return Stamp(made, command, "", "0.3.0", basis, {path: FileStamp("0" * 64, "text") for path in paths})


MADE = [
    stamp("report", "muster report --partial", "reports/decision.PARTIAL-1of2.md", "reports/tables/main.csv"),
    stamp("cost", "muster cost --report", "reports/cost.md"),
    stamp("record-x", "muster record --out Record.md", "Record.md"),
    stamp("document-x", "muster docs update", "paper.md"),
]


def test_each_command_once_and_that_of_its_stamp() -> None:
    paths = ["Record.md", "reports/tables/main.csv", "paper.md", "reports/decision.PARTIAL-1of2.md", "reports/cost.md"]
    assert commands_to_remake(paths, MADE) == (
        "muster record --out Record.md", "muster report --partial", "muster docs update", "muster cost --report",
    )  # fmt: skip


def test_where_the_stamp_is_gone() -> None:
    assert commands_to_remake(["reports/cost.md"], []) == ("muster cost --report",)
    assert commands_to_remake(["reports/loop/summary.md", "reports/loop/lineage.svg"], []) == ("muster loop report",)
    assert commands_to_remake(["reports/record.md", "reports/defence.md"], []) == ("muster record", "muster report")
    assert commands_to_remake([], MADE) == ()
