"""W&B runs: which files hold one (the `.wandb` of its folder, of all its folders where it was resumed, or the old
ones), where the server shows it, and, with the extra `wandb`, its history from the server.
"""

# ruff: noqa: PTH118, PTH119, PTH120
# Paths are texts here, as in the rest of this room.

from __future__ import annotations

import math
import os
import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from muster.files.safe_open import open_regular_file
from muster.model.errors import MusterError, UsageError
from muster.readers.discovery.folder_walk import (
    WANDB_HISTORY,
    WANDB_RUN,
    WANDB_SUMMARY,
    LogSource,
)
from muster.readers.records.history_parts import HistoryChain
from muster.readers.records.json_history import JsonlHistory, WholeJsonHistory, row_of_last_values
from muster.readers.records.metric_reader import InMemoryReader, MetricReader, MetricRows, RecordedRunEnd
from muster.readers.records.record_frames import WANDB_HEADER_BYTES
from muster.readers.records.record_kinds import LogSearch, RecordKind
from muster.readers.records.row_steps import numeric_leaves
from muster.readers.records.step_counter import GatheredColumns
from muster.readers.records.wandb_records import WandbHistory

MOST_ONLINE_RUNS = 200
ONLINE_BATCH_ROWS = 5000
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_EXIT_CODES_OF_STATES = {"finished": 0, "crashed": 1, "failed": 1, "killed": 1}


def wandb_online_runs(path: str) -> Iterator[tuple[str, InMemoryReader, bool]]:
    """(name, reader, whether more follow that are not asked for) of each run of ENTITY/PROJECT, or of the one run
    ENTITY/PROJECT/ID.
    """
    wandb = _import_wandb()
    try:
        api = wandb.Api()
        found = [(api.run(path), False)] if path.count("/") == 2 else _first_online_runs(api.runs(path))
        for run, more in found:
            yield f"{'/'.join(path.split('/')[:2])}/{run.id}", _reader_of_online_run(run), more
    except Exception as error:  # the package has its own errors for each way that a request may fail
        raise MusterError(
            f"W&B does not give {path}: {error or type(error).__name__}",
            where=path,
            hint="is the name right, and are you logged in? `wandb login`, or set WANDB_API_KEY",
        ) from None


def _import_wandb() -> Any:
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


def _first_online_runs(runs: Iterable[Any]) -> Iterator[tuple[Any, bool]]:
    """The last one that is asked for knows whether there are more."""
    waiting = iter(runs)
    run = next(waiting, None)
    for count in range(1, MOST_ONLINE_RUNS + 1):
        if run is None:
            return
        following = next(waiting, None)
        yield run, count == MOST_ONLINE_RUNS and following is not None
        run = following


def _reader_of_online_run(run: Any) -> InMemoryReader:
    batches, wall = [], None
    for gathered in _batches_of_history(run.scan_history()):
        batches.append(MetricRows(gathered.columns, gathered.count))
        times = gathered.columns.get("_timestamp", (array("d"), array("d")))[1]
        wall = times[-1] if times else wall
    code = _EXIT_CODES_OF_STATES.get(str(getattr(run, "state", "")))
    runtime = dict(getattr(run, "summary", None) or {}).get("_runtime")
    ended = None if code is None else RecordedRunEnd(code, float(runtime) if isinstance(runtime, int | float) else None)
    return InMemoryReader(str(getattr(run, "url", run.id)), "wandb-online", batches, ended, wall, step="_step")


def _finite_or_named(value: Any) -> Any:
    """The server sends what is no finite number as a text."""
    if isinstance(value, Mapping):
        return {key: _finite_or_named(inner) for key, inner in value.items()}
    return _NOT_FINITE.get(value, value) if isinstance(value, str) else value


def _batches_of_history(rows: Iterable[Mapping[str, Any]]) -> Iterator[GatheredColumns]:
    gathered = GatheredColumns()
    for number, row in enumerate(rows):
        step = row.get("_step")
        step = float(step) if isinstance(step, int | float) else float(number)
        for key, value in numeric_leaves(_finite_or_named(row)):
            gathered.add(key, step, value)
        gathered.count += 1
        if gathered.count >= ONLINE_BATCH_ROWS:
            yield gathered
            gathered = GatheredColumns()
    if gathered.count:
        yield gathered


def _find_wandb_runs(search: LogSearch) -> list[LogSource]:
    around, root, passed = search.around, search.root, search.passed
    folders: dict[str, list[str]] = defaultdict(list)  # run folder -> its files
    for path in around.files:
        name, folder = os.path.basename(path), os.path.dirname(path)
        if name.endswith(".wandb") or name in (WANDB_HISTORY, WANDB_SUMMARY):
            folders[os.path.dirname(folder) if os.path.basename(folder) == "files" else folder].append(path)
    runs: dict[tuple[str, str], list[str]] = defaultdict(list)  # where they lie, id -> run folders
    for folder in folders:
        found = WANDB_RUN.match(os.path.basename(folder))
        runs[os.path.dirname(folder), found["id"] if found else folder].append(folder)
    latest = {os.path.realpath(path) for path in around.links.values()}
    sources = []
    for (home, _), mine in sorted(runs.items()):
        alone = sum(each == home for each, _ in runs) == 1
        newest = alone or latest & {os.path.realpath(each) for each in mine}
        owner = _owner_within_root(
            root, _owner_of_wandb_home(home, root) if newest else max(mine, key=_time_of_wandb_folder)
        )
        sources.append(_wandb_source(sorted(mine, key=_time_of_wandb_folder), folders, owner, passed))
    return sources


def _owner_within_root(root: str, owner: str) -> str:
    """Whoever asks for the folder of one run by its name is told of nothing outside of it."""
    return owner if owner == root or owner.startswith(root.rstrip(os.sep) + os.sep) else root


def _time_of_wandb_folder(folder: str) -> str:
    """The time in its name: an online and an offline folder of one run are in order, too."""
    found = re.search(r"\d{8}_\d{6}", os.path.basename(folder))
    return found[0] if found else folder


def _owner_of_wandb_home(home: str, root: str) -> str:
    """`X/wandb/run-...` belongs to the run in `X`."""
    return os.path.dirname(home) if os.path.basename(home) == "wandb" and home != root else home


def _wandb_source(
    mine: list[str], folders: dict[str, list[str]], owner: str, passed: dict[str, list[str]]
) -> LogSource:
    files = [path for folder in mine for path in folders[folder]]
    records = [path for path in files if path.endswith(".wandb")]
    old = [path for name in (WANDB_HISTORY, WANDB_SUMMARY) for path in files if os.path.basename(path) == name]
    if records and (any(map(_holds_records, records)) or not old):
        if old:
            passed[owner].append(f"{', '.join(map(os.path.basename, old))}: the .wandb file holds all of it")
        resumed = f"; it was resumed {len(records) - 1} x" if len(records) > 1 else ""
        return LogSource(
            records[-1], "wandb", owner, _make_record_reader(records[-1], mine), f"the run's own records{resumed}"
        )
    note = "its .wandb file holds nothing yet" if records else "there is no .wandb file"
    return LogSource(old[0], "wandb", owner, _make_old_reader(old[0], note), f"{note}: an old file is read instead")


def _make_record_reader(path: str, folders: list[str]) -> Callable[[], MetricReader]:
    return lambda: HistoryChain(
        path, "wandb", WandbHistory, lambda: [each for folder in folders for each in wandb_records_in(folder)]
    )


def wandb_records_in(folder: str) -> list[str]:
    try:
        return sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".wandb"))  # noqa: PTH208
    except OSError:
        return []


def _make_old_reader(path: str, note: str) -> Callable[[], MetricReader]:
    if os.path.basename(path) == WANDB_SUMMARY:
        told = f"{note}: only the last values are known, from {WANDB_SUMMARY}"
        return lambda: WholeJsonHistory(path, "wandb-summary", row_of_last_values, told)

    def make() -> HistoryChain:
        chain = HistoryChain.of_file(path, "wandb-history", JsonlHistory)
        chain.note = f"{note}: read from {WANDB_HISTORY}"
        return chain

    return make


def _holds_records(path: str) -> bool:
    try:
        return os.stat(path).st_size > WANDB_HEADER_BYTES  # noqa: PTH116
    except OSError:
        return False


URL_SEARCH_BYTES = 64 << 10  # bytes of a log that are looked at, from either end
_ADDRESS = re.compile(rb"https?://[^\s<>\"'`|()\[\]\x00-\x20\x7f]+/runs/[A-Za-z0-9_.~%-]+")
URL_LOG_FILES = ("stderr.log", "stdout.log")


def logged_wandb_url(folder: str) -> str:
    """The last one that was printed; empty where none was, as by a run that is offline."""
    for name in URL_LOG_FILES:
        found = _wandb_url_in_file(f"{folder}/{name}")
        if found:
            return found
    return ""


def _wandb_url_in_file(path: str) -> str:
    try:
        with open_regular_file(path) as file:
            head = file.read(URL_SEARCH_BYTES)
            size = os.fstat(file.fileno()).st_size
            file.seek(max(len(head), size - URL_SEARCH_BYTES))
            text = head + b"\n" + file.read(URL_SEARCH_BYTES)
    except OSError:
        return ""
    return wandb_url_in_text(text)


def wandb_url_in_text(text: bytes) -> str:
    """Of a server of one's own, too: W&B says `View run ... at: ADDRESS`."""
    found = ""
    for line in text.splitlines():
        if b"wandb" in line or b"View run" in line:
            for each in _ADDRESS.findall(line):
                found = each.decode("utf-8", "replace").rstrip(".")
    return found


WANDB = RecordKind(
    "wandb",
    lambda path: HistoryChain.of_file(path, "wandb", WandbHistory),
    lambda file: "the run's own records" if file.ending == ".wandb" else "",
    _find_wandb_runs,
)
