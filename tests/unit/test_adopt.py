"""The reference story with real files: 17 of 20 runs exist, and `adopt` must take in exactly those."""

import json
import os
import pickle
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from muster.app.adopt.find_runs import (
    Adoption,
    adoption_decisions,
    find_adoptable_runs,
    refusal_decisions,
    unrecorded_spend,
)
from muster.model.attempt import Attempt, CellRecord, Outcome, UnadoptedRun
from muster.model.campaign import Axis, AxisValue, Campaign, CheckpointProof, DeclaredProgress, Job, Proof, StepProof
from muster.model.campaign_state import CampaignState, Intent
from muster.model.cell import list_campaign_cells
from muster.model.verdict import Cause, VerdictState
from muster.readers.proof import FileProofReader

CONFIGS = ("v2_baseline", "v2_u_only", "v2_cert_only", "v2_full")
MISSING = {("v2_u_only", 2), ("v2_cert_only", 2), ("v2_full", 2)}
PRESENT = [(config, seed) for seed in range(5) for config in CONFIGS if (config, seed) not in MISSING]
TASK = "safetygymcoor_SafetyPointGoal1-v0"
DURATION = 5940
STEPPED = Proof(step=StepProof("{steps}", 0.02))
TIMED = replace(STEPPED, checkpoint=CheckpointProof("checkpoint.ckpt", 0.9))
WEIGHTS = pickle.dumps({"agent": list(range(50))})


def campaign(proof: Proof, output: str = "runs/*_{config}_*_{seed}") -> Campaign:
    axes = (
        Axis("config", tuple(AxisValue(name, name) for name in CONFIGS)),
        Axis("seed", tuple(AxisValue(str(n), n) for n in range(5))),
        Axis("split", (AxisValue("id", "id"), AxisValue("ood", "ood"))),
    )
    train = Job(
        "train", ("config", "seed"), ("train",), steps=120_000, output=output, proof=proof,
        progress=(DeclaredProgress("jsonl", "metrics.jsonl", "step"),),
    )  # fmt: skip
    return Campaign("paper", axes, (train, Job("eval", ("config", "seed", "split"), ("eval",), needs=("train",))))


def state_of(campaign: Campaign) -> CampaignState:
    cells = {c.id: CellRecord(c, at, hash=f"h{at}") for at, c in enumerate(list_campaign_cells(campaign))}
    return CampaignState(campaign, "hash", "", Intent(), 0, cells=cells)


class Story:
    """The campaign's folder and what the trainer left in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: list[tuple[str, int, str, str]] = []
        self.clock = datetime(2026, 2, 21, 1, 0, 0)

    def run(self, config: str, seed: int, last: int = 120_000, saved: float = DURATION - 30, **change: Any) -> Path:
        """One run: config at the start, metrics at the end, the checkpoint `saved` seconds after the start."""
        name = f"{self.clock:%Y%m%d-%H%M%S}_{config}_{TASK}_{seed}"
        start = self.clock.timestamp()
        self.clock = datetime.fromtimestamp(start + DURATION + 600)
        ended = start + (DURATION if last > 10_000 else 58)
        run = self.folder / "runs" / name
        config_text = f"method: {change.get('says', config)}\nseed: {change.get('says_seed', seed)}\ntask: {TASK}\nrun: {{steps: 120000}}\n"
        self.put(run / "config.yaml", config_text.encode(), start + 2)
        rows = "".join(json.dumps({"step": n, "episode/score": float("nan")}) + "\n" for n in (1, last // 2, last))
        self.put(run / "metrics.jsonl", (rows + '{"step": 1' if change.get("half") else rows).encode(), ended)
        self.put(run / "checkpoint.ckpt", change.get("weights", WEIGHTS), min(start + saved, ended))
        return run

    def put(self, path: Path, data: bytes, at: float) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        os.utime(path, (at, at))

    def table(self, rows: list[tuple[object, ...]], header: str = "config\tseed\tstatus\trun_dir\tcheckpoint") -> Path:
        path = self.folder / "manifests" / "paper_train_status_latest.tsv"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join([header, *("\t".join(map(str, row)) for row in rows)]) + "\n")
        return path


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


def everything(story: Story, **change: Any) -> list[tuple[object, ...]]:
    """All that the reference story left; returns the rows of its status table."""
    rows: list[tuple[object, ...]] = []
    for config, seed in PRESENT:
        if (config, seed) == ("v2_baseline", 3):
            for _ in range(4):
                story.run(config, seed, last=3005, saved=5)
        run = story.run(config, seed, **change)
        rows.append((config, seed, "success", f"runs/{run.name}", f"{run}/checkpoint.ckpt"))
    return rows


def adopt(
    story: Story, proof: Proof, *patterns: str, table: Path | None = None, state: CampaignState | None = None
) -> Adoption:
    return find_adoptable_runs(state or state_of(campaign(proof)), story.folder, patterns, table, FileProofReader())


def test_what_lives_is_refused_and_its_time_is_not_over(story: Story) -> None:
    alive, over = story.run("v2_full", 0), story.run("v2_full", 1)
    found = find_adoptable_runs(
        state_of(campaign(STEPPED)), story.folder, (), None, FileProofReader(),
        lives=lambda path: "it is still running: pid 7" if path == str(alive) else "",
    )  # fmt: skip
    assert [each.outcome.output for each in found.proved] == [str(over)]
    assert [(each.what, each.reason, each.started) for each in found.refused] == [
        (str(alive), "it is still running: pid 7", None)
    ]


def test_what_is_refused_is_known_spend_once(story: Story) -> None:
    dead, newer = story.run("v2_full", 0, last=3005), story.run("v2_full", 0)
    state = state_of(campaign(STEPPED))
    found = adopt(story, STEPPED, state=state)
    (spent,) = unrecorded_spend(found, state)
    assert (spent.what, spent.cell) == (str(dead), "train/v2_full/0")
    assert spent.ended is not None
    assert spent.started is not None
    assert spent.ended - spent.started == pytest.approx(58)
    assert newer.name in str(found.proved[0].outcome.output)
    (decision,) = refusal_decisions([spent], "me", "at", 1.0)
    assert (decision.kind, decision.data["path"]) == ("refuse", str(dead))
    state.refused = (UnadoptedRun(spent.cell, str(dead), spent.started, spent.ended, spent.reason),)
    assert unrecorded_spend(adopt(story, STEPPED, state=state), state) == []


def test_a_folder_that_an_attempt_made_is_in_the_ledger_already(story: Story) -> None:
    dead = story.run("v2_full", 0, last=3005)
    state = state_of(campaign(STEPPED))
    began = datetime(2026, 2, 21, 1, 0, 0).timestamp()
    ended = Outcome(
        VerdictState.DEAD, Cause("signal"), started=began, ended=began + 60
    )  # where it wrote was never known
    attempt = Attempt("train/v2_full/0", 1, "t", 1, (), "h", "", 0.0, "b", outcome=ended)
    state.cells["train/v2_full/0"] = replace(state.cells["train/v2_full/0"], attempts=(attempt,))
    found = adopt(story, STEPPED, state=state)
    assert [each.what for each in found.refused] == [str(dead)]
    assert unrecorded_spend(found, state) == []


def test_a_step_in_another_unit_proves_nothing(story: Story) -> None:
    """`repeat: 5`: a run that was killed at 46 % logged 276000 of 600000."""
    killed = story.run("v2_full", 0, last=276_000)
    with (killed / "config.yaml").open("a") as file:
        file.write("env:\n  safetygymcoor:\n    repeat: 5\n  dmc:\n    repeat: 2\n")
    for scale in (1.0, 0.5):
        made = campaign(STEPPED)
        job = replace(made.jobs[0], progress=(DeclaredProgress("jsonl", "metrics.jsonl", "step", scale=scale),))
        found = adopt(story, STEPPED, state=state_of(replace(made, jobs=(job, made.jobs[1]))))
        assert found.proved == ()
        assert "`env.safetygymcoor.repeat` in config.yaml is 5: `scale: 0.2`" in reasons(found)


def test_folders_with_values_that_nobody_declared_are_named(story: Story) -> None:
    story.run("v2_full", 0)
    other = story.run("v2_full", 9)
    assert adopt(story, STEPPED).undeclared == (str(other),)


def reasons(adoption: Adoption) -> str:
    return "\n".join(f"{each.what}: {each.reason}" for each in adoption.refused)


def left(adoption: Adoption) -> set[str]:
    done = {proved.cell for proved in adoption.proved}
    return {f"train/{config}/{seed}" for config in CONFIGS for seed in range(5)} - done


ALL_BUT_THREE = {"train/v2_u_only/2", "train/v2_cert_only/2", "train/v2_full/2"}

# -- the reference story


@pytest.mark.parametrize("patterns", [(), ("runs/*_{config}_*_{seed}",), ("runs/2026*",)])
def test_seventeen_runs_are_adopted_and_three_are_missing(story: Story, patterns: tuple[str, ...]) -> None:
    everything(story)
    adoption = adopt(story, TIMED, *patterns)
    assert len(adoption.proved) == 17, reasons(adoption)
    assert left(adoption) == ALL_BUT_THREE
    assert len(adoption.refused) == 4
    assert all(
        "proof fails: metrics.jsonl: last step 3005, wanted 117600 of 120000" in each.reason
        for each in adoption.refused
    )
    one = next(proved for proved in adoption.proved if proved.cell == "train/v2_baseline/3")
    assert one.outcome.verdict == VerdictState.DONE
    assert one.outcome.duration_s == pytest.approx(DURATION, abs=5)
    assert one.outcome.output is not None
    assert one.outcome.exit_code is None
    assert one.outcome.note == "the exit code is not known"


def test_one_that_may_run_is_named_only_where_nobody_can_tell(story: Story) -> None:
    run = story.run("v2_full", 0)
    for path in run.rglob("*"):
        os.utime(path)
    for blind in (True, False):
        found = find_adoptable_runs(
            state_of(campaign(STEPPED)), story.folder, (), None, FileProofReader(), lives=lambda _: "", blind=blind
        )
        (one,) = (proved for proved in found.proved if proved.cell == "train/v2_full/0")
        assert ("may still be running" in one.outcome.note) is blind


def test_the_status_table_tells_the_same(story: Story) -> None:
    table = story.table(everything(story))
    adoption = adopt(story, TIMED, table=table)
    assert len(adoption.proved) == 17, reasons(adoption)
    assert left(adoption) == ALL_BUT_THREE
    assert not adoption.refused
    assert "row 2 of paper_train_status_latest.tsv" in adoption.proved[0].outcome.reason


def test_untrained_checkpoints_are_refused_where_the_proof_asks(story: Story) -> None:
    everything(story, saved=60)
    adoption = adopt(story, TIMED)
    assert not adoption.proved
    assert "checkpoint.ckpt saved at 1 % of the run, wanted after 90 %" in reasons(adoption)


def test_untrained_checkpoints_are_noted_where_nobody_asked(story: Story) -> None:
    everything(story, saved=60)
    adoption = adopt(story, STEPPED)
    assert len(adoption.proved) == 17
    note = "the checkpoint was saved at 1 % of the run: probably untrained weights"
    assert all(note in proved.outcome.note for proved in adoption.proved)


# -- decisions


def test_decisions_carry_what_the_store_needs(story: Story) -> None:
    story.run("v2_full", 4)
    made = adoption_decisions(adopt(story, STEPPED), "ada", "now", 12.0, "boot")
    (decision,) = made
    assert (decision.kind, decision.cell, decision.attempt) == ("adopt", "train/v2_full/4", 1)
    data = decision.data
    assert set(data) == {"token", "slots", "hash", "boot_id", "retry_cause", "outcome", "path"}
    assert data["outcome"]["verdict"] == "DONE"
    assert data["hash"].startswith("h")
    assert data["retry_cause"] is None
    json.dumps(data)


def _with(state: CampaignState, cell: str, **change: Any) -> CampaignState:
    state.cells[cell] = replace(state.cells[cell], **change)
    return state


def attempt(outcome: Outcome | None, n: int = 1) -> Attempt:
    return Attempt("train/v2_full/4", n, "t", 1, (), "h", "", 0.0, "b", outcome=outcome)


def test_after_a_dead_attempt_the_cause_is_recorded(story: Story) -> None:
    story.run("v2_full", 4)
    dead = attempt(Outcome(VerdictState.DEAD, Cause("signal", "9")))
    state = _with(state_of(campaign(STEPPED)), "train/v2_full/4", attempts=(dead,))
    (decision,) = adoption_decisions(adopt(story, STEPPED, state=state), "ada", "now", 1.0, "b")
    assert decision.attempt == 2
    assert decision.data["retry_cause"] == "adopted after attempt 1 ended: signal(9)"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"attempts": (attempt(Outcome(VerdictState.DONE)),)}, "is DONE already (attempt 1)"),
        ({"attempts": (attempt(None),)}, "is running (attempt 1): stop it first"),
        ({"given_up": "no money"}, "is given up: no money"),
    ],
)
def test_closed_cells_take_nothing_in(story: Story, change: dict[str, Any], reason: str) -> None:
    story.run("v2_full", 4)
    adoption = adopt(story, STEPPED, state=_with(state_of(campaign(STEPPED)), "train/v2_full/4", **change))
    assert not adoption.proved
    assert f"train/v2_full/4 {reason}" in reasons(adoption)


# -- matching


def test_a_label_that_contradicts_the_config(story: Story) -> None:
    story.run("v2_full", 4, says="v2_baseline")
    story.run("v2_full", 3, says_seed=1)
    story.run("v2_full", 1, says_seed=77)
    adoption = adopt(story, STEPPED)
    assert not adoption.proved
    told = reasons(adoption)
    assert (
        "its name says train/v2_full/4, but config.yaml: method says v2_baseline: the label contradicts the config"
        in told
    )
    assert "its name says train/v2_full/3, but config.yaml: seed says 1" in told
    assert "config.yaml: seed says 77" in told


def test_the_newest_proven_one_wins(story: Story) -> None:
    old, new = story.run("v2_full", 4), story.run("v2_full", 4)
    broken = story.run("v2_full", 4, last=3005)
    adoption = adopt(story, STEPPED)
    assert [proved.outcome.output for proved in adoption.proved] == [str(new)]
    told = {each.what: each.reason for each in adoption.refused}
    assert told[str(old)] == f"superseded by {new.name}, which is newer"
    assert "last step 3005" in told[str(broken)]
    assert len(adoption.matched) == 3


def test_a_folder_that_fits_two_cells(story: Story) -> None:
    run = story.run("v2_full", 4)
    (run / "config.yaml").unlink()
    adoption = adopt(story, STEPPED, state=state_of(campaign(STEPPED, "runs/*_{seed}")))
    assert "no declared cell: neither its name nor a config file says its config" in reasons(adoption)
    # two patterns that decide one axis each decide the cell together
    both = adopt(story, STEPPED, "runs/*v2*{seed}", "runs/*{config}*", state=state_of(campaign(STEPPED, "{out}")))
    assert [proved.cell for proved in both.proved] == ["train/v2_full/4"]


def test_overlapping_names_are_told_apart_by_the_config(story: Story) -> None:
    base = campaign(STEPPED)
    axes = (Axis("config", (AxisValue("v2", "v2"), AxisValue("v2_full", "v2_full"))), *base.axes[1:])
    state = state_of(replace(base, axes=axes))
    run = story.run("v2_full", 4)
    assert [proved.cell for proved in adopt(story, STEPPED, state=state).proved] == ["train/v2_full/4"]
    (run / "config.yaml").unlink()
    adoption = adopt(story, STEPPED, state=state)
    assert not adoption.proved
    assert reasons(adoption).endswith(
        "it fits 2 cells: train/v2/4, train/v2_full/4"
    )  # of one job: --job would not help


def test_jobs_with_the_same_axes(story: Story) -> None:
    story.run("v2_full", 4)
    base = campaign(STEPPED, "{out}")
    check = Job("check", ("config", "seed"), ("check",), needs=("train",))
    state = state_of(replace(base, jobs=(*base.jobs, check)))
    pattern = "runs/*_{config}_*_{seed}"
    adoption = adopt(story, STEPPED, pattern, state=state)
    assert not adoption.proved
    assert "it fits 2 cells: train/v2_full/4, check/v2_full/4; name the job with --job train" in reasons(adoption)
    one = find_adoptable_runs(state, story.folder, [pattern], None, FileProofReader(), "train")
    assert [proved.cell for proved in one.proved] == ["train/v2_full/4"], reasons(one)
    table = story.table([("v2_full", 4, "success", one.proved[0].outcome.output, "")])
    by_row = find_adoptable_runs(state, story.folder, [], table, FileProofReader(), "train")
    assert [proved.cell for proved in by_row.proved] == ["train/v2_full/4"], reasons(by_row)


def test_the_same_folder_again_is_no_refusal(story: Story) -> None:
    run = story.run("v2_full", 4)
    other = story.run("v2_full", 4)
    adopted = replace(attempt(Outcome(VerdictState.DONE, output=str(run))), adopted=True)
    state = _with(state_of(campaign(STEPPED)), "train/v2_full/4", attempts=(adopted,))
    adoption = adopt(story, STEPPED, state=state)
    assert [(known.cell, known.path) for known in adoption.already] == [("train/v2_full/4", str(run))]
    assert [each.what for each in adoption.refused] == [str(other)]
    ours = replace(adopted, adopted=False)  # Muster ran it itself: that is another story
    adoption = adopt(story, STEPPED, state=_with(state, "train/v2_full/4", attempts=(ours,)))
    assert not adoption.already


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("config.json", '{"config": "v2_full", "train": {"seed": 4}}'),
        ("args.json", '{"exp_name": "v2_full", "seed": 4, "lr": NaN}'),
        (".hydra/config.yaml", "method: {name: x}\nvariant: v2_full\nseed: 4\n"),
        ("config.yaml", "config: {value: v2_full}\nseed: {value: 4, desc: null}\n"),
        ("train_config.json", '{"configs": ["defaults", "v2_full"], "seed": 4, "env": {"seed": 0}}'),
    ],
)
def test_config_files_of_many_trainers(story: Story, name: str, text: str) -> None:
    run = story.run("v2_full", 4).rename(story.folder / "some-run")
    (run / "config.yaml").unlink()
    story.put(run / name, text.encode(), story.clock.timestamp())
    adoption = adopt(story, STEPPED, "some-*")
    assert [proved.cell for proved in adoption.proved] == ["train/v2_full/4"], reasons(adoption)


@pytest.mark.parametrize("text", ["", "{", "method: [v2_full", "\0\0\0"])
def test_half_written_config_says_nothing(story: Story, text: str) -> None:
    run = story.run("v2_full", 4)
    (run / "config.yaml").write_text(text)
    assert len(adopt(story, STEPPED).proved) == 1
    adoption = adopt(story, STEPPED, "runs/*", state=state_of(campaign(STEPPED, "{out}")))
    assert "no declared cell" in reasons(adoption)


def test_half_written_files(story: Story) -> None:
    story.run("v2_full", 4, half=True)
    story.run("v2_full", 3, weights=WEIGHTS[:-3])
    story.run("v2_full", 1, weights=b"")
    adoption = adopt(story, TIMED)
    assert [proved.cell for proved in adoption.proved] == ["train/v2_full/4"]
    assert "cut off" in reasons(adoption)
    assert "0 bytes" in reasons(adoption)
    (story.folder / "runs" / f"20260101-000000_v2_full_{TASK}_2").mkdir()
    assert "the folder has no file" in reasons(adopt(story, TIMED))


def test_useless_patterns_are_named(story: Story) -> None:
    adoption = adopt(story, STEPPED, "nowhere/*", "runs/{sede}")
    assert {each.what: each.reason for each in adoption.refused} == {
        "nowhere/*": "it fits no folder",
        "runs/{sede}": "{sede} is no axis of this campaign",
    }
    bare = adopt(story, STEPPED, state=state_of(campaign(STEPPED, "{out}")))
    assert "give a pattern" in reasons(bare)


# -- status tables


def test_rows_that_can_not_be_taken_in(story: Story) -> None:
    run = story.run("v2_full", 4)
    rows: list[tuple[object, ...]] = [
        ("v2_full", 4, "failed", f"runs/{run.name}", ""),
        ("v2_full", 9, "success", "runs/x", ""),
        ("v3", 1, "success", "runs/x", ""),
        ("v2_full", 1, "success", "runs/gone", ""),
        ("v2_full", 3, "success", f"runs/{run.name}", ""),
        ("v2_full", 0),
    ]
    adoption = adopt(story, STEPPED, table=story.table(rows))
    assert not adoption.proved
    told = reasons(adoption)
    assert "row 2: its status is 'failed'" in told
    assert "row 3: seed '9' is not declared" in told
    assert "row 4: config 'v3' is not declared" in told
    assert "row 5: run folder runs/gone does not exist" in told
    assert "row 6 of paper_train_status_latest.tsv says train/v2_full/3, but its name fits train/v2_full/4" in told
    assert "row 7: has 2 of 5 columns: cut off" in told


def test_a_failed_row_bars_its_folder_from_patterns(story: Story) -> None:
    run = story.run("v2_full", 4)
    table = story.table([("v2_full", 4, "killed", run)], "Method\tSeed\tState\tLogDir")
    assert not adopt(story, STEPPED, "runs/*_{config}_*_{seed}", table=table).proved


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("config\tseed\tstatus", lambda _: ("v2_full", 4, "SUCCESS")),
        ("variant\tseeds\tresult\tcheckpoint", lambda run: ("v2_full", "04", "done", f"{run}/checkpoint.ckpt")),
        ("Method\tSeed\tState\tLog Dir\tstarted\tended", lambda run: ("v2_full", 4, "ok", run, "?", "")),
        ("config,seed,status,path", lambda run: (f"v2_full,4,finished,runs/{run.name}",)),
    ],
)
def test_tables_of_other_scripts(story: Story, header: str, row: Callable[[Path], tuple[object, ...]]) -> None:
    run = story.run("v2_full", 4)
    adoption = adopt(story, TIMED, table=story.table([row(run)], header))
    assert [proved.cell for proved in adoption.proved] == ["train/v2_full/4"], reasons(adoption)


def test_without_any_proof_somebody_must_vouch(story: Story) -> None:
    run = story.run("v2_full", 4)
    story.run("v2_full", 3, last=3005)
    state = state_of(campaign(Proof()))
    adoption = adopt(story, Proof(), state=state)  # its steps are known: they stand in for a proof
    assert [proved.cell for proved in adoption.proved] == ["train/v2_full/4"]
    bare = replace(state.campaign, jobs=(replace(state.campaign.jobs[0], progress=()),))
    adoption = adopt(story, Proof(), state=state_of(bare))
    assert not adoption.proved
    assert "the exit code is not known, and no status table vouches for it" in reasons(adoption)
    table = story.table([("v2_full", 4, "success", run, "")])
    adoption = adopt(story, Proof(), table=table, state=state_of(bare))
    assert adoption.proved[0].outcome.reason.endswith("no proof is declared, its status is 'success'")


# -- times


def test_times_of_a_copy_prove_nothing(story: Story) -> None:
    run = story.run("v2_full", 4)
    later = story.clock.timestamp() + 90_000
    for path in run.iterdir():
        os.utime(path, (later, later))
    assert "is not known" in reasons(adopt(story, TIMED))
    assert "those of a copy" in adopt(story, STEPPED).proved[0].outcome.note


def test_a_stamp_of_another_time_zone_is_not_the_start(story: Story) -> None:
    run = story.run("v2_full", 4, saved=60)
    for path in run.iterdir():  # stamped eight hours off
        at = path.stat().st_mtime + 8 * 3600
        os.utime(path, (at, at))
    assert "checkpoint.ckpt saved at 0.9 % of the run" in reasons(adopt(story, TIMED))
