"""Takes a campaign in: the hash of every cell's definition, and what changed against the one before."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muster.domain.campaign import Campaign, Job
from muster.domain.cell import Cell, all_cells
from muster.domain.code import code_key
from muster.domain.state import CampaignState
from muster.domain.whereabouts import STAYED, Whereabouts
from muster.plan.commands import Place, command, environment, values
from muster.ports.regular_files import read_regular

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
    proven: tuple[str, ...] = ()  # DONE now: only their proof had failed, and it was read again
    unproven: tuple[str, ...] = ()  # read again, too, and it still does not hold
    released: bool = False  # failures had held the campaign, and its file was changed since

    def __bool__(self) -> bool:
        return bool(self.new or self.gone or self.changed or self.changed_done or self.code_changed)


def hashes(
    campaign: Campaign, root: str, code_of: CodeOf, origin: Whereabouts = STAYED, names: Container[str] | None = None
) -> dict[str, str]:
    """`<definition>-<code>` for each cell: the command, environment and config files; commit and dirty diff.

    `origin`: where the campaign was first taken in. A folder that moved defines the same cells as before.
    `names`: of these cells only.
    """
    code: dict[str, str] = {}
    files: dict[str, str] = {}
    found = {}
    for cell in all_cells(campaign):
        if names is not None and cell.id not in names:
            continue
        job = campaign.job(cell.job)
        cwd = job.cwd or root
        if cwd not in code:
            code[cwd] = _digest(code_key(code_of(cwd)))[:8]
        found[cell.id] = f"{_definition(campaign, job, cell, cwd, files, origin.text)}-{code[cwd]}"
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


def renamed_definitions(
    before: Campaign, after: Campaign, root: str, origin: Whereabouts = STAYED
) -> dict[str, tuple[str, str]]:
    """For each cell that has another name now: its definition under the old name, and the same under the new one.

    A config file that was renamed with it is the same one. `origin`: as of `hashes`.
    """
    files: dict[str, str] = {}
    found = {}
    for old, new in zip(all_cells(before), all_cells(after), strict=True):
        if old.id != new.id:
            job, was = after.job(new.job), before.job(old.job)
            cwd = job.cwd or root
            instead = dict(zip(_words(was, old), _words(job, new), strict=False))
            ran = _definition(before, was, old, cwd, files, origin.text, instead)
            found[new.id] = (ran, _definition(after, job, new, cwd, files, origin.text))
    return found


def missing_config_files(before: Campaign, after: Campaign, root: str) -> dict[str, str]:
    """Config files that commands name, which are there under the old name only: old -> new."""
    files: dict[str, str] = {}
    found = {}
    for old, new in zip(all_cells(before), all_cells(after), strict=True):
        job = after.job(new.job)
        for was, is_ in zip(_words(before.job(old.job), old), _words(job, new), strict=False):
            if was != is_ and was.endswith(CONFIG_SUFFIXES) and is_.endswith(CONFIG_SUFFIXES):
                cwd = job.cwd or root
                if _contents(cwd, was, files) and not _contents(cwd, is_, files):
                    found[was.rpartition("=")[2]] = is_.rpartition("=")[2]
    return found


def _words(job: Job, cell: Cell) -> list[str]:
    return command(job, _filled(job, cell))


def _filled(job: Job, cell: Cell) -> dict[str, str]:
    return {**values(job, cell, _place(job)), "gpu": "{gpu}", "device": "{device}", "port": "{port}"}


def _place(job: Job) -> Place:
    return Place(n=0, out="{out}", slots=("{slot}",), outputs={need: f"{{{need}.output}}" for need in job.needs})


def _definition(
    campaign: Campaign, job: Job, cell: Cell, cwd: str, files: dict[str, str], placed: Callable[[str], str],
    instead: Mapping[str, str] | None = None,
) -> str:  # fmt: skip
    """Of what is executed, with stand-ins for what differs from attempt to attempt.

    `instead`: words that name a config file by which another is meant if it is not there any more.
    """
    place, filled = _place(job), _filled(job, cell)
    words = command(job, filled)
    resume = command(job, {**filled, "last.checkpoint": "{last.checkpoint}"}) if job.resume else []
    env = environment(campaign, job, cell, place, "")
    named = [word for word in words if word.endswith(CONFIG_SUFFIXES)]
    made = tuple(job.configs.values())  # their names say what is in them
    configs = {word: _contents(cwd, word, files) for word in named if not word.endswith(made)}
    for word in [word for word, there in configs.items() if instead and not there]:
        configs[word] = _contents(cwd, (instead or {}).get(word, word), files)
    configs = {placed(word): there for word, there in configs.items()}
    words, resume = list(map(placed, words)), list(map(placed, resume))
    env = {name: placed(value) for name, value in env.items()}
    return _digest([words, resume, env, placed(cwd), job.output, job.steps, configs, _edits(cell)])


def _edits(cell: Cell) -> list[list[str]]:
    return [list(value.edits) for _, value in cell.values]


def _contents(cwd: str, word: str, files: dict[str, str]) -> str:
    """A config file that the command names; `--config=a.json` too."""
    path = Path(cwd) / word.rpartition("=")[2]
    if str(path) not in files:
        try:
            facts = path.stat()
            small = facts.st_size <= CONFIG_BYTES
            data = read_regular(path, CONFIG_BYTES) if small else str(facts.st_mtime_ns).encode()
            files[str(path)] = hashlib.sha256(data).hexdigest()
        except OSError:
            files[str(path)] = ""
    return files[str(path)]


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:12]
