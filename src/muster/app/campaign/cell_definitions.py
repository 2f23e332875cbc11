"""Takes a campaign in: the hash of every cell's definition, and what changed against the one before."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muster.engine.plan.cell_command import (
    AttemptContext,
    build_command,
    build_run_environment,
    cell_placeholder_values,
)
from muster.files.safe_open import read_regular_file
from muster.model.attempt import code_identity_key
from muster.model.campaign import Campaign, Job
from muster.model.campaign_location import NEVER_MOVED, CampaignLocation
from muster.model.campaign_state import CampaignState
from muster.model.cell import Cell, list_campaign_cells

CONFIG_SUFFIXES = (".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".gin")
CONFIG_BYTES = 1 << 20
CodeOf = Callable[[str], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class DefinitionChanges:
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


def hash_definitions(
    campaign: Campaign,
    root: str,
    code_of: CodeOf,
    origin: CampaignLocation = NEVER_MOVED,
    names: Container[str] | None = None,
) -> dict[str, str]:
    """`<definition>-<code>` for each cell: the command, environment and config files; commit and dirty diff.

    `origin`: where the campaign was first taken in. A folder that moved defines the same cells as before.
    `names`: of these cells only.
    """
    code: dict[str, str] = {}
    files: dict[str, str] = {}
    found = {}
    for cell in list_campaign_cells(campaign):
        if names is not None and cell.id not in names:
            continue
        job = campaign.job(cell.job)
        cwd = job.cwd or root
        if cwd not in code:
            code[cwd] = _digest_of_definition(code_identity_key(code_of(cwd)))[:8]
        found[cell.id] = f"{_hash_definition(campaign, job, cell, cwd, files, origin.text)}-{code[cwd]}"
    return found


def find_definition_changes(before: CampaignState, after: Mapping[str, str]) -> DefinitionChanges:
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
    return DefinitionChanges(
        new=tuple(name for name in after if name not in old),
        gone=tuple(name for name in old if name not in after),
        changed=tuple(changed),
        changed_done=tuple(changed_done),
        code_changed=code,
    )


def renamed_definitions(
    before: Campaign, after: Campaign, root: str, origin: CampaignLocation = NEVER_MOVED
) -> dict[str, tuple[str, str]]:
    """For each cell that has another name now: its definition under the old name, and the same under the new one.

    A config file that was renamed with it is the same one. `origin`: as of `hashes`.
    """
    files: dict[str, str] = {}
    found = {}
    for old, new in zip(list_campaign_cells(before), list_campaign_cells(after), strict=True):
        if old.id != new.id:
            job, was = after.job(new.job), before.job(old.job)
            cwd = job.cwd or root
            instead = dict(zip(_command_words(was, old), _command_words(job, new), strict=False))
            ran = _hash_definition(before, was, old, cwd, files, origin.text, instead)
            found[new.id] = (ran, _hash_definition(after, job, new, cwd, files, origin.text))
    return found


def find_missing_config_files(before: Campaign, after: Campaign, root: str) -> dict[str, str]:
    """Config files that commands name, which are there under the old name only: old -> new."""
    files: dict[str, str] = {}
    found = {}
    for old, new in zip(list_campaign_cells(before), list_campaign_cells(after), strict=True):
        job = after.job(new.job)
        for was, is_ in zip(_command_words(before.job(old.job), old), _command_words(job, new), strict=False):
            if was != is_ and was.endswith(CONFIG_SUFFIXES) and is_.endswith(CONFIG_SUFFIXES):
                cwd = job.cwd or root
                if _hash_config_file(cwd, was, files) and not _hash_config_file(cwd, is_, files):
                    found[was.rpartition("=")[2]] = is_.rpartition("=")[2]
    return found


def _command_words(job: Job, cell: Cell) -> list[str]:
    return build_command(job, _placeholder_values(job, cell))


def _placeholder_values(job: Job, cell: Cell) -> dict[str, str]:
    return {
        **cell_placeholder_values(job, cell, _stand_in_place(job)),
        "gpu": "{gpu}",
        "device": "{device}",
        "port": "{port}",
    }


def _stand_in_place(job: Job) -> AttemptContext:
    return AttemptContext(
        n=0, out="{out}", slots=("{slot}",), outputs={need: f"{{{need}.output}}" for need in job.needs}
    )


def _hash_definition(
    campaign: Campaign,
    job: Job,
    cell: Cell,
    cwd: str,
    files: dict[str, str],
    placed: Callable[[str], str],
    instead: Mapping[str, str] | None = None,
) -> str:
    """Of what is executed, with stand-ins for what differs from attempt to attempt.

    `instead`: words that name a config file by which another is meant if it is not there any more.
    """
    place, filled = _stand_in_place(job), _placeholder_values(job, cell)
    words = build_command(job, filled)
    resume = build_command(job, {**filled, "last.checkpoint": "{last.checkpoint}"}) if job.resume else []
    env = build_run_environment(campaign, job, cell, place, "")
    named = [word for word in words if word.endswith(CONFIG_SUFFIXES)]
    made = tuple(job.configs.values())  # their names say what is in them
    configs = {word: _hash_config_file(cwd, word, files) for word in named if not word.endswith(made)}
    for word in [word for word, there in configs.items() if instead and not there]:
        configs[word] = _hash_config_file(cwd, (instead or {}).get(word, word), files)
    configs = {placed(word): there for word, there in configs.items()}
    words, resume = list(map(placed, words)), list(map(placed, resume))
    env = {name: placed(value) for name, value in env.items()}
    return _digest_of_definition(
        [words, resume, env, placed(cwd), job.output, job.steps, configs, _edits_of_cell(cell)]
    )


def _edits_of_cell(cell: Cell) -> list[list[str]]:
    return [list(value.edits) for _, value in cell.values]


def _hash_config_file(cwd: str, word: str, files: dict[str, str]) -> str:
    """A config file that the command names; `--config=a.json` too."""
    path = Path(cwd) / word.rpartition("=")[2]
    if str(path) not in files:
        try:
            facts = path.stat()
            small = facts.st_size <= CONFIG_BYTES
            data = read_regular_file(path, CONFIG_BYTES) if small else str(facts.st_mtime_ns).encode()
            files[str(path)] = hashlib.sha256(data).hexdigest()
        except OSError:
            files[str(path)] = ""
    return files[str(path)]


def _digest_of_definition(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:12]
