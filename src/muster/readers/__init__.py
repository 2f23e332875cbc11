"""Probes of processes and files; readers of steps and checkpoints."""
