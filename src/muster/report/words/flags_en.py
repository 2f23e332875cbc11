"""English: what each red flag means. The flag's own sentence comes from `stats`."""

from __future__ import annotations

TEXTS = {
    "flags.accepted": "Accepted by {who} on {at}: “{because}”.",
    "flags.aside": "Nothing is decided on it, so it does not void the verdict.",
    "history.accepted_flag": "The red flag {code} ({level}) counts no more by the word of a person: accepted by {who} "
    "on {at}, “{because}”.",
    "count.accepted_error": "{n} red flag of level ERROR was accepted by a person.|{n} red flags of level ERROR were "
    "accepted by a person.",
    "flag.means.not_finite": "A run that diverged or a file that was read wrongly; a mean over it is none.",
    "flag.means.duplicated_cell": "One place of the matrix has several results; which of them counts is not decided.",
    "unread.there": "{path} is there, and no {metric} can be read from it",
    "unread.gone": "{path} is not there",
    "unread.moved": "recorded at {path}; this campaign's folder is now {folder}; the file is not there",
    "flag.means.lost_result": "The record still has the number, but nothing is left that vouches for it.",
    "flag.means.changed_result": "The record and the file disagree; which of them is right is not decided.",
    "flag.means.other_checkpoint": "The numbers belong to weights that are no longer there: evaluate again.",
    "flag.means.checkpoint_changed": "The numbers may belong to weights that are no longer there: evaluate again.",
    "flag.means.decision_changed": "A rule that was changed with results in view may have been changed because of "
    "them.",
    "flag.means.same_values": "With the spread and the precision seen here, independent runs do not agree like this. "
    "Most likely the same weights or the same file were evaluated under several names.",
    "flag.means.same_seeds": "With the spread and the precision seen here, independent seeds do not agree like this. "
    "Most likely the seed had no effect, or one result was copied.",
    "flag.means.same_values.WARN": "Counts, rounded and saturated values may agree by chance, and chance is not "
    "excluded here. Make sure that these are separate runs.",
    "flag.means.same_seeds.WARN": "Counts, rounded and saturated values may agree by chance, and chance is not "
    "excluded here. Make sure that the seed has an effect.",
    "flag.means.same_row": "Independent runs do not agree in everything. Most likely one result was copied, or one run "
    "was measured under two names.",
    "flag.means.one_result": "Independent runs do not write the same file, timings and all. Most likely it was copied.",
    "flag.means.one_curve.WARN": "Everything that was logged agrees, and the weights differ: what sets these runs "
    "apart had no effect on the log, such as a penalty that stayed 0.",
    "flag.means.same_splits": "Most likely the same split was evaluated under two names.",
    "flag.means.one_checkpoint": "These cells are not independent: one training stands behind several of them.",
    "flag.means.one_curve": "These cells are not independent: one training stands behind several of them.",
    "flag.means.early_checkpoint": "What was evaluated is not what was trained: save at the end, and evaluate again.",
    "flag.means.mixed_steps": "Configs with different budgets are not comparable.",
    "flag.means.mixed_units": "A mean over 0.87 and 87 is none: write all of them in one unit.",
    "flag.means.mixed_units.WARN": "A factor of 100 between configs may be a difference of units. Make sure that all "
    "write the same one.",
    "flag.means.best_and_last": "The best checkpoint is chosen to be good: what was evaluated on it is not comparable "
    "with the last one.",
    "flag.means.best_beside_last": "No single policy has both numbers: take both at one step.",
    "flag.means.same_settings": "What is compared is one and the same config, under different names.",
    "flag.means.label_contradicts": "The cell may hold the results of another config.",
    "flag.means.mixed_commits": "A difference between cells may be a difference of code.",
    "flag.means.mixed_sources": "A difference between these cells may be a difference of code. Run the older ones "
    "again (muster redo CELL), or accept the flag if these files have no part in the runs.",
    "flag.means.mixed_code": "A difference between cells may be a difference of code that was never committed.",
    "flag.means.mixed_episodes": "Cells with fewer episodes are noisier, and the spread between seeds holds that "
    "noise.",
    "flag.means.few_episodes": "Part of the spread between seeds is noise of the evaluation.",
    "flag.means.best_at_an_end": "At the first evaluation: it hardly learned. At the last one: it may still be "
    "improving.",
    "flag.means.best_on_reported": "The same numbers choose and report; the last checkpoint has no such bias.",
    "flag.means.cost_at_best": "The step with the best score is not the step with the usual cost; report both.",
    "flag.means.train_metric": "It is measured on the way, with exploration and changing weights.",
    "flag.means.proxy_undeclared": "Without a word, readers take the split for what its name says.",
    "flag.means.withdrawn": "What was taken out after its result had been seen may have been taken out because of it. "
    "It stays in N; no verdict is drawn until it is back, or a person has said why (muster flag accept withdrawn).",
    "flag.means.dropped_rows": "What was taken out after its result had been seen may have been taken out because of "
    "it, and the correction for several candidates does not count it.",
    "flag.means.failed_seeds": "The seeds that are missing are those on which it did worst. They stay in N, and no "
    "word clears them: run them again, or report the rate of failures.",
    "flag.means.lost_seeds": "They stay in N; no verdict is drawn until they have run, or a person has said why they "
    "are lost (muster flag accept lost_seeds).",
    "flag.means.recovered": "A seed that is tried until it does not diverge hides how often the method fails. Report "
    "the rate of failures, too.",
    "flag.means.redone": "Who runs seeds again after seeing their results may choose the better ones. The old "
    "attempts and their results are kept: `muster why CELL` shows them.",
    "flag.means.mixed_definitions": "A difference between these cells may be that of the definition, and a mean over "
    "both is a mean of two things.",
    "flag.means.outdated": "The numbers belong to a definition that campaign.yaml no longer has.",
    "flag.means.same_but_label": "Make sure that the label chooses what runs; else a config was compared with itself.",
    "flag.means.cost_zero": "A cost that is never anything but 0 is mostly one that was not recorded.",
}
