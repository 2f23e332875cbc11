"""Whether a loop's proposer can do its work, before anything is spent: its space, its function, its packages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from muster.acts.bases import base_text
from muster.domain.errors import Mistake
from muster.domain.variants import Variant
from muster.rounds.config import kind_of
from muster.rounds.space import Dimension, SpaceMisfit, checked, point_of, space_of
from muster.rounds.texts import read_config


def proposer_mistakes(loop: Mapping[str, Any] | None, bases: Sequence[Variant], root: Path) -> Iterator[Mistake]:
    if loop and loop.get("search"):
        yield from _search(loop["search"], bases)
    if loop and loop.get("propose"):
        from muster.acts.entry_point import EntryPoint

        what, hint = EntryPoint(loop["propose"], root).mistake()
        if what:
            yield Mistake(what, path="loop.propose", hint=hint)


def _search(search: Mapping[str, Any], bases: Sequence[Variant]) -> Iterator[Mistake]:
    from muster.acts.study import missing

    lacks, how = missing(search.get("sampler", "tpe"))
    if lacks:
        place = "loop.search.sampler" if lacks != "optuna" and "sampler" in search else "loop.search"
        yield Mistake(f"loop.search needs the package {lacks}, which is not installed", path=place, hint=how)
    space = space_of(search["space"])
    told: set[tuple[str, str]] = set()
    for base in bases:
        for each in _misfits(space, base):
            if (each.path, each.message) not in told:
                told.add((each.path, each.message))
                yield each


def _misfits(space: Sequence[Dimension], base: Variant) -> Iterator[Mistake]:
    text, kind = base_text(Path(base.config)), kind_of(base.config)
    tree = read_config(text, kind).tree
    try:
        knobs = checked(space, text, kind, tree)
    except SpaceMisfit as misfit:
        for path, what in misfit.mistakes.items():
            said, _, near = what.partition("; ")
            yield Mistake(f"{base.name}: {said}", path=f"loop.search.space.{path}", hint=near)
        return
    _, outside = point_of(knobs, tree)
    if outside:
        path = outside.partition(" is ")[0]
        what, hint = f"{base.name}: {outside}", "the search does not learn from its score; widen the space?"
        yield Mistake(what, path=f"loop.search.space.{path}", hint=hint, level="warning")
