"""The tables: what a cell shows of so many seeds, what is bold, and the formats."""

import csv
import io
import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_scenes import CONFIGS, COST, NEAR, SCENES, SCORE, analysed, facts, pair, plan, recommend, spread

from muster.app.facts.report_analysis import ReportAnalysis, analyse_facts
from muster.app.facts.report_facts import Measurement, ResultColumn
from muster.app.report.estimates import format_of_column
from muster.app.report.result_tables import main_table_grid
from muster.app.report.table_files import RenderedTable, render_report_tables, table_rows_as_json
from muster.stats.samples import interquartile_mean
from muster.text.catalogue import load_catalogue
from muster.text.escape_markup import escape_latex, escape_markdown


def main(analysis: ReportAnalysis) -> RenderedTable:
    return next(iter(render_report_tables(analysis)))


def rows(analysis: ReportAnalysis) -> list[list[str]]:
    """The main table's cells in Markdown, without the heading."""
    lines = [line for line in main(analysis).markdown.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


# -- what a cell shows


def test_one_seed_two_seeds_three_seeds_none() -> None:
    values = {"ood/score": {"none": [], "one": [1.25], "two": [1.5, 1.25], "three": [1.0, 2.0, 3.0]}}
    analysis = analyse_facts(facts(values, plan=None, configs=("none", "one", "two", "three"), seeds=("0", "1", "2")))
    assert rows(analysis) == [
        ["none", "0/3", "— (missing)"],
        ["one", "1/3", "1.25"],
        ["two", "2/3", "1.50 / 1.25"],
        ["three", "3/3", "2.00 ± 1.00 [-0.48, 4.48]"],
    ]


def test_ten_seeds_have_a_narrower_interval_than_five() -> None:
    five, ten = (pair(spread(1.0, 0.2, n, 1), spread(1.1, 0.2, n, 2)) for n in (5, 10))
    assert rows(five)[0][1:] == ["5/5", "**1.00 ± 0.21** [0.74, 1.26]"]
    assert rows(ten)[0][1:] == ["10/10", "**1.00 ± 0.21** [0.85, 1.15]"]


def test_no_spread_has_no_interval() -> None:
    assert rows(pair([0.0] * 5, [1.0] * 5))[0] == ["v2_baseline", "5/5", "**0 ± 0**"]


def test_k_is_that_of_the_weakest_column_and_the_others_say_theirs() -> None:
    whole = recommend()
    gone = next(each for each in whole.measured if each.cell == "eval/v2_full/4/id")
    analysis = analyse_facts(replace(whole, measured=tuple(each for each in whole.measured if each is not gone)))
    (row,) = [row for row in rows(analysis) if row[0] == "v2_full"]
    assert row[1] == "4/5"
    assert "(n = 5)" not in row[2]
    assert all("(n = 5)" in cell for cell in row[3:])


def test_what_is_excluded_is_not_counted_as_missing() -> None:
    whole = recommend()
    kept = tuple(each for each in whole.measured if (each.config, each.seed) != ("v2_full", "4"))
    out = tuple(("v2_full", "4", head) for head in ("id", "ood", "train"))
    analysis = analyse_facts(replace(whole, measured=kept, excluded=out))
    assert [row[1] for row in rows(analysis)] == ["5/5", "5/5", "5/5", "4/4"]
    assert read(main(analysis).csv)[3]["declared"] == "4"


def test_jobs_without_the_axes_have_rows_of_their_own() -> None:
    cells = (
        Measurement("data", "data", "", "", "data", {"size": 3.0}),
        *(
            Measurement(f"eval/a/{seed}", "eval", "a", str(seed), "eval", {"score": 1.0 + seed / 7})
            for seed in range(3)
        ),
    )
    analysis = analyse_facts(
        facts(
            {},
            plan=None,
            measured=cells,
            configs=("a",),
            seeds=("0", "1", "2"),
            columns=(ResultColumn("eval", "score"),),
        )
    )
    found = read(main(analysis).csv)
    assert [(row["config"], row["column"], row["n"], row["declared"]) for row in found] == [
        ("a", "eval/score", "3", "3"),
        ("", "data/size", "1", "1"),
    ]


@pytest.mark.parametrize("scene", SCENES)
def test_every_table_has_k_of_n_as_a_column(scene: str) -> None:
    for table in render_report_tables(analysed(scene)):
        heads = [line for line in table.markdown.splitlines() if line.startswith(("| config", "| factor"))]
        assert heads
        assert all("| k/N |" in head for head in heads)
        assert all(
            " k/N & " in line for line in table.latex.splitlines() if line.lstrip().startswith(("config &", "factor &"))
        )


# -- bold and daggers


def bold(analysis: ReportAnalysis) -> set[str]:
    return {row[0].rstrip(" †?") for row in rows(analysis) if any(cell.startswith("**") for cell in row)}


def test_the_best_feasible_config_is_bold_and_what_the_test_can_t_tell_from_it() -> None:
    assert bold(analysed("recommend")) == {"v2_full"}
    assert bold(analysed("not_enough")) == {"v2_baseline", "v2_u_only", "v2_full"}  # v2_cert_only is undetermined
    assert bold(analysed("equivalent")) == set(CONFIGS)


def test_only_the_primary_column_is_bold() -> None:
    (row,) = [row for row in rows(analysed("recommend")) if row[0] == "v2_full"]
    assert [cell.startswith("**") for cell in row] == [False, False, False, True, False, False]


def test_a_candidate_that_is_surely_behind_another_is_not_bold() -> None:
    values = {
        "ood/score": {"v2_baseline": NEAR, "v2_full": spread(5.0, 0.1, 5, 2), "v2_u_only": spread(3.0, 0.1, 5, 3)}
    }
    assert bold(analyse_facts(facts(values, plan=plan(limit=None, factors={})))) == {"v2_full"}


def test_lower_may_be_better() -> None:
    analysis = pair(NEAR, spread(-2.0, 0.1, 5, 2), rules={"higher": False})
    assert bold(analysis) == {"v2_full"}
    assert "ood/score ↓" in main(analysis).markdown


@pytest.mark.parametrize(
    ("scene", "because"), [("invalid", "not a result"), ("incomplete", "incomplete"), ("no_plan", "nothing was tested")]
)
def test_nothing_is_bold_where_there_is_nothing_to_rank(scene: str, because: str) -> None:
    analysis = analysed(scene)
    assert bold(analysis) == set()
    assert because in main(analysis).markdown


def test_too_few_seeds_rank_nothing() -> None:
    analysis = pair(NEAR[:4], spread(9.0, 0.1, 4, 2))
    assert bold(analysis) == set()
    assert "fewer than 5 seeds allow no ranking" in main(analysis).markdown
    behind = pair(NEAR, spread(9.0, 0.1, 4, 2))  # better, and not judged: the baseline is not called the best
    assert bold(behind) == set()


def test_the_infeasible_and_the_undetermined_are_marked_and_explained() -> None:
    unsafe, open_ = main(analysed("unsafe_baseline")).markdown, main(analysed("not_enough")).markdown
    assert "| v2_baseline † |" in unsafe
    assert "† infeasible: it breaks the limit ood/cost ≤ 25" in unsafe
    assert "? undetermined" not in unsafe
    assert "| v2_cert_only ? |" in open_
    assert "? undetermined" in open_
    assert "†" not in open_


def test_no_feasible_config_leaves_nothing_bold() -> None:
    analysis = pair(NEAR, spread(1.3, 0.1, 5, 2), ([90.0, 91.5, 92.3, 89.1, 88.0], [70.0, 71.5, 72.3, 69.1, 68.0]))
    assert bold(analysis) == set()
    assert "no config is shown to keep the limit ood/cost ≤ 25" in main(analysis).markdown


def test_a_limit_may_be_a_minimum() -> None:
    analysis = pair(
        NEAR,
        spread(2.0, 0.1, 5, 2),
        ([0.95, 0.96, 0.97, 0.94, 0.955], [0.3, 0.33, 0.35, 0.36, 0.31]),
        {"limit": 0.9, "at_most": False},
    )
    assert "ood/cost (≥ 0.9)" in main(analysis).markdown
    assert "| v2_full † |" in main(analysis).markdown
    assert bold(analysis) == {"v2_baseline"}


# -- numbers


@given(
    st.lists(st.floats(-1e4, 1e4).map(lambda v: round(v, 4)), min_size=1, max_size=6),
    st.lists(st.floats(-10, 10).map(lambda v: round(v, 4)), min_size=1, max_size=6),
)
def test_every_number_shown_is_the_sample_s_at_the_precision_shown(a: list[float], b: list[float]) -> None:
    analysis = pair(a, b)
    form = format_of_column(analysis, SCORE)
    for row, config in zip(
        main_table_grid(analysis, load_catalogue("report", "en")).rows, analysis.facts.configs, strict=True
    ):
        sample = analysis.sample(config, SCORE)
        known = list(sample.values) if sample.n < 3 else [sample.mean, sample.sd or 0.0]
        shown = [float(part) for part in re.split(r" ± | / ", row[2].text)]
        assert len(shown) == len(known)
        for number, value in zip(shown, known, strict=True):
            assert abs(number - value) <= unit(form) * 0.5 * (1 + 1e-9) + abs(value) * 1e-3 * (
                form.scientific or abs(value) < unit(form)
            )
        if row[2].below:
            interval = [float(part) for part in row[2].below.strip("[]").split(", ")]
            assert sample.interval is not None
            for number, value in zip(interval, sample.interval, strict=True):
                assert abs(number - value) <= unit(form) * 0.51 + abs(value) * 1e-3 * form.scientific


def unit(form: object) -> float:
    return 10.0**-form.decimals  # type: ignore[attr-defined, no-any-return]


# -- CSV


def test_csv_has_every_seed_and_reads_back_to_the_same_numbers() -> None:
    analysis = analysed("recommend")
    found = read(main(analysis).csv)
    assert [row["column"] for row in found[::4]] == ["id/score", "ood/score", "ood/cost", "train/risk_penalty"]
    row = next(row for row in found if (row["config"], row["column"]) == ("v2_full", "ood/score"))
    sample = analysis.sample("v2_full", SCORE)
    assert [float(row[f"seed_{seed}"]) for seed in range(5)] == list(sample.values)
    assert (float(row["mean"]), float(row["sd"])) == (sample.mean, sample.sd)
    assert (float(row["t95_low"]), float(row["t95_high"])) == sample.interval
    assert (row["n"], row["declared"], row["split"], row["metric"], row["mark"]) == ("5", "5", "ood", "score", "")


def test_csv_says_what_is_not_there_and_that_it_is_partial() -> None:
    found = read(main(analysed("incomplete")).csv)
    row = next(row for row in found if (row["config"], row["column"]) == ("v2_full", "ood/score"))
    assert (row["seed_2"], row["n"], row["declared"], row["mark"]) == ("NA", "4", "5", "PARTIAL 51/60")
    assert all(all(row[name] for name in row) for row in found)  # nothing is blank


def test_csv_holds_back_an_interval_below_three_seeds() -> None:
    (a, b) = read(main(pair([1.0, 1.5], [2.0])).csv)
    assert (a["t95_low"], a["sd"]) == ("NA", repr(0.3535533905932738))
    assert (b["sd"], b["seed_1"], b["mean"]) == ("NA", "NA", "2.0")


def test_the_interquartile_mean_is_shown_from_ten_seeds_on() -> None:
    ten, nine = spread(1.0, 0.1, 10, 1), spread(2.0, 0.1, 9, 2)
    analysis = pair(ten, nine)
    a, b = read(main(analysis).csv)
    assert (float(a["iqm"]), b["iqm"]) == (interquartile_mean(tuple(ten)), "NA")
    note = "Interquartile mean of ood/score (the middle half of the seeds, from 10 seeds on): v2_baseline "
    assert f"{note}{format_of_column(analysis, SCORE)(interquartile_mean(tuple(ten)))}." in main(
        analysis
    ).markdown.replace("\\", "")
    assert "Interquartile" not in main(pair(ten[:9], nine)).markdown


def test_csv_also_has_results_that_the_main_table_leaves_out() -> None:
    analysis = analyse_facts(replace(recommend(), columns=(SCORE,)))
    assert {row["column"] for row in read(main(analysis).csv)} == {
        "ood/score",
        "id/score",
        "ood/cost",
        "train/risk_penalty",
    }
    assert "id/score" not in main(analysis).markdown


def test_rows_as_json() -> None:
    analysis = analysed("incomplete")
    found = json.loads(json.dumps(table_rows_as_json(analysis), allow_nan=False))
    assert [set(row) for row in found] == [{"config", "split", "metric", "n", "mean", "sd", "values"}] * 16
    row = next(row for row in found if (row["config"], row["metric"]) == ("v2_full", "cost"))
    assert (row["split"], row["n"], row["mean"]) == ("ood", 4, analysis.sample("v2_full", COST).mean)
    assert row["values"] == [analysis.sample("v2_full", COST).by_seed[seed] for seed in "0134"]


def test_a_config_without_a_result_has_no_mean_in_json() -> None:
    analysis = analyse_facts(facts({"ood/score": {"a": [], "b": [1.0]}}, plan=None, configs=("a", "b")))
    assert table_rows_as_json(analysis)[0] == {
        "config": "a",
        "split": "ood",
        "metric": "score",
        "n": 0,
        "mean": None,
        "sd": None,
        "values": [],
    }


def test_values_stand_in_the_declared_order_of_the_seeds() -> None:
    whole = recommend()
    analysis = analyse_facts(replace(whole, measured=whole.measured[::-1]))
    assert [row["values"] for row in table_rows_as_json(analysis)] == [
        row["values"] for row in table_rows_as_json(analyse_facts(whole))
    ]


# -- names


ODD = "50%_a&b#1|$x^y~{z}\\[k]*<b>"


def odd() -> ReportAnalysis:
    values = {"o_o%d/sco&re": {ODD: NEAR, "_plain_": spread(2.0, 0.1, 5, 2)}}
    primary = ResultColumn("o_o%d", "sco&re")
    return analyse_facts(
        facts(
            values,
            campaign="50%_off|now",
            plan=plan(baseline=ODD, limit=None, primary=primary, factors={ODD: {"a_b": 0}, "_plain_": {"a_b": 1}}),
        )
    )


def test_odd_names_stay_in_their_markdown_cell() -> None:
    found = rows(odd())
    assert [len(row) for row in found] == [3, 3]
    assert found[0][0] == escape_markdown(ODD)
    assert found[1][0] == r"\_plain\_"
    assert r"\|" in found[0][0]


def test_ordinary_names_are_left_as_they_are() -> None:
    assert [escape_markdown(name) for name in ("v2_full", "a-b.c", "x [0.1, 0.9]", "p <0.0001", "a < b")] == [
        "v2_full",
        "a-b.c",
        "x [0.1, 0.9]",
        "p <0.0001",
        "a < b",
    ]
    assert [escape_markdown(name) for name in ("[a](b)", "a\nb", "<script>", "~~a~~", "&amp;")] == [
        r"[a\](b)",
        "a b",
        r"\<script>",
        r"\~~a\~~",
        r"\&amp;",
    ]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_odd_names_are_escaped_in_latex(language: str) -> None:
    analysis = odd()
    for table in render_report_tables(replace(analysis, facts=replace(analysis.facts, language=language))):  # type: ignore[arg-type]
        assert_sound(table.latex)
        assert escape_latex(ODD) in table.latex
    assert escape_latex("a_b -0.5 [-1, 2] x-1") == r"a\_b $-$0.5 {[}$-$1, 2{]} x-1"


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("scene", SCENES)
def test_latex_is_sound(scene: str, language: str) -> None:
    for table in render_report_tables(analysed(scene, language)):  # type: ignore[arg-type]
        assert_sound(table.latex)
        assert r"\toprule" in table.latex
        assert "booktabs" in table.latex


def assert_sound(text: str) -> None:
    """There may be no TeX on this machine: braces, environments, columns and special characters are counted."""
    body = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    bare = body.replace(r"\\", "").replace(r"\{", "").replace(r"\}", "")
    depth = 0
    for char in bare:
        depth += {"{": 1, "}": -1}.get(char, 0)
        assert depth >= 0
    assert depth == 0
    assert re.findall(r"\\begin\{(\w+)\}", body) == ["table", "tabular"] * body.count(r"\begin{table}")
    assert body.count(r"\begin{tabular}") == body.count(r"\end{tabular}")
    plain = re.sub(r"\\[$_%&#]", "", body)
    assert plain.count("$") % 2 == 0
    outside = re.sub(r"\$[^$]*\$", "", plain)
    assert not re.search(r"[_%#^~|<>†±≤≥✓→−–—]", outside)
    for columns, lines in re.findall(r"\\begin\{tabular\}\{(\w+)\}\n(.*?)\\end\{tabular\}", body, re.DOTALL):
        data = [line for line in lines.splitlines() if line.rstrip().endswith(r"\\")]
        assert len(data) > 1
        assert {len(re.findall(r"(?<!\\)&", line)) + 1 for line in data} == {len(columns)}


def test_chinese_stands_in_captions_only_and_says_what_it_needs() -> None:
    for table in render_report_tables(analysed("recommend", "zh")):
        assert "xeCJK" in table.latex
        outside = re.sub(r"\\caption\{.*\}", "", table.latex)
        assert not re.search(r"[\u4e00-\u9fff]", outside)
    assert all("xeCJK" not in table.latex for table in render_report_tables(analysed("recommend", "en")))


def test_the_mark_is_in_every_caption() -> None:
    for language in ("en", "zh"):
        for table in render_report_tables(analysed("incomplete", language)):  # type: ignore[arg-type]
            captions = re.findall(r"\\caption\{(PARTIAL 51/60)", table.latex)
            assert len(captions) == table.latex.count(r"\caption{")
            titles = [line for line in table.markdown.splitlines() if line.startswith("**")]
            assert titles
            assert all(line.startswith("**PARTIAL 51/60") for line in titles)
    assert all(
        "PARTIAL" not in table.markdown + table.latex + table.csv
        for table in render_report_tables(analysed("recommend"))
    )


# -- ablation


def test_the_ablation_has_factors_and_pairs_that_differ_in_one() -> None:
    _, ablation = render_report_tables(analysed("recommend"))
    assert "| v2_u_only | ✓ | – | 5/5 |" in ablation.markdown
    assert "| u: 0 → 1 | v2_full − v2_cert_only | 5/5 − 5/5 | cert = 1 | +1.00 [0.66, 1.34] |" in ablation.markdown
    assert "v2_full − v2_baseline" not in ablation.markdown  # two factors at once
    found = read(ablation.csv)
    assert (found[3]["config"], found[3]["factor_u"], found[3]["factor_cert"]) == ("v2_full", "1", "1")
    assert "estimates only, no tests" in ablation.markdown


def test_without_factors_there_is_no_ablation() -> None:
    assert [table.name for table in render_report_tables(analysed("recommend", plan=plan(factors={})))] == ["main"]
    assert [table.name for table in render_report_tables(analysed("no_plan"))] == ["main"]


def test_configs_without_factors_are_left_out_and_levels_may_be_words() -> None:
    factors = {
        "v2_baseline": {"risk": "none", "steps": 10},
        "v2_u_only": {"risk": "low", "steps": 10},
        "v2_full": {"risk": "none"},
    }
    _, ablation = render_report_tables(analysed("recommend", plan=plan(factors=factors)))
    assert "v2_cert_only" not in ablation.markdown
    assert "v2_cert_only" not in ablation.csv
    assert "| v2_full | none | — | 5/5 |" in ablation.markdown
    assert "risk: none → low" in ablation.markdown
    assert {row["factor_steps"] for row in read(ablation.csv) if row["config"] == "v2_full"} == {"NA"}
    assert ablation.cells == tuple(each.cell for each in recommend().measured if each.config != "v2_cert_only")


def test_a_table_names_the_cells_it_rests_on() -> None:
    assert main(analysed("incomplete")).cells == tuple(each.cell for each in SCENES["incomplete"]().measured)
