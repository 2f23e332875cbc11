"""Checkpoints: which are whole, and from which a run can go on."""
