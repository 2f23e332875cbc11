"""The command line: one file per command, no logic."""

import sys


def main() -> None:
    from muster.wiring.own_python import forget_working_folder

    forget_working_folder()
    from muster.cli.leaving import leave

    raise SystemExit(leave(sys.argv[1:]))
