"""Summaries and rules in; edits, proposals and their lineage out."""
