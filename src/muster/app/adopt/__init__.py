"""Results of runs that Muster did not start, taken in with their proof."""
