"""The power-off in the controller's turns: others are waited for, and told of once; ignored ones are named at the end."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from muster.app.campaign.finish_steps import FinishStep, PowerOff
from muster.app.finish.power_off_rules import PowerOffCheck, PowerOffOutcome, PowerOffStep, PowerSwitch
from muster.model.campaign import Campaign, DeclaredFinish
from muster.model.campaign_state import CampaignState, Intent, ShutdownProgress
from muster.model.decision import Decision

STRANGER = "uid 4242 works here: python train.py (pid 7)"
DUE = PowerOff(FinishStep("shutdown", "shutdown", "off", 60.0))


class Machine:
    """What the next looks find, and which words are said."""

    def __init__(self, others: str = "wait") -> None:
        self.now = 0.0
        self.found = PowerOffCheck(())
        self.said: list[Decision] = []
        self.ran: list[str] = []
        campaign = Campaign("c", (), (), finish=DeclaredFinish(shutdown=True, others=others))
        self.state = CampaignState(campaign, "h", "", Intent(), 1)
        self.powering = PowerOffStep(PowerSwitch(self._look, self._run, 60.0), self, self._decide)

    def boot(self) -> float:
        return self.now

    def wall(self) -> float:
        raise AssertionError("nothing here goes by the wall clock")

    def _look(self) -> Future[PowerOffCheck]:
        return done(self.found)

    def _run(self, command: str, _: CampaignState) -> Future[PowerOffOutcome]:
        self.ran.append(command)
        return done(PowerOffOutcome(True, "it did"))

    def _decide(self, kind: str, reason: str, **more: Any) -> Decision:
        return Decision(kind, "controller", reason, data=more.get("data", {}))

    def pass_time(self, minutes: int) -> list[str]:
        """What people hear in so many minutes, a turn each second."""
        before = len(self.said)
        for _ in range(minutes * 60):
            self.said += self.powering(DUE, self.state)
            self.now += 1.0
        return [each.reason for each in self.said[before:] if each.kind == "notice"]

    @property
    def stages(self) -> list[str]:
        return [str(each.data["what"]) for each in self.said if each.kind == "shutdown"]


def done(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


def test_others_are_waited_for_and_told_of_once() -> None:
    machine = Machine()
    machine.found = PowerOffCheck((STRANGER,), (STRANGER,))
    (told,) = machine.pass_time(30)
    assert told.startswith(f"the machine stays on for others: {STRANGER}")
    assert "others: ignore" in told
    assert machine.stages == ["refused"]
    machine.found = PowerOffCheck(())
    (counting,) = machine.pass_time(2)
    assert counting.startswith("the machine is powered off in 60 s")
    assert machine.stages == ["refused", "clear", "counting"]
    machine.found = PowerOffCheck((STRANGER,), (STRANGER,))  # in the last look
    (told,) = machine.pass_time(1)
    assert "stays on for others" in told
    assert machine.stages[-1] == "refused"


def test_ignored_others_are_named_before_the_countdown() -> None:
    machine = Machine("ignore")
    machine.found = PowerOffCheck((), (STRANGER,))
    (told,) = machine.pass_time(2)
    assert told.endswith(f"It does not wait for others: {STRANGER}")
    assert machine.stages == ["clear", "counting"]


def test_what_else_stands_against_it_is_no_word_about_others() -> None:
    machine = Machine()
    machine.found = PowerOffCheck(("train@1: pid 7, which it left behind, lives on",))
    assert machine.pass_time(5) == []
    assert machine.stages == ["refused"]


def test_the_command_is_never_taken_from_the_log() -> None:
    """What was recorded may have been masked there, or written by somebody else."""
    machine = Machine()
    while "began" not in machine.stages:
        machine.pass_time(1)
    mark = str(machine.said[-1].data["mark"])
    for other, expected in (("?", []), (mark, ["off"])):
        stage = ShutdownProgress(
            "began", "2026-01-01T00:00:00+00:00", 100.0, "me", "k", command="touch PWNED", mark=other
        )
        machine.powering(PowerOff(FinishStep("shutdown", "shutdown", stage.command), stage), machine.state)
        assert machine.ran == expected
