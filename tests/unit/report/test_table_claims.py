"""Every number of a table leads to the cells that it rests on, line by line, in each format and language."""

from __future__ import annotations

import csv
import io

import pytest
from report_scenes import SCENES, analysed

from muster.app.campaign.stamp import ReportClaim
from muster.app.facts.report_facts import ResultColumn
from muster.app.report.table_files import RenderedTable, render_report_tables


def by_line(claims: tuple[ReportClaim, ...]) -> dict[int, list[ReportClaim]]:
    found: dict[int, list[ReportClaim]] = {}
    for each in claims:
        found.setdefault(int(each.id[1:].partition(".")[0]), []).append(each)
    return found


def texts(table: RenderedTable) -> dict[str, str]:
    return {"csv": table.csv, "md": table.markdown, "tex": table.latex}


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("scene", SCENES)
def test_each_line_of_the_csv_is_about_one_config_in_one_column(scene: str, language: str) -> None:
    analysis = analysed(scene, language)  # type: ignore[arg-type]
    for table in render_report_tables(analysis):
        rows = list(csv.DictReader(io.StringIO(table.csv)))
        found = by_line(table.claims["csv"])
        assert sorted(found) == [line for line, row in enumerate(rows, 2) if row["n"] != "0"]
        for line, (claim,) in found.items():
            row = rows[line - 2]
            assert claim.text == f"{row['config']}, {row['column']}"
            assert claim.cells == analysis.cells(row["config"], ResultColumn(row["split"], row["metric"]))
            assert len(claim.cells) == int(row["n"])


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("suffix", ["md", "tex"])
def test_each_number_of_the_others_is_in_the_line_that_it_is_traced_from(
    scene: str, language: str, suffix: str
) -> None:
    for table in render_report_tables(analysed(scene, language)):  # type: ignore[arg-type]
        lines = texts(table)[suffix].splitlines()
        found = by_line(table.claims[suffix])
        assert found
        for line, claims in found.items():
            shown = lines[line - 1].replace("\\", "").replace("{", "").replace("}", "").replace("$", "")
            for claim in claims:
                number = claim.text.rpartition(": ")[2].split()[0].split("/")[0]
                interval = claim.text.rpartition("[")[2].split(",")[0]
                assert number in shown or interval in shown  # in LaTeX the interval has a line of its own
                assert claim.cells
                assert len(set(claim.cells)) == len(claim.cells)


def test_a_difference_rests_on_both_configs() -> None:
    analysis = analysed("recommend")
    ablation = next(table for table in render_report_tables(analysis) if table.name == "ablation")
    differences = [each for each in ablation.claims["md"] if "difference" in each.text]
    assert differences
    for each in differences:
        assert {cell.split("/")[1] for cell in each.cells} > {"v2_baseline"}
