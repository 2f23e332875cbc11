"""Which of two variants is better, beyond the noise of their seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.rounds.tried import Run, Score, Tried, averaged, ranked, score

if TYPE_CHECKING:
    from muster.stats.sample import Sample

__all__ = ["ALPHA", "Run", "Score", "Tried", "averaged", "beats", "ranked", "score"]
ALPHA = 0.05


def beats(one: Score, other: Score, better: str) -> bool:
    """Better beyond the noise of repeated seeds; with one seed each there is no noise to hold it against.

    One seed that is left of several never beats what has more: the luckiest of them may have survived.
    """
    if not one.values or not other.values:
        return bool(one.values)
    ahead = one.mean - other.mean if better == "higher" else other.mean - one.mean
    if not ahead > 0:
        return False
    if len(one.values) < 2 or len(other.values) < 2:
        return len(one.values) >= len(other.values)
    from muster.stats.compare import difference

    if one.sd == other.sd == 0:
        return True
    p = difference(_sample(one), _sample(other)).p
    return p is not None and p < ALPHA


def _sample(of: Score) -> Sample:
    from muster.stats.sample import Sample

    return Sample("", "", "", {str(at): value for at, value in enumerate(of.values)})
