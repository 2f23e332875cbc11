"""A pure decide() and the thin loop that carries its actions out."""
