"""The reference of the campaign file, made from the models: `python -m muster.spec.reference > docs/campaign.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from muster.spec.base import Model
from muster.spec.fields import Shown
from muster.spec.model import CampaignFile
from muster.spec.shape import models_in

_HEAD = """# campaign.yaml

Every key of the campaign file. This page is made from the code: `python -m muster.spec.reference > docs/campaign.md`.

`muster check` shows every mistake of a file with line and column; `muster schema` prints a JSON schema for editors.

- **duration**: a number with its unit, `30s`, `45m`, `12h`, `2d`, `1h30m`. A bare number is refused.
- **share**: `2%` or `0.02`.
- **command line**: split into words as a POSIX shell would, but run without a shell unless `shell: true`; or a list of
  words. Placeholders go in after the splitting; in a text for a shell each value is quoted for its place.
- **edit**: `PATH@set=VALUE`, `PATH@mul=NUMBER`, `PATH@add=NUMBER`, with `@max=NUMBER` and `@min=NUMBER` behind them;
  `*` in a path stands for every element.
- **placeholders**: every axis of the job (`{seed}`), `{axis.args}`, `{steps}`, `{gpu}` (the physical index), `{device}`
  (its index inside CUDA_VISIBLE_DEVICES), `{slot}`, `{port}` (a free one), `{out}`, `{cell}`, `{attempt}`,
  `{config_file}`, `{JOB.output}` for a job in `needs`; in `resume` also `{last.output}` and `{last.checkpoint}`.
  `{{` and `}}` are braces, `${X}` is left alone.

The file is read as YAML 1.2: `no`, `on`, `12:30` and `2026-01-01` are texts. Values of axes are parts of cell
names as they are written: `1e-4` stays `1e-4`.
"""


def reference_markdown() -> str:
    parts = [_HEAD]
    for model in _sections(CampaignFile):
        parts.append(_section(model))
    return "\n".join(parts)


def _sections(model: type[Model], seen: list[type[Model]] | None = None) -> list[type[Model]]:
    """The models in the order in which the file mentions them."""
    seen = [] if seen is None else seen
    if model not in seen:
        seen.append(model)
        for info in model.model_fields.values():
            for inner in _models_below(info.annotation):
                _sections(inner, seen)
    return seen


def _models_below(kind: Any) -> Iterator[type[Model]]:
    yield from models_in(kind)
    for argument in get_args(kind):
        if not isinstance(argument, str):
            yield from _models_below(argument)


def _section(model: type[Model]) -> str:
    title = "The file" if model is CampaignFile else model.__name__
    rows = [_row(info.alias or name, info) for name, info in model.model_fields.items()]
    intro = f"{model.__doc__}\n\n" if model.__doc__ else ""
    table = "\n".join(["| key | type | default | meaning | example |", "| --- | --- | --- | --- | --- |", *rows])
    return f"## {title}\n\n{intro}{table}\n"


def _row(name: str, info: FieldInfo) -> str:
    shown = next((item.words for item in info.metadata if isinstance(item, Shown)), None) or _type(info.annotation)
    example = str((info.examples or [""])[0])
    cells = [f"`{name}`", shown, _default(info), info.description or "", f"`{example}`" if example else ""]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _type(kind: Any) -> str:
    shown = next((item.words for item in getattr(kind, "__metadata__", ()) if isinstance(item, Shown)), None)
    if shown:
        return shown
    if hasattr(kind, "__metadata__"):
        return _type(kind.__origin__)
    origin, arguments = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and origin is None and issubclass(kind, Model):
        return f"[{kind.__name__}](#{kind.__name__.lower()})"
    if origin is list:
        return f"list of {_type(arguments[0])}"
    if origin is dict:
        return f"mapping name -> {_type(arguments[1])}"
    if origin is Literal:
        return ", ".join(f"`{argument}`" for argument in arguments)
    inner = [argument for argument in arguments if argument is not type(None)]
    return " or ".join(_type(argument) for argument in inner) if inner else "value"


def _default(info: FieldInfo) -> str:
    """As it would be written in the file: `60s`, `"{out}"`."""
    value = info.default
    if info.is_required():
        return "required"
    if info.alias is None and value is None and info.description and info.description.startswith("`auto`"):
        return "`auto`"
    if value is None or isinstance(value, Model) or value == "":
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, float):
        return f"`{value:g}s`" if any(item == Shown("duration") for item in info.metadata) else f"`{value:g}`"
    return f'`"{value}"`' if str(value).startswith("{") and value != {} else f"`{value}`"


if __name__ == "__main__":
    sys.stdout.write(reference_markdown())
