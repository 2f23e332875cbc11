"""Readings and the time in; verdict, cause and evidence out. Pure."""
