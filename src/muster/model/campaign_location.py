"""Where a campaign's folder lies, and where it lay: what is recorded below it is recorded relative to it.

Logs of earlier versions have absolute paths. Those below a folder where the campaign once lay mean the same file here.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from muster.model.campaign import Axis, Campaign, Job

PathMapping = Callable[[str], str]
STATE_FOLDER = ".muster"
OUTSIDE, OUTSIDE_LIST = "outside", "outside.json"  # of .muster: what a pack brought along from elsewhere
PATH_KEYS = frozenset({"output", "path", "env_file", "config", "source", "file"})  # of a decision's data


@dataclass(frozen=True, slots=True)
class CampaignLocation:
    now: str  # absolute
    former: tuple[str, ...] = ()
    also: tuple[str, ...] = ()  # other names of the present one: a link leads there
    outside: tuple[str, ...] = ()  # files and folders from elsewhere that a pack brought into the state

    def inside(self, path: str) -> str:
        """As it is recorded: relative, if it lies in the folder as it is called now; else as it is."""
        for root in (self.now, *self.also):
            rest = _path_below_root(root, path)
            if rest is not None and _stays_inside_root(rest):
                return rest or "."
        return path

    def here(self, path: str) -> str:
        """Absolute: what was recorded relative to the folder, or below a former one, lies in the present one."""
        if not path:
            return path
        if not path.startswith("/"):
            return self.now if path == "." else f"{self.now.rstrip('/')}/{path}"
        known = (self.now, *self.also, *self.former, *self.outside)
        root = max((each for each in known if _path_below_root(each, path) is not None), key=len, default=self.now)
        if root == self.now or root in self.also:
            return path
        if root in self.outside:
            return self._brought(path)
        rest = _path_below_root(root, path)
        return f"{self.now.rstrip('/')}/{rest}" if rest else self.now

    def text(self, text: str) -> str:
        """A word or a sentence in which such paths occur."""
        for root in sorted(self.former, key=len, reverse=True):
            if root != self.now and root in text:
                text = _folder_pattern(root).sub(lambda _: self.now, text)
        for path in sorted(self.outside, key=len, reverse=True):
            if path in text and _path_below_root(path, self.now) is None:
                text = _folder_pattern(path).sub(lambda _, path=path: self._brought(path), text)  # type: ignore[misc]
        return text

    def _brought(self, path: str) -> str:
        return f"{self.now.rstrip('/')}/{STATE_FOLDER}/{OUTSIDE}{path}"


NEVER_MOVED = CampaignLocation("")  # of a folder that never moved


def campaign_folder_in_path(path: str) -> str | None:
    """The campaign's folder that a path into its state names; None: it names none."""
    root, found, _ = path.partition(f"/{STATE_FOLDER}/")
    if not found and path.endswith(f"/{STATE_FOLDER}"):
        root, found = path.removesuffix(f"/{STATE_FOLDER}"), STATE_FOLDER
    return (root or "/") if found and path.startswith("/") else None


def relativize_decision_paths(data: Mapping[str, Any], where: CampaignLocation) -> dict[str, Any]:
    """What a decision says, as it goes into the log."""
    return {key: _map_data_paths(key, value, where.inside) for key, value in data.items()}


def resolve_decision_paths(data: Mapping[str, Any], where: CampaignLocation) -> dict[str, Any]:
    """What the log says, with paths that lead there."""
    return {key: _map_data_paths(key, value, where.here) for key, value in data.items()}


def relativize_campaign_paths(campaign: Campaign, where: CampaignLocation) -> Campaign:
    return _map_campaign_paths(campaign, where.inside)


def resolve_campaign_paths(campaign: Campaign, where: CampaignLocation) -> Campaign:
    return _map_campaign_paths(campaign, where.here)


def _map_campaign_paths(campaign: Campaign, placed: PathMapping) -> Campaign:
    """Only what the campaign's folder was put before when its file was read; commands stay as they were written."""
    folder = campaign.wandb and replace(campaign.wandb, folder=placed(campaign.wandb.folder))
    jobs = tuple(_map_job_paths(job, placed) for job in campaign.jobs)
    return replace(
        campaign, wandb=folder, jobs=jobs, axes=tuple(_map_axis_paths(axis, placed) for axis in campaign.axes)
    )


def _map_job_paths(job: Job, placed: PathMapping) -> Job:
    if not (job.cwd or job.config or job.configs):
        return job
    configs = {key: placed(path) for key, path in job.configs.items()}
    config = placed(job.config) if job.config else ""
    return replace(job, cwd=placed(job.cwd) if job.cwd else None, config=config, configs=configs)


def _map_axis_paths(axis: Axis, placed: PathMapping) -> Axis:
    if not any(value.config for value in axis.values):
        return axis
    values = (replace(value, config=placed(value.config)) if value.config else value for value in axis.values)
    return replace(axis, values=tuple(values))


def _map_data_paths(key: str, value: Any, placed: PathMapping) -> Any:
    if isinstance(value, str):
        return placed(value) if key in PATH_KEYS else value
    if isinstance(value, Mapping):
        return {inner: _map_data_paths(inner, each, placed) for inner, each in value.items()}
    if isinstance(value, list | tuple):
        return [_map_data_paths("", each, placed) for each in value]
    return value


def _path_below_root(root: str, path: str) -> str | None:
    """What follows the root; "" for the root itself; None: it lies elsewhere."""
    if path == root:
        return ""
    start = root.rstrip("/") + "/"
    return path[len(start) :] if path.startswith(start) else None


def _stays_inside_root(rest: str) -> bool:
    """Whether it leads out of the folder again, by `..`."""
    return not os.path.normpath(rest).startswith("..")


@lru_cache(maxsize=64)
def _folder_pattern(root: str) -> re.Pattern[str]:
    """The folder as a whole path or the beginning of one: /a/b is no part of /a/bc, nor of /x/a/b."""
    return re.compile(rf"(?<![\w./-]){re.escape(root.rstrip('/'))}(?=/|$|[^\w.-])")
