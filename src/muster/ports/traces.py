"""What is known of an attempt besides the files in its own folder: those can be deleted while it runs."""

# ruff: noqa: ARG002

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from muster.domain.attempt import Attempt
from muster.domain.sighting import Identity

REQUEST_S = 10.0  # a lease that was signed since may hang with a request for a shim that has not come yet


class Traces(Protocol):
    def launched(self, token: str) -> bool:
        """A shim was asked for once: whatever its folder says now, it may have been executed."""

    def identity(self, token: str) -> Identity | None:
        """Who it was when a controller last saw who it is."""

    def saw(self, token: str, identity: Identity) -> None:
        """Remembers it for whoever looks later. Never fails: the folder says the same while it is there."""

    def refuges(self, token: str) -> Sequence[str]:
        """Folders for its facts where its own one can't be written."""

    def holds_slot(self, attempt: Attempt, for_s: float = 0.0) -> bool:
        """A lease of its slots names it for at least so long, and somebody holds that lease."""

    def elsewhere(self, attempt: Attempt) -> bool:
        """It was claimed on another machine: another boot id proves nothing about it."""


class NoTraces:
    """Where the folder is all there is."""

    def launched(self, token: str) -> bool:
        return False

    def identity(self, token: str) -> Identity | None:
        return None

    def saw(self, token: str, identity: Identity) -> None:
        pass

    def refuges(self, token: str) -> Sequence[str]:
        return ()

    def holds_slot(self, attempt: Attempt, for_s: float = 0.0) -> bool:
        return False

    def elsewhere(self, attempt: Attempt) -> bool:
        return False
