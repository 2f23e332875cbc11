"""English: the code that cells ran.

English: the decision report.
"""

from __future__ import annotations

CODE_TEXTS_EN = {
    "code.changed": "commit {commit} plus uncommitted changes in {files} ({names})",
    "code.diff": "commit {commit} plus uncommitted changes (diff {dirty})",
    "code.untracked": "{file} untracked",
    "code.unknown": "not known: {why}",
    "code.slow": "git did not answer in {n} s",
    "code.unreadable": "git could not tell what was changed",
    "code.no_repository": "under no version control",
    "code.no_commit": "in a repository without a commit yet",
    "code.unrecorded": "not recorded",
    "code.hashed": "{state}; {files} of source known by hash",
    "code.states": "{n} states of it: {states}",
    "code.not_yet": "not known yet",
    "count.code_file": "{n} file|{n} files",
}

DECISION_TEXTS_EN = {
    "decision.title": "Decision report: {campaign}",
    "decision.made": "{at} · Muster {version} · code {code} · {folder}",
    "decision.commits": "{n} commits: {commits}",
    "decision.code_known": "{code} (known for {k} of {n} cells)",
    # verdict
    "verdict.supported": "RECOMMEND {config}: on {column} it is better than {baseline} by {gain}; the difference is "
    "significant as declared ({p}, threshold {threshold}){limit}.",
    "verdict.keeps": ", and it keeps the limit {rule} ({cost})",
    "candidate.feasible": "feasible candidate",
    "candidate.any": "candidate",
    "baseline.itself": "the baseline",
    "baseline.named": "the baseline ({name})",
    "verdict.baseline_infeasible": "RECOMMEND {config}: {baseline} breaks the limit {rule} ({broken}), and {config} "
    "keeps it ({kept}), with {level} % confidence. {price}",
    "verdict.inside_delta": "EQUIVALENT: on {column} every {candidate} ({configs}) is equal enough to {baseline}: the "
    "{level} % interval of each difference lies inside ±{delta}{unsafe}.",
    "verdict.none_left": "KEEP_BASELINE: no candidate can replace {baseline}: {reasons}{limit}.",
    "verdict.limit_open": "; that the baseline keeps the limit {rule} is not shown",
    "out.worse": "significantly worse on {column}: {configs}",
    "out.infeasible": "over the limit {rule}: {configs}",
    "verdict.not_supported": "NOT_ENOUGH_EVIDENCE: on {column} no {candidate} is significantly better than {baseline} "
    "(nearest: {config}, gain {gain}, {p}, threshold {threshold}){unsafe}; not significant is not equal.",
    "verdict.unsafe": ", and the baseline itself breaks the limit {rule}",
    "verdict.no_look": "So many seeds are no declared look: alpha does not cover it.",
    "verdict.proxy": "Mind that {split} is a proxy: {note}.",
    "cost.at_most": "mean {mean}, at most {bound}",
    "cost.at_least": "mean {mean}, at least {bound}",
    "price.loss": "Price: its {column} is {by} {way} ({level} % interval of the difference {interval}); the loss is "
    "at most {loss}, less than the {delta} that you declared to matter.",
    "price.gain": "It costs nothing on {column}: {by} {way} ({level} % interval of the difference {interval}), and a "
    "loss is at most {loss}, less than the {delta} that you declared to matter.",
    "way.lower": "lower",
    "way.higher": "higher",
    "verdict.all_worse": "NOT_ENOUGH_EVIDENCE: on {column} every {candidate} is significantly worse than {baseline} ("
    "{configs}), so none is recommended{unsafe}.",
    "verdict.no_spread": "NOT_ENOUGH_EVIDENCE: on {column} the seeds show no spread, so the declared test can't be "
    "made (nearest: {config}, gain {gain}){unsafe}.",
    "verdict.none_feasible": "NOT_ENOUGH_EVIDENCE: no candidate is shown to keep the limit {rule} ({standings}), so "
    "none can be recommended.",
    "verdict.nothing_to_compare": "NOT_ENOUGH_EVIDENCE: there is nothing to compare; it takes results on {column} of "
    "{baseline} and of at least one candidate.",
    "verdict.too_few_seeds": "NOT_ENOUGH_EVIDENCE: {seeds} per config, and nothing is recommended on fewer than "
    "{least}.",
    "verdict.too_few_costs": "NOT_ENOUGH_EVIDENCE: {seeds} per config on {column}, and nothing is recommended on fewer "
    "than {least}.",
    "verdict.missing": "INCOMPLETE: {missing} ({k} of {n} that carry results {k:is|are} there), so no verdict is "
    "drawn: {cells}.",
    "verdict.missing_cell": "{cell} ({state}: {reason})",
    "verdict.flags": "INVALID: this is not a result; {errors}: {flags}.",
    "verdict.more_flags": "{first}; and {n} more",
    "verdict.undeclared": "No verdict: no procedure was declared before the runs (decision: in campaign.yaml), so "
    "none is drawn after them.",
    "gain": "{gain} ({level} % interval {interval})",
    "gain.inline": "{gain}, {level} % interval {interval}",
    "gain.no_interval": "{gain}, without an interval",
    "p.equals": "Welch p = {p}",
    "p.below": "Welch p < {p}",
    "p.none": "no Welch p, as there is no spread",
    "fit.question": "Enough to decide on?",
    "fit.RECOMMEND": "Yes, within the declared limits.",
    "fit.EQUIVALENT": "Yes, within the declared limits.",
    "fit.KEEP_BASELINE": "Yes, within the declared limits: nothing that was tried replaces the baseline.",
    "fit.NOT_ENOUGH_EVIDENCE": "No: the evidence does not carry a decision yet.",
    "fit.INCOMPLETE": "No: the matrix has holes.",
    "fit.INVALID": "No: these numbers are not a result.",
    "fit.undeclared": "No: without a declared procedure these tables describe, they do not decide.",
    "fit.no_look": "No, not as declared: this is no declared look, and alpha is spent by those that are.",
    # sections
    "section.rests": "What it rests on",
    "section.matrix": "Matrix",
    "section.table": "Key table",
    "section.compare": "Comparison with the baseline",
    "section.safety": "Safety",
    "section.flags": "Red flags",
    "section.change": "What would change the verdict",
    "section.next": "Cheapest next step",
    "section.declared": "Declared: procedure, proxies, limits",
    "section.figures": "Figures",
    "section.evidence": "Evidence chain",
    "invalid.caution": "INVALID: these numbers are here to be looked into, not to be cited.",
    # seeds
    "seeds.none": "At least one config has no result on {column}; it can't be judged.",
    "seeds.single": "{seeds} per config: a single run. It shows no spread and allows no comparison.",
    "seeds.smoke": "{seeds} per config: a smoke test. It shows that the runs work, not which config is better.",
    "seeds.preliminary": "{seeds} per config: preliminary, no ranking.",
    "seeds.declared": "{seeds} per config; not significant is not equal.",
    "seeds.thumb": "{seeds} per config: only differences of {sd} sd or more are visible; not significant is not equal "
    "(one comparison, alpha .05, power .8).",
    "seeds.range": "{low} to {high} training seeds",
    "seeds.unequal": "The configs have {low} to {high} seeds on {column}; the next sentence goes by the fewest.",
    "seeds.unequal_no_plan": "The configs have {low} to {high} seeds; the next sentence goes by the fewest.",
    "seeds.no_look": "{seeds} per config: this is no declared look (looks at {looks} {last:seed|seeds}). alpha = "
    "{alpha} is spent by the declared looks and does not cover another.",
    "seeds.detectable": "With {n} {n:seed|seeds} per config a true difference of {difference} on {column} ({ratio} sd) "
    "is found with {power} % power, by the declared alpha, looks and candidates (sd {seen} over all configs; {sd} "
    "assumed, to be on the safe side). Smaller ones are missed more often.",
    "seeds.replicate": "A replicate is a training seed. Episodes are averaged inside each config, seed and split "
    "before anything else, and are never counted as n.",
    # comparison
    "compare.difference": "difference on {column}",
    "compare.p": "p (Welch)",
    "compare.threshold": "threshold (Holm)",
    "compare.exact": "p (exact permutation)",
    "compare.g": "g (Hedges)",
    "compare.improvement": "P(improvement)",
    "compare.reading": "reading",
    "compare.evidence": "evidence",
    "compare.caption": "Candidates against {baseline} (k/N = {seeds}) on {column}, candidate minus baseline",
    "reading.supported": "significantly better",
    "reading.worse": "significantly worse",
    "reading.vetoed": "not significant: the exact test disagrees",
    "reading.open": "not significant after correction",
    "reading.open_better": "better by about {by}, not significant after correction",
    "reading.open_worse": "worse by about {by}, not significant after correction",
    "reading.equal": "equal enough: inside ±{delta}",
    "reading.no_loss": "a loss of {delta} or more is excluded",
    "reading.unjudged": "not judged",
    "reading.few": "not judged: fewer than {least} seeds",
    "exact.agrees": "{p}, agrees",
    "exact.vetoes": "{p}, vetoes",
    "exact.informs": "{p}, informs only",
    "compare.sentence": "{config} against {baseline} on {column}: difference {difference}; {p}, threshold "
    "{threshold}: {reading}.",
    "compare.note_test": "Welch's t test, two-sided; Holm over {candidates}; alpha = {alpha}, divided by {looks}. "
    "Intervals: {level} %.",
    "compare.note_exact_informs": "The exact permutation test must agree where it can. With {n} against {m} "
    "{m:seed|seeds} its smallest possible p is {least}, and the strictest threshold is {strictest}: here it informs "
    "and does not veto.",
    "compare.note_exact_vetoes": "The exact permutation test must agree where it can. With {n} against {m} "
    "{m:seed|seeds} its smallest possible p is {least}, and the strictest threshold is {strictest}: here it can veto.",
    "compare.note_intervals": "Each interval stands for itself, without Holm and looks; the test is stricter. So an "
    "interval may leave out 0 where the difference is not significant.",
    "choice.best_mean": "{rivals} would do as well: {config} has the best mean on {column}, but they were not "
    "compared with each other.",
    "compare.note_size": "g: the difference in pooled sd. P(improvement): how often a seed of the candidate does "
    "better than one of the baseline, ties counting half.",
    "compare.none": "There is nothing to compare on {column}.",
    "compare.no_plan": "No baseline was declared, so nothing is compared.",
    "compare.others": "Other columns: difference from {baseline} with its Welch 95 % interval, estimates only",
    # safety
    "safety.none": "No limit is declared, so nothing is said about safety.",
    "safety.caption": "Whether the mean keeps the limit {rule}",
    "safety.standing": "standing",
    "safety.mean": "mean",
    "safety.lower": "lower bound",
    "safety.upper": "upper bound",
    "safety.keep": "seeds that keep it",
    "safety.share": "seeds that keep it, at least",
    "safety.worst": "worst seed",
    "safety.worst_seed": "{value} (seed {seed})",
    "safety.note_bounds": "Bounds of the mean: one-sided, and together sure at {level} % over {candidates} and {looks}"
    " (each bound of a candidate at {each} %). Feasible and infeasible are shown by them; undetermined is neither.",
    "safety.note_lognormal": "{configs}: all values are positive; each bound is the wider of Student's t and the "
    "log-normal one.",
    "safety.note_t": "{configs}: values of either sign; Student's t.",
    "safety.note_cap": "{configs}: with costs of 0, or without any spread, only the declared cap of {cap} bounds what "
    "was not seen: the bound counts the share of seeds that so many can't exclude at the cap, and the others at the "
    "worst one seen.",
    "safety.note_no_cap": "{configs}: costs of 0, or seeds that are all alike, say nothing about rare bad ones. "
    "Without a declared cap (cap: beside the limit) feasible can't be shown.",
    "safety.note_over_cap": "{configs}: a value lies beyond the declared cap of {cap}, so the cap proves nothing. "
    "Correct cap: beside the limit.",
    "safety.note_share": "Seeds that keep it, at least: of all seeds that could be trained, by Clopper and Pearson's "
    "one-sided 95 % bound. After five of five, failures of up to 45 % of seeds are still not excluded.",
    "safety.note_skewed": "Costs are skewed: a mean and its bounds say little about rare large values. See the worst "
    "seed, too.",
    "safety.note_skewed_min": "Such values are often skewed: a mean and its bounds say little about rare small ones. "
    "See the worst seed, too.",
    "safety.sentence": "{config} is {standing} on {rule}: mean {mean}, one-sided bounds {lower} and {upper}; {keep} "
    "of {n} {n:seed|seeds} {keep:keeps|keep} it{share}; worst seed {worst}.",
    "safety.proves": ", so that with 95 % confidence at least {share} % of all seeds do, and failures of up to {fail} "
    "% of seeds are not excluded",
    "safety.sentence_few": "{config} is {standing} on {rule}: {keep} of {n} {n:seed|seeds} {keep:keeps|keep} it; fewer "
    "than two seeds have no bounds.",
    "standing.FEASIBLE": "feasible",
    "standing.INFEASIBLE": "infeasible",
    "standing.UNDETERMINED": "undetermined",
    "dominates.yes": "{config} dominates {baseline}: it is better on {column} and on {limit}, and both differences "
    "are supported.",
    "dominates.score": "{config} does not dominate {baseline}: it is better on {column}, but no improvement on "
    "{limit} is supported (difference {difference}).",
    "dominates.cost": "{config} does not dominate {baseline}: it is better on {limit}, but no improvement on {column} "
    "is supported (difference {difference}).",
    "dominates.neither": "{configs}: no significant improvement over {baseline}, neither on {column} nor on {limit}.",
    "dominates.few": "Whether {configs} dominate {baseline} is not judged on fewer than {least} seeds.",
    "dominates.not_judged": "Whether a config dominates the baseline is not judged: there is no verdict to rest it on.",
    # flags
    "flags.none": "None was raised.",
    "flags.kind": "**{level}** `{code}`: {meaning}",
    "flags.cells": "Cells: {cells}.",
    "flags.more": "{n} more of {code}: the decision report has them all.",
    # what would change it
    "change.missing": "The missing cells. Once they are done, the declared procedure is applied as it stands.",
    "change.flags": "The causes behind the ERROR flags. Until they are removed, more seeds only add to numbers that "
    "may be wrong.",
    "change.undeclared": "A procedure that is declared before further seeds run, and judged on those. Declared now, "
    "it would be chosen with these numbers in view.",
    "change.p": "{config}: {p}, threshold {threshold}.",
    "left_out.holds": "With any one seed left out it still holds: at worst {worst} (without seed {seed} of {whose}).",
    "left_out.one": "Without seed {seed} of {whose} it would not hold ({worst}); without any other single seed it "
    "would.",
    "left_out.several": "It hangs on single seeds: without one of {k} of them it would not hold; the worst is seed "
    "{seed} of {whose} ({worst}).",
    "left_out.never": "With one seed fewer it would not be shown, whichever is left out (at worst {worst}, without "
    "seed {seed} of {whose}).",
    "change.room": "{config}: the bound of its mean {column} is {bound}, the limit {limit}. With the bound beyond the "
    "limit, it would no longer be feasible.",
    "change.baseline": "{config}: the bound of its mean {column} is {bound}, the limit {limit}. With the bound within "
    "the limit, it would no longer be infeasible, and {chosen} would have to be better, not only as good.",
    "change.out": "{config}: the bound of its mean {column} is {bound}, the limit {limit}. With the bound within the "
    "limit, it would no longer be infeasible.",
    "change.loss": "{config}: its loss on {column} is at most {loss}. It would no longer be recommended if that came "
    "to {delta} or more.",
    "change.widest": "The widest interval of the difference is that of {config}, {interval}, inside ±{delta}. With a "
    "delta of {need} or less, it would not be EQUIVALENT.",
    "change.recommend": "RECOMMEND {config} takes a gain with a Welch p of {threshold} or less. Now: gain {gain}; {p}.",
    "change.unsafe": "{config} is infeasible on {rule}: however good its {column}, it is not recommended.",
    "change.open_cost": "{config} is undetermined on {rule}: the bounds of its mean are {lower} and {upper}. Feasible "
    "takes the whole range within the limit.",
    "change.few": "{config} is undetermined on {rule}: fewer than two seeds have no bounds.",
    "change.no_cap": "{config} is undetermined on {rule}: with costs of 0, or without any spread, feasible can only "
    "be shown by a declared cap (cap: beside the limit).",
    "change.over_cap": "{config} is undetermined on {rule}: a value lies beyond the declared cap. Correct cap: beside "
    "the limit.",
    "change.worse": "{config} is significantly worse than {baseline} on {column}: {difference}. More seeds are not "
    "expected to turn this.",
    "change.equivalent": "EQUIVALENT takes {level} % intervals inside ±{delta} for every {candidate}. The widest now "
    "is {interval}, of {config}.",
    "change.no_delta": "EQUIVALENT can't be reached: no delta is declared.",
    "change.no_delta_unsafe": "Without a declared delta, EQUIVALENT can't be reached, nor can an infeasible baseline "
    "be replaced by a config that is only as good.",
    "change.replace": "As {baseline} is infeasible, it is enough for {config} to exclude a loss of {delta} or more. "
    "Its loss is at most {loss}.",
    "change.seeds": "RECOMMEND takes at least {least} seeds of the baseline and of {config}. The fewest now: {n}.",
    # next step
    "next.flags": "Not more seeds: find the causes of the ERROR flags, mend them, and run the cells named there again.",
    "next.missing": "Run the missing cells and nothing else (muster up): {pairs}{price}.",
    "next.failed": "Seeds on which a config failed can't be left out: {cells}. Declare them again if they are not, "
    "mend what they died of and run them again (muster retry), or report the rate of failures as a result of its own.",
    "next.unread": "The commands of these cells ended well, and their results can't be read: {cells}. Mend results: in "
    "campaign.yaml and let muster up read them again; nothing is run for that.",
    "next.lost": "Bring back what is lost, or say why it has nothing to do with the result: {cells}. With muster flag "
    "accept {code} --because TEXT the verdict is drawn without them, and they stay in N.",
    "next.none": "No further seed is needed for this verdict.",
    "next.undeclared": "Declare decision: in campaign.yaml before any further seed runs.",
    "next.to_least": "{more} ({configs}), to have {least} each{price}.",
    "next.more": "{more} ({configs}), to have {n} each: so many show a difference of delta = {delta} with {power} % "
    "power{price}.",
    "next.look": "{n} {n:seed is|seeds are} no declared look ({looks}): declare the look before they run.",
    "next.left": "{left} of the budget is left.",
    "left.some": "{left} is left",
    "left.none": "nothing is left of the budget",
    "next.over": "Not resolvable; the detectable difference is {affordable} with the money left, and {detectable} "
    "with the seeds there are. To see delta = {delta}, {n} seeds each would be needed ({configs}; {more} more in "
    "all){price}; {left}.",
    "next.over_now": "Not resolvable; the detectable difference is {detectable}, with the seeds there are. To see "
    "delta = {delta}, {n} seeds each would be needed ({configs}; {more} more in all){price}; {left}.",
    "next.never": "Not resolvable; the detectable difference is {detectable}, with the seeds there are. At this "
    "spread, not even a thousand seeds each would show delta = {delta}.",
    "next.enough": "No more seeds for {column}: those there are show a difference of delta = {delta} with {power} % "
    "power. What is open is named above.",
    "next.no_contender": "More seeds are not expected to change the verdict: no candidate is left that may be both "
    "feasible and better.",
    "next.no_delta": "No delta is declared, so no number of seeds is given. With the seeds there are, the detectable "
    "difference on {column} is {detectable}.",
    "next.no_delta_yet": "No delta is declared, so no number of seeds is given; and the seeds there are show no "
    "spread to compute a detectable difference from.",
    "next.no_spread": "No number of seeds can be given: the seeds there are show no spread to plan with.",
    "price.hours": "; about {time} of training and evaluation",
    "price.money": "; about {time} of training and evaluation, {money}",
    "most.hours": "; at most about {time} of training and evaluation",
    "most.money": "; at most about {time} of training and evaluation, {money}",
    # declared
    "declared.primary": "Primary metric: {column}, {direction} is better. Baseline: {baseline}.",
    "declared.limit": "Limit: {rule}, on the mean.",
    "declared.no_limit": "No limit is declared.",
    "declared.delta": "The smallest difference that matters (delta): {delta}.",
    "declared.no_delta": "No smallest difference that matters (delta) is declared.",
    "declared.checkpoint.last": "Evaluated checkpoint: the last one of each training.",
    "declared.checkpoint.best": "Evaluated checkpoint: the best one of each training, by {metric}.",
    "declared.test": "alpha = {alpha} for all looks together, looks at {looks} {last:seed|seeds}, power {power}.",
    "declared.proxy": "Split {split} is a proxy: {note}",
    "uncurved.told": "There is no learning curve of {metric}{cells}: {why}.",
    "uncurved.cells": " for {cells}",
    "uncurved.key": "{path}, which it is read from, has no {name} over steps",
    "uncurved.name": "no log that progress: names has a key that is called so",
    "uncurved.log": "progress: names no log with steps",
    "declared.resumed": "{cell}: {text}.",
    "declared.split_note": "Split {split}: {note}",
    "declared.no_proxy": "No split is declared to be a proxy. What a split really measures is not checked by Muster: "
    "{splits}.",
    "declared.config_note": "Config {config}: {note}",
    "declared.scope": "Nothing is said about tasks, step budgets or configs outside of this matrix.",
    "declared.none": "No decision: section in campaign.yaml.",
    # evidence
    "evidence.about": "Each claim above carries a mark. The command beside it leads from the claim to its attempts, "
    "files, hashes and code.",
    "evidence.id": "mark",
    "evidence.claim": "claim",
    "evidence.cells": "cells",
    "evidence.columns": "columns",
    "evidence.command": "command",
    "claim.table": "{caption}: the numbers of the table.",
    "claim.matrix": "{k} of {n} {n:cell that carries|cells that carry} results {k:is|are} there; {missing}.",
    "claim.matrix_whole": "{n:The one declared cell that carries results is|All {n} declared cells that carry results "
    "are} there.",
}
