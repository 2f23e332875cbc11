"""The config files that runs read: values of axes with `edits:`, the variants that a loop begins with, and copies of
their bases. Files are named by a digest of what is in them.
"""

from __future__ import annotations

import difflib
import glob
import hashlib
import itertools
import json
import os.path
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from muster.files.atomic_write import PRIVATE_FILE, mode_no_wider_than
from muster.files.bounded_walk import glob_paths
from muster.files.campaign_snapshots import write_once_durably
from muster.files.safe_open import read_regular_file
from muster.model.campaign import AxisValue, Campaign, Job
from muster.model.campaign_location import STATE_FOLDER
from muster.model.campaign_state import CampaignState
from muster.model.cell import edit_combination_key
from muster.model.errors import Mistake, MusterError
from muster.model.variant import VARIANT_AXIS, LoopRecord, Variant
from muster.rules.config_paths import UnreadableConfig, config_kind_of_file
from muster.rules.edit_config import EditsRefused, digest_config, edit_config_text, parse_config
from muster.rules.edits import describe_value_kind
from muster.text.phrases import join_phrases, phrase


def write_run_configs(texts: Mapping[str, str], originals: Mapping[str, Sequence[Path]]) -> None:
    """Durably; what is there already stays, and is refused where it holds other values.

    Nobody may read one who may not read its `originals`, and nobody else one that lies in `.muster`.
    """
    for path, text in texts.items():
        if _holds_other_values(Path(path), text):
            what = phrase("campaign.config_name_taken")
            raise MusterError(what, where=path, hint=phrase("campaign.changed_by_hand"))
        mode = PRIVATE_FILE if STATE_FOLDER in Path(path).parts else mode_no_wider_than(*originals.get(path, ()))
        write_once_durably(Path(path), text.encode(), mode, "campaign.write")


def _holds_other_values(path: Path, text: str) -> bool:
    """Comments may differ."""
    try:
        there = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return False
    except (OSError, UnicodeDecodeError):
        return True
    kind = config_kind_of_file(path.name)
    try:
        return there != text and digest_config(parse_config(there, kind).tree) != digest_config(
            parse_config(text, kind).tree
        )
    except UnreadableConfig:
        return True


VARIANTS_FILE = "variants.jsonl"
LARGEST_RECORD = 64 << 20


def read_variant_records(record: Path) -> Iterator[dict[str, Any]]:
    """What the record remembers, oldest first. Lines that are none are left out."""
    try:
        lines = read_regular_file(record, LARGEST_RECORD).splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return
    for line in lines:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield found


LIST_MARK = "@"
LOOP_FOLDER = "loop"  # the configs of all rounds
LARGEST_RUN_CONFIG = 16 << 20
MOST_MISSING = 100  # names of a list that each get a mistake of their own


def find_base_variants(bases: Sequence[str], root: Path) -> tuple[list[Variant], list[Mistake]]:
    """Each file once, in the order of the campaign file; every mistake, with its path in that file."""
    found: dict[Path, Variant] = {}
    mistakes: list[Mistake] = []
    for at, written in enumerate(bases):
        place = f"loop.base.{at}"
        for file in _config_files_of_entry(written, root, place, mistakes):
            if file in found:
                continue
            try:
                _refuse_config_without_keys(file)
                found[file] = variant_from_file(file, {each.name for each in found.values()})
            except (OSError, UnreadableConfig) as error:
                said = error.strerror or str(error) if isinstance(error, OSError) else str(error)
                mistakes.append(
                    Mistake(
                        join_phrases(": ", (_path_from_campaign_root(file, root), said)),
                        path=place,
                        hint=phrase("campaign.must_be_config_file"),
                    )
                )
    return list(found.values()), mistakes


def _refuse_config_without_keys(file: Path) -> None:
    """A list or a lone value can be read and is no config: no path of an edit has a name in it."""
    tree = parse_config(read_config_text(file), config_kind_of_file(file.name)).tree
    if not isinstance(tree, dict):
        found = (
            phrase("campaign.config_is_empty")
            if tree is None
            else phrase("campaign.not_mapping", kind=describe_value_kind(tree))
        )
        raise UnreadableConfig(phrase("campaign.config_has_keys", found=found))


@dataclass(frozen=True, slots=True)
class CopiedBases:
    """The bases as they are run: copies, because a person may go on with the file while it waits for a slot."""

    variants: tuple[Variant, ...]
    texts: Mapping[str, str]  # path -> text, of copies that are still to be written
    warnings: tuple[Mistake, ...]
    mended: tuple[Variant, ...] = ()  # known ones that never ran well, with the config that their file has now


def copy_base_variants(
    bases: Sequence[Variant], record: LoopRecord, root: Path, stays: Mapping[str, str] | None = None
) -> CopiedBases:
    """What was taken in before stays as it was; a base that comes later joins the newest round.

    `stays`: why a base can't have another config (see `unmendable`). One that is not there takes what its file says.
    """
    fixed = {each.name: "" for each in record.variants} if stays is None else stays
    variants: list[Variant] = []
    mended: list[Variant] = []
    warnings: list[Mistake] = []
    names = {each.name for each in record.variants}
    for base in bases:
        known = (*record.variants, *variants, *mended)
        own = next((each for each in known if each.source == base.config), None)
        same = next((each for each in known if each.digest == base.digest), None)
        if own and not same and own.name not in fixed:
            mended.append(_place_base_copy(base, own.name, record, root))
            warnings.append(_warn_corrected_base(base, own, root))
        elif own or same:
            warnings += _warn_known_base(base, own, same, fixed, root)
        else:
            name = base.name if base.name not in names else f"{base.name}-{base.digest[:6]}"
            names.add(name)
            variants.append(_place_base_copy(base, name, record, root))
    every = (*record.variants, *variants, *mended)
    variants, mended = ([_add_recorded_origin(each, every) for each in some] for some in (variants, mended))
    texts = {each.config: read_config_text(Path(each.source)) for each in (*variants, *mended)}
    return CopiedBases(tuple(variants), texts, tuple(warnings), tuple(mended))


def _place_base_copy(base: Variant, name: str, record: LoopRecord, root: Path) -> Variant:
    return place_variant_copy(replace(base, name=name, round=max(1, record.round), source=base.config), root)


def _add_recorded_origin(base: Variant, every: Sequence[Variant]) -> Variant:
    """With parent, edits and reason, if `muster edit` made its file and nobody has changed it since."""
    file = Path(base.source)
    for line in read_variant_records(file.parent / VARIANTS_FILE):
        if line.get("path") == file.name and line.get("digest") == base.digest:
            was = line.get("parent_digest")
            parent = next((each.name for each in every if each.digest == was and each.name != base.name), None)
            edits = tuple(map(str, line.get("edits", ())))
            base = replace(base, parent=parent, edits=edits, reason=str(line.get("reason", "")))
    return base


def explain_fixed_variants(state: CampaignState) -> dict[str, str]:
    """Variants whose config something rests on, each with what it is."""
    found = {each.parent: phrase("campaign.others_made_from_it") for each in state.loop.variants if each.parent}
    found |= {each.name: phrase("campaign.no_base_variant") for each in state.loop.variants if not each.source}
    for record in state.cells.values():
        for axis, value in record.cell.values:
            if axis == VARIANT_AXIS and record.open:
                found[value.name] = phrase("campaign.a_run_not_over")
            elif axis == VARIANT_AXIS and any(attempt.was_done for attempt in record.attempts):
                found[value.name] = phrase("campaign.a_good_run")
    return found


def replace_corrected_variants(variants: Sequence[Variant], mended: Sequence[Variant]) -> list[Variant]:
    """Each in its place."""
    instead = {each.name: each for each in mended}
    return [instead.get(each.name, each) for each in variants]


def _warn_corrected_base(base: Variant, own: Variant, root: Path) -> Mistake:
    what = phrase(
        "campaign.base_was_fixed",
        file=_path_from_campaign_root(Path(base.config), root),
        name=own.name,
    )
    hint = phrase("campaign.earlier_config_stays", file=_path_from_campaign_root(Path(own.config), root))
    return Mistake(what, path="loop.base", hint=hint, level="warning")


def _warn_known_base(
    base: Variant, own: Variant | None, same: Variant | None, stays: Mapping[str, str], root: Path
) -> Iterator[Mistake]:
    """Of a file that was taken in before (`own`), or whose values are another's (`same`)."""
    file = _path_from_campaign_root(Path(base.config), root)
    if own and own.digest != base.digest and not (same and own.name not in stays):
        what = phrase("campaign.base_changed_stays", file=file, name=own.name)
        goes_with = _path_from_campaign_root(Path(own.config), root)
        hint = phrase("campaign.new_values_new_name", file=goes_with)
        if why := stays.get(own.name):
            hint = phrase("campaign.new_values_new_name_for", file=goes_with, reason=why)
        yield Mistake(what, path="loop.base", hint=hint, level="warning")
    elif own and same and same is not own:
        what = phrase("campaign.base_same_as_other", file=file, other=same.name, own=own.name)
        yield Mistake(what, path="loop.base", hint=phrase("campaign.change_or_take_out_base"), level="warning")
    elif (
        own is None and same and same.source
    ):  # one without a source was proposed, or made by a person: it is that file
        what = phrase(
            "campaign.base_same_as_known",
            file=file,
            known=_path_from_campaign_root(Path(same.source), root),
        )
        yield Mistake(what, path="loop.base", hint=phrase("campaign.drop_one_them"), level="warning")


def place_variant_copy(variant: Variant, root: Path) -> Variant:
    """With the copy as its config: beside those of later rounds, and named by what is in it."""
    suffix, mark = Path(variant.config).suffix, f"_{variant.digest[:6]}"
    name = variant.name if variant.name.endswith(mark) else variant.name + mark
    return replace(variant, config=str(root / LOOP_FOLDER / f"round-{variant.round}" / f"{name}{suffix}"))


def _config_files_of_entry(written: str, root: Path, place: str, mistakes: list[Mistake]) -> Iterator[Path]:
    if written.startswith(LIST_MARK):
        yield from _config_files_in_list(root / written[1:], root, place, mistakes)
        return
    names = sorted(glob_paths(written, root)) if glob.has_magic(written) else [written]
    if not names:
        mistakes.append(
            Mistake(
                phrase("campaign.no_file_fits", written=written),
                path=place,
                hint=suggest_config_name(written, root),
            )
        )
    for name in names:
        file = root / name
        if file.is_file():
            yield file
        elif not glob.has_magic(written):
            mistakes.append(
                Mistake(
                    phrase("campaign.config_does_not_exist", written=written),
                    path=place,
                    hint=suggest_config_name(written, root),
                )
            )


def _config_files_in_list(file: Path, root: Path, place: str, mistakes: list[Mistake]) -> Iterator[Path]:
    """One name on each line; empty ones and those that begin with # are passed over. Names are relative to the root."""
    try:
        lines = read_regular_file(file, LARGEST_RUN_CONFIG).decode("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else phrase("campaign.is_no_utf8")
        hint = phrase("campaign.save_list_as_utf8")
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            hint = suggest_config_name(_path_from_campaign_root(file, root), root)
        elif isinstance(error, OSError):
            hint = phrase("campaign.at_sign_names_list")
        mistakes.append(
            Mistake(
                phrase("campaign.list_unreadable", file=_path_from_campaign_root(file, root), reason=said),
                path=place,
                hint=hint,
            )
        )
        return
    missing = 0
    first: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        first.setdefault(line.strip(), number)
    for name, number in first.items():
        if not name or name.startswith("#"):
            continue
        if (root / name).is_file():
            yield root / name
        elif missing < MOST_MISSING:
            missing += 1
            said = phrase(
                "campaign.list_line_missing",
                file=_path_from_campaign_root(file, root),
                line=number,
                name=name,
            )
            mistakes.append(Mistake(said, path=place, hint=suggest_config_name(name, root)))
        else:
            said = phrase(
                "campaign.list_names_more_missing",
                file=_path_from_campaign_root(file, root),
                line=number,
            )
            mistakes.append(Mistake(said, path=place, hint=phrase("campaign.mend_those_first")))
            return


def read_config_text(file: Path) -> str:
    if file.stat().st_size > LARGEST_RUN_CONFIG:
        raise UnreadableConfig(phrase("campaign.config_too_large"))
    try:
        return read_regular_file(file, LARGEST_RUN_CONFIG).decode("utf-8")
    except UnicodeDecodeError:
        raise UnreadableConfig(phrase("campaign.is_no_utf8")) from None


def variant_from_file(file: Path, taken: set[str]) -> Variant:
    """A base config as a variant, named after its file."""
    text = read_config_text(file)
    digest = digest_config(parse_config(text, config_kind_of_file(file.name)).tree)
    name = re.sub(r"[^A-Za-z0-9_.+-]+", "-", file.name.rpartition(".")[0]).strip("-.") or "base"
    return Variant(name if name not in taken else f"{name}-{digest[:6]}", str(file), 1, digest)


def suggest_config_name(written: str, root: Path) -> str:
    """What a name that does not exist may stand for."""
    folder = (root / written).parent
    known = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    near = difflib.get_close_matches(Path(written).name, known, 1)
    return (
        phrase("campaign.near_path", near=Path(written).with_name(near[0]))
        if near
        else phrase("campaign.names_are_relative")
    )


def _path_from_campaign_root(file: Path, root: Path) -> str:
    return str(file.relative_to(root)) if file.is_relative_to(root) else str(file)


AXIS_CONFIG_FOLDER = "configs"  # in `.muster`


@dataclass(frozen=True, slots=True)
class AxisConfigs:
    """The campaign whose jobs know their config files, and the texts of those that are still to be written."""

    campaign: Campaign
    texts: Mapping[str, str]
    mistakes: tuple[Mistake, ...] = ()


@dataclass(frozen=True, slots=True)
class _AxisBase:
    path: str
    text: str
    kind: str
    digest: str  # of its values


def add_axis_configs(campaign: Campaign, root: Path) -> AxisConfigs:
    """Writes nothing. Every mistake is told, with its place in the campaign file."""
    texts: dict[str, str] = {}
    mistakes: list[Mistake] = []
    jobs = [_add_configs_to_job(campaign, job, root, texts, mistakes) if job.config else job for job in campaign.jobs]
    return AxisConfigs(replace(campaign, jobs=tuple(jobs)), texts, tuple(mistakes))


def _add_configs_to_job(
    campaign: Campaign, job: Job, root: Path, texts: dict[str, str], mistakes: list[Mistake]
) -> Job:
    try:
        base = _read_axis_base(job.config)
    except (OSError, UnreadableConfig) as error:
        mistakes.append(_unreadable_base_mistake(job, root, error))
        return job
    wrong = list(_check_edits_of_values(campaign, job, base))
    if wrong:
        mistakes += wrong
        return job
    configs: dict[str, str] = {}
    digests = {base.digest: phrase("campaign.base")}
    for key, edits in _edit_combinations(campaign, job):
        try:
            made = edit_config_text(base.text, base.kind, edits)
        except EditsRefused as refused:
            mistakes += [
                Mistake(
                    phrase("campaign.job_combination", job=job.name, combination=key, reason=each),
                    path=_place_of_job_config(job),
                )
                for each in refused.mistakes
            ]
            continue
        if key and (first := digests.setdefault(digest_config(made.tree), key)) != key:
            what = phrase("campaign.combinations_share_config", name=job.name, key=key, first=first)
            hint = phrase("campaign.two_names_one_config")
            mistakes.append(Mistake(what, path=_place_of_job_config(job), hint=hint, level="warning"))
        configs[key] = _axis_config_path(root, base, made.text)
        texts[configs[key]] = made.text
    return replace(job, configs=configs)


def _read_axis_base(path: str) -> _AxisBase:
    text, kind = read_config_text(Path(path)), config_kind_of_file(path)
    return _AxisBase(path, text, kind, digest_config(parse_config(text, kind).tree))


def _place_of_job_config(job: Job) -> str:
    return f"jobs.{job.name}.config"


def _unreadable_base_mistake(job: Job, root: Path, error: Exception) -> Mistake:
    name, missing = os.path.relpath(job.config, root), isinstance(error, OSError)
    said = error.strerror or str(error) if isinstance(error, OSError) else str(error)
    hint = suggest_config_name(name, root) if missing else phrase("campaign.must_be_config_format")
    return Mistake(
        phrase("campaign.job_config_unreadable", job=job.name, file=name, reason=said),
        path=_place_of_job_config(job),
        hint=hint,
    )


def _edit_combinations(campaign: Campaign, job: Job) -> Iterator[tuple[str, list[str]]]:
    """Each once, with its edits in the order of the job's axes."""
    seen: set[str] = set()
    for point in itertools.product(*(campaign.axis(name).values for name in job.axes)):
        key = edit_combination_key(zip(job.axes, point, strict=True))
        if key not in seen:
            seen.add(key)
            yield key, [edit for value in point for edit in value.edits]


def _check_edits_of_values(campaign: Campaign, job: Job, base: _AxisBase) -> Iterator[Mistake]:
    """Each value for itself: a mistake in one is told once, and where it stands."""
    for axis in job.axes:
        for value in campaign.axis(axis).values:
            for at, told in _refused_edits_of_value(value, base):
                yield Mistake(
                    join_phrases(": ", (f"{axis} {value.name}", told)), path=f"axes.{axis}.{value.name}.edits.{at}"
                )


def _refused_edits_of_value(value: AxisValue, base: _AxisBase) -> Iterator[tuple[int, str]]:
    good: list[str] = []
    for at, edit in enumerate(value.edits):
        try:
            edit_config_text(base.text, base.kind, [*good, edit])
            good.append(edit)
        except EditsRefused as refused:
            yield from ((at, each) for each in refused.mistakes)


def _axis_config_path(root: Path, base: _AxisBase, text: str) -> str:
    stem, suffix = os.path.splitext(os.path.basename(base.path))  # noqa: PTH119, PTH122 lexical
    return str(
        root / ".muster" / AXIS_CONFIG_FOLDER / f"{stem}-{hashlib.sha256(text.encode()).hexdigest()[:10]}{suffix}"
    )
