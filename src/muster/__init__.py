"""Muster runs campaigns of machine-learning experiments to the end and tells the truth about them."""

__version__ = "0.1.0"
