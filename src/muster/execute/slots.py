"""Machine-wide slot leases: a flock on `$MUSTER_HOME/slots/<name>`, inherited by shim and run, freed by the kernel."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path

from muster.domain.campaign import Slots
from muster.execute.gpus import Gpu
from muster.ports.executor import Lease, Slot


def home() -> Path:
    given = os.environ.get("MUSTER_HOME")
    return Path(given).absolute() if given else Path.home() / ".local" / "state" / "muster"


class SlotHouse:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def lease(self, slots: Sequence[Slot]) -> Lease | None:
        """All of them or none; never waits. The order of the names keeps two takers from taking halves for ever."""
        fds: list[int] = []
        try:
            for slot in sorted(slots, key=lambda slot: slot.name):
                fds.append(os.open(self.folder / slot.name, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666))
                fcntl.flock(fds[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            close(fds)
            return None
        except BaseException:
            close(fds)
            raise
        return Lease(tuple(slots), tuple(fds))

    def uses_gpu(self, index: int) -> bool:
        """Whether a run of Muster, of any campaign, has a share of this GPU."""
        return any(self._leased(file.name) for file in self.folder.glob(f"gpu{index}.*"))

    def leased(self) -> list[str]:
        """Slots that somebody holds, of whatever campaign."""
        return sorted(file.name for file in self.folder.iterdir() if self._leased(file.name))

    def _leased(self, name: str) -> bool:
        lease = self.lease([Slot(name, "")])
        if lease:
            close(lease.fds)
        return lease is None


def close(fds: Sequence[int]) -> None:
    for fd in fds:
        os.close(fd)


def slots_of(wanted: Slots, found: Sequence[Gpu]) -> list[Slot]:
    """The campaign's slots, free or not. A machine without GPUs has only those of CPUs."""
    indexes = [gpu.index for gpu in found] if wanted.gpus is None else list(wanted.gpus)
    gpus = [Slot(f"gpu{index}.{share}", "gpu", index) for share in range(wanted.per_gpu) for index in indexes]
    return gpus + [Slot(f"cpu{number}", "cpu") for number in range(wanted.cpus)]
