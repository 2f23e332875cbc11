"""Histories of a loop's runs, read while they run: whatever they are called, wherever they lie, whenever they come."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from muster.app.loop.run_pruning import FIND_PATIENCE_S, PRUNE_EVERY_S, FollowedRun, RunPruner
from muster.app.metrics import cell_history
from muster.app.metrics.cell_history import AttemptTrace
from muster.model.attempt import Attempt, CellRecord, Outcome
from muster.model.campaign import Campaign, DeclaredLoop, Job, LoopKeep, LoopPrune
from muster.model.campaign_state import CampaignState, Intent
from muster.model.cell import list_campaign_cells
from muster.model.variant import LoopRecord, Variant, add_variants_to_campaign
from muster.model.verdict import VerdictState
from muster.readers.records.history_parts import HistoryChain
from muster.rules.rank_variants import PruneRule

sys.path.insert(0, str(Path(__file__).parents[1] / "contract"))
from history_files import board_bytes, wandb_bytes

RULE = PruneRule("eval/loss", "lower", after=0, least=1)
DONE = Outcome(VerdictState.DONE)


def rows(*losses: float, key: str = "eval/loss") -> str:
    return "".join(json.dumps({"step": at, key: loss}) + "\n" for at, loss in enumerate(losses))


def traces(places: Sequence[Path]) -> list[AttemptTrace]:
    return [AttemptTrace(1, tuple(map(str, places)))]


def follow(folder: Path, rule: PruneRule = RULE) -> FollowedRun:
    followed = FollowedRun("a", rule)
    followed.look(lambda: traces([folder]), ended=False)
    return followed


def seen(followed: FollowedRun, *places: Path, ended: bool = False) -> tuple[list[float], list[float]]:
    trail = followed.look(lambda: traces(places), ended=ended)
    return trail.steps, trail.bests


# -- one run


@pytest.mark.parametrize("key", ["eval/loss", "eval.loss"])
@pytest.mark.parametrize("logged", [{"eval/loss": 3.0}, {"eval": {"loss": 3.0}}], ids=["slash", "nested"])
def test_a_key_is_found_as_the_rules_find_it(tmp_path: Path, key: str, logged: dict[str, Any]) -> None:
    (tmp_path / "metrics.jsonl").write_text(json.dumps({"step": 1, **logged}) + "\n")
    assert seen(FollowedRun("a", replace(RULE, key=key)), tmp_path) == ([1], [3])


def test_the_key_itself_counts_before_one_that_is_alike_and_two_that_are_alike_mean_nothing(tmp_path: Path) -> None:
    log = tmp_path / "metrics.jsonl"
    log.write_text('{"step": 1, "eval": {"loss": 9.0}, "eval/loss": 3.0}\n')
    assert seen(FollowedRun("a", RULE), tmp_path) == ([1], [3])
    odd = FollowedRun("a", replace(RULE, key="a/b/c"))
    log.write_text('{"step": 1, "a.b/c": 1.0, "a/b.c": 2.0}\n')
    assert seen(odd, tmp_path) == ([], [])
    with log.open("a") as file:
        file.write('{"step": 2, "a/b/c": 4.0}\n')
    assert seen(odd, tmp_path) == ([2], [4])


def test_folders_of_one_run_are_told_apart_by_their_names(tmp_path: Path) -> None:
    for name, loss in (("train", 1.0), ("eval", 5.0)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "events.out.tfevents.1.host").write_bytes(board_bytes([{"step": 2, "loss": loss}]))
    assert seen(FollowedRun("a", RULE), tmp_path) == ([2], [5])


def test_where_two_formats_hold_the_key_the_one_that_is_trusted_more_counts(tmp_path: Path) -> None:
    (tmp_path / "run-x.wandb").write_bytes(wandb_bytes([{"step": at, "eval/loss": 1.0} for at in range(9)]))
    (tmp_path / "metrics.jsonl").write_text(rows(4, 3))
    assert seen(FollowedRun("a", RULE), tmp_path) == ([0, 1], [4, 3])


def test_metrics_that_appear_after_the_log(tmp_path: Path) -> None:
    """Whatever was found first stayed for ever, and the trail empty."""
    (tmp_path / "train.log").write_text("step: 1 lr: 0.5\n")
    followed = follow(tmp_path)
    assert seen(followed, tmp_path) == ([], [])
    (tmp_path / "metrics.jsonl").write_text(rows(4, 3))
    assert seen(followed, tmp_path) == ([0, 1], [4, 3])
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 2, "eval/loss": 1.0}\n')
    assert seen(followed, tmp_path) == ([0, 1, 2], [4, 3, 1])


def test_files_are_looked_for_until_the_key_was_found_and_once_a_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []
    found = cell_history.newest_run_in
    monkeypatch.setattr(
        cell_history, "newest_run_in", lambda place, patience: asked.append(patience) or found(place, patience)
    )
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "other": 1.0}\n')
    followed = follow(tmp_path)
    seen(followed, tmp_path)
    assert asked == [FIND_PATIENCE_S] * 2
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 2, "eval/loss": 1.0}\n')
    for _ in range(3):
        assert seen(followed, tmp_path) == ([2], [1])
    assert len(asked) == 3
    assert FIND_PATIENCE_S <= 1


def test_what_is_printed_counts_where_nothing_else_does(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "stdout.log").write_text("step: 3 eval/loss: 0.5\n")
    followed = follow(out)
    assert seen(followed, out, tmp_path) == ([3], [0.5])
    (out / "metrics.jsonl").write_text('{"step": 1, "other": 1.0}\n')
    assert seen(FollowedRun("a", RULE), out, tmp_path) == ([], []), "as for whoever ranks the runs"


def test_a_file_that_was_replaced_counts_alone(tmp_path: Path) -> None:
    log = tmp_path / "metrics.jsonl"
    log.write_text(rows(1, 1, 1))
    followed = follow(tmp_path)
    log.unlink()
    log.write_text(rows(7))
    assert seen(followed, tmp_path) == ([0], [7])


@pytest.mark.parametrize("error", [ValueError("broken"), RecursionError(), MemoryError()])
def test_a_broken_file_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    (tmp_path / "metrics.jsonl").write_text(rows(4))
    followed = follow(tmp_path)

    def fail(_: HistoryChain) -> None:
        raise error

    monkeypatch.setattr(HistoryChain, "read", fail)
    assert seen(followed, tmp_path) == ([0], [4])
    assert not followed.over
    seen(followed, tmp_path, ended=True)
    assert followed.over, "no look will ever read it"


def test_a_run_that_was_resumed_is_followed_from_its_first_attempt_on(tmp_path: Path) -> None:
    """Not hopeless for the few steps since it was resumed; what was run again counts once."""
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    (tmp_path / "1" / "metrics.jsonl").write_text(rows(9, 8, 7, 6))
    chain = [AttemptTrace(1, (str(tmp_path / "1"),)), AttemptTrace(2, (str(tmp_path / "2"),))]
    followed = FollowedRun("a", RULE)
    assert followed.look(lambda: chain, ended=False).bests == [9, 8, 7, 6]
    late = "".join(json.dumps({"step": at, "eval/loss": loss}) + "\n" for at, loss in ((2, 7.5), (3, 5)))
    (tmp_path / "2" / "metrics.jsonl").write_text(late)
    trail = followed.look(lambda: chain, ended=False)
    assert (trail.steps, trail.bests) == ([0, 1, 2, 3], [9, 8, 7.5, 5])
    with (tmp_path / "2" / "metrics.jsonl").open("a") as file:
        file.write(json.dumps({"step": 4, "eval/loss": 4.0}) + "\n")
    assert followed.look(lambda: chain, ended=True).bests == [9, 8, 7.5, 5, 4]
    assert followed.over


def test_a_walk_that_fails_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    followed = FollowedRun("a", RULE)
    for error, over in ((OSError("stale"), False), (ValueError("odd"), True)):

        def fail(*_: object, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(cell_history, "newest_run_in", fail)
        seen(followed, tmp_path, ended=True)
        assert followed.over is over


def test_what_can_not_be_read_now_is_read_at_the_next_look_and_holds_up_no_other(tmp_path: Path) -> None:
    log = tmp_path / "metrics.jsonl"
    log.mkdir()
    (tmp_path / "progress.csv").write_text("step,eval/loss\n1,2.5\n")
    (tmp_path / "scores.jsonl").symlink_to("metrics.jsonl")
    assert seen(FollowedRun("a", RULE), tmp_path) == ([1], [2.5])
    log.rmdir()
    log.write_text(rows(4))
    followed = follow(tmp_path)
    log.unlink()
    os.mkfifo(log)
    seen(followed, tmp_path, ended=True)
    assert not followed.over
    log.unlink()
    log.write_text(rows(6))
    assert seen(followed, tmp_path, ended=True) == ([0], [6])
    assert followed.over


# -- all of them


class Hands:
    def __init__(self) -> None:
        self.now = 100.0

    def boot(self) -> float:
        return self.now

    wall = boot


class World:
    """Runs of a loop, each in a folder of its own."""

    def __init__(self, root: Path, **prune: Any) -> None:
        self.root = root
        self.clock = Hands()
        self.pruning = RunPruner(self.places, self.clock)
        self.prune = LoopPrune(least=1, **prune)
        self.ended: dict[str, Outcome] = {}
        self.steps: int | None = None
        self.names: list[str] = []

    def run(self, name: str, text: str, *, ended: bool = False) -> None:
        folder = self.root / name / "out"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "metrics.jsonl").write_text(text)
        self.names = list(dict.fromkeys([*self.names, name]))
        if ended:
            self.ended[f"train/{name}"] = DONE

    def places(self, _: CellRecord, attempt: Attempt) -> Sequence[AttemptTrace]:
        folder = self.root / attempt.cell.partition("/")[2]
        return traces([folder / "out", folder])

    def state(self) -> CampaignState:
        keep = LoopKeep(by='last("eval/loss")', better="lower")
        job = Job("train", (), ("x",), steps=self.steps)
        plain = Campaign("c", (), (job,), loop=DeclaredLoop("train", (), keep=keep, prune=self.prune))
        record = LoopRecord(tuple(Variant(name, f"/c/{name}.json", 1, name) for name in self.names), 1)
        campaign = add_variants_to_campaign(plain, record.variants)
        cells = {}
        for at, cell in enumerate(list_campaign_cells(campaign)):
            tries = (Attempt(cell.id, 1, "t", 1, (), "", "", 0.0, "", outcome=self.ended.get(cell.id)),)
            cells[cell.id] = CellRecord(cell, at, attempts=tries)
        return CampaignState(campaign, "h", "", Intent(), 1, (), cells, loop=record)

    def hopeless(self) -> dict[tuple[str, int], str]:
        stops = self.pruning.observe(self.state(), polling=True).stops
        return {key: request.why for key, request in stops.items()}

    def look(self) -> Mapping[tuple[str, int], str]:
        """The next one, and what came of it."""
        self.clock.now += PRUNE_EVERY_S
        self.hopeless()
        deadline = time.monotonic() + 30
        while any(thread.name == "files" for thread in threading.enumerate()):
            assert time.monotonic() < deadline
            time.sleep(0.005)
        return self.hopeless()


def test_who_is_behind_the_others_is_hopeless(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.run("a", rows(3, 2, 1), ended=True)
    world.run("b", rows(9, 8))
    assert {key: why.partition(",")[0] for key, why in world.look().items()} == {
        ("train/b", 1): "its best eval/loss at step 1 is 8"
    }
    world.run("b", rows(9, 8, 0.5))
    assert world.look() == {}
    world.prune = LoopPrune(least=1, key="other")
    assert world.look() == {}, "another rule begins anew"
    world.prune = LoopPrune(least=1)
    world.run("b", rows(9, 8))
    assert list(world.look()) == [("train/b", 1)]


def test_who_has_nearly_all_steps_behind_is_not(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.run("a", rows(3, 2, 1), ended=True)
    world.run("b", rows(9, 8))
    for world.steps, count in ((2, 1), (1, 0)):
        assert len(world.look()) == count


def test_a_run_whose_files_hang_holds_up_neither_the_controller_nor_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    for name, text in (("a", rows(9, 8)), ("b", rows(1, 1)), ("c", rows(9, 9))):
        world.run(name, text)
    gate, found = threading.Event(), cell_history.newest_run_in
    entered = threading.Event()

    def hang(place: str, patience: float) -> Any:
        if f"{os.sep}a{os.sep}" in place:
            entered.set()
            gate.wait(30)
        return found(place, patience)

    monkeypatch.setattr(cell_history, "newest_run_in", hang)
    try:
        for _ in range(4):
            world.clock.now += PRUNE_EVERY_S
            began = time.monotonic()
            told = world.hopeless()
            assert time.monotonic() - began < 5
        deadline = time.monotonic() + 30
        while not (told := world.hopeless()):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert entered.is_set()
        assert list(told) == [("train/c", 1)]
    finally:
        gate.set()
    assert set(world.look()) == {("train/a", 1), ("train/c", 1)}


def test_a_broken_run_prunes_nobody_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path)
    world.run("a", rows(9, 8))
    world.run("b", rows(1, 1))
    world.run("c", rows(9, 9))
    read = HistoryChain.read

    def fail(self: HistoryChain) -> Any:
        if f"{os.sep}a{os.sep}" in self.path:
            raise ValueError("what is this?")
        return read(self)

    monkeypatch.setattr(HistoryChain, "read", fail)
    assert list(world.look()) == [("train/c", 1)]
