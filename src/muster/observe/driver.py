"""The NVIDIA driver's own word about itself, asked apart: one that hangs never hangs us."""

from __future__ import annotations

import threading
from pathlib import Path

PATIENCE_S = 5.0


def driver(patience_s: float = PATIENCE_S) -> dict[str, str | None]:
    """`version` and the newest `cuda` it serves; None where it can't be told."""
    found: dict[str, str | None] = {"version": None, "cuda": None}
    asking = threading.Thread(target=_ask, args=(found,), daemon=True, name="nvml-driver")
    asking.start()
    asking.join(patience_s)
    answered = dict(found)
    return {**answered, "version": answered["version"] or _module()}


def _ask(found: dict[str, str | None]) -> None:
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


def _module() -> str | None:
    """The first line of the kernel module's own word; None without an NVIDIA driver."""
    try:
        return Path("/proc/driver/nvidia/version").read_text().splitlines()[0].partition(":")[2].strip()
    except (OSError, IndexError):
        return None
