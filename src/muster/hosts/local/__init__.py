"""Runs on this machine: shim, guard, leases, processes, GPUs."""
