"""How patient this process is. Tests shrink all floors at once by MUSTER_PACE; nobody else should."""

from __future__ import annotations

import os

from muster.judge.floors import Floors

POLL_S = 5.0


def poll_s() -> float:
    return float(os.environ.get("MUSTER_POLL_S", POLL_S))


def floors() -> Floors:
    pace = float(os.environ.get("MUSTER_PACE", "1"))
    return Floors() if pace == 1 and poll_s() == POLL_S else Floors.paced(pace, poll_s())
