"""English: the report of a loop."""

from __future__ import annotations

LOOP_TEXTS_EN = {
    "loop.title": "Rounds of {campaign}: {rounds}, {variants}",
    "loop.unfinished": "PARTIAL {k}/{n}: {k} of {n} {n:run is|runs are} over",
    "count.loop_round": "{n} round|{n} rounds",
    "count.loop_variant": "{n} variant|{n} variants",
    "count.loop_seed": "{n} seed|{n} seeds",
    "loop.higher": "higher is better",
    "loop.lower": "lower is better",
    "loop.told": "{head}: {text}",
    "loop.recorded": "{text}",  # a reason that was recorded in English
    # bottom line
    "loop.best": "**Best so far: {name}** (round {round}): {by} = {score}; {better}.",
    "loop.no_rank": "**No best variant can be named**: nothing is declared to rank by. `keep: {{top: 4, by: "
    'last("..."), better: higher}}` declares it.',
    "loop.no_score": "**No variant has a score yet** by {by}.",
    "loop.no_score_why": "**No variant has a score** by {by}: {why}.",
    "loop.score": "{mean} ± {sd} (mean ± sd, {seeds})",
    "loop.score_one": "{mean} (one seed)",
    "loop.inner": "{score}, n = {n}",
    "loop.beyond": "Against its base {base} ({score}) it is better by {gain}, 95 % interval {interval}, p = {p} "
    "(Welch): beyond the noise of the seeds.",
    "loop.within": "Against its base {base} ({score}) it is better by {gain}, 95 % interval {interval}, p = {p} "
    "(Welch): that may be the noise of the seeds.",
    "loop.no_spread": "Against its base {base} ({score}) it is better by {gain}; the seeds show no spread at all, "
    "which is seldom true: does the command use `{{seed}}`?",
    "loop.one_seed": "Against its base {base} ({score}) it is better by {gain}. One seed: a gain can't be told from "
    "noise; `repeats: 3` would show it.",
    "loop.identical": "**All {n} scores are equal to the last digit**: {by} = {score}. Nothing was compared, and no "
    "variant is best: does the trainer read `{{config_file}}`?",
    "loop.is_base": "It is one of the configs that the loop began with: no variant is better beyond the noise.",
    "loop.is_base_one": "It is one of the configs that the loop began with: no variant scored better. One seed: a "
    "difference can't be told from noise; `repeats: 3` would show it.",
    "loop.only_bases_one": "One seed: a difference can't be told from noise; `repeats: 3` would show it.",
    "loop.no_base": "The base that it comes from has no score to compare with.",
    "loop.top": "{name} has the better mean ({score}), but not beyond the noise of the seeds.",
    "loop.top_one": "{name} has the better score ({score}), but of one seed: that can't be told from noise.",
    "loop.few": "All of this rests on two seeds, which show the noise only roughly: what stands out may be luck, what "
    "does not may be real; `repeats: 3` or more would tell.",
    "loop.chosen": "It was chosen as the best of {n} that have a score, so this score flatters it: run it again with "
    "other seeds before you show it.",
    "loop.died": "{n} of its {all} runs did not end well and {n:does|do} not count.",
    "loop.stopped": "**The loop has stopped**: {why}.",
    "loop.next_running": "**Round {round} of {most} is under way**: {k} of {n} {n:run is|runs are} over.",
    "loop.next_ready": "**Round {round} of {most} comes next**: {variants}; {how}.",
    "loop.next_due": "**Round {round} of {most} is over**: the next one, or the reason why none comes, is due; {how}.",
    "loop.how_busy": "nobody has to do anything",
    "loop.how_idle": "`muster loop run` goes on",
    "loop.how_held": "the campaign is held: `muster release`, then `muster loop run`",
    "loop.how_down": "the campaign is down: `muster loop run` goes on",
    "loop.trouble": "**{n} of {all} {all:run|runs} failed or left no history**:",
    "loop.trouble_all": "**{n:The only run|All {n} runs} failed or left no history**:",
    "loop.trouble_more": "{n} more {n:run|runs}: see the table",
    "loop.no_cause": "no cause is recorded",
    "loop.fine": "No run failed, and each left a history.",
    "loop.fine_so_far": "No run has failed so far.",
    "loop.left_none": "it left no readable history",
    "loop.no_history": "no readable history: {why}",
    # stop conditions, as they are recorded
    "loop.stop.rounds": "all {n} rounds are done",
    "loop.stop.one": "the one round is done",
    "loop.stop.target": "the target is reached: {target} holds for {name}",
    "loop.stop.no_gain": "no gain in {n} {n:round|rounds}: {by} is still best with {name} ({score})",
    "loop.stop.open": "round {round} is not over, {k} of {n} {n:run has|runs have} no end yet: {why}",
    "loop.stop.none": "no proposals because {none}",
    "loop.stop.silent": "{k} of {n} {n:run|runs} left no readable history",
    # runs
    "loop.runs": "Runs",
    "loop.run": "run",
    "loop.round": "round",
    "loop.verdict": "verdict",
    "loop.value": "score",
    "loop.parent": "parent",
    "loop.reason": "why it was tried",
    "loop.edits": "edits",
    "loop.config": "config",
    "loop.output": "output",
    "loop.wandb": "W&B",
    "loop.base": "base",
    "loop.gain_better": "better than its parent by {gain}",
    "loop.gain_worse": "worse than its parent by {gain}",
    "loop.gain_none": "as good as its parent",
    "loop.runs_note": "score: {by}, {better}.",
    "loop.same": "″: as in the row above.",
    # lineage
    "loop.lineage": "Lineage",
    "loop.lineage_note": "Thick frame: the best so far. ▲ better and ▼ worse than its parent. Dashed: no score.",
    "loop.column": "round {round}: {variants}",
    "loop.lineage_large": "{n} variants are too many for a diagram in a text: see lineage.svg.",
    "loop.picture": "Lineage of {campaign}",
    "loop.not_yet": "not over yet",
    "loop.without": "no score",
    "loop.unranked": "nothing to rank by",
    # best so far
    "loop.curve": "Best so far",
    "loop.caption": "Each dot is a run, by {by} ({better}); marks with a bar: mean and sd over the seeds of a variant. "
    "The line is the best variant after each round: another one takes its place only if it is better beyond the noise "
    "of the seeds.",
    "loop.caption_one": "Each dot is a run, by {by} ({better}). The line is the best variant after each round. One "
    "seed each: a gain can't be told from noise.",
    "loop.undrawn": "It could not be drawn: {why}.",
    "loop.unnamed": "The picture leaves {names} out: its font has not all of the letters.",
    # rules
    "loop.rules": "Which rules pay",
    "loop.rule": "rule",
    "loop.made": "variants made",
    "loop.scored": "with a score",
    "loop.won": "better than the parent",
    "loop.mean_gain": "mean gain (+ is better)",
    "loop.rules_note": "Gain: by how much a variant is better than its parent, by {by} ({better}); below zero it is "
    "worse. In brackets the 95 % t interval of the mean gain, from three variants on.",
    "loop.noise": "The seeds of one variant differ by {sd} (sd, pooled): a gain of one pair of variants has a noise of "
    "{pair} by itself.",
    "loop.noise_one": "One seed each: every gain has the noise of two seeds in it, and nothing here says how large "
    "that is; `repeats: 3` would show it.",
    "loop.rules_unranked": "Without an expression to rank by no gain can be told.",
    "loop.rules_none": "No rule is declared, and nothing else has made a variant.",
    # keys
    "loop.logged": "What the runs logged",
    "loop.logged_note": "Numbers of the keys that rank and that rules ask for come first. —: not logged; NaN and inf: "
    "as the run wrote them.",
    "loop.more_keys": "{n} more {n:key is|keys are} in summary.json.",
    "loop.nothing_logged": "Nothing was logged.",
    "loop.first": "first",
    "loop.last": "last",
    "loop.best_value": "best",
    "loop.range": "min … max",
    "loop.delta": "delta",
    "loop.percent": "%",
    "loop.nans": "{n} of {all} not finite",
    # what is recorded in English is told as it is, but for these
    "recorded.nothing": "nothing that it logged is in its output; looked for: {files}",
    "recorded.nothing_printed": "nothing that it logged is in its output, and what it printed holds no number; looked "
    "for: {files}",
}
