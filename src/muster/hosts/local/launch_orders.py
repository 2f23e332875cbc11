"""Launching an attempt: `attempt.json`, the order with everything filled in, and `.muster/launched`, which attempts a
shim was asked for and who they turned out to be.

`launched` has one line each, appended before the shim is asked for. It is not in the attempt's folder: whoever
deletes that one does not make a living run look as if it had never been started. Never synced: it matters only while
the machine is up.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from muster.engine.plan.cell_command import (
    AttemptContext,
    build_command,
    build_run_environment,
    cell_placeholder_values,
    uses_placeholder,
)
from muster.engine.ports.executor import Lease
from muster.files.atomic_write import open_to_append, write_atomically
from muster.files.json_codec import JSON_ERRORS
from muster.files.muster_home import private_home, slots_home
from muster.files.safe_open import NotPlainFile, open_plain_file
from muster.hosts.local.slot_leases import SlotLeases
from muster.model.attempt import Attempt, Order
from muster.model.attempt_snapshot import ProcessIdentity
from muster.model.campaign import Job
from muster.model.campaign_state import CampaignState
from muster.model.cell import Cell, map_needed_cells
from muster.text.command_template import render_template


class _LaunchLine(msgspec.Struct, omit_defaults=True):
    token: str
    identity: ProcessIdentity | None = None


_decoder = msgspec.json.Decoder(_LaunchLine)


class LaunchBook:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = -1
        self._known: dict[str, ProcessIdentity | None] = {}
        self._read: tuple[int, int] = (0, 0)  # inode, and how far

    def note(self, token: str, identity: ProcessIdentity | None = None) -> None:
        self._known[token] = identity or self._known.get(token)
        line: dict[str, object] = {"token": token}
        if identity:
            line["identity"] = asdict(identity)
        self._append(msgspec.json.encode(line) + b"\n")

    def _append(self, line: bytes) -> None:
        if self._fd < 0 or os.fstat(self._fd).st_nlink == 0:  # somebody deleted it: what is known is written anew
            known = b"" if self._fd < 0 else b"".join(map(_encode_launch_line, self._known.items()))
            self.close()
            self._fd = open_to_append(self.path, flags=os.O_RDWR)
            line = known or (b"\n" + line if self._torn() else line)
        if os.write(self._fd, line) < len(line):
            self.close()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))

    def _torn(self) -> bool:
        """A write that a full disk cut off must not spoil the next line."""
        size = os.fstat(self._fd).st_size
        return size > 0 and os.pread(self._fd, 1, size - 1) != b"\n"

    def known(self) -> dict[str, ProcessIdentity | None]:
        """By token; what others wrote since is read as far as it goes. Raises OSError where it can't be told."""
        with contextlib.suppress(FileNotFoundError), open(open_plain_file(str(self.path)), "rb") as file:
            inode = os.fstat(file.fileno()).st_ino
            at = self._read[1] if self._read[0] == inode else 0
            file.seek(at)
            data = file.read()
            for line in data.splitlines():
                with contextlib.suppress(*JSON_ERRORS):  # cut off
                    found = _decoder.decode(line)
                    self._known[found.token] = found.identity or self._known.get(found.token)
            self._read = (inode, at + data.rfind(b"\n") + 1)
        return self._known

    def keep_only(self, tokens: Collection[str]) -> None:
        """What is over is forgotten; for a controller that begins, which is the only one to write.

        It makes the book before it claims anything. Where the book is gone and attempts are open, somebody deleted it,
        and each of them may have been launched.
        """
        try:
            deleted, known = not self.path.exists(), self.known()
        except NotPlainFile:
            deleted, known = True, {}
        except OSError:  # it stays as it is, until it can be read
            return
        self._known = {token: known.get(token) for token in tokens if deleted or token in known}
        with contextlib.suppress(OSError):
            write_atomically(self.path, b"".join(map(_encode_launch_line, self._known.items())))
            self._read = (0, 0)
            self.close()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _encode_launch_line(entry: tuple[str, ProcessIdentity | None]) -> bytes:
    token, identity = entry
    return msgspec.json.encode(_LaunchLine(token, identity)) + b"\n"


class LocalTraces:
    """What is known of this campaign's attempts on this machine. Only who was given the book writes into it."""

    def __init__(self, state: Path, book: LaunchBook | None = None) -> None:
        self.state = state
        self.book = book or LaunchBook(state / "launched")
        self.remembers = book is not None
        self.claimed_elsewhere: Callable[[Attempt], bool] = lambda _: False

    def launched(self, token: str) -> bool:
        return token in self.book.known()

    def identity(self, token: str) -> ProcessIdentity | None:
        return self.book.known().get(token)

    def saw(self, token: str, identity: ProcessIdentity) -> None:
        if self.remembers:
            with contextlib.suppress(OSError):
                self.book.note(token, identity)

    def refuges(self, token: str) -> Sequence[str]:
        return refuge_folders(self.state, token)

    def holds_slot(self, attempt: Attempt, for_s: float = 0.0) -> bool:
        house = SlotLeases(slots_home() / "slots")
        held = (name for name in attempt.slots if (who := house.holder(name)) and who.token == attempt.token)
        return any(house.signed_for_s(name) >= for_s for name in held)

    def elsewhere(self, attempt: Attempt) -> bool:
        return self.claimed_elsewhere(attempt)


def refuge_folders(state: Path, token: str) -> tuple[str, ...]:
    """Beside the attempts, and on the disk of $MUSTER_HOME, which may be another one."""
    return (str(state / "lost" / token), str(private_home() / "lost" / token))


@dataclass(frozen=True, slots=True)
class OrderDefaults:
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


class LocalOrderComposer:
    def __init__(self, around: OrderDefaults) -> None:
        self.around = around
        self._needs: tuple[str, dict[str, tuple[str, ...]]] = ("", {})

    def lacks(self, state: CampaignState) -> str:
        return self.around.lacks(state)

    def compose(self, attempt: Attempt, state: CampaignState, lease: Lease) -> Order:
        record = state.cells[attempt.cell]
        cell, job = record.cell, state.job(record.cell.job)
        folder = self.around.state / "attempts" / attempt.cell / str(attempt.n)
        place = self._place(attempt, state, job, cell, lease, str(folder / "out"))
        filled = cell_placeholder_values(job, cell, place)
        cwd = job.cwd or str(self.around.root)
        output = _rendered_output(job, filled, cwd)
        return Order(
            cell=cell.id,
            n=attempt.n,
            token=attempt.token,
            epoch=attempt.epoch,
            argv=tuple(build_command(job, filled)),
            cwd=cwd,
            env=build_run_environment(state.campaign, job, cell, place, attempt.token),
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
            refuges=refuge_folders(self.around.state, attempt.token),
            there=self.around.fitting(output, str(self.around.state)),
        )

    def _place(
        self, attempt: Attempt, state: CampaignState, job: Job, cell: Cell, lease: Lease, out: str
    ) -> AttemptContext:
        gpus = tuple(slot.gpu for slot in lease.slots if slot.gpu is not None)
        before = [a for a in state.cells[cell.id].current if a.n < attempt.n and a.outcome and not a.adopted]
        checkpoint = None
        if job.resume:
            found = (self.around.checkpoint_of(job, cell, earlier) for earlier in reversed(before))
            checkpoint = next((path for path in found if path), None)
        last = before[-1].outcome if before else None
        return AttemptContext(
            n=attempt.n,
            out=out,
            slots=attempt.slots,
            gpus=gpus,
            port=_find_free_port() if uses_placeholder(job, "port") else 0,
            outputs=self._outputs(cell, state),
            last_output=(last.output or "") if last else "",
            last_checkpoint=checkpoint or "",
        )

    def _outputs(self, cell: Cell, state: CampaignState) -> dict[str, str]:
        """The output of each needed job, where exactly one of its cells is meant."""
        if self._needs[0] != state.campaign_hash:
            cells = [record.cell for record in state.declared]
            self._needs = (state.campaign_hash, map_needed_cells(state.campaign, cells))
        found: dict[str, list[str]] = {}
        for need in self._needs[1].get(cell.id, ()):
            completed = state.cells[need].completed
            if completed:
                path = completed.outcome.output if completed.outcome else None
                default = str(self.around.state.joinpath("attempts", completed.place[0], str(completed.n), "out"))
                found.setdefault(state.cells[need].cell.job, []).append(path or default)
        return {job: paths[0] for job, paths in found.items() if len(paths) == 1}


def _rendered_output(job: Job, filled: Mapping[str, str], cwd: str) -> str:
    """Where the run writes, perhaps a glob; a value such as `[a]` is a name in it and no pattern."""
    if job.output == "{out}":
        return filled["out"]
    return str(
        Path(glob.escape(cwd)) / render_template(job.output, {name: glob.escape(text) for name, text in filled.items()})
    )


def _find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
