"""GPUs by NVML: which there are, who uses them, which ones a process tree uses without a lease. Asked in a process or
thread of its own: a driver that hangs makes us abstain, nothing else.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from muster.engine.ports.clock import monotonic_boottime
from muster.engine.ports.machine import GpuDevice
from muster.model.attempt_snapshot import GpuUse
from muster.readers.background_reader import PolledProbe, run_in_daemon_thread
from muster.text.phrases import join_phrases, phrase

BUSY_BYTES = 1 << 30  # memory in use without a process we can see (a container hides them) is use all the same
INVENTORY_FRESH_S = 5.0


class GpuInventory:
    """The newest reading of all GPUs, taken apart from us: nobody waits for the driver after the first look."""

    def __init__(self, find: Callable[[], list[GpuDevice]], patience_s: float = 5.0) -> None:
        self._find = find
        self._found: list[GpuDevice] = _unreadable_devices(phrase("hosts.driver_silent_yet"))
        self._at = float("-inf")
        self._asker: threading.Thread | None = None
        self._ask()
        if self._asker:
            self._asker.join(patience_s)

    @property
    def gpus(self) -> Sequence[GpuDevice]:
        return self._found

    def busy(self, index: int) -> bool | None:
        """Whether somebody uses it; None: the last reading is too old, a new one is under way."""
        if time.monotonic() - self._at > INVENTORY_FRESH_S:
            self._ask()
            return None
        return any(gpu.busy for gpu in self._found if gpu.index == index)

    def _ask(self) -> None:
        if self._asker and self._asker.is_alive():
            return  # the driver hangs: one asker is enough

        def ask() -> None:
            self._found = self._find()
            self._at = time.monotonic()

        self._asker = threading.Thread(target=ask, daemon=True, name="nvml")
        self._asker.start()


def find_gpu_devices() -> list[GpuDevice]:
    """Empty where there is no NVIDIA device. One that can't be read counts as used, never as absent."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception as error:  # no package, no driver, no device
        return _unreadable_devices(str(error))
    try:
        return [_read_device(pynvml, index) for index in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError as error:
        return _unreadable_devices(str(error))
    finally:
        pynvml.nvmlShutdown()


def _unreadable_devices(why: str) -> list[GpuDevice]:
    devices = sorted(int(path.name[6:]) for path in Path("/dev").glob("nvidia[0-9]*") if path.name[6:].isdigit())
    return [GpuDevice(index, "", True, phrase("hosts.unreadable_because", reason=why)) for index in devices]


def _read_device(pynvml: Any, index: int) -> GpuDevice:
    name = ""
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        said = pynvml.nvmlDeviceGetName(handle)
        name = said.decode() if isinstance(said, bytes) else str(said)
        processes = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
        used = int(pynvml.nvmlDeviceGetMemoryInfo(handle).used)
    except pynvml.NVMLError as error:
        return GpuDevice(index, name, True, phrase("hosts.unreadable_because", reason=error))
    if processes:
        return GpuDevice(index, name, True, phrase("hosts.processes_use_gpu", n=len(processes)))
    if used > BUSY_BYTES:
        return GpuDevice(index, name, True, phrase("hosts.gpu_memory_used", mib=used >> 20))
    return GpuDevice(index, name, False)


DRIVER_PATIENCE_S = 5.0


def read_nvidia_driver(patience_s: float = DRIVER_PATIENCE_S) -> dict[str, str | None]:
    """`version` and the newest `cuda` it serves; None where it can't be told."""
    found: dict[str, str | None] = {"version": None, "cuda": None}
    with contextlib.suppress(OSError):
        run_in_daemon_thread(lambda: _ask_nvml_driver(found)).result(patience_s)
    answered = dict(found)
    return {**answered, "version": answered["version"] or _kernel_module_version()}


def _ask_nvml_driver(found: dict[str, str | None]) -> None:
    try:
        import pynvml

        pynvml.nvmlInit()
        try:
            said = pynvml.nvmlSystemGetDriverVersion()
            found["version"] = said.decode() if isinstance(said, bytes) else str(said)
            cuda = int(pynvml.nvmlSystemGetCudaDriverVersion_v2())
            found["cuda"] = f"{cuda // 1000}.{cuda % 1000 // 10}"
        finally:
            pynvml.nvmlShutdown()
    except Exception:  # no package, no driver, an old one: then the kernel's word must do
        return


def _kernel_module_version() -> str | None:
    """The first line of the kernel module's own word; None without an NVIDIA driver."""
    try:
        return Path("/proc/driver/nvidia/version").read_text().splitlines()[0].partition(":")[2].strip()
    except (OSError, IndexError):
        return None


GPU_PERIOD_S = 5.0
NVML_KEPT_S = 60.0
LOST_GPU_ERRORS = ("NVMLError_GpuIsLost", "NVMLError_ResetRequired")
NvmlValue = TypeVar("NvmlValue")


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


class GpuProbe:
    """The newest reading of each GPU. Nobody waits for it: what a look starts is there at a later one."""

    def __init__(
        self,
        read: Callable[[], Sequence[GpuReading]] | None = None,
        patience_s: float = 3 * GPU_PERIOD_S,
        period_s: float = GPU_PERIOD_S,
        now: Callable[[], float] = monotonic_boottime,
    ) -> None:
        self._patience_s = patience_s
        self._asking = PolledProbe(read or NvmlReader(), period_s, now)
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
            return {
                device: GpuReading(device, self.pci(device), lost=self._lost.get(device, ""), trouble=why)
                for device in devices
            }
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
        return phrase("hosts.nvml_silent", waiting_s=waiting_s) if waiting_s >= 1 else phrase("hosts.nvml_silent_yet")

    def _find(self, device: int, answer: Sequence[GpuReading]) -> GpuReading:
        here = next((reading for reading in answer if reading.device == device), None)
        if device not in self._pci:
            if here is None:
                return GpuReading(
                    device, trouble=phrase("hosts.nvml_lacks_gpu", gpus=phrase("count.gpu", n=len(answer)))
                )
            if here.pci:
                self._pci[device] = here.pci
            return here
        pci = self._pci[device]
        same = next((reading for reading in answer if reading.pci == pci), None)
        if same:
            return replace(same, device=device)
        if here and not here.pci:  # in its place, but it does not say who it is
            return replace(here, pci=pci)
        return GpuReading(
            device, pci, lost=phrase("hosts.nvml_lost_gpu", gpus=phrase("count.gpu", n=len(answer)), pci=pci)
        )


def gpu_use_of_run(reading: GpuReading, own: Collection[int], here: Collection[int], shared: bool) -> GpuUse:
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
        memory, why = None, phrase("hosts.gpu_memory_shared")
    return GpuUse(
        device=reading.device,
        utilisation=reading.utilisation,
        power_w=reading.power_w,
        memory_bytes=memory,
        shared=shared,
        lost=reading.lost,
        trouble=reading.trouble or ("" if reading.lost else why),
    )


class NvmlReader:
    """Reads all GPUs; raises where the driver can't be asked at all.

    To start NVML costs about ten milliseconds for each GPU, a reading a tenth of one, so it is kept for a minute. After
    a loss it starts afresh: only then does it list what is there now, and only a GPU that nobody has open can be reset.
    """

    def __init__(self, now: Callable[[], float] = monotonic_boottime) -> None:
        self._now = now
        self._until: float | None = None

    def __call__(self) -> list[GpuReading]:
        import pynvml

        if self._until is None:
            pynvml.nvmlInit()
            self._until = self._now() + NVML_KEPT_S
        found: list[GpuReading] = []
        try:
            found = [_read_gpu(pynvml, index) for index in range(pynvml.nvmlDeviceGetCount())]
        finally:
            if not found or any(gpu.lost or not gpu.pci for gpu in found) or self._now() >= self._until:
                self._until = None
                pynvml.nvmlShutdown()
        return found


def _read_gpu(nvml: Any, index: int) -> GpuReading:
    asked = _NvmlQuestions(nvml)
    handle = asked("handle", lambda: nvml.nvmlDeviceGetHandleByIndex(index))
    if handle is None:
        return GpuReading(index, lost=asked.lost, trouble=asked.trouble)
    pci = asked("PCI", lambda: nvml.nvmlDeviceGetPciInfo(handle))
    memory = asked("memory", lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle).used))
    power = asked("power", lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000)
    utilisation = asked("utilisation", lambda: float(nvml.nvmlDeviceGetUtilizationRates(handle).gpu))
    processes = asked("processes", lambda: _gpu_processes(nvml, handle))
    place = f"{pci.domain:04x}:{pci.bus:02x}:{pci.device:02x}" if pci else ""
    return GpuReading(index, place, utilisation, power, memory, processes, asked.lost, asked.trouble)


class _NvmlQuestions:
    """Asks one thing at a time and keeps what went wrong."""

    def __init__(self, nvml: Any) -> None:
        self._error = nvml.NVMLError
        self._lost = tuple(kind for kind in (getattr(nvml, name, None) for name in LOST_GPU_ERRORS) if kind)
        self.lost = ""
        self._troubles: list[str] = []

    @property
    def trouble(self) -> str:
        return join_phrases("; ", self._troubles) if self._troubles else ""

    def __call__(self, what: str, ask: Callable[[], NvmlValue]) -> NvmlValue | None:
        try:
            return ask()
        except self._lost as error:
            self.lost = phrase("hosts.nvml_lost", error=error)
        except self._error as error:
            self._troubles.append(f"{what}: {error}")
        return None


def _gpu_processes(nvml: Any, handle: Any) -> tuple[tuple[int, int | None], ...]:
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


NVML_PATIENCE_S = 3.0
_DEVICE = re.compile(r"/dev/nvidia(\d+)")


def gpus_of_processes(pids: Sequence[int]) -> tuple[tuple[int, ...], bool]:
    """(NVML's indices, whether they are shared with others or that can't be told)."""
    held = _open_gpu_devices(pids)
    if not held:
        return (), False
    try:
        readings = run_in_daemon_thread(NvmlReader()).result(NVML_PATIENCE_S)
    except Exception:  # no driver, no library, or one that hangs: nothing is said about GPUs then
        return (), False
    named = [each for each in readings if any(pid in pids for pid, _ in each.processes or ())]
    if named:
        return tuple(each.device for each in named), any(_is_used_by_others(each, pids) for each in named)
    if len(readings) == 1:  # a container is shown one of many, under its own number
        return (readings[0].device,), _has_unknown_processes(readings[0], held)
    listed = {each.device: each for each in readings}
    devices = tuple(sorted(number for number in set(held) if number in listed))
    return devices, any(_has_unknown_processes(listed[device], held) for device in devices)


def _is_used_by_others(reading: GpuReading, pids: Sequence[int]) -> bool:
    return any(pid not in pids for pid, _ in reading.processes or ())


def _has_unknown_processes(reading: GpuReading, held: Sequence[int]) -> bool:
    """In a container NVML names the host's pids, or none: more of them than we know are others'."""
    return reading.processes is None or len(reading.processes) > len(held)


def _open_gpu_devices(pids: Sequence[int]) -> list[int]:
    """The device numbers that each process has open."""
    found: list[int] = []
    for pid in pids:
        try:
            links = {str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir()}
        except OSError:
            continue
        found += [int(match[1]) for link in links if (match := _DEVICE.fullmatch(link))]
    return found
