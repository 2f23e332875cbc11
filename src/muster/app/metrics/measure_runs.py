"""`muster metrics`: finds the folder, file or cell that was asked for, measures what its runs logged, and returns
rows and JSON, one row per key.
"""

from __future__ import annotations

import difflib
import os
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.campaign_status import CellStatus, Status
from muster.app.campaign.start_controller import Tell, observe_and_revive
from muster.app.campaign.verbs.choose_cells import declared_names, resolve_cells, withdrawn_names
from muster.app.metrics.cell_history import measure_run, read_cell_history
from muster.files.bounded_walk import glob_paths
from muster.files.campaign_ownership import NOT_YOURS_CODE, find_readable_root
from muster.model.errors import MusterError, UsageError
from muster.readers.discovery.folder_walk import LOGS_LOOKED_FOR
from muster.readers.records.logged_runs import (
    DiscoveredRuns,
    LoggedRun,
    MeasuredRun,
    MetricFeed,
    RunMeter,
    discover_runs,
)
from muster.readers.records.metric_reader import MetricSource, RecordedRunEnd
from muster.readers.records.step_counter import NO_COUNTER
from muster.rules.metric_summary import Summary, better_direction_of_key, metric_summary_as_json
from muster.text.describe_run import describe_resumed_log
from muster.text.phrases import phrase
from muster.text.sentences import join_few_names

ROW_NUMBERS = NO_COUNTER  # the name of steps that are none
METRIC_COLUMNS = ("key", "first", "last", "best", "delta", "%", "mean", "count", "nan", "last step")
STILL_WRITTEN_S = 60.0  # a file that was written to since so long ago may still get its first value
WANDB_CLOCK_KEYS = frozenset({"_step", "_runtime", "_timestamp"})  # of W&B itself: not what the run logged


@dataclass(frozen=True, slots=True)
class RunMetrics:
    """One run."""

    name: str  # as it was asked for, or its folder
    sources: tuple[
        tuple[MetricSource, str], ...
    ]  # and why each was chosen; none: nothing was found, and a note says so
    keys: Mapping[str, Summary]
    ended: RecordedRunEnd | None = None
    written: float | None = None  # wall time of the last value
    notes: tuple[str, ...] = ()  # what was left aside, or can't be read
    others: tuple[str, ...] = ()  # keys that it logged, too, and that nobody asked for


def metrics_as_json(block: RunMetrics, now: float) -> dict[str, Any]:
    sources = [
        {"path": said.path, "format": said.format, "step": said.step or None, "why": why, "skipped": list(said.skipped)}
        for said, why in block.sources
    ]
    return {
        "muster": 1,
        "run": block.name,
        "sources": sources,
        "keys": {key: metric_summary_as_json(summary) for key, summary in sorted(block.keys.items())},
        "age_s": value_age_s(block, now),
        "ended": {"code": block.ended.code, "runtime_s": block.ended.runtime_s} if block.ended else None,
        "notes": list(block.notes),
    }


def value_age_s(block: RunMetrics, now: float) -> float | None:
    """Of the last value; clocks of two machines may differ, and nothing is younger than now."""
    return None if block.written is None else round(max(0.0, now - block.written), 1)


def metric_table_rows(block: RunMetrics, *, clocks: bool = False) -> list[tuple[str, ...]]:
    """For a table, without its header. `clocks`: W&B's own counters as well."""
    shown = [key for key in sorted(block.keys) if clocks or key not in WANDB_CLOCK_KEYS]
    return [_metric_table_row(block.keys[key]) for key in shown]


def _metric_table_row(summary: Summary) -> tuple[str, ...]:
    return (
        summary.key,
        metric_value_text(summary.first),
        metric_value_text(summary.last),
        _best_value_text(summary),
        metric_value_text(summary.delta, signed=True),
        "" if summary.pct is None else f"{summary.pct:+.3g}",
        metric_value_text(summary.mean),
        str(summary.count),
        str(summary.nan or ""),
        metric_value_text(summary.last_step),
    )


def _best_value_text(summary: Summary) -> str:
    """With how it is known; where nothing tells what is better, both ends."""
    better = better_direction_of_key(summary.key)
    if better is not None:
        return f"{metric_value_text(summary.best())} {'max' if better == 'higher' else 'min'}"
    return "" if summary.min is None else f"{metric_value_text(summary.min)} .. {metric_value_text(summary.max)}"


def metric_value_text(value: float | None, *, signed: bool = False) -> str:
    if value is None:
        return ""
    if value == int(value) if abs(value) < 1e15 else False:
        return f"{int(value):+d}" if signed else str(int(value))
    return f"{value:+.5g}" if signed else f"{value:.5g}"


MOST_KEYS_NAMED = 12  # keys, where none fits


@dataclass(frozen=True, slots=True)
class WantedKeys:
    """The keys that were asked for; no glob asks for all."""

    globs: tuple[str, ...] = ()

    def __call__(self, key: str) -> bool:
        return not self.globs or any(fnmatchcase(key, each) for each in self.globs)

    def unmet(self, keys: Sequence[str]) -> list[str]:
        """Globs that no key fits."""
        return [each for each in self.globs if not any(fnmatchcase(key, each) for key in keys)]


MetricsTarget = tuple[str, Callable[[], list[RunMetrics]]]  # its name, and how it is read


def measure_all_targets(asked: Iterable[MetricsTarget], wanted: WantedKeys) -> list[RunMetrics]:
    """The runs of all that was asked for; where one has nothing that is noted. Raises where all have nothing."""
    blocks: list[RunMetrics] = []
    missing: list[MusterError] = []
    for name, read in asked:
        try:
            blocks += read()
        except UsageError:
            raise
        except MusterError as error:
            missing.append(error)
            blocks.append(RunMetrics(name, (), {}, notes=(error.message,)))
    if missing and len(missing) == len(blocks):
        first, more = missing[0], len(missing) - 1
        told = f"; nor do {more} others hold any" if more > 1 else "; nor does the other hold any" if more else ""
        raise MusterError(f"{first.message}{told}", where=first.where, hint=first.hint)
    _refuse_unknown_keys(blocks, wanted)
    return blocks


def _refuse_unknown_keys(blocks: Sequence[RunMetrics], wanted: WantedKeys) -> None:
    """A key that no run has is a slip of the pen, where some run has others."""
    others = list(dict.fromkeys(key for block in blocks for key in block.others))
    if not others or any(block.keys for block in blocks):
        return
    known = sorted(set(others) - WANDB_CLOCK_KEYS) or others
    near = difflib.get_close_matches(wanted.globs[0], known, 1)
    meant = f"did you mean {near[0]}? " if near else ""
    raise UsageError(
        f"no key fits {_key_flags(wanted.globs)}", hint=f"{meant}logged are: {join_few_names(known, MOST_KEYS_NAMED)}"
    )


def _key_flags(globs: Sequence[str]) -> str:
    return " ".join(f"--key {each}" for each in globs)


# -- folders


def paths_matching_target(target: str, base: Path) -> list[str]:
    """What exists by that name; a glob may fit many, and of folders within each other the outer ones are meant."""
    path = base / target
    if path.exists():
        return [str(path)]
    if not any(letter in target for letter in "*?["):
        return []
    found = sorted(glob_paths(str(path)), key=lambda each: (each.count(os.sep), each))
    outer: list[str] = []
    for each in found:
        if not any(each.startswith(known.rstrip(os.sep) + os.sep) for known in outer):
            outer.append(each.rstrip(os.sep))
    return sorted(outer)


def find_metrics_targets(target: str, folder: Path, keys: WantedKeys, tell: Tell) -> list[MetricsTarget]:
    """A folder, or a cell; what exists as a path is a path."""
    if paths := paths_matching_target(target, folder):
        return [target_of_path(path, folder, keys) for path in paths]
    missing = UsageError(f"there is no {target}", hint="name a folder, or a cell where a campaign is")
    desk = open_campaign_instead_of_path(folder, missing)
    status = observe_and_revive(desk, tell)
    names = resolve_cells([target], declared_names(status.state), withdrawn_names(status.state))
    return [target_of_cell(desk, cell, keys) for cell in select_named_cells(status, names)]


def open_campaign_instead_of_path(folder: Path, missing: UsageError) -> CampaignHandle:
    """For a name that is no path. `missing` is raised where there is no campaign that could have such a cell."""
    try:
        find_readable_root(folder)
    except UsageError as error:
        if error.code == NOT_YOURS_CODE:
            raise
        raise missing from None
    return CampaignHandle.open(folder)


def target_of_path(path: str, base: Path, keys: WantedKeys) -> MetricsTarget:
    return path_relative_to(path, base), lambda: measure_runs_in_path(path, base, keys)


def measure_runs_in_path(path: str, base: Path, keys: WantedKeys) -> list[RunMetrics]:
    """A block for each run in it. Raises where there is none."""
    found = discover_runs(path)
    if not found.runs:
        raise MusterError(
            f"nothing that a run logged is in {path_relative_to(path, base)}",
            where=path,
            hint=f"looked for {_describe_search(found)}",
        )
    notes = (*filter(None, [found.cut]), *found.troubles)
    blocks = [
        _metrics_of_run(path_relative_to(run.folder, base), run, measure_run(run, keys), keys, notes)
        for run in found.runs
    ]
    unfit = [why for block in blocks if (why := _why_nothing_fits(block, time.time()))]
    if len(unfit) == len(blocks):
        raise MusterError(f"no value is in {path_relative_to(path, base)}", where=path, hint="; ".join(unfit[:3]))
    return blocks


def _why_nothing_fits(block: RunMetrics, now: float) -> str:
    """Of a run that is not written any more and holds no value; empty: it does, or may still get some."""
    if block.keys or block.others or not block.sources:
        return ""
    if not all(said.tried and (said.written or now) < now - STILL_WRITTEN_S for said, _ in block.sources):
        return ""
    return "; ".join(f"nothing in {Path(said.path).name} is one of: {said.tried}" for said, _ in block.sources)


def _describe_search(found: DiscoveredRuns) -> str:
    told = "; ".join(filter(None, (found.cut, *found.troubles[:3])))
    return f"{LOGS_LOOKED_FOR}; {told}" if told else LOGS_LOOKED_FOR


def path_relative_to(path: str, base: Path) -> str:
    short = os.path.relpath(path, base)
    return path if short.startswith("..") else short


def _metrics_of_run(
    name: str, run: LoggedRun, found: MeasuredRun, keys: WantedKeys, notes: tuple[str, ...] = ()
) -> RunMetrics:
    whys = [source.why for source in run.sources]
    return metrics_of_measured(name, found, whys, keys, (*notes, *run.passed))


def metrics_of_measured(
    name: str, found: MeasuredRun, whys: Sequence[str], keys: WantedKeys, notes: tuple[str, ...]
) -> RunMetrics:
    sources = tuple(zip(found.sources, whys, strict=True))
    unmet = keys.unmet([*found.keys, *found.others]) if found.keys or found.others else []
    told = [f"none of its keys fits {_key_flags(unmet)}"] if unmet else []
    notes = (*notes, *found.troubles, *told)
    return RunMetrics(name, sources, found.keys, found.ended, found.written, notes, found.others)


# -- cells


def target_of_cell(desk: CampaignHandle, cell: CellStatus, keys: WantedKeys) -> MetricsTarget:
    return cell.record.cell.id, lambda: [measure_run_of_cell(desk, cell, keys)]


def measure_run_of_cell(desk: CampaignHandle, cell: CellStatus, keys: WantedKeys) -> RunMetrics:
    """The run of the attempt that counts: its output, or what it printed. Raises where there is nothing."""
    name = cell.record.cell.id
    found = read_cell_history(desk.state, cell, keys)
    if found is None:
        raise MusterError(f"{name} has not run yet", hint=f"`muster why {shlex.quote(name)}` says what it waits for")
    if found.run is None or found.measured is None:
        hint = f"looked for {'; '.join([LOGS_LOOKED_FOR, *found.told[:4]])}"
        raise MusterError(f"{name} has logged nothing yet", where=found.output, hint=hint)
    resumed = (describe_resumed_log(found.resumed),) if found.resumed else ()
    return _metrics_of_run(name, found.run, found.measured, keys, (*resumed, *found.told))


def select_named_cells(status: Status, names: Sequence[str]) -> Iterator[CellStatus]:
    known = {cell.record.cell.id: cell for cell in status.cells}
    for name in names:
        if name not in known:
            raise UsageError(f"{name} is no longer declared", hint="name the folder it wrote to")
        yield known[name]


# -- a W&B server


def measure_online_runs(path: str, keys: WantedKeys) -> list[RunMetrics]:
    from muster.readers.records.wandb_runs import MOST_ONLINE_RUNS, wandb_online_runs

    parts = path.strip("/").split("/")
    if len(parts) not in (2, 3) or not all(parts):
        raise UsageError(f"--wandb-online {path}: a project is named ENTITY/PROJECT", hint="for example: me/act-ot")
    blocks = []
    for name, reader, more in wandb_online_runs("/".join(parts)):
        meter = RunMeter([MetricFeed(reader)], keys)
        meter.look()
        notes = (f"only the first {phrase('count.run', n=MOST_ONLINE_RUNS)} of {path} were asked for",) if more else ()
        blocks.append(metrics_of_measured(name, meter.measured(), ["asked for on the server"], keys, notes))
    if not blocks:
        raise MusterError(f"there is no run in {path}")
    return blocks
