"""Many histories in several processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator

from simulator.figures import Figures
from simulator.judges import REAL, Judge
from simulator.single import simulate

BATCH = 250


def run_batch(bounds: tuple[int, int], judge: Judge = REAL) -> Figures:
    figures = Figures()
    for seed in range(*bounds):
        figures.add(simulate(seed, judge=judge))
    return figures


def run_many(histories: int, jobs: int, seed: int, tell: Callable[[Figures], None] = lambda _: None) -> Figures:
    """Seeds `seed` and up. Spawned, not forked: no child depends on what its parent had open."""
    figures = Figures()
    batches = [(at, min(at + BATCH, seed + histories)) for at in range(seed, seed + histories, BATCH)]
    for part in _parts(batches, jobs):
        figures.merge(part)
        tell(figures)
    figures.failing.sort()
    figures.presuming.sort()
    return figures


def _parts(batches: list[tuple[int, int]], jobs: int) -> Iterator[Figures]:
    if jobs <= 1 or len(batches) <= 1:
        yield from map(run_batch, batches)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap_unordered(run_batch, batches)
        pool.close()
        pool.join()
