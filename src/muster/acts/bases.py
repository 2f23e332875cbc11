"""The configs that a loop begins with: files, globs, and lists of names as `loop propose` writes them."""

from __future__ import annotations

import difflib
import glob
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from muster.domain.errors import Mistake
from muster.domain.variants import Variant
from muster.rounds.config import UnreadableConfig, kind_of
from muster.rounds.names import digest_of
from muster.rounds.texts import read_config

LIST = "@"
MOST_BYTES = 16 << 20


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
                found[file] = variant_of(file, {each.name for each in found.values()})
            except (OSError, UnreadableConfig) as error:
                said = error.strerror or str(error) if isinstance(error, OSError) else str(error)
                mistakes.append(Mistake(f"{_told(file, root)}: {said}", path=place, hint="it must be a config file"))
    return list(found.values()), mistakes


def _files(written: str, root: Path, place: str, mistakes: list[Mistake]) -> Iterator[Path]:
    if written.startswith(LIST):
        yield from _listed(root / written[1:], root, place, mistakes)
        return
    names = sorted(glob.glob(written, root_dir=root, recursive=True)) if glob.has_magic(written) else [written]  # noqa: PTH207
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
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        mistakes.append(Mistake(f"the list {_told(file, root)} can't be read: {said}", path=place))
        return
    for number, line in enumerate(lines, 1):
        name = line.strip()
        if not name or name.startswith("#"):
            continue
        if (root / name).is_file():
            yield root / name
        else:
            said = f"{_told(file, root)}, line {number}: the config {name} does not exist"
            mistakes.append(Mistake(said, path=place, hint=near_config(name, root)))


def base_text(file: Path) -> str:
    if file.stat().st_size > MOST_BYTES:
        raise UnreadableConfig("it is larger than 16 MB")
    try:
        return file.read_bytes().decode("utf-8")
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
