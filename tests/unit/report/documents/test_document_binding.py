"""Which number of a text is which result: realistic texts with their truth beside them, and every rule by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from document_maker import make
from document_world import ROBOT, STORY, quantities

from muster.app.documents.bind_numbers import BindingDecision, decide_bindings
from muster.app.documents.document_context import DocumentContext
from muster.app.documents.result_names import NameReader, Quantity, QuantityIndex
from muster.app.documents.text_layout import TextSource, kind_of_text

TEXTS = Path(__file__).parent / "texts"
NAMES = sorted(path.name for path in TEXTS.iterdir() if path.suffix != ".truth")
BOOK = QuantityIndex(quantities(STORY))


def context(text: str, name: str = "text.md", book: QuantityIndex = BOOK) -> DocumentContext:
    return DocumentContext(TextSource(text, kind_of_text(name, text)), book, NameReader(book))


def shown(decision: BindingDecision) -> str:
    """ood/score/v2_full for a mean (and its sd), the whole key for anything else, ? for what is ambiguous."""
    if decision.state == "ambiguous":
        return "?"
    if decision.target is None:
        return "-"
    key = decision.target.keys[0]
    return key.removesuffix("/mean")


def bound(text: str, name: str = "text.md", book: QuantityIndex = BOOK) -> dict[str, str]:
    """Number as it stands there -> what it was bound to, for those that are bound or ambiguous."""
    told = (
        (text[each.number.start : each.number.end], shown(each)) for each in decide_bindings(context(text, name, book))
    )
    return {token: name for token, name in told if name != "-"}


def read(name: str) -> str:
    data = (TEXTS / name).read_bytes()
    return data.decode("gb18030" if name.startswith("gbk") else "utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_no_binding_of_a_realistic_text_is_wrong(name: str) -> None:
    text = read(name)
    found = context(text, name, QuantityIndex(quantities(ROBOT)) if name.startswith("robot") else BOOK)
    told = [
        (found.source.where(each.number.start)[0], text[each.number.start : each.number.end], shown(each))
        for each in decide_bindings(found)
    ]
    lines = (TEXTS / name).with_suffix(".truth").read_text().splitlines()
    truth = [(int(line), token, meant) for line, token, meant in (each.split("\t") for each in lines)]
    assert [each for each in told if each[2] != "-"] == truth


def test_there_are_enough_texts_of_every_kind() -> None:
    chinese = [name for name in NAMES if sum("一" <= each <= "鿿" for each in read(name)) > 50]
    latex = [name for name in NAMES if name.endswith(".tex")]
    assert (len(NAMES) >= 10, len(chinese) >= 2, len(latex) >= 1) == (True, True, True)


# -- the story


def test_three_configs_with_the_same_value_stay_unbound_and_are_all_named() -> None:
    for text in (
        "三个配置的 ID 得分都是 1.684±0.741。",
        "The ID score is 1.684 ± 0.741.",
        "v2_baseline, v2_u_only and v2_cert_only share an ID score of 1.684±0.741.",
        "v2_baseline, v2_u_only, v2_cert_only share it: an ID score of 1.684±0.741.",
    ):
        (decision,) = [each for each in decide_bindings(context(text)) if each.state != "ignored"]
        assert decision.state == "ambiguous"
        assert {target.group.config for target in decision.candidates} == {"v2_baseline", "v2_u_only", "v2_cert_only"}


def test_a_table_tells_them_apart() -> None:
    text = "| config | ID score |\n|---|---|\n| v2_u_only | 1.684±0.741 |\n| v2_cert_only | 1.684±0.741 |\n"
    assert [shown(each) for each in decide_bindings(context(text))] == ["id/score/v2_u_only", "id/score/v2_cert_only"]


def test_cost_at_best_is_the_cost_and_says_so() -> None:
    text = "| config | OOD cost@best(mean) |\n|---|---|\n| v2_full | 14.5 |\n"
    (decision,) = decide_bindings(context(text))
    assert (shown(decision), decision.note) == ("ood/cost/v2_full", "there is no cost@best: read as cost")


def test_a_metric_of_that_very_name_is_meant() -> None:
    more = [Quantity("ood/cost@best/v2_full/mean", "v2_full", "ood", "cost@best", "mean", "", 14.5, 5, 5)]
    book = QuantityIndex([*quantities(STORY), *more])
    text = "| config | OOD cost@best | OOD cost |\n|---|---|---|\n| v2_full | 14.5 | 15.0 |\n"
    assert bound(text, book=book) == {"14.5": "ood/cost@best/v2_full", "15.0": "ood/cost/v2_full"}


# -- by place


def table(column: str, row: str = "v2_full", cell: str = "7.77") -> str:
    return f"| config | {column} |\n|---|---|\n| {row} | {cell} |\n"


@pytest.mark.parametrize(
    ("column", "row"),
    [
        ("OOD score", "v2_full"), ("OOD score (mean)", "**v2_full** (ours)"), ("ood_score", "V2-Full"),
        ("Score, out-of-distribution ↑", "`v2_full`"), ("分布外得分", "v2_full（本文）"), ("OOD score", "Full"),
        ("score (OOD)", "v2 full†"), ("OOD score (5 seeds)", "v2_full"), ("OOD score", "v2\\_full"),
    ],
)  # fmt: skip
def test_row_and_column_are_enough_even_if_the_value_disagrees(column: str, row: str) -> None:
    assert bound(table(column, row)) == {"7.77": "ood/score/v2_full"}


@pytest.mark.parametrize(
    ("column", "row"),
    [
        ("score", "v2_full"),  # id or ood?
        ("OOD", "v2_full"),  # score or cost?
        ("OOD score", "v2_other"), ("OOD score", "v2_full_long"), ("OOD score", "v2_full w/o cert"),
        ("OOD score", "v2_full-XL"), ("OOD score", "v2_full++"), ("OOD score", "v2_full+"), ("OOD score", "tiny-v2_full"),
        ("OOD score", "v2_full + aug"), ("OOD score", "v2_full vs v2_baseline"), ("OOD score", "seeds 0/1 of v2_full"),
        ("Δ OOD score", "v2_full"), ("OOD score rank", "v2_full"), ("OOD score (max)", "v2_full"),
        ("best OOD score", "v2_full"), ("OOD score improvement", "v2_full"), ("OOD return", "v2_full"),
        ("OOD score (2 seeds)", "v2_full"), ("OOD score (×10³)", "v2_full"), ("OOD cost limit", "v2_full"),
        ("normalized OOD score", "v2_full"), ("OOD score, old code", "v2_full"), ("time (h)", "v2_full"),
        ("OOD 得分提升", "v2_full"), ("OOD 得分中位数", "v2_full"), ("", "v2_full"), ("OOD score", "平均"),
    ],
)  # fmt: skip
def test_a_row_or_column_that_says_something_else_binds_nothing(column: str, row: str) -> None:
    assert "7.77" not in {token for token, name in bound(table(column, row)).items() if name != "?"}


def test_a_second_table_with_other_values_is_not_taken_for_the_same() -> None:
    other = table("OOD score", cell="3.456")
    text = f"## PointGoal\n\n{table('OOD score', cell='0.999')}\n## CarGoal\n\n{other}"
    assert bound(text) == {"0.999": "ood/score/v2_full", "3.456": "?"}
    assert bound(f"{table('OOD score', cell='5.555')}\n\n{other}") == {"5.555": "?", "3.456": "?"}


def test_a_former_state_stays_one() -> None:
    assert bound(f"## 旧结果\n\n{table('OOD score', cell='0.999')}") == {"0.999": "?"}
    assert bound(f"## Previous submission\n\n{table('OOD score', cell='7.77')}") == {"7.77": "?"}


@pytest.mark.parametrize(
    "text",
    [
        "v2_full 的 OOD 得分从 0.999 提升到 1.117。", "The OOD score of v2_full rose from 0.999 to 1.117.",
        "- v2_full, OOD score: 0.999 → 1.117", "v2_full OOD score: 0.999 (two seeds) and now 1.117",
        "| config | OOD score | OOD score (rerun) |\n|---|---|---|\n| v2_full | 0.999 | 1.117 |\n",
    ],
)  # fmt: skip
def test_of_a_change_only_the_current_value_is_bound(text: str) -> None:
    assert {"0.999": "?"} | bound(text) == {"0.999": "?", "1.117": "ood/score/v2_full"}


def test_what_follows_plus_minus_must_be_the_sd() -> None:
    assert bound(table("OOD score (mean ± std)", cell="0.999 ± 0.158")) == {"0.999 ± 0.158": "ood/score/v2_full"}
    assert bound(table("OOD score (mean ± SE)", cell="0.999 ± 0.158")) == {}
    assert bound(table("OOD score", cell="0.999 ± 0.158")) == {"0.999 ± 0.158": "?"}  # sd / sqrt(2), it seems
    assert bound(table("OOD score, mean ± 95% CI", cell="0.999 ± 0.223")) == {}


def test_a_comma_or_a_unit_that_may_mean_something_else() -> None:
    assert bound(table("OOD score", cell="1,684")) == {"1,684": "?"}
    assert bound(table("OOD cost", cell="15000")) == {"15000": "?"}
    assert bound(table("OOD score", cell="1,68")) == {}


def test_prose_that_is_understood_word_for_word_is_a_place() -> None:
    assert bound("- v2_full: OOD score 7.77") == {"7.77": "ood/score/v2_full"}
    assert bound("`v2_full` has an OOD score of 7.77, at the price of a higher cost.") == {"7.77": "ood/score/v2_full"}
    assert bound("v2_full 在分布外的得分为 7.77±0.10，代价为 99.9。") == {
        "7.77±0.10": "ood/score/v2_full", "99.9": "ood/cost/v2_full",
    }  # fmt: skip
    assert bound("### v2_full\n\n- OOD score: 7.77\n- OOD cost: 99.9\n") == {
        "7.77": "ood/score/v2_full", "99.9": "ood/cost/v2_full",
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "v2_full 的 OOD 代价在 77.7 以下。", "v2_full has an OOD cost under 77.7.", "v2_full has an OOD cost of at most 77.7.",
        "v2_full's OOD score improves by 7.77.", "v2_full 的 OOD 得分提升了 7.77。", "v2_full OOD score: 7.77 higher",
        "v2_full should have an OOD score of 7.77.", "v2_full, v2_u_only reach an OOD score of 7.77.",
        "The OOD score of v2_full and v2_u_only is 7.77.", "Compared with v2_baseline, the OOD score reaches 7.77.",
        "v2_full OOD score 7.77 and 8.88.", "The full OOD score is 7.77.", "v2_full OOD score: 7 seeds",
        "v2_full and v2_u_only: OOD score 7.77, 8.88 respectively.", "v2_full OOD score < 7.77", "v2_full OOD cost limit: 77.7",
    ],
)  # fmt: skip
def test_prose_with_a_doubt_is_no_place(text: str) -> None:
    assert bound(text) == {}


# -- by value


@pytest.mark.parametrize(
    "text",
    [
        "折扣因子 0.999", "gamma = 0.999", "$\\gamma=0.999$", "discount of 0.999", "It took 14.5 hours.", "14.5 GPU 小时",
        "花费 83.0 元", "PyTorch 2.203", "see Section 2.203", "图 2.203", "version 2.203", "the loss is 2.203",
        "`2.203`", "https://example.com/2.203", "x=2.203", "a ratio of 2.203", "2.203x faster", "2.203 seconds per step",
        "[2.203]: http://x", "![w:2.203](a.png)", "<!-- 2.203 -->", "2.203.1", "v2.203", "#2.203", "$2.203 per hour",
        "> \"they claim an OOD score of 2.203\"", "the p-value is 0.999", "2026-02-03", "range 0.999–2.203",
        "Others report a cost of 59.0.", "The threshold for the score is 83.0.", "the highest OOD score is 2.427±1.025",
    ],
)  # fmt: skip
def test_the_value_of_a_result_is_no_result_where_something_else_is_said(text: str) -> None:
    assert set(bound(text).values()) <= {"?"}


def test_a_value_that_only_one_result_has_is_enough() -> None:
    assert bound("On this benchmark we reach 2.427±1.025.") == {"2.427±1.025": "ood/score/v2_u_only"}
    assert bound("The OOD score of v2_u_only, our favourite so far, is 2.427 here.") == {"2.427": "ood/score/v2_u_only"}
    assert bound("we obtained 2.427") == {"2.427": "ood/score/v2_u_only"}


def test_a_name_near_that_contradicts_forbids() -> None:
    (decision,) = decide_bindings(context("As to v2_full, the odd OOD score was 2.427."))
    assert (decision.state, decision.target) == ("untraced", None)
    assert "ood/score/v2_u_only" in decision.why


def test_the_number_of_seeds_and_of_other_things() -> None:
    assert bound("- v2_full: OOD score 0.999±0.223 (n=2)")["2"] == "ood/score/v2_full/n"
    assert "100" not in bound("- v2_full: OOD score 0.999±0.223 (n=100 episodes)")
    text = "| config | OOD score | n |\n|--|--|--|\n| v2_full | 1.117 | {} |\n".format
    heading = "**OOD score:**\n\n"
    assert bound(heading + text(2)) == {"1.117": "ood/score/v2_full", "2": "ood/score/v2_full/n"}
    assert bound(heading + text(100)) == {"1.117": "ood/score/v2_full", "100": "?"}


def test_a_seed_is_not_the_mean() -> None:
    assert bound("v2_full, seed 2: OOD score 1.392") == {"1.392": "ood/score/v2_full/value/2"}
    assert bound("The first OOD run of v2_baseline gave a score of 2.096.") == {}
    assert bound("seeds 0 and 1 of v2_full: OOD score 0.999±0.223") == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ACT has a success rate of 83.1%.", {"83.1%": "test/success_rate/act"}),
        ("ACT has a success rate of 0.831.", {"0.831": "test/success_rate/act"}),
        ("| policy | test success (%) |\n|---|---|\n| act | 83.1 |\n", {"83.1": "test/success_rate/act"}),
        ("| policy | test return |\n|---|---|\n| act | 12,345 |\n", {"12,345": "test/return/act"}),
        ("| policy | test success rate |\n|---|---|\n| act | 83.1 |\n", {"83.1": "test/success_rate/act"}),
        ("| policy | test success rate |\n|---|---|\n| act | 77.7 |\n", {"77.7": "?"}),  # percent or a mistake?
        ("| policy | drift |\n|---|---|\n| act | $-0.038$ |\n", {"-0.038": "drift/act"}),
    ],
)
def test_percent_thousands_and_signs(text: str, expected: Mapping[str, str]) -> None:
    assert bound(text, book=QuantityIndex(quantities(ROBOT))) == expected


def test_percent_is_written_times_a_hundred() -> None:
    (decision,) = decide_bindings(context("ACT has a success rate of 83.1%.", book=QuantityIndex(quantities(ROBOT))))
    assert decision.target
    assert decision.target.scale == 100


# -- layouts


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.md", "config | OOD score\n---|---\nv2_full | 7.77\n"),
        ("a.md", "|  | v2_full |\n|--|--|\n| OOD score | 7.77 |\n"),
        ("a.md", "### v2_full\n\n| split | score |\n|--|--|\n| OOD | 7.77 |\n"),
        ("a.md", "| v2_full | score |\n|--|--|\n| OOD | 7.77 |\n"),
        ("a.md", "**OOD score:**\n\n| config | mean |\n|--|--|\n| v2_full | 7.77 |\n"),
        ("a.md", "| config | split | score |\n|--|--|--|\n| v2_full | id | – |\n| | ood | 7.77 |\n"),
        ("a.md", "| config | score | |\n|--|--|--|\n| **OOD** | | |\n| v2_full | 7.77 | |\n"),
        ("a.rst", "+--------+-----------+\n| config | OOD score |\n+========+===========+\n| v2_full| 7.77      |\n+--------+--+\n"),
        ("a.org", "| config | OOD score |\n|--------+-----------|\n| v2_full | 7.77 |\n"),
        ("a.txt", "config\tOOD score\nv2_full\t7.77\n"),
        ("a.tex", "\\begin{tabular}{lr}\nConfig & OOD score \\\\ \\hline\nv2\\_full & \\textbf{7.77} \\\\\n\\end{tabular}"),
        ("a.tex", "\\begin{tabular}{l r}\n & \\multicolumn{1}{c}{OOD} \\\\\n & score \\\\ \\midrule\nv2\\_full & 7.77\n\\end{tabular}"),
        ("a.tex", "\\subsection{v2\\_full}\n\\begin{itemize}\n\\item OOD score: $7.77$\n\\end{itemize}"),
    ],
)  # fmt: skip
def test_layouts_that_name_a_place(name: str, text: str) -> None:
    assert bound(text, name) == {"7.77": "ood/score/v2_full"}


def test_a_spread_in_a_column_of_its_own_is_that_of_the_column_before() -> None:
    text = "| config | OOD score (mean) | std | OOD cost | 标准差 |\n|-|-|-|-|-|\n| v2_full | 7.77 | 8.88 | 9.99 | 6.66 |\n"
    assert bound(text) == {
        "7.77": "ood/score/v2_full", "8.88": "ood/score/v2_full/sd",
        "9.99": "ood/cost/v2_full", "6.66": "ood/cost/v2_full/sd",
    }  # fmt: skip
    assert bound(text.replace("std", "±"))["9.99"] == "ood/cost/v2_full"
    assert "8.88" not in bound(text.replace("std", "±"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.md", "The OOD score of v2_full is ~~0.999~~ 1.117.\n"), ("a.md", "The OOD score of v2_full is <del>0.999</del> 1.117.\n"),
        ("a.tex", "The OOD score of v2\\_full is \\sout{0.999} 1.117.\n"),
    ],
)  # fmt: skip
def test_what_is_struck_out_is_not_said(name: str, text: str) -> None:
    assert bound(text, name) == {"1.117": "ood/score/v2_full"}


def test_a_name_that_goes_on_is_another_one_in_a_sentence_too() -> None:
    assert bound("The OOD score of v2_full is 1.117.") == {"1.117": "ood/score/v2_full"}
    assert bound("The OOD score of v2_full-XL is 1.117.") == {}
    assert bound("The OOD score of v2_full++ is 1.117.") == {}


def test_a_byte_order_mark_is_no_part_of_a_table() -> None:
    assert bound("\ufeff" + table("OOD score")) == {"7.77": "ood/score/v2_full"}


def test_a_section_within_a_table_names_what_follows() -> None:
    rows = "\\multicolumn{3}{l}{\\textit{OOD}} \\\\\nv2\\_full & 7.77 & 88.8 \\\\\n"
    text = f"\\begin{{tabular}}{{lrr}}\nConfig & score & cost \\\\ \\midrule\n{rows}\\end{{tabular}}"
    assert bound(text, "a.tex") == {"7.77": "ood/score/v2_full", "88.8": "ood/cost/v2_full"}


def test_a_slide_has_its_own_heading() -> None:
    text = "# v2_full\n\n- OOD score: 7.77\n\n---\n\n- OOD score: 8.88\n"
    assert bound(text) == {"7.77": "ood/score/v2_full"}


@pytest.mark.parametrize("size", [200, 1500])
def test_odd_texts_are_read_in_reasonable_time(size: int) -> None:
    for odd in (
        "1.1 ",
        "1.1, ",
        "| 1.1 ",
        "1.1±",
        "- 1.1\n",
        "`1.1 ",
        "$1.1",
        "(1.1",
        "{1.1",
        "\\pm 1.1",
        "<!-- 1.1",
        "# 1.1\n",
    ):
        for name in ("a.md", "a.tex", "a.txt"):
            assert bound(odd * size, name) == {}


def test_numeric_names_of_configs_are_names() -> None:
    known: Sequence[Quantity] = [
        Quantity(f"score/{config}/mean", config, "", "score", "mean", "", value, 5, 5)
        for config, value in (("0.1", 3.21), ("0.5", 4.32))
    ]
    text = "| lr | score |\n|---|---|\n| 0.1 | 3.21 |\n| 0.5 | 9.99 |\n"
    assert bound(text, book=QuantityIndex(known)) == {"3.21": "score/0.1", "9.99": "score/0.5"}


@pytest.mark.parametrize("seed", range(120))
def test_no_binding_of_a_made_up_text_is_wrong(seed: int) -> None:
    """Among hyperparameters, limits, differences and other people's rows with the very values of results."""
    world, made = make(seed)
    decisions = decide_bindings(context(made.text, made.name, QuantityIndex(world.quantities())))
    told = {each.number.start: shown(each) for each in decisions if each.target}
    assert {at: name for at, name in told.items() if made.truth.get(at) != name} == {}


def test_made_up_texts_are_bound_for_the_most_part() -> None:
    """So that the test above does not pass because nothing is ever bound."""
    found = meant = 0
    for seed in range(60):
        world, made = make(seed)
        decisions = decide_bindings(context(made.text, made.name, QuantityIndex(world.quantities())))
        found += sum(each.target is not None for each in decisions)
        meant += len(made.truth)
    assert found > 0.85 * meant > 500
