"""Rounds that build on each other: proposing, comparing, stopping."""
