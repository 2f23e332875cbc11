"""Shim, slot leases and the local executor."""
