"""On which machine an attempt was claimed: another boot id means a reboot only where the machine is the same."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from muster.domain.attempt import Attempt
from muster.ports.store import Store
from muster.store.place import machine_name


def epoch_place(state: Path) -> dict[str, Any]:
    """What a controller records with its epoch."""
    return {"machine": machine_name(), "inode": state.stat().st_ino}


class Machines:
    """Whether an attempt was claimed elsewhere. Asked for where the boot id differs, which is rare."""

    def __init__(self, store: Store, state: Path) -> None:
        self.store, self.state = store, state

    def __call__(self, attempt: Attempt) -> bool:
        """Both must differ: a container that is made anew may get another name, and keeps its disk."""
        known, here = self._claimed.get(attempt.epoch, {}), epoch_place(self.state)
        return all(known.get(name) and here[name] and known[name] != here[name] for name in ("machine", "inode"))

    @cached_property
    def _claimed(self) -> dict[int, dict[str, Any]]:
        events = (event.decision for event in self.store.events() if not event.void)
        return {int(each.data["epoch"]): dict(each.data) for each in events if each.kind == "epoch"}
