"""The pictures of a loop's report as bytes, by their names. matplotlib is imported only for the curve."""

from __future__ import annotations

from muster.report.loop_facts import LoopFacts


def tree(facts: LoopFacts) -> dict[str, bytes]:
    from muster.report.figures.lineage import lineage_svg

    return {"lineage.svg": lineage_svg(facts)}


def unnamed(facts: LoopFacts) -> list[str]:
    """Names that the curve leaves out."""
    if not facts.course:
        return []
    from muster.report.figures.loading import bundled_fonts_only

    with bundled_fonts_only():
        from muster.report.figures import best_so_far
    return best_so_far.unnamed(facts)


def curve(facts: LoopFacts) -> dict[str, bytes]:
    """Nothing where no variant has a score."""
    if not facts.course:
        return {}
    from muster.report.figures.loading import bundled_fonts_only

    with bundled_fonts_only():
        from muster.report.figures.best_so_far import NAME, best_so_far
    return {f"{NAME}.{suffix}": data for suffix, data in best_so_far(facts).items()}
