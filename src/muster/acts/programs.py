"""Whether a program can be found, as the one who executes it would look for it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def found(program: str, cwd: str, path: str) -> bool:
    if "/" in program:
        file = Path(cwd) / program
        return file.is_file() and os.access(file, os.X_OK)
    return shutil.which(program, path=path) is not None
