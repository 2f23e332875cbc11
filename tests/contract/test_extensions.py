"""What every extension of the controller promises, and in which order the loop asks them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from muster.app.campaign.registered_campaigns import RegisterKeeper
from muster.app.finish.run_finish import CampaignFinish, FinishRunner, LoopRounds, PeopleNotifier
from muster.app.gates.gate_watcher import GateWatcher
from muster.app.loop.run_pruning import RunPruner
from muster.engine.controller.decide import End
from muster.engine.controller.loop import ControllerLoop
from muster.engine.ports.clock import SystemClock
from muster.engine.ports.extension import (
    NOTHING_OBSERVED,
    ControllerExtension,
    LazyObserver,
    Observation,
    ScriptedExtension,
    StopRequest,
)
from muster.hosts.local.executor import LocalStepExecutor
from muster.model.campaign import Campaign, DeclaredGate, GateSource, Job
from muster.model.campaign_state import CampaignState, Intent
from muster.model.decision import Decision

PLAIN = CampaignState(Campaign("c", (), (Job("train", (), ("true",)),)), "h", "", Intent(), 1, (), {})
NEWS = Decision("notice", "controller", "gate rise is open")


def finish_runner(root: Path) -> FinishRunner:
    clock = SystemClock()
    return FinishRunner(root, clock, Decision, LocalStepExecutor(root / ".muster", clock), epoch=1, revive_s=1.0)


EXTENSIONS: dict[str, Callable[[Path], ControllerExtension]] = {
    "base": lambda _: ControllerExtension(),
    "fake": lambda _: ScriptedExtension(),
    "pruning": lambda _: RunPruner(lambda *_: (), SystemClock()),
    "gates": lambda root: GateWatcher(lambda *_: root, lambda _: None, lambda _: (), SystemClock(), Decision),
    "rounds": lambda root: LoopRounds(finish_runner(root)),
    "finish": lambda root: CampaignFinish(finish_runner(root)),
    "notices": lambda root: PeopleNotifier(str(root)),
    "register": lambda root: RegisterKeeper(root / ".muster", SystemClock(), 3600.0),
}


@pytest.mark.parametrize("name", EXTENSIONS)
def test_a_campaign_that_does_not_ask_for_it_sees_nothing_of_it(name: str, tmp_path: Path) -> None:
    extension = EXTENSIONS[name](tmp_path)
    extension.configure(PLAIN)
    assert extension.observe(PLAIN, polling=False) == extension.observe(PLAIN, polling=True) == NOTHING_OBSERVED
    decisions, nothing_left = extension.at_rest(PLAIN, complete=False)
    assert (list(decisions), nothing_left) == ([], True)
    extension.notify(PLAIN, NEWS)
    extension.publish(PLAIN)
    extension.end_turn(PLAIN)
    extension.close()
    assert list(tmp_path.iterdir()) == []


def test_a_lazy_one_is_loaded_once_and_only_where_it_is_needed() -> None:
    loaded: list[ScriptedExtension] = []

    def load() -> ScriptedExtension:
        loaded.append(ScriptedExtension(Observation([NEWS])))
        return loaded[-1]

    lazy = LazyObserver(lambda campaign: bool(campaign.gates), load)
    assert lazy.observe(PLAIN, polling=True) == NOTHING_OBSERVED
    assert loaded == []
    gated = replace(
        PLAIN, campaign=replace(PLAIN.campaign, gates={"rise": DeclaredGate(job="train", read=GateSource(csv="a.csv"))})
    )
    assert lazy.observe(gated, polling=True).decisions == [NEWS]
    lazy.observe(gated, polling=False)
    assert [each.asked for each in loaded] == [["observe polling", "observe"]]


def loop_with(*extensions: ControllerExtension) -> Any:
    """As much of a loop as the calls below need."""
    loop: Any = SimpleNamespace(extensions=extensions, state=PLAIN, log=[], ended=[])
    loop.ports = SimpleNamespace(store=SimpleNamespace(commit=loop.log.extend))
    loop.carrier = SimpleNamespace(ask_all_back=lambda _: None)
    loop._absorb = lambda _: None
    loop._notify = lambda decisions: ControllerLoop._notify(loop, decisions)
    loop._carry_on = lambda extension, complete: ControllerLoop._carry_on(loop, extension, complete=complete)
    loop._end = lambda *said: loop.ended.append(said)
    return loop


def test_what_several_observed_is_recorded_in_their_order_and_told_to_all() -> None:
    first, second = ScriptedExtension(Observation([NEWS])), ScriptedExtension(Observation([replace(NEWS, reason="2")]))
    loop = loop_with(first, second)
    assert ControllerLoop._observe(loop, polling=False) == [first.observed, second.observed]
    assert [each.reason for each in loop.log] == ["gate rise is open", "2"]
    assert first.asked == second.asked == ["observe", "notify gate rise is open", "notify 2"]


def test_the_finish_waits_until_no_round_is_left() -> None:
    rounds, finish = ScriptedExtension(steps=[([NEWS], False), ((), False)]), ScriptedExtension()
    loop = loop_with(rounds, finish)
    ControllerLoop._do(loop, End(True, "complete"))
    assert (loop.log, finish.asked, loop.ended) == ([NEWS], ["notify gate rise is open"], [])
    ControllerLoop._do(loop, End(True, "complete"))
    assert (finish.asked[-1], loop.ended) == ("at_rest complete", [(True, "complete")])


def test_an_extension_that_comes_first_stops_first() -> None:
    from muster.engine.controller.loop import _stops_by_attempt

    pruned, shut = StopRequest("pruned", "worse than others", only_running=True), StopRequest("gate_stop", "shut")
    found = [Observation(stops={("train/0", 1): pruned}), Observation(stops={("train/0", 1): shut})]
    assert _stops_by_attempt(found) == {("train/0", 1): [pruned, shut]}
