"""The pictures of a staged training, as bytes: events by stage, gate timelines, warnings, survival.

    artifacts = artifacts_of({"gate_trace.jsonl": text, "schedule_trace.json": ...})
    drawn = draw(artifacts, "zh")

Nothing here raises for odd data: what can't be read or drawn is named in `notes`. Words inside a picture are English,
since its font has no Chinese; captions and notes are in the language that is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from muster.report.figures.staged.artifacts import StagedArtifacts, artifacts_of
from muster.report.figures.staged.words import LANGUAGES

__all__ = ["LANGUAGES", "Drawn", "StagedArtifacts", "artifacts_of", "draw"]


class Drawn(NamedTuple):
    files: dict[str, bytes]  # gate_timeline.png, .svg, .pdf, ...
    notes: list[str]  # what could not be read or drawn, and labels that contradict the schedule
    captions: dict[str, str]  # by the file's name without its suffix
    contradictions: list[str]  # of the notes, those about labels


def draw(
    artifacts: StagedArtifacts, language: str = "en", *, of: str = "", version: str = "", mark: str = "",
    kinds: tuple[str, ...] = ("png", "svg", "pdf"),
) -> Drawn:  # fmt: skip
    """Every picture for which there is data. `of`: the run's name, for the foot; `mark`: PARTIAL, for the titles."""
    from muster.report.figures.loading import bundled_fonts_only

    with bundled_fonts_only():
        from muster.report.figures.staged.drawing import Scene, drawn
    files: dict[str, bytes] = {}
    captions: dict[str, str] = {}
    notes, contradictions = drawn(Scene(artifacts, language, of, version, mark), kinds, files, captions)
    return Drawn(files, notes, captions, contradictions)


def pictures(drawn: Drawn) -> Mapping[str, bytes]:
    """Those that a text shows."""
    return {name: data for name, data in drawn.files.items() if name.endswith(".png")}
