"""A person's decisions: which cells a verb concerns, what must hold before it, what follows from it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from muster.acts.status import CellStatus
from muster.domain.attempt import CellRecord
from muster.domain.campaign import Job
from muster.domain.errors import UsageError
from muster.domain.sighting import Exit, ProofReading
from muster.domain.state import Intent
from muster.domain.verdict import State
from muster.domain.wording import counted
from muster.ports.regular_files import open_regular

LONGEST_LINE = 2000


def concerns(verb: str, cell: CellStatus) -> bool:
    """Whether a glob that fits the cell means it. Who names a cell gets an answer about it in any case."""
    if cell.record.open is not None:
        return verb == "stop"
    if verb == "stop":
        return False
    if verb == "redo":
        return cell.verdict.state == State.DONE
    if verb == "giveup":
        return cell.verdict.state not in (State.DONE, State.GIVEN_UP)
    return cell.verdict.state == State.DEAD or (verb == "retry" and cell.verdict.state == State.GIVEN_UP)


def given(reason: str, option: str = "--because") -> str:
    """A reason that says something."""
    text = " ".join(reason.split())
    if not text or (option == "--because" and not any(each.isalnum() for each in text)):  # `...` too, of our hints
        raise UsageError(f"{option} is empty", hint="say why, in words that still mean something next month")
    return text


def when(intent: Intent) -> str:
    """When a cell starts that may start."""
    if intent.kind == "held":
        return f"starts only after `muster release`; the campaign is held: {intent.reason}"
    if intent.kind == "down":
        return "the campaign is down; starts after `muster up`"
    return "starts when a slot is free"


def not_acceptable(record: CellRecord, job: Job, exit_: Exit | None, proof: ProofReading | None) -> str | None:
    """Why a person's word can't make the last attempt DONE; None: it can. The proof was read just now."""
    last = record.last
    if record.done:
        return "it is DONE already"
    if last is None:
        return "it has no attempt to accept"
    if last.open:
        return _not_ended(record, exit_)
    if not job.asks_proof:
        return "no proof is declared, so there is nothing that could hold"
    if proof is None:
        return "its proof does not hold: its attempt.json can't be read"
    if proof.holds:
        return None
    bad = [item.reading for item in proof.evidence if item.says not in ("holds", "abstains")]
    word = "can't be read" if proof.holds is None else "does not hold"
    return f"its proof {word}: {'; '.join(bad) or 'nothing was found'}"


def _not_ended(record: CellRecord, exit_: Exit | None) -> str:
    if exit_ is None:
        return "it is running and can't be accepted; wait for its end, or stop it"
    if exit_.code == 0:
        return (
            "its command ended with exit 0, but processes that it left behind live on; "
            f"`muster stop {shlex.quote(record.cell.id)}` ends them, and its exit counts then"
        )
    return "processes of it live on; `muster stop` ends them, then it can be accepted"


def pointed_at(text: str, folder: Path) -> Mapping[str, Any]:
    """`FILE:LINE` with the line itself, so that the finding can be read when the file has changed."""
    name, _, number = text.rpartition(":")
    if not name or not number.isascii() or not number.isdigit() or int(number) < 1:
        raise UsageError(f"--evidence {text}: not FILE:LINE", hint="write it as train.log:120")
    path = (folder / name).absolute()
    line, count = _line(path, int(number))
    if line is None:
        raise UsageError(f"--evidence {text}: the file has {counted(count, 'line')}", where=str(path))
    return {"file": str(path), "line": int(number), "text": line}


def _line(path: Path, number: int) -> tuple[str | None, int]:
    count = 0
    try:
        with open_regular(path) as file:
            for count, data in enumerate(file, 1):
                if count == number:
                    return data.decode("utf-8", "replace").rstrip("\r\n")[:LONGEST_LINE], count
    except OSError as error:
        raise UsageError(f"--evidence: the file can't be read: {error.strerror}", where=str(path)) from None
    return None, count
