"""English: what each red flag means. The flag's own sentence comes from `stats`."""

from __future__ import annotations

TEXTS = {
    "flag.means.not_finite": "A run that diverged or a file that was read wrongly; a mean over it is none.",
    "flag.means.duplicated_cell": "One place of the matrix has several results; which of them counts is not decided.",
    "flag.means.lost_result": "The record still has the number, but nothing is left that vouches for it.",
    "flag.means.changed_result": "The record and the file disagree; which of them is right is not decided.",
    "flag.means.other_checkpoint": "The numbers belong to weights that are no longer there: evaluate again.",
    "flag.means.checkpoint_changed": "The numbers may belong to weights that are no longer there: evaluate again.",
    "flag.means.decision_changed": "A rule that was changed with results in view may have been changed because of "
    "them.",
    "flag.means.same_values": "Independent runs do not agree like this (three configs to three decimals: p about "
    "3e-7). Most likely the same weights or the same file were evaluated under several names.",
    "flag.means.same_seeds": "Independent seeds do not agree like this. Most likely the seed had no effect, or one "
    "result was copied.",
    "flag.means.same_values.WARN": "Counts and saturated rates may agree by nature. Make sure that these are separate "
    "runs.",
    "flag.means.same_seeds.WARN": "Counts and saturated rates may agree by nature. Make sure that the seed has an "
    "effect.",
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
    "flag.means.mixed_code": "A difference between cells may be a difference of code that was never committed.",
    "flag.means.mixed_episodes": "Cells with fewer episodes are noisier, and the spread between seeds holds that "
    "noise.",
    "flag.means.few_episodes": "Part of the spread between seeds is noise of the evaluation.",
    "flag.means.best_at_an_end": "At the first evaluation: it hardly learned. At the last one: it may still be "
    "improving.",
    "flag.means.best_on_reported": "The same numbers choose and report; the last checkpoint has no such bias.",
    "flag.means.cost_at_best": "The step with the best score is not the step with the usual cost; report both.",
    "flag.means.train_metric": "It is measured on the way, with exploration and changing weights.",
    "flag.means.proxy_undeclared": "Without its note, readers take the split for what its name says.",
    "flag.means.withdrawn": "What was taken out after its result had been seen may have been taken out because of it.",
    "flag.means.same_but_label": "Make sure that the label chooses what runs; else a config was compared with itself.",
    "flag.means.cost_zero": "A cost that is never anything but 0 is mostly one that was not recorded.",
}
