"""The demo: a real sprint on this machine, with a run and the controller killed on the way."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from muster.app.campaign.campaign_handle import CAMPAIGN_FILE_NAME, CampaignHandle
from muster.app.campaign.campaign_status import CellStatus, Status
from muster.app.campaign.load_campaign import read_runnable_campaign, submit_campaign
from muster.app.campaign.observe_campaign import observe_campaign
from muster.files.atomic_write import umask_of_caller
from muster.files.process_identity import kill_exact_process
from muster.model.errors import MusterError, UsageError
from muster.model.verdict import VerdictState
from muster.text.phrases import phrase

DEMO_FAULTS = ("overview.demo_kills_run", "overview.demo_kills_controller")
DEMO_POLL_S = 0.1
DEMO_PATIENCE_S = 60.0
KILL_RUN_AFTER = 3  # cells done
KILL_CONTROLLER_AFTER = 8
SayLine = Callable[[str], None]
DrawStatus = Callable[[Status], None]


def find_demo_example() -> Path:
    """examples/safe_nav: beside the source in a clone, inside the package when installed."""
    here = Path(__file__).resolve()
    for place in (here.parents[2] / "_examples" / "safe_nav", here.parents[4] / "examples" / "safe_nav"):
        if (place / CAMPAIGN_FILE_NAME).is_file():
            return place
    raise MusterError(phrase("overview.example_not_found"), hint=phrase("overview.example_is_in_package"))


def create_demo_folder(folder: Path | None) -> Path:
    """A folder of its own for the demo; never over something that is there."""
    if folder is None:
        names = ("muster-demo", *(f"muster-demo-{n}" for n in range(2, 1000)))
        folder = next(Path(name) for name in names if not Path(name).exists())
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            phrase("overview.folder_not_empty", folder=folder),
            where=str(folder.absolute()),
            hint=phrase("overview.name_new_folder"),
        )
    ignored = shutil.ignore_patterns("__pycache__", ".muster")
    shutil.copytree(find_demo_example(), folder, dirs_exist_ok=True, ignore=ignored, copy_function=shutil.copyfile)
    for each in (folder, *folder.rglob("*")):  # not as the package has them: that one may be read-only, or open
        if each.is_dir():
            each.chmod(0o777 & ~umask_of_caller())
    return folder.absolute()


@dataclass(slots=True)
class DemoRun:
    desk: CampaignHandle
    say: SayLine
    draw: DrawStatus

    @classmethod
    def start(cls, folder: Path, say: SayLine, draw: DrawStatus) -> DemoRun:
        # the example's `python` must be the one that Muster runs in: it has numpy
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        found = read_runnable_campaign(folder / CAMPAIGN_FILE_NAME)
        desk = CampaignHandle.create(folder)
        submit_campaign(desk, found, ())
        desk.await_controller(desk.start_controller())
        return cls(desk, say, draw)

    def run(self) -> Status:
        """To the end, whatever we kill on the way."""
        self._until(lambda s: s.counts["DONE"] >= KILL_RUN_AFTER)
        while (name := self._kill_a_run()) is not None and not self._died(name):
            self.say(phrase("overview.demo_run_had_finished", cell=name))
        self._until(lambda s: s.counts["DONE"] >= KILL_CONTROLLER_AFTER)
        self._kill_the_controller()
        return self._until(lambda s: not s.going_on)

    def _kill_a_run(self) -> str | None:
        status = self._until(lambda s: self._victim(s) is not None)
        victim = self._victim(status)
        if victim is None or victim.pid is None:
            return None
        name = victim.record.cell.id
        self.say(phrase("overview.demo_kills_run", cell=name, pid=victim.pid))
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim.pid, signal.SIGKILL)
        return name

    def _died(self, name: str) -> bool:
        """Waits for the verdict, then asks for the retry that only a person may ask for."""
        status = self._until(lambda s: _cell_status_by_name(s, name).record.open is None)
        cell = _cell_status_by_name(status, name)
        if cell.verdict.state != VerdictState.DEAD:
            return False
        self.say(phrase("overview.demo_run_died", cell=name, cause=str(cell.verdict.cause), reason=cell.verdict.reason))
        self.say(phrase("overview.demo_next", next=cell.next))
        because = phrase("overview.demo_killed_it")
        self.say(f'  $ muster retry {name} --because "{because}"')
        self.desk.decide([self.desk.person("retry", because, cell=name)])
        self._until(lambda s: len(_cell_status_by_name(s, name).record.attempts) > 1)
        self.say(
            phrase("overview.demo_attempt_resumes")
            if _has_resumed(self.desk, name)
            else phrase("overview.demo_attempt_started")
        )
        return True

    def _kill_the_controller(self) -> None:
        holder = self.desk.controller()
        if holder is None:
            return
        self.say(phrase("overview.demo_kills_controller", pid=holder.pid))
        kill_exact_process(holder.pid, holder.ticks)
        deadline = time.monotonic() + DEMO_PATIENCE_S
        while self.desk.lock.held() and time.monotonic() < deadline:
            time.sleep(0.01)
        alive = [cell.record.cell.id for cell in self._look().cells if cell.verdict.state == VerdictState.RUNNING]
        self.say(phrase("overview.demo_runs_live_on", cells=", ".join(alive) or phrase("overview.no_cells")))
        self.desk.revive()
        fresh = self.desk.await_controller()
        if fresh:
            self.say(phrase("overview.demo_controller_revived", pid=fresh.pid, epoch=fresh.epoch))

    def _victim(self, status: Status) -> CellStatus | None:
        """The youngest run that has a checkpoint to resume from."""
        running = [cell for cell in status.cells if cell.pid is not None and cell.record.cell.job == "train"]
        ready = [cell for cell in running if list(self._out(cell).glob("checkpoint*"))]
        return max(ready, key=lambda cell: cell.since or "", default=None)

    def _out(self, cell: CellStatus) -> Path:
        return self.desk.state / "attempts" / cell.record.cell.id / str(len(cell.record.attempts)) / "out"

    def _until(self, reached: Callable[[Status], bool]) -> Status:
        while True:
            status = self._look()
            self.draw(status)
            if reached(status) or not status.going_on:
                return status
            if not self.desk.lock.held():
                self.desk.revive()
            time.sleep(DEMO_POLL_S)

    def _look(self) -> Status:
        return observe_campaign(self.desk)


def _cell_status_by_name(status: Status, name: str) -> CellStatus:
    return next(cell for cell in status.cells if cell.record.cell.id == name)


def _has_resumed(desk: CampaignHandle, name: str) -> bool:
    from muster.files.state_folder import attempt_folder
    from muster.readers.attempt_facts import read_order

    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        order = read_order(attempt_folder(desk.state, name, 2))
        if order:
            return order.resumed_from is not None
        time.sleep(0.01)
    return False
