"""Validates a document against the models: what pydantic found, in plain words with its place; the largest part that
is valid, so that lints can tell their mistakes too; which keys each model knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_origin

from pydantic import ValidationError

from muster.model.errors import Mistake
from muster.spec.field_kinds import LIST, MAP, ONE, FileModel, hint_for_value, suggest_closest
from muster.spec.model_campaign import CampaignFile
from muster.spec.yaml_tree import NodePath, Scalar, Table, YamlDocument, describe_value, dotted_path, node_as_data


def known_keys_at(path: NodePath) -> list[str]:
    """The keys of the mapping at a path, in the order of the reference; none where any key may stand."""
    models = _models_at(path)
    return keys_of_model(models[0]) if models else []


def example_at(path: NodePath) -> str:
    """How the key at a path may be written; "" where it has no example, or is no key of a model."""
    for model in _models_at(path[:-1]):
        for name, info in model.model_fields.items():
            if (info.alias or name) == path[-1]:
                return str((info.examples or [""])[0])
    return ""


def _models_at(path: NodePath) -> list[type[FileModel]]:
    kinds: list[Any] = [CampaignFile]
    for part in path:
        kinds = [inner for kind in kinds for inner in _kinds_below(kind, part)]
    return [model for kind in kinds for model in models_in_kind(kind)]


def keys_of_model(model: type[FileModel]) -> list[str]:
    return [info.alias or name for name, info in model.model_fields.items()]


def _kinds_below(kind: Any, part: str | int) -> Iterator[Any]:
    for form in forms_of_kind(kind):
        if isinstance(form, type) and issubclass(form, FileModel):
            yield from (info.annotation for name, info in form.model_fields.items() if (info.alias or name) == part)
        elif get_origin(form) is dict and isinstance(part, str):
            yield get_args(form)[1]
        elif get_origin(form) is list and isinstance(part, int):
            yield get_args(form)[0]


def models_in_kind(kind: Any) -> Iterator[type[FileModel]]:
    for form in forms_of_kind(kind):
        if isinstance(form, type) and issubclass(form, FileModel):
            yield form


def forms_of_kind(kind: Any) -> Iterator[Any]:
    """The members of a union, annotations taken off."""
    if hasattr(kind, "__metadata__"):
        yield from forms_of_kind(kind.__origin__)
    elif get_origin(kind) in (None, dict, list, tuple) or not get_args(kind):
        yield kind
    else:
        for member in get_args(kind):
            yield from forms_of_kind(member)


_TAGS = {LIST, MAP, ONE}
_SHAPES = {"model_type": "a mapping", "dict_type": "a mapping", "list_type": "a list"}
_BOUNDS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}


def mistakes_of_validation(error: ValidationError, document: YamlDocument) -> list[Mistake]:
    """One mistake per error; a key that is missing because it is misspelt is told once, as misspelt."""
    errors = error.errors(include_url=False)
    unknown = [
        (item["loc"][:-1], _mistake_of_error(item, document).hint)
        for item in errors
        if item["type"] == "extra_forbidden"
    ]
    missing = {item["loc"] for item in errors if item["type"] == "missing"}
    misspelt = {loc for loc in missing if (loc[:-1], suggest_closest(str(loc[-1]), [str(loc[-1])])) in unknown}
    return [_mistake_of_error(item, document) for item in errors if item["loc"] not in misspelt]


def paths_of_errors(error: ValidationError) -> list[NodePath]:
    return [path_of_location(item["loc"]) for item in error.errors(include_url=False, include_input=False)]


def path_of_location(loc: tuple[int | str, ...]) -> NodePath:
    return tuple(part for part in loc if part not in _TAGS)


def _mistake_of_error(item: Any, document: YamlDocument) -> Mistake:
    path = path_of_location(item["loc"])
    kind, context = item["type"], item.get("ctx", {})
    if kind == "missing":
        return _missing_key_mistake(path, document)
    if kind == "extra_forbidden":
        return _unknown_key_mistake(path, document, known_keys_at(path[:-1]))
    line, column = document.place(path)
    what, hint = _error_words(dotted_path(path), kind, context, item["msg"], document.get(path) or item.get("input"))
    return Mistake(what, line, column, hint or _example_hint(path), dotted_path(path))


def _example_hint(path: NodePath) -> str:
    example = example_at(path)
    return f"for example `{path[-1]}: {example}`" if example else ""


def _missing_key_mistake(path: NodePath, document: YamlDocument) -> Mistake:
    parent, key = path[:-1], str(path[-1])
    if not parent:
        hint = "add `muster: 1` as the first line" if key == "muster" else f"add `{key}:`"
        return Mistake(f"the key '{key}' is missing", 1, 1, hint, key)
    line, column = document.place(parent, key=True)
    return Mistake(f"'{key}' is missing in {dotted_path(parent)}", line, column, f"add `{key}:`", dotted_path(path))


def _unknown_key_mistake(path: NodePath, document: YamlDocument, known: list[str]) -> Mistake:
    line, column = document.place(path, key=True)
    name = str(path[-1])
    place = f" in {dotted_path(path[:-1])}" if len(path) > 1 else ""
    node = document.get(path[:-1])
    used = {key.text for key, _ in node.entries} if isinstance(node, Table) else set()
    hint = _hint_for_cut_value(node, name) or suggest_closest(name, [key for key in known if key not in used] or known)
    return Mistake(
        f"unknown key '{name}'{place}", line, column, hint or f"known keys: {', '.join(known)}", dotted_path(path)
    )


def _hint_for_cut_value(node: object, name: str) -> str:
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


def _error_words(key: str, kind: str, context: Mapping[str, Any], text: str, value: object) -> tuple[str, str]:
    if kind == "muster":
        return str(context["what"]), str(context["hint"])
    if kind == "muster_expected":
        return f"{key}: {text}", str(context["hint"])
    if kind == "muster_form":
        kinds, _, hint = text.partition("\n")
        return f"{key}: expected {kinds}, found {describe_value(value)}", hint_for_value(value) or hint
    if kind in _SHAPES:
        return f"{key}: expected {_SHAPES[kind]}, found {describe_value(value)}", hint_for_value(value) or _shape_hint(
            kind, value
        )
    if kind in _BOUNDS:
        words, bound = _BOUNDS[kind]
        return f"{key} must be {words} {context[bound]:g}, found {_written_number(value)}", ""
    if kind == "too_short":
        return f"{key}: the list is empty", "give it one entry at least"
    return f"{key}: this value is not right here: {describe_value(value)}", ""


def _shape_hint(kind: str, value: object) -> str:
    if kind == "list_type" and describe_value(value).startswith(("text", "the number")):
        return f"put it in brackets: [{getattr(value, 'text', '')}]"
    return ""


def _written_number(value: object) -> str:
    return str(getattr(value, "text", value))


_STAND_INS = {"muster": Scalar(1, "1", False, 1, 1), "campaign": Scalar("?", "?", True, 1, 1), "jobs": {}}
_STAND_IN_COMMAND = Scalar("true", "true", True, 1, 1)


def validate_largest_part(document: YamlDocument) -> tuple[CampaignFile | None, YamlDocument, list[Mistake]]:
    """The model, the document that it was made from, and the mistakes of the whole one."""
    mistakes: list[Mistake] | None = None
    for _ in range(12):  # each round cuts one level higher at worst, and no path is longer
        try:
            return (
                CampaignFile.model_validate(_document_data(document, told=mistakes is not None)),
                document,
                mistakes or [],
            )
        except ValidationError as error:
            if mistakes is None:
                mistakes = mistakes_of_validation(error, document)
            document = document.without(_paths_to_cut(error, document))
    return None, document, mistakes or []


def _paths_to_cut(error: ValidationError, document: YamlDocument) -> list[NodePath]:
    """What to leave out: the wrong value; and for a key that is missing, the mapping that lacks it."""
    return [path if document.has(path) else path[:-1] for path in paths_of_errors(error)]


def _document_data(document: YamlDocument, *, told: bool) -> object:
    data = node_as_data(document.root)
    if not isinstance(data, dict):
        return data
    if told:  # these are missing, which is told already
        data = _STAND_INS | data
    jobs = data.get("jobs")
    for job in jobs.values() if isinstance(jobs, dict) else ():
        if isinstance(job, dict):
            job.setdefault("command", _STAND_IN_COMMAND)  # its absence is told by the lints
    return data
