"""Every picture of every staged training: all words lie on the sheet, none is too small, none lies on another."""

from __future__ import annotations

from io import BytesIO
from itertools import combinations
from typing import Any

import pytest
from staged_scenes import SCENES

from muster.app.facts.drawing.figure_style import with_bundled_fonts_only
from muster.app.gates.staged_artifacts import parse_staged_artifacts

with with_bundled_fonts_only():
    from matplotlib.backends.backend_agg import RendererAgg
    from matplotlib.text import Text
    from matplotlib.transforms import Bbox

    from muster.app.facts.drawing.figure_page import SMALL, apply_figure_style
    from muster.app.gates.picture_plan import StagedScene, figures_of_plan

DPI = 80


@pytest.mark.parametrize("scene", SCENES)
def test_all_words_are_on_the_sheet_large_enough_and_apart(scene: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[tuple[Text, Bbox]] = []  # where they lie while they are drawn
    draw = RendererAgg.draw_text

    def note(self: RendererAgg, *args: Any, mtext: Text, **more: Any) -> None:
        written.append((mtext, mtext.get_window_extent(self)))
        draw(self, *args, mtext=mtext, **more)

    monkeypatch.setattr(RendererAgg, "draw_text", note)
    found = dict(
        figures_of_plan(
            StagedScene(parse_staged_artifacts(SCENES[scene]()), "en", "train/a_rather_long_name/0", "0.6.0", "PARTIAL")
        )
    )
    assert found
    with apply_figure_style():
        for figure in found.values():
            figure.savefig(BytesIO(), format="raw", dpi=DPI)
    for figure in found.values():
        mine = [(text, box) for text, box in written if text.get_figure() is figure and text.get_text().strip()]
        across, up = (DPI * inches for inches in figure.get_size_inches())
        assert any("(PARTIAL)" in text.get_text() for text, _ in mine)
        for text, box in mine:
            assert text.get_fontsize() >= SMALL
            inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= across + 1 and box.y1 <= up + 1
            assert inside, (text.get_text(), box)
        for (one, a), (other, b) in combinations(mine, 2):
            wide = min(a.x1, b.x1) - max(a.x0, b.x0)
            high = min(a.y1, b.y1) - max(a.y0, b.y0)
            assert wide <= 1 or high <= 2, (one.get_text(), other.get_text())
