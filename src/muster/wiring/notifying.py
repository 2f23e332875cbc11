"""Tells people: for now by a command of theirs, `notify: [{run: ...}]`. The controller never waits for it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Mapping
from concurrent.futures import Future
from functools import partial

from muster.domain.decision import Decision
from muster.domain.state import CampaignState
from muster.domain.terminal_text import safe_json, safe_line, safe_text
from muster.ports.known_secrets import mask
from muster.ports.write_files import umask_of_caller
from muster.wiring.apart import apart

LONGEST_S = 60.0
LONGEST = 8000  # characters of a notice: a variable of the environment has a limit


def notify(state: CampaignState, root: str, decision: Decision) -> list[Future[str]]:
    """Under way when it returns; what went wrong with each, or nothing, for who has time to wait for it."""
    notice = _notice(state, decision)
    commands = [str(each["run"]) for each in state.campaign.notify if isinstance(each, Mapping) and each.get("run")]
    return [apart(partial(_run, command, root, notice)) for command in commands]


def _notice(state: CampaignState, decision: Decision) -> dict[str, object]:
    return {
        "campaign": state.campaign.name,
        "what": decision.data.get("what"),
        "cell": decision.cell,
        "attempt": decision.attempt,
        "text": _line(decision.reason),
        "at": decision.at,
        "verdict": decision.data.get("verdict"),
    }


def _line(text: str) -> str:
    """One line that no terminal or chat obeys: a notice tells what a run said last."""
    line = safe_text(" ".join(mask(text).split()))
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}..."


def _run(command: str, root: str, notice: Mapping[str, object]) -> str:
    """The notice as JSON on stdin and its text in MUSTER_NOTICE. What goes wrong with it is in controller.log."""
    cell = safe_line(str(notice["cell"] or ""))
    environment = {**os.environ, "MUSTER_NOTICE": str(notice["text"]), "MUSTER_CELL": cell}
    try:
        done = subprocess.run(
            shlex.split(command),
            input=safe_json(json.dumps(notice, ensure_ascii=False)).encode("utf-8", "replace"),
            cwd=root,
            env=environment,
            stdout=subprocess.DEVNULL,
            timeout=LONGEST_S,
            start_new_session=True,
            check=False,
            umask=umask_of_caller(),
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return f"`{command}`: {error}"
    return f"`{command}` ended with {done.returncode}" if done.returncode else ""
