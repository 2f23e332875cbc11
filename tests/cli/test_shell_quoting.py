"""Values of axes in a `shell: true` command, through the real `muster up`: none of them runs anything."""

from __future__ import annotations

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
