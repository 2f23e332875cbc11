"""All pictures, one after another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from muster.report.analysis import Analysis
from muster.report.figures import bars, coverage, learning, trade
from muster.report.figures.scene import Scene
from muster.report.figures.sheet import Picture, drawable, files, style


def pictures_of(analysis: Analysis) -> Iterator[Picture]:
    """Each one as soon as it is asked for: under `style`."""
    scene = Scene.of(analysis, drawable)
    return chain(learning.draw(scene), bars.draw(scene), trade.draw(scene), coverage.draw(scene))


def drawn(analysis: Analysis) -> Iterator[tuple[Picture, Mapping[str, bytes]]]:
    pictures = pictures_of(analysis)
    while True:
        with style():  # left before anything is handed out: the settings of matplotlib are global
            picture = next(pictures, None)
            if picture is None:
                return
            saved = files(picture)
        yield picture, saved
