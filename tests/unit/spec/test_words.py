"""What a campaign file promises and a run would not get: one text, and what a person is told."""

from __future__ import annotations

import pytest

from muster.model.errors import CampaignInvalid, Mistake
from muster.spec import read_campaign

HEAD = "muster: 1\ncampaign: c\n"


def told(text: str) -> list[Mistake]:
    try:
        return list(read_campaign(HEAD + text, file="campaign.yaml", folder="/c").warnings)
    except CampaignInvalid as error:
        return list(error.mistakes)


def lines(text: str) -> list[str]:
    return [f"{each.level}: {each.message}" for each in told(text)]


def job(command: str, more: str = "") -> str:
    return f"jobs:\n  t:\n    axes: []\n    command: {command}\n{more}"


UNEXPANDED = [
    ("~/t.py", "error: no shell runs this: ~ in '~/t.py' stays as it is"),
    ("$HOME/t.py --a", "error: no shell runs this: $HOME in '$HOME/t.py' stays as it is"),
    ("python ~me/t.py", "error: no shell runs this: ~ in '~me/t.py' stays as it is"),
    ("python ${CODE}/t.py", "error: no shell runs this: ${CODE} in '${CODE}/t.py' stays as it is"),
    ("python t.py --data ~/x", "warning: no shell runs this: ~ in '~/x' stays as it is"),
    ("python t.py --data=$DATA/x", "warning: no shell runs this: $DATA in '--data=$DATA/x' stays as it is"),
    ("python t.py --tag a~b --price 5$ '${now:%Y}' '${a.b}'", ""),
    ("bash -lc 'python ~/t.py $X'", ""),
]


@pytest.mark.parametrize(("command", "expected"), UNEXPANDED)
def test_what_only_a_shell_replaces(command: str, expected: str) -> None:
    assert lines(job(command)) == ([expected] if expected else [])
    assert lines(job(command, "    shell: true\n")) == []


def test_variables_and_paths_are_not_expanded_either() -> None:
    assert lines(job("run", "    env: {PATH: '$HOME/bin:$PATH', A: ~/x, B: a~b}\n")) == [
        "warning: no shell reads this: $HOME in PATH stays as it is",
        "warning: no shell reads this: ~ in A stays as it is",
    ]
    assert lines(job("run", "    output: ~/runs\n")) == ["error: '~' is not expanded"]
    assert lines(job("run", "    output: $SCRATCH/runs\n")) == ["error: '$SCRATCH' is not expanded"]
    assert lines(job("run", "    output: 'runs/${SEED}'\n")) == ["error: '${SEED}' is not expanded"]


def test_sizes_may_be_in_kilobytes_and_have_a_least_one() -> None:
    assert lines(job("run") + "logs: {max: 2048K}\n") == []
    assert lines(job("run") + "logs: {max: 20K}\n") == [
        "error: 20K is too little to keep a log's beginning and its end"
    ]


AXES = "axes: {config: {a: {}, b: {args: --b}}, seed: [0, 1]}\n"
EVAL = "  eval: {axes: [config, seed], needs: [t], command: 'run {t.output}'}\n"


@pytest.mark.parametrize(
    ("words", "unused"),
    [
        ("command: 'run {config.args} {seed}'", []),
        ("command: run", ["config", "seed"]),
        ("command: 'run {config.args}'", ["seed"]),
        ("command: 'run {config.args}', output: 'runs/{config}_{seed}'", []),
        ("command: 'run {cell} {config.args}'", []),
        ("command: 'run $MUSTER_CELL {config.args}', shell: true", []),
        ("command: 'run {config.args}', within: 'env SEED={seed}'", []),
    ],
)
def test_an_axis_that_reaches_no_run(words: str, unused: list[str]) -> None:
    found = told(f"{AXES}jobs:\n  t: {{axes: [config, seed], {words}}}\n{EVAL}")
    same = [each for each in found if "changes nothing" in each.message]
    assert [each.message.split("'")[1] for each in same] == unused
    assert {each.level for each in found} <= {"warning"}
    assert all(each.hint.startswith("put {" + name + "}") for each, name in zip(same, unused, strict=True))


def test_an_axis_may_act_by_its_variables_or_edits_and_one_value_needs_nothing() -> None:
    by_env = "axes: {config: {a: {env: {X: 1}}, b: {}}, seed: [0]}\njobs: {t: {axes: [config, seed], command: run}}\n"
    assert lines(by_env) == []


def test_args_that_no_command_takes() -> None:
    (only,) = told(f"{AXES}jobs: {{t: {{axes: [config, seed], command: 'run {{config}} {{seed}}'}}}}\n")
    assert only.message == "the args of config b go nowhere: no command has {config.args}"
    assert only.level == "warning"


def test_a_loop_whose_configs_reach_no_run() -> None:
    loop = "loop: {job: t, base: [a.json], default: {edit: [a@set=1], reason: r}}\n"
    assert lines(job("run --out {out}", loop)) == [
        "warning: the loop's configs reach no run: job 't' has no {config_file}"
    ]
    assert lines(job("run {config_file}", loop)) == []


def test_no_gpu_for_a_word_that_asks_for_one() -> None:
    slots = "slots: {gpus: 0, cpus: 1}\n"
    assert lines(job("run --gpu {gpu}", slots)) == [
        "warning: {gpu} is empty on a CPU slot, and the campaign has no others"
    ]
    assert lines(job("run --gpu {gpu}")) == []


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ("results: {a: {json: /r/x.json, key: a}}",
         "error: t/0 and t/1 would be read from the same file, '/r/x.json'"),
        ("results: {a: {json: '/r/{seed}.json', key: a}}", ""),
        ("results: {a: {json: '{out}/x.json', key: a}}", ""),
        ("progress: [{jsonl: /r/x.jsonl}]", "warning: t/0 and t/1 would be read from the same file, '/r/x.jsonl'"),
        ("proof: {files: [/r/done]}", "warning: t/0 and t/1 would be read from the same file, '/r/done'"),
    ],
)  # fmt: skip
def test_one_file_for_all_cells(section: str, expected: str) -> None:
    text = f"axes: {{seed: [0, 1]}}\njobs: {{t: {{axes: [seed], command: 'run {{seed}}', {section}}}}}\n"
    assert lines(text) == ([expected] if expected else [])
    assert lines(text.replace("[0, 1]", "[0]")) == []


def test_a_comma_in_braces() -> None:
    loop = 'loop: {job: t, base: [a], rules: [{when: window("g", 10).mean > 10, edit: [a@mul=2], reason: r}]}\n'
    found = told(job("run {config_file}", loop))
    (key,) = [each for each in found if each.message.startswith("unknown key")]
    assert key.hint == (
        "put the condition in quotes: a comma inside { } ends it, as in when: 'window(\"g\", 10).mean > 10'"
    )


def test_a_need_with_a_slip() -> None:
    two = "jobs: {train: {axes: [], command: a}, eval: {axes: [], command: b, needs: [trian]}}\n"
    assert [each.hint for each in told(two)] == ["did you mean 'train'?"]
    one = "jobs: {train: {axes: [], command: a, needs: [tuna]}}\n"
    assert [each.hint for each in told(one)] == ["'train' is the only job: it can need no other"]
