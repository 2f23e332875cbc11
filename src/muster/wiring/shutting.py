"""Powers the machine off, with proof that all is done: the looks, the countdown, the command.

What can't be read counts as active. The command is recorded before it is run, and what was recorded once is never run
again by itself: a machine that is switched on again must not go down by an old wish.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from muster.acts import finish
from muster.acts.powering import Ran
from muster.acts.shutdown import Facts, Looked, Vigil, refusals, standing_against, waits_for_others
from muster.acts.status import Status
from muster.domain.attempt import Attempt
from muster.domain.errors import MusterError
from muster.domain.state import CampaignState
from muster.execute.gpus import GpuWatch, find_gpus
from muster.execute.slots import Holder, Obstacle, SlotHouse, home
from muster.observe.other_users import other_users
from muster.observe.process import all_carriers
from muster.ports.write_files import make_private_folder, open_to_append, umask_of_caller
from muster.wiring.desk import Desk
from muster.wiring.pace import second_look_s
from muster.wiring.remains import neighbours, opened, remains_of
from muster.wiring.survey import look

TAIL = 2000
BLINK_S = 0.2


def against(desk: Desk, *, quick: bool = False) -> tuple[Status, Looked]:
    """One look: all that stands against powering off now.

    `quick`: every derived file is read again only where all else is well; for who looks each minute.
    """
    found = look(desk)
    carriers = _carriers(found.state)
    reasons = [*refusals(found, carriers, foreign()), *_leases()]
    if found.finish:
        reasons += [_undone(view) for view in found.finish.undone]
    facts = _facts(desk, found.state, carriers)
    seen = standing_against(facts, reasons, waits=waits_for_others(found.state))
    if not (quick and seen.reasons):
        seen = replace(seen, reasons=(*seen.reasons, *_stale(desk.root, found.state)))
    return found, seen


def _facts(desk: Desk, state: CampaignState, carriers: Mapping[str, Sequence[int]] | None) -> Facts:
    remains = remains_of(desk.root, state)
    around, states = neighbours(desk.root, desk.clock.boot())
    others = tuple(_others())
    # a writer that stands against it by another name already is told once
    named = {pid for pids in (carriers or {}).values() for pid in pids}
    named |= {pid for each in (*remains, *(left for one in around for left in one.remains)) for pid in each.orphans}
    try:
        writers, shims = opened({desk.root: state, **states})
    except OSError as error:
        unread = (f"who writes into output folders can't be read: {error.strerror}",)
        return Facts(remains, tuple(around), (), unread, others)
    lost = tuple(f"pid {pid} is the shim of a run whose campaign is not known any more" for pid in shims)
    return Facts(remains, tuple(around), tuple(each for each in writers if each.pid not in named), lost, others)


def _others() -> list[str]:
    """One sentence for each person. It names their oldest process only, so that it stays the same."""
    try:
        return [f"{each.user} works here: {each.command} (pid {each.pid})" for each in other_users()]
    except OSError as error:
        return [f"whether other users work here can't be read: {error.strerror}"]


def _undone(view: finish.StepView) -> str:
    said = f": {view.why}" if view.why else ""
    return f"finish: {view.step.name} (`{view.step.what}`) is {view.standing}{said}"


def _carriers(state: CampaignState) -> dict[str, list[int]] | None:
    """Who carries a token, by attempt. Another MUSTER_HOME that was set is another machine's: a container, a test."""
    try:
        found = all_carriers()
    except OSError:
        return None
    names = {attempt.token: f"{attempt.cell}@{attempt.n}" for attempt in _attempts(state)}
    names |= {record.token: f"finish {record.step}" for record in state.finish.steps.values()}
    told: dict[str, list[int]] = {}
    for token, carriers in found.items():
        if token in names:
            told[names[token]] = [carrier.pid for carrier in carriers]
            continue
        pids = [each.pid for each in carriers if each.home is None or Path(each.home) == home()]
        if pids:
            told.setdefault("a run of another campaign", []).extend(pids)
    return told


def _attempts(state: CampaignState) -> Iterator[Attempt]:
    return (attempt for record in state.cells.values() for attempt in record.attempts)


def _leases() -> list[str]:
    try:
        held = SlotHouse(home() / "slots").holders()
    except OSError as error:
        return [f"which slots are leased can't be read: {error.strerror}"]
    return [_lease_told(name, holder) for name, holder in held.items()]


def _lease_told(name: str, holder: Holder) -> str:
    if isinstance(holder, Obstacle):
        return f"whether slot {name} is leased can't be told: it is held by {holder}"
    return f"slot {name} is leased: something of Muster runs on this machine"


def foreign() -> Mapping[int, str]:
    """GPUs in use. Nothing of ours runs, so whoever sits there is somebody else; one that can't be read is in use."""
    return {gpu.index: gpu.why for gpu in GpuWatch(find_gpus).gpus if gpu.busy}


def _stale(root: Path, state: CampaignState) -> list[str]:
    """Derived files that no longer say what the results say."""
    if not (state.campaign.finish or {}).get("report") and not _derived(root / "reports"):
        return []
    try:
        from muster.wiring.verifying import stale  # heavy, and most looks end before it

        return [f"a derived file is not fresh: {what}" for what in stale(root)]
    except Exception as error:  # whatever is wrong with them, they are not known to be fresh
        return [f"whether the derived files are fresh can't be told: {error}"]


def _derived(folder: Path) -> bool:
    """Anything but the tables of `status`, which the controller keeps up to date itself."""
    try:
        return any(path.name != "status" for path in folder.iterdir())
    except FileNotFoundError:
        return False


# -- the command


def execute(command: str, root: Path, environment: Mapping[str, str] | None = None) -> Ran:
    """By a shell, its output to .muster/finish/shutdown.log."""
    path = root / ".muster" / "finish" / "shutdown.log"
    make_private_folder(path.parent)
    with open(open_to_append(path), "ab") as log:
        begin = log.tell()
        try:
            done = subprocess.run(
                ["/bin/sh", "-c", command], cwd=root, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, timeout=finish.COMMAND_S, check=False, umask=umask_of_caller(),
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Ran(False, f"`{command}` has not returned within {finish.COMMAND_S:.0f} s")
        except OSError as error:
            return Ran(False, f"`{command}` could not be run: {error.strerror}")
    if done.returncode == 0:
        return Ran(True, f"`{command}` ended with exit 0")
    said = " ".join(path.read_bytes()[begin:].decode("utf-8", "replace")[-TAIL:].split())
    return Ran(False, f"`{command}` ended with exit {done.returncode}" + (f": {said}" if said else ""))


def environment_of(state: CampaignState) -> dict[str, str] | None:
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
class Told:
    """What became of `muster shutdown`."""

    what: str  # refused | would shut down | shut down | failed | cancelled
    status: Status
    command: str
    reasons: tuple[str, ...] = ()
    others: tuple[str, ...] = ()  # who else works here, also where that is ignored


class Shutting:
    """Look, pause, look, countdown, last look, record, run. `tick` shows it and is called a few times each second."""

    def __init__(self, desk: Desk, countdown: float | None) -> None:
        self.desk = desk
        state = desk.load()
        self.command = finish.power_off(state)
        self.countdown_s = finish.countdown_s(state) if countdown is None else countdown
        self.cancels = state.finish.cancels

    def would(self, *, quick: bool = False) -> Told:
        found, seen = against(self.desk, quick=quick)
        return Told("refused" if seen.reasons else "would shut down", found, self.command, seen.reasons, seen.others)

    def run(self, tick: Callable[[str, float], None]) -> Told:
        vigil = Vigil(second_look_s(), self.countdown_s)
        found, seen = against(self.desk)
        began = not seen.reasons
        while not seen.reasons:
            vigil = vigil.saw(seen.reasons, self._now())
            if vigil.move(self._now()) == "go":
                return self._go(found)
            self.tell("counting" if vigil.counting else "clear", "by hand", found.state,
                      countdown_s=vigil.next_at - self._now())  # fmt: skip
            while vigil.move(self._now()) == "wait":
                if self._cancelled():
                    return Told("cancelled", found, self.command)
                left = vigil.next_at - self._now()
                tick("counting down" if vigil.counting else "second look", left)
                time.sleep(max(0.0, min(BLINK_S, left)))
            found, seen = against(self.desk)
        if began:
            self.drop()
        return Told("refused", found, self.command, seen.reasons, seen.others)

    def drop(self) -> None:
        """Let go on the way: so that nobody waits for it any more."""
        self.tell("dropped", "let go", self.desk.load())

    def _go(self, found: Status) -> Told:
        mark = secrets.token_hex(8)
        began = self.tell("began", f"`{self.command}`", found.state, cancels=self.cancels, mark=mark)
        if began is not None:
            return Told("cancelled", found, self.command, (began,))
        ran = execute(self.command, self.desk.root)
        with contextlib.suppress(OSError, MusterError):  # the machine may be going down already
            self.tell("ended" if ran.ok else "failed", ran.why, found.state, reasons=[ran.why], mark=mark)
        return Told("shut down" if ran.ok else "failed", found, self.command, (ran.why,))

    def tell(self, what: str, reason: str, state: CampaignState, **more: Any) -> str | None:
        """Records it; returns why it was refused."""
        data = {"what": what, "key": finish.key_of(state), "command": self.command, **more}
        return self.desk.decide([self.desk.person("shutdown", reason, data=data)])[0]

    def _cancelled(self) -> bool:
        return self.desk.load().finish.cancels != self.cancels

    def _now(self) -> float:
        return self.desk.clock.boot()
