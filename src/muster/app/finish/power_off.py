"""Powers the machine off, with proof that all is done: the looks in a child process, the countdown, the command.

What can't be read counts as active. The command is recorded before it is run, and what was recorded once is never run
again by itself: a machine that is switched on again must not go down by an old request.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.campaign_status import Status
from muster.app.campaign.finish_steps import (
    POWER_OFF_TIMEOUT_S,
    StepView,
    countdown_seconds,
    matrix_state_key,
    power_off_command,
)
from muster.app.campaign.observe_campaign import observe_campaign
from muster.app.finish.living_remains import (
    find_neighbour_campaigns,
    find_remains_of_campaign,
    find_writers_and_strays,
)
from muster.app.finish.power_off_rules import (
    PowerOffCheck,
    PowerOffFacts,
    PowerOffOutcome,
    PowerSwitch,
    ShutdownCountdown,
    check_power_off,
    find_power_off_refusals,
    waits_for_others,
)
from muster.engine.ports.clock import second_look_seconds
from muster.engine.ports.executor import LeaseHolder, LeaseObstacle
from muster.engine.ports.services import installed_services
from muster.files.atomic_write import make_private_folder, open_to_append, umask_of_caller
from muster.files.muster_home import slots_home
from muster.files.own_processes import own_process_environment, own_python_command
from muster.files.process_identity import all_token_carriers
from muster.model.attempt import Attempt
from muster.model.campaign_state import CampaignState
from muster.model.errors import MusterError
from muster.readers.background_reader import run_in_daemon_thread

LONGEST_OUTPUT_TAIL = 2000
COUNTDOWN_TICK_S = 0.2


def find_reasons_against_power_off(desk: CampaignHandle, *, quick: bool = False) -> tuple[Status, PowerOffCheck]:
    """One look: all that stands against powering off now.

    `quick`: every derived file is read again only where all else is well; for who looks each minute.
    """
    found = observe_campaign(desk)
    carriers = _token_carriers_by_attempt(found.state)
    reasons = [*find_power_off_refusals(found, carriers, find_busy_gpus()), *_describe_held_leases()]
    if found.finish:
        reasons += [_describe_undone_step(view) for view in found.finish.undone]
    facts = _gather_power_off_facts(desk, found.state, carriers)
    seen = check_power_off(facts, reasons, waits=waits_for_others(found.state))
    if not (quick and seen.reasons):
        seen = replace(seen, reasons=(*seen.reasons, *_describe_stale_files(desk.root, found.state)))
    return found, seen


def _gather_power_off_facts(
    desk: CampaignHandle, state: CampaignState, carriers: Mapping[str, Sequence[int]] | None
) -> PowerOffFacts:
    remains = find_remains_of_campaign(desk.root, state)
    around, states = find_neighbour_campaigns(desk.root, desk.clock.boot())
    others = tuple(_describe_other_users())
    # a writer that stands against it by another name already is told once
    named = {pid for pids in (carriers or {}).values() for pid in pids}
    named |= {pid for each in (*remains, *(left for one in around for left in one.remains)) for pid in each.orphans}
    try:
        writers, shims = find_writers_and_strays({desk.root: state, **states})
    except OSError as error:
        unread = (f"who writes into output folders can't be read: {error.strerror}",)
        return PowerOffFacts(remains, tuple(around), (), unread, others)
    lost = tuple(f"pid {pid} is the shim of a run whose campaign is not known any more" for pid in shims)
    return PowerOffFacts(remains, tuple(around), tuple(each for each in writers if each.pid not in named), lost, others)


def _describe_other_users() -> list[str]:
    """One sentence for each person. It names their oldest process only, so that it stays the same."""
    try:
        return [
            f"{each.user} works here: {each.command} (pid {each.pid})"
            for each in installed_services().machine.other_users()
        ]
    except OSError as error:
        return [f"whether other users work here can't be read: {error.strerror}"]


def _describe_undone_step(view: StepView) -> str:
    said = f": {view.why}" if view.why else ""
    return f"finish: {view.step.name} (`{view.step.what}`) is {view.standing}{said}"


def _token_carriers_by_attempt(state: CampaignState) -> dict[str, list[int]] | None:
    """Who carries a token, by attempt. Another MUSTER_HOME that was set is another machine's: a container, a test."""
    try:
        found = all_token_carriers()
    except OSError:
        return None
    names = {attempt.token: f"{attempt.cell}@{attempt.n}" for attempt in _all_attempts(state)}
    names |= {record.token: f"finish {record.step}" for record in state.finish.steps.values()}
    told: dict[str, list[int]] = {}
    for token, carriers in found.items():
        if token in names:
            told[names[token]] = [carrier.pid for carrier in carriers]
            continue
        pids = [each.pid for each in carriers if each.home is None or Path(each.home) == slots_home()]
        if pids:
            told.setdefault("a run of another campaign", []).extend(pids)
    return told


def _all_attempts(state: CampaignState) -> Iterator[Attempt]:
    return (attempt for record in state.cells.values() for attempt in record.attempts)


def _describe_held_leases() -> list[str]:
    try:
        held = installed_services().machine.slot_holders()
    except OSError as error:
        return [f"which slots are leased can't be read: {error.strerror}"]
    return [_describe_lease(name, holder) for name, holder in held.items()]


def _describe_lease(name: str, holder: LeaseHolder) -> str:
    if isinstance(holder, LeaseObstacle):
        return f"whether slot {name} is leased can't be told: it is held by {holder}"
    return f"slot {name} is leased: something of Muster runs on this machine"


def find_busy_gpus() -> Mapping[int, str]:
    """GPUs in use. Nothing of ours runs, so whoever sits there is somebody else; one that can't be read is in use."""
    return {gpu.index: gpu.why for gpu in installed_services().machine.gpus() if gpu.busy}


def _describe_stale_files(root: Path, state: CampaignState) -> list[str]:
    """Derived files that no longer say what the results say."""
    finish = state.campaign.finish
    if not (finish and finish.report) and not _has_derived_files(root / "reports"):
        return []
    try:
        from muster.app.report.verify_files import find_stale_files  # heavy, and most looks end before it

        return [f"a derived file is not fresh: {what}" for what in find_stale_files(root)]
    except Exception as error:  # whatever is wrong with them, they are not known to be fresh
        return [f"whether the derived files are fresh can't be told: {error}"]


def _has_derived_files(folder: Path) -> bool:
    """Anything but the tables of `status`, which the controller keeps up to date itself."""
    try:
        return any(path.name != "status" for path in folder.iterdir())
    except FileNotFoundError:
        return False


# -- the command


def run_power_off_command(command: str, root: Path, environment: Mapping[str, str] | None = None) -> PowerOffOutcome:
    """By a shell, its output to .muster/finish/shutdown.log."""
    path = root / ".muster" / "finish" / "shutdown.log"
    make_private_folder(path.parent)
    with open(open_to_append(path), "ab") as log:
        begin = log.tell()
        try:
            done = subprocess.run(
                ["/bin/sh", "-c", command],
                cwd=root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                timeout=POWER_OFF_TIMEOUT_S,
                check=False,
                umask=umask_of_caller(),
            )
        except subprocess.TimeoutExpired:
            return PowerOffOutcome(False, f"`{command}` has not returned within {POWER_OFF_TIMEOUT_S:.0f} s")
        except OSError as error:
            return PowerOffOutcome(False, f"`{command}` could not be run: {error.strerror}")
    if done.returncode == 0:
        return PowerOffOutcome(True, f"`{command}` ended with exit 0")
    said = " ".join(path.read_bytes()[begin:].decode("utf-8", "replace")[-LONGEST_OUTPUT_TAIL:].split())
    return PowerOffOutcome(False, f"`{command}` ended with exit {done.returncode}" + (f": {said}" if said else ""))


def read_recorded_environment(state: CampaignState) -> dict[str, str] | None:
    """As `up` recorded it; None: it can't be read, ours must do."""
    try:
        found = json.loads(Path(state.env_file).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        return None
    return found


# -- by a command, in front of a person


@dataclass(frozen=True, slots=True)
class ShutdownResult:
    """What became of `muster shutdown`."""

    what: str  # refused | would shut down | shut down | failed | cancelled
    status: Status
    command: str
    reasons: tuple[str, ...] = ()
    others: tuple[str, ...] = ()  # who else works here, also where that is ignored

    @property
    def ok(self) -> bool:
        return self.what in ("would shut down", "shut down")


class ShutdownRun:
    """Look, pause, look, countdown, last look, record, run. `tick` shows it and is called a few times each second."""

    def __init__(self, desk: CampaignHandle, countdown: float | None) -> None:
        self.desk = desk
        state = desk.load()
        self.command = power_off_command(state)
        self.countdown_s = countdown_seconds(state) if countdown is None else countdown
        self.cancels = state.finish.cancels

    def would(self, *, quick: bool = False) -> ShutdownResult:
        found, seen = find_reasons_against_power_off(self.desk, quick=quick)
        return ShutdownResult(
            "refused" if seen.reasons else "would shut down", found, self.command, seen.reasons, seen.others
        )

    def run(self, tick: Callable[[str, float], None]) -> ShutdownResult:
        vigil = ShutdownCountdown(second_look_seconds(), self.countdown_s)
        found, seen = find_reasons_against_power_off(self.desk)
        began = not seen.reasons
        while not seen.reasons:
            vigil = vigil.saw(seen.reasons, self._now())
            if vigil.move(self._now()) == "go":
                return self._go(found)
            self.tell(
                "counting" if vigil.counting else "clear",
                "by hand",
                found.state,
                countdown_s=vigil.next_at - self._now(),
            )
            while vigil.move(self._now()) == "wait":
                if self._cancelled():
                    return ShutdownResult("cancelled", found, self.command)
                left = vigil.next_at - self._now()
                tick("counting down" if vigil.counting else "second look", left)
                time.sleep(max(0.0, min(COUNTDOWN_TICK_S, left)))
            found, seen = find_reasons_against_power_off(self.desk)
        if began:
            self.drop()
        return ShutdownResult("refused", found, self.command, seen.reasons, seen.others)

    def drop(self) -> None:
        """Let go on the way: so that nobody waits for it any more."""
        self.tell("dropped", "let go", self.desk.load())

    def _go(self, found: Status) -> ShutdownResult:
        mark = secrets.token_hex(8)
        began = self.tell("began", f"`{self.command}`", found.state, cancels=self.cancels, mark=mark)
        if began is not None:
            return ShutdownResult("cancelled", found, self.command, (began,))
        ran = run_power_off_command(self.command, self.desk.root)
        with contextlib.suppress(OSError, MusterError):  # the machine may be going down already
            self.tell("ended" if ran.ok else "failed", ran.why, found.state, reasons=[ran.why], mark=mark)
        return ShutdownResult("shut down" if ran.ok else "failed", found, self.command, (ran.why,))

    def tell(self, what: str, reason: str, state: CampaignState, **more: Any) -> str | None:
        """Records it; returns why it was refused."""
        data = {"what": what, "key": matrix_state_key(state), "command": self.command, **more}
        return self.desk.decide([self.desk.person("shutdown", reason, data=data)])[0]

    def _cancelled(self) -> bool:
        return self.desk.load().finish.cancels != self.cancels

    def _now(self) -> float:
        return self.desk.clock.boot()


CHECK_TIMEOUT_S = 1800.0  # to see whether all derived files are fresh may take long


def build_power_switch(root: Path) -> PowerSwitch:
    return PowerSwitch(
        look=lambda: run_in_daemon_thread(lambda: check_power_off_in_child(root)),
        run=lambda command, state: run_in_daemon_thread(
            lambda: run_power_off_command(command, root, read_recorded_environment(state))
        ),
        pause_s=second_look_seconds(),
    )


def check_power_off_in_child(root: Path) -> PowerOffCheck:
    """What stands against it now, by a process of its own: a look is heavy, and drivers and files may hang."""
    argv = own_python_command("muster", "-C", str(root), "shutdown", "--dry-run", "--quick", "--json")
    done = subprocess.run(
        argv,
        env=own_process_environment(os.environ, root),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=CHECK_TIMEOUT_S,
        check=False,
    )
    if done.returncode not in (0, 3):
        said = done.stderr.decode("utf-8", "replace")[-500:]
        return PowerOffCheck(
            (f"it could not be looked at: `muster shutdown --dry-run` ended with {done.returncode}: {said}",)
        )
    told = json.loads(done.stdout)
    found = PowerOffCheck(tuple(map(str, told["reasons"])), tuple(map(str, told["others"])))
    if done.returncode and not found.reasons:
        return PowerOffCheck(("it could not be looked at: it was refused without a reason",))
    return found
