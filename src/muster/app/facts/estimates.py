"""The number format of a column of samples: as many digits as the smallest spread in it allows."""

from __future__ import annotations

import math
from collections.abc import Iterable

from muster.stats.samples import Sample
from muster.text.number_format import ColumnFormat, _choose_number_format


def choose_column_format(samples: Iterable[Sample]) -> ColumnFormat:
    """By the smallest spread in the column, so that it keeps two digits."""
    known = [sample for sample in samples if sample.n]
    values = [abs(value) for sample in known for value in sample.values if math.isfinite(value)]
    spreads = [sample.sd for sample in known if sample.sd and math.isfinite(sample.sd)]
    return _choose_number_format(values, spreads)
