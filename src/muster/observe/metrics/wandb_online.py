"""Runs on a W&B server, through its own package: an optional extra, imported only when it is asked for."""

from __future__ import annotations

import math
import os
from array import array
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from muster.domain.errors import MusterError, UsageError
from muster.observe.metrics.chain import Gathered
from muster.observe.metrics.numbers import leaves
from muster.ports.metrics import Ended, HeldReader, Rows

MOST_RUNS = 200
BATCH = 5000
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_CODES = {"finished": 0, "crashed": 1, "failed": 1, "killed": 1}


def online_runs(path: str) -> Iterator[tuple[str, HeldReader, bool]]:
    """(name, reader, whether more follow that are not asked for) of each run of ENTITY/PROJECT, or of the one run
    ENTITY/PROJECT/ID.
    """
    wandb = _package()
    try:
        api = wandb.Api()
        found = [(api.run(path), False)] if path.count("/") == 2 else _some(api.runs(path))
        for run, more in found:
            yield f"{'/'.join(path.split('/')[:2])}/{run.id}", _reader(run), more
    except Exception as error:  # the package has its own errors for each way that a request may fail
        raise MusterError(
            f"W&B does not give {path}: {error or type(error).__name__}",
            where=path,
            hint="is the name right, and are you logged in? `wandb login`, or set WANDB_API_KEY",
        ) from None


def _package() -> Any:
    os.environ.setdefault("WANDB_SILENT", "true")
    try:
        import wandb
    except ImportError:
        raise UsageError(
            "--wandb-online needs the package wandb, which is not installed",
            hint="pip install 'wandb>=0.19,<0.32' where Muster is; "
            "files on this machine are read without it: `muster metrics DIR`",
        ) from None
    return wandb


def _some(runs: Iterable[Any]) -> Iterator[tuple[Any, bool]]:
    """The last one that is asked for knows whether there are more."""
    waiting = iter(runs)
    run = next(waiting, None)
    for count in range(1, MOST_RUNS + 1):
        if run is None:
            return
        following = next(waiting, None)
        yield run, count == MOST_RUNS and following is not None
        run = following


def _reader(run: Any) -> HeldReader:
    batches, wall = [], None
    for gathered in _batches(run.scan_history()):
        batches.append(Rows(gathered.columns, gathered.count))
        times = gathered.columns.get("_timestamp", (array("d"), array("d")))[1]
        wall = times[-1] if times else wall
    code = _CODES.get(str(getattr(run, "state", "")))
    runtime = dict(getattr(run, "summary", None) or {}).get("_runtime")
    ended = None if code is None else Ended(code, float(runtime) if isinstance(runtime, int | float) else None)
    return HeldReader(str(getattr(run, "url", run.id)), "wandb-online", batches, ended, wall)


def _told(value: Any) -> Any:
    """The server sends what is no finite number as a text."""
    if isinstance(value, Mapping):
        return {key: _told(inner) for key, inner in value.items()}
    return _NOT_FINITE.get(value, value) if isinstance(value, str) else value


def _batches(rows: Iterable[Mapping[str, Any]]) -> Iterator[Gathered]:
    gathered = Gathered()
    for number, row in enumerate(rows):
        step = row.get("_step")
        step = float(step) if isinstance(step, int | float) else float(number)
        for key, value in leaves(_told(row)):
            gathered.add(key, step, value)
        gathered.count += 1
        if gathered.count >= BATCH:
            yield gathered
            gathered = Gathered()
    if gathered.count:
        yield gathered
