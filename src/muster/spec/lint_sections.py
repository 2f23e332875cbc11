"""Decision, report, loop, finish: the names in them must stand for something."""

from __future__ import annotations

from collections.abc import Sequence

from muster.model.variant import BASE, DEFAULT, PERSON, SEARCH
from muster.rules.config_paths import PathError, parse_config_path
from muster.rules.edits import EditError, parse_edit
from muster.rules.expressions import MetricNode, parse_expression
from muster.rules.metric_summary import better_direction_of_key
from muster.rules.rank_variants import single_key_of_expression
from muster.spec.lint_context import LintContext, written_values
from muster.spec.lint_jobs import SHELL_WORDS
from muster.spec.model_decision_loop_finish import Limit, Loop, Primary, Prune, Search
from muster.spec.yaml_tree import NodePath, shorten_text
from muster.text.command_template import list_placeholders, split_shell_words

KEEP_HINT = 'add `keep: {by: last("eval/loss"), better: lower}`'
PROPOSER_KEYS = {"rules": ("use", "rules", "default"), "a search": ("search",), "a function": ("propose",)}


def lint_sections(lint: LintContext) -> None:
    _lint_money(lint)
    _lint_logs(lint)
    _lint_decision(lint)
    _lint_report_columns(lint)
    _lint_loop(lint)
    _lint_finish(lint)


def _lint_money(lint: LintContext) -> None:
    money = lint.model.money
    if money and money.budget == 0:
        hint = "write what may be spent, or leave `budget` out"
        lint.warn(("money", "budget"), "with a budget of 0 no cell can ever start", hint)


def _lint_logs(lint: LintContext) -> None:
    """A mean over a log whose middle may be gone would be a mean of something else."""
    for name, job in lint.model.jobs.items() if lint.model.logs else ():
        for result, asked in job.results.items():
            if asked.stdout is not None and asked.reduce != "last":
                hint = "use `reduce: last`, read it from a file that the run writes, or leave `logs:` out"
                lint.add(("jobs", name, "results", result), "`logs: {max: ...}` may cut what this is read from", hint)


def _lint_named_job(lint: LintContext, path: NodePath, name: str) -> None:
    if name not in lint.jobs:
        lint.unknown(path, f"there is no job '{name}'", name, lint.jobs)


def _lint_decision(lint: LintContext) -> None:
    decision = lint.model.decision
    if decision is None:
        return
    _lint_metric(lint, ("decision", "primary"), decision.primary)
    if decision.limit:
        _lint_metric(lint, ("decision", "limit"), decision.limit)
    _lint_config_value(lint, ("decision", "baseline"), decision.baseline)
    for config in decision.factors:
        _lint_config_value(lint, ("decision", "factors", config), config, key=True)
    best = None if isinstance(decision.checkpoint, str) else decision.checkpoint.best
    if best is not None and best not in lint.results():
        lint.unknown(("decision", "checkpoint", "best"), f"no job has a result '{best}'", best, list(lint.results()))


def _lint_metric(lint: LintContext, path: NodePath, asked: Primary | Limit) -> None:
    metric, split = asked.metric, asked.split
    jobs = lint.results().get(metric)
    if jobs is None:
        lint.unknown((*path, "metric"), f"no job has a result '{metric}'", metric, list(lint.results()))
        return
    if asked.job is not None and asked.job not in jobs:
        lint.unknown((*path, "job"), f"no job '{asked.job}' has a result '{metric}'", asked.job, jobs)
        return
    jobs = [job for job in jobs if asked.job in (None, job)]
    if other := _axes_besides_usual(lint, jobs):
        what = f"'{metric}' has the axes {', '.join(other)} beside config, seed and split"
        lint.add((*path, "metric"), what, "the decision compares configs on one split: give each its own job")
        return
    with_split = [job for job in jobs if job in lint.model.jobs and "split" in (lint.model.jobs[job].axes or ())]
    meant = with_split if split is not None else jobs
    if len(meant) > 1:
        hint = f"add `job:`, one of {', '.join(meant)}"
        lint.add(path, f"'{metric}' is a result of {', '.join(meant)}: say which of them counts", hint, key=True)
    elif split is None:
        if len(with_split) == len(jobs) and len(lint.values("split")) > 1:
            hint = f"add `split:`, one of {', '.join(lint.values('split'))}"
            lint.add(path, f"say on which split '{metric}' counts", hint, key=True)
    elif split not in lint.values("split"):
        lint.unknown((*path, "split"), f"axis 'split' has no value {shorten_text(split)}", split, lint.values("split"))
    elif not with_split and not any(lint.wrong_below(("jobs", job)) for job in jobs):
        what = f"'{metric}' is a result of '{jobs[0]}', which has no axis 'split'"
        lint.add((*path, "split"), what, "remove `split`, or add the axis to the job")


def _axes_besides_usual(lint: LintContext, jobs: Sequence[str]) -> list[str]:
    axes = [axis for job in jobs if job in lint.model.jobs for axis in lint.model.jobs[job].axes or ()]
    return [axis for axis in dict.fromkeys(axes) if axis not in ("config", "seed", "split")]


def _lint_config_value(lint: LintContext, path: NodePath, name: str, *, key: bool = False) -> None:
    if "config" not in lint.axes:
        lint.add(path, "there is no axis 'config' to compare", "name the axis of what is compared `config`", key=key)
    elif name not in lint.values("config"):
        lint.unknown(path, f"axis 'config' has no value {shorten_text(name)}", name, lint.values("config"), key=key)


def _lint_report_columns(lint: LintContext) -> None:
    for index, column in enumerate(lint.model.report.columns if lint.model.report else ()):
        path: NodePath = ("report", "columns", index)
        head, slash, metric = column.rpartition("/")
        jobs = lint.results().get(metric)
        splits = lint.values("split")
        if not slash:
            lint.add(path, f"expected SPLIT/RESULT or JOB/RESULT, found {shorten_text(column)}", "as in ood/score")
        elif head not in lint.jobs and head not in splits:
            lint.unknown(
                path, f"{shorten_text(head)} is neither a job nor a value of axis 'split'", head, [*splits, *lint.jobs]
            )
        elif jobs is None:
            lint.unknown(path, f"no job has a result '{metric}'", metric, list(lint.results()))
        elif head in lint.jobs and head not in splits and "split" in (lint.model.jobs[head].axes or ()):
            lint.add(path, f"job '{head}' has splits", f"write {' or '.join(f'{each}/{metric}' for each in splits)}")
        elif head in lint.jobs and head not in splits and head not in jobs:
            lint.add(path, f"job '{head}' has no result '{metric}'", f"'{metric}' is a result of {', '.join(jobs)}")


def _lint_loop(lint: LintContext) -> None:
    loop = lint.model.loop
    if loop is None:
        return
    _lint_named_job(lint, ("loop", "job"), loop.job)
    if loop.repeats > 1:
        _lint_repeats(lint, loop)
    _lint_proposer(lint, loop)
    _lint_better(lint, loop)
    _lint_rule_names(lint, loop)
    if loop.stop.no_gain is not None and loop.keep is None and not lint.wrong_below(("loop", "keep")):
        what = "a gain can't be told: nothing says which of two runs is better"
        lint.add(("loop", "stop", "no_gain"), what, KEEP_HINT)
    if loop.prune:
        _lint_prune(lint, loop, loop.prune)
    if loop.search:
        _lint_search(lint, loop, loop.search)


def _lint_rule_names(lint: LintContext, loop: Loop) -> None:
    for index, rule in enumerate(loop.rules):
        if rule.name is not None and (rule.name in (BASE, DEFAULT, PERSON) or rule.name.startswith(SEARCH)):
            what = (
                f"{shorten_text(rule.name)} can't be the name of a rule: the lineage calls variants so that "
                "no rule made"
            )
            lint.add(("loop", "rules", index, "name"), what, "choose another name")


def _lint_repeats(lint: LintContext, loop: Loop) -> None:
    """Runs of one config with nothing to tell them apart are one run, paid several times."""
    place: NodePath = ("loop", "repeats")
    if "seed" in lint.model.axes:
        lint.add(place, "there is an axis 'seed' already", "give it as many values, and leave `repeats` out")
        return
    job = lint.model.jobs.get(loop.job)
    if job is None or "seed" in lint.axes or lint.wrong_below(("jobs", loop.job)):
        return
    texts = [text for words in (job.command, job.resume, job.within) if words for text in words.texts]
    axes = [axis for axis in job.axes or () if axis in lint.model.axes]
    texts += [each.settings.args for axis in axes for each in written_values(lint.model, lint.document, axis)]
    names = {name for text in texts for name in list_placeholders(text)}
    if (
        names & {"seed", "cell"}
        or "seed" in list_placeholders(job.output)
        or any("MUSTER_CELL" in text for text in texts)
    ):
        return
    what = f"all {loop.repeats} runs of a variant would be the same run: job '{loop.job}' has no {{seed}}"
    hint = "put {seed} where the trainer takes its seed, as in `--seed {seed}`; or leave `repeats` out"
    lint.add(place, what, hint)


def _lint_better(lint: LintContext, loop: Loop) -> None:
    """`higher` is the default, and what is called a loss is better low."""
    if loop.keep is None or lint.whole.has(("loop", "keep", "better")):
        return
    node = parse_expression(loop.keep.by, "number")
    if (
        isinstance(node, MetricNode)
        and node.function not in ("count", "nan")
        and better_direction_of_key(node.key) == "lower"
    ):
        what = f"`better` is not said, so higher counts as better; by its name {loop.keep.by} is better low"
        lint.warn(("loop", "keep", "by"), what, "add `better: lower`, or `better: higher` if that is meant")


def _lint_prune(lint: LintContext, loop: Loop, prune: Prune) -> None:
    if loop.keep is None:
        if not lint.wrong_below(("loop", "keep")):
            lint.add(("loop", "prune"), "which of two runs is better is not said", KEEP_HINT, key=True)
    elif prune.key is None and single_key_of_expression(loop.keep.by) is None:
        what = f"{loop.keep.by} is not about one metric alone: say by which to prune"
        lint.add(("loop", "prune"), what, "add `key: eval/loss`", key=True)


def _lint_proposer(lint: LintContext, loop: Loop) -> None:
    """Rules, a search or a function: one of them."""
    written = [kind for kind in PROPOSER_KEYS if any(lint.whole.has(("loop", key)) for key in PROPOSER_KEYS[kind])]
    if len(written) > 1:
        keys = [key for kind in written for key in PROPOSER_KEYS[kind] if lint.whole.has(("loop", key))]
        what = (
            f"a loop proposes by {' or by '.join(written)}, not by both"
            if len(written) == 2
            else ("a loop proposes by rules, by a search or by a function, not by all of them")
        )
        lint.add(("loop", keys[-1]), what, f"keep one of {', '.join(f'`{key}`' for key in keys)}", key=True)
    proposed = loop.rules or loop.use or loop.default or loop.search or loop.propose
    if loop.rounds > 1 and not proposed and not lint.wrong_below(("loop",)):
        hint = "without them no round follows the first; or let a `search` or a function propose, or write `rounds: 1`"
        lint.add(("loop", "rounds"), f"{loop.rounds} rounds, and the loop has neither rules nor a default", hint)


def _lint_search(lint: LintContext, loop: Loop, search: Search) -> None:
    place: NodePath = ("loop", "search")
    if loop.keep is None:
        if not lint.wrong_below(("loop", "keep")):
            lint.add(place, "a search needs a score to go by", KEEP_HINT, key=True)
    elif loop.keep.top is not None:
        lint.warn(("loop", "keep", "top"), "a search learns from every run: `top` has no effect", "leave it out")
    if lint.whole.has(("loop", "variants_per_run")):
        hint = "`search: {trials_per_round: ...}` says how many a round has"
        lint.add(("loop", "variants_per_run"), "a search proposes for a round, not for each run", hint, key=True)
    if not search.space and not lint.wrong_below((*place, "space")):
        lint.add((*place, "space"), "the space is empty", "give it a path: {lr: {low: 1e-5, high: 1e-2, log: true}}")
    for path in search.space:
        try:
            parse_edit(f"{path}@set=1")
            parse_config_path(path)
        except (EditError, PathError) as error:
            lint.add((*place, "space", path), str(error).partition("; ")[0], "as in optimizer.lr", key=True)


def _lint_finish(lint: LintContext) -> None:
    finish = lint.model.finish
    for index, command in enumerate(finish.run if finish else ()):
        path: NodePath = ("finish", "run", index)
        try:
            words = split_shell_words(command)
        except ValueError:
            lint.add(path, "a quote is opened and never closed", "close it")
            continue
        odd = [word for word in words if word in SHELL_WORDS]
        if odd:
            what = f"no shell runs this: the program gets '{odd[0]}' as a word"
            lint.warn(path, what, "put the commands into a script, or write: sh -c '...'")
    if finish and finish.notify and not lint.model.notify and not lint.wrong_below(("notify",)):
        lint.warn(("finish", "notify"), "nobody is told: `notify:` is empty", "add `notify: [{run: COMMAND}]`")
