"""The command line: one file per command, no logic."""


def main() -> None:
    from muster.cli.app import run

    raise SystemExit(run())
