"""Which files of a folder hold results, found without being told."""
