"""`train.py --configs a b`: names of parts in the configs.yaml beside the script, as the Dreamer family reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from muster.acts.launched import launched
from muster.acts.run_config import load
from muster.domain.campaign import Campaign, Job
from muster.domain.cell import cells_of
from muster.domain.errors import Mistake
from muster.plan.commands import Place, command, values

FILE = "configs.yaml"
DEFAULTS = "defaults"  # each of these trainers has it, and reads it first
LARGEST = 64 << 10  # bytes: YAML is read slowly


def named_parts(words: Sequence[str]) -> tuple[str, ...]:
    """The names behind `--configs`, up to the next option."""
    if "--configs" not in words:
        return ()
    at = list(words).index("--configs") + 1
    end = next((index for index in range(at, len(words)) if words[index].startswith("--")), len(words))
    return tuple(words[at:end])


def parts_file(words: Sequence[str]) -> Path | None:
    """Beside the script that the words run."""
    target = launched(words)
    script = target.name if target and target.kind == "script" else None
    script = script or next((word for word in words if word.endswith(".py")), None)
    return Path(script).parent / FILE if script else None


def load_parts(path: Path) -> Mapping[str, Any]:
    try:
        small = path.is_file() and path.stat().st_size <= LARGEST
    except OSError:
        return {}
    return (load(path) if small else None) or {}


def unknown_configs(campaign: Campaign, root: str) -> list[Mistake]:
    read: dict[Path, Mapping[str, Any]] = {}
    return [mistake for job in campaign.jobs for mistake in _of_job(campaign, job, root, read)]


def _of_job(campaign: Campaign, job: Job, root: str, read: dict[Path, Mapping[str, Any]]) -> Iterator[Mistake]:
    if job.shell or not _has_configs(campaign, job):
        return
    said: set[str] = set()
    for cell in cells_of(campaign, job):
        place = Place(n=1, out="OUT", outputs=dict.fromkeys(job.needs, "OUT"))
        try:
            words = command(job, values(job, cell, place))
        except (KeyError, ValueError):
            return
        beside = parts_file(words)
        file = Path(job.cwd or root) / beside if beside else None
        if file is None:
            return
        if file not in read:
            read[file] = load_parts(file)
        known = [str(name) for name in read[file]]
        for name in named_parts(words) if DEFAULTS in known else ():
            if name not in known and name not in said:
                said.add(name)
                near = get_close_matches(name, known, 1)
                hint = f"did you mean '{near[0]}'?" if near else f"it has {', '.join(known[:12])}"
                what = f"job {job.name}: {beside} has no config '{name}' (cell {cell.id})"
                yield Mistake(what, hint=hint, path=f"jobs.{job.name}.command")


def _has_configs(campaign: Campaign, job: Job) -> bool:
    args = (value.args for axis in job.axes for value in campaign.axis(axis).values)
    return any("--configs" in text for text in (*job.command, *args))
