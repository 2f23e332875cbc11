"""Living runs of a campaign whose state does not know them: it was deleted while they ran.

They are found by what they carry and hold: their token and their output in the environment, their log as stdout or
stderr. A run that dropped all of these can't be known.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from muster.observe.process import process


@dataclass(frozen=True, slots=True)
class LeftRun:
    pid: int
    cell: str
    n: int
    token: str  # "": it carries none


def left_runs(state: Path, known: Collection[str]) -> list[LeftRun]:
    """Of the campaign with this .muster, but those whose tokens are known; a shim, which carries none, comes last."""
    places = _places(state)
    found = (run for pid in _pids() if (run := _run(pid, places)))
    return sorted((run for run in found if run.token not in known), key=lambda run: (run.cell, not run.token, run.pid))


def belongs_to(pid: int, state: str, known: Collection[str]) -> bool:
    """Whether it is a run of the campaign with this .muster, or carries one of these tokens."""
    return _carried(pid)[0] in known or _run(pid, _places(Path(state))) is not None


def _places(state: Path) -> set[str]:
    return {f"{place}/attempts/" for place in (state.absolute(), state.resolve())}


def _pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208


def _run(pid: int, places: Collection[str]) -> LeftRun | None:
    token, out = _carried(pid)
    for path in (out, *_outputs(pid)):
        for place in places:
            cell, _, rest = path.removeprefix(place).rpartition("/") if path.startswith(place) else ("", "", "")
            cell, _, n = cell.rpartition("/")
            if cell and rest and n.isdigit() and _lives(pid):
                return LeftRun(pid, cell, int(n), token)
    return None


def _carried(pid: int) -> tuple[str, str]:
    """The token and the output in its environment."""
    try:
        words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return "", ""
    named = dict(word.partition(b"=")[::2] for word in words if word.startswith(b"MUSTER_"))
    return os.fsdecode(named.get(b"MUSTER_ATTEMPT", b"")), os.fsdecode(named.get(b"MUSTER_OUT", b""))


def _outputs(pid: int) -> Iterator[str]:
    for fd in (1, 2):
        try:
            yield os.readlink(f"/proc/{pid}/fd/{fd}")  # noqa: PTH115 - it may be "... (deleted)"
        except OSError:
            continue


def _lives(pid: int) -> bool:
    try:
        found = process(pid)
    except OSError:
        return False
    return found is not None and found.state not in "ZX"
