"""Takes a campaign in: the hash of every cell's definition, and what changed against the one before."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muster.domain.campaign import Campaign, Job
from muster.domain.cell import Cell, all_cells
from muster.domain.state import CampaignState
from muster.plan.commands import Place, command, environment, values

CONFIG_SUFFIXES = (".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".gin")
CONFIG_BYTES = 1 << 20
CodeOf = Callable[[str], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Changes:
    """What taking a campaign in means for cells that exist already."""

    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    changed_done: tuple[str, ...] = ()  # DONE under their old definition; kept
    code_changed: bool = False

    def __bool__(self) -> bool:
        return bool(self.new or self.gone or self.changed or self.changed_done or self.code_changed)


def hashes(campaign: Campaign, root: str, code_of: CodeOf) -> dict[str, str]:
    """`<definition>-<code>` for each cell: the command, environment and config files; commit and dirty diff."""
    code: dict[str, str] = {}
    files: dict[str, str] = {}
    found = {}
    for cell in all_cells(campaign):
        job = campaign.job(cell.job)
        cwd = job.cwd or root
        if cwd not in code:
            code[cwd] = _digest(dict(code_of(cwd)))[:8]
        found[cell.id] = f"{_definition(campaign, job, cell, cwd, files)}-{code[cwd]}"
    return found


def changes(before: CampaignState, after: Mapping[str, str]) -> Changes:
    old = {record.cell.id: record for record in before.declared}
    changed: list[str] = []
    changed_done: list[str] = []
    code = False
    for name, record in old.items():
        if name not in after or not record.hash:
            continue
        was, _, was_code = record.hash.partition("-")
        now, _, now_code = after[name].partition("-")
        if was != now:
            (changed_done if record.done else changed).append(name)
        code = code or was_code != now_code
    return Changes(
        new=tuple(name for name in after if name not in old),
        gone=tuple(name for name in old if name not in after),
        changed=tuple(changed),
        changed_done=tuple(changed_done),
        code_changed=code,
    )


def _definition(campaign: Campaign, job: Job, cell: Cell, cwd: str, files: dict[str, str]) -> str:
    """Of what is executed, with stand-ins for what differs from attempt to attempt."""
    place = Place(n=0, out="{out}", slots=("{slot}",), outputs={need: f"{{{need}.output}}" for need in job.needs})
    filled = {**values(job, cell, place), "gpu": "{gpu}", "device": "{device}", "port": "{port}"}
    words = command(job, filled)
    resume = command(job, {**filled, "last.checkpoint": "{last.checkpoint}"}) if job.resume else []
    env = environment(campaign, job, cell, place, "")
    named = [word for word in words if word.endswith(CONFIG_SUFFIXES)]
    made = tuple(job.configs.values())  # their names say what is in them
    configs = {word: _contents(cwd, word, files) for word in named if not word.endswith(made)}
    return _digest([words, resume, env, cwd, job.output, job.steps, configs, _edits(cell)])


def _edits(cell: Cell) -> list[list[str]]:
    return [list(value.edits) for _, value in cell.values]


def _contents(cwd: str, word: str, files: dict[str, str]) -> str:
    """A config file that the command names; `--config=a.json` too."""
    path = Path(cwd) / word.rpartition("=")[2]
    if str(path) not in files:
        try:
            data = path.read_bytes() if path.stat().st_size <= CONFIG_BYTES else str(path.stat().st_mtime_ns).encode()
            files[str(path)] = hashlib.sha256(data).hexdigest()
        except OSError:
            files[str(path)] = ""
    return files[str(path)]


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:12]
