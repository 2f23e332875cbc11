"""The record of an experiment: what was meant, done, found and left out."""
