"""The declared matrix as a grid of configs and seeds: what is there and what is missing."""

from __future__ import annotations

from muster.report.analysis import Analysis
from muster.report.coverage import declared_seeds, done, heads_of
from muster.report.estimates import captioned
from muster.report.grid import Cell, Grid, aligned, cells
from muster.report.words import Words


def matrix_grid(analysis: Analysis, w: Words) -> Grid:
    facts = analysis.facts
    seeds, heads = facts.seeds or ("",), heads_of(facts)
    head = (w("table.config"), *(w("matrix.seed", seed=seed).strip() for seed in seeds), w("matrix.cells"))
    rows = tuple(_row(analysis, config, seeds, heads, w) for config in facts.configs or ("",))
    told = [w("matrix.note", heads=w.several(list(heads)))]
    if facts.excluded:
        told.append(w("matrix.note_excluded"))
    caption = captioned(analysis, w("matrix.caption", campaign=facts.campaign), w)
    return Grid(caption, head, rows, aligned(len(head), head), tuple(told))


def missing_grid(analysis: Analysis, w: Words) -> Grid | None:
    """Every missing cell with its reason, also those that carry no results."""
    missing = sorted(analysis.facts.missing, key=lambda each: each.state == "BLOCKED")
    if not missing:
        return None
    head = (w("missing.cell"), w("missing.state"), w("missing.reason"))
    rows = tuple(cells(each.cell, each.state, each.reason or "—") for each in missing)
    return Grid(captioned(analysis, w("missing.title"), w), head, rows, aligned(3, head))


def _row(analysis: Analysis, config: str, seeds: tuple[str, ...], heads: tuple[str, ...], w: Words) -> tuple[Cell, ...]:
    facts, there = analysis.facts, done(analysis.facts)
    declared = {(seed, head) for head in heads for seed in declared_seeds(facts, config, head)}
    found = {(seed, head) for seed, head in declared if (config, seed, head) in there}
    shown = []
    for seed in seeds:
        wanted = [head for head in heads if (seed, head) in declared]
        lacking = [head for head in wanted if (seed, head) not in found]
        shown.append(_state(wanted, lacking, w) if wanted or seed not in facts.gone_seeds else w("matrix.not_declared"))
    return cells(config or facts.campaign, *shown, f"{len(found)}/{len(declared)}")


def _state(wanted: list[str], lacking: list[str], w: Words) -> str:
    if not wanted:
        return w("matrix.excluded")
    if not lacking:
        return w("matrix.done")
    if len(lacking) == len(wanted):
        return w("matrix.missing")
    return w("matrix.part", heads=w.several(lacking))
