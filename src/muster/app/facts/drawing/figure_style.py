"""The style of figures: matplotlib set up without its search for fonts, and colours that the colour-blind can tell
apart (Okabe and Ito), each with a marker and a hatch for print in grey.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory


@contextmanager
def with_bundled_fonts_only() -> Iterator[None]:
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


BLUE, ORANGE, GREEN, PURPLE, SKY, BLACK = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#333333"
WARNING_COLOUR = "#D55E00"  # the limit, the infeasible side, PARTIAL: nothing else has this colour
QUIET_COLOUR = "#595959"  # words that explain
FAINT_COLOUR = "#D0D0D0"

COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, BLACK)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "p", "h")
HATCHES = ("", "//", "..", "xx", "\\\\", "--")


def pale_colour(tint: str) -> str:
    """Half of it and half white: a ground that dots and lines are seen on."""
    return "#" + "".join(f"{(int(tint[start : start + 2], 16) + 255) // 2:02X}" for start in (1, 3, 5))


def series_colour(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def series_marker(index: int) -> str:
    return MARKERS[index % len(MARKERS)]


def series_hatch(index: int) -> str:
    return HATCHES[index % len(HATCHES)]
