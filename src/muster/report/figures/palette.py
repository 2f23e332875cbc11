"""Colours that the colour-blind can tell apart (Okabe and Ito), each with a marker and a hatch for print in grey."""

from __future__ import annotations

BLUE, ORANGE, GREEN, PURPLE, SKY, BLACK = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#333333"
WARNING = "#D55E00"  # the limit, the infeasible side, PARTIAL: nothing else has this colour
QUIET = "#595959"  # words that explain
FAINT = "#D0D0D0"

COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, BLACK)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "p", "h")
HATCHES = ("", "//", "..", "xx", "\\\\", "--")


def pale(tint: str) -> str:
    """Half of it and half white: a ground that dots and lines are seen on."""
    return "#" + "".join(f"{(int(tint[start : start + 2], 16) + 255) // 2:02X}" for start in (1, 3, 5))


def colour(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def marker(index: int) -> str:
    return MARKERS[index % len(MARKERS)]


def hatch(index: int) -> str:
    return HATCHES[index % len(HATCHES)]
