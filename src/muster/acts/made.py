"""How each cell came about, for the red flags: which checkpoint, which settings, which code."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from muster.acts.best_or_last import best_step, called
from muster.acts.run_config import claims, configs_in, leaves
from muster.domain.attempt import CellRecord
from muster.domain.campaign import Campaign
from muster.domain.cell import needed_cells
from muster.domain.origins import Checkpoint, Origins
from muster.stats.flags import Made

# keys that name a run, or say where it lies, and do not change what it does
_NAMES = frozenset({
    "name", "run_name", "exp_name", "experiment_name", "logdir", "log_dir", "out", "outdir", "out_dir", "output",
    "output_dir", "run_dir", "save_dir", "wandb_name", "id", "run_id",
})  # fmt: skip
_STEPS = ("steps", "run.steps", "total_steps", "max_steps", "total_timesteps", "train.steps")
_TOLD = 5  # leaves that a config must have before two of them can be called the same
_SLACK_S = 2.0
CLEAN = "clean"  # a tree without changes, which is not the same as one that nobody knows
Configs = Sequence[tuple[str, Mapping[str, Any]]]


def how_made(
    campaign: Campaign,
    records: Mapping[str, CellRecord],
    origins: Mapping[str, Origins],
    code: Mapping[str, Mapping[str, Any]],
    vouched: Mapping[str, str] = MappingProxyType({}),
    named: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Iterator[Made]:
    """Of every DONE cell whose origins are known.

    `vouched`: the checkpoints as an earlier report saw them. `named`: for a cell the files of those it needs, as its
    command names them.
    """
    users: dict[str, list[str]] = {}
    for name, needs in needed_cells(campaign, [record.cell for record in records.values()]).items():
        for need in needs if name in origins else ():
            users.setdefault(need, []).append(name)
    files = _result_files(records, origins)
    for name, record in records.items():
        if record.done and name in origins:
            paths = named.get(name, ())
            making = _Making(
                campaign, records, origins, users.get(name, []), record, vouched.get(name), paths, files.get(name)
            )
            yield making.made(code.get(name, {}))


@dataclass(frozen=True, slots=True)
class _Making:
    campaign: Campaign
    records: Mapping[str, CellRecord]
    origins: Mapping[str, Origins]
    users: Sequence[str]  # the cells that evaluated it
    record: CellRecord
    vouched: str | None = None
    named: Sequence[str] = ()
    result: str | None = None  # hash of a result file that holds more than its results

    def made(self, code: Mapping[str, Any]) -> Made:
        names = {axis: value.name for axis, value in self.record.cell.values}
        mine = self.origins[self.record.cell.id]
        trained = bool(self.users or mine.checkpoint or not self.campaign.job(self.record.cell.job).needs)
        saved = mine.checkpoint
        configs = self._configs() if trained else []
        best, evaluations = best_step(self.campaign, self.record.cell.job, mine)
        return Made(
            cell=self.record.cell.id,
            job=self.record.cell.job,
            config=names.get("config", ""),
            seed=names.get("seed", ""),
            trained=trained,
            checkpoint=saved.sha256 if saved else None,
            saved_share=saved.share if saved else None,
            saved_steps=saved.steps_share if saved else None,
            saved_early=saved is not None and saved.early,
            curve=_curve_hash(mine),
            result=self.result,
            steps=_steps(configs),
            settings=_settings(configs),
            unlabelled=_settings(configs, but=names.get("config", "")),
            label=_label(configs, self.record, self.campaign),
            commit=code.get("commit"),
            dirty=(code.get("dirty") or CLEAN) if code.get("commit") else None,
            called=self._called(),
            best_step=best,
            eval_steps=evaluations,
            episodes=mine.episodes,
            another=tuple(user for user in self.users if saved and self._differs(user, saved)),
            written_after=tuple(user for user in self.users if saved and self._written_after(user, saved)),
            used_by=tuple(self.users),
        )

    def _configs(self) -> Configs:
        done = self.record.completed
        output = done.outcome.output if done and done.outcome else None
        return configs_in(Path(output)) if output else []

    def _called(self) -> str | None:
        """Not where the cell's own name says it: that is declared."""
        told = self.origins[self.record.cell.id].named
        paths = [*self.named, *([Path(told).name] if told else [])]
        return None if called([self.record.cell.id]) else called(paths)

    def _written_after(self, user: str, saved: Checkpoint) -> bool:
        """A copy that was put back has a new time and the old bytes."""
        same = saved.sha256 is not None and saved.sha256 in (self.vouched, self.origins[user].evaluated)
        return not same and _ended_before(self.records[user], saved)

    def _differs(self, user: str, saved: Checkpoint) -> bool:
        named = self.origins[user].evaluated
        return named is not None and saved.sha256 is not None and named != saved.sha256


def _ended_before(record: CellRecord, saved: Checkpoint) -> bool:
    """Of adopted runs nobody knows exactly when they ended."""
    attempt = record.completed
    if attempt is None or attempt.adopted or attempt.outcome is None or attempt.outcome.ended is None:
        return False
    return saved.saved is not None and saved.saved > attempt.outcome.ended + _SLACK_S


def _result_files(records: Mapping[str, CellRecord], origins: Mapping[str, Origins]) -> dict[str, str]:
    """Cell -> the hash of its result file, where that says something that no other run would say.

    A key that is the same for all seeds of a config, or for all configs of a seed, is their label.
    """
    groups: dict[tuple[str, ...], list[tuple[str, str, str]]] = {}
    for name, record in records.items():
        values = {axis: value.name for axis, value in record.cell.values}
        others = [value for axis, value in values.items() if axis not in ("config", "seed")]
        if record.done and name in origins and origins[name].more:
            own = (name, values.get("config", ""), values.get("seed", ""))
            groups.setdefault((record.cell.job, *others), []).append(own)
    found = {}
    for group in groups.values():
        keys = {key for name, _, _ in group for key in origins[name].more}
        telling = [key for key in keys if all(_varies(key, group, origins, axis) for axis in (1, 2))]
        for name, _, _ in group:
            mine = origins[name]
            path = next(iter(mine.results.values()), "")
            if any(key in mine.more for key in telling) and (digest := mine.files.get(path)):
                found[name] = digest
    return found


def _varies(key: str, group: Sequence[tuple[str, str, str]], origins: Mapping[str, Origins], axis: int) -> bool:
    """Within every value of this axis that has several cells."""
    seen: dict[str, list[str]] = {}
    for each in group:
        seen.setdefault(each[axis], []).append(origins[each[0]].more.get(key, ""))
    return all(len(set(texts)) > 1 for texts in seen.values() if len(texts) > 1)


def _curve_hash(mine: Origins) -> str | None:
    """Of the curves and of everything that was logged beside them."""
    points = {metric: curve[1] for metric, curve in mine.curves.items()}
    if not points or all(len(set(values)) < 3 for _, values in points.values()):
        return None  # a line that says nothing may well lie under two runs
    return hashlib.sha256(json.dumps([points, mine.logged], sort_keys=True).encode()).hexdigest()


def _settings(configs: Configs, but: str | None = None) -> str | None:
    """Of the first config file, without names and places; `but`: without values that are this name, too."""
    for _, config in configs:
        told = {
            path: value
            for path, value in leaves(config)
            if path.rpartition(".")[2] not in _NAMES
            and not (isinstance(value, str) and value.startswith(("/", "./", "../", "~")))
            and (but is None or value != but)
        }
        if len(told) >= _TOLD:
            return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()
    return None


def _steps(configs: Configs) -> float | None:
    for _, config in configs:
        told = dict(leaves(config))
        for name in _STEPS:
            value = told.get(name)
            if isinstance(value, int | float) and not isinstance(value, bool):
                return float(value)
    return None


def _label(configs: Configs, record: CellRecord, campaign: Campaign) -> str | None:
    """What its own config calls it: itself if it does so anywhere, else another config of this campaign."""
    names = {axis: value.name for axis, value in record.cell.values}
    if "config" not in names:
        return None
    told = [claim.value for claim in claims(configs, campaign.axis("config"))]
    return names["config"] if names["config"] in told else next(iter(told), None)
