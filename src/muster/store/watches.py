"""`.muster/watch.json`: what the looks at living runs add up to, for whoever looks next. Lost, it is learned again.

One file for all runs, replaced whole at each poll and never synced: nothing that was decided rests on it.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec

from muster.ports.signals import Remembered

_decoder = msgspec.json.Decoder(Remembered)
_encoder = msgspec.json.Encoder()


class WatchFile:
    def __init__(self, folder: Path, boot_id: str) -> None:
        self.path = folder / "watch.json"
        self.boot_id = boot_id

    def tidy(self) -> None:
        """What killed controllers had begun to write; for the one that holds the lock."""
        for partial in self.path.parent.glob(".watch.[0-9]*"):
            with contextlib.suppress(OSError):
                partial.unlink()

    def load(self) -> Remembered:
        try:
            found = _decoder.decode(self.path.read_bytes())
        except (OSError, msgspec.MsgspecError):  # absent, cut off, or of another version
            return Remembered(self.boot_id)
        if found.boot_id != self.boot_id:
            return Remembered(self.boot_id, siblings=found.siblings)
        return found

    def save(self, remembered: Remembered) -> None:
        partial = self.path.with_name(f".watch.{os.getpid()}")
        with contextlib.suppress(OSError):  # a full disk must not stop the watch
            partial.write_bytes(_encoder.encode(remembered))
            partial.replace(self.path)
