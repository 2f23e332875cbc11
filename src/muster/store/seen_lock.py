"""controller.lock of a campaign that is only read: who is written down in it, and whether that process lives."""

from __future__ import annotations

from muster.store.lock import ControllerLock


class SeenLock(ControllerLock):
    """Never locked, not even for a moment: that would keep a controller of somebody else from its work."""

    def take(self) -> bool:
        return False

    def held(self) -> bool:
        return True  # `holder` still asks whether the process is the one that wrote this
