"""With MUSTER_LANG=pseudo every sentence stands in brackets: what stands outside of them is data, or can't be translated."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.camp import Camp

# `train/1` fails, and `eval/1` waits for it
CAMPAIGN = """\
muster: 1
campaign: sprint
axes: {seed: [0, 1]}
slots: {gpus: 0, cpus: 1}
jobs:
  train: {axes: [seed], command: "/bin/sh -c 'echo 17; echo 23 >&2; exit {seed}'"}
  eval: {axes: [seed], needs: [train], command: "/bin/sh -c 'echo {seed}'"}
"""
STATES = r"DONE|DEAD|PENDING|BLOCKED|HELD|GIVEN_UP"
DATA = re.compile(
    r"|".join(
        (
            r"(?:/[\w.:-]+)+",  # paths
            r"\b(?:train|eval)(?:/\w+)?",  # jobs and cells
            r"\b(?:SEED|seed|sprint)\b",  # the campaign's own words
            rf"\b(?:{STATES})\b",
            r"\bexit_code(?:\(1\))?",  # a cause
            r"^muster:",  # the program
            r"\bcontroller \d+:",  # who decided
            r"\w+@[\w.-]+: giveup\b",  # who, and the kind of the decision
            r"no proof declared: exit 0 is enough",  # of a room whose sentences have no codes yet
            r"^  (?:exit|log|proof) ",  # signals of the evidence
        )
    ),
    re.MULTILINE,
)


def outside(text: str) -> str:
    """What stands outside of all brackets."""
    while (less := re.sub(r"⟦[^⟦⟧]*⟧", "", text)) != text:
        text = less
    return text


def untranslated(text: str) -> list[str]:
    found = DATA.sub("", outside(text))
    return [line for line in found.splitlines() if re.search(r"[A-Za-z]", line)]


@pytest.fixture
def pseudo(camp: Camp) -> Camp:
    camp.write(CAMPAIGN)
    camp("up", "--only", "seed=0", "--only", "job=train", code=3)
    camp.environment["MUSTER_LANG"] = "pseudo"
    return camp


def test_it_sees_what_is_not_translated() -> None:
    assert not untranslated("muster: ⟦a ⟦b⟧ c⟧\n✔ train/0 ⟦is DONE⟧ /a/b.c")
    assert untranslated("⟦a⟧\nNext: ⟦b⟧") == ["Next: "]


def test_what_commands_say_of_a_campaign_is_translated(pseudo: Camp) -> None:
    def said(*args: str) -> str:
        done = pseudo(*args)
        assert done.stdout, args
        return done.stdout

    texts = [said("status"), said("plan")]  # the others are left out by a filter: PENDING and BLOCKED
    texts += [said("up")]
    texts += [said("why", cell) for cell in ("train/0", "train/1", "eval/1")]
    texts += [said("ls"), said("cost"), said("clean"), said("verify")]
    texts += [said("hold", "--because", "2 3"), said("status"), said("plan"), said("why", "eval/1"), said("ls")]
    texts += [said("release"), said("giveup", "train/1", "eval/1", "--because", "4 5")]
    texts += [said("up"), said("status"), said("ls"), said("wait"), said("why", "train/1"), said("down")]
    for text in texts:
        assert not untranslated(text), text
    for state in ("DONE", "DEAD", "PENDING", "BLOCKED", "HELD", "GIVEN_UP"):
        assert any(re.search(rf"\b{state}\b", text) for text in texts), state


@pytest.mark.parametrize(
    "wrong",
    [
        ("stat",),
        ("why", "nothing"),
        ("logs", "eval/1"),
        ("retry", "train/1"),
        ("why",),
        ("up", "--nothing"),
        ("wait", "--timeout", "5"),
        ("pack", "a.zip"),
        ("look", "/"),
    ],
    ids=str,
)
def test_errors_are_translated(pseudo: Camp, wrong: tuple[str, ...]) -> None:
    done = pseudo(*wrong)
    assert done.returncode
    assert "⟦" in done.stderr
    assert not untranslated(done.stderr), done.stderr


def test_json_is_english_and_has_codes(pseudo: Camp) -> None:
    pseudo("up", code=3)
    cells = {cell["cell"]: cell for cell in pseudo.json("status")["cells"]}
    dead = cells["train/1"]
    assert dead["reason"] == "the command exited with 1; last line: 23"
    assert "⟦" not in str(dead)
    assert "judge.command_exited" in str(dead["params"]) + dead["code"]
    assert cells["eval/1"]["code"].startswith("plan.")
    assert "train/1" in str(cells["eval/1"]["params"])
    assert cells["train/0"]["next_code"].startswith("plan.")
    assert cells["train/0"]["next_params"] == {}
    (attempt,) = pseudo.json("why", "train/1")["attempts"]
    assert attempt["reason"] == dead["reason"]
    assert "judge.command_exited" in str(attempt["params"]) + attempt["code"]
    decisions = pseudo.json("why", "train/1")["decisions"]
    assert all(each["code"] for each in decisions if each["who"].startswith("controller"))
    assert {each["next_code"] is not None for each in pseudo.json("plan")["not"]} == {True}


@pytest.mark.parametrize(("encoding", "chinese"), [("utf-8", True), ("ascii", False)])
def test_where_only_ascii_is_printed_english_is_spoken(tmp_path: Path, encoding: str, chinese: bool) -> None:
    environment = {**os.environ, "MUSTER_LANG": "zh", "PYTHONIOENCODING": encoding, "MUSTER_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "muster", "status"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True)
    told = done.stderr.decode()
    assert any("\u4e00" <= sign <= "\u9fff" for sign in told) is chinese
    assert "?" not in told
