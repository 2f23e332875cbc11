"""The machine: its GPUs and slots, who else uses it, the Pythons on it, and what it starts when it boots."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from muster.engine.ports.executor import LeaseHolder
from muster.model.errors import Mistake
from muster.text.phrases import phrase


@dataclass(frozen=True, slots=True)
class GpuDevice:
    index: int
    name: str
    busy: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class ClosedSlots:
    why: str
    hint: str

    def __str__(self) -> str:
        return phrase("hosts.slots_closed_and_fix", why=self.why, hint=self.hint)


@dataclass(frozen=True, slots=True)
class OtherUser:
    """Another person, and the oldest process of theirs."""

    uid: int
    user: str
    pid: int
    command: str


@dataclass(frozen=True, slots=True)
class PythonAnswer:
    """What came back. `python` None: it was never started."""

    command: tuple[str, ...]  # less the code
    exit: int | None  # None: it could not be executed, or did not end in time
    timed_out: bool = False
    trouble: str = ""  # why it could not be executed
    python: Mapping[str, Any] | None = None
    packages: Mapping[str, str] = field(default_factory=dict)
    lacking: tuple[str, ...] = ()  # of the modules that were asked for
    frameworks: tuple[Mapping[str, Any], ...] = ()
    stdout: str = ""
    stderr: str = ""


@dataclass(frozen=True, slots=True)
class BootEntry:
    """One campaign, as it is to be looked after."""

    root: Path
    command: tuple[str, ...]
    environment: dict[str, str]

    @property
    def name(self) -> str:
        return f"muster-{hashlib.sha256(str(self.root).encode('utf-8', 'surrogateescape')).hexdigest()[:12]}"


class BootKeeper(Protocol):
    """Who starts it."""

    kind: Literal["systemd", "crontab"]

    def shown(self, wanted: BootEntry) -> str:
        """What would be installed, and where."""

    def installed(self, wanted: BootEntry) -> bool:
        """Just so."""

    def install(self, wanted: BootEntry) -> str:
        """Returns what a person should know besides."""

    def remove(self, wanted: BootEntry) -> bool:
        """False: there was nothing."""


class Machine(Protocol):
    def gpus(self) -> Sequence[GpuDevice]:
        """Waits a few seconds for the driver at most."""

    def nvidia_driver(self) -> Mapping[str, str | None]:
        """`version` and the newest `cuda` it serves; None where it can't be told."""

    def why_slots_are_closed(self) -> ClosedSlots | None:
        """Why this user can take no slot at all; None: slots can be taken."""

    def slot_holders(self) -> Mapping[str, LeaseHolder]:
        """Slots that somebody holds, of whatever campaign. Raises OSError where that can't be read."""

    def other_users(self) -> Sequence[OtherUser]:
        """Who else works here. Raises OSError where that can't be read."""

    def note_uncoordinated_users(self) -> Sequence[Mistake]:
        """A note where somebody else runs Muster with slots of their own."""

    def ask_python(
        self, words: Sequence[str], cwd: str, env: Mapping[str, str], *, modules: Sequence[str] = ()
    ) -> PythonAnswer:
        """Executes the command and asks its Python what it is and which devices it sees."""

    def boot_entry(self, root: Path) -> BootEntry: ...

    def boot_keeper(self) -> BootKeeper:
        """Who can start a campaign when the machine starts. Raises MusterError: nobody can."""

    def boot_keepers(self) -> Sequence[BootKeeper]:
        """Whoever may have been asked before."""
