"""The defence notes: the questions of a committee, and answers that follow the data."""

import re
from dataclasses import replace
from typing import Any

import pytest
from report_scenes import (
    NEAR,
    PROXY,
    SCENES,
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

from muster.app.facts.report_analysis import ReportAnalysis, analyse_facts
from muster.app.report.defence_notes import render_defence_notes
from muster.stats.red_flags import DeclaredMetrics


def answers(analysis: ReportAnalysis) -> dict[str, str]:
    """By question; the evidence is left out."""
    body = render_defence_notes(analysis).body
    parts = re.split(r"^## (?:\d+\. )?(.*)\n", body, flags=re.MULTILINE)
    return {question: answer.strip() for question, answer in zip(parts[1::2], parts[2::2], strict=True)}


def answer(question: str, scene: str, **changed: Any) -> str:
    return answers(analysed(scene, **changed))[question]


REAL = "Is the difference real, and how large is it?"
ONE_SEED = "Does it hang on a single seed?"
CHECKPOINT = "How was the checkpoint chosen?"
OOD = "Is OOD really out of distribution?"
SAFETY = "Do you trade safety for score?"
LEFT_OUT = "Were seeds left out?"
SAME_RUN = "Could two configs be the same run?"
MANY = "Are several comparisons and several looks accounted for?"
PARTS = "What does each part contribute?"
MONEY = "What would you do with twice the money?"
NOT = "What can you not claim?"


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("scene", SCENES)
def test_ten_to_fourteen_questions_each_with_an_answer(scene: str, language: Language) -> None:
    analysis = analysed(scene, language)
    asked = list(answers(analysis).items())[:-1]
    assert 10 <= len(asked) <= 14
    assert all(told.startswith("- ") for _, told in asked)
    assert "{" not in render_defence_notes(analysis).body


@pytest.mark.parametrize("scene", SCENES)
def test_every_mark_is_a_claim_with_its_cells(scene: str) -> None:
    text = render_defence_notes(analysed(scene))
    body, _, evidence = text.body.rpartition("\n## ")
    assert set(re.findall(r"\[(E\d+)\]", body)) == {claim.id for claim in text.claims}
    assert all(claim.cells and f"--claim {claim.id}`" in evidence for claim in text.claims)
    name = "defence.PARTIAL-51of60.md" if scene == "incomplete" else "defence.md"
    assert f"`muster trace reports/{name} --claim E1`" in evidence


def test_scenes_are_answered_differently() -> None:
    """No answer is canned: what depends on the data differs with it."""
    told = {scene: answers(analysed(scene)) for scene in SCENES}
    for question in (REAL, ONE_SEED, MONEY, NOT):
        assert len({each[question] for each in told.values()}) >= 5, question


def test_a_partial_matrix_is_marked() -> None:
    body = render_defence_notes(analysed("incomplete")).body
    assert body.splitlines()[0] == "# Defence notes: paper-sprint (PARTIAL 51/60)"
    assert "**PARTIAL 51/60 · INCOMPLETE" in body


def test_numbers_that_are_no_result_are_not_to_be_cited() -> None:
    caution = "> INVALID: these numbers are here to be looked into, not to be cited."
    assert caution in render_defence_notes(analysed("invalid")).body.splitlines()[:8]
    assert all(caution not in render_defence_notes(analysed(scene)).body for scene in SCENES if scene != "invalid")


def test_is_it_real() -> None:
    good = answer(REAL, "recommend")
    assert "significantly better than v2_baseline: v2_full; significantly worse: none; equal enough" in good
    assert "the whole 95 % interval of the gain lies above delta = 0.3" in good
    assert "better than v2_baseline: none" in answer(REAL, "not_enough")
    assert answer(REAL, "invalid").startswith("- These numbers carry red flags of level ERROR and are not a result.")
    assert "Hedges" not in answer(REAL, "invalid")
    assert answer(REAL, "incomplete").startswith("- It can't be told yet")
    assert answer(REAL, "no_plan") == "- No baseline was declared, so nothing is compared."
    few = answers(pair(NEAR[:3], spread(9.0, 0.1, 3, 2)))[REAL]
    assert "3 training seeds are too few to say whether it matters" in few
    assert "not judged: fewer than 5 seeds" in few


def test_why_so_many_seeds() -> None:
    assert "5 seeds are a declared look" in answer("Why 5 training seeds?", "recommend")
    told = answer("Why 2 training seeds?", "invalid")
    assert "2 seeds are no declared look" in told
    assert "a smoke test" in told


def test_does_it_hang_on_one_seed() -> None:
    assert "With any one seed left out it still holds" in answer(ONE_SEED, "recommend")
    assert "not significant with all seeds; leaving one out, p ranges from" in answer(ONE_SEED, "not_enough")
    assert "Welch" not in answer(ONE_SEED, "unsafe_baseline")  # its verdict rests on no test of a difference
    assert answer(ONE_SEED, "invalid") == "- 2 training seeds per config: none can be left out."
    frail = pair([1.0, 1.4, 0.8, 1.2, 0.7], [1.6, 1.75, 1.5, 1.85, 1.42])
    assert "It hangs on single seeds" in answers(frail)[ONE_SEED]


def test_how_the_checkpoint_was_chosen() -> None:
    good = answer(CHECKPOINT, "recommend")
    assert "the last one of each training" in good
    assert "known for 20 trainings; the earliest was saved at 99 % of its training" in good
    bad = answer(CHECKPOINT, "invalid")
    assert "the earliest was saved at 1 % of its training" in bad
    assert bad.count("**ERROR**") == 4
    assert "2 more of `early_checkpoint`" in bad
    assert "not known for any training" in answer(CHECKPOINT, "equivalent")
    chosen = answer(
        CHECKPOINT,
        "recommend",
        plan=plan(checkpoint="best by score"),
        declared=DeclaredMetrics("best", "score", "score", "cost"),
    )
    assert "the best one of each training, by score" in chosen
    assert "The same numbers choose and report" in chosen


def test_is_ood_out_of_distribution() -> None:
    declared = answer(OOD, "recommend")
    assert PROXY in declared
    assert "So a result on ood is a result on what it stands for here, and nothing more." in declared
    assert "v2_full: id/score 3.55 and ood/score 3.10, as means on each split." in declared
    silent = answer(OOD, "recommend", proxies={}, declared=DeclaredMetrics())
    assert "No split is declared to be a proxy" in silent
    assert PROXY not in silent


def test_a_note_on_a_split_limits_no_claim() -> None:
    noted = answer(
        OOD, "recommend", proxies={}, declared=DeclaredMetrics(), split_notes={"id": "the rooms of the training"}
    )
    assert "Split id: the rooms of the training" in noted
    assert "No split is declared to be a proxy" in noted
    assert "nothing more" not in noted


def test_splits_by_other_names_get_the_general_question() -> None:
    values = {
        "easy/score": {"a": NEAR, "b": spread(2.0, 0.1, 5, 2)},
        "hard/score": {"a": spread(0.5, 0.1, 5, 3), "b": spread(1.0, 0.1, 5, 4)},
    }
    told = answers(analyse_facts(facts(values, plan=None, proxies={}, declared=DeclaredMetrics())))
    assert OOD not in told
    assert "a: easy/score 1.06 and hard/score 0.50" in told["Do the splits measure what their names say?"]


def test_no_splits_no_question() -> None:
    told = answers(analyse_facts(facts({"eval/score": {"a": NEAR, "b": spread(2.0, 0.1, 5, 2)}}, plan=None)))
    assert OOD not in told
    assert "Do the splits measure what their names say?" not in told


def test_is_safety_traded_for_score() -> None:
    assert "- v2_full dominates v2_baseline" in answer(SAFETY, "recommend")
    unsafe = answer(SAFETY, "unsafe_baseline")
    assert "v2_baseline is infeasible on ood/cost ≤ 25: mean 83.0" in unsafe
    assert "0 of 5 seeds keep it; worst seed" in unsafe  # none of them proves nothing
    assert (
        answers(pair(NEAR, spread(2.0, 0.1, 5, 2)))[SAFETY]
        == "- No limit is declared, so nothing can be said about safety."
    )


def test_were_seeds_left_out() -> None:
    assert answer(LEFT_OUT, "recommend").startswith(
        "- All 60 declared cells that carry results are there, and no other declared cell is missing."
    )
    told = answer(LEFT_OUT, "incomplete")
    assert "train/v2_full/2 (PENDING: left out by --only seed=3,4)" in told
    assert "and 3 more" in told
    whole = recommend()
    cells = tuple(replace(each, adopted=True) for each in whole.measured)
    out = analyse_facts(replace(whole, measured=cells, excluded=(("v2_full", "9", "ood"),)))
    assert "60 cells were adopted" in answers(out)[LEFT_OUT]
    assert "exclude: takes 1 place out of the matrix: v2_full/9/ood" in answers(out)[LEFT_OUT]


def test_could_two_configs_be_the_same_run() -> None:
    good = answer(SAME_RUN, "recommend")
    assert good.startswith("- Nothing points to it")
    assert "Of 20 trainings, the hash of the checkpoint is known for 20" in good
    bad = answer(SAME_RUN, "invalid")
    assert bad.startswith("- There are signs that it is so:")
    assert (
        "v2_baseline, v2_u_only, v2_cert_only have the same value for every seed in id/score (chance of that: " in bad
    )
    assert "only the values could be compared" in answer(SAME_RUN, "equivalent")
    counts = answers(pair([1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 3.0, 4.0, 5.0]))[SAME_RUN]
    assert counts.startswith("- Nothing proves it, but this has to be looked at:")


def test_are_many_comparisons_accounted_for() -> None:
    assert (
        "Holm's procedure accounts for 3 candidates; alpha = 0.05 is divided by 2 looks, so that the strictest threshold is 0.00833"
        in answer(MANY, "recommend")
    )
    assert "was not changed after a cell was done" in answer(MANY, "recommend")
    changed = answer(MANY, "recommend", declared=replace(recommend().declared, changed_at=7))
    assert "the decision, or how its metrics are read, was changed when 7 cells were done" in changed
    assert "was not changed after" not in changed
    assert answer(MANY, "no_plan") == "- No procedure was declared, so nothing is tested and nothing is ranked."


def test_what_each_part_contributes() -> None:
    told = answer(PARTS, "recommend")
    assert (
        "u (0 to 1), v2_full − v2_cert_only: +1.00 [0.66, 1.34] on ood/score; -9.5 [-11.6, -7.4] on ood/cost." in told
    )
    assert told.startswith("- Estimates with Welch 95 % intervals; nothing of this was tested.")
    assert PARTS not in answers(analysed("recommend", plan=plan(factors={})))
    both = {"v2_baseline": {"u": 0, "cert": 0}, "v2_full": {"u": 1, "cert": 1}}
    assert "No two configs differ in one factor only" in answer(PARTS, "recommend", plan=plan(factors=both))


def test_can_somebody_else_check_this() -> None:
    question = "Can somebody else check this?"
    assert "code: 4f2c1aa" in answer(question, "recommend")
    assert "not known yet" in answer(question, "recommend", code="")
    made = tuple(replace(each, commit="a" if index else "b") for index, each in enumerate(recommend().made))
    assert "Not all cells were made by the same code:" in answer(question, "recommend", made=made)
    lost = tuple(replace(each, now={}) for each in recommend().measured[:1]) + recommend().measured[1:]
    assert "its file is not there" in answer(question, "recommend", measured=lost)


def test_what_twice_the_money_would_buy() -> None:
    assert (
        "would bring the detectable difference on ood/score from 0.74 down to 0.45; about 34.0 h of training and evaluation, 67.40 CNY"
        in answer(MONEY, "recommend")
    )
    assert answer(MONEY, "not_enough").startswith("- Not resolvable; the detectable difference is 0.92")
    assert answer(MONEY, "invalid").startswith("- Not more seeds")
    assert "Twice the seeds" not in answer(MONEY, "invalid")
    assert answer(MONEY, "incomplete").startswith("- Run the missing cells and nothing else")


def test_what_can_not_be_claimed() -> None:
    good, open_, same = answer(NOT, "recommend"), answer(NOT, "not_enough"), answer(NOT, "equivalent")
    assert "That v2_u_only and v2_cert_only did better than v2_baseline on ood/score" in good
    assert "v2_full did" not in good
    assert "not significant is not equal" in open_
    assert "not significant is not equal" not in same
    assert "That the limit ood/cost ≤ 25 is kept by v2_cert_only: it is not shown." in open_
    assert "5 of 5 seeds (v2_full) keep it, so that with 95 % confidence at least 55 % of all seeds do" in good
    assert "That anything was tested on id/score and train/risk_penalty: these are estimates." in good
    assert f"More about ood than the proxy allows: {PROXY}" in good
    assert answer(NOT, "invalid").startswith(
        "- That any of these numbers is a result: 6 red flags of level ERROR say otherwise."
    )
    assert answer(NOT, "incomplete").startswith("- Anything about the whole matrix: 9 declared cells are missing.")
    assert answer(NOT, "no_plan").startswith("- A verdict: none was declared beforehand.")
    few = answers(pair(NEAR[:4], spread(9.0, 0.1, 4, 2)))[NOT]
    assert "That v2_full did better than v2_baseline" in few  # supported by Welch, and still too few seeds


def test_scenes_with_holes_and_flags_at_once_are_told() -> None:
    both = replace(invalid(), missing=incomplete().missing, n=33)
    told = answers(analyse_facts(both))
    assert "PARTIAL 24/33 · INVALID" in told["What do you claim?"]
    assert "9 declared cells are missing" in told[NOT]
