"""What pydantic found, in plain words and with its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from muster.domain.errors import Mistake
from muster.spec.document import Document, Path, Scalar, Table, describe, dotted
from muster.spec.fields import LIST, MAP, ONE, closest, hint_for
from muster.spec.shape import example_of, known_keys

_TAGS = {LIST, MAP, ONE}
_SHAPES = {"model_type": "a mapping", "dict_type": "a mapping", "list_type": "a list"}
_BOUNDS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}


def mistakes_of(error: ValidationError, document: Document) -> list[Mistake]:
    """One mistake per error; a key that is missing because it is misspelt is told once, as misspelt."""
    errors = error.errors(include_url=False)
    unknown = [
        (item["loc"][:-1], _mistake(item, document).hint) for item in errors if item["type"] == "extra_forbidden"
    ]
    missing = {item["loc"] for item in errors if item["type"] == "missing"}
    misspelt = {loc for loc in missing if (loc[:-1], closest(str(loc[-1]), [str(loc[-1])])) in unknown}
    return [_mistake(item, document) for item in errors if item["loc"] not in misspelt]


def paths_of(error: ValidationError) -> list[Path]:
    return [path_of(item["loc"]) for item in error.errors(include_url=False, include_input=False)]


def path_of(loc: tuple[int | str, ...]) -> Path:
    return tuple(part for part in loc if part not in _TAGS)


def _mistake(item: Any, document: Document) -> Mistake:
    path = path_of(item["loc"])
    kind, context = item["type"], item.get("ctx", {})
    if kind == "missing":
        return _missing(path, document)
    if kind == "extra_forbidden":
        return _unknown(path, document, known_keys(path[:-1]))
    line, column = document.place(path)
    what, hint = _words(dotted(path), kind, context, item["msg"], document.get(path) or item.get("input"))
    return Mistake(what, line, column, hint or _example(path), dotted(path))


def _example(path: Path) -> str:
    example = example_of(path)
    return f"for example `{path[-1]}: {example}`" if example else ""


def _missing(path: Path, document: Document) -> Mistake:
    parent, key = path[:-1], str(path[-1])
    if not parent:
        hint = "add `muster: 1` as the first line" if key == "muster" else f"add `{key}:`"
        return Mistake(f"the key '{key}' is missing", 1, 1, hint, key)
    line, column = document.place(parent, key=True)
    return Mistake(f"'{key}' is missing in {dotted(parent)}", line, column, f"add `{key}:`", dotted(path))


def _unknown(path: Path, document: Document, known: list[str]) -> Mistake:
    line, column = document.place(path, key=True)
    name = str(path[-1])
    place = f" in {dotted(path[:-1])}" if len(path) > 1 else ""
    node = document.get(path[:-1])
    used = {key.text for key, _ in node.entries} if isinstance(node, Table) else set()
    hint = _cut_in_two(node, name) or closest(name, [key for key in known if key not in used] or known)
    return Mistake(
        f"unknown key '{name}'{place}", line, column, hint or f"known keys: {', '.join(known)}", dotted(path)
    )


def _cut_in_two(node: object, name: str) -> str:
    """`{when: window("x", 10).mean > 5}`: a comma in braces ends a value, and what follows is taken for a key."""
    if not isinstance(node, Table):
        return ""
    names = [key.text for key, _ in node.entries]
    before = node.entries[names.index(name) - 1] if name in names and names.index(name) else None
    if before is None or not isinstance(before[1], Scalar) or before[1].quoted:
        return ""
    text = before[1].text
    if text.count("(") <= text.count(")") and text.count("[") <= text.count("]"):
        return ""
    what = "the condition" if before[0].text == "when" else f"the value of '{before[0].text}'"
    return f"put {what} in quotes: a comma inside {{ }} ends it, as in {before[0].text}: '{text}, {name}'"


def _words(key: str, kind: str, context: Mapping[str, Any], text: str, value: object) -> tuple[str, str]:
    if kind == "muster":
        return str(context["what"]), str(context["hint"])
    if kind == "muster_expected":
        return f"{key}: {text}", str(context["hint"])
    if kind == "muster_form":
        kinds, _, hint = text.partition("\n")
        return f"{key}: expected {kinds}, found {describe(value)}", hint_for(value) or hint
    if kind in _SHAPES:
        return f"{key}: expected {_SHAPES[kind]}, found {describe(value)}", hint_for(value) or _shape_hint(kind, value)
    if kind in _BOUNDS:
        words, bound = _BOUNDS[kind]
        return f"{key} must be {words} {context[bound]:g}, found {_number(value)}", ""
    if kind == "too_short":
        return f"{key}: the list is empty", "give it one entry at least"
    return f"{key}: this value is not right here: {describe(value)}", ""


def _shape_hint(kind: str, value: object) -> str:
    if kind == "list_type" and describe(value).startswith(("text", "the number")):
        return f"put it in brackets: [{getattr(value, 'text', '')}]"
    return ""


def _number(value: object) -> str:
    return str(getattr(value, "text", value))
