"""Edits a config's text: the characters of the changed values and no others. The variant gets a short name, unique
and the same for the same config.
"""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from muster.rules.config_paths import (
    ConfigPlace,
    ParsedConfig,
    PathError,
    find_config_places,
    format_config_path,
    iterate_leaves,
    value_at_place,
)
from muster.rules.edits import Edit, EditError, apply_edit_to_value, parse_edit

NAME_DIGEST_DIGITS = 6  # of the digest
LONGEST_STEM = 80  # characters of the stem: a name becomes a part of a cell and of file names
_UNSAFE_IN_NAME = re.compile(r"[^A-Za-z0-9_.-]+")


def digest_config(tree: Any) -> str:
    """Of the values, however they are written and in whatever order the keys are; 1 and 1.0 differ."""
    import hashlib

    text = json.dumps(tree, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def stem_without_digest(stem: str, content_digest: str) -> str:
    """Without what an earlier edit put behind it: a variant of `base_1c9f3a` is no `base_1c9f3a_77de01`.

    `content_digest` is that of the config which has this name: only so it is known to be a variant's name.
    """
    head, _, tail = stem.rpartition("_")
    return head if head and len(tail) >= NAME_DIGEST_DIGITS and content_digest.startswith(tail) else stem


def make_variant_name(base_stem: str, content_digest: str, taken: Collection[str] = ()) -> str:
    """`base_1c9f3a`, with more of the digest where another config has that name already."""
    stem = _UNSAFE_IN_NAME.sub("-", base_stem).lstrip(".-")[:LONGEST_STEM].rstrip(".-") or "variant"
    for digits in range(NAME_DIGEST_DIGITS, len(content_digest)):
        name = f"{stem}_{content_digest[:digits]}"
        if name not in taken:
            return name
    return f"{stem}_{content_digest}"


BOM = "\ufeff"


class EditsRefused(ValueError):
    """Edits that can't be carried out: every one of them, not only the first."""

    def __init__(self, mistakes: Sequence[str]) -> None:
        super().__init__("; ".join(mistakes))
        self.mistakes = tuple(mistakes)


@dataclass(frozen=True, slots=True)
class ConfigChange:
    where: ConfigPlace
    old: Any
    new: Any
    edit: str
    note: str = ""

    @property
    def path(self) -> str:
        return format_config_path(self.where)

    @property
    def changes(self) -> bool:
        return not is_same_config_value(self.old, self.new)


@dataclass(frozen=True, slots=True)
class EditedText:
    text: str
    tree: Any
    changes: tuple[ConfigChange, ...]
    changed: tuple[ConfigPlace, ...]  # the places that hold another value in the end; none: it is the same config


def parse_config(text: str, kind: str) -> ParsedConfig:
    """Raises UnreadableConfig. A byte order mark is no part of the config."""
    text = text.removeprefix(BOM)
    if kind == "json":
        from muster.rules.config_formats import parse_json_config

        return parse_json_config(text)
    if kind == "yaml":
        from muster.rules.config_formats import parse_yaml_config

        return parse_yaml_config(text)
    from muster.rules.config_formats import parse_toml_config

    return parse_toml_config(text)


def edit_config_text(text: str, kind: str, edits: Sequence[str]) -> EditedText:
    """The text after these edits, one after the other. Raises with every mistake, and nothing is half done."""
    config = parse_config(text, kind)
    before = copy.deepcopy(config.tree)
    changes, mistakes = apply_edits_to_config(config, edits)
    if mistakes:
        raise EditsRefused(list(mistakes.values()))
    changed = tuple(differing_places(before, config.tree))
    made = _verify_written_config(config, _splice_changes(config, changed), changed) if changed else config.text
    return EditedText((BOM if text.startswith(BOM) else "") + made, config.tree, tuple(changes), changed)


def apply_edits_to_config(config: ParsedConfig, edits: Sequence[str]) -> tuple[list[ConfigChange], dict[int, str]]:
    """Changes the tree and not the text; the mistakes by the edit's number, from 0: those edits change nothing."""
    changes: list[ConfigChange] = []
    mistakes: dict[int, str] = {}
    for at, written in enumerate(edits):
        try:
            changes += _apply_edit_to_config(config, parse_edit(written))
        except (EditError, PathError) as error:
            mistakes[at] = str(error)
    return changes, mistakes


def _apply_edit_to_config(config: ParsedConfig, edit: Edit) -> list[ConfigChange]:
    places = find_config_places(edit.path, config.tree)
    for where in places:
        if elsewhere := config.elsewhere(where):
            why = f"{format_config_path(where)} {elsewhere}: other values would change with it"
            raise EditError(f"{edit.text}: {why}; write it out first")
    changes = _changes_at_places(config, edit, places)
    for change in changes:
        parent = value_at_place(config.tree, change.where[:-1])
        parent[change.where[-1]] = copy.deepcopy(change.new)
        config.notes.pop(change.where, None)
    return changes


def _changes_at_places(config: ParsedConfig, edit: Edit, places: Sequence[ConfigPlace]) -> list[ConfigChange]:
    changes: list[ConfigChange] = []
    mistakes: list[str] = []
    for where in places:
        try:
            changes.append(_change_at_place(config, edit, where))
        except EditError as error:
            seen = config.notes.get(where)
            mistakes.append(
                f"{error}; {seen}: if a text is meant, put it in quotes in the file" if seen else str(error)
            )
    if mistakes:
        more = f" (and so for {len(mistakes) - 1} more of {len(places)} places)" if len(mistakes) > 1 else ""
        raise EditError(mistakes[0] + more)
    return changes


def _change_at_place(config: ParsedConfig, edit: Edit, where: ConfigPlace) -> ConfigChange:
    old = copy.deepcopy(value_at_place(config.tree, where))
    made = apply_edit_to_value(edit, old, format_config_path(where))
    if lacks := _explain_unsupported_value(config.kind, made.value):
        raise EditError(f"{edit.text}: {lacks}; give {format_config_path(where)} another value")
    note = "; ".join(filter(None, [made.note, config.notes.get(where)]))
    return ConfigChange(where, old, made.value, edit.text, note)


def _explain_unsupported_value(kind: str, value: Any) -> str:
    """What a file of this kind can't say."""
    if not _is_encodable(value):
        return "it holds half a character (a lone surrogate)"
    found = [value_at_place(value, where) for where in iterate_leaves(value)]
    if kind == "json" and any(isinstance(each, float) and not math.isfinite(each) for each in found):
        return "JSON has no NaN and no Infinity"
    return "TOML has no null" if kind == "toml" and None in found else ""


def _is_encodable(value: Any) -> bool:
    try:
        return bool(json.dumps(value, ensure_ascii=False, default=str).encode())
    except UnicodeEncodeError:
        return False


def differing_places(before: Any, after: Any, where: ConfigPlace = ()) -> Iterator[ConfigPlace]:
    """The places whose values differ, as deep down as the two are built alike."""
    if isinstance(before, dict) and isinstance(after, dict) and before and list(before) == list(after):
        for key in before:
            yield from differing_places(before[key], after[key], (*where, key))
    elif isinstance(before, list) and isinstance(after, list) and before and len(before) == len(after):
        for at, each in enumerate(before):
            yield from differing_places(each, after[at], (*where, at))
    elif not is_same_config_value(before, after):
        yield where


def is_same_config_value(one: Any, other: Any) -> bool:
    """1 is not 1.0 and not true; NaN is NaN; the order of keys is no difference."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(is_same_config_value(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(is_same_config_value, one, other))
    return bool(one == other) or (isinstance(one, float) and math.isnan(one) and math.isnan(other))


def show_config_value(value: Any, most: int = 48) -> str:
    """A value for a table or a sentence."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= most else text[: most - 3] + "..."


def _splice_changes(config: ParsedConfig, changed: Sequence[ConfigPlace]) -> str:
    if config.kind == "toml":
        from muster.rules.config_formats import format_toml_config

        return format_toml_config(config, changed)
    pieces: list[str] = []
    done = 0
    for (start, end), where in sorted({_nearest_span(config, where) for where in changed}):
        pieces += [config.text[done:start], _format_value_at_place(config, where)]
        done = end
    return "".join([*pieces, config.text[done:]])


def _nearest_span(config: ParsedConfig, where: ConfigPlace) -> tuple[tuple[int, int], ConfigPlace]:
    """Where it stands; what comes from elsewhere is written out with the whole that holds it."""
    while where not in config.spans:
        where = where[:-1]
    return config.spans[where], where


def _format_value_at_place(config: ParsedConfig, where: ConfigPlace) -> str:
    value = value_at_place(config.tree, where)
    if config.kind == "yaml":
        from muster.rules.config_formats import format_yaml_value

        return format_yaml_value(config, where, value)
    return json.dumps(value, ensure_ascii=False)


def _verify_written_config(config: ParsedConfig, text: str, changed: Sequence[ConfigPlace]) -> str:
    """What was written is read again: a form that would mean something else never leaves this room."""
    try:
        if is_same_config_value(parse_config(text, config.kind).tree, config.tree):
            return text
    except ValueError:
        pass
    names = ", ".join(format_config_path(where) or "the whole" for where in changed[:3])
    raise EditsRefused([f"{names} can't be written in the form that the file has there; change it in the file itself"])
