"""How each cell's numbers came about, for the red flags: which checkpoint (the best one, or the last), which
settings, which code.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from muster.model.attempt import CellRecord
from muster.model.campaign import Campaign, DeclaredResult
from muster.model.cell import map_needed_cells
from muster.model.provenance import CheckpointOrigin, MetricRange, ResultOrigins
from muster.readers.discovery.axis_values import axis_values_in_configs, config_leaves, read_run_configs
from muster.stats.red_flags import CellMaking

_BEST_OR_LAST = re.compile(r"(?<![a-z])(?:(best)|last|latest|final)(?![a-z])", re.IGNORECASE)
_SERIES_KINDS = ("jsonl", "csv")


def best_or_last_in_names(names: Iterable[str]) -> str | None:
    """Best or last, as paths or keys say it; None: they say nothing, or both."""
    words = {"best" if found[1] else "last" for name in names for found in _BEST_OR_LAST.finditer(name)}
    return words.pop() if len(words) == 1 else None


def best_evaluation_step(campaign: Campaign, job: str, mine: ResultOrigins) -> tuple[float | None, tuple[float, ...]]:
    """The best of its evaluations, and the first and the last of them, where the best is what is reported.

    Known exactly where a result is taken at the best row of a file; else by what the training logged of the metric that
    the declaration chooses the checkpoint by.
    """
    better = campaign.decision.metrics if campaign.decision else {}
    for result in campaign.job(job).results:
        tested = mine.picked.get(result.name)
        if tested and _is_taken_at_best(result, better):
            return _best_of_series(tested, lower=_is_lower_better_by_reduction(result))
    by = campaign.decision.best_by if campaign.decision else ""
    if by in mine.tested and by in better:
        return _best_of_series(mine.tested[by], lower=better[by] == "lower")
    return None, ()


def step_of_deciding_metrics(campaign: Campaign) -> dict[str, str]:
    """The metrics that are decided on -> best or last, by the keys and reductions that are declared for them.

    Only of one job: what several jobs measure is nobody's mixture.
    """
    better = campaign.decision.metrics if campaign.decision else {}
    for job in campaign.jobs:
        mine = [result for result in job.results if result.name in better]
        if len(mine) == len(better) > 1:
            return {result.name: step for result in mine if (step := _step_of_result(result, better))}
    return {}


def _step_of_result(result: DeclaredResult, better: Mapping[str, str]) -> str | None:
    """A file that has one row, or one value, says nothing of steps."""
    told = best_or_last_in_names([result.key or ""])
    if told or result.kind not in _SERIES_KINDS:
        return told
    if _is_taken_at_best(result, better):
        return "best"
    return "last" if result.reduce == "last" else None


def _is_taken_at_best(result: DeclaredResult, better: Mapping[str, str]) -> bool:
    if isinstance(result.reduce, str):
        return result.reduce == {"lower": "min", "higher": "max"}.get(better.get(result.name, ""))
    return True


def _is_lower_better_by_reduction(result: DeclaredResult) -> bool:
    return result.reduce == "min" if isinstance(result.reduce, str) else result.reduce.at.better == "lower"


def _best_of_series(tested: MetricRange, *, lower: bool) -> tuple[float | None, tuple[float, ...]]:
    several = tested.first != tested.last
    return tested.lowest if lower else tested.highest, (tested.first, tested.last) if several else ()


# keys that name a run, or say where it lies, and do not change what it does
_NAME_KEYS = frozenset(
    {
        "name",
        "run_name",
        "exp_name",
        "experiment_name",
        "logdir",
        "log_dir",
        "out",
        "outdir",
        "out_dir",
        "output",
        "output_dir",
        "run_dir",
        "save_dir",
        "wandb_name",
        "id",
        "run_id",
    }
)
_STEP_KEYS = ("steps", "run.steps", "total_steps", "max_steps", "total_timesteps", "train.steps")
_LEAST_LEAVES = 5  # leaves that a config must have before two of them can be called the same
_SLACK_S = 2.0
CLEAN_TREE = "clean"  # a tree without changes, which is not the same as one that nobody knows
ConfigFiles = Sequence[tuple[str, Mapping[str, Any]]]


def find_cell_making(
    campaign: Campaign,
    records: Mapping[str, CellRecord],
    origins: Mapping[str, ResultOrigins],
    code: Mapping[str, Mapping[str, Any]],
    vouched: Mapping[str, str] = MappingProxyType({}),
    named: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Iterator[CellMaking]:
    """Of every DONE cell whose origins are known.

    `vouched`: the checkpoints as an earlier report saw them. `named`: for a cell the files of those it needs, as its
    command names them.
    """
    users: dict[str, list[str]] = {}
    for name, needs in map_needed_cells(campaign, [record.cell for record in records.values()]).items():
        for need in needs if name in origins else ():
            users.setdefault(need, []).append(name)
    files = _telling_result_digests(records, origins)
    for name, record in records.items():
        if record.done and name in origins:
            paths = named.get(name, ())
            making = _CellMakingReader(
                campaign, records, origins, users.get(name, []), record, vouched.get(name), paths, files.get(name)
            )
            yield making.made(code.get(name, {}))


@dataclass(frozen=True, slots=True)
class _CellMakingReader:
    campaign: Campaign
    records: Mapping[str, CellRecord]
    origins: Mapping[str, ResultOrigins]
    users: Sequence[str]  # the cells that evaluated it
    record: CellRecord
    vouched: str | None = None
    named: Sequence[str] = ()
    result: str | None = None  # hash of a result file that holds more than its results

    def made(self, code: Mapping[str, Any]) -> CellMaking:
        names = self.record.cell.names
        mine = self.origins[self.record.cell.id]
        trained = bool(self.users or mine.checkpoint or not self.campaign.job(self.record.cell.job).needs)
        saved = mine.checkpoint
        configs = self._configs() if trained else []
        best, evaluations = best_evaluation_step(self.campaign, self.record.cell.job, mine)
        return CellMaking(
            cell=self.record.cell.id,
            job=self.record.cell.job,
            config=names.get("config", ""),
            seed=names.get("seed", ""),
            trained=trained,
            checkpoint=saved.sha256 if saved else None,
            saved_share=saved.share if saved else None,
            saved_steps=saved.steps_share if saved else None,
            saved_early=saved is not None and saved.early,
            curve=_digest_of_curves(mine),
            result=self.result,
            steps=_steps_of_configs(configs),
            settings=_digest_of_settings(configs),
            unlabelled=_digest_of_settings(configs, but=names.get("config", "")),
            label=_label_in_configs(configs, self.record, self.campaign),
            commit=code.get("commit"),
            dirty=(code.get("dirty") or CLEAN_TREE) if code.get("commit") else None,
            called=self._called(),
            best_step=best,
            eval_steps=evaluations,
            episodes=mine.episodes,
            another=tuple(user for user in self.users if saved and self._differs(user, saved)),
            written_after=tuple(user for user in self.users if saved and self._written_after(user, saved)),
            used_by=tuple(self.users),
        )

    def _configs(self) -> ConfigFiles:
        done = self.record.completed
        output = done.outcome.output if done and done.outcome else None
        return read_run_configs(Path(output)) if output else []

    def _called(self) -> str | None:
        """Not where the cell's own name says it: that is declared."""
        told = self.origins[self.record.cell.id].named
        paths = [*self.named, *([Path(told).name] if told else [])]
        return None if best_or_last_in_names([self.record.cell.id]) else best_or_last_in_names(paths)

    def _written_after(self, user: str, saved: CheckpointOrigin) -> bool:
        """A copy that was put back has a new time and the old bytes."""
        same = saved.sha256 is not None and saved.sha256 in (self.vouched, self.origins[user].evaluated)
        return not same and _ended_before_saving(self.records[user], saved)

    def _differs(self, user: str, saved: CheckpointOrigin) -> bool:
        named = self.origins[user].evaluated
        return named is not None and saved.sha256 is not None and named != saved.sha256


def _ended_before_saving(record: CellRecord, saved: CheckpointOrigin) -> bool:
    """Of adopted runs nobody knows exactly when they ended."""
    attempt = record.completed
    if attempt is None or attempt.adopted or attempt.outcome is None or attempt.outcome.ended is None:
        return False
    return saved.saved is not None and saved.saved > attempt.outcome.ended + _SLACK_S


def _telling_result_digests(records: Mapping[str, CellRecord], origins: Mapping[str, ResultOrigins]) -> dict[str, str]:
    """Cell -> the hash of its result file, where that says something that no other run would say.

    A key that is the same for all seeds of a config, or for all configs of a seed, is their label.
    """
    groups: dict[tuple[str, ...], list[tuple[str, str, str]]] = {}
    for name, record in records.items():
        values = record.cell.names
        others = [value for axis, value in values.items() if axis not in ("config", "seed")]
        if record.done and name in origins and origins[name].more:
            own = (name, values.get("config", ""), values.get("seed", ""))
            groups.setdefault((record.cell.job, *others), []).append(own)
    found = {}
    for group in groups.values():
        keys = {key for name, _, _ in group for key in origins[name].more}
        telling = [key for key in keys if all(_key_varies_within_axis(key, group, origins, axis) for axis in (1, 2))]
        for name, _, _ in group:
            mine = origins[name]
            path = next(iter(mine.results.values()), "")
            if any(key in mine.more for key in telling) and (digest := mine.files.get(path)):
                found[name] = digest
    return found


def _key_varies_within_axis(
    key: str, group: Sequence[tuple[str, str, str]], origins: Mapping[str, ResultOrigins], axis: int
) -> bool:
    """Within every value of this axis that has several cells."""
    seen: dict[str, list[str]] = {}
    for each in group:
        seen.setdefault(each[axis], []).append(origins[each[0]].more.get(key, ""))
    return all(len(set(texts)) > 1 for texts in seen.values() if len(texts) > 1)


def _digest_of_curves(mine: ResultOrigins) -> str | None:
    """Of the curves and of everything that was logged beside them."""
    points = {metric: curve[1] for metric, curve in mine.curves.items()}
    if not points or all(len(set(values)) < 3 for _, values in points.values()):
        return None  # a line that says nothing may well lie under two runs
    return hashlib.sha256(json.dumps([points, mine.logged], sort_keys=True).encode()).hexdigest()


def _digest_of_settings(configs: ConfigFiles, but: str | None = None) -> str | None:
    """Of the first config file, without names and places; `but`: without values that are this name, too."""
    for _, config in configs:
        told = {
            path: value
            for path, value in config_leaves(config)
            if path.rpartition(".")[2] not in _NAME_KEYS
            and not (isinstance(value, str) and value.startswith(("/", "./", "../", "~")))
            and (but is None or value != but)
        }
        if len(told) >= _LEAST_LEAVES:
            return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()
    return None


def _steps_of_configs(configs: ConfigFiles) -> float | None:
    for _, config in configs:
        told = dict(config_leaves(config))
        for name in _STEP_KEYS:
            value = told.get(name)
            if isinstance(value, int | float) and not isinstance(value, bool):
                return float(value)
    return None


def _label_in_configs(configs: ConfigFiles, record: CellRecord, campaign: Campaign) -> str | None:
    """What its own config calls it: itself if it does so anywhere, else another config of this campaign."""
    names = record.cell.names
    if "config" not in names:
        return None
    told = [claim.value for claim in axis_values_in_configs(configs, campaign.axis("config"))]
    return names["config"] if names["config"] in told else next(iter(told), None)
