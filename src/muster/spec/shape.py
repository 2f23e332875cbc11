"""Which model stands at a path of the campaign file, and which keys it knows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_origin

from muster.spec.base import Model
from muster.spec.document import Path
from muster.spec.model import CampaignFile


def known_keys(path: Path) -> list[str]:
    """The keys of the mapping at a path, in the order of the reference; none where any key may stand."""
    models = _models_at(path)
    return keys_of(models[0]) if models else []


def example_of(path: Path) -> str:
    """How the key at a path may be written; "" where it has no example, or is no key of a model."""
    for model in _models_at(path[:-1]):
        for name, info in model.model_fields.items():
            if (info.alias or name) == path[-1]:
                return str((info.examples or [""])[0])
    return ""


def _models_at(path: Path) -> list[type[Model]]:
    kinds: list[Any] = [CampaignFile]
    for part in path:
        kinds = [inner for kind in kinds for inner in _below(kind, part)]
    return [model for kind in kinds for model in models_in(kind)]


def keys_of(model: type[Model]) -> list[str]:
    return [info.alias or name for name, info in model.model_fields.items()]


def _below(kind: Any, part: str | int) -> Iterator[Any]:
    for form in forms_of(kind):
        if isinstance(form, type) and issubclass(form, Model):
            yield from (info.annotation for name, info in form.model_fields.items() if (info.alias or name) == part)
        elif get_origin(form) is dict and isinstance(part, str):
            yield get_args(form)[1]
        elif get_origin(form) is list and isinstance(part, int):
            yield get_args(form)[0]


def models_in(kind: Any) -> Iterator[type[Model]]:
    for form in forms_of(kind):
        if isinstance(form, type) and issubclass(form, Model):
            yield form


def forms_of(kind: Any) -> Iterator[Any]:
    """The members of a union, annotations taken off."""
    if hasattr(kind, "__metadata__"):
        yield from forms_of(kind.__origin__)
    elif get_origin(kind) in (None, dict, list, tuple) or not get_args(kind):
        yield kind
    else:
        for member in get_args(kind):
            yield from forms_of(member)
