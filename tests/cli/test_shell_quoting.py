"""Values of axes in a `shell: true` command, through the real `muster up`: none of them runs anything."""

from __future__ import annotations

import re
import shlex
from typing import Any

CAMPAIGN = """\
muster: 1
campaign: quoting
axes:
  value: ["a; touch PWNED #", "$(touch PWNED)", "it's `touch PWNED`", "two  words"]
slots: {gpus: 0, cpus: 4}
jobs:
  train:
    axes: [value]
    shell: true
    command: >-
      printf '%s|' {value} "{value}" 'it is {value}' > "{out}/said"; printf 'x' > {out}/model.pt
    proof: {files: [model.pt]}
"""


def test_a_value_runs_nothing_and_arrives_whole(camp: Any) -> None:
    camp.write(CAMPAIGN)
    camp("check", code=0)
    camp("up", code=0)
    said = {
        cell["axes"]["value"]: (camp.folder(cell["cell"]) / "out" / "said").read_text()
        for cell in camp.json("status")["cells"]
    }
    assert said == {value: f"{value}|{value}|it is {value}|" for value in said}
    assert len(said) == 4
    assert not list(camp.root.rglob("PWNED"))


def test_check_refuses_where_no_value_is_safe_and_changes_nothing(camp: Any) -> None:
    camp.write(CAMPAIGN.replace("printf '%s|' {value}", "echo `printf {value}`"))
    done = camp("up", code=2)
    assert "campaign.yaml:11:20" in done.stderr
    assert "{value} can't be put in safely here: it stands in backquotes" in done.stderr
    assert "write $(...) instead of `...`" in done.stderr
    assert not list(camp.root.rglob("attempts"))


NAMED = """\
muster: 1
campaign: named
axes:
  value: ["a; touch PWNED"]
slots: {gpus: 0, cpus: 1}
jobs:
  train: {axes: [value], command: "sh -c 'exit 3' {value}"}
  eval: {axes: [value], needs: [train], command: "true {value}"}
"""


def test_a_command_that_is_told_can_be_typed_as_it_is(camp: Any) -> None:
    """By a person or an assistant, into a shell: the name of a cell is one word of it."""
    camp.write(NAMED)
    camp("up", code=3)
    said = ""
    for words in (
        ["status"], ["status", "--json"], ["why", "train/*"], ["record", "--out", "-"], ["logs", "eval/*"],
        ["metrics", "eval/*"], ["stop", "eval/*"], ["trace", "train/a; touch PWNED"],
    ):  # fmt: skip
        done = camp(*words)
        said += f"{done.stdout}\n{done.stderr}\n"
    told = [each for each in re.findall(r"`(muster [^`]*)`", said) if "PWNED" in each]
    assert {each.split()[1] for each in told} == {"retry", "why"}
    for each in told:
        assert {"train/a; touch PWNED", "eval/a; touch PWNED"} & set(shlex.split(each)), each
