"""The configs that a loop begins with: files, globs, and lists of names as `loop propose` writes them."""

from __future__ import annotations

import difflib
import glob
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from muster.acts.edit import VARIANTS, read_variants
from muster.domain.errors import Mistake
from muster.domain.state import CampaignState
from muster.domain.variants import AXIS, LoopRecord, Variant
from muster.ports.folders import glob_paths
from muster.ports.regular_files import read_regular
from muster.rounds.applying import kind as kind_of_value
from muster.rounds.config import UnreadableConfig, kind_of
from muster.rounds.names import digest_of
from muster.rounds.texts import read_config

LIST = "@"
FOLDER = "loop"  # the configs of all rounds
MOST_BYTES = 16 << 20
MOST_MISSING = 100  # names of a list that each get a mistake of their own


def base_variants(loop: Mapping[str, Any], root: Path) -> tuple[list[Variant], list[Mistake]]:
    """Each file once, in the order of the campaign file; every mistake, with its path in that file."""
    found: dict[Path, Variant] = {}
    mistakes: list[Mistake] = []
    for at, written in enumerate(loop["base"]):
        place = f"loop.base.{at}"
        for file in _files(str(written), root, place, mistakes):
            if file in found:
                continue
            try:
                _refuse_no_mapping(file)
                found[file] = variant_of(file, {each.name for each in found.values()})
            except (OSError, UnreadableConfig) as error:
                said = error.strerror or str(error) if isinstance(error, OSError) else str(error)
                mistakes.append(Mistake(f"{_told(file, root)}: {said}", path=place, hint="it must be a config file"))
    return list(found.values()), mistakes


def _refuse_no_mapping(file: Path) -> None:
    """A list or a lone value can be read and is no config: no path of an edit has a name in it."""
    tree = read_config(base_text(file), kind_of(file.name)).tree
    if not isinstance(tree, dict):
        found = "it is empty" if tree is None else f"it is {kind_of_value(tree)}, not a mapping"
        raise UnreadableConfig(f"{found}: a config has keys")


@dataclass(frozen=True, slots=True)
class Kept:
    """The bases as they are run: copies, because a person may go on with the file while it waits for a slot."""

    variants: tuple[Variant, ...]
    texts: Mapping[str, str]  # path -> text, of copies that are still to be written
    warnings: tuple[Mistake, ...]
    mended: tuple[Variant, ...] = ()  # known ones that never ran well, with the config that their file has now


def kept(bases: Sequence[Variant], record: LoopRecord, root: Path, stays: Mapping[str, str] | None = None) -> Kept:
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
            mended.append(_placed(base, own.name, record, root))
            warnings.append(_told_mended(base, own, root))
        elif own or same:
            warnings += _told_again(base, own, same, fixed, root)
        else:
            name = base.name if base.name not in names else f"{base.name}-{base.digest[:6]}"
            names.add(name)
            variants.append(_placed(base, name, record, root))
    every = (*record.variants, *variants, *mended)
    variants, mended = ([_with_origin(each, every) for each in some] for some in (variants, mended))
    texts = {each.config: base_text(Path(each.source)) for each in (*variants, *mended)}
    return Kept(tuple(variants), texts, tuple(warnings), tuple(mended))


def _placed(base: Variant, name: str, record: LoopRecord, root: Path) -> Variant:
    return copied(replace(base, name=name, round=max(1, record.round), source=base.config), root)


def _with_origin(base: Variant, every: Sequence[Variant]) -> Variant:
    """With parent, edits and reason, if `muster edit` made its file and nobody has changed it since."""
    file = Path(base.source)
    for line in read_variants(file.parent / VARIANTS):
        if line.get("path") == file.name and line.get("digest") == base.digest:
            was = line.get("parent_digest")
            parent = next((each.name for each in every if each.digest == was and each.name != base.name), None)
            edits = tuple(map(str, line.get("edits", ())))
            base = replace(base, parent=parent, edits=edits, reason=str(line.get("reason", "")))
    return base


def unmendable(state: CampaignState) -> dict[str, str]:
    """Variants whose config something rests on, each with what it is."""
    found = {each.parent: "others were made from it" for each in state.loop.variants if each.parent}
    found |= {each.name: "it is no base" for each in state.loop.variants if not each.source}
    for record in state.cells.values():
        for axis, value in record.cell.values:
            if axis == AXIS and record.open:
                found[value.name] = "a run of it is not over"
            elif axis == AXIS and any(attempt.was_done for attempt in record.attempts):
                found[value.name] = "it has a good run"
    return found


def with_mended(variants: Sequence[Variant], mended: Sequence[Variant]) -> list[Variant]:
    """Each in its place."""
    instead = {each.name: each for each in mended}
    return [instead.get(each.name, each) for each in variants]


def _told_mended(base: Variant, own: Variant, root: Path) -> Mistake:
    what = f"{_told(Path(base.config), root)} was mended: {own.name} runs with it, for it never had a good run"
    hint = f"what ran before had {_told(Path(own.config), root)}, which stays"
    return Mistake(what, path="loop.base", hint=hint, level="warning")


def _told_again(
    base: Variant, own: Variant | None, same: Variant | None, stays: Mapping[str, str], root: Path
) -> Iterator[Mistake]:
    """Of a file that was taken in before (`own`), or whose values are another's (`same`)."""
    file = _told(Path(base.config), root)
    if own and own.digest != base.digest and not (same and own.name not in stays):
        what = f"{file} has changed since it was taken in: {own.name} stays as it was"
        because = f", for {why}" if (why := stays.get(own.name)) else ""
        hint = (
            f"it goes with {_told(Path(own.config), root)}{because}; to try the new values give the file another name"
        )
        yield Mistake(what, path="loop.base", hint=hint, level="warning")
    elif own and same and same is not own:
        what = f"{file} is the same config as {same.name} now, and {own.name} stays as it was"
        yield Mistake(what, path="loop.base", hint="change it, or take it out of `base:`", level="warning")
    elif (
        own is None and same and same.source
    ):  # one without a source was proposed, or made by a person: it is that file
        what = f"{file} is the same config as {_told(Path(same.source), root)}, and is not run again"
        yield Mistake(what, path="loop.base", hint="drop one of them", level="warning")


def copied(variant: Variant, root: Path) -> Variant:
    """With the copy as its config: beside those of later rounds, and named by what is in it."""
    suffix, mark = Path(variant.config).suffix, f"_{variant.digest[:6]}"
    name = variant.name if variant.name.endswith(mark) else variant.name + mark
    return replace(variant, config=str(root / FOLDER / f"round-{variant.round}" / f"{name}{suffix}"))


def _files(written: str, root: Path, place: str, mistakes: list[Mistake]) -> Iterator[Path]:
    if written.startswith(LIST):
        yield from _listed(root / written[1:], root, place, mistakes)
        return
    names = sorted(glob_paths(written, root)) if glob.has_magic(written) else [written]
    if not names:
        mistakes.append(
            Mistake(f"a file that fits {written} does not exist", path=place, hint=near_config(written, root))
        )
    for name in names:
        file = root / name
        if file.is_file():
            yield file
        elif not glob.has_magic(written):
            mistakes.append(
                Mistake(f"the config {written} does not exist", path=place, hint=near_config(written, root))
            )


def _listed(file: Path, root: Path, place: str, mistakes: list[Mistake]) -> Iterator[Path]:
    """One name on each line; empty ones and those that begin with # are passed over. Names are relative to the root."""
    try:
        lines = read_regular(file, MOST_BYTES).decode("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        hint = "save it as UTF-8, one name on each line"
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            hint = near_config(_told(file, root), root)
        elif isinstance(error, OSError):
            hint = "@ stands before a text file with the name of one config on each line"
        mistakes.append(Mistake(f"the list {_told(file, root)} can't be read: {said}", path=place, hint=hint))
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
            said = f"{_told(file, root)}, line {number}: the config {name} does not exist"
            mistakes.append(Mistake(said, path=place, hint=near_config(name, root)))
        else:
            said = f"{_told(file, root)}, from line {number} on, may name more that do not exist"
            mistakes.append(Mistake(said, path=place, hint="mend those before it first"))
            return


def base_text(file: Path) -> str:
    if file.stat().st_size > MOST_BYTES:
        raise UnreadableConfig("it is larger than 16 MB")
    try:
        return read_regular(file, MOST_BYTES).decode("utf-8")
    except UnicodeDecodeError:
        raise UnreadableConfig("it is no UTF-8 text") from None


def variant_of(file: Path, taken: set[str]) -> Variant:
    """A base config as a variant, named after its file."""
    text = base_text(file)
    digest = digest_of(read_config(text, kind_of(file.name)).tree)
    name = re.sub(r"[^A-Za-z0-9_.+-]+", "-", file.name.rpartition(".")[0]).strip("-.") or "base"
    return Variant(name if name not in taken else f"{name}-{digest[:6]}", str(file), 1, digest)


def near_config(written: str, root: Path) -> str:
    """What a name that does not exist may stand for."""
    folder = (root / written).parent
    known = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    near = difflib.get_close_matches(Path(written).name, known, 1)
    return (
        f"did you mean {Path(written).with_name(near[0])}?" if near else "names are relative to the campaign's folder"
    )


def _told(file: Path, root: Path) -> str:
    return str(file.relative_to(root)) if file.is_relative_to(root) else str(file)
