"""Processes of our own import nothing that lies beside campaign.yaml: no `queue.py`, no `sitecustomize.py`.

`-P` keeps the working folder off `sys.path`. PYTHONPATH can bring it back: by an entry that is empty or relative, which
means the working folder, or by the campaign's folder itself. Runs get PYTHONPATH as it was recorded.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

OWN_SOURCE_FOLDER = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))  # noqa: PTH120
CONTROLLER_MODULE = "muster.bootstrap.controller_process"
CONTROLLER_MODULES = (CONTROLLER_MODULE, "muster.wiring.controller")  # the second is that of 0.1
OWN_PROGRAMS = tuple(f"muster/{room}/{name}.py" for room in ("hosts/local", "execute") for name in ("shim", "guard"))
CODE_LOADING_PREFIXES = ("PYTHON", "LD_")  # variables with which a campaign's `env` would have code loaded into us


def is_controller_command(argv: Iterable[str]) -> bool:
    return any(module in word for word in argv for module in CONTROLLER_MODULES)


def is_own_program(argv: Sequence[str]) -> bool:
    """A controller, guard or shim of this version or of 0.1."""
    return is_controller_command(argv) or any(word.endswith(OWN_PROGRAMS) for word in argv)


def own_python_command(module: str, *words: str) -> tuple[str, ...]:
    return (sys.executable, "-P", "-m", module, *words)


def own_process_environment(environ: Mapping[str, str], root: str | os.PathLike[str]) -> dict[str, str]:
    """For a process of ours that works in a campaign's folder: never inside a run, and with a safe PYTHONPATH."""
    kept = {name: text for name, text in environ.items() if not name.startswith("MUSTER_ATTEMPT")}
    if "PYTHONPATH" in kept:
        kept["PYTHONPATH"] = safe_python_path(kept["PYTHONPATH"], root)
    return kept


def safe_python_path(text: str, root: str | os.PathLike[str]) -> str:
    """PYTHONPATH less entries that mean the working folder, and the campaign's; where Muster lies there, it stays."""
    own = os.path.realpath(root)
    entries = (entry for entry in text.split(os.pathsep) if entry.startswith("/"))
    return os.pathsep.join(entry for entry in entries if os.path.realpath(entry) != own or own == OWN_SOURCE_FOLDER)


def without_code_variables(env: Mapping[str, str]) -> dict[str, str]:
    """A campaign's `env` as our own steps may have it."""
    return {name: text for name, text in env.items() if name != "PATH" and not name.startswith(CODE_LOADING_PREFIXES)}


def drop_working_folder_from_path() -> None:
    """For us, however we were started: `python -m muster`, or with an empty or relative entry in PYTHONPATH."""
    try:
        here = str(Path.cwd())
    except OSError:
        return
    relative = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if not entry.startswith("/")]
    gone = {"", here, *(os.path.normpath(os.path.join(here, entry)) for entry in relative)} - {OWN_SOURCE_FOLDER}  # noqa: PTH118
    sys.path[:] = [entry for entry in sys.path if entry not in gone]
