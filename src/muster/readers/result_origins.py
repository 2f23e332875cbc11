"""Reads where an attempt's numbers come from: its result files, its checkpoint, and what these say by the way."""

# Paths are texts here, as in the proof.
# ruff: noqa: PTH116

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from muster.files.safe_open import read_regular_file
from muster.model.attempt import Order
from muster.model.attempt_snapshot import ExitRecord
from muster.model.campaign import Job
from muster.model.cell import Cell
from muster.model.provenance import CheckpointOrigin, NoCurveReason, ResultOrigins, Resumption
from muster.readers.checkpoints.checkpoint_steps import step_of_checkpoint
from muster.readers.checkpoints.whole_checkpoints import checkpoint_saved_at
from muster.readers.curves import CURVE_KINDS, CurveLog, curve_logs_of_attempt, curves_in_logs, read_missing_curves
from muster.readers.log_rows import sweep_log_rows
from muster.readers.proof import ResultPlaces, find_result_places, step_key_of_result
from muster.readers.results import LOG_KINDS, FoundResult, NoResult, ResultValues
from muster.readers.run_times import RunWindow

HashOfFile = Callable[[str], str | None]
COARSE_S = 2.0  # file times are: what was saved so shortly before the end was saved at the end
MOMENT_S = 0.05  # what its last process still wrote while the exit was written down
START, END = 0.1, 0.9  # of the training: what was saved before hardly learned, what was saved after is the last
_EPISODES = ("episodes", "n_episodes", "num_episodes", "eval_episodes")
_HASHES = ("checkpoint_sha256", "checkpoint_hash")
_PATHS = ("checkpoint", "checkpoint_path", "ckpt", "ckpt_path")
_LARGEST = 1 << 20


def read_result_origins(
    job: Job,
    cell: Cell,
    order: Order,
    exit_: ExitRecord | None,
    hash_: HashOfFile,
    *,
    values: bool = True,
    best: bool = False,
    used: str | None = None,
    metrics: Sequence[str] = (),
    before: Sequence[Order] = (),
) -> ResultOrigins:
    """`values` False: only which files there are and what they hash to. `best`: not the last checkpoint is meant.

    `used`: the checkpoint that was evaluated, where that is known; else the declared one is taken for it.
    `metrics`: those whose curves are read, too, in the same pass as the results. `before`: the orders of the attempts
    that this one goes on from, the first one first.
    """
    places = find_result_places(job, cell, order, exit_, before)
    if used is not None:
        places = replace(places, checkpoint=used)
    logs = curve_logs_of_attempt(job, cell, order, metrics, before)
    resumed: list[Resumption] = []
    found = _read_results_and_curves(job, places, logs, resumed) if values else {}
    curves, tested = curves_in_logs(logs)
    by_the_way = _first_result_object(places.results.values()) if values else {}
    return ResultOrigins(
        results=places.results,
        values={name: each.value for name, each in found.items()},
        rewritten=frozenset(
            name for name, path in places.results.items() if _was_rewritten_after_end(path, places.window)
        ),
        files={path: hash_(path) for path in dict.fromkeys([*places.results.values(), *places.logs, *places.before])},
        checkpoint=_checkpoint_origin(job, places, hash_, START if best else END),
        episodes=_declared_episodes(by_the_way) or _count_averaged_episodes(job, found),
        evaluated=next((str(by_the_way[key]) for key in _HASHES if key in by_the_way), None),
        named=next((path for key in _PATHS if isinstance(path := by_the_way.get(key), str)), None),
        picked={name: each.tested for name, each in found.items() if each.tested},
        curves=curves,
        tested=tested,
        resumed=next((each for each in (*(log.resumption for log in logs), *resumed) if each), None),
        uncurved={name: _why_curve_is_missing(job, name, logs) for name in metrics if name not in curves}
        if values
        else {},
        logged=next((log.logged() for log in logs if log.curves()), None),
        more=_other_result_texts(by_the_way, [each.value for each in found.values()]),
    )


def _read_results_and_curves(
    job: Job, places: ResultPlaces, logs: Sequence[CurveLog], resumed: list[Resumption]
) -> dict[str, FoundResult]:
    """Every jsonl file in one pass, for its results and its curves; what can't be read has no value.

    `resumed` takes what is told of results that several attempts wrote.
    """
    asked: dict[str, list[ResultValues]] = {}
    others = {each.name: each for each in job.results}
    waiting: dict[str, ResultValues] = {}
    for result in job.results:
        path = places.results.get(result.name)
        with contextlib.suppress(NoResult, OSError):
            if path is not None:
                values = ResultValues(
                    result, path, others, places.pieces.get(result.name, ()), step_key_of_result(job, result)
                )
                if result.kind == "jsonl" and not values.pieces:
                    asked.setdefault(path, []).append(values)
                else:
                    values.read(path)
                waiting[result.name] = values
    swept = [log for log in logs if log.kind == "jsonl" and not log.joined]
    for path in dict.fromkeys([*asked, *(log.path for log in swept)]):
        mine = [log for log in swept if log.path == path]
        try:
            sweep_log_rows(path, "jsonl", [*asked.get(path, ()), *mine])
        except OSError:
            waiting = {name: each for name, each in waiting.items() if each not in asked.get(path, ())}
            for log in mine:
                log.forget()
        for log in mine:
            log.taken = True
    read_missing_curves(logs)
    found: dict[str, FoundResult] = {}
    for name, values in waiting.items():
        with contextlib.suppress(NoResult):
            found[name] = values.found()
            resumed += [values.resumption] if values.resumption else []
    return found


def _why_curve_is_missing(job: Job, metric: str, logs: Sequence[CurveLog]) -> NoCurveReason:
    declared = next((each for each in job.results if each.name == metric and each.kind in CURVE_KINDS), None)
    if declared:
        return NoCurveReason("key", declared.path, declared.key or "")
    return NoCurveReason("name" if any(not log.declared for log in logs) else "log")


def _was_rewritten_after_end(path: str, window: RunWindow | None) -> bool:
    try:
        return window is not None and os.stat(path).st_mtime > window.ended + MOMENT_S
    except OSError:
        return False


def _checkpoint_origin(job: Job, places: ResultPlaces, hash_: HashOfFile, end: float) -> CheckpointOrigin | None:
    if places.checkpoint is None:
        return None
    try:
        saved = checkpoint_saved_at(places.checkpoint)
    except OSError:
        return CheckpointOrigin(places.checkpoint, None)
    asked = job.proof.checkpoint.saved_after if job.proof.checkpoint else 0.0
    window, wanted = _training_window(places, asked), asked or end
    share = window.share(saved, wanted) if window else None
    late = share.late if share else None
    early = late is not None and not late and window is not None and window.ended - saved > COARSE_S
    held = step_of_checkpoint(places.checkpoint)
    by_steps = held.is_late(job.steps, wanted) if held else None
    return CheckpointOrigin(
        places.checkpoint,
        hash_(places.checkpoint),
        saved,
        share.value if share else None,
        early if by_steps is None else not by_steps,
        held.value if held and held.unit == "step" else None,
        held.share(job.steps) if held else None,
    )


def _training_window(places: ResultPlaces, asked: float) -> RunWindow | None:
    """Where nobody said how late is late enough, the last step counts and not what the program did after it."""
    window = places.window
    if window is None or asked or places.last_step is None or not window.started < places.last_step < window.ended:
        return window
    left = window.ended - places.last_step
    return RunWindow(window.started, places.last_step, max(1e-3, window.duration_s - left))


def _first_result_object(paths: Any) -> Mapping[str, Any]:
    """The top of the first result file that is a JSON object."""
    for path in paths:
        try:
            if path.endswith(".json") and os.stat(path).st_size <= _LARGEST:
                found = json.loads(read_regular_file(path, _LARGEST))
                if isinstance(found, dict):
                    return found
        except (OSError, ValueError, RecursionError):
            continue
    return {}


def _other_result_texts(found: Mapping[str, Any], values: Sequence[float]) -> dict[str, str]:
    """What a result file says beside its results, long texts as their hash."""
    told = {key: json.dumps(value, sort_keys=True) for key, value in found.items() if value not in values}
    return {key: text if len(text) < 100 else hashlib.sha256(text.encode()).hexdigest() for key, text in told.items()}


def _count_averaged_episodes(job: Job, found: Mapping[str, FoundResult]) -> int | None:
    """Of a result that is the mean over the rows of a log: a row for each episode, where its key or its job says so."""
    rows = [
        found[each.name].rows
        for each in job.results
        if each.name in found
        and each.kind in LOG_KINDS
        and each.reduce == "mean"
        and (job.needs or "episode" in (each.key or "").lower())
    ]
    return min(rows, default=None)


def _declared_episodes(found: Mapping[str, Any]) -> int | None:
    value = next((found[key] for key in _EPISODES if key in found), None)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
