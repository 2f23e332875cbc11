"""English: the defence notes."""

from __future__ import annotations

TEXTS = {
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
