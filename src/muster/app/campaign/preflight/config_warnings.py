"""Warnings about configs before a run is paid for: unknown names after `--configs` (the parts of `configs.yaml`
beside the script, as the Dreamer family has them), and save, log or evaluation periods that are longer than the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from muster.app.campaign.cell_definitions import CONFIG_SUFFIXES
from muster.app.campaign.preflight.launched_command import find_launched_target
from muster.engine.plan.cell_command import (
    build_run_environment,
    command_for_checking,
    context_for_checking,
)
from muster.engine.plan.cell_standing import is_outdated_cell
from muster.engine.plan.scheduling import median_durations
from muster.model.attempt import CellRecord
from muster.model.campaign import Campaign, Job
from muster.model.cell import Cell, list_cells_of_job
from muster.model.errors import Mistake
from muster.readers.discovery.axis_values import config_leaves, load_run_config
from muster.spec.training_periods import (
    CLOCKED_TRAINERS,
    ExpectedRunLength,
    TrainingPeriod,
    check_period_length,
    option_value_pairs,
    parse_period,
    resolve_period_units,
)
from muster.text.phrases import phrase
from muster.text.shell_words import split

PARTS_FILE = "configs.yaml"
DEFAULTS_PART = "defaults"  # each of these trainers has it, and reads it first
LARGEST_PARTS_FILE = 64 << 10  # bytes: YAML is read slowly


def named_config_parts(words: Sequence[str]) -> tuple[str, ...]:
    """The names behind `--configs`, up to the next option."""
    if "--configs" not in words:
        return ()
    at = list(words).index("--configs") + 1
    end = next((index for index in range(at, len(words)) if words[index].startswith("--")), len(words))
    return tuple(words[at:end])


def find_config_parts_file(words: Sequence[str]) -> Path | None:
    """Beside the script that the words run."""
    target = find_launched_target(words)
    script = target.name if target and target.kind == "script" else None
    script = script or next((word for word in words if word.endswith(".py")), None)
    return Path(script).parent / PARTS_FILE if script else None


def load_config_parts(path: Path) -> Mapping[str, Any]:
    try:
        small = path.is_file() and path.stat().st_size <= LARGEST_PARTS_FILE
    except OSError:
        return {}
    return (load_run_config(path) if small else None) or {}


def find_unknown_config_parts(campaign: Campaign, root: str) -> list[Mistake]:
    read: dict[Path, Mapping[str, Any]] = {}
    return [mistake for job in campaign.jobs for mistake in _unknown_parts_of_job(campaign, job, root, read)]


def _unknown_parts_of_job(
    campaign: Campaign, job: Job, root: str, read: dict[Path, Mapping[str, Any]]
) -> Iterator[Mistake]:
    if job.shell or not _uses_configs_option(campaign, job):
        return
    said: set[str] = set()
    for cell in list_cells_of_job(campaign, job):
        words = command_for_checking(job, cell, context_for_checking(job, "OUT"))
        if words is None:
            return
        beside = find_config_parts_file(words)
        file = Path(job.cwd or root) / beside if beside else None
        if file is None:
            return
        if file not in read:
            read[file] = load_config_parts(file)
        known = [str(name) for name in read[file]]
        for name in named_config_parts(words) if DEFAULTS_PART in known else ():
            if name not in known and name not in said:
                said.add(name)
                near = get_close_matches(name, known, 1)
                hint = (
                    phrase("campaign.near_quoted", near=near[0])
                    if near
                    else phrase("campaign.configs_known", known=", ".join(known[:12]))
                )
                what = phrase("campaign.job_config_part_missing", job=job.name, file=beside, name=name, cell=cell.id)
                yield Mistake(what, hint=hint, path=f"jobs.{job.name}.command")


def _uses_configs_option(campaign: Campaign, job: Job) -> bool:
    args = (value.args for axis in job.axes for value in campaign.axis(axis).values)
    return any("--configs" in text for text in (*job.command, *args))


NO_EVALUATION_KEY = "env"  # of LeRobot: where it is null, nothing is evaluated, however often that is asked for
UNKNOWN_OUTPUT = "OUT"  # stands for paths that are not known yet


@dataclass(slots=True)
class _ConfigFiles:
    """Config files, each read once."""

    read: dict[Path, list[tuple[str, Any]]]
    parts: dict[Path, Mapping[str, Any]]

    def settings(self, path: Path) -> list[tuple[str, Any]]:
        if path not in self.read:
            self.read[path] = list(config_leaves(load_run_config(path) or {}))
        return self.read[path]

    def named(self, path: Path) -> Mapping[str, Any]:
        if path not in self.parts:
            self.parts[path] = load_config_parts(path)
        return self.parts[path]


def warn_of_long_periods(campaign: Campaign, root: str, records: Sequence[CellRecord] = ()) -> list[Mistake]:
    """`records`: the cells as they stand; finished ones tell how long a run is."""
    files = _ConfigFiles({}, {})
    return [
        warning for job in campaign.jobs for warning in _period_warnings_of_job(campaign, job, root, records, files)
    ]


def _period_warnings_of_job(
    campaign: Campaign, job: Job, root: str, records: Sequence[CellRecord], files: _ConfigFiles
) -> Iterator[Mistake]:
    of_job = [record for record in records if record.cell.job == job.name]
    expected = _expected_run_length(job, of_job)
    proof = job.proof.checkpoint
    saved_after = proof.saved_after if proof else 0.0
    seen: dict[tuple[str, float], tuple[TrainingPeriod, bool, list[str]]] = {}
    cells_of_job = list(list_cells_of_job(campaign, job))
    for cell in cells_of_job:
        clocked, found = _periods_of_cell(campaign, job, cell, root, files)
        for each in found:
            seen.setdefault((each.key, each.value), (each, clocked, []))[2].append(cell.id)
    count = len(cells_of_job)
    for each, clocked, cells in seen.values():
        told = check_period_length(each, expected, clocked=clocked, saved_after=saved_after)
        if told and not (each.kind == "save" and saved_after and _has_saved_before(of_job)):
            what = phrase("campaign.job_period", job=job.name, warning=told[0])
            if len(cells) < count:
                what = phrase(
                    "campaign.job_period_some", job=job.name, some=len(cells), all=count, cell=cells[0], warning=told[0]
                )
            yield Mistake(what, hint=told[1], path=f"jobs.{job.name}.command", level="warning")


def _expected_run_length(job: Job, records: Sequence[CellRecord]) -> ExpectedRunLength:
    known = median_durations(records).get(job.name)
    if known is None:
        return ExpectedRunLength(job.timeout_s, 0, job.steps)
    timed = [record for record in records if (done := record.completed) and done.outcome and done.outcome.duration_s]
    return ExpectedRunLength(known, len(timed), job.steps)


def _has_saved_before(records: Sequence[CellRecord]) -> bool:
    """A run of this very definition was DONE: its checkpoint was saved late enough, whatever the period says."""
    return any(
        record.completed and not record.completed.adopted and record.hash and not is_outdated_cell(record)
        for record in records
    )


def _periods_of_cell(
    campaign: Campaign, job: Job, cell: Cell, root: str, files: _ConfigFiles
) -> tuple[bool, list[TrainingPeriod]]:
    """Whether it is one of the trainers that save by the clock, and its periods; the command's word counts first."""
    place = context_for_checking(job, UNKNOWN_OUTPUT)
    words = command_for_checking(job, cell, place)
    if words is None:
        return False, []
    if job.shell:
        words = [*words[:-1], *_split_shell_text(words[-1])]
    cwd = job.cwd or root
    about = [*words, cwd]
    env = build_run_environment(campaign, job, cell, place, "")
    found: dict[str, TrainingPeriod] = {}
    evaluates = True
    for name, value, where in _settings_of_command(words, env, Path(cwd), files):
        evaluates = evaluates and not (name == NO_EVALUATION_KEY and value is None)
        each = parse_period(name, value, where)
        if each:
            found.setdefault(each.key, each)
    clocked = any(name in word.lower() for word in about for name in CLOCKED_TRAINERS)
    told = [each for each in found.values() if evaluates or each.kind != "eval"]
    return clocked, resolve_period_units(told, job, about)


def _split_shell_text(text: str) -> list[str]:
    try:
        return split(text, comments=True)
    except ValueError:
        return text.split()


def _settings_of_command(
    words: Sequence[str], env: Mapping[str, str], cwd: Path, files: _ConfigFiles
) -> Iterator[tuple[str, object, str]]:
    yield from ((name, value, phrase("campaign.in_command")) for name, value in option_value_pairs(words))
    yield from ((name, value, phrase("campaign.in_environment")) for name, value in env.items())
    for word in words:
        text = word.rpartition("=")[2]
        if text.endswith(CONFIG_SUFFIXES):
            yield from (
                (name, value, phrase("campaign.in_file", file=text)) for name, value in files.settings(cwd / text)
            )
    yield from _settings_of_parts(words, cwd, files)


def _settings_of_parts(words: Sequence[str], cwd: Path, files: _ConfigFiles) -> Iterator[tuple[str, object, str]]:
    """`train.py --configs a b` takes `defaults`, `a` and `b` of the configs.yaml beside it; the last one counts."""
    file = find_config_parts_file(words)
    if file is None or "--configs" not in words:
        return
    whole = files.named(cwd / file)
    for name in (*reversed(named_config_parts(words)), DEFAULTS_PART):
        part = whole.get(name)
        if isinstance(part, Mapping):
            yield from (
                (key, value, phrase("campaign.in_part_of_file", file=file, part=name))
                for key, value in config_leaves(part)
            )
