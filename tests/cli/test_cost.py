"""muster cost: the ledger of a real campaign, as text, as JSON and as a report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from support.camp import Camp

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "schemas" / "cost.schema.json").read_text())
CAMPAIGN = """\
muster: 1
campaign: priced
language: {language}
axes: {{seed: [0, 1, 2]}}
slots: {{gpus: 0, cpus: 3}}
{money}
jobs:
  train:
    axes: [seed]
    command: /bin/sh -c 'echo started {{cell}}; read word < gate-{{seed}}; exit $word'
"""
MONEY = "money: {price: 3600, currency: CNY, budget: 100000, paid: 90000}"
ACCOUNTS = ("productive", "wasted", "idle", "overhead", "running")


def told(camp: Camp, *options: str) -> dict[str, Any]:
    found: dict[str, Any] = camp.json("cost", *options, code=0)
    problems = [error.message for error in Draft202012Validator(SCHEMA).iter_errors(found)]
    assert not problems, problems
    return found


@pytest.fixture
def priced(camp: Camp) -> Camp:
    camp.write(CAMPAIGN.format(language="zh", money=MONEY))
    camp.gates(0, 1, 2)
    return camp


def run_two(camp: Camp) -> None:
    """One is DONE, one dies, one runs."""
    camp("up", "--detach", code=0)
    for seed in range(3):
        camp.started(f"train/{seed}")
    camp.open(0)
    camp.open(1, "3")
    camp.until(lambda: (camp.cells()["train/0"], camp.cells()["train/1"]) == ("DONE", "DEAD"))


def test_the_accounts_of_a_campaign_that_runs(priced: Camp) -> None:
    run_two(priced)
    found = told(priced)
    assert sum(found[name] for name in ACCOUNTS) == pytest.approx(found["spent"], abs=1e-5)
    assert all(found[name] > 0 for name in ("productive", "wasted", "running", "overhead"))
    assert found["by_cause"] == {"exit_code": found["wasted"]}
    assert found["spent"] + found["unaccounted"] == pytest.approx(90000, abs=1e-4)
    assert (found["gpu_hours"], found["currency"], found["budget"], found["level"]) == (0, "CNY", 100000, "fine")
    assert found["forecast"]["low"] <= found["forecast"]["mid"] <= found["forecast"]["high"]
    text = priced("cost", code=0).stdout
    assert "priced: " in text
    assert "  exit_code" in text
    assert "unaccounted for: no span explains them" in text
    status = priced.json("status", code=4)
    assert status["money"]["spent"] >= found["spent"]
    assert "money: " in priced("status", code=4).stdout
    eta = {cell["cell"]: cell["eta"] for cell in status["cells"]}
    assert eta["train/0"] is None


@pytest.mark.slow  # the other tests here are its siblings in CI
def test_a_campaign_without_money_has_hours(camp: Camp) -> None:
    camp.write(CAMPAIGN.format(language="en", money=""))
    camp.gates(0, 1, 2)
    run_two(camp)
    found = told(camp)
    assert [found[name] for name in ("currency", "spent", "forecast", "budget", *ACCOUNTS)] == [None] * 9
    assert found["by_cause"] == {"exit_code": None}
    assert found["hours"]["productive"] > 0
    assert found["hours"]["by_cause"]["exit_code"] == found["hours"]["wasted"] > 0
    assert "no price is declared" in camp("cost", code=0).stdout
    assert camp.json("status", code=4)["money"] is None
    assert "money:" not in camp("status", code=4).stdout
    camp.write(CAMPAIGN.format(language="zh", money="money: {price: 3600, currency: CNY, paid: 90000}"))
    later = told(camp, "--report")  # what was paid is often known afterwards: the file counts, not its last `up`
    assert later["spent"] + later["unaccounted"] == pytest.approx(90000, abs=1e-4)
    assert "一句话结论" in (camp.root / "reports" / "cost.md").read_text()
    assert camp("record", "--out", "-", code=0).stdout.startswith("# 记录：")
    camp.write("muster: 1\n")
    assert "campaign.yaml" in camp("cost", code=2).stderr


def test_the_report_is_written_whole_in_the_campaigns_language(priced: Camp) -> None:
    run_two(priced)
    priced("note", "the gate said 3", "--cell", "train/1", "--evidence", "campaign.yaml:2", code=0)
    found = told(priced, "--report")
    path = priced.root / "reports" / "cost.md"
    assert found["report"] == str(path)
    text = path.read_text()
    first = text.split("## ")[1]
    assert first.startswith("一句话结论")
    for part in ("**实验矩阵不完整**", "`exit_code(3)` ×1"):
        assert part in first
    for part in (
        "| train | ✅ | ❌ DEAD | ▶ RUNNING |",
        "campaign.yaml:2",
        "```mermaid",
        "最便宜的补齐方案",
        "stdout.log",  # the one that holds something
    ):
        assert part in text, part
    assert not list(path.parent.glob(".cost*"))
    assert f"written: {path}" in priced("cost", "--report", code=0).stdout


def test_bill_and_record_agree_on_what_a_slot_costs(camp: Camp) -> None:
    camp.write(CAMPAIGN.format(language="en", money="money: {price: 2, budget: 9}"))
    camp.gates(0, 1, 2)
    camp("up", "--detach", code=0)
    for seed in range(3):
        camp.open(seed)
    camp("wait", code=0)
    told_in_full = camp("cost", "--report", code=0).stdout
    camp("record", code=0)
    cost, record = ((camp.root / "reports" / name).read_text() for name in ("cost.md", "record.md"))
    assert "Billed at 2.00 CNY an hour for each slot while a run holds it: the campaign has no GPU." in cost
    assert "Price: 2 CNY for an hour of a slot, as the campaign has no GPU; the budget is 9 CNY" in record
    assert " h " not in told_in_full  # a run of a moment took no 0.00 h


def test_bad_use_is_said_in_one_sentence(camp: Camp) -> None:
    camp.write(CAMPAIGN.format(language="en", money=""))
    failed = camp("cost", code=2)
    assert failed.stdout == ""
    assert "this campaign has not been started" in failed.stderr
    assert "Traceback" not in failed.stderr
