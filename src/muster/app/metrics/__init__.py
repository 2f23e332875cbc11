"""The curves that runs wrote, found and read."""
