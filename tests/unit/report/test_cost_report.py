"""The cost report, in both languages, held against files that people have read. MUSTER_GOLDEN=1 writes them anew."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import muster.locales
from muster.app.campaign.campaign_cost import cost_as_json, reckon_cost
from muster.app.campaign.campaign_status import ControllerStatus, Status, build_status
from muster.app.money.cost_facts import CostFacts
from muster.app.money.cost_report import cost_report_markdown
from muster.app.money.gather_cost import CostSources, gather_cost_facts
from muster.engine.ports.store import LoggedDecision
from muster.locales import LANGUAGES, load_texts
from muster.model.attempt import Attempt, CellRecord, Outcome
from muster.model.calendar import format_iso_time
from muster.model.campaign import (
    Axis,
    AxisValue,
    Campaign,
    CheckpointProof,
    DeclaredProgress,
    DeclaredResult,
    Job,
    Money,
    Proof,
    Slots,
)
from muster.model.campaign_state import CampaignState, Intent
from muster.model.cell import list_campaign_cells
from muster.model.decision import Decision
from muster.model.verdict import Cause, VerdictState

GOLDEN = Path(__file__).parent / "golden"
HOUR = 3600.0
WALL = 1_772_000_000.0
NOW = WALL + 8 * HOUR
ROOT = "/home/me/sprint"
AT = "2026-02-26T17:23:01.000+08:00"
CONFIGS = ("v2_baseline", "v2_u_only", "v2_cert_only", "v2_full")
AXES = (
    Axis("config", tuple(AxisValue(name, name) for name in CONFIGS)),
    Axis("seed", tuple(AxisValue(str(seed), seed) for seed in range(5))),
    Axis("split", (AxisValue("id", "id"), AxisValue("ood", "ood", proxy="hallu.level=2 is no formal OOD split"))),
)  # fmt: skip
CHECKPOINT = "checkpoint.ckpt"
TRAIN = Job(
    "train", ("config", "seed"), ("python", "train.py"), steps=120_000,
    progress=(DeclaredProgress("checkpoint", CHECKPOINT),), proof=Proof(checkpoint=CheckpointProof(CHECKPOINT)),
)  # fmt: skip
EVAL = Job("eval", ("config", "seed", "split"), ("python", "eval.py"), needs=("train",),
           results=(DeclaredResult("score", "json", "result.json"), DeclaredResult("cost", "json", "result.json")))  # fmt: skip
PLOTS = Job("plots", (), ("python", "plots.py"), needs=("eval",))


def world(money: Money | None, **more: Any) -> CampaignState:
    campaign = Campaign("paper-sprint", AXES, (TRAIN, EVAL, PLOTS), slots=Slots(gpus=(0,)), money=money, **more)
    records = {cell.id: CellRecord(cell, at) for at, cell in enumerate(list_campaign_cells(campaign))}
    return CampaignState(campaign, "h", "", Intent("down"), 1, (), records)


def adopt(state: CampaignState, cell: str, hours: float, note: str = "") -> None:
    output = f"{ROOT}/runs/20260223-171229_{cell.replace('/', '_')}"
    outcome = Outcome(VerdictState.DONE, reason="adopted", note=f"the exit code is not known{note}", started=WALL - 9e5,
                      ended=WALL - 9e5 + hours * HOUR, duration_s=hours * HOUR, output=output)  # fmt: skip
    run = Attempt(cell, 1, cell, 0, (), "", "2026-02-26T09:00:00+08:00", 0.0, "b", adopted=True, outcome=outcome)
    state.cells[cell] = replace(state.cells[cell], attempts=(run,))


def ran(state: CampaignState, cell: str, at: float, hours: float, cause: Cause | None = None, **more: Any) -> None:
    record = state.cells[cell]
    outcome = Outcome(VerdictState.DEAD if cause else VerdictState.DONE, cause, cause.note if cause else "", started=WALL + at + 2,
                      ended=WALL + at + 2 + hours * HOUR, duration_s=hours * HOUR, held_s=hours * HOUR + 3,
                      output=f"{ROOT}/.muster/attempts/{cell}/out", **more)  # fmt: skip
    n = len(record.attempts) + 1
    run = Attempt(cell, n, f"{cell}@{n}", 1, ("gpu0.0",), "", format_iso_time(WALL + at), at, "b",
                  "host_reboot" if n > 1 else None, outcome=outcome)  # fmt: skip
    state.cells[cell] = replace(record, attempts=(*record.attempts, run))


def event(kind: str, reason: str, at: str, cell: str | None = None, **data: object) -> LoggedDecision:
    return LoggedDecision(Decision(kind, "me@lab", reason, cell, at=at, data=data))


def facts(state: CampaignState, events: Sequence[LoggedDecision] = (), **more: Any) -> CostFacts:
    status: Status = build_status(state, {}, ControllerStatus(False), wall=NOW, boot=9e5, boot_id="b", ledger=True)
    sources = CostSources(ROOT, f"{ROOT}/.muster", lambda cell, n: f"{ROOT}/.muster/attempts/{cell}/{n}",
                          lambda _: True, **more)  # fmt: skip
    return replace(gather_cost_facts(status, events, reckon_cost(status, events, NOW), sources), at=AT, version="0.2.0")


def story() -> CostFacts:
    """The reference: 17 of 20 trained, 16 of 40 evaluated, 200 yuan paid, a filter that nobody wrote down but Muster."""
    state = world(Money(price=1.98, currency="CNY", budget=200, paid=200))
    for at, config in enumerate(CONFIGS):
        for seed in range(5):
            if seed != 2 or config == "v2_baseline":
                early = "; the checkpoint was saved at 2 % of the run: probably untrained weights"
                adopt(state, f"train/{config}/{seed}", 1.66 + 0.01 * ((at + seed) % 4), early)
            if seed < 2:
                for split in ("id", "ood"):
                    adopt(state, f"eval/{config}/{seed}/{split}", 0.05)
    left = [cell for cell, record in state.cells.items() if record.cell.values and "seed" in dict(record.cell.values)
            and record.cell.value("seed").name not in ("3", "4")]  # fmt: skip
    events = [
        event("filter", "--only seed=3,4", "2026-02-24T01:02:03+08:00", only=[{"seed": ["3", "4"]}], left_out=left),
        event("note", "log_every counts seconds, not steps: a quiet metrics.jsonl is no stall",
              "2026-02-25T03:16:00+08:00", "train/v2_baseline/3",
              evidence={"file": "SafeDreamer/embodied/core/when.py", "line": 41, "text": "    now = time.time()"}),
    ]  # fmt: skip
    checkpoints = {"train": (17, f"{ROOT}/runs/*/{CHECKPOINT}")}
    return facts(state, events, checkpoints=checkpoints)


def losses() -> CostFacts:
    """A rented machine, deaths of several kinds, a stop, a restart, something given up, no adopted run."""
    money = Money(
        price=12.0, currency="EUR", per="machine", since="2026-02-25T06:00:00+00:00", budget=100, at_cap="stop"
    )
    state = world(money)
    lines = ("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",)
    oom = Cause("cuda_oom", note="the GPU's memory did not suffice")
    ran(state, "train/v2_baseline/0", 0, 1.5)
    ran(state, "train/v2_baseline/1", 2 * HOUR, 1.0, Cause("host_reboot", note="the machine has rebooted"))
    ran(state, "train/v2_baseline/1", 3.1 * HOUR, 1.4)
    ran(state, "train/v2_full/0", 5 * HOUR, 0.4, oom, lines=lines, advice="use a smaller batch or model")
    ran(
        state,
        "train/v2_full/1",
        6 * HOUR,
        0.2,
        Cause("budget_stop", note="stopped for the budget; it ended with signal 15"),
    )
    for seed in range(5):
        for config in CONFIGS[1:3]:
            cell = f"train/{config}/{seed}"
            state.cells[cell] = replace(state.cells[cell], given_up="two configs are enough")
    return facts(state, checkpoints={"train": (1, f"{ROOT}/.muster/attempts/train/v2_baseline/*/out/{CHECKPOINT}")})


def whole() -> CostFacts:
    """Everything is done, and no price is declared."""
    state = world(None)
    for number, cell in enumerate(list(state.cells)):
        ran(state, cell, 4000.0 * number, 1.0 if cell.startswith("train") else 0.1)
    return facts(state)


CASES: dict[str, Callable[[], CostFacts]] = {"story": story, "losses": losses, "whole": whole}


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("case", CASES)
def test_the_report_reads_as_it_was_read(case: str, language: str) -> None:
    text = cost_report_markdown(replace(CASES[case](), language=language))  # type: ignore[arg-type]
    path = GOLDEN / f"cost_{case}_{language}.md"
    if os.environ.get("MUSTER_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_the_words_of_both_languages_are_the_same_ones() -> None:
    folder = Path(muster.locales.__file__).parent
    english, chinese = (tomllib.loads((folder / language / "cost.toml").read_text("utf-8")) for language in LANGUAGES)
    assert set(english) == set(chinese)
    for key, text in english.items():
        fields = {part.partition("}")[0] for part in re.sub(r"\{\w+:[^}]*\}", "", text).split("{")[1:]}  # one or many
        theirs = {re.split("[:}]", part)[0] for part in chinese[key].split("{")[1:]}
        assert theirs <= fields | {"n", "jobs"}, key
        assert fields - theirs <= {"done"}, key
    assert english.keys().isdisjoint(load_texts("record", "en")), "a word of the record is covered up"


def test_the_bottom_line_comes_first_and_explains_the_money() -> None:
    text = cost_report_markdown(story())
    first = text.index("## Bottom line")
    assert first < text.index("##", first + 3)
    assert "Of 200.00 CNY that were paid, **" in text
    told = story().sums
    assert told.adopted == 33
    assert told.gpu_hours == pytest.approx(28.47 + 0.8, abs=0.2)
    assert told.unaccounted == pytest.approx(200 - told.gpu_hours * 1.98)


def test_every_missing_cell_is_named() -> None:
    found = story()
    assert len(found.missing) == found.declared - found.done == 61 - 33
    text = cost_report_markdown(found)
    for config in CONFIGS[1:]:
        assert f"| {config} | ✅ | ✅ | ❌ PENDING | ✅ | ✅ |" in text
    assert "train/{v2_u_only,v2_cert_only,v2_full}/2" in text


def test_a_large_matrix_is_counted_instead_of_shown() -> None:
    axes = (Axis("config", tuple(AxisValue(f"c{at}", at) for at in range(50))),
            Axis("seed", tuple(AxisValue(str(at), at) for at in range(20))))  # fmt: skip
    campaign = Campaign("big", axes, (Job("train", ("config", "seed"), ("true",)),), slots=Slots(gpus=()))
    records = {cell.id: CellRecord(cell, at) for at, cell in enumerate(list_campaign_cells(campaign))}
    text = cost_report_markdown(facts(CampaignState(campaign, "h", "", Intent(), 1, (), records)))
    assert "| c49 | 0 of 20 |" in text
    assert "**Nothing is DONE yet**: 0 of 1000 declared cells." in text


def test_the_json_adds_up() -> None:
    state = world(Money(price=1.98, currency="CNY", paid=200))
    adopt(state, "train/v2_full/0", 2.0)
    ran(state, "train/v2_full/1", 0, 1.0, Cause("signal"))
    status = build_status(state, {}, ControllerStatus(False), wall=WALL, boot=9e5, boot_id="b", ledger=True)
    told = cost_as_json(reckon_cost(status, [], WALL))
    parts = sum(told[name] for name in ("productive", "wasted", "idle", "overhead", "running"))
    assert parts == pytest.approx(told["spent"])
    assert told["spent"] + told["unaccounted"] == pytest.approx(200)
    assert told["by_cause"] == {"signal": pytest.approx(1.98)}
    assert told["adopted"] == {"runs": 1, "hours": 2.0, "money": pytest.approx(3.96)}
