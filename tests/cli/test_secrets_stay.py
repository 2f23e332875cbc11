"""Secrets of a real campaign, in all the ways in which it can hold them: none gets to what others read."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.text.secret_masking import HIDDEN_VALUE
from support.camp import Camp

ARGV = {"auth": "--auth {}", "my_auth": "MY_AUTH={}", "proxy": "PROXY=http://u:{}@proxy:80", "api_key": "--api-key {}",
        "password": "--password={}", "header": "'X-Api-Key: {}'"}  # fmt: skip
SAID = {
    "query": "GET https://api.example/v1?x=1&api_key={}&n=3", "bearer": "Authorization: Bearer {}",
    "userinfo": "could not clone https://u:{}@example.org/x.git", "plain_bearer": "sent Bearer {} to them",
    "named": '{{"access_token": "{}", "lr": 3}}', "hook": "POST https://open.feishu.cn/open-apis/bot/v2/hook/{} failed",
}  # fmt: skip
ENVIRONMENT = ("WANDB_API_KEY", "DB_PASSWORD", "SLACK_WEBHOOK", "RAISED_TOKEN")
MARKS = {name: f"mArk{number:02}x{'abcdefghijkl'[number % 12] * 6}{number:02}" for number, name in enumerate(
    (*ARGV, *SAID, *ENVIRONMENT, "declared", "finish")
)}  # fmt: skip

TRAIN = """\
import os, sys
print(*sys.argv, flush=True)
print(os.environ["WANDB_API_KEY"], os.environ["DECLARED_SECRET"], flush=True)
for line in {said!r}: print(line, file=sys.stderr)
if sys.argv[1] == "1":
    raise RuntimeError("cannot log in with " + os.environ["RAISED_TOKEN"] + " at " + {said!r}[0])
"""
CAMPAIGN = """\
muster: 1
campaign: secrets
axes: {{seed: [0, 1]}}
env: {{DECLARED_SECRET: {declared}}}
slots: {{gpus: 0, cpus: 2}}
money: {{price: 1, currency: CNY, per: machine}}
jobs:
  train:
    axes: [seed]
    command: >-
      {python} train.py {{seed}} {argv}
    retry: {{max: 0}}
notify: [{{run: {python} tell.py}}]
finish: {{run: ["{python} train.py finished -H 'Authorization: Bearer {finish}'"]}}
"""
TELL = """\
import os, sys
open("told.txt", "a").write(sys.stdin.read() + os.environ["MUSTER_NOTICE"])
"""


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Camp]:
    """A campaign that is over: one cell done, one died and was given up, the finish done."""
    base = tmp_path_factory.mktemp("secrets")
    (base / "home").mkdir()
    (base / "campaign").mkdir()
    made = Camp(base / "campaign", base / "home")
    said = [text.format(MARKS[name]) for name, text in SAID.items()]
    argv = " ".join(text.format(MARKS[name]) for name, text in ARGV.items())
    (made.root / "train.py").write_text(TRAIN.format(said=said))
    (made.root / "tell.py").write_text(TELL)
    made.write(CAMPAIGN.format(python=sys.executable, argv=argv, declared=MARKS["declared"], finish=MARKS["finish"]))
    made.environment |= {name: MARKS[name] for name in ENVIRONMENT}
    try:
        up = made("up", code=3)
        made("giveup", "train/1", "--because", f"it says token={MARKS['query']}", code=0)
        more = made("up", code=0)
        assert not leaks(up.stdout + up.stderr + more.stdout + more.stderr)
        yield made
    finally:
        made.clean_up()


def leaks(text: str) -> list[str]:
    return [name for name, mark in MARKS.items() if mark in text]


COMMANDS = [
    ("status",), ("status", "--json"), ("why", "train/1"), ("why", "train/*", "--json"), ("plan",), ("plan", "--json"),
    ("check", "--quick", "--json"), ("ls", "--json"), ("cost", "--json"), ("record", "--out", "-"), ("record", "--json"),
    ("manifest", "--json"), ("logs", "train/1", "--err"), ("logs", "train/0", "--json"), ("look", ".", "--json"),
    ("verify", "--json"), ("up",), ("wait", "--json"), ("fsck",),
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_shows_one(secrets: Camp, command: tuple[str, ...]) -> None:
    ran = secrets(*command)
    told = ran.stdout + ran.stderr
    assert told
    assert not leaks(told), told
    if "--json" in command and ran.stdout:
        json.loads(ran.stdout)


def test_the_log_is_shown_as_it_is_where_it_is_asked_for(secrets: Camp) -> None:
    assert set(leaks(secrets("logs", "train/1", "--err", "--raw").stdout)) == {*SAID, "RAISED_TOKEN"}
    masked = secrets("logs", "train/1", "--err").stdout
    assert masked.count(HIDDEN_VALUE) >= len(SAID)
    assert '"lr": 3' in masked


def test_what_was_written_down_has_none(secrets: Camp) -> None:
    state = secrets.root / ".muster"
    assert not leaks((state / "decisions.jsonl").read_text())
    assert "RuntimeError" in (state / "decisions.jsonl").read_text(), "the cause is told"
    with contextlib.closing(sqlite3.connect(state / "campaign.db")) as database:
        assert not leaks("\n".join(database.iterdump()))


def test_notices_have_none(secrets: Camp) -> None:
    told = (secrets.root / "told.txt").read_text()
    assert "RuntimeError" in told
    assert not leaks(told)


def test_files_for_others_have_none(secrets: Camp) -> None:
    secrets("record")
    secrets("cost", "--report")
    secrets("report", "--partial")
    files = [path for path in (secrets.root / "reports").rglob("*") if path.is_file()]
    assert {"record.md", "cost.md", "train_status_latest.tsv", "record.json"} <= {path.name for path in files}
    for path in files:
        assert not leaks(path.read_text("utf-8", "replace")), path
    assert secrets("verify").returncode == 0


def test_the_command_got_the_true_values(secrets: Camp) -> None:
    (log,) = (secrets.root / ".muster/attempts/train/0").rglob("stdout.log")
    assert set(leaks(log.read_text())) == {*ARGV, "WANDB_API_KEY", "declared"}
    (log,) = (secrets.root / ".muster/finish").rglob("stdout.log")
    assert "finish" in leaks(log.read_text())


def test_a_pack_is_refused_or_has_none(secrets: Camp, tmp_path: Path) -> None:
    refused = secrets("pack", str(tmp_path / "x.tar.gz"))
    assert refused.returncode == 1
    assert "looks like a secret" in refused.stderr
    assert not leaks(refused.stderr)


PACKED = """\
muster: 1
campaign: packed
axes: {{seed: [0]}}
slots: {{gpus: 0, cpus: 1}}
jobs:
  train:
    axes: [seed]
    command: {python} made.py {{out}}/result.json {by}
    results: {{score: {{json: result.json, key: score}}}}
"""
MADE = """\
import json, os, sys
token = os.environ["HF_TOKEN"]
print(token, "Bearer " + token)
with open(sys.argv[1], "w") as file: json.dump({"score": 1.5, "by": os.environ[sys.argv[2]]}, file)
"""


def run_packed(camp: Camp, by: str) -> str:
    """With a secret in its log, and in its result the variable `by`."""
    camp.environment["HF_TOKEN"] = MARKS["RAISED_TOKEN"]
    (camp.root / "made.py").write_text(MADE)
    camp.write(PACKED.format(python=sys.executable, by=by))
    camp("up", code=0)
    return MARKS["RAISED_TOKEN"]


def test_a_pack_has_the_logs_without_them(camp: Camp) -> None:
    mark = run_packed(camp, "HOME")
    camp("pack", "x.tar.gz", code=0)
    with tarfile.open(camp.root / "x.tar.gz") as pack:
        texts = {each.name: pack.extractfile(each).read() for each in pack.getmembers()}  # type: ignore[union-attr]
    assert not [name for name, data in texts.items() if mark.encode() in data]
    (log,) = [data for name, data in texts.items() if name.endswith("stdout.log") and "attempts" in name]
    assert log.decode().split("\n") == [f"{HIDDEN_VALUE} Bearer {HIDDEN_VALUE}", ""]
    camp("unpack", "x.tar.gz", "elsewhere", code=0)
    camp("-C", "elsewhere", "why", "train/0", code=0)


def test_a_pack_is_refused_where_a_result_holds_one(camp: Camp) -> None:
    mark = run_packed(camp, "HF_TOKEN")
    refused = camp("pack", "x.tar.gz", code=1)
    assert "result.json holds a secret" in refused.stderr
    assert mark not in refused.stderr
    camp("pack", "x.tar.gz", "--with", "secrets", code=0)
