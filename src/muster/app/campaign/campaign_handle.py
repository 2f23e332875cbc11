"""One campaign as a command opens it: its folders, its store, its controller."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muster.engine.ports.clock import Clock, SystemClock
from muster.engine.ports.services import Services, installed_services
from muster.engine.ports.store import CampaignStore, LockHolder, TakeableLock
from muster.files.atomic_write import make_private_folder, open_to_append
from muster.files.campaign_ownership import (
    CAMPAIGN_FILE,
    ForeignOwner,
    begun_by_us,
    current_user_name,
    find_campaign_root,
    find_foreign_owner,
    find_readable_root,
    foreign_campaign_error,
    key_for_children,
    was_started_here,
)
from muster.files.own_processes import own_process_environment, own_python_command
from muster.files.process_identity import read_boot_id
from muster.files.state_folder import (
    StateFolderStanding,
    damaged_state_error,
    has_started_state,
    mark_state_place,
    original_campaign_folder,
    refuse_bad_state_folder,
    refuse_copied_state,
    renew_moved_mark,
    ring_bell,
    state_folder_standing,
)
from muster.model.calendar import format_iso_time
from muster.model.campaign_state import CampaignState
from muster.model.decision import Decision
from muster.model.errors import STATE_FORMAT, MusterError, UsageError, newer_state_error
from muster.text.phrases import phrase

if TYPE_CHECKING:
    from muster.engine.ports.run_host import RunObserver

CAMPAIGN_FILE_NAME = CAMPAIGN_FILE
CONTROLLER_PATIENCE_S = 30.0


@dataclass(slots=True)
class CampaignHandle:
    root: Path
    store: CampaignStore
    lock: TakeableLock
    clock: Clock
    services: Services
    stranger: ForeignOwner | None = None  # whose it is, if not the caller's: then it is only read

    @property
    def state(self) -> Path:
        return self.root / ".muster"

    @property
    def file(self) -> Path:
        return self.root / CAMPAIGN_FILE_NAME

    @classmethod
    def open(cls, start: Path) -> CampaignHandle:
        """The campaign of a folder or of one above it. That of somebody else is opened to be read, and nothing else."""
        root = find_readable_root(start)
        if not has_started_state(root):
            raise campaign_not_started(root)
        found = find_foreign_owner(root)
        return cls._build_to_read(root, found) if found else cls._build(root)

    @classmethod
    def open_to_act(cls, start: Path) -> CampaignHandle:
        """For a person's decision: a copy, and what is somebody else's, is refused before anything is looked at."""
        desk = cls.open(start)
        desk.refuse_copy()
        return desk

    @classmethod
    def open_to_read(cls, start: Path) -> CampaignHandle:
        """For a reader that must leave no trace: nothing is locked, folded into the database or marked."""
        root = find_readable_root(start)
        if not has_started_state(root):
            raise campaign_not_started(root)
        return cls._build_to_read(root, find_foreign_owner(root))

    @classmethod
    def create(cls, start: Path) -> CampaignHandle:
        root = find_campaign_root(start)
        refuse_bad_state_folder(root)
        make_private_folder(root / ".muster")
        refuse_copied_state(root / ".muster")
        desk = cls._build(root)
        desk._take_database_over()
        mark_state_place(desk.state)
        return desk

    @classmethod
    def _build(cls, root: Path) -> CampaignHandle:
        clock, services = SystemClock(), installed_services()
        state = root / ".muster"
        lock = services.storage.lock(state, clock)
        store = services.storage.open(state, lock)
        store.refuse_newer_campaign()  # not everybody who decides loads it
        renew_moved_mark(state)
        desk = cls(root, store, lock, clock, services)
        if desk.store.behind():
            desk._fold_rest()
        return desk

    @classmethod
    def _build_to_read(cls, root: Path, whose: ForeignOwner | None) -> CampaignHandle:
        """From the log alone. SQLite would lay files beside the database."""
        clock, services = SystemClock(), installed_services()
        store = services.storage.open_from_log(root / ".muster")
        store.refuse_newer_campaign()
        lock = services.storage.read_only_lock(root / ".muster", clock)
        return cls(root, store, lock, clock, services, whose)

    def _fold_rest(self) -> None:
        """Decisions that a crash left unfolded, or that were made while the folder was copied."""
        if state_folder_standing(self.state) != "home" or not self.started_here():
            if self.lock.take():  # our own file, not the original's; and its log says nothing new
                try:
                    self.store.commit([])
                finally:
                    self.lock.give_back()
            return
        if not self.lock.held():
            self._settle([])
        self._catch_up()

    def standing(self) -> StateFolderStanding:
        return state_folder_standing(self.state)

    def brought_from(self) -> Path | None:
        """Where it was marked last, if that is elsewhere."""
        return original_campaign_folder(self.state)

    def refuse_copy(self) -> None:
        """Before anything is written on the way to a decision. What is somebody else's is refused, too."""
        self.refuse_stranger()
        refuse_copied_state(self.state)

    def refuse_stranger(self) -> None:
        if self.stranger:
            raise foreign_campaign_error(self.stranger)

    def started_here(self) -> bool:
        """By this user's own `up`. In any other campaign nothing goes on by itself."""
        return self.stranger is None and was_started_here(self.state)

    def _catch_up(self) -> None:
        """campaign.db was deleted under a controller, which goes on with the file it has open: the log still tells all.

        Its epoch is in the database before it is in the lock, so ours is another file, and to fold is safe.
        """
        holder = self.controller()
        if holder and self.store.epoch_now() < holder.epoch:
            self.store.commit([])

    def observer(self) -> RunObserver:
        """Eyes of our own on its attempts."""
        return self.services.host.observer(self.state, self.store, self.clock)

    def load(self) -> CampaignState:
        if not self.store.lasting:
            self.store.commit([])  # what was decided since
        state = self.store.load()
        if state is None:
            raise campaign_not_started(self.root)
        return state

    # -- a person's decisions

    def person(
        self,
        kind: str,
        reason: str = "",
        *,
        cell: str | None = None,
        attempt: int | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> Decision:
        who = f"{current_user_name()}@{os.uname().nodename}"
        ref = os.urandom(8).hex()
        at = format_iso_time(self.clock.wall())
        return Decision(kind, who, reason, cell, attempt, None, at, self.clock.boot(), data or {}, ref)

    def decide(self, decisions: Sequence[Decision]) -> list[str | None]:
        """Durable in the log, then folded by the controller, or by us where there is none. Why each was refused."""
        self.refuse_copy()
        self._refuse_newer()
        mark_state_place(self.state)  # who decides here has taken a folder that was brought here for its own
        if not self._settle(decisions):
            self._hand_over(decisions)
        answers = [self.store.became_of(decision.ref or "") for decision in decisions]
        return [answer.void if answer else None for answer in answers]

    def _settle(self, decisions: Sequence[Decision]) -> bool:
        """In a controller's place for a moment; False: there is a real one. From one that hangs it is taken over.

        The lock keeps saying epoch 0: nobody may take us for a controller.
        """
        hung, older = self.lock.hung() is not None, self._older()
        if self.lock.held() and not hung and not older:
            return False
        ours = older is not None and self.started_here()  # an older Muster may have entered it in no register
        if not (self.lock.take_from(older) if older else self.lock.take_over() if hung else self.lock.take()):
            return False
        try:
            self._reopen()
            epoch = int(self.store.epoch_now()) + 1
            data = {"epoch": epoch, "pid": os.getpid(), "format": STATE_FORMAT, "boot_id": read_boot_id()}
            why = (
                phrase("campaign.decides_older_ended", controller=_describe_older_controller(older))
                if older
                else phrase("campaign.command_decides")
            )
            turn = Decision(
                "epoch",
                f"pid {os.getpid()}",
                why,
                at=format_iso_time(self.clock.wall()),
                boot=self.clock.boot(),
                epoch=epoch,
                data=data,
            )
            self.store.commit([turn, *decisions])
        finally:
            self.lock.give_back()
        if ours:
            self._enter()
            self.revive()
        return True

    def _enter(self) -> None:
        from muster.files.campaign_ownership import enter_register  # it imports us

        if campaign := self.store.load():
            enter_register(self.state, campaign.campaign.name, self.clock.wall())

    # -- controllers of other versions

    def _older(self) -> LockHolder | None:
        """A controller of an older Muster. Whoever decides ends it first: it could not know what we write."""
        holder = self.lock.holder()
        return holder if holder and holder.outdated else None

    def older_line(self) -> str:
        """For `status`, which changes nothing; empty: there is none."""
        older = self._older()
        return phrase("campaign.older_runs_up_ends_it", controller=_describe_older_controller(older)) if older else ""

    def _reopen(self) -> None:
        """For who holds the lock. So far only the log was read: beside a controller of an older Muster, whose database
        is ours now that it is gone; or in a state that was brought here, whose database is folded anew.
        """
        if self.store.lasting:
            return
        with contextlib.suppress(OSError):
            found = self.services.storage.open_database(self.state)
            self.store.close()
            self.store = found

    def _take_database_over(self) -> None:
        """For `up`, whose controller opens it."""
        if not self.store.lasting and not begun_by_us(self.state) and self.lock.take():
            try:
                self._reopen()
            finally:
                self.lock.give_back()

    def _refuse_newer(self) -> None:
        holder = self.controller()
        if holder and holder.format > STATE_FORMAT:
            raise newer_state_error(
                phrase("campaign.version_runs_as_pid", version=holder.version, pid=holder.pid), str(self.lock.path)
            )

    def _hand_over(self, decisions: Sequence[Decision]) -> None:
        deadline = time.monotonic() + CONTROLLER_PATIENCE_S
        while True:
            try:
                self.store.log.append(decisions)  # together: nobody's decision comes between them
                break
            except BlockingIOError:  # a controller that was stopped while it held the log
                if self._settle(decisions):
                    return
                if time.monotonic() > deadline:
                    raise
        ring_bell(self.state / "bell")
        last = decisions[-1].ref or ""
        while self.store.became_of(last) is None:
            if self._settle([]):
                return
            self._catch_up()
            if time.monotonic() > deadline:
                raise MusterError(
                    phrase("campaign.controller_silent"),
                    where=str(self.root),
                    hint=phrase("campaign.status_shows_hanging"),
                )
            ring_bell(self.state / "bell")
            time.sleep(0.005)

    # -- the controller

    def controller(self) -> LockHolder | None:
        """Who has taken an epoch; a command that decides, and a controller that only starts, hold the lock without."""
        holder = self._holder()
        return holder if holder and holder.epoch > 0 else None

    def _holder(self) -> LockHolder | None:
        holder = self.lock.holder()
        return holder if holder and holder.alive else None

    def start_controller(self) -> Callable[[], bool]:
        """Detached from the terminal and from us. Returns a way to ask whether it has ended."""
        import subprocess  # not at the top: `status` has no use for it

        self.refuse_copy()
        environment = own_process_environment(os.environ, self.root)
        if home := environment.get("MUSTER_HOME"):
            environment["MUSTER_HOME"] = str(Path(home).absolute())  # the controller has another working folder
        environment |= key_for_children(self.state)
        with open(open_to_append(self.state / "controller.log"), "ab") as log:
            started = subprocess.Popen(
                controller_command(self.root),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=self.root,
                env=environment,
            )
        return lambda: started.poll() is not None

    def revive(self) -> bool:
        """Any command revives a dead controller while the intent is `running` and there is something to do.

        Only where this user's own `up` has started it: not in a copy, nor in what was brought here. Whether it did.
        """
        inside = os.environ.get("MUSTER_ATTEMPT")  # from inside a run we would become part of its tree
        if inside or self.stranger or state_folder_standing(self.state) != "home":
            return False
        with contextlib.suppress(OSError):
            if (self.state / "intent").read_text().strip() != "running" or self.lock.held():
                return False
            if not self.started_here():
                return False
            self.start_controller()
            return True
        return False

    def await_controller(self, ended: Callable[[], bool] = lambda: False) -> LockHolder | None:
        """Until one has taken its epoch; None: it ended already, or never came."""
        deadline = time.monotonic() + CONTROLLER_PATIENCE_S
        while time.monotonic() < deadline:
            over = ended()
            holder = self._holder()
            if holder and holder.epoch > 0:
                return holder
            if over and holder is None:
                return None
            time.sleep(0.005)
        return None

    def close(self) -> None:
        self.store.close()


def _describe_older_controller(holder: LockHolder) -> str:
    return (
        phrase("campaign.controller_older_version", pid=holder.pid, version=holder.version)
        if holder.version
        else phrase("campaign.controller_older", pid=holder.pid)
    )


def campaign_not_started(root: Path) -> MusterError:
    from muster.app.campaign.unknown_runs import (
        describe_left_runs,
        find_unknown_runs,
    )  # looks at all processes, so only here

    if left := find_unknown_runs(root, None):
        return UsageError(
            phrase("campaign.state_deleted_runs_live", runs=describe_left_runs(left)),
            where=str(root / ".muster"),
            hint=phrase("campaign.wait_or_kill_first"),
        )
    if (root / ".muster" / "attempts").is_dir():
        return damaged_state_error(phrase("campaign.log_is_gone"), str(root / ".muster"))
    return UsageError(phrase("campaign.campaign_not_started"), where=str(root), hint=phrase("campaign.start_with_up"))


def controller_command(root: Path) -> tuple[str, ...]:
    return own_python_command("muster.bootstrap.begin_process", "muster.bootstrap.controller_process", str(root))


def revive_command(root: Path) -> tuple[str, ...]:
    """For shims: a guard, which starts a controller. Without guards a controller itself."""
    if are_guards_wanted():
        return installed_services().host.guard_command(root / ".muster")
    return controller_command(root)


def are_guards_wanted() -> bool:
    """MUSTER_GUARD=off: nobody but a shim starts a dead controller again, as tests of what happens then want it."""
    return os.environ.get("MUSTER_GUARD") != "off"


def load_known_state(root: Path) -> CampaignState | None:
    """What was decided so far; None before the first time, and where the state can't be read: others say so."""
    if not has_started_state(root):
        return None
    try:
        desk = CampaignHandle.open(root)
    except MusterError:
        return None
    try:
        return desk.store.load()
    except (MusterError, OSError):
        return None
    finally:
        desk.close()
