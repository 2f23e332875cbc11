"""What `check` finds before anything runs: programs, environments, files, settings."""
