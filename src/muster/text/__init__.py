"""Numbers, durations, sizes, lists, escapes and tables as text."""
