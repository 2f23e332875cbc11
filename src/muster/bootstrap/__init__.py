"""The one place that builds concrete things and plugs them together. Each process begins with `install_local_services`.

Nothing is imported here: `begin_process` must begin where nothing more can be loaded.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from muster.engine.ports.services import Services


def install_local_services() -> None:
    """Campaigns are kept in their folders, and run on this machine. What that takes is loaded when it is asked for."""
    from muster.engine.ports.services import install_services

    install_services(_build_local_services)


def _build_local_services() -> Services:
    from muster.engine.ports.services import Services
    from muster.engine.store.campaign_storage import FolderStorage
    from muster.hosts.local.local_host import LocalHost, LocalMachine, LocalProcesses

    return Services(FolderStorage(), LocalHost(), LocalMachine(), LocalProcesses())
