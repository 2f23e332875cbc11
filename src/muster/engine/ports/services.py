"""What a process of Muster works with: where campaigns are kept, where their runs run, and the machine it is on.
`bootstrap` builds it, and nobody else.

Whoever has a campaign's handle takes it from there; the rest ask for what was installed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muster.engine.ports.machine import Machine
    from muster.engine.ports.processes import Processes
    from muster.engine.ports.run_host import RunHost
    from muster.engine.ports.store import CampaignStorage


@dataclass(frozen=True, slots=True)
class Services:
    storage: CampaignStorage
    host: RunHost
    machine: Machine
    processes: Processes


_build: Callable[[], Services] | None = None
_built: Services | None = None


def install_services(build: Callable[[], Services]) -> None:
    """For this process. They are built when somebody asks first."""
    global _build, _built
    _build, _built = build, None


def installed_services() -> Services:
    global _built
    if _built is None:
        if _build is None:
            raise RuntimeError("nothing is installed: a process begins with muster.bootstrap.install_local_services()")
        _built = _build()
    return _built
