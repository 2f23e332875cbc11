"""Begins a process of ours: `python -m muster.bootstrap.begin_process muster.bootstrap.controller_process ROOT`.

Where it can't be loaded or fails, it ends with one line that says why. A system without a free descriptor refuses
modules as if they did not exist, so everything else is loaded in here.
"""

from __future__ import annotations

import importlib
import os
import sys

from muster.files.own_processes import drop_working_folder_from_path


def main(argv: list[str]) -> int:
    name, *rest = argv
    drop_working_folder_from_path()
    try:
        return int(importlib.import_module(name).main(rest))
    except Exception as error:
        if not isinstance(error, (OSError, ImportError, MemoryError)) and not hasattr(error, "hint"):
            _print_traceback(error)
        told = f"muster: {name.rpartition('.')[2]}: {_failure_in_one_line(error)}\n"
        os.write(2, told.encode("utf-8", "replace"))
        return 1


def _failure_in_one_line(error: Exception) -> str:
    """In one line; the guard shows it."""
    if isinstance(error, ImportError) and (refused := _reason_files_cannot_open()):
        return f"it could not be loaded: {refused}"
    hint = getattr(error, "hint", "")
    where = getattr(error, "where", "")
    said = str(error) or type(error).__name__
    if not isinstance(error, OSError) and not hasattr(error, "hint"):
        said = f"{type(error).__name__}: {said}"
    return " ".join(f"{said}{f'; where: {where}' if where else ''}{f'; fix: {hint}' if hint else ''}".split())


def _reason_files_cannot_open() -> str:
    """Why a file can't even be opened now; "": it can."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return str(error)
    return ""


def _print_traceback(error: Exception) -> None:
    """A mistake in Muster: its traceback goes to controller.log, for whoever fixes it."""
    try:
        import traceback

        traceback.print_exception(error)
        sys.stderr.flush()
    except (OSError, ImportError):
        pass


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
