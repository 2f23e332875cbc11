"""Runs on a W&B server, through its own package: an optional extra, imported only when it is asked for."""

from __future__ import annotations

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
_CODES = {"finished": 0, "crashed": 1, "failed": 1, "killed": 1}


def online_runs(path: str) -> Iterator[tuple[str, HeldReader]]:
    """(name, reader) of each run of ENTITY/PROJECT, or of the one run ENTITY/PROJECT/ID."""
    api = _api()
    try:
        found = [api.run(path)] if path.count("/") == 2 else _some(api.runs(path))
        for run in found:
            yield f"{'/'.join(path.split('/')[:2])}/{run.id}", _reader(run)
    except MusterError:
        raise
    except Exception as error:  # the package has its own errors for each way that a request may fail
        raise MusterError(
            f"W&B does not give {path}: {error}", hint="is the name right, and are you logged in? `wandb login`"
        ) from None


def _api() -> Any:
    os.environ.setdefault("WANDB_SILENT", "true")
    try:
        import wandb
    except ImportError:
        raise UsageError(
            "--wandb-online needs the package wandb, which is not installed",
            hint="pip install 'muster-ml[wandb]'; files on this machine are read without it: `muster metrics DIR`",
        ) from None
    return wandb.Api()


def _some(runs: Iterable[Any]) -> Iterator[Any]:
    for count, run in enumerate(runs):
        if count >= MOST_RUNS:
            return
        yield run


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


def _batches(rows: Iterable[Mapping[str, Any]]) -> Iterator[Gathered]:
    gathered = Gathered()
    for number, row in enumerate(rows):
        step = row.get("_step")
        step = float(step) if isinstance(step, int | float) else float(number)
        for key, value in leaves(dict(row)):
            gathered.add(key, step, value)
        gathered.count += 1
        if gathered.count >= BATCH:
            yield gathered
            gathered = Gathered()
    if gathered.count:
        yield gathered
