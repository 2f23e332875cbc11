"""What is left of a dead run to explain it, read once when its death is seen."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from muster.domain.reading import Aftermath
from muster.domain.sighting import Exit, Identity
from muster.observe.probes.kernel import KernelLog
from muster.ports.regular_files import open_regular

TAIL_BYTES = 64 << 10  # a jax traceback has tens of kilobytes


def read_aftermath(
    folder: Path,
    exit_: Exit,
    identity: Identity | None,
    kernel: KernelLog | None,
    pids: Collection[int] = (),
    pci: Collection[str] = (),
) -> Aftermath:
    """`pids`: who belonged to it when it was seen last; `pci`: where its GPUs are."""
    before, after = exit_.oom_kills
    return Aftermath(
        err=_tail(folder / "stderr.log") or exit_.log,
        out=_tail(folder / "stdout.log") or exit_.out,
        disk_free=exit_.disk_free,
        oom_before=before,
        oom_after=after,
        kernel=_kernel(kernel, identity, pids, pci),
        kernel_pid=identity.pid if identity and kernel and not (kernel.trouble or kernel.host_pids) else None,
    )


def _kernel(
    kernel: KernelLog | None, identity: Identity | None, pids: Collection[int], pci: Collection[str]
) -> tuple[str, ...]:
    if kernel is None or identity is None:
        return ()
    kernel.look()
    return kernel.lines_about({identity.pid, *pids}, pci, since=identity.boot)


def _tail(path: Path) -> str:
    try:
        with open_regular(path) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
