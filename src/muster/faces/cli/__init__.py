"""The command line: one file per command, no logic."""

from __future__ import annotations

import sys


def main() -> None:
    from muster.files.own_processes import drop_working_folder_from_path

    drop_working_folder_from_path()
    from muster.faces.cli.common.entrypoint import run_command_line

    raise SystemExit(run_command_line(sys.argv[1:]))
