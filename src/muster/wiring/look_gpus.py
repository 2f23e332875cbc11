"""Which GPUs a process tree uses that leased none, and whether others use them too."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from muster.observe.probes.gpu import GpuReading, Nvml
from muster.wiring.apart import apart

PATIENCE_S = 3.0
_DEVICE = re.compile(r"/dev/nvidia(\d+)")


def gpus_of(pids: Sequence[int]) -> tuple[tuple[int, ...], bool]:
    """(NVML's indices, whether they are shared with others or that can't be told)."""
    held = _held(pids)
    if not held:
        return (), False
    try:
        readings = apart(Nvml()).result(PATIENCE_S)
    except Exception:  # no driver, no library, or one that hangs: nothing is said about GPUs then
        return (), False
    named = [each for each in readings if any(pid in pids for pid, _ in each.processes or ())]
    if named:
        return tuple(each.device for each in named), any(_others(each, pids) for each in named)
    if len(readings) == 1:  # a container is shown one of many, under its own number
        return (readings[0].device,), _crowded(readings[0], held)
    listed = {each.device: each for each in readings}
    devices = tuple(sorted(number for number in set(held) if number in listed))
    return devices, any(_crowded(listed[device], held) for device in devices)


def _others(reading: GpuReading, pids: Sequence[int]) -> bool:
    return any(pid not in pids for pid, _ in reading.processes or ())


def _crowded(reading: GpuReading, held: Sequence[int]) -> bool:
    """In a container NVML names the host's pids, or none: more of them than we know are others'."""
    return reading.processes is None or len(reading.processes) > len(held)


def _held(pids: Sequence[int]) -> list[int]:
    """The device numbers that each process has open."""
    found: list[int] = []
    for pid in pids:
        try:
            links = {str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir()}
        except OSError:
            continue
        found += [int(match[1]) for link in links if (match := _DEVICE.fullmatch(link))]
    return found
