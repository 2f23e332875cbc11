"""`muster edit`: writes one variant of a config as a new file beside its base, with a line that says when, from what
and why it was made.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muster.app.campaign.run_configs import VARIANTS_FILE, read_variant_records
from muster.engine.ports.clock import Clock, SystemClock
from muster.files.atomic_write import mode_no_wider_than, open_to_append, write_partial_file
from muster.files.json_codec import plain_value
from muster.files.safe_open import read_regular_file
from muster.model.calendar import format_iso_time
from muster.model.errors import MusterError, UsageError
from muster.rules.config_paths import UnreadableConfig, config_kind_of_file
from muster.rules.edit_config import (
    ConfigChange,
    EditedText,
    EditsRefused,
    digest_config,
    edit_config_text,
    make_variant_name,
    parse_config,
    show_config_value,
    stem_without_digest,
)
from muster.text.phrases import phrase

LARGEST_BASE = 4 << 20  # bytes: no config is larger, and a log is soon mistaken for one


@dataclass(frozen=True, slots=True)
class MadeVariant:
    """A variant that was written."""

    path: Path
    parent: Path
    edits: tuple[str, ...]
    changes: tuple[ConfigChange, ...]
    reason: str
    digest: str  # of its values
    parent_digest: str
    at: str
    record: Path  # the file that remembers it


@dataclass(frozen=True, slots=True)
class _BaseConfig:
    path: Path
    text: str
    kind: str
    digest: str


def write_edited_variant(
    base: Path,
    changes: Sequence[str],
    reason: str,
    at: str,
    out: Path | None = None,
    *,
    tried: Mapping[str, str] | None = None,
) -> MadeVariant:
    """Writes it, or raises and writes nothing. The base is only read.

    `tried`: it is to be run, and these were (digest -> name); one that was only made before is taken up.
    """
    if not reason.strip():
        raise UsageError("the reason is empty", hint="say why it is tried: --reason 'OT mass too small'")
    if not changes:
        raise UsageError("there is nothing to change", hint="for example: --change 'model.lr@mul=0.5'")
    found = _read_base_config(base)
    variant = _edit_base_config(found, changes)
    digest = digest_config(variant.tree)
    if tried and digest in tried:
        hint = "change something else; `muster retry` runs a cell again"
        raise UsageError(f"this very config was run already, as {tried[digest]}", where=str(base), hint=hint)
    path, written = _choose_variant_path(found, digest, out, again=tried is not None)
    record = path.parent / VARIANTS_FILE
    made = MadeVariant(path, base, tuple(changes), variant.changes, reason.strip(), digest, found.digest, at, record)
    with _explain_edit_write_errors(path):
        if not written:
            _write_without_overwriting(path, variant.text.encode(), mode_no_wider_than(base))
        _append_variant_record(record, _make_variant_record(made), mode_no_wider_than(base))
    return made


# -- what is read


def _read_base_config(base: Path) -> _BaseConfig:
    try:
        if base.is_dir():
            raise UsageError(f"{base} is a folder", where=str(base), hint="name the config file in it")
        kind = config_kind_of_file(base.name)
        if not base.is_file() and base.exists():
            raise UsageError(f"{base} is no file", where=str(base), hint="name a config: .json, .yaml, .yml or .toml")
        size = base.stat().st_size
        if size > LARGEST_BASE:
            what = f"{base.name} has {size} bytes: that is no config"
            raise UsageError(what, where=str(base), hint=f"files up to {LARGEST_BASE} bytes are read")
        text = read_regular_file(base, LARGEST_BASE).decode("utf-8")
        return _BaseConfig(base, text, kind, digest_config(parse_config(text, kind).tree))
    except UnreadableConfig as error:
        raise UsageError(f"{base.name} can't be edited: {error}", where=str(base), hint="nothing was written") from None
    except UnicodeDecodeError as error:
        what = f"{base.name} can't be edited: byte {error.start + 1} is no UTF-8"
        raise UsageError(what, where=str(base), hint="save it as UTF-8") from None
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"there is no file {base}", where=str(base), hint=_suggest_base_name(base)) from None


def _suggest_base_name(base: Path) -> str:
    names: list[str] = []
    with contextlib.suppress(OSError):
        names = [each.name for each in base.parent.iterdir() if each.is_file()]
    near = difflib.get_close_matches(base.name, names, 1)
    return f"did you mean {base.parent / near[0]}?" if near else "name a config: .json, .yaml, .yml or .toml"


def _edit_base_config(base: _BaseConfig, changes: Sequence[str]) -> EditedText:
    try:
        variant = edit_config_text(base.text, base.kind, changes)
    except EditsRefused as refused:
        told = list(refused.mistakes)
        some = f"{len(told)} of {phrase('count.change', n=len(changes))} can't be made:\n  " + "\n  ".join(told)
        raise UsageError(
            told[0] if len(told) == 1 else some, where=str(base.path), hint="nothing was written; fix it and try again"
        ) from None
    if not variant.changed:
        places = "; ".join(
            f"{each.path} stays {show_config_value(each.new)}{_bracket_change_note(each)}" for each in variant.changes
        )
        raise UsageError(
            f"the variant would be the same config: {places}", where=str(base.path), hint="change something"
        )
    return variant


def _bracket_change_note(change: ConfigChange) -> str:
    return f" ({change.note})" if change.note else ""


# -- where it goes


def _choose_variant_path(base: _BaseConfig, digest: str, out: Path | None, *, again: bool) -> tuple[Path, bool]:
    """The path, and whether it stands there already: left by a command that died, or made before (`again`)."""
    if out is not None:
        return _check_out_path(base, out), False
    root = stem_without_digest(base.path.stem, base.digest)
    taken: set[str] = set()
    while True:
        name = make_variant_name(root, digest, taken)
        path = base.path.with_name(f"{name}{base.path.suffix}")
        if not os.path.lexists(path):
            return path, False
        if _digest_of_config_file(path, base.kind) == digest:
            return path if again else _refuse_recorded_variant(path), True
        taken.add(name)


def _check_out_path(base: _BaseConfig, out: Path) -> Path:
    try:
        kind = config_kind_of_file(out.name)
    except UnreadableConfig as error:
        raise UsageError(f"--out: {error}", hint=f"name it as its base is named: *{base.path.suffix}") from None
    if kind != base.kind:
        hint = f"name it *{base.path.suffix}; a variant is written in the form of its base"
        raise UsageError(f"--out: {out.name} would be {kind}, and its base is {base.kind}", hint=hint)
    if os.path.lexists(out):
        raise UsageError(f"{out} exists already; nothing is overwritten", where=str(out), hint="choose another name")
    if not out.parent.is_dir():
        raise UsageError(
            f"there is no folder {out.parent}", where=str(out), hint=f"make it first: mkdir -p {out.parent}"
        )
    return out


def _digest_of_config_file(path: Path, kind: str) -> str:
    try:
        return digest_config(parse_config(read_regular_file(path, LARGEST_BASE).decode("utf-8"), kind).tree)
    except (OSError, ValueError):
        return ""


def _refuse_recorded_variant(path: Path) -> Path:
    for line in reversed(list(read_variant_records(path.parent / VARIANTS_FILE))):
        if line.get("path") == path.name:
            made = f"made {str(line.get('at', ''))[:16].replace('T', ' ')}, because: {line.get('reason', '')}"
            what = f"this very config exists already: {path.name}, {made}"
            raise UsageError(what, where=str(path), hint="use that one, or change something else")
    return path


# -- what is written


def _write_without_overwriting(path: Path, data: bytes, mode: int) -> None:
    """Whole or not at all, and never over something that is there."""
    partial = write_partial_file(path, data, mode=mode, sync=True)
    try:
        try:
            os.link(partial, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            with open(path, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
    finally:
        partial.unlink(missing_ok=True)


def _append_variant_record(record: Path, line: Mapping[str, Any], mode: int) -> None:
    """A line that a crash tore stays alone on its line."""
    text = json.dumps(plain_value(line), ensure_ascii=False) + "\n"
    with open(open_to_append(record, mode, os.O_RDWR), "ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            text = text if file.read(1) == b"\n" else "\n" + text
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def _explain_edit_write_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError:
        hint = "somebody else made it just now; try again"
        raise UsageError(f"{path} exists already; nothing is overwritten", where=str(path), hint=hint) from None
    except OSError as error:
        told = f"the variant could not be written: {error.strerror or error}"
        raise MusterError(told, where=str(error.filename or path), hint="fix it and try again") from None


# -- as it is told


def _make_variant_record(made: MadeVariant) -> dict[str, Any]:
    """Paths are relative to the record: a folder of configs may move."""
    folder = made.record.parent
    return {**made_variant_as_json(made), "path": made.path.name, "parent": os.path.relpath(made.parent, folder)}


def made_variant_as_json(made: MadeVariant) -> dict[str, Any]:
    changes = [
        {
            "path": each.path,
            "old": _json_safe_config_value(each.old),
            "new": _json_safe_config_value(each.new),
            "edit": each.edit,
            "note": each.note,
        }
        for each in made.changes
    ]
    return {
        "muster": 1,
        "path": str(made.path.absolute()),
        "parent": str(made.parent.absolute()),
        "edits": list(made.edits),
        "changes": changes,
        "reason": made.reason,
        "digest": made.digest,
        "parent_digest": made.parent_digest,
        "at": made.at,
    }


def _json_safe_config_value(value: Any) -> Any:
    """JSON has no NaN, and no dates."""
    if isinstance(value, dict):
        return {key: _json_safe_config_value(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_json_safe_config_value(each) for each in value]
    finite = not isinstance(value, float) or math.isfinite(value)
    return value if finite and isinstance(value, str | int | float | None) else str(value)


def write_variant_now(
    base: Path,
    changes: Sequence[str],
    reason: str,
    out: Path | None,
    clock: Clock | None = None,
    *,
    tried: Mapping[str, str] | None = None,
) -> MadeVariant:
    return write_edited_variant(
        base, changes, reason, format_iso_time((clock or SystemClock()).wall()), out, tried=tried
    )
