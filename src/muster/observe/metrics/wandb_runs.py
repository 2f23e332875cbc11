"""Which files hold a W&B run: the `.wandb` of its folder, of all its folders where it was resumed, or the old ones."""

# Paths are texts here, as in the rest of this room.
# ruff: noqa: PTH118, PTH119, PTH120

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable

from muster.observe.metrics.around import Around, Source
from muster.observe.metrics.chain import Chain
from muster.observe.metrics.history_jsonl import JsonlPart
from muster.observe.metrics.names import WANDB_HISTORY as HISTORY
from muster.observe.metrics.names import WANDB_RUN as FOLDER
from muster.observe.metrics.names import WANDB_SUMMARY as SUMMARY
from muster.observe.metrics.wandb import WandbPart
from muster.observe.metrics.wandb_frames import HEADER_BYTES
from muster.observe.metrics.whole_json import WholeJson, only_row
from muster.ports.metrics import MetricReader


def wandb_sources(around: Around, root: str, passed: dict[str, list[str]]) -> list[Source]:
    folders: dict[str, list[str]] = defaultdict(list)  # run folder -> its files
    for path in around.files:
        name, folder = os.path.basename(path), os.path.dirname(path)
        if name.endswith(".wandb") or name in (HISTORY, SUMMARY):
            folders[os.path.dirname(folder) if os.path.basename(folder) == "files" else folder].append(path)
    runs: dict[tuple[str, str], list[str]] = defaultdict(list)  # where they lie, id -> run folders
    for folder in folders:
        found = FOLDER.match(os.path.basename(folder))
        runs[os.path.dirname(folder), found["id"] if found else folder].append(folder)
    latest = {os.path.realpath(path) for path in around.links.values()}
    sources = []
    for (home, _), mine in sorted(runs.items()):
        alone = sum(each == home for each, _ in runs) == 1
        newest = alone or latest & {os.path.realpath(each) for each in mine}
        owner = _within(root, _owner(home, root) if newest else max(mine, key=_began))
        sources.append(_source(sorted(mine, key=_began), folders, owner, passed))
    return sources


def own_folders(around: Around) -> set[str]:
    """The folders that W&B made for its runs: their name says so, and there are records in them."""
    folders = {os.path.dirname(path) for path in around.files if path.endswith(".wandb")}
    return {folder for folder in folders if FOLDER.match(os.path.basename(os.path.abspath(folder)))}  # noqa: PTH100


def _within(root: str, owner: str) -> str:
    """Whoever asks for the folder of one run by its name is told of nothing outside of it."""
    return owner if owner == root or owner.startswith(root.rstrip(os.sep) + os.sep) else root


def _began(folder: str) -> str:
    """The time in its name: an online and an offline folder of one run are in order, too."""
    found = re.search(r"\d{8}_\d{6}", os.path.basename(folder))
    return found[0] if found else folder


def _owner(home: str, root: str) -> str:
    """`X/wandb/run-...` belongs to the run in `X`."""
    return os.path.dirname(home) if os.path.basename(home) == "wandb" and home != root else home


def _source(mine: list[str], folders: dict[str, list[str]], owner: str, passed: dict[str, list[str]]) -> Source:
    files = [path for folder in mine for path in folders[folder]]
    records = [path for path in files if path.endswith(".wandb")]
    old = [path for name in (HISTORY, SUMMARY) for path in files if os.path.basename(path) == name]
    if records and (any(map(_holds_something, records)) or not old):
        if old:
            passed[owner].append(f"{', '.join(map(os.path.basename, old))}: the .wandb file holds all of it")
        resumed = f"; it was resumed {len(records) - 1} x" if len(records) > 1 else ""
        return Source(records[-1], "wandb", owner, _records(records[-1], mine), f"the run's own records{resumed}")
    note = "its .wandb file holds nothing yet" if records else "there is no .wandb file"
    return Source(old[0], "wandb", owner, _old(old[0], note), f"{note}: an old file is read instead")


def _records(path: str, folders: list[str]) -> Callable[[], MetricReader]:
    return lambda: Chain(path, "wandb", WandbPart, lambda: [each for folder in folders for each in records_in(folder)])


def records_in(folder: str) -> list[str]:
    try:
        return sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".wandb"))  # noqa: PTH208
    except OSError:
        return []


def _old(path: str, note: str) -> Callable[[], MetricReader]:
    if os.path.basename(path) == SUMMARY:
        told = f"{note}: only the last values are known, from {SUMMARY}"
        return lambda: WholeJson(path, "wandb-summary", only_row, told)

    def make() -> Chain:
        chain = Chain.of_file(path, "wandb-history", JsonlPart)
        chain.note = f"{note}: read from {HISTORY}"
        return chain

    return make


def _holds_something(path: str) -> bool:
    try:
        return os.stat(path).st_size > HEADER_BYTES  # noqa: PTH116
    except OSError:
        return False
