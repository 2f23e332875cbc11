"""An attempt's folder in the made-up world: the facts that the protocol keeps there, and who holds its locks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from muster.model.attempt import Order
from muster.model.attempt_snapshot import ExitRecord, ProcessIdentity
from simulator.world import Hold, Key, Life, Process

if TYPE_CHECKING:
    from simulator.campaign_shim import Run, Shim


@dataclass(frozen=True, slots=True)
class StopRequest:
    epoch: int
    reason: str
    grace_s: float


@dataclass(slots=True, eq=False)
class Folder:
    key: Key
    claimed: float  # true time
    order: Order | None = None
    started: str | None = None  # the token of the shim that won, or "revoked: why"
    started_at: float = 0.0  # true time
    synced: bool = False  # `started` would outlive a power cut
    execing: bool = False
    identity: ProcessIdentity | None = None
    exit: ExitRecord | None = None
    stop: StopRequest | None = None
    released: bool = False
    named: tuple[int, int] | None = None  # pid and ticks in shim.lock
    shim: Shim | None = None  # holds shim.lock
    main: Process | None = None
    run: Run | None = None
    tree: list[Process] = field(default_factory=list)  # hold tree.lock
    others: list[Process] = field(default_factory=list)  # of the run, besides its main process
    seen: bool = False  # somebody who remembers it has seen who it is
    hold: Hold | None = None  # the lease that names it
    gone: bool = False  # somebody deleted it: only what is written elsewhere can be read
    executions: int = 0
    looked: float = -1.0  # true time of the last look of a controller
    unread_until: float = 0.0  # its file system does not answer
    proof_s: float = 0.0  # how long reading its proof takes
    proof_asked: float | None = None
    how: tuple[int | None, int | None] = (None, None)  # exit code and signal of its main process
    ended_at: float | None = None  # true time at which its main process ended
    over_at: float | None = None  # and all of its tree
    freed: float | None = None  # boot time at which its shim saw the last orphan end

    @property
    def shim_locked(self) -> bool:
        return self.shim is not None and self.shim.process.alive

    @property
    def tree_locked(self) -> bool:
        return any(process.alive for process in self.tree)

    @property
    def main_alive(self) -> bool:
        return self.main is not None and self.main.alive

    @property
    def executing(self) -> bool:
        """The command itself is alive."""
        return self.run is not None and self.run.process.alive

    @property
    def lives(self) -> bool:
        """Some process of the run is alive."""
        return self.main_alive or any(process.alive for process in self.others)

    def lives_for(self, life: Life) -> bool:
        """And that can be known: in another container only locks tell of it."""
        if self.main_alive or self.tree_locked:
            return True
        return any(process.alive and process.life == life for process in self.others)

    def delete(self) -> None:
        """With all that is in it; what its shim writes from now on goes elsewhere, and so do requests to it."""
        self.gone, self.exit, self.stop, self.released, self.freed = True, None, None, False, None

    def forget_unsynced(self) -> None:
        """A power cut: what nobody made durable may be gone."""
        if not self.synced and self.started is not None and not self.started.startswith("revoked"):
            self.started, self.identity, self.execing = None, None, False
        if self.exit is None and self.identity is None:
            self.order = None
