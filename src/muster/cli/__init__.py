"""The command line: one file per command, no logic."""

import sys


def main() -> None:
    from muster.cli.leaving import leave

    raise SystemExit(leave(sys.argv[1:]))
