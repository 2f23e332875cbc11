"""`.muster/watch.json`: what the looks at living runs add up to, for whoever looks next. Lost, it is learned again.

One file for all runs, replaced whole at each poll and never synced: nothing that was decided rests on it.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from muster.ports.no_json import NO_JSON
from muster.ports.plain_files import LARGEST_OF_CELLS, read_plain
from muster.ports.signals import Remembered
from muster.ports.write_files import write_atomically

_decoder = msgspec.json.Decoder(Remembered)
_encoder = msgspec.json.Encoder()


class WatchFile:
    def __init__(self, folder: Path, boot_id: str) -> None:
        self.path = folder / "watch.json"
        self.boot_id = boot_id

    def tidy(self) -> None:
        """What killed controllers had begun to write; for the one that holds the lock."""
        for partial in self.path.parent.glob(".watch.*.[0-9]*"):
            with contextlib.suppress(OSError):
                partial.unlink()

    def load(self) -> Remembered:
        try:
            found = _decoder.decode(read_plain(str(self.path), LARGEST_OF_CELLS))
        except (OSError, *NO_JSON):  # absent, cut off, or of another version
            return Remembered(self.boot_id)
        if found.boot_id != self.boot_id:
            return Remembered(self.boot_id, siblings=found.siblings)
        return found

    def save(self, remembered: Remembered) -> None:
        with contextlib.suppress(OSError):  # a full disk must not stop the watch
            write_atomically(self.path, _encoder.encode(remembered))
