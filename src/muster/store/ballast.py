"""16 MB laid by, freed when the disk is full, so that how runs ended can still be written."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

BYTES = 16 << 20


class Ballast:
    def __init__(self, path: Path) -> None:
        self.path = path

    def lay(self) -> bool:
        """False: the disk has no room for it."""
        if self.path.exists():
            return True
        try:
            fd = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
        except OSError:
            return False
        try:
            os.posix_fallocate(fd, 0, BYTES)
            return True
        except OSError:
            self.free()
            return False
        finally:
            os.close(fd)

    def free(self) -> None:
        with contextlib.suppress(OSError):
            self.path.unlink()
