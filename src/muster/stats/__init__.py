"""Numbers in; intervals, comparisons, sample sizes, red flags out. A replicate is a training seed."""
