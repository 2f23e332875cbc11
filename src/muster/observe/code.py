"""Which code a cell runs: commit and a hash of what was changed since, by git."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

NOT_CODE = (
    ":(exclude,top)**/campaign.yaml", ":(exclude,top)campaign.yaml", ":(exclude,top)**/reports/**",
    ":(exclude,top)**/dev_v*.md", ":(exclude,top)dev_v*.md", ":(exclude,top)**/dev_v*_files/**",
    ":(exclude,top)dev_v*_files/**",
)  # fmt: skip


def code_identity(cwd: str, timeout_s: float = 10.0) -> Mapping[str, Any]:
    """{} outside a repository. Muster's own files are not code: writing a note must not change what a cell is."""
    if not any((folder / ".git").exists() for folder in (Path(cwd), *Path(cwd).parents)):
        return {}
    commit = _git(cwd, timeout_s, "rev-parse", "HEAD")
    if commit is None:
        return {}
    diff = code_diff(cwd, timeout_s)
    dirty = hashlib.sha256(diff.encode()).hexdigest()[:12] if diff else None
    return {"commit": commit.strip(), "dirty": dirty, "readable": diff is not None}


def code_diff(cwd: str, timeout_s: float = 10.0) -> str | None:
    """What was changed since the commit, as text; empty: nothing. None: it can't be told."""
    return _git(cwd, timeout_s, "diff", "HEAD", "--", ":/", *NOT_CODE)


def _git(cwd: str, timeout_s: float, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", cwd, *arguments], capture_output=True, timeout=timeout_s, check=True, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace")
