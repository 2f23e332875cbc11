"""Reads where an attempt's numbers come from: its result files, its checkpoint, and what these say by the way."""

# Paths are texts here, as in the proof.
# ruff: noqa: PTH116

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from muster.domain.campaign import Job
from muster.domain.cell import Cell
from muster.domain.order import Order
from muster.domain.origins import Checkpoint, Origins
from muster.domain.sighting import Exit
from muster.observe.checkpoints import saved_at
from muster.observe.curves import Log, logs_of
from muster.observe.proof import Places, places_of
from muster.observe.results import Found, NoResult, Values
from muster.observe.sweep import sweep
from muster.observe.window import Window

Hash = Callable[[str], str | None]
COARSE_S = 2.0  # file times are: what was saved so shortly before the end was saved at the end
MOMENT_S = 0.05  # what its last process still wrote while the exit was written down
START, END = 0.1, 0.9  # of the training: what was saved before hardly learned, what was saved after is the last
_EPISODES = ("episodes", "n_episodes", "num_episodes", "eval_episodes")
_HASHES = ("checkpoint_sha256", "checkpoint_hash")
_PATHS = ("checkpoint", "checkpoint_path", "ckpt", "ckpt_path")
_LARGEST = 1 << 20


def read_origins(
    job: Job, cell: Cell, order: Order, exit_: Exit | None, hash_: Hash, *, values: bool = True, best: bool = False,
    used: str | None = None, metrics: Sequence[str] = (),
) -> Origins:  # fmt: skip
    """`values` False: only which files there are and what they hash to. `best`: not the last checkpoint is meant.

    `used`: the checkpoint that was evaluated, where that is known; else the declared one is taken for it.
    `metrics`: those whose curves are read, too, in the same pass as the results.
    """
    places = places_of(job, cell, order, exit_)
    if used is not None:
        places = replace(places, checkpoint=used)
    logs = list(logs_of(job, cell, order, metrics))
    found = _read(job, places, logs) if values else {}
    curves = next((log for log in logs if log.curves()), None)
    by_the_way = _by_the_way(places.results.values()) if values else {}
    return Origins(
        results=places.results,
        values={name: each.value for name, each in found.items()},
        rewritten=frozenset(name for name, path in places.results.items() if _rewritten(path, places.window)),
        files={path: hash_(path) for path in dict.fromkeys([*places.results.values(), *places.logs])},
        checkpoint=_checkpoint(job, places, hash_, START if best else END),
        episodes=_episodes(by_the_way),
        evaluated=next((str(by_the_way[key]) for key in _HASHES if key in by_the_way), None),
        named=next((path for key in _PATHS if isinstance(path := by_the_way.get(key), str)), None),
        picked={name: each.tested for name, each in found.items() if each.tested},
        curves=curves.curves() if curves else {},
        tested=curves.tested() if curves else {},
    )


def _read(job: Job, places: Places, logs: Sequence[Log]) -> dict[str, Found]:
    """Every jsonl file in one pass, for its results and its curves; what can't be read has no value."""
    asked: dict[str, list[Values]] = {}
    others = {each.name: each for each in job.results}
    waiting: dict[str, Values] = {}
    for result in job.results:
        path = places.results.get(result.name)
        with contextlib.suppress(NoResult, OSError):
            if path is not None:
                values = Values(result, path, others)
                if result.kind == "jsonl":
                    asked.setdefault(path, []).append(values)
                else:
                    values.read(path)
                waiting[result.name] = values
    for path in dict.fromkeys([*asked, *(log.path for log in logs if log.kind == "jsonl")]):
        mine = [log for log in logs if log.path == path and log.kind == "jsonl"]
        try:
            sweep(path, [*asked.get(path, ()), *mine])
        except OSError:
            waiting = {name: each for name, each in waiting.items() if each not in asked.get(path, ())}
            for log in mine:
                log.forget()
    for log in logs:  # the first that has curves is the one that counts
        if log.kind != "jsonl":
            log.read()
        if log.curves():
            break
    found: dict[str, Found] = {}
    for name, values in waiting.items():
        with contextlib.suppress(NoResult):
            found[name] = values.found()
    return found


def _rewritten(path: str, window: Window | None) -> bool:
    try:
        return window is not None and os.stat(path).st_mtime > window.ended + MOMENT_S
    except OSError:
        return False


def _checkpoint(job: Job, places: Places, hash_: Hash, end: float) -> Checkpoint | None:
    if places.checkpoint is None:
        return None
    try:
        saved = saved_at(places.checkpoint)
    except OSError:
        return Checkpoint(places.checkpoint, None)
    asked = job.proof.checkpoint.saved_after if job.proof.checkpoint else 0.0
    window, wanted = _training(places, asked), asked or end
    share = window.share(saved, wanted) if window else None
    early = share is not None and share.late is False and window is not None and window.ended - saved > COARSE_S
    return Checkpoint(places.checkpoint, hash_(places.checkpoint), saved, share.value if share else None, early)


def _training(places: Places, asked: float) -> Window | None:
    """Where nobody said how late is late enough, the last step counts and not what the program did after it."""
    window = places.window
    if window is None or asked or places.last_step is None or not window.started < places.last_step < window.ended:
        return window
    left = window.ended - places.last_step
    return Window(window.started, places.last_step, max(1e-3, window.duration_s - left))


def _by_the_way(paths: Any) -> Mapping[str, Any]:
    """The top of the first result file that is a JSON object."""
    for path in paths:
        try:
            if path.endswith(".json") and os.stat(path).st_size <= _LARGEST:
                with open(path, "rb") as file:
                    found = json.loads(file.read())
                if isinstance(found, dict):
                    return found
        except (OSError, ValueError, RecursionError):
            continue
    return {}


def _episodes(found: Mapping[str, Any]) -> int | None:
    value = next((found[key] for key in _EPISODES if key in found), None)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
