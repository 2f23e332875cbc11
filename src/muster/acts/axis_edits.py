"""The configs of jobs whose axis values have `edits:`: one file for each combination, named by what is in it."""

from __future__ import annotations

import hashlib
import itertools
import os.path
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from muster.acts.bases import base_text, near_config
from muster.domain.campaign import AxisValue, Campaign, Job
from muster.domain.cell import edit_key
from muster.domain.errors import Mistake
from muster.rounds.config import UnreadableConfig, kind_of
from muster.rounds.names import digest_of
from muster.rounds.texts import EditsRefused, edit_text, read_config

FOLDER = "configs"  # in `.muster`


@dataclass(frozen=True, slots=True)
class EditedConfigs:
    """The campaign whose jobs know their config files, and the texts of those that are still to be written."""

    campaign: Campaign
    texts: Mapping[str, str]
    mistakes: tuple[Mistake, ...] = ()


@dataclass(frozen=True, slots=True)
class _Base:
    path: str
    text: str
    kind: str
    digest: str  # of its values


def with_configs(campaign: Campaign, root: Path) -> EditedConfigs:
    """Writes nothing. Every mistake is told, with its place in the campaign file."""
    texts: dict[str, str] = {}
    mistakes: list[Mistake] = []
    jobs = [_job(campaign, job, root, texts, mistakes) if job.config else job for job in campaign.jobs]
    return EditedConfigs(replace(campaign, jobs=tuple(jobs)), texts, tuple(mistakes))


def _job(campaign: Campaign, job: Job, root: Path, texts: dict[str, str], mistakes: list[Mistake]) -> Job:
    try:
        base = _read(job.config)
    except (OSError, UnreadableConfig) as error:
        mistakes.append(_unreadable(job, root, error))
        return job
    wrong = list(_alone(campaign, job, base))
    if wrong:
        mistakes += wrong
        return job
    configs: dict[str, str] = {}
    digests = {base.digest: "the base"}
    for key, edits in _combinations(campaign, job):
        try:
            made = edit_text(base.text, base.kind, edits)
        except EditsRefused as refused:
            mistakes += [Mistake(f"job {job.name}, {key}: {each}", path=_place(job)) for each in refused.mistakes]
            continue
        if key and (first := digests.setdefault(digest_of(made.tree), key)) != key:
            what = f"job {job.name}: {key} runs with the very config of {first}"
            hint = "two names for one config give the same numbers twice; change an edit, or drop one"
            mistakes.append(Mistake(what, path=_place(job), hint=hint, level="warning"))
        configs[key] = _path(root, base, made.text)
        texts[configs[key]] = made.text
    return replace(job, configs=configs)


def _read(path: str) -> _Base:
    text, kind = base_text(Path(path)), kind_of(path)
    return _Base(path, text, kind, digest_of(read_config(text, kind).tree))


def _place(job: Job) -> str:
    return f"jobs.{job.name}.config"


def _unreadable(job: Job, root: Path, error: Exception) -> Mistake:
    name, missing = os.path.relpath(job.config, root), isinstance(error, OSError)
    said = error.strerror or str(error) if isinstance(error, OSError) else str(error)
    hint = near_config(name, root) if missing else "it must be a config: JSON, YAML or TOML"
    return Mistake(f"job {job.name}: {name}: {said}", path=_place(job), hint=hint)


def _combinations(campaign: Campaign, job: Job) -> Iterator[tuple[str, list[str]]]:
    """Each once, with its edits in the order of the job's axes."""
    seen: set[str] = set()
    for point in itertools.product(*(campaign.axis(name).values for name in job.axes)):
        key = edit_key(zip(job.axes, point, strict=True))
        if key not in seen:
            seen.add(key)
            yield key, [edit for value in point for edit in value.edits]


def _alone(campaign: Campaign, job: Job, base: _Base) -> Iterator[Mistake]:
    """Each value for itself: a mistake in one is told once, and where it stands."""
    for axis in job.axes:
        for value in campaign.axis(axis).values:
            for at, told in _refused(value, base):
                yield Mistake(f"{axis} {value.name}: {told}", path=f"axes.{axis}.{value.name}.edits.{at}")


def _refused(value: AxisValue, base: _Base) -> Iterator[tuple[int, str]]:
    good: list[str] = []
    for at, edit in enumerate(value.edits):
        try:
            edit_text(base.text, base.kind, [*good, edit])
            good.append(edit)
        except EditsRefused as refused:
            yield from ((at, each) for each in refused.mistakes)


def _path(root: Path, base: _Base, text: str) -> str:
    stem, suffix = os.path.splitext(os.path.basename(base.path))  # noqa: PTH119, PTH122 lexical
    return str(root / ".muster" / FOLDER / f"{stem}-{hashlib.sha256(text.encode()).hexdigest()[:10]}{suffix}")
