"""The decision report: verdict first, every claim with its evidence, and no more said than the numbers allow."""

import re
from dataclasses import replace
from typing import Any

import pytest
from report_scenes import (
    CONFIGS,
    NEAR,
    PROXY,
    SCENES,
    SCORE,
    Language,
    analysed,
    facts,
    incomplete,
    invalid,
    pair,
    plan,
    recommend,
    spread,
)

from muster.app.campaign.stamp import ReportText
from muster.app.facts.report_analysis import ReportAnalysis, analyse_facts
from muster.app.facts.report_facts import AcceptedCell, MissingCell, MissingCurve
from muster.app.report.decision_report import render_decision_report
from muster.app.report.verdict_sentences import plain_verdict_sentence
from muster.model.provenance import HistoryGap, KeptRows, NoCurveReason, Resumption
from muster.stats.red_flags import DeclaredMetrics
from muster.stats.seed_planning import SeedPrice

UNSAFE = ([90.0, 91.5, 92.3, 89.1, 88.0], [3.0, 3.3, 3.5, 3.6, 3.1])


def report(scene: str, language: Language = "en", **changed: Any) -> ReportText:
    return render_decision_report(analysed(scene, language, **changed))


def section(text: ReportText | str, heading: str) -> str:
    body = text if isinstance(text, str) else text.body
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", body, re.DOTALL | re.MULTILINE)
    assert found, heading
    return found[1].strip()


# -- the whole


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("scene", SCENES)
def test_the_verdict_comes_first_in_bold(scene: str, language: Language) -> None:
    analysis = analysed(scene, language)
    lines = render_decision_report(analysis).body.splitlines()
    assert lines[0].startswith("# ")
    mark = "PARTIAL 51/60 · " if scene == "incomplete" else ""
    assert lines[4].startswith(f"**{mark}{plain_verdict_sentence(analysis)}** [E1]")
    assert (PROXY in lines[4]) == (scene not in ("incomplete", "invalid", "no_plan"))


def test_the_first_paragraph_has_price_rivals_and_proxy() -> None:
    first = report("unsafe_baseline").body.splitlines()[4]
    assert "the baseline (v2_baseline) breaks the limit ood/cost ≤ 25 (mean 83.0, at least 81.4)" in first
    assert "v2_u_only keeps it (mean 16.5, at most 19.5), with 95 % confidence. It costs nothing on ood/score" in first
    assert "v2_full would do as well: v2_u_only has the best mean on ood/score, but they were not compared" in first
    assert f"Mind that ood is a proxy: {PROXY}. [E3]" in first
    chinese = report("unsafe_baseline", "zh").body.splitlines()[4]
    assert "v2_full 同样可选" in chinese
    assert "请注意，ood 是代理划分" in chinese
    assert "proxy" not in report("unsafe_baseline", proxies={}).body.splitlines()[4]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("scene", SCENES)
def test_every_mark_is_a_claim_and_every_claim_has_its_mark_and_its_row(scene: str, language: Language) -> None:
    analysis = analysed(scene, language)
    text = render_decision_report(analysis)
    body, _, evidence = text.body.rpartition("\n## ")
    assert [claim.id for claim in text.claims] == [f"E{number}" for number in range(1, len(text.claims) + 1)]
    assert set(re.findall(r"\[(E\d+)\]", body)) == {claim.id for claim in text.claims}
    known = {each.cell for each in analysis.facts.measured} | {each.cell for each in analysis.facts.missing}
    known |= {each.cell for each in analysis.facts.made}
    for claim in text.claims:
        assert claim.cells
        assert set(claim.cells) <= known
        assert f"--claim {claim.id}`" in evidence
        assert f"| {claim.id} |" in evidence
        assert f"| {len(claim.cells)} |" in evidence


def test_the_evidence_names_the_file_that_the_claim_is_in() -> None:
    assert "`muster trace reports/decision.md --claim E3`" in report("recommend").body
    assert "`muster trace reports/decision.PARTIAL-51of60.md --claim E3`" in report("incomplete").body
    assert (
        "`muster trace elsewhere.md --claim E3`"
        in render_decision_report(analysed("recommend"), path="elsewhere.md").body
    )


def test_a_comparison_rests_on_its_two_configs_alone() -> None:
    claims = report("recommend").claims
    (found,) = [claim for claim in claims if claim.text.startswith("v2_full against v2_baseline")]
    assert found.columns == ("ood/score",)
    assert set(found.cells) == {
        f"eval/{config}/{seed}/ood" for config in ("v2_full", "v2_baseline") for seed in range(5)
    }


def test_partial_is_stamped_in_title_captions_and_beside_the_verdict() -> None:
    for language in ("en", "zh"):
        body = render_decision_report(analysed("incomplete", language), [("figures/a.png", "A caption")]).body  # type: ignore[arg-type]
        assert "PARTIAL 51/60" in body.splitlines()[0]
        assert body.splitlines()[4].startswith("**PARTIAL 51/60 · ")
        captions = [
            line for line in body.splitlines()[6:] if line.startswith("**") and "？" not in line and "?" not in line
        ]
        assert len(captions) >= 6
        assert all(line.startswith("**PARTIAL 51/60") for line in captions)
        assert re.search(r"!\[a.png\]\(figures/a.png\)\n\nPARTIAL 51/60[.。]\s?A caption", body)
    assert "PARTIAL" not in report("recommend").body


def test_a_figure_that_has_the_mark_gets_no_second_one() -> None:
    body = render_decision_report(analysed("incomplete"), [("a b.png", "PARTIAL 51/60. Curves")]).body
    assert "![a b.png](a%20b.png)\n\nPARTIAL 51/60. Curves" in body


def test_odd_names_break_no_table_and_no_emphasis() -> None:
    values = {"ood/score": {"a|b": NEAR, "*c*": spread(3.0, 0.1, 5, 2)}}
    body = render_decision_report(analyse_facts(facts(values, plan=plan(baseline="a|b", limit=None, factors={})))).body
    assert r"RECOMMEND \*c\*: on ood/score it is better than the baseline (a\|b) by" in body
    for table in re.findall(r"(?:^\|.*\n)+", body, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1


# -- what it rests on


@pytest.mark.parametrize(
    ("n", "english", "chinese"),
    [
        (1, "1 training seed per config: a single run", "单次运行"),
        (2, "2 training seeds per config: a smoke test", "冒烟测试"),
        (3, "3 training seeds per config: preliminary, no ranking", "初步结果，不作排名"),
        (4, "4 training seeds per config: preliminary, no ranking", "初步结果，不作排名"),
        (
            5,
            "5 training seeds per config; not significant is not equal",
            "不显著不等于相同",
        ),
        (
            10,
            "10 training seeds per config; not significant is not equal",
            "不显著不等于相同",
        ),
    ],
)
def test_what_so_many_seeds_are_good_for(n: int, english: str, chinese: str) -> None:
    analysis = pair(spread(1.0, 0.2, n, 1), spread(1.1, 0.2, n, 2))
    assert english in section(render_decision_report(analysis), "What it rests on")
    assert chinese in section(
        render_decision_report(replace(analysis, facts=replace(analysis.facts, language="zh"))), "结论依据"
    )


def test_one_power_is_told_and_it_is_that_of_the_declared_procedure() -> None:
    told = section(report("recommend"), "What it rests on")
    assert "With 5 seeds per config a true difference of 0.74 on ood/score (2.8 sd) is found with 80 % power" in told
    assert "(sd 0.22 over all configs; 0.26 assumed, to be on the safe side)" in told
    assert told.count("visible") == 0
    assert "only differences of 2 sd or more are visible" in section(report("no_plan"), "What it rests on")


def test_unequal_seeds_are_judged_by_the_fewest() -> None:
    told = section(report("incomplete"), "What it rests on")
    assert "4 to 5 seeds on ood/score" in told
    assert "4 to 5 training seeds per config: preliminary" in told


def test_adopted_and_retried_cells_are_told() -> None:
    whole = recommend()
    cells = tuple(
        replace(each, adopted=index < 17, attempt=1 + (index == 20)) for index, each in enumerate(whole.measured)
    )
    told = section(render_decision_report(analyse_facts(replace(whole, measured=cells))), "What it rests on")
    assert "17 cells were adopted" in told
    assert "1 cell needed more than one attempt." in told
    assert "adopted" not in section(report("recommend"), "What it rests on")


def test_the_question_of_the_reference_is_answered() -> None:
    """Whether the evidence is enough to decide on."""
    answers = {scene: re.search(r"\*\*Enough to decide on\?\*\* (\w+)", report(scene).body) for scene in SCENES}
    assert {scene for scene, found in answers.items() if found and found[1] == "Yes"} == {
        "recommend",
        "unsafe_baseline",
        "equivalent",
        "keep_baseline",
    }
    assert {found[1] for found in answers.values() if found} == {"Yes", "No"}
    few = render_decision_report(pair(spread(1.0, 0.01, 3, 1), spread(1.0, 0.012, 3, 2)))
    assert "**Enough to decide on?** No" in few.body


@pytest.mark.parametrize("n", [6, 11])
def test_an_undeclared_look_is_never_enough(n: int) -> None:
    found = pair(spread(1.0, 0.1, n, 1), spread(9.0, 0.1, n, 3))
    assert found.decision.verdict == "RECOMMEND"
    told = render_decision_report(found).body
    assert "**Enough to decide on?** No, not as declared: this is no declared look" in told
    assert plain_verdict_sentence(found).endswith("So many seeds are no declared look: alpha does not cover it.")
    declared = pair(spread(1.0, 0.1, n, 1), spread(9.0, 0.1, n, 3), rules={"looks": (5, n)})
    assert "**Enough to decide on?** Yes" in render_decision_report(declared).body


def test_warnings_stand_beside_a_verdict() -> None:
    declared = replace(recommend().declared, changed_at=3)
    assert "1 red flag of level WARN has to be read beside it." in report("recommend", declared=declared).body


# -- matrix


def test_the_matrix_shows_what_is_there_and_names_what_is_not() -> None:
    told = section(report("incomplete"), "Matrix")
    assert "| v2_baseline | ✅ done | ✅ done | ✅ done | ✅ done | ✅ done | 15/15 |" in told
    assert "| v2_full | ✅ done | ✅ done | ❌ missing | ✅ done | ✅ done | 12/15 |" in told
    assert "| train/v2_full/2 | PENDING | left out by --only seed=3,4 |" in told
    assert told.count("| BLOCKED |") == 6
    assert "❌ 缺失" in section(report("incomplete", "zh"), "实验矩阵")


def test_a_cell_that_lacks_one_split_says_which() -> None:
    whole = incomplete()
    gone = tuple(each for each in whole.measured if each.cell != "eval/v2_baseline/0/ood")
    told = section(render_decision_report(analyse_facts(replace(whole, measured=gone))), "Matrix")
    assert "| v2_baseline | ❌ missing: ood | ✅ done |" in told


def test_what_is_excluded_is_told_apart_from_what_is_missing() -> None:
    whole = recommend()
    kept = tuple(each for each in whole.measured if (each.config, each.seed) != ("v2_full", "4"))
    out = tuple(("v2_full", "4", head) for head in ("id", "ood", "train"))
    told = section(render_decision_report(analyse_facts(replace(whole, measured=kept, excluded=out))), "Matrix")
    assert "| – excluded | 12/12 |" in told
    assert "taken out of the matrix by exclude:" in told


# -- comparison and safety


def test_the_comparison_has_all_that_was_declared() -> None:
    told = section(report("recommend"), "Comparison with the baseline")
    assert (
        "| v2_full | 5/5 | +0.90 [0.58, 1.22] | 0.00021 | 0.00833 | 0.00794, agrees | +3.71 | 1.000 | significantly better |"
        in told
    )
    assert "Holm over 3 candidates; alpha = 0.05, divided by 2 looks" in told
    assert "smallest possible p is 0.00794, and the strictest threshold is 0.00833: here it can veto" in told


def test_the_exact_test_informs_where_it_can_t_reach_the_threshold() -> None:
    scores = {
        name: spread(mean, 0.1, 5, turn)
        for turn, (name, mean) in enumerate([("v2_baseline", 1.0), ("a", 2.0), ("b", 1.1), ("c", 1.2), ("d", 1.3)])
    }
    analysis = analyse_facts(facts({"ood/score": scores}, plan=plan(limit=None, factors={})))
    told = section(render_decision_report(analysis), "Comparison with the baseline")
    assert "0.00794, informs only" in told
    assert "the strictest threshold is 0.00625: here it informs and does not veto" in told
    assert analysis.decision.config == "a"


def test_a_veto_of_the_exact_test_is_told() -> None:
    """Welch is impressed by a small spread of one outlier-free group; the ranks are not."""
    analysis = pair([0.0, 0.01, 0.02, 0.03, 1.2], [1.0, 1.01, 1.02, 1.03, 1.04], rules={"looks": (5,), "alpha": 0.2})
    (each,) = analysis.decision.comparisons
    vetoed = replace(each, rejected=True, exact_agrees=False, supported=False)
    told = render_decision_report(replace(analysis, decision=replace(analysis.decision, comparisons=(vetoed,))))
    assert "vetoes" in section(told, "Comparison with the baseline")
    assert "not significant: the exact test disagrees" in told.body


@pytest.mark.parametrize("scene", ["invalid", "incomplete"])
def test_nothing_is_read_from_what_is_no_result_or_not_all_of_it(scene: str) -> None:
    body = report(scene).body
    assert "significantly better" not in body
    assert "| not judged |" in body
    assert "dominates v2" not in body
    assert ("to be looked into, not to be cited" in body) == (scene == "invalid")


def test_fewer_than_five_seeds_support_nothing() -> None:
    body = render_decision_report(
        pair(NEAR[:4], spread(9.0, 0.1, 4, 2), ([3.0, 3.1, 2.9, 3.2], [1.0, 1.1, 0.9, 1.2]))
    ).body
    assert "significantly better" not in body
    assert "not judged: fewer than 5 seeds" in body
    assert "is not judged on fewer than 5 seeds" in section(body, "Safety")


def test_improvement_counts_in_the_declared_direction() -> None:
    low = section(
        render_decision_report(pair(NEAR, spread(-2.0, 0.1, 5, 2), rules={"higher": False})),
        "Comparison with the baseline",
    )
    assert "| 1.000 | significantly better |" in low
    assert "| -3.06 [-3.23, -2.90] |" in re.sub(r"5/5 \| ", "| ", low)
    high = section(render_decision_report(pair(NEAR, spread(-2.0, 0.1, 5, 2))), "Comparison with the baseline")
    assert "| 0.000 | significantly worse |" in high


def test_other_columns_are_estimates_without_stars() -> None:
    told = section(report("recommend"), "Comparison with the baseline")
    assert "estimates only" in told
    assert "| v2_full | 5/5 | +0.90 [0.60, 1.20] | -14.5 [-16.5, -12.5] |" in told
    assert "*" not in re.sub(r"\*\*", "", told)


def test_safety_has_bounds_counts_and_the_worst_seed() -> None:
    told = section(report("recommend"), "Safety")
    assert "| v2_full | 5/5 | feasible | 9.5 | 6.9 | 13.5 | 5/5 | ≥ 0.549 | 11.6 (seed 2) |" in told
    assert "| v2_baseline ? | 5/5 | undetermined | 24.0 | 22.4 | 25.8 | 4/5 | ≥ 0.343 | 25.7 (seed 3) |" in told
    assert "together sure at 95 % over 3 candidates and 2 looks (each bound of a candidate at 99.17 %)" in told
    assert "each bound is the wider of Student's t and the log-normal one" in told
    assert "Costs are skewed" in told
    assert "After five of five, failures of up to 45 % of seeds are still not excluded" in told
    (claim,) = [claim for claim in report("recommend").claims if claim.text.startswith("v2_full is feasible")]
    assert "5 of 5 seeds keep it, so that with 95 % confidence at least 55 % of all seeds do" in claim.text
    assert "failures of up to 45 % of seeds are not excluded" in claim.text


def test_costs_of_zero_want_a_cap() -> None:
    better, zeros = spread(2.0, 0.1, 5, 2), ([2.0, 3.0, 2.5, 2.2, 1.8], [0.0, 1.0, 0.5, 0.2, 0.1])
    open_ = render_decision_report(pair(NEAR, better, zeros, {"limit": 1.9}))
    assert "| v2_full ? | 5/5 | undetermined | 0.36 | -0.14 | — | 5/5 |" in section(open_, "Safety")
    assert "v2_full: costs of 0, or seeds that are all alike, say nothing about rare bad ones." in open_.body
    assert "feasible can only be shown by a declared cap" in section(open_, "What would change the verdict")
    capped = pair(NEAR, better, zeros, {"limit": 1.9, "cap": 2.5})
    assert capped.decision.verdict == "RECOMMEND"
    assert "only the declared cap of 2.5 bounds what was not seen" in section(render_decision_report(capped), "Safety")
    beyond = render_decision_report(pair(NEAR, better, zeros, {"limit": 0.5, "cap": 0.9})).body
    assert "a value lies beyond the declared cap of 0.9" in beyond


def test_no_limit_says_nothing_about_safety() -> None:
    assert (
        section(render_decision_report(pair(NEAR, spread(2.0, 0.1, 5, 2))), "Safety")
        == "No limit is declared, so nothing is said about safety."
    )


def test_a_minimum_has_its_worst_seed_at_the_bottom() -> None:
    analysis = pair(
        NEAR,
        spread(2.0, 0.1, 5, 2),
        ([0.95, 0.96, 0.97, 0.94, 0.955], [0.3, 0.33, 0.35, 0.36, 0.31]),
        {"limit": 0.9, "at_most": False},
    )
    told = section(render_decision_report(analysis), "Safety")
    assert "| v2_full † | 5/5 | infeasible | 0.330 | 0.298 | 0.367 | 0/5 | — | 0.300 (seed 0) |" in told
    assert "rare small ones" in told


def test_dominates_only_if_both_differences_are_supported() -> None:
    assert "v2_full dominates v2_baseline" in section(report("recommend"), "Safety")
    cheaper = section(report("unsafe_baseline"), "Safety")
    assert "dominates v2_baseline" not in cheaper
    assert (
        "v2_u_only does not dominate v2_baseline: it is better on ood/cost, but no improvement on ood/score" in cheaper
    )
    better = pair(NEAR, spread(3.0, 0.1, 5, 2), ([5.0, 6.0, 5.5, 6.5, 4.5], [5.1, 6.1, 5.2, 6.4, 4.7]))
    assert (
        "v2_full does not dominate v2_baseline: it is better on ood/score, but no improvement on ood/cost"
        in render_decision_report(better).body
    )


# -- flags


def test_flags_are_told_errors_first_with_what_they_mean_and_their_cells() -> None:
    told = section(report("invalid"), "Red flags")
    assert told.index("**ERROR** `early_checkpoint`") < told.index("**WARN** `same_values`")
    assert "). Nothing is decided on it, so it does not void the verdict. [E" in told
    assert "Most likely the same weights or the same file were evaluated under several names." in told
    assert told.count("its checkpoint was saved before the end of its training") == 6
    assert section(report("recommend"), "Red flags") == "None was raised."


def test_a_flag_about_configs_rests_on_their_cells_in_that_split() -> None:
    (claim,) = [
        claim
        for claim in report("invalid").claims
        if "the same value for every seed" in claim.text and "INVALID" not in claim.text
    ]
    assert claim.cells == tuple(f"eval/{config}/{seed}/id" for config in CONFIGS[:3] for seed in range(2))


def test_cells_that_a_flag_does_not_name_are_named_beside_it() -> None:
    made = tuple(
        replace(each, steps=60000.0 if index == 3 else 120000.0) for index, each in enumerate(recommend().made)
    )
    told = section(report("recommend", made=made), "Red flags")
    assert "step budgets differ between cells: 19 x 120000.0, 1 x 60000.0. Cells: train/v2_baseline/3." in told


def test_invalid_beats_incomplete_and_both_are_told() -> None:
    both = replace(invalid(), missing=incomplete().missing, n=33)
    body = render_decision_report(analyse_facts(both)).body
    assert body.splitlines()[4].startswith("**PARTIAL 24/33 · INVALID")
    assert "| train/v2_full/2 | PENDING |" in body


# -- what would change it


def test_what_would_change_a_recommendation() -> None:
    told = section(report("recommend"), "What would change the verdict")
    assert "With any one seed left out it still holds: at worst p = 0.00171 (without seed 2 of v2_full)." in told
    assert "the bound of its mean ood/cost is 13.5, the limit 25" in told
    assert "it still holds: at worst 18.9 (without seed 0 of v2_full)." in told


def test_a_verdict_that_hangs_on_one_seed_says_so() -> None:
    steady = pair([1.0, 1.1, 0.9, 1.05, 0.95], [1.9, 2.0, 1.95, 2.05, 1.85])
    frail = pair([1.0, 1.4, 0.8, 1.2, 0.7], [1.6, 1.75, 1.5, 1.85, 1.42])
    assert [each.decision.verdict for each in (steady, frail)] == ["RECOMMEND", "RECOMMEND"]
    assert "With any one seed left out it still holds" in render_decision_report(steady).body
    assert "It hangs on single seeds: without one of" in render_decision_report(frail).body


def test_leaving_out_is_about_what_the_verdict_rests_on() -> None:
    """Not about comparisons: the baseline is replaced by bounds of costs and of a loss."""
    told = section(report("unsafe_baseline"), "What would change the verdict")
    assert "Welch" not in told
    assert told.count("left out") + told.count("Without seed") + told.count("single seeds") == 3


def test_what_would_change_the_others() -> None:
    replaced = section(report("unsafe_baseline"), "What would change the verdict")
    assert "v2_baseline: the bound of its mean ood/cost is 81.4, the limit 25" in replaced
    assert "It would no longer be recommended if that came to 0.3 or more" in replaced
    assert "With a delta of 0.165 or less, it would not be EQUIVALENT" in section(
        report("equivalent"), "What would change the verdict"
    )
    open_ = section(report("not_enough"), "What would change the verdict")
    assert "RECOMMEND v2_u_only takes a gain with a Welch p of 0.025 or less" in open_
    assert "v2_cert_only is undetermined on ood/cost ≤ 25: the bounds of its mean are 21.5 and 27.0" in open_
    assert "EQUIVALENT takes 95 % intervals inside ±0.3" in open_
    assert "missing cells" in section(report("incomplete"), "What would change the verdict")
    assert "ERROR flags" in section(report("invalid"), "What would change the verdict")
    assert "declared before further seeds run" in section(report("no_plan"), "What would change the verdict")
    worse = section(render_decision_report(pair(NEAR, spread(0.1, 0.1, 5, 3), UNSAFE)), "What would change the verdict")
    assert "v2_full is significantly worse than v2_baseline on ood/score: -0.96, 95 % interval" in worse
    kept = section(report("keep_baseline"), "What would change the verdict")
    assert "v2_u_only: Welch p < 0.0001, threshold 0.0125. With any one seed left out it still holds" in kept
    assert "v2_full: the bound of its mean ood/cost is 41.9, the limit 25." in kept


def test_without_a_delta_equivalence_is_out_of_reach() -> None:
    told = render_decision_report(pair(NEAR, spread(1.1, 0.1, 5, 4), rules={"delta": None})).body
    assert "EQUIVALENT can't be reached: no delta is declared." in told
    unsafe = render_decision_report(pair(NEAR, spread(1.1, 0.1, 5, 4), UNSAFE, {"delta": None})).body
    assert "nor can an infeasible baseline be replaced" in unsafe


# -- the next step


def next_step(analysis: ReportAnalysis) -> str:
    return section(render_decision_report(analysis), "Cheapest next step")


def test_more_seeds_with_their_price() -> None:
    told = next_step(pair(NEAR, spread(1.25, 0.15, 5, 3), budget_left=1000.0))
    assert (
        "10 more training seeds (v2_baseline and v2_full), to have 10 each: so many show a difference of delta = 0.3 with 80 % power"
        in told
    )
    assert "about 17.0 h of training and evaluation, 33.70 CNY" in told
    assert "1000.00 CNY of the budget is left." in told
    assert "no declared look" not in told  # 10 is one


def test_seeds_that_are_no_declared_look_are_told() -> None:
    def rests(n: int, m: int, language: Language = "en") -> str:
        analysis = pair(spread(1.0, 0.1, n, 1), spread(1.2, 0.1, m, 3), language=language)
        return section(render_decision_report(analysis), "What it rests on" if language == "en" else "结论依据")

    assert (
        "6 training seeds per config: this is no declared look (looks at 5 and 10 seeds). alpha = 0.05 is spent by the "
        "declared looks and does not cover another." in rests(6, 6)
    )
    assert "5 to 6 training seeds per config: this is no declared look" in rests(5, 6)
    assert "每个配置 6 个训练种子：这不是声明过的分析时点（looks：5 和 10 个种子）" in rests(6, 6, "zh")
    assert "no declared look" not in rests(5, 5)
    assert "no declared look" not in rests(10, 5)


@pytest.mark.parametrize("left", [-17.53, 0.0])
def test_an_overspent_budget_has_nothing_left(left: float) -> None:
    told = next_step(pair(NEAR, spread(1.25, 0.5, 5, 3), budget_left=left))
    assert told.startswith("- Not resolvable; the detectable difference is ")
    assert "; nothing is left of the budget." in told
    assert "-" not in told.removeprefix("-")
    chinese = render_decision_report(pair(NEAR, spread(1.25, 0.5, 5, 3), budget_left=left, language="zh"))
    assert "；预算已用完。" in section(chinese, "最省钱的下一步")


def test_a_cost_of_few_seeds_is_what_more_seeds_are_for() -> None:
    costs = ([1.0, 2.0, 1.5, 1.2, 0.8], [1.0, 1.01])
    analysis = pair(NEAR, spread(9.0, 0.1, 5, 2), costs)
    assert "- 3 more training seeds (v2_full), to have 5 each" in next_step(analysis)
    told = section(render_decision_report(analysis), "What would change the verdict")
    assert "RECOMMEND takes at least 5 seeds of the baseline and of v2_full. The fewest now: 2." in told


def test_a_number_of_seeds_that_is_no_look_has_to_be_declared_first() -> None:
    told = next_step(pair(NEAR, spread(1.3, 0.3, 5, 3), price=SeedPrice(1.7), budget_left=None))
    assert "27 seeds are no declared look (5 and 10): declare the look before they run." in told
    assert "74.8 h of training and evaluation." in told
    assert "CNY" not in told


def test_over_the_budget_it_is_not_resolvable() -> None:
    told = next_step(analysed("not_enough"))
    assert told.startswith(
        "- Not resolvable; the detectable difference is 0.92 with the money left, and 1.85 with the seeds there are."
    )
    assert "1509.76 CNY; 128.80 CNY is left" in told
    broke = next_step(pair(NEAR, spread(1.25, 0.5, 5, 3), budget_left=0.0))
    assert broke.startswith("- Not resolvable; the detectable difference is 1.30, with the seeds there are.")


def test_not_even_a_thousand_seeds() -> None:
    told = next_step(pair(NEAR, spread(1.25, 5.0, 5, 3), rules={"delta": 0.001}))
    assert "Not resolvable; the detectable difference is" in told
    assert "not even a thousand seeds each would show delta = 0.001" in told


def test_without_a_delta_no_number_of_seeds_is_given() -> None:
    told = next_step(pair(NEAR, spread(1.1, 0.1, 5, 4), rules={"delta": None}))
    assert told.startswith("- No delta is declared, so no number of seeds is given.")
    assert re.search(r"the detectable difference on ood/score is 0\.\d\d\.", told)
    assert "more training seeds" not in told


def test_first_the_seeds_that_any_recommendation_takes() -> None:
    told = next_step(pair(NEAR[:3], spread(9.0, 0.1, 3, 2)))
    assert told.startswith(
        "- 4 more training seeds (v2_baseline and v2_full), to have 5 each; about 6.8 h of training and evaluation, 13.48 CNY."
    )


def test_no_seeds_where_they_change_nothing() -> None:
    assert next_step(analysed("recommend")) == "- No further seed is needed for this verdict."
    assert next_step(analysed("keep_baseline")) == "- No further seed is needed for this verdict."
    assert "not expected to change the verdict" in next_step(pair(NEAR, spread(0.1, 0.1, 5, 3), UNSAFE))
    assert "no spread to plan with" in next_step(pair([0.0] * 5, [1.0] * 5))
    assert next_step(analysed("invalid")).startswith("- Not more seeds: find the causes of the ERROR flags")
    assert next_step(analysed("no_plan")) == "- Declare decision: in campaign.yaml before any further seed runs."


def test_enough_seeds_for_delta_and_still_no_verdict() -> None:
    costs = ([20.0, 21.5, 22.3, 19.1, 18.0], [5.0, 33.3, 3.5, 43.6, 13.1])
    told = next_step(pair(spread(1.0, 0.02, 5, 1), spread(1.1, 0.02, 5, 3), costs))
    assert told.startswith(
        "- No more seeds for ood/score: those there are show a difference of delta = 0.3 with 80 % power."
    )


def test_missing_cells_are_the_next_step_and_have_a_price() -> None:
    told = next_step(analysed("incomplete"))
    assert told.startswith(
        "- Run the missing cells and nothing else (muster up): 3 combinations of config and seed; at most about 5.1 h"
    )
    assert "10.11 CNY" in told


# -- declared


def test_what_people_declared_is_told_word_for_word() -> None:
    rules = plan(checkpoint="best by score", notes=("Seeds 0 to 4 were chosen before.",))
    told = section(
        report("recommend", plan=rules, notes={"v2_full": "u and cert"}), "Declared: procedure, proxies, limits"
    )
    assert f"- Split ood is a proxy: {PROXY}" in told
    assert "- Config v2_full: u and cert" in told
    assert "- Seeds 0 to 4 were chosen before." in told
    assert "the best one of each training, by score" in told
    assert "alpha = 0.05 for all looks together, looks at 5 and 10 seeds, power 0.8" in told
    assert "(delta): 0.3" in told
    assert PROXY in section(report("recommend", "zh"), "声明：判定程序、代理与限制")


def test_what_is_missing_of_the_logs_is_told() -> None:
    """Also in Chinese, and only where something is missing: a run that was resumed and lost nothing needs no word."""
    resumed = (
        ("train/v2_full/0", Resumption(1, (KeptRows(1, 11, 0, 550.0),), (HistoryGap(5, 550.0, 850.0),), (), 50.0)),
        ("train/v2_full/1", Resumption(1, (KeptRows(1, 16, 3, 800.0),), (), (), 50.0)),
    )
    lacking = (
        MissingCurve("score", NoCurveReason("key", "progress.csv", "Metrics/EpRet"), ("train/v2_full/0",), all=True),
        MissingCurve("cost", NoCurveReason("name"), ("train/v2_full/1",), all=False),
    )
    told = section(report("recommend", resumed=resumed, uncurved=lacking), "Declared: procedure, proxies, limits")
    assert (
        "- train/v2_full/0: it was resumed 1 x; rows of attempt 1 count up to step 550; about 5 rows between steps 550 "
        "and 850 are missing." in told
    )
    assert "train/v2_full/1: it was" not in told
    assert (
        "There is no learning curve of score: progress.csv, which it is read from, has no Metrics/EpRet over steps."
        in told
    )
    assert "There is no learning curve of cost for train/v2_full/1: no log that progress: names" in told
    chinese = section(report("recommend", "zh", resumed=resumed, uncurved=lacking), "声明：判定程序、代理与限制")
    assert "中断后续跑 1 次；第 1 次尝试的记录计到第 550 步；第 550 步与第 850 步之间约缺 5 行。" in chinese
    assert "没有 score 的学习曲线：它取自 progress.csv，其中没有随步数记录的 Metrics/EpRet。" in chinese


def test_undeclared_proxies_are_not_vouched_for() -> None:
    told = section(report("recommend", proxies={}, declared=DeclaredMetrics()), "Declared: procedure, proxies, limits")
    assert (
        "No split is declared to be a proxy. What a split really measures is not checked by Muster: id and ood." in told
    )


def test_without_a_plan_there_are_tables_and_no_verdict() -> None:
    body = report("no_plan").body
    assert "| v2_full | 5/5 |" in body
    assert "No decision: section in campaign.yaml." in body
    assert "No baseline was declared, so nothing is compared." in body
    assert "RECOMMEND" not in body


def test_an_empty_matrix_is_told_too() -> None:
    nothing = facts(
        {},
        configs=("v2_baseline", "b"),
        seeds=("0", "1"),
        columns=(SCORE,),
        missing=(MissingCell("eval/b/0", "PENDING", ""),),
        k=0,
        n=4,
    )
    for language in ("en", "zh"):
        assert "PARTIAL 0/4" in render_decision_report(analyse_facts(replace(nothing, language=language))).body  # type: ignore[arg-type]


def test_what_counts_by_a_persons_word_is_told_with_who_and_why() -> None:
    cells = ("eval/v2_full/0/ood", "eval/v2_full/1/ood", "train/v2_u_only/3")
    told = [("me@box", "exit 1 came from the logger")] * 2 + [("", "seen")]
    accepted = tuple(AcceptedCell(cell, 2, *word) for cell, word in zip(cells, told, strict=True))
    made = report("recommend", accepted=accepted)
    shown = section(made, "What it rests on")
    assert "DONE by the word of a person and not by the exit code. me@box accepted it: “exit 1 came" in shown
    assert "Somebody accepted it: “seen”" in shown
    claims = [claim.cells for claim in made.claims if "by the word of a person" in claim.text]
    assert claims == [cells[:2], cells[2:]]
    chinese = render_decision_report(analysed("recommend", "zh", accepted=accepted)).body
    assert "由人工认可为完成。认可人 me@box，理由：“exit 1 came from the logger”。" in chinese
    assert "by the word of a person" not in report("recommend").body
