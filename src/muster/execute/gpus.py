"""Which GPUs there are and which of them somebody uses, by NVML. A hanging driver never hangs us."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muster.domain.wording import counted

BUSY_BYTES = 1 << 30  # memory in use without a process we can see (a container hides them) is use all the same
FRESH_S = 5.0


@dataclass(frozen=True, slots=True)
class Gpu:
    index: int
    name: str
    busy: bool
    why: str = ""


class GpuWatch:
    """The newest reading of all GPUs, taken apart from us: nobody waits for the driver after the first look."""

    def __init__(self, find: Callable[[], list[Gpu]], patience_s: float = 5.0) -> None:
        self._find = find
        self._found: list[Gpu] = _unreadable("the driver has not answered yet")
        self._at = float("-inf")
        self._asker: threading.Thread | None = None
        self._ask()
        if self._asker:
            self._asker.join(patience_s)

    @property
    def gpus(self) -> Sequence[Gpu]:
        return self._found

    def busy(self, index: int) -> bool | None:
        """Whether somebody uses it; None: the last reading is too old, a new one is under way."""
        if time.monotonic() - self._at > FRESH_S:
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


def find_gpus() -> list[Gpu]:
    """Empty where there is no NVIDIA device. One that can't be read counts as used, never as absent."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception as error:  # no package, no driver, no device
        return _unreadable(str(error))
    try:
        return [_gpu(pynvml, index) for index in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError as error:
        return _unreadable(str(error))
    finally:
        pynvml.nvmlShutdown()


def _unreadable(why: str) -> list[Gpu]:
    devices = sorted(int(path.name[6:]) for path in Path("/dev").glob("nvidia[0-9]*") if path.name[6:].isdigit())
    return [Gpu(index, "", True, f"it can't be read: {why}") for index in devices]


def _gpu(pynvml: Any, index: int) -> Gpu:
    name = ""
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        said = pynvml.nvmlDeviceGetName(handle)
        name = said.decode() if isinstance(said, bytes) else str(said)
        processes = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
        used = int(pynvml.nvmlDeviceGetMemoryInfo(handle).used)
    except pynvml.NVMLError as error:
        return Gpu(index, name, True, f"it can't be read: {error}")
    if processes:
        return Gpu(index, name, True, f"{counted(len(processes), 'process uses', 'processes use')} it")
    if used > BUSY_BYTES:
        return Gpu(index, name, True, f"{used >> 20} MiB of its memory are in use")
    return Gpu(index, name, False)
