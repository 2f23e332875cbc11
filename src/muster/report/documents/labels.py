"""Whether a text says what its ± stands for: sd, standard error and interval differ by a factor of two and more."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from muster.report.documents.numbers import Number

# anywhere in the text: a caption, a heading, a footnote or a sentence may say it for all of them
_LABELS = re.compile(
    r"(?<![A-Za-z])(?:(?i:s\.d\.|sd|stdd?ev|std(?:\.?[ ~-]?dev)?|stderr|s\.e\.m?\.?|sem|iqr|sigma)|SE|CI)s?(?![A-Za-z])"
    r"|(?i:standard[\s~-]+(?:deviation|error)|confidence[\s~-]+(?:interval|bound|region|band)|half[\s~-]?width|variance)"
    r"|(?i:\d\d\s*\\?[%％]\s*(?:interval|band|区间))|σ|标准差|标准误|方差|置信|四分位|半宽"
)


@dataclass(frozen=True, slots=True)
class Unlabelled:
    """Means and spreads of a text that nowhere says what the spread is."""

    start: int  # of the first
    end: int
    count: int


def unlabelled(shown: str, numbers: Sequence[Number]) -> Unlabelled | None:
    """`shown`: what readers see of the text. One for the whole of it, however many numbers there are."""
    spreads = [number for number in numbers if number.pair]
    if not spreads or _LABELS.search(shown):
        return None
    return Unlabelled(spreads[0].start, spreads[0].end, len(spreads))
