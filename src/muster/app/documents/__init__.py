"""Numbers in people's own texts: which of them stem from results, and how to change those and nothing else."""
