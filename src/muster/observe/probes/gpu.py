"""What NVML says about GPUs, asked apart from everybody: a driver that hangs makes us abstain, nothing else."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from muster.domain.reading import GpuUse
from muster.domain.wording import counted
from muster.observe.probes.apart import Apart, boottime

PERIOD_S = 5.0
KEPT_S = 60.0
LOST = ("NVMLError_GpuIsLost", "NVMLError_ResetRequired")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GpuReading:
    """One GPU as the driver sees it, whoever uses it."""

    device: int
    pci: str = ""  # domain:bus:device, all hexadecimal
    utilisation: float | None = None
    power_w: float | None = None
    memory_bytes: int | None = None
    processes: tuple[tuple[int, int | None], ...] | None = None  # (pid, bytes); None: can't be listed
    lost: str = ""
    trouble: str = ""


class GpuEyes:
    """The newest reading of each GPU. Nobody waits for it: what a look starts is there at a later one."""

    def __init__(
        self,
        read: Callable[[], Sequence[GpuReading]] | None = None,
        patience_s: float = 3 * PERIOD_S,
        period_s: float = PERIOD_S,
        now: Callable[[], float] = boottime,
    ) -> None:
        self._patience_s = patience_s
        self._asking = Apart(read or Nvml(), period_s, now)
        self._pci: dict[int, str] = {}  # who a device was when it was seen first: the driver renumbers after a loss
        self._lost: dict[int, str] = {}

    def look(self, devices: Collection[int]) -> dict[int, GpuReading]:
        """NVML is asked only for GPUs that somebody leases."""
        if not devices:
            return {}
        self._asking.refresh()
        answer = self._asking.newest
        why = self._silence() or (answer.trouble if answer else "")
        if why or answer is None or answer.value is None:
            # a GPU that fell off the bus often takes the driver with it: what it said last about a loss still stands
            return {device: GpuReading(device, self.pci(device), lost=self._lost.get(device, ""), trouble=why)
                    for device in devices}  # fmt: skip
        found = {device: self._find(device, answer.value) for device in devices}
        self._lost.update((device, reading.lost) for device, reading in found.items())
        return found

    def pci(self, device: int) -> str:
        """Where it sits, as the kernel log names it; empty where it has not been seen."""
        return self._pci.get(device, "")

    def settle(self, patience_s: float) -> bool:
        """Waits for the reading that is under way, for those who have time."""
        return self._asking.settle(patience_s)

    def _silence(self) -> str:
        if self._asking.age_s <= self._patience_s:
            return ""
        waiting_s = self._asking.waiting_s
        return f"NVML has not answered for {waiting_s:.0f} s" if waiting_s >= 1 else "NVML has not answered yet"

    def _find(self, device: int, answer: Sequence[GpuReading]) -> GpuReading:
        here = next((reading for reading in answer if reading.device == device), None)
        if device not in self._pci:
            if here is None:
                return GpuReading(device, trouble=f"NVML lists {counted(len(answer), 'GPU')}, not this one")
            if here.pci:
                self._pci[device] = here.pci
            return here
        pci = self._pci[device]
        same = next((reading for reading in answer if reading.pci == pci), None)
        if same:
            return replace(same, device=device)
        if here and not here.pci:  # in its place, but it does not say who it is
            return replace(here, pci=pci)
        return GpuReading(device, pci, lost=f"NVML lists {counted(len(answer), 'GPU')} and no longer the one at {pci}")


def use_of(reading: GpuReading, own: Collection[int], here: Collection[int], shared: bool) -> GpuUse:
    """What one run makes of it. `own`: the pids of its tree, `here`: all pids that we can see.

    NVML may name the host's pids, or none, to those in a container. Then the memory of the device is this run's only if
    it leases the device alone. Utilisation and power are always the device's.
    """
    memory, why = reading.memory_bytes, ""
    listed = dict(reading.processes or ())
    mine = [size for pid, size in listed.items() if pid in own]
    if mine and None not in mine and all(pid in here for pid in listed):
        memory = sum(size for size in mine if size is not None)
    elif shared:
        memory, why = None, "it is shared, and NVML does not tell this run's memory from the others'"
    return GpuUse(
        device=reading.device,
        utilisation=reading.utilisation,
        power_w=reading.power_w,
        memory_bytes=memory,
        shared=shared,
        lost=reading.lost,
        trouble=reading.trouble or ("" if reading.lost else why),
    )


class Nvml:
    """Reads all GPUs; raises where the driver can't be asked at all.

    To start NVML costs about ten milliseconds for each GPU, a reading a tenth of one, so it is kept for a minute. After
    a loss it starts afresh: only then does it list what is there now, and only a GPU that nobody has open can be reset.
    """

    def __init__(self, now: Callable[[], float] = boottime) -> None:
        self._now = now
        self._until: float | None = None

    def __call__(self) -> list[GpuReading]:
        import pynvml

        if self._until is None:
            pynvml.nvmlInit()
            self._until = self._now() + KEPT_S
        found: list[GpuReading] = []
        try:
            found = [_read(pynvml, index) for index in range(pynvml.nvmlDeviceGetCount())]
        finally:
            if not found or any(gpu.lost or not gpu.pci for gpu in found) or self._now() >= self._until:
                self._until = None
                pynvml.nvmlShutdown()
        return found


def _read(nvml: Any, index: int) -> GpuReading:
    asked = _Asked(nvml)
    handle = asked("handle", lambda: nvml.nvmlDeviceGetHandleByIndex(index))
    if handle is None:
        return GpuReading(index, lost=asked.lost, trouble=asked.trouble)
    pci = asked("PCI", lambda: nvml.nvmlDeviceGetPciInfo(handle))
    memory = asked("memory", lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle).used))
    power = asked("power", lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000)
    utilisation = asked("utilisation", lambda: float(nvml.nvmlDeviceGetUtilizationRates(handle).gpu))
    processes = asked("processes", lambda: _processes(nvml, handle))
    place = f"{pci.domain:04x}:{pci.bus:02x}:{pci.device:02x}" if pci else ""
    return GpuReading(index, place, utilisation, power, memory, processes, asked.lost, asked.trouble)


class _Asked:
    """Asks one thing at a time and keeps what went wrong."""

    def __init__(self, nvml: Any) -> None:
        self._error = nvml.NVMLError
        self._lost = tuple(kind for kind in (getattr(nvml, name, None) for name in LOST) if kind)
        self.lost = ""
        self._troubles: list[str] = []

    @property
    def trouble(self) -> str:
        return "; ".join(self._troubles)

    def __call__(self, what: str, ask: Callable[[], T]) -> T | None:
        try:
            return ask()
        except self._lost as error:
            self.lost = f"NVML: {error}"
        except self._error as error:
            self._troubles.append(f"{what}: {error}")
        return None


def _processes(nvml: Any, handle: Any) -> tuple[tuple[int, int | None], ...]:
    """With MPS the clients are listed apart from the server, where the driver knows that call."""
    found: dict[int, int | None] = {}
    for name in ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetMPSComputeRunningProcesses"):
        try:
            for process in getattr(nvml, name)(handle):
                used = process.usedGpuMemory
                found[int(process.pid)] = None if used is None else int(used)
        except (nvml.NVMLError, AttributeError):
            if name == "nvmlDeviceGetComputeRunningProcesses":
                raise
    return tuple(found.items())
