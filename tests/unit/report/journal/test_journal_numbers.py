"""Numbers in a person's text against the artifacts: which agree, which don't, which can't be traced."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from journal_world import REFERENCE, evaluations, gate, run

from muster.app.journal.block_bodies import blocks_of_run
from muster.app.journal.generated_blocks import fill_run_blocks, find_generated_blocks
from muster.app.journal.journal_audit import artifacts_listed_in
from muster.app.journal.journal_text import scan_journal_lines
from muster.app.journal.metric_index import MetricIndex
from muster.app.journal.number_audit import JournalFinding, audit_journal_numbers
from muster.text.catalogue import load_catalogue

BOOK = MetricIndex("dev_v41", [run("runs/v41")])


def audited(text: str, **books: MetricIndex) -> list[JournalFinding]:
    known = {41: BOOK} | {int(name[1:]): book for name, book in books.items()}
    return audit_journal_numbers(text, scan_journal_lines(text), 41, known)


def states(text: str, **books: MetricIndex) -> list[tuple[str, str]]:
    return [(each.text, each.state) for each in audited(f"## 观察记录\n{text}\n", **books)]


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("iter56 达到 `first_death_p10=108.9`", "agrees"),
        ("迭代 56 的 main 段 `first_death_p10=108.9`", "agrees"),
        ("at iteration 56 first_death_p10 = 109", "agrees"),
        ("iter56: `first_death_p10=108.7`", "disagrees"),
        ("iter48 的 `first_death_p10=108.9`", "disagrees"),
        ("iter56 的 `avg_final≈0.77`", "agrees"),
        ("iter56 的 `early_death₁₀₀=0.094`", "agrees"),
        ("iter56 的 `p10=108.9`", "agrees"),
        ("iter32/40 的 `first_death_p10=89.0`", "agrees"),
        ("iter9 的 `first_death_p10=89.0`", "untraced"),
        ("`first_death_p10=101.0`", "agrees"),
        ("`first_death_p10=77.7`", "untraced"),
        ("iter51-60 的均值 `survival=0.849`", "agrees"),
        ("iter51-60 的均值 `survival=0.812`", "disagrees"),
        ("iter51-60 最低 `survival=0.837`", "agrees"),
        ("`success_p10=70`", "agrees"),
        ("`success_p10=71`", "disagrees"),
        ("`failure_tolerance=3`", "agrees"),
        ("`tail_ne_reinjections=2`", "agrees"),
        ("`tail_ne_reinjections=3`", "disagrees"),
        ("warning（ratio=0.70，duration=4）", "agrees"),
        ("`made_up=3`", "untraced"),
        ("step_one_ratio 在 iter48 是 0.0219", "agrees"),
        ("step_one_ratio 在 iter48 是 0.0319", "disagrees"),
        ("最近 10 iter 平均存活率 **0.849**", "agrees"),
        ("占比 57.6%", "agrees"),
        ("事件分布 163:120", "agrees"),
        ("一个数 0.4242", "untraced"),
        ("dev_v39 iter56 的 `first_death_p10=82.5`", "untraced"),
    ],
)
def test_numbers(text: str, state: str) -> None:
    found = states(text)
    assert found
    assert {each for _, each in found} == {state}


@pytest.mark.parametrize(
    "text",
    [
        "`p10<90` 的 failure_hold",
        "20/40 探针",
        "2025-11-12 开始",
        "iter32/40",
        "95~109",
        "`a.json`",
        "[link](runs/0.123/x)",
        "3 个",
    ],
)
def test_what_is_no_number_of_a_run(text: str) -> None:
    assert states(text) == []


def test_a_number_that_disagrees_says_what_it_should_be() -> None:
    (found,) = audited("## Findings\nAt iter 56 first_death_p10=107.9 was reached.\n")
    assert (found.should, found.because) == ("108.9", "first_death_p10 at iter 56 (runs/v41/eval_history.jsonl)")


def test_tables_are_read_cell_by_cell() -> None:
    text = "## Record\n\n| iter | stage | avg_final | p10 | other |\n|---|---|---|---|---|\n| 8 | ne | 0.716 | **83.0** | 1 |\n| 16 | ne | 0.555 | 101 | 2 |\n| 99 | ne | 0.5 | 1 | 2 |\n"
    assert [(each.text, each.state) for each in audited(text)] == [
        ("0.716", "agrees"), ("83.0", "agrees"), ("0.555", "disagrees"), ("101", "agrees"),
        ("0.5", "untraced"), ("1", "untraced"),
    ]  # fmt: skip


def test_observations_are_of_the_last_version() -> None:
    last = MetricIndex("dev_v40", [run("runs/v40", evaluations=evaluations([(8, "ne", 0.1, 0.2, 0.3, 50.0, 0.5)]))])
    text = "## 观察（承接 dev_v40）\n1. iter8 的 `first_death_p10=50.0`\n\n## 观察记录\n- iter8 的 `first_death_p10=83.0`，而 dev_v40 iter8 的 `first_death_p10=50.0`\n"
    assert [each.state for each in audited(text, v40=last)] == ["agrees"] * 3
    assert [each.state for each in audited(text)] == ["untraced", "agrees", "untraced"]


def test_plans_and_generated_blocks_are_not_audited() -> None:
    told = blocks_of_run(run("runs/v41"), None, "", load_catalogue("journal", "zh"))
    text = fill_run_blocks(
        "## 启动\n- 0.777\n\n## 实验计划\n1. `first_death_p10=999`\n\n## 实验记录\n",
        [told],
        load_catalogue("journal", "zh"),
    ).text
    assert audited(text) == []


def test_the_reference_against_a_run_like_its_own() -> None:
    """Its text was checked by hand: what it says of its own run agrees, what it says of others can't be traced."""
    text = REFERENCE
    own = MetricIndex("dev_v40", [run("runs/v40", gates=[gate()])])
    found = audit_journal_numbers(text, scan_journal_lines(text), 40, {40: own})
    by = {state: [each for each in found if each.state == state] for state in ("agrees", "disagrees", "untraced")}
    assert len(by["agrees"]) >= 45  # 35 of them in its table
    assert [each.text for each in by["disagrees"]] == []
    assert {"82.5", "74.8%", "75%"} <= {each.text for each in by["untraced"]}
    assert all("dev_v39" in each.because for each in by["untraced"] if each.text in ("82.5", "74.8%", "75%", "25%"))
    wrong = text.replace("`first_death_p10=108.9`", "`first_death_p10=118.9`").replace("| 0.668 |", "| 0.686 |")
    found = audit_journal_numbers(wrong, scan_journal_lines(wrong), 40, {40: own})
    assert [(each.text, each.should) for each in found if each.state == "disagrees"] == [
        ("first_death_p10=118.9", "108.9"), ("0.686", "0.668"),
    ]  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "iter56 ",
                "`first_death_p10=",
                "108.9",
                "`",
                "，",
                "dev_v40 ",
                "p10",
                "≈",
                "%",
                "\n",
                "- ",
                "。",
                "|",
                "0.1 ",
                "(",
                "第8轮",
            ]
        ),
        max_size=30,
    )
)
def test_any_text_is_audited(parts: list[str]) -> None:
    text = "## 观察记录\n" + "".join(parts).replace("```", "")
    for each in audited(text):
        assert each.state in ("agrees", "disagrees", "untraced")


def test_artifacts_are_read_back_from_the_list() -> None:
    told = blocks_of_run(run("runs/v41"), None, "", load_catalogue("journal", "zh"))
    for language in ("zh", "en"):
        told = blocks_of_run(run("runs/v41"), None, "", load_catalogue("journal", language))
        text = fill_run_blocks("", [told], load_catalogue("journal", language)).text
        found = list(artifacts_listed_in(find_generated_blocks(text, scan_journal_lines(text))))
        assert [(each.path, each.sha256) for each in found] == [
            ("runs/v41/eval_history.jsonl", "ab" * 8), ("runs/v41/checkpoints/", "cd" * 8),
        ]  # fmt: skip
        assert (
            list(
                artifacts_listed_in(
                    find_generated_blocks(
                        text.replace("812 B", "813 B"), scan_journal_lines(text.replace("812 B", "813 B"))
                    )
                )
            )
            == []
        )
