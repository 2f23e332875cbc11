"""English: the decision report."""

from __future__ import annotations

TEXTS = {
    "decision.title": "Decision report: {campaign}",
    "decision.made": "{at} · Muster {version} · code {code} · {folder}",
    "decision.no_code": "under no version control",
    "decision.commits": "{n} commits: {commits}",
    "decision.code_known": "{code} (known for {k} of {n} cells)",
    # verdict
    "verdict.supported": "RECOMMEND {config}: on {column} it is better than {baseline}, the baseline, by {gain}; the "
    "declared test supports this ({p}, threshold {threshold}), and {limit}.",
    "verdict.keeps": "it keeps the limit {rule}",
    "verdict.no_limit": "no limit was declared",
    "candidate.feasible": "feasible candidate",
    "candidate.any": "candidate",
    "verdict.baseline_infeasible": "RECOMMEND {config}: {baseline}, the baseline, breaks the limit {rule} (its mean is "
    "{bound}, with 95 % confidence), {config} keeps it, and its gain on {column} is {gain}, so that a loss of "
    "{delta}, the smallest that matters, is ruled out.",
    "verdict.inside_delta": "EQUIVALENT: on {column} the {level} % interval of the difference from {baseline} lies "
    "inside ±{delta} for every {candidate} ({configs}); none is better or worse by an amount that matters.",
    "verdict.not_supported": "NOT_ENOUGH_EVIDENCE: on {column} the declared test supports no gain of a {candidate} "
    "over {baseline} (nearest: {config}, gain {gain}, {p}, threshold {threshold}){unsafe}; not significant is not "
    "equal.",
    "verdict.unsafe": ", and the baseline itself breaks the limit {rule}",
    "verdict.all_worse": "NOT_ENOUGH_EVIDENCE: on {column} the declared test shows every {candidate} to be worse than "
    "{baseline} ({configs}), so none is recommended{unsafe}.",
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
    "at_least": "{bound} or more",
    "at_most": "{bound} or less",
    "fit.question": "Enough to decide on?",
    "fit.RECOMMEND": "Yes, within the declared limits.",
    "fit.EQUIVALENT": "Yes, within the declared limits.",
    "fit.NOT_ENOUGH_EVIDENCE": "No: the evidence does not carry a decision yet.",
    "fit.INCOMPLETE": "No: the matrix has holes.",
    "fit.INVALID": "No: these numbers are not a result.",
    "fit.undeclared": "No: without a declared procedure these tables describe, they do not decide.",
    "fit.few": "By the declared procedure, yes; but fewer than {least} seeds are preliminary.",
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
    "seeds.five": "{seeds} per config: only differences of {sd} sd or more are visible; not significant is not equal "
    "(one comparison, alpha .05, power .8).",
    "seeds.ten": "{seeds} per config: only differences of {sd} sd or more are visible; not significant is not equal "
    "(one comparison, alpha .05, power .8).",
    "seeds.range": "{low} to {high} training seeds",
    "seeds.unequal": "The configs have {low} to {high} seeds on {column}; the next sentence goes by the fewest.",
    "seeds.unequal_no_plan": "The configs have {low} to {high} seeds; the next sentence goes by the fewest.",
    "seeds.no_look": "{seeds} per config: this is no declared look (looks at {looks} {last:seed|seeds}). alpha = "
    "{alpha} is spent by the declared looks and does not cover another.",
    "seeds.detectable": "With the spread seen here (sd {sd}, taken with caution) and the declared alpha, looks and "
    "candidates, a true difference of {difference} on {column} is seen with {power} % power; smaller ones are missed "
    "more often.",
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
    "reading.supported": "better, supported",
    "reading.worse": "worse, shown by the test",
    "reading.vetoed": "not supported: the exact test disagrees",
    "reading.open": "no difference shown",
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
    "interval may leave out 0 where no difference is shown.",
    "choice.best_mean": "{rivals} would qualify too; {config} has the best mean on {column} of them. Whether it is "
    "better than they are was not tested.",
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
    "safety.share": "proven share",
    "safety.worst": "worst seed",
    "safety.worst_seed": "{value} (seed {seed})",
    "safety.note_bounds": "Bounds of the mean: one-sided 95 %, Student t. Feasible and infeasible are shown by them; "
    "undetermined is neither.",
    "safety.note_share": "Proven share: at least this share of all seeds that could be trained keeps the limit, by "
    "Clopper and Pearson's one-sided 95 % bound. Five of five prove only 0.549.",
    "safety.note_skewed": "Costs are skewed: a mean and its bounds say little about rare large values. See the worst "
    "seed, too.",
    "safety.note_skewed_min": "Such values are often skewed: a mean and its bounds say little about rare small ones. "
    "See the worst seed, too.",
    "safety.sentence": "{config} is {standing} on {rule}: mean {mean}, one-sided 95 % bounds {lower} and {upper}; "
    "{keep} of {n} {n:seed|seeds} {keep:keeps|keep} it{share}; worst seed {worst}.",
    "safety.proves": ", which proves a share of {share} only",
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
    "dominates.neither": "{configs}: neither the difference from {baseline} on {column} nor that on {limit} is "
    "supported as an improvement.",
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
    "change.p": "{config}: {p}, threshold {threshold}. With any one seed of the two configs left out, the largest p "
    "is {worst} (without seed {seed} of {whose}): {still}.",
    "change.still": "still under the threshold",
    "change.no_longer": "no longer under the threshold, so the verdict hangs on that seed",
    "change.room": "{config}: the 95 % bound of its mean {column} is {bound}, the limit {limit}. With the bound "
    "beyond the limit, it would no longer be feasible.",
    "change.baseline": "{baseline}: the 95 % bound of its mean {column} is {bound}, the limit {limit}. With the bound "
    "within the limit, it would no longer be infeasible, and {config} would have to be better, not only as good.",
    "change.loss": "{config}: its gain on {column} is {gain}. Should the interval reach {delta}, a loss that matters "
    "is no longer ruled out.",
    "change.widest": "The widest interval of the difference is that of {config}, {interval}, inside ±{delta}. With a "
    "delta of {need} or less, it would not be EQUIVALENT.",
    "change.recommend": "RECOMMEND {config} takes a gain with a Welch p of {threshold} or less. Now: gain {gain}; {p}.",
    "change.unsafe": "{config} is infeasible on {rule}: however good its {column}, it is not recommended.",
    "change.open_cost": "{config} is undetermined on {rule}: the 95 % bounds of its mean are {lower} and {upper}. "
    "Feasible takes the whole range within the limit.",
    "change.unknown_cost": "{config} is undetermined on {rule}: fewer than two seeds have no bounds.",
    "change.worse": "{config} is worse than {baseline} on {column} by the declared test: {difference}. More seeds are "
    "not expected to turn this.",
    "change.equivalent": "EQUIVALENT takes {level} % intervals inside ±{delta} for every {candidate}. The widest now "
    "is {interval}, of {config}.",
    "change.no_delta": "EQUIVALENT can't be reached: no delta is declared.",
    "change.no_delta_unsafe": "Without a declared delta, EQUIVALENT can't be reached, nor can an infeasible baseline "
    "be replaced by a config that is only as good.",
    "change.replace": "As {baseline}, the baseline, is infeasible, it is enough for {config} to rule out a loss of "
    "{delta}. Its gain is {gain}.",
    "change.seeds": "RECOMMEND takes at least {least} seeds of the baseline and of {config}. The fewest now: {n}.",
    # next step
    "next.flags": "Not more seeds: find the causes of the ERROR flags, mend them, and run the cells named there again.",
    "next.missing": "Run the missing cells and nothing else (muster up): {pairs}{price}.",
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
    "declared.proxy": "Split {split}: {note}",
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
