"""The steps after the last run, and powering the machine off."""
