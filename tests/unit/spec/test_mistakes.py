"""One bad text, and exactly what a person sees: place, message, hint."""

from __future__ import annotations

import time

import pytest

from muster.model.errors import CampaignInvalid, Mistake
from muster.spec import read_campaign

HEAD = "muster: 1\ncampaign: c\n"
JOB = "jobs: {t: {axes: [], command: run}}\n"


def mistakes(text: str) -> list[Mistake]:
    try:
        return list(read_campaign(text, file="campaign.yaml", folder="/c").warnings)
    except CampaignInvalid as error:
        return list(error.mistakes)


SHORT = ("changes nothing in job", "reach no run", "go nowhere")  # commands here are shorter than any real one


def shown(text: str) -> list[str]:
    return [
        f"{item.line}:{item.column} {item.message}"
        for item in mistakes(text)
        if not any(words in item.message for words in SHORT)
    ]


NOTATION = [
    ("", "1:1 the file is empty"),
    ("# only a comment\n", "1:1 the file is empty"),
    ("jobs:\n\tt: 1\n", "2:1 a tab is used for indentation"),
    ("- a\n", "1:1 expected a mapping, found a list"),
    ("hello", "1:1 expected a mapping, found text 'hello'"),
    ("a: b: c\n", "1:5 this is not YAML: a value contains ': ', which begins a new key"),
    ("a: 'x\nb: 1\n", "1:4 this is not YAML: a quote is opened here and never closed"),
    ("a: [1, 2\nb: 3\n", "2:2 this is not YAML: a list that begins with [ is not closed or lacks a comma"),
    ("a: {out} x\n", "1:10 this is not YAML: there is text after the end of a value"),
    ("a: @x\n", "1:4 this is not YAML: a value may not begin with @"),
    ("a: \x01\n", "1:4 a control character (U+0001) stands in the file"),
    ("a: *x\n", "1:4 '*x' refers to '&x', which does not stand before it"),
    ("a: &x [*x]\n", "1:8 '*x' refers to '&x', which does not stand before it"),
    ("a: 1\n---\nb: 2\n", "2:1 a second document begins here"),
    ("[" * 60, "1:42 nested more than 40 levels deep"),
    ("muster: 2\nnonsense: 1\n", "1:9 the file has format version 2; this Muster reads version 1"),
]


@pytest.mark.parametrize(("text", "expected"), NOTATION)
def test_notation(text: str, expected: str) -> None:
    assert shown(text) == [expected]


TOP = [
    ("campaign: c\n" + JOB, "1:1 the key 'muster' is missing"),
    ("muster: one\ncampaign: c\n" + JOB, "1:9 muster: expected a whole number, found text 'one'"),
    (HEAD + "campaign: d\n" + JOB, "3:1 the key 'campaign' is written twice, first on line 2"),
    (HEAD + JOB + "slot: {}\n", "4:1 unknown key 'slot'"),
    (HEAD, "1:1 the key 'jobs' is missing"),
    (HEAD + "job: {}\n", "3:1 unknown key 'job'"),
    (HEAD + "jobs: {}\n", "3:1 there is no job"),
    (HEAD + "jobs:\n", "3:1 jobs: expected a mapping, found nothing"),
    (HEAD + JOB + "language: fr\n", "4:11 language: expected one of zh, en, found text 'fr'"),
    (HEAD + JOB + "env: {A: true}\n", "4:10 env.A: expected text or a number, found true"),
    (HEAD + JOB + "env: {A: }\n", "4:7 env.A: expected text or a number, found nothing"),
    (HEAD + JOB + "env: {A-B: 1}\n", "4:7 'A-B' can't be the name of an environment variable"),
    (HEAD + JOB + "env: {MUSTER_X: 1}\n", "4:7 MUSTER_X is Muster's own"),
    (HEAD + JOB + "env: {A: on}\n", "4:10 on is read as the text 'on'; YAML 1.1 readers take it for true"),
    (
        HEAD + JOB + "slots: {gpus: 2}\n",
        "4:15 slots.gpus: expected auto, a list of GPU indexes such as [0, 1], or 0, found the number 2",
    ),
    (HEAD + JOB + "slots: {gpus: [0, 0]}\n", "4:15 a GPU is listed twice"),
    (HEAD + JOB + "slots: {per_gpu: 0}\n", "4:18 slots.per_gpu must be at least 1, found 0"),
    (HEAD + JOB + "slots: {gpus: 0, cpus: 0}\n", "3:8 job 't' uses no GPU, and the campaign has no CPU slot"),
    (HEAD + JOB + "money: {price: -1}\n", "4:16 money.price must be at least 0, found -1"),
    (HEAD + JOB + "money: {budget: 10}\n", "4:8 a budget without a price can't be enforced"),
    (HEAD + JOB + "money: {at_cap: halt}\n", "4:17 money.at_cap: expected one of hold, stop, found text 'halt'"),
    (HEAD + JOB + "money: {since: 2026-02-22T02:00}\n", "4:16 2026-02-22T02:00 has no time zone"),
    (HEAD + JOB + "notify: [[]]\n", "4:10 notify.0: expected text or a mapping, found a list"),
    (HEAD + JOB + "finish: {shutdown: yes}\n", "4:20 finish.shutdown: expected true or false, found text 'yes'"),
    (HEAD + JOB + 'finish: {run: ["a \'b"]}\n', "4:16 a quote is opened and never closed"),
]


@pytest.mark.parametrize(("text", "expected"), TOP)
def test_top(text: str, expected: str) -> None:
    assert shown(text) == [expected]


AXES = [
    ("{seed: [1, '1']}", "3:18 axis value '1' gives the same cell name twice, first on line 3"),
    ("{seed: [1, 1]}", "3:18 axis value '1' is written twice, first on line 3"),
    ("{seed: [0.1, 0.10]}", "3:15 seed 0.1 is not a whole number|3:20 seed 0.10 is not a whole number"),
    ("{seed: [1, 1.0]}", "3:18 seed 1.0 is not a whole number"),
    ("{seed: [010]}", "3:15 axis value 010 is read as 10 here and otherwise by other readers"),
    ("{seed: [~]}", "3:15 an axis value is empty"),
    ("{seed: [1, '']}", "3:18 an axis value is empty"),
    ('{seed: [1, "a\\nb"]}', "3:18 axis value 'a\\nb' has a control character or line break"),
    ("{seed: [" + "x" * 201 + "]}", "3:15 an axis value of 201 bytes is too long, 200 fit"),
    ("{seed: []}", "3:8 axis 'seed' has no values"),
    ("{seed: 5}", "3:14 axes.seed: expected a list of values, or a mapping value -> settings, found the number 5"),
    ("{seed: {a: {arg: x}}}", "3:19 unknown key 'arg' in axes.seed.a"),
    ("{seed: {a: 5}}", "3:18 axes.seed.a: expected a mapping, found the number 5"),
    ("{seed: {a: {edits: [x]}}}", "3:27 'x' is no edit: it says no @set=, @mul= or @add="),
    ("{seed: [{a: 1}]}", "3:15 axes.seed.0: expected a value (text, a number, true or false), found a mapping"),
    ("{seed: [1], gpu: [0]}", "3:19 an axis can't be named 'gpu': {gpu} means something else"),
    ("{seed: [1], t: [0]}", "3:19 't' is the name of an axis and of a job"),
    ("{seed: [1], 1st: [0]}", "3:19 '1st' can't be the name of an axis"),
    (
        "{seed: {a: {proxy: x}}}",
        "3:19 seed a can't be a proxy: only a value of the axis 'split' stands for other data",
    ),
    ("{seed: {a: {proxy: [x]}}}", "3:26 axes.seed.a.proxy: expected text, found a list"),
    # warnings
    ("{seed: [no]}", "3:15 axis value no is read as the text 'no'; YAML 1.1 readers take it for false"),
    (
        "{seed: [2026-01-01]}",
        "3:15 axis value 2026-01-01 is read as the text '2026-01-01'; YAML 1.1 readers take it for a date",
    ),
    (
        "{seed: [1:30]}",
        "3:15 axis value 1:30 is read as the text '1:30'; YAML 1.1 readers take it for a number in base 60",
    ),
    (
        "{seed: [1_000]}",
        "3:15 axis value 1_000 is read as the text '1_000'; YAML 1.1 readers take it for the number 1000",
    ),
    ("{seed: [1], lr: [1]}", "3:19 axis 'lr' is used by no job"),
    (
        "{seed: [a b, a/b, 数据, .5, true, 'no', 1e-4, 1e+3]}",
        "3:29 seed .5 is not a whole number|3:33 seed true is not a whole number|3:45 seed 1e-4 is not a whole number|3:51 seed 1e+3 is not a whole number",
    ),
    ("{seed: {0: , 1: {}}}", ""),
]


@pytest.mark.parametrize(("axes", "expected"), AXES)
def test_axes(axes: str, expected: str) -> None:
    text = f"{HEAD}axes: {axes}\njobs: {{t: {{axes: [seed], command: run}}}}\n"
    assert "|".join(item for item in shown(text) if not item.startswith("4:")) == expected


def test_values_of_other_axes_may_be_anything_readable() -> None:
    text = (
        f"{HEAD}axes: {{lr: [1e-4, 0.1, .5, true, a b, a/b, 数据, 'no']}}\njobs: {{t: {{axes: [lr], command: run}}}}\n"
    )
    assert shown(text) == []


@pytest.mark.parametrize(("settings", "expected"), [
    ("{proxy: level 2 stands for another world}", ""),
    ("{note: the rooms of the training}", ""),
    ("{note: not a proxy}", ""),
    ("{proxy: ' '}", "3:29 the proxy of split ood is empty: what it stands for is not said"),
    ("{proxy: }", "3:22 axes.split.ood.proxy: expected text, found nothing"),
    ("{note: level 2 is a proxy}", "3:22 the note of split ood speaks of a proxy; a note is only a note, and reports "
     "don't call split ood a proxy"),
    ("{note: 分布外的代理}", "3:22 the note of split ood speaks of a proxy; a note is only a note, and reports "
     "don't call split ood a proxy"),
])  # fmt: skip
def test_a_split_that_stands_for_another(settings: str, expected: str) -> None:
    text = f"{HEAD}axes: {{split: {{ood: {settings}}}}}\njobs: {{t: {{axes: [split], command: run}}}}\n"
    assert "|".join(shown(text)) == expected


JOBS = [
    ("axes: [seed], comand: run", "4:26 unknown key 'comand' in jobs.t"),
    ("axes: [seed]", "4:8 'command' is missing in jobs.t"),
    ("command: run", "4:8 'axes' is missing in jobs.t"),
    ("axes: seed, command: run", "4:18 jobs.t.axes: expected a list, found text 'seed'"),
    ("axes: [sed], command: run", "4:19 there is no axis 'sed'"),
    ("axes: [seed, seed], command: run", "4:25 axis 'seed' is listed twice"),
    ("axes: [seed], command: ''", "4:35 the command is empty"),
    ("axes: [seed], command: []", "4:35 the command is empty"),
    ('axes: [seed], command: "a \'b"', "4:35 a quote in 'command' is opened and never closed"),
    ("axes: [seed], command: {out}", "4:35 jobs.t.command: expected text, found a mapping"),
    ("axes: [seed], command: 'run {sed}'", "4:40 unknown placeholder {sed}"),
    ("axes: [seed], command: 'run {split}'", "4:40 {split}: 'split' is not an axis of job 't'"),
    ("axes: [seed], command: 'run {split.args}'", "4:40 {split.args}: 'split' is not an axis of job 't'"),
    ("axes: [seed], command: 'run {steps}'", "4:40 {steps} is used, but job 't' has no steps"),
    ("axes: [seed], command: 'run {e.output}'", "4:40 {e.output}: job 't' does not need 'e'"),
    ("axes: [seed], command: 'run {last.checkpoint}'", "4:40 {last.checkpoint} has no value in a first attempt"),
    ("axes: [seed], command: 'run {config_file}'", "4:40 {config_file} has no value in job 't'"),
    ("axes: [seed], command: 'run {'", "4:35 a lone '{' in 'run {'"),
    ("axes: [seed], command: 'run {gpu}', uses: {gpu: 0}", "4:40 {gpu} has no value: job 't' uses no GPU"),
    ("axes: [seed], command: 'run {{x}} ${now:%Y} {seed.args} {out}{cell}'", ""),
    ("axes: [seed], command: run, shell: true, cwd: '{seed}'", "4:58 cwd takes no placeholders, found {seed}"),
    ("axes: [seed], command: [a, b], shell: true", "4:35 with `shell: true` the command is one text, found a list"),
    ("axes: [seed], command: run, output: 'o/{sed}'", "4:51 unknown placeholder {sed}"),
    ("axes: [seed], command: run, output: {out}", "4:48 jobs.t.output: expected text, found a mapping"),
    ("axes: [seed], command: run, artifacts: ['{x}']", "4:53 unknown placeholder {x}"),
    ("axes: [seed], command: run, steps: 1e5", "4:47 jobs.t.steps: expected a whole number, found the number 1e5"),
    ("axes: [seed], command: run, steps: 120_000", "4:47 jobs.t.steps: expected a whole number, found text '120_000'"),
    ("axes: [seed], command: run, steps: 010", "4:47 010 has a leading zero, which some readers take for octal"),
    ("axes: [seed], command: run, steps: '5'", "4:47 jobs.t.steps: expected a whole number, found text '5'"),
    ("axes: [seed], command: run, steps: abc", "4:47 jobs.t.steps: expected a whole number, found text 'abc'"),
    ("axes: [seed], command: run, steps: 0", "4:47 jobs.t.steps must be at least 1, found 0"),
    ("axes: [seed], command: run, grace: 60", "4:47 60 has no unit"),
    (
        "axes: [seed], command: run, grace: 1:30",
        "4:47 jobs.t.grace: expected a duration such as 30s, 45m, 12h, 2d or 1h30m, found text '1:30'",
    ),
    ("axes: [seed], command: run, timeout: 0s", "4:49 jobs.t.timeout must be more than 0, found 0s"),
    ("axes: [seed], command: run, mkdir: no", "4:47 jobs.t.mkdir: expected true or false, found text 'no'"),
    (
        "axes: [seed], command: run, on_stall: kill",
        "4:50 jobs.t.on_stall: expected one of notify, restart, found text 'kill'",
    ),
    ("axes: [seed], command: run, exclude: [{sed: 1}]", "4:51 'sed' is not an axis of job 't'"),
    ("axes: [seed], command: run, exclude: [{seed: 9}]", "4:57 axis 'seed' has no value '9'"),
    ("axes: [seed], command: run, exclude: [{}]", "4:50 an empty exclusion would leave out every cell"),
    ("axes: [seed], command: run, exclude: [{seed: 0}, {seed: 1}]", "4:40 job 't' has no cells: all are excluded"),
    ("axes: [seed], command: run, needs: [f]", "4:48 there is no job 'f'"),
    ("axes: [seed], command: run, needs: [t]", "4:48 job 't' needs itself"),
    ("axes: [seed], command: run, needs: [e]", "5:50 the needs go in a circle: t -> e -> t"),
    ("axes: [seed], command: run, output: runs", "4:48 t/0 and t/1 would have the same output"),
    (
        "axes: [seed], command: run, progress: [{jsonl: a, csv: b}]",
        "4:51 exactly one of jsonl, csv, wandb, tensorboard, stdout, files, checkpoint is needed, found 'jsonl' and 'csv'",
    ),
    (
        "axes: [seed], command: run, progress: [{step: a}]",
        "4:51 exactly one of jsonl, csv, wandb, tensorboard, stdout, files, checkpoint is needed, found none",
    ),
    (
        "axes: [seed], command: run, progress: [{stdout: 'a('}]",
        "4:60 not a regular expression: missing ), unterminated subpattern at position 1",
    ),
    ("axes: [seed], command: run, progress: [{stdout: a}]", "4:60 the regular expression has no group"),
    (
        "axes: [seed], command: run, progress: [{stdout: '(a)(b)'}]",
        "4:51 the regular expression has more than one group",
    ),
    ("axes: [seed], command: run, progress: [{stdout: 'a (\\d{3})'}]", ""),
    ("axes: [seed], command: run, progress: [{jsonl: a, every: 5}]", "4:69 5 has no unit"),
    (
        "axes: [seed], command: run, proof: {step: {min: 5}}",
        "4:48 the step can't be proved: no progress entry has a step",
    ),
    (
        "axes: [seed], command: run, progress: [{csv: p}], proof: {step: {min: x}}",
        "4:82 expected a number or '{steps}', found 'x'",
    ),
    (
        "axes: [seed], command: run, progress: [{csv: p}], proof: {step: {min: 5, within: 2}}",
        "4:93 2 is not a share of a whole",
    ),
    ("axes: [seed], command: run, results: {a: {json: r}}", "4:53 a result from json needs a key"),
    (
        "axes: [seed], command: run, results: {a: {key: r}}",
        "4:53 exactly one of json, jsonl, csv, npz, stdout is needed, found none",
    ),
    (
        "axes: [seed], command: run, results: {a: {csv: r, key: k, reduce: median}}",
        "4:78 jobs.t.results.a.reduce: expected one of last, mean, min, max, found text 'median'",
    ),
    (
        "axes: [seed], command: run, results: {a: {csv: r, key: k, reduce: {at: {best: b}}}}",
        "4:90 job 't' has no result 'b'",
    ),
    ("axes: [seed], command: run, uses: {cpu: 2}", "4:52 job 't' uses 2 CPU slots, the campaign has 1"),
    ("axes: [seed], command: run, cwd: ~/x", "4:45 '~' is not expanded"),
    # warnings
    ("axes: [seed], command: run, retry: {max: 50}", "4:53 50 retries repeat a failure more often than they fix it"),
    (
        "axes: [seed], command: run, grace: 1h, timeout: 1m",
        "4:60 timeout is shorter than grace: a run is stopped before its first progress is due",
    ),
    ("axes: [seed], command: a | b", "4:35 no shell runs this: the program gets '|' as a word"),
    ("axes: [seed], command: A=1 run", "4:35 no shell runs this: 'A=1' is taken for a program"),
    ("axes: [seed], command: run, resume: run", "4:40 resume is never used: no checkpoint is declared"),
]


@pytest.mark.parametrize(("job", "expected"), JOBS)
def test_jobs(job: str, expected: str) -> None:
    head = f"{HEAD}axes: {{seed: [0, 1], split: [id]}}\n"
    text = f"{head}jobs: {{t: {{{job}}},\n  e: {{axes: [seed, split], command: run, needs: [t]}}}}\n"
    assert "|".join(shown(text)) == expected


def test_names_of_jobs() -> None:
    text = HEAD + "jobs:\n  last: {command: a}\n  a b: {command: a}\n"
    assert shown(text) == [
        "4:3 a job can't be named 'last': {last.output} means something else",
        "5:3 'a b' can't be the name of a job",
    ]


def test_a_need_without_a_cell() -> None:
    text = HEAD + (
        "axes: {config: [a, b], seed: [0, 1]}\n"
        "jobs:\n"
        "  t: {axes: [config, seed], exclude: [{config: a, seed: 1}], command: a}\n"
        "  e: {axes: [config, seed], needs: [t], command: a}\n"
        "  p: {axes: [], needs: [t], command: 'a {t.output}'}\n"
    )
    assert shown(text) == [
        "6:37 e/a/1 needs a cell of 't' that does not exist",
        "7:41 {t.output} stands for 3 folders: a cell of 'p' needs 3 cells of 't'",
    ]


def test_a_glob_that_fits_two_cells() -> None:
    text = HEAD + (
        "axes: {config: [v2, v2_full], seed: [0, 1]}\n"
        "jobs:\n"
        "  t: {axes: [config, seed], command: a, output: 'runs/*_{config}_*_{seed}'}\n"
    )
    assert shown(text) == ["5:49 the output of t/v2/0 also fits what t/v2_full/0 writes"]
    assert shown(text.replace("[v2,", "[v2_base,")) == []


def test_a_glob_that_fits_two_of_many_cells() -> None:
    many = ", ".join(f"v{index}" for index in range(700))
    text = HEAD + (
        f"axes: {{config: [{many}, v7_full], seed: [0, 1]}}\n"
        "jobs:\n"
        "  t: {axes: [config, seed], command: a, output: 'runs/*_{config}_*_{seed}'}\n"
    )
    assert shown(text) == ["5:49 the output of t/v7/0 also fits what t/v7_full/0 writes"]


SECTIONS = [
    ("decision: {primary: {metric: scor, split: id, better: higher}, baseline: a}", "5:30 no job has a result 'scor'"),
    ("decision: {primary: {metric: score, better: higher}, baseline: a}", "5:12 say on which split 'score' counts"),
    (
        "decision: {primary: {metric: score, split: odd, better: higher}, baseline: a}",
        "5:44 axis 'split' has no value 'odd'",
    ),
    (
        "decision: {primary: {metric: score, split: ood, better: up}, baseline: a}",
        "5:57 decision.primary.better: expected one of higher, lower, found text 'up'",
    ),
    (
        "decision: {primary: {metric: score, split: ood, better: lower}, baseline: c}",
        "5:75 axis 'config' has no value 'c'",
    ),
    (
        "decision: {primary: {metric: score, split: ood, better: lower}, baseline: a, looks: [5, 5]}",
        "5:11 the looks must grow, from 1 on",
    ),
    (
        "decision: {primary: {metric: score, split: ood, better: lower}, baseline: a, alpha: 1}",
        "5:85 decision.alpha must be less than 1, found 1",
    ),
    (
        "decision: {primary: {metric: score, split: ood, better: lower}, baseline: a, factors: {c: {u: 1}}}",
        "5:88 axis 'config' has no value 'c'",
    ),
    (
        "decision: {primary: {metric: score, split: ood, better: lower}, baseline: a, limit: {metric: score, split: id}}",
        "5:85 a limit needs either 'max' or 'min'",
    ),
    (
        "decision: {primary: {metric: score, split: ood, better: lower}, baseline: a, limit: {metric: score, split: id, max: 2, cap: 2}}",
        "5:85 'cap' is 2: with 'max: 2' it has to be larger",
    ),
    (
        "decision: {primary: {metric: score, split: ood, better: lower}, baseline: a, limit: {metric: score, split: id, min: 2, cap: 3}}",
        "5:85 'cap' is 3: with 'min: 2' it has to be smaller",
    ),
    (
        "decision: {primary: {metric: score, split: ood, better: lower}, baseline: a, limit: {metric: score, split: id, max: 2, cap: much}}",
        "5:125 decision.limit.cap: expected a number, found text 'much'",
    ),
    (
        "decision: {primary: {metric: score, split: ood, better: lower}, baseline: a, checkpoint: best}",
        "5:90 decision.checkpoint: expected one of last, found text 'best'",
    ),
    ("report: {columns: [score]}", "5:20 expected SPLIT/RESULT or JOB/RESULT, found 'score'"),
    ("report: {columns: [odd/score]}", "5:20 'odd' is neither a job nor a value of axis 'split'"),
    ("report: {columns: [ood/cost]}", "5:20 no job has a result 'cost'"),
    ("report: {columns: [ood/score, t/score]}", "5:31 job 't' has splits"),
    ("loop: {job: u, base: [a], default: {edit: [a@set=1], reason: r}}", "5:13 there is no job 'u'"),
    ("loop: {job: t, base: [a], rounds: 2}", "5:35 2 rounds, and the loop has neither rules nor a default"),
    ("loop: {job: t, base: [a], rounds: 1}", ""),
    ("loop: {job: t, base: [a]}", ""),
    ("loop: {job: t, base: []}", "5:22 loop.base: the list is empty"),
    ("loop: {job: t, base: [a], rounds: 0}", "5:35 loop.rounds must be at least 1, found 0"),
    ("loop: {job: t, base: [a], rounds: three}", "5:35 loop.rounds: expected a whole number, found text 'three'"),
    (
        'loop: {job: t, base: [a], keep: {by: last("x"), better: max}}',
        "5:57 loop.keep.better: expected one of higher, lower, found text 'max'",
    ),
    (
        'loop: {job: t, base: [a], keep: {by: last("eval/loss")}}',
        '5:38 `better` is not said, so higher counts as better; by its name last("eval/loss") is better low',
    ),
    ('loop: {job: t, base: [a], keep: {by: last("eval/loss"), better: higher}}', ""),
    ('loop: {job: t, base: [a], keep: {by: -last("eval/loss")}}', ""),
    ('loop: {job: t, base: [a], keep: {by: count("eval/loss")}}', ""),
    ('loop: {job: t, base: [a], keep: {by: last("eval/success")}}', ""),
    (
        "loop: {job: t, base: [a], stop: {no_gain: 2}}",
        "5:43 a gain can't be told: nothing says which of two runs is better",
    ),
    ('loop: {job: t, base: [a], stop: {no_gain: 2}, keep: {by: last("eval/success")}}', ""),
    ('loop: {job: t, base: [a], stop: {target: last("eval/success") > 1}}', ""),
    (
        "loop: {job: t, base: [a], rules: [{when: 1 < 2, edit: [a@mul=2], reason: r, name: a person}]}",
        "5:83 'a person' can't be the name of a rule: the lineage calls variants so that no rule made",
    ),
    (
        "loop: {job: t, base: [a], rules: [{when: 1 < 2, edit: [a@mul=2], reason: r, name: 'search:tpe'}]}",
        "5:83 'search:tpe' can't be the name of a rule: the lineage calls variants so that no rule made",
    ),
    (
        "loop: {job: t, base: [a], rules: [{when: 1 < 2, edit: [a@mul=b], reason: r}]}",
        "5:56 'a@mul=b' is no edit: @mul needs a number, not 'b'",
    ),
    (
        "loop: {job: t, base: [a], rules: [{when: 1 < 2, edit: [a@div=2], reason: r}]}",
        "5:56 'a@div=2' is no edit: there is no @div",
    ),
    (
        "loop: {job: t, base: [a], rules: [{when: 1 < 2, edit: [a@add=2@mix=3], reason: r}]}",
        "5:56 'a@add=2@mix=3' is no edit: @add needs a number, not '2@mix=3'",
    ),
    (
        "loop: {job: t, base: [a], rules: [{when: last(x, edit: [a@add=2], reason: r}]}",
        "5:42 'last(x': character 6: last needs the key of a metric in quotes",
    ),
    (
        "loop: {job: t, base: [a], rules: [{when: lst(1), edit: [a@add=2], reason: r}]}",
        "5:42 'lst(1)': character 1: there is no function lst",
    ),
    ("loop: {job: t, base: [a], rules: [{when: 1 < 2, edit: [a@add=2]}]}", "5:35 'reason' is missing in loop.rules.0"),
    ("loop: {job: t, base: [a], search: {space: {lr: {low: 0, high: 1}}}}", "5:27 a search needs a score to go by"),
    ("loop: {job: t, base: [a], propose: rules}", "5:36 'rules' names no function"),
    (
        "loop: {job: t, base: [a], propose: 'a.b:f', use: act_ot}",
        "5:27 a loop proposes by rules or by a function, not by both",
    ),
    ("gates: {g: {job: u, read: {jsonl: a}, success: [{key: k, min: 1}]}}", "5:18 there is no job 'u'"),
    (
        "gates: {g: {job: u, read: {jsonl: a, csv: b}, tolerance: {a: -1}, act: kill, success: [{key: k, min: 1}]}}",
        "5:18 there is no job 'u'|5:27 exactly one of jsonl, csv, wandb, tensorboard is needed|"
        "5:62 gates.g.tolerance.a must be at least 0, found -1|"
        "5:72 gates.g.act: expected one of notify, stop, prune, found text 'kill'",
    ),
    ("gates: {g: {job: t, read: {jsonl: a}}}", "5:12 a gate needs success or failure criteria"),
    ("gates: {g: {job: t, read: {jsonl: a}, success: [{key: k}]}}", "5:49 a criterion needs a bound"),
    (
        "gates: {g: {job: t, read: {jsonl: a}, success: [{key: k, min: 1, window: 4}]}}",
        "5:74 gates.g.success.0.window: expected a window such as `median 4` (mean, median, min, max, all or p10, and how many) or `last`, found the number 4",
    ),
    (
        "gates: {g: {job: t, read: {jsonl: a}, act: kill, success: [{key: k, min: 1}]}}",
        "5:44 gates.g.act: expected one of notify, stop, prune, found text 'kill'",
    ),
    (
        "gates: {g: {job: t, read: {jsonl: a}, schedule: 'x:a', success: [{key: k, min: 1}]}}",
        "5:49 schedule: character 1: 'x' is no whole number of iterations",
    ),
    ("gates: {g: {job: t, read: {jsonl: a}, lets: [u], success: [{key: k, min: 1}]}}", "5:46 there is no job 'u'"),
    (
        "gates: {g: {job: t, read: {jsonl: a}, lets: [t], success: [{key: k, min: 1}]}}",
        "5:46 the job 't' does not need 't': no gate of it can let it start",
    ),
    (
        "gates: {g: {job: t, read: {jsonl: a}, schedule: '8:a', tolerance: {b: 1}, success: [{key: k, min: 1}]}}",
        "5:9 a setting for the stage 'b', which the schedule does not have",
    ),
    (
        "gates: {g: {job: t, read: {jsonl: a}, schedule: [{from: 1, to: 8, file: a}, {from: 6, to: 9, file: b}], success: [{key: k, min: 1}]}}",
        "5:12 schedule: [1]: it begins at 6 and overlaps the stage before it, which ends at 8",
    ),
    (
        "gates: {g: {job: t, read: {jsonl: a}, curriculum: '15:0,x:3', success: [{key: k, min: 1}]}}",
        "5:51 curriculum: character 4: 0 iterations is zero; character 6: 'x' is no finite number",
    ),
]


@pytest.mark.parametrize(("section", "expected"), SECTIONS)
def test_sections(section: str, expected: str) -> None:
    job = "t: {axes: [config, split], command: run, results: {score: {json: r, key: s}}}"
    text = f"{HEAD}axes: {{config: [a, b], split: [id, ood]}}\njobs: {{{job}}}\n{section}\n"
    assert "|".join(shown(text)) == expected


def test_a_mistake_has_a_hint_and_a_path() -> None:
    [mistake] = mistakes(HEAD + "jobs:\n  train:\n    axes: []\n    comand: run\n")
    assert mistake == Mistake(
        "unknown key 'comand' in jobs.train", 6, 5, "did you mean 'command'?", "jobs.train.comand", "error"
    )


def test_paths_count_what_stands_in_the_file() -> None:
    found = mistakes(HEAD + "axes: {lr: [~, .nan]}\njobs: {t: {axes: [lr], command: run}}\n")
    assert [item.path for item in found] == ["axes.lr.0", "axes.lr.1"]


TEN = """muster: 1
campaign: c
langage: en
axes:
  config: [a, a]
  seed: [1.0, 2]
slots: {gpus: 2}
money: {price: cheap}
jobs:
  train:
    axes: [config, sed]
    steps: 1e5
    command: python train.py {conf}
    grace: 60
  eval:
    axes: [config, seed]
    needs: [tran]
    command: "python 'eval.py"
"""


def test_all_mistakes_at_once() -> None:
    assert [f"{item.line}:{item.column} {item.message} [{item.hint}]" for item in mistakes(TEN)] == [
        "3:1 unknown key 'langage' [did you mean 'language'?]",
        "5:15 axis value 'a' is written twice, first on line 5 [keep one]",
        "6:10 seed 1.0 is not a whole number [write 1]",
        "7:15 slots.gpus: expected auto, a list of GPU indexes such as [0, 1], or 0, found the number 2 [name the GPUs: [0, 1]]",
        "8:16 money.price: expected a number, found text 'cheap' [for example `price: 1.98`]",
        "11:20 there is no axis 'sed' [did you mean 'seed'?]",
        "12:12 jobs.train.steps: expected a whole number, found the number 1e5 [write 100000]",
        "13:30 unknown placeholder {conf} [did you mean {config}?]",
        "14:12 60 has no unit [write 60s, 60m, 60h or 60d]",
        "17:13 there is no job 'tran' [did you mean 'train'?]",
        "18:14 a quote in 'command' is opened and never closed [close it, or write \\' for a lone one]",
    ]


def test_missing_keys_do_not_hide_the_rest() -> None:
    assert shown("jobs:\n  t:\n    command: run {x}\n    steps: a\n") == [
        "1:1 the key 'campaign' is missing",
        "1:1 the key 'muster' is missing",
        "3:18 unknown placeholder {x}",
        "4:12 jobs.t.steps: expected a whole number, found text 'a'",
    ]


def test_a_decision_knows_config_seed_and_split_only() -> None:
    text = HEAD + (
        "axes: {config: [a, b], seed: [0, 1], task: [x, y]}\n"
        "jobs:\n"
        "  eval: {axes: [config, seed, task], command: c, results: {score: {json: r.json, key: score}}}\n"
        "decision: {primary: {metric: score, better: higher}, baseline: a}\n"
    )
    assert shown(text) == ["6:30 'score' has the axes task beside config, seed and split"]


def test_a_metric_that_two_jobs_measure() -> None:
    text = HEAD + (
        "axes: {config: [a, b], seed: [0, 1]}\n"
        "jobs:\n"
        "  train: {axes: [config, seed], command: c, results: {score: {json: r.json, key: score}}}\n"
        "  eval: {axes: [config, seed], needs: [train], command: c, results: {score: {json: r.json, key: score}}}\n"
        "decision: {primary: {metric: score, better: higher}, baseline: a}\n"
    )
    assert shown(text) == ["7:12 'score' is a result of train, eval: say which of them counts"]
    assert shown(text.replace("metric: score, better", "metric: score, job: eval, better")) == []
    assert shown(text.replace("metric: score, better", "metric: score, job: evil, better")) == [
        "7:42 no job 'evil' has a result 'score'"
    ]


def test_repeats_beside_an_axis_of_seeds() -> None:
    text = (
        f"{HEAD}axes: {{seed: [0, 1]}}\njobs: {{t: {{axes: [seed], command: run}}}}\n"
        "loop: {job: t, base: [a.json], repeats: 2, default: {edit: [a@set=1], reason: r}}\n"
    )
    assert shown(text) == ["5:41 there is an axis 'seed' already"]


@pytest.mark.parametrize(
    "job",
    ["command: 'run {seed}'", "command: [run, '--seed={seed}']", "command: run, within: 'env SEED={seed}'", "command: 'run {cell}'",
     "command: run, output: 'runs/{variant}/{seed}'", "command: 'run $MUSTER_CELL', shell: true"],
)  # fmt: skip
def test_repeats_need_something_that_tells_them_apart(job: str) -> None:
    loop = "loop: {job: t, base: [a.json], repeats: 3}\n"
    for text in (loop, loop.replace("3", "1"), loop.replace(", repeats: 3", "")):
        assert shown(f"{HEAD}jobs: {{t: {{axes: [], {job}}}}}\n{text}") == [], "fewer repeats break no file"
    (told,) = mistakes(f"{HEAD}jobs: {{t: {{axes: [], command: 'run {{config_file}} {{out}}'}}}}\n{loop}")
    assert told == Mistake(
        "all 3 runs of a variant would be the same run: job 't' has no {seed}",
        4,
        41,
        "put {seed} where the trainer takes its seed, as in `--seed {seed}`; or leave `repeats` out",
        "loop.repeats",
    )


def test_an_axis_may_bring_the_seed() -> None:
    text = (
        f"{HEAD}axes: {{x: {{a: {{args: '--seed {{seed}}'}}}}}}\njobs: {{t: {{axes: [x], command: 'run {{x.args}}'}}}}\n"
        "loop: {job: t, base: [a.json], repeats: 3}\n"
    )
    assert shown(text) == []


@pytest.mark.parametrize(
    ("loop", "hint"),
    [
        ("rounds: 0", "for example `rounds: 3`"),
        ("rounds: three", "for example `rounds: 3`"),
        ('keep: {by: last("x"), better: max}', "for example `better: higher`"),
        (
            'keep: {by: last("x")}, search: {space: [lr]}',
            'for example `space: {"optimizer.lr": {low: 1e-5, high: 1e-2, log: true}}`',
        ),
    ],
)
def test_a_value_of_the_wrong_kind_is_mended_by_example(loop: str, hint: str) -> None:
    assert [each.hint for each in mistakes(f"{HEAD}{JOB}loop: {{job: t, base: [a], {loop}}}\n")] == [hint]


LOOP = f"{HEAD}{JOB}loop: {{job: t, base: [a], keep: {{by: 'last(\"x\")'}}, "
SEARCHES = [
    ("search: {}}", "4:52 'space' is missing in loop.search"),
    ("search: {space: {}}}", "4:68 the space is empty"),
    ("search: {space: {lr: 1}}}", "4:73 loop.search.space.lr: expected a mapping, found the number 1"),
    ("search: {space: {lr: {}}}}", "4:73 a path needs `low` and `high`, or `values`"),
    ("search: {space: {lr: {low: 1}}}}", "4:73 a path needs `low` and `high`, or `values`"),
    ("search: {space: {lr: {low: x, high: 1}}}}", "4:79 loop.search.space.lr.low: expected a number, found text 'x'"),
    ("search: {space: {lr: {low: 1, high: 1}}}}", "4:73 low 1 is not below high 1"),
    ("search: {space: {lr: {low: 0, high: 1, log: true}}}}", "4:73 with `log` low must be above 0, found 0"),
    ("search: {space: {lr: {low: 1, high: 9, step: 2, log: true}}}}", "4:73 `log` and `step` don't go together"),
    ("search: {space: {lr: {low: 1, high: 10, step: 2}}}}", "4:73 steps of 2 from 1 never reach 10"),
    ("search: {space: {lr: {low: 1, high: 10, step: 0}}}}", "4:73 step must be above 0, found 0"),
    ("search: {space: {lr: {low: 1, high: 2, values: [1, 2]}}}}", "4:73 it has both a range and values"),
    ("search: {space: {lr: {values: [1]}}}}", "4:82 there is nothing to choose from"),
    ("search: {space: {lr: {values: [1, 2, 1.0]}}}}", "4:82 '1.0' is there twice"),
    ("search: {space: {lr: {values: 3}}}}", "4:82 loop.search.space.lr.values: expected a list of values, found the number 3"),
    ("search: {space: {lr.: {low: 0, high: 1}}}}", "4:69 'lr.' is no path: it ends with a dot"),
    ("search: {space: {lr: {low: 0, high: 1}}, sampler: tpee}}", "4:102 loop.search.sampler: expected one of tpe, gp, random, found text 'tpee'"),
    ("search: {space: {lr: {low: 0, high: 1}}, trials_per_round: 0}}", "4:111 loop.search.trials_per_round must be at least 1, found 0"),
    ("search: {space: {lr: {low: 0, high: 1}}, trials: 3}}", "4:93 unknown key 'trials' in loop.search"),
    ("search: {space: {lr: {low: 0, high: 1}}}, variants_per_run: 2}", "4:94 a search proposes for a round, not for each run"),
    ("search: {space: {lr: {low: 0, high: 1}}}, default: {edit: [a@set=1], reason: r}}",
     "4:52 a loop proposes by rules or by a search, not by both"),
    ("search: {space: {lr: {low: 0, high: 1}}}, propose: 'a.py:f', use: act_ot}",
     "4:94 a loop proposes by rules, by a search or by a function, not by all of them"),
]  # fmt: skip


@pytest.mark.parametrize(("written", "expected"), SEARCHES)
def test_searches(written: str, expected: str) -> None:
    assert shown(f"{LOOP}{written}\n") == [expected]


def test_a_search_needs_no_top() -> None:
    text = LOOP.replace("keep: {by", "keep: {top: 3, by") + "search: {space: {lr: {low: 0, high: 1}}}}\n"
    assert shown(text) == ["4:39 a search learns from every run: `top` has no effect"]


def test_a_freeze_by_kind_of_change_is_read_without_a_murmur() -> None:
    job = "t: {axes: [config], command: run}"
    gate = "g: {job: t, read: {jsonl: a}, success: [{key: k, min: 1}], freeze: {advance: 2, fall_back: 5}, tolerance: {a: 1}}"
    assert shown(f"{HEAD}axes: {{config: [a, b]}}\njobs: {{{job}}}\ngates: {{{gate}}}\n") == []


def seconds_for(repeats: int) -> float:
    text = f"{HEAD}axes: {{seed: [{', '.join(['7'] * repeats)}]}}\njobs: {{t: {{axes: [seed], command: 'run {{seed}}'}}}}\n"
    began = time.process_time()
    assert len(mistakes(text)) == repeats - 1
    return time.process_time() - began


def test_many_mistakes_take_time_in_proportion() -> None:
    """Each was once held against all before it: 64 KB of a hostile file took 20 s."""
    seconds_for(10)
    few = min(seconds_for(1000) for _ in range(3))
    assert min(seconds_for(8000) for _ in range(2)) < 24 * few
