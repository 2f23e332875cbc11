"""Which GPUs there are and which of them somebody uses, by NVML. A hanging driver never hangs us."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

BUSY_BYTES = 1 << 30  # memory in use without a process we can see (a container hides them) is use all the same


@dataclass(frozen=True, slots=True)
class Gpu:
    index: int
    name: str
    busy: bool
    why: str = ""


def find_gpus(timeout_s: float = 5.0) -> list[Gpu]:
    """None where there is no NVIDIA driver, or where it does not answer in time."""
    found: list[Gpu] = []

    def ask() -> None:
        found.extend(_ask())

    asker = threading.Thread(target=ask, daemon=True, name="nvml")
    asker.start()
    asker.join(timeout_s)
    return [] if asker.is_alive() else found


def _ask() -> list[Gpu]:
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # no package, no driver, no device: three ways of having no GPU
        return []
    try:
        return [_gpu(pynvml, index) for index in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError:
        return []
    finally:
        pynvml.nvmlShutdown()


def _gpu(pynvml: Any, index: int) -> Gpu:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    name = pynvml.nvmlDeviceGetName(handle)
    text = name.decode() if isinstance(name, bytes) else str(name)
    try:
        processes = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
        used = int(pynvml.nvmlDeviceGetMemoryInfo(handle).used)
    except pynvml.NVMLError as error:
        return Gpu(index, text, True, f"it can't be read: {error}")
    if processes:
        return Gpu(index, text, True, f"{len(processes)} processes use it")
    if used > BUSY_BYTES:
        return Gpu(index, text, True, f"{used >> 20} MiB of its memory are in use")
    return Gpu(index, text, False)
