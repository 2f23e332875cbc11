"""The pictures of a report as bytes: PNG, SVG and PDF, the same ones for the same facts.

matplotlib is imported here alone, and not before the first picture is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from muster.report.analysis import Analysis


@dataclass(frozen=True, slots=True)
class Figure:
    name: str  # learning_score, bars_score, score_against_cost, coverage: without a suffix
    files: Mapping[str, bytes]  # png, svg, pdf
    caption: str  # in the campaign's language
    cells: tuple[str, ...]  # what it rests on


def figures(analysis: Analysis) -> Iterator[Figure]:
    """Each one as soon as it is drawn."""
    from muster.report.figures.loading import bundled_fonts_only

    with bundled_fonts_only():
        from muster.report.figures.drawing import drawn
    for picture, files in drawn(analysis):
        yield Figure(picture.name, files, picture.caption, picture.cells)
