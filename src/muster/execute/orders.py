"""Builds attempt.json: the command with everything filled in, for one attempt on its leased slots."""

from __future__ import annotations

import glob
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muster.domain.attempt import Attempt
from muster.domain.campaign import Job
from muster.domain.cell import Cell, needed_cells
from muster.domain.order import Order
from muster.domain.state import CampaignState
from muster.domain.template import render
from muster.execute.launches import refuges
from muster.plan.commands import Place, command, environment, uses_placeholder, values
from muster.ports.executor import Lease


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every order of a campaign has in common."""

    root: Path  # the campaign's folder
    state: Path  # its .muster
    revive: tuple[str, ...]
    revive_s: float
    code_of: Callable[[str], Mapping[str, Any]]  # commit and dirty diff of a working folder
    checkpoint_of: Callable[[Job, Cell, Attempt], str | None]  # the newest valid one of an attempt
    lacks: Callable[[CampaignState], str] = lambda _: ""
    # what fits an output already, of attempts with this folder
    fitting: Callable[[str, str], Mapping[str, float]] = lambda *_: {}


class LocalComposer:
    def __init__(self, around: Surroundings) -> None:
        self.around = around
        self._needs: tuple[str, dict[str, tuple[str, ...]]] = ("", {})

    def lacks(self, state: CampaignState) -> str:
        return self.around.lacks(state)

    def compose(self, attempt: Attempt, state: CampaignState, lease: Lease) -> Order:
        record = state.cells[attempt.cell]
        cell, job = record.cell, state.job(record.cell.job)
        folder = self.around.state / "attempts" / attempt.cell / str(attempt.n)
        place = self._place(attempt, state, job, cell, lease, str(folder / "out"))
        filled = values(job, cell, place)
        cwd = job.cwd or str(self.around.root)
        output = _output(job, filled, cwd)
        return Order(
            cell=cell.id,
            n=attempt.n,
            token=attempt.token,
            epoch=attempt.epoch,
            argv=tuple(command(job, filled)),
            cwd=cwd,
            env=environment(state.campaign, job, cell, place, attempt.token),
            env_file=state.env_file,
            slots=attempt.slots,
            out=place.out,
            mkdir=job.mkdir,
            output=output,
            hash=attempt.hash,
            claimed_at=attempt.claimed_at,
            claimed_boot=attempt.claimed_boot,
            boot_id=attempt.boot_id,
            retry_cause=attempt.retry_cause,
            resumed_from=place.last_checkpoint or None,
            state=str(self.around.state),
            bell=str(self.around.state / "bell"),
            ballast=str(self.around.state / "ballast"),
            revive=self.around.revive,
            revive_s=self.around.revive_s,
            axes=cell.axes,
            code=dict(self.around.code_of(cwd)),
            refuges=refuges(self.around.state, attempt.token),
            there=self.around.fitting(output, str(self.around.state)),
        )

    def _place(self, attempt: Attempt, state: CampaignState, job: Job, cell: Cell, lease: Lease, out: str) -> Place:
        gpus = tuple(slot.gpu for slot in lease.slots if slot.gpu is not None)
        before = [a for a in state.cells[cell.id].current if a.n < attempt.n and a.outcome and not a.adopted]
        checkpoint = None
        if job.resume:
            found = (self.around.checkpoint_of(job, cell, earlier) for earlier in reversed(before))
            checkpoint = next((path for path in found if path), None)
        last = before[-1].outcome if before else None
        return Place(
            n=attempt.n,
            out=out,
            slots=attempt.slots,
            gpus=gpus,
            port=_free_port() if uses_placeholder(job, "port") else 0,
            outputs=self._outputs(cell, state),
            last_output=(last.output or "") if last else "",
            last_checkpoint=checkpoint or "",
        )

    def _outputs(self, cell: Cell, state: CampaignState) -> dict[str, str]:
        """The output of each needed job, where exactly one of its cells is meant."""
        if self._needs[0] != state.campaign_hash:
            cells = [record.cell for record in state.declared]
            self._needs = (state.campaign_hash, needed_cells(state.campaign, cells))
        found: dict[str, list[str]] = {}
        for need in self._needs[1].get(cell.id, ()):
            completed = state.cells[need].completed
            if completed:
                path = completed.outcome.output if completed.outcome else None
                default = str(self.around.state.joinpath("attempts", completed.place[0], str(completed.n), "out"))
                found.setdefault(state.cells[need].cell.job, []).append(path or default)
        return {job: paths[0] for job, paths in found.items() if len(paths) == 1}


def lacks_environment(state: CampaignState) -> str:
    """An attempt that was started without it would die of our own missing file, and be counted as a failure."""
    if state.env_file and Path(state.env_file).is_file():
        return ""
    gone = f": {state.env_file}" if state.env_file else ""  # last: who shows it may cut it
    return f"nothing starts before `muster up` records the environment anew; what it recorded is gone{gone}"


def _output(job: Job, filled: Mapping[str, str], cwd: str) -> str:
    """Where the run writes, perhaps a glob; a value such as `[a]` is a name in it and no pattern."""
    if job.output == "{out}":
        return filled["out"]
    return str(Path(glob.escape(cwd)) / render(job.output, {name: glob.escape(text) for name, text in filled.items()}))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
