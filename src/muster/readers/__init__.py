"""Reads files that runs wrote: records, results, proofs, checkpoints, source code. A library for app and hosts."""
