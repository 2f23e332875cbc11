"""Tells people: for now by a command of theirs, `notify: [{run: ...}]`. The controller never waits for it."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
from collections.abc import Mapping

from muster.domain.decision import Decision
from muster.domain.state import CampaignState
from muster.wiring.apart import apart

LONGEST_S = 60.0


def notify(state: CampaignState, root: str, decision: Decision) -> None:
    for channel in state.campaign.notify:
        if isinstance(channel, Mapping) and channel.get("run"):
            command = str(channel["run"])
            apart(lambda command=command: _run(command, root, _notice(state, decision)))  # type: ignore[misc]


def _notice(state: CampaignState, decision: Decision) -> dict[str, object]:
    return {
        "campaign": state.campaign.name,
        "what": decision.data.get("what"),
        "cell": decision.cell,
        "attempt": decision.attempt,
        "text": decision.reason,
        "at": decision.at,
    }


def _run(command: str, root: str, notice: Mapping[str, object]) -> None:
    """The notice as JSON on stdin and its text in MUSTER_NOTICE. What goes wrong with it is in controller.log."""
    environment = {**os.environ, "MUSTER_NOTICE": str(notice["text"]), "MUSTER_CELL": str(notice["cell"] or "")}
    with contextlib.suppress(OSError, ValueError, subprocess.SubprocessError):
        subprocess.run(
            shlex.split(command),
            input=json.dumps(notice, ensure_ascii=False).encode(),
            cwd=root,
            env=environment,
            stdout=subprocess.DEVNULL,
            timeout=LONGEST_S,
            start_new_session=True,
            check=False,
        )
