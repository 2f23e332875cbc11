"""The decision log and the SQLite database that is folded from it."""
