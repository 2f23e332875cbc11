"""English: the defence notes.

English: what each red flag means. The flag's own sentence comes from `stats`.

English: tables, matrix, and what all texts share.
"""

from __future__ import annotations

DEFENCE_TEXTS_EN = {
    "defence.title": "Defence notes: {campaign}",
    "defence.about": "Questions that a committee would ask, answered with the numbers there are and with their "
    "limits. The marks lead to the evidence at the end.",
    "ask.claim": "What do you claim?",
    "ask.real": "Is the difference real, and how large is it?",
    "ask.seeds": "Why {seeds}?",
    "ask.seed": "Does it hang on a single seed?",
    "ask.checkpoint": "How was the checkpoint chosen?",
    "ask.ood": "Is OOD really out of distribution?",
    "ask.splits": "Do the splits measure what their names say?",
    "ask.safety": "Do you trade safety for score?",
    "ask.left_out": "Were seeds left out?",
    "ask.same_run": "Could two configs be the same run?",
    "ask.many": "Are several comparisons and several looks accounted for?",
    "ask.parts": "What does each part contribute?",
    "ask.reproduce": "Can somebody else check this?",
    "ask.money": "What would you do with twice the money?",
    "ask.not": "What can you not claim?",
    # real
    "real.invalid": "These numbers carry red flags of level ERROR and are not a result. For the record only:",
    "real.incomplete": "It can't be told yet: the matrix is incomplete. So far, for the record only:",
    "real.counted": "By the declared test, significantly better than {baseline}: {better}; significantly worse: "
    "{worse}; equal enough, inside ±delta: {equal}; open: {open}.",
    "real.size": "Hedges g = {g}; a seed of {config} does better than one of {baseline} in {percent} % of the pairs; "
    "{delta}.",
    "real.delta_above": "the whole {level} % interval of the gain lies above delta = {delta}, the smallest that "
    "matters",
    "real.delta_inside": "the {level} % interval of the gain holds values below and above delta = {delta}, so whether "
    "it matters is open",
    "real.delta_below": "the whole {level} % interval of the gain lies below delta = {delta}, so a gain that matters "
    "is unlikely",
    "real.delta_lost": "the whole {level} % interval of the loss lies above delta = {delta}: it is a loss that matters",
    "real.delta_spared": "the whole {level} % interval of the loss lies below delta = {delta}, the smallest that "
    "matters",
    "real.delta_lost_open": "the {level} % interval of the loss holds values below and above delta = {delta}, so "
    "whether it matters is open",
    "real.no_delta": "no delta is declared, so whether it matters is not judged",
    "real.no_interval": "without an interval, whether it matters is not judged",
    "real.too_few": "{seeds} {n:is|are} too few to say whether it matters",
    # seeds
    "seeds.looks": "{n} {n:seed is|seeds are} a declared look (looks at {looks} {last:seed|seeds}).",
    "seeds.at_no_look": "{n} {n:seed is|seeds are} no declared look (looks at {looks} {last:seed|seeds}).",
    # one seed
    "seed.open": "{config}: not significant with all seeds; leaving one out, p ranges from {low} to {high}. The "
    "threshold is {threshold}.",
    "seed.too_few": "{seeds} per config: none can be left out.",
    "seed.nothing": "Nothing was compared.",
    # checkpoint
    "checkpoint.undeclared": "Which checkpoint is evaluated was not declared.",
    "checkpoint.held": "The step that a checkpoint holds is known for {trainings}; the earliest holds {percent} % of "
    "its training's steps.",
    "checkpoint.saved": "When the checkpoint was saved is known for {trainings}; the earliest was saved at {percent} "
    "% of its training.",
    "checkpoint.unknown": "When the checkpoints were saved is not known for any training.",
    "count.training": "{n} training|{n} trainings",
    # splits
    "splits.means": "{config}: {values}, as means on each split.",
    "splits.proxy_only": "So a result on {split} is a result on what it stands for here, and nothing more.",
    # safety
    "safety.not_declared": "No limit is declared, so nothing can be said about safety.",
    # left out
    "left_out.missing": "Yes, so far: {cells}.",
    "left_out.whole": "{n:The one declared cell that carries results is|All {n} declared cells that carry results are} "
    "there, and no other declared cell is missing.",
    "left_out.explained": "Yes, and a person has said why: {cells}.",
    "left_out.excluded": "exclude: takes {places} out of the matrix: {names}. They were not declared when the first "
    "run of their config began, and none of them has run.",
    "count.place": "{n} place|{n} places",
    # same run
    "same_run.flagged": "There are signs that it is so:",
    "same_run.warned": "Nothing proves it, but this has to be looked at:",
    "same_run.no_flag": "Nothing points to it: no two configs share their values, their mean and sd, a checkpoint, a "
    "learning curve or their resolved settings, as far as these are known.",
    "same_run.known": "Of {trainings}, the hash of the checkpoint is known for {checkpoints}, that of the learning "
    "curve for {curves}, and that of the resolved settings for {settings}.",
    "same_run.nothing_known": "No hash of a checkpoint, learning curve or resolved config is known; only the values "
    "could be compared.",
    # many
    "many.test": "One primary metric on one split is tested: {column}. Holm's procedure accounts for {candidates}; "
    "alpha = {alpha} is divided by {looks}, so that the strictest threshold is {strictest}.",
    "many.routes": "The bounds of a cost and of a loss share alpha in the same way: each holds at {each} %, so that "
    "all candidates and looks together hold at {level} %. EQUIVALENT asks for every candidate at once and shares "
    "alpha among the looks only.",
    "many.others": "All other columns are estimates: no test, no stars.",
    "many.declared": "The procedure is that of decision: in campaign.yaml; by the record, it was not changed after a "
    "cell was done.",
    "many.undeclared": "No procedure was declared, so nothing is tested and nothing is ranked.",
    # parts
    "parts.pair": "{factor} ({without} to {with_}), {pair}: {differences}.",
    "parts.difference": "{difference} on {column}",
    "parts.estimates": "Estimates with Welch 95 % intervals; nothing of this was tested.",
    "parts.none": "No two configs differ in one factor only, so no part can be told apart.",
    # reproduce
    "reproduce.code": "The campaign's code: {code}.",
    "reproduce.mixed": "Not all cells were made by the same code:",
    "reproduce.how": "Every seed's value is in the CSV tables; muster trace leads from any claim to attempts, files "
    "and hashes, and muster verify names every link that is broken or stale.",
    # money
    "money.twice": "Twice the seeds ({n} in each of {configs}) would bring the detectable difference on {column} from "
    "{now} down to {then}{price}.",
    # can't claim
    "not.result": "That any of these numbers is a result: {errors} {n:says|say} otherwise.",
    "not.matrix": "Anything about the whole matrix: {missing}.",
    "not.verdict": "A verdict: none was declared beforehand.",
    "not.better": "That {configs} did better than {baseline} on {column}: it is not significant by the declared test.",
    "not.equal": "That {configs} did as well as {baseline} on {column}: not significant is not equal.",
    "not.feasible": "That the limit {rule} is kept by {configs}: it is not shown.",
    "not.each_seed": "That every seed keeps the limit {rule}: feasible is about the mean. {keep} of {n} {n:seed|seeds}"
    " ({config}) {keep:keeps|keep} it{proof}.",
    "not.other_columns": "That anything was tested on {columns}: these are estimates.",
    "not.proxy": "More about {split} than the proxy allows: {note}",
    "not.parts": "That single factors have an effect: the differences are estimates, without tests.",
    "not.scope": "Anything about tasks, step budgets or configs outside of this matrix.",
}

FLAGS_TEXTS_EN = {
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

TABLES_TEXTS_EN = {
    "and": " and ",
    "comma": ", ",
    "and_more": "{items} and {n} more",
    "between": " ",
    "semicolon": "; ",
    "stop": ".",
    "marked": "{title} ({mark})",
    "caption.marked": "{mark}. {caption}",
    "count.seed": "{n} training seed|{n} training seeds",
    "count.candidate": "{n} candidate|{n} candidates",
    "count.look": "{n} look|{n} looks",
    "count.error": "{n} red flag of level ERROR|{n} red flags of level ERROR",
    "count.missing": "{n} declared cell is missing|{n} declared cells are missing",
    "count.more": "{n} more training seed|{n} more training seeds",
    "count.pair": "{n} combination of config and seed|{n} combinations of config and seed",
    "count.warned": "{n} red flag of level WARN has to be read beside it.|{n} red flags of level WARN have to be read "
    "beside it.",
    "count.refused": "{n} run that something else made was found and not taken in; the cost report has what it took.|"
    "{n} runs that something else made were found and not taken in; the cost report has what they took.",
    "count.adopted": "{n} cell was adopted: run by something else, matched and proven by Muster.|{n} cells were "
    "adopted: run by something else, matched and proven by Muster.",
    "history.accepted": "{cells}: DONE by the word of a person and not by the exit code. "
    "{who} accepted it: “{reason}”.",
    "history.somebody": "Somebody",
    "count.retried": "{n} cell needed more than one attempt.|{n} cells needed more than one attempt.",
    "span.s": "{n} s",
    "span.min": "{n} min",
    "span.h": "{n} h",
    "none": "none",
    # main table
    "table.main": "Main results of {campaign}",
    "table.ablation": "Ablation of {campaign}",
    "table.contrasts": "Ablation of {campaign}: pairs of configs that differ in one factor only",
    "table.config": "config",
    "table.seeds": "k/N",
    "table.missing": "— (missing)",
    "table.other_n": "{text} (n = {n})",
    "table.primary": "{column} {arrow}",
    "table.limit": "{column} ({rule})",
    "table.difference": "{column}: difference from {baseline}",
    "table.pair": "pair",
    "table.factor": "factor",
    "table.same": "the others",
    "table.baseline": "baseline",
    "note.cells": "Cells: mean ± sd over training seeds; in brackets the Student-t 95 % interval of the mean, from "
    "three seeds on. Two seeds: both values. One seed: its value. k/N: training seeds there are, of those declared.",
    "note.primary": "{column} is the primary metric ({direction} is better). All other columns are estimates only: "
    "nothing was tested on them.",
    "note.no_plan": "No primary metric was declared: all columns are estimates only, nothing was tested.",
    "note.bold": "Bold: the best feasible config on {column}, and every feasible one that the declared test can't "
    "tell from it.",
    "note.bold_no_limit": "Bold: the best config on {column}, and every one that the declared test can't tell from it.",
    "note.no_bold.invalid": "Nothing is set in bold: by its red flags this table is not a result.",
    "note.no_bold.incomplete": "Nothing is set in bold: the matrix is incomplete.",
    "note.no_bold.few": "Nothing is set in bold: fewer than {least} seeds allow no ranking.",
    "note.no_bold.infeasible": "Nothing is set in bold: no config is shown to keep the limit {rule}.",
    "note.iqm": "Interquartile mean of {column} (the middle half of the seeds, from {least} seeds on): {values}.",
    "note.dagger": "† infeasible: it breaks the limit {rule}, by the one-sided 95 % bound of the mean.",
    "note.undetermined": "? undetermined: neither keeping nor breaking the limit {rule} is shown.",
    "note.missing": "— (missing): declared, and not there.",
    "note.estimates": "Differences: candidate minus baseline, with their Welch 95 % intervals; estimates only.",
    "note.contrasts": "With the factor minus without it, all other factors alike, with Welch 95 % intervals; "
    "estimates only, no tests.",
    "direction.higher": "higher",
    "direction.lower": "lower",
    # matrix
    "matrix.caption": "Matrix of {campaign}: what is there of each config and seed",
    "matrix.seed": "seed {seed}",
    "matrix.done": "✅ done",
    "matrix.missing": "❌ missing",
    "matrix.part": "❌ missing: {heads}",
    "matrix.not_declared": "–",
    "matrix.excluded": "– excluded",
    "matrix.cells": "cells k/N",
    "matrix.note": "✅ done: results on {heads}. ❌ missing: declared, and not there.",
    "matrix.note_excluded": "– excluded: taken out of the matrix by exclude:.",
    "missing.title": "Missing cells",
    "missing.cell": "cell",
    "missing.state": "state",
    "missing.reason": "reason",
    "count.row": "{n} row|{n} rows",
    "resumed.times": "it was resumed {n} x",
    "resumed.kept": "rows of attempt {attempt} count up to step {step}",
    "resumed.again": " ({rows} after that were run again)",
    "resumed.none": "no row of attempt {attempt} counts: its steps were run again",
    "resumed.gap": "about {rows} between steps {after} and {before} are missing",
    "resumed.gone": "the history before step {step} is not there: attempt {attempts} left no row that can be read",
    "resumed.all_gone": "its history is not there: attempt {attempts} left no row that can be read",
    "resumed.by_order": "its steps begin anew with each attempt, so that rows were put one after another",
}
