"""attempt.json: what a shim is to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Order:
    """attempt.json: what the shim is to do. Written once, obeyed by whichever shim wins."""

    cell: str
    n: int
    token: str
    epoch: int
    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    env_file: str
    slots: tuple[str, ...]
    out: str
    output: str  # the output, perhaps a glob
    hash: str
    claimed_at: str
    claimed_boot: float
    boot_id: str
    retry_cause: str | None
    resumed_from: str | None
    state: str  # the campaign's .muster folder
    bell: str
    ballast: str
    revive: tuple[str, ...]
    revive_s: float
    axes: dict[str, Any]
    code: dict[str, Any]
    mkdir: bool = True  # whether {out} must exist when the command starts
    refuges: tuple[str, ...] = ()  # folders for its facts where its own one can't be written
    # what fitted a glob in `output` at the launch, where one clock does not tell: path below the glob -> newest time
    there: Mapping[str, float] = field(default_factory=dict)
    muster: int = 1
