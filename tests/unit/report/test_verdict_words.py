"""The verdict in one sentence: each has its own words, with the numbers that it rests on."""

import pytest
from report_scenes import NEAR, SCENES, Language, analysed, facts, pair, plan, spread

from muster.app.facts.report_analysis import analyse_facts
from muster.app.report.decision_report import render_decision_report
from muster.app.report.verdict_sentences import plain_verdict_sentence

CODES = {
    "recommend": ("RECOMMEND", "推荐"),
    "unsafe_baseline": ("RECOMMEND", "推荐"),
    "equivalent": ("EQUIVALENT", "等效"),
    "keep_baseline": ("KEEP_BASELINE", "保留基线"),
    "not_enough": ("NOT_ENOUGH_EVIDENCE", "证据不足"),
    "incomplete": ("INCOMPLETE", "不完整"),
    "invalid": ("INVALID", "无效"),
}
UNSAFE = ([90.0, 91.5, 92.3, 89.1, 88.0], [3.0, 3.3, 3.5, 3.6, 3.1])


@pytest.mark.parametrize("scene", CODES)
def test_each_verdict_names_itself(scene: str) -> None:
    code, chinese = CODES[scene]
    assert analysed(scene).decision.verdict == code
    assert plain_verdict_sentence(analysed(scene)).startswith(code)
    told = plain_verdict_sentence(analysed(scene, "zh"))
    assert told.startswith(chinese)
    assert f"（{code}）" in told


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_two_scenes_read_alike(language: Language) -> None:
    told = [plain_verdict_sentence(analysed(scene, language)) for scene in SCENES]
    assert len(set(told)) == len(SCENES)
    assert all("\n" not in each and "**" not in each and "{" not in each for each in told)


def test_recommended_because_it_is_supported() -> None:
    assert plain_verdict_sentence(analysed("recommend")) == (
        "RECOMMEND v2_full: on ood/score it is better than the baseline (v2_baseline) by 0.90 (95 % interval [0.58, 1.22]); "
        "the difference is significant as declared (Welch p = 0.00021, threshold 0.00833), and it keeps the limit "
        "ood/cost ≤ 25 (mean 9.5, at most 13.5)."
    )


def test_recommended_because_the_baseline_is_infeasible() -> None:
    told = plain_verdict_sentence(analysed("unsafe_baseline"))
    assert "the baseline (v2_baseline) breaks the limit ood/cost ≤ 25 (mean 83.0, at least 81.4)" in told
    assert "less than the 0.3 that you declared to matter" in told


def test_the_price_of_a_safe_config_is_told_in_the_metrics_own_direction() -> None:
    lower = pair(NEAR, [value - 0.1 for value in NEAR], UNSAFE, {"delta": 0.9})
    assert (
        "Price: its ood/score is 0.10 lower (95 % interval of the difference [-0.26, 0.06]); the loss is at most"
        in (plain_verdict_sentence(lower))
    )
    higher = pair(NEAR, [value + 0.1 for value in NEAR], UNSAFE, {"delta": 0.9, "higher": False})
    assert (
        "Price: its ood/score is 0.10 higher (95 % interval of the difference [-0.06, 0.26])"
        in plain_verdict_sentence(higher)
    )
    assert "代价：ood/score 低 0.10" in plain_verdict_sentence(pair(NEAR, [v - 0.1 for v in NEAR], UNSAFE, {"delta": 0.9}, language="zh"))  # fmt: skip


def test_a_baseline_called_baseline_is_named_once() -> None:
    values = {"ood/score": {"baseline": NEAR, "new": spread(9.0, 0.1, 5, 2)}}
    told = plain_verdict_sentence(analyse_facts(facts(values, plan=plan(baseline="baseline", limit=None, factors={}))))
    assert "better than the baseline by" in told


def test_kept_baselines_name_why_each_candidate_is_out() -> None:
    assert plain_verdict_sentence(analysed("keep_baseline")) == (
        "KEEP_BASELINE: no candidate can replace the baseline (v2_baseline): significantly worse on ood/score: v2_u_only "
        "-1.00 and v2_cert_only -1.10; over the limit ood/cost ≤ 25: v2_full mean 44.5, at least 41.9."
    )
    open_ = pair(NEAR, spread(0.1, 0.1, 5, 3), ([20.0, 30.0, 25.0, 22.0, 28.0], [3.0, 3.3, 3.5, 3.6, 3.1]))
    assert plain_verdict_sentence(open_).endswith("; that the baseline keeps the limit ood/cost ≤ 25 is not shown.")


def test_lower_is_better_is_told_as_a_gain() -> None:
    told = plain_verdict_sentence(pair(NEAR, spread(-2.0, 0.1, 5, 2), rules={"higher": False}))
    assert "better than the baseline (v2_baseline) by 3.06 (95 % interval [2.90, 3.23])" in told
    assert "limit" not in told


def test_a_broken_minimum_is_told_from_above() -> None:
    low, high = [0.3, 0.33, 0.35, 0.36, 0.31], [0.95, 0.96, 0.97, 0.94, 0.955]
    told = plain_verdict_sentence(pair(NEAR, spread(1.06, 0.1, 5, 2), (low, high), {"limit": 0.9, "at_most": False}))
    assert told.startswith(
        "RECOMMEND v2_full: the baseline (v2_baseline) breaks the limit ood/cost ≥ 0.9 (mean 0.330, at most 0.367)"
    )


def test_equivalent_names_whom() -> None:
    told = plain_verdict_sentence(analysed("equivalent"))
    assert "the 95 % interval of each difference lies inside ±0.3" in told
    assert "every feasible candidate (v2_u_only, v2_cert_only and v2_full) is equal enough to the baseline" in told


def test_not_significant_is_not_equal() -> None:
    told = plain_verdict_sentence(analysed("not_enough"))
    assert told.endswith("not significant is not equal.")
    assert "nearest: v2_full, gain +0.30, 95 % interval [-0.50, 1.10], Welch p = 0.412, threshold 0.0125" in told
    assert "不显著不等于相同" in plain_verdict_sentence(analysed("not_enough", "zh"))


def test_without_a_limit_nobody_is_called_feasible() -> None:
    assert "feasible" not in plain_verdict_sentence(pair(NEAR, spread(1.2, 0.3, 5, 2)))


def test_not_enough_has_reasons_of_its_own() -> None:
    assert "no candidate is shown to keep the limit ood/cost ≤ 25 (v2_full infeasible)" in plain_verdict_sentence(
        pair(NEAR, spread(1.2, 0.1, 5, 2), (UNSAFE[0], [80.0, 81.1, 83.3, 79.0, 82.0]))
    )
    wide = plain_verdict_sentence(pair(NEAR, spread(1.1, 1.1, 5, 3), UNSAFE))
    assert "the baseline itself breaks the limit" in wide
    worse = plain_verdict_sentence(pair(NEAR, spread(0.1, 0.1, 5, 3), UNSAFE))
    assert "every feasible candidate is significantly worse than v2_baseline (v2_full)" in worse
    assert "not significant" not in worse
    assert "no spread" in plain_verdict_sentence(pair([0.0] * 5, [1.0] * 5))
    alone = analyse_facts(facts({"ood/score": {"v2_baseline": NEAR}}, plan=plan(limit=None, factors={})))
    assert "there is nothing to compare" in plain_verdict_sentence(alone)


@pytest.mark.parametrize(
    ("n", "told"),
    [(1, "1 training seed per config"), (2, "2 training seeds"), (3, "3 training seeds"), (4, "4 training seeds")],
)
def test_too_few_seeds_recommend_nothing(n: int, told: str) -> None:
    sentence = plain_verdict_sentence(pair(NEAR[:n], spread(9.0, 0.1, n, 2)))
    assert told in sentence
    assert sentence.endswith("nothing is recommended on fewer than 5.")


def test_unequal_seeds_are_told_as_they_are() -> None:
    analysis = pair(NEAR, spread(9.0, 0.1, 4, 2), seeds=tuple("01234"))
    assert "NOT_ENOUGH_EVIDENCE: 4 to 5 training seeds per config" in plain_verdict_sentence(analysis)
    chinese = pair(NEAR, spread(9.0, 0.1, 4, 2), language="zh")
    assert "每个配置只有 4 到 5 个训练种子，少于 5 个" in plain_verdict_sentence(chinese)


@pytest.mark.parametrize(
    ("costs", "told"),
    [
        (([1.0, 2.0, 1.5, 1.2, 0.8], [1.0, 1.01]), "2 training seeds per config on ood/cost"),
        ((UNSAFE[0][:3], UNSAFE[1]), "3 to 5 training seeds per config on ood/cost"),
    ],
)
def test_a_cost_of_few_seeds_is_named(costs: tuple[list[float], list[float]], told: str) -> None:
    better = spread(9.0 if "2 training" in told else 1.36, 0.35, 5, 2)
    analysis = pair(NEAR, better, costs, {"delta": 0.5})
    assert analysis.decision.because == "too_few_seeds"
    assert (
        plain_verdict_sentence(analysis) == f"NOT_ENOUGH_EVIDENCE: {told}, and nothing is recommended on fewer than 5."
    )


def test_p_and_threshold_are_told_apart() -> None:
    """Welch's p of this pair is found to lie just above 0.025."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        p = pair(NEAR, [value + middle for value in NEAR[1:] + NEAR[:1]]).decision.comparisons[0].difference.p
        low, high = (low, middle) if p is not None and p <= 0.02500001 else (middle, high)
    analysis = pair(NEAR, [value + low for value in NEAR[1:] + NEAR[:1]])
    (each,) = analysis.decision.comparisons
    assert each.threshold == 0.025
    assert not each.rejected
    assert f"{each.difference.p:.3g}" == "0.025"
    sentence = plain_verdict_sentence(analysis)
    assert "threshold 0.025)" in sentence
    assert "p = 0.025," not in sentence
    assert "| 0.025 | 0.025 |" not in render_decision_report(analysis).body


def test_incomplete_names_the_cells_and_why_those_that_hold_others_up_first() -> None:
    told = plain_verdict_sentence(analysed("incomplete"))
    assert "9 declared cells are missing (51 of 60 that carry results are there)" in told
    assert "train/v2_u_only/2 (PENDING: left out by --only seed=3,4)" in told
    assert told.endswith("and 6 more.")


def test_invalid_says_that_this_is_not_a_result_and_which_flags() -> None:
    told = plain_verdict_sentence(analysed("invalid"))
    assert told.startswith("INVALID: this is not a result; 6 red flags of level ERROR: ")
    assert "train/v2_baseline/0: its checkpoint was saved before the end of its training" in told
    assert "id/score" not in told, "nothing is decided on it"
    assert told.count("its checkpoint was saved before the end") == 1  # six of a kind are told once
    assert told.endswith("and 5 more.")
    assert "这不是结果" in plain_verdict_sentence(analysed("invalid", "zh"))


def test_without_a_plan_none_is_drawn() -> None:
    assert plain_verdict_sentence(analysed("no_plan")).startswith(
        "No verdict: no procedure was declared before the runs"
    )
    assert plain_verdict_sentence(analysed("invalid", plan=None)).startswith("INVALID")
    assert plain_verdict_sentence(analysed("incomplete", plan=None)).startswith("INCOMPLETE")
