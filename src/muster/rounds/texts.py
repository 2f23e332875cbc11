"""Edits of a config's text: the characters of the changed values and no others."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from muster.rounds.applying import apply_to
from muster.rounds.config import Config
from muster.rounds.edits import Edit, EditError, parse_edit
from muster.rounds.paths import PathError, Where, at_place, find, leaves, told

BOM = "\ufeff"


class EditsRefused(ValueError):
    """Edits that can't be carried out: every one of them, not only the first."""

    def __init__(self, mistakes: Sequence[str]) -> None:
        super().__init__("; ".join(mistakes))
        self.mistakes = tuple(mistakes)


@dataclass(frozen=True, slots=True)
class Change:
    where: Where
    old: Any
    new: Any
    edit: str
    note: str = ""

    @property
    def path(self) -> str:
        return told(self.where)

    @property
    def changes(self) -> bool:
        return not same(self.old, self.new)


@dataclass(frozen=True, slots=True)
class EditedText:
    text: str
    tree: Any
    changes: tuple[Change, ...]
    changed: tuple[Where, ...]  # the places that hold another value in the end; none: it is the same config


def read_config(text: str, kind: str) -> Config:
    """Raises UnreadableConfig. A byte order mark is no part of the config."""
    text = text.removeprefix(BOM)
    if kind == "json":
        from muster.rounds.text_json import read_json

        return read_json(text)
    if kind == "yaml":
        from muster.rounds.text_yaml import read_yaml

        return read_yaml(text)
    from muster.rounds.text_toml import read_toml

    return read_toml(text)


def edit_text(text: str, kind: str, edits: Sequence[str]) -> EditedText:
    """The text after these edits, one after the other. Raises with every mistake, and nothing is half done."""
    config = read_config(text, kind)
    before = copy.deepcopy(config.tree)
    changes, mistakes = carry_out(config, edits)
    if mistakes:
        raise EditsRefused(list(mistakes.values()))
    changed = tuple(differing(before, config.tree))
    made = _proven(config, _spliced(config, changed), changed) if changed else config.text
    return EditedText((BOM if text.startswith(BOM) else "") + made, config.tree, tuple(changes), changed)


def carry_out(config: Config, edits: Sequence[str]) -> tuple[list[Change], dict[int, str]]:
    """Changes the tree and not the text; the mistakes by the edit's number, from 0: those edits change nothing."""
    changes: list[Change] = []
    mistakes: dict[int, str] = {}
    for at, written in enumerate(edits):
        try:
            changes += _carry_out(config, parse_edit(written))
        except (EditError, PathError) as error:
            mistakes[at] = str(error)
    return changes, mistakes


def _carry_out(config: Config, edit: Edit) -> list[Change]:
    places = find(edit.path, config.tree)
    for where in places:
        if elsewhere := config.elsewhere(where):
            why = f"{told(where)} {elsewhere}: other values would change with it"
            raise EditError(f"{edit.text}: {why}; write it out first")
    changes = _all_changed(config, edit, places)
    for change in changes:
        parent = at_place(config.tree, change.where[:-1])
        parent[change.where[-1]] = copy.deepcopy(change.new)
        config.notes.pop(change.where, None)
    return changes


def _all_changed(config: Config, edit: Edit, places: Sequence[Where]) -> list[Change]:
    changes: list[Change] = []
    mistakes: list[str] = []
    for where in places:
        try:
            changes.append(_changed(config, edit, where))
        except EditError as error:
            seen = config.notes.get(where)
            mistakes.append(
                f"{error}; {seen}: if a text is meant, put it in quotes in the file" if seen else str(error)
            )
    if mistakes:
        more = f" (and so for {len(mistakes) - 1} more of {len(places)} places)" if len(mistakes) > 1 else ""
        raise EditError(mistakes[0] + more)
    return changes


def _changed(config: Config, edit: Edit, where: Where) -> Change:
    old = copy.deepcopy(at_place(config.tree, where))
    made = apply_to(edit, old, told(where))
    if lacks := _lacks(config.kind, made.value):
        raise EditError(f"{edit.text}: {lacks}; give {told(where)} another value")
    note = "; ".join(filter(None, [made.note, config.notes.get(where)]))
    return Change(where, old, made.value, edit.text, note)


def _lacks(kind: str, value: Any) -> str:
    """What a file of this kind can't say."""
    if not _whole_characters(value):
        return "it holds half a character (a lone surrogate)"
    found = [at_place(value, where) for where in leaves(value)]
    if kind == "json" and any(isinstance(each, float) and not math.isfinite(each) for each in found):
        return "JSON has no NaN and no Infinity"
    return "TOML has no null" if kind == "toml" and None in found else ""


def _whole_characters(value: Any) -> bool:
    try:
        return bool(json.dumps(value, ensure_ascii=False, default=str).encode())
    except UnicodeEncodeError:
        return False


def differing(before: Any, after: Any, where: Where = ()) -> Iterator[Where]:
    """The places whose values differ, as deep down as the two are built alike."""
    if isinstance(before, dict) and isinstance(after, dict) and before and list(before) == list(after):
        for key in before:
            yield from differing(before[key], after[key], (*where, key))
    elif isinstance(before, list) and isinstance(after, list) and before and len(before) == len(after):
        for at, each in enumerate(before):
            yield from differing(each, after[at], (*where, at))
    elif not same(before, after):
        yield where


def same(one: Any, other: Any) -> bool:
    """1 is not 1.0 and not true; NaN is NaN; the order of keys is no difference."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other) or (isinstance(one, float) and math.isnan(one) and math.isnan(other))


def shown(value: Any, most: int = 48) -> str:
    """A value for a table or a sentence."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= most else text[: most - 3] + "..."


def _spliced(config: Config, changed: Sequence[Where]) -> str:
    if config.kind == "toml":
        from muster.rounds.text_toml import write_toml

        return write_toml(config, changed)
    pieces: list[str] = []
    done = 0
    for (start, end), where in sorted({_with_span(config, where) for where in changed}):
        pieces += [config.text[done:start], _written(config, where)]
        done = end
    return "".join([*pieces, config.text[done:]])


def _with_span(config: Config, where: Where) -> tuple[tuple[int, int], Where]:
    """Where it stands; what comes from elsewhere is written out with the whole that holds it."""
    while where not in config.spans:
        where = where[:-1]
    return config.spans[where], where


def _written(config: Config, where: Where) -> str:
    value = at_place(config.tree, where)
    if config.kind == "yaml":
        from muster.rounds.text_yaml import written

        return written(config, where, value)
    return json.dumps(value, ensure_ascii=False)


def _proven(config: Config, text: str, changed: Sequence[Where]) -> str:
    """What was written is read again: a form that would mean something else never leaves this room."""
    try:
        if same(read_config(text, config.kind).tree, config.tree):
            return text
    except ValueError:
        pass
    names = ", ".join(told(where) or "the whole" for where in changed[:3])
    raise EditsRefused([f"{names} can't be written in the form that the file has there; change it in the file itself"])
