"""Where a shell text can take no value, `check` says so, with the place; and where a second shell would read one."""

from __future__ import annotations

import pytest

from muster.model.errors import CampaignInvalid, Mistake
from muster.spec import read_campaign
from muster.spec.campaign_templates import template_names, template_text

HEAD = "muster: 1\ncampaign: c\naxes: {seed: [0, 1], config: ['a b', c]}\n"


def mistakes(jobs: str) -> list[Mistake]:
    try:
        return list(read_campaign(HEAD + jobs, file="campaign.yaml", folder="/c").warnings)
    except CampaignInvalid as error:
        return list(error.mistakes)


def told(jobs: str) -> list[str]:
    return [f"{each.line}:{each.column} {each.level}: {each.message}" for each in mistakes(jobs)]


def text(command: str, key: str = "command") -> str:
    more = "    progress: [{checkpoint: '*.pt'}]\n" + ("    command: run {config}\n" if key != "command" else "")
    return f"jobs:\n  t:\n    axes: [seed, config]\n    shell: true\n    output: 'r/{{seed}}/{{config}}'\n{more}    {key}: {command}\n"


def test_every_placeholder_that_no_value_is_safe_in_is_told_with_its_place() -> None:
    found = mistakes(
        text("|\n      run {seed} # {seed}\n      cat <<EOF\n      {config}\n      EOF\n      run `echo {seed}`")
    )
    assert [(each.line, each.column, each.level) for each in found] == [
        (11, 20, "error"),
        (13, 7, "error"),
        (15, 17, "error"),
    ]
    assert [each.message for each in found] == [
        "{seed} can't be put in safely here: it stands in a comment",
        "{config} can't be put in safely here: it stands in a here-document",
        "{seed} can't be put in safely here: it stands in backquotes",
    ]
    assert found[1].hint == "put it into a variable first, `X={config}`, and write $X here"
    assert all(each.path == "jobs.t.command" for each in found)


def test_on_one_line_each_has_its_column() -> None:
    assert told(text("run {seed} \\{config} # {seed}")) == [
        "10:26 error: {config} can't be put in safely here: a backslash stands before it",
    ]
    assert told(text("'run {seed} \"{config}'")) == [
        "10:27 error: {config} can't be put in safely here: a double quote before it is never closed"
    ]


def test_the_resume_command_is_read_too() -> None:
    assert told(text("'run `cat {last.checkpoint}`'", "resume")) == [
        "11:23 error: {last.checkpoint} can't be put in safely here: it stands in backquotes"
    ]


def test_only_whole_numbers_in_arithmetic() -> None:
    assert told(text("run {config} $((6000 + {seed} + {gpu}))")) == []
    assert told(text("run $((6000 + {config} + {seed}))")) == [
        "10:28 error: {config} stands in $(( )), where only a whole number is safe, and 'a b' is none"
    ]
    assert told(text("run {config} {seed} $(({out}))")) == [
        "10:37 error: {out} stands in $(( )), where only a whole number is safe"
    ]


@pytest.mark.parametrize(
    "command",
    [
        "'run \"{config}\" {seed} > {out}/log 2>&1'",
        "\"bash -c 'run $1' _ {config} {seed}\"",
        "\"bash -c 'run {seed}' {config}\"",
        "|\n      cat > {out}/c <<'EOF'\n      it's\n      EOF\n      run {seed} {config}",
    ],
)
def test_what_is_safe_is_not_told(command: str) -> None:
    assert told(text(command)) == []


@pytest.mark.parametrize("shell", ["true", "false"])
def test_a_second_shell_is_warned_of(shell: str) -> None:
    command = text("\"bash -c 'run {config} {seed}'\"").replace("shell: true", f"shell: {shell}")
    (found,) = mistakes(command)
    assert (found.level, found.line, found.column) == ("warning", 10, 28)
    assert found.message == (
        "{config} stands in a text that another shell reads as code: 'a b' would not be one word to it"
    )
    assert found.hint == "hand it over as an argument: bash -c '... \"$1\"' _ {config}"


def test_eval_is_a_second_shell() -> None:
    assert ["another shell reads as code" in each for each in told(text("'eval \"run {config} {seed}\"'"))] == [True]


def test_what_a_training_names_goes_into_no_second_shell() -> None:
    (found,) = mistakes(text("\"bash -c 'run {last.checkpoint}'\"", "resume"))
    assert "a training chooses its name" in found.message


@pytest.mark.parametrize("name", template_names())
def test_no_template_has_such_a_place(name: str) -> None:
    try:
        found = list(read_campaign(template_text(name), file="campaign.yaml", folder="/c").warnings)
    except CampaignInvalid as error:
        found = list(error.mistakes)
    assert not [each for each in found if "safely here" in each.message or "as code" in each.message]
