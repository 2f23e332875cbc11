"""matplotlib without its search for fonts."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory


@contextmanager
def bundled_fonts_only() -> Iterator[None]:
    """For the first import of matplotlib. It would look through every font of the machine, which takes seconds, keep
    the list in the home folder, which may be read-only, and take settings from there, which change the pictures."""
    if "matplotlib" in sys.modules:
        yield
        return
    with TemporaryDirectory(prefix="muster-") as folder:
        before = {name: os.environ.get(name) for name in ("MPLCONFIGDIR", "MPL_IGNORE_SYSTEM_FONTS")}
        os.environ.update(MPLCONFIGDIR=folder, MPL_IGNORE_SYSTEM_FONTS="1")
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
