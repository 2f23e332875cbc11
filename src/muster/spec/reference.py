"""The reference of the campaign file, made from the models (`python -m muster.spec.reference > docs/campaign.md`),
and its JSON schema.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema

from muster.spec.field_kinds import FileModel, KindName
from muster.spec.model_campaign import CampaignFile
from muster.spec.validate_model import models_in_kind

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


def build_reference_markdown() -> str:
    parts = [_HEAD]
    for model in _models_in_order(CampaignFile):
        parts.append(_reference_section(model))
    return "\n".join(parts)


def _models_in_order(model: type[FileModel], seen: list[type[FileModel]] | None = None) -> list[type[FileModel]]:
    """The models in the order in which the file mentions them."""
    seen = [] if seen is None else seen
    if model not in seen:
        seen.append(model)
        for info in model.model_fields.values():
            for inner in _models_below(info.annotation):
                _models_in_order(inner, seen)
    return seen


def _models_below(kind: Any) -> Iterator[type[FileModel]]:
    yield from models_in_kind(kind)
    for argument in get_args(kind):
        if not isinstance(argument, str):
            yield from _models_below(argument)


def _reference_section(model: type[FileModel]) -> str:
    title = "The file" if model is CampaignFile else _heading(model)
    rows = [_reference_row(info.alias or name, info) for name, info in model.model_fields.items()]
    intro = f"{model.__doc__}\n\n" if model.__doc__ else ""
    table = "\n".join(["| key | type | default | meaning | example |", "| --- | --- | --- | --- | --- |", *rows])
    return f"## {title}\n\n{intro}{table}\n"


def _reference_row(name: str, info: FieldInfo) -> str:
    shown = next((item.words for item in info.metadata if isinstance(item, KindName)), None) or _kind_words(
        info.annotation
    )
    example = str((info.examples or [""])[0])
    cells = [f"`{name}`", shown, _default_text(info), info.description or "", f"`{example}`" if example else ""]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _kind_words(kind: Any) -> str:
    shown = next((item.words for item in getattr(kind, "__metadata__", ()) if isinstance(item, KindName)), None)
    if shown:
        return shown
    if hasattr(kind, "__metadata__"):
        return _kind_words(kind.__origin__)
    origin, arguments = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and origin is None and issubclass(kind, FileModel):
        return f"[{_heading(kind)}](#{_heading(kind).lower()})"
    if origin is list:
        return f"list of {_kind_words(arguments[0])}"
    if origin is dict:
        return f"mapping name -> {_kind_words(arguments[1])}"
    if origin is Literal:
        return ", ".join(f"`{argument}`" for argument in arguments)
    inner = [argument for argument in arguments if argument is not type(None)]
    return " or ".join(_kind_words(argument) for argument in inner) if inner else "value"


def _default_text(info: FieldInfo) -> str:
    """As it would be written in the file: `60s`, `"{out}"`."""
    value = info.default
    if info.is_required():
        return "required"
    if info.alias is None and value is None and info.description and info.description.startswith("`auto`"):
        return "`auto`"
    if value is None or isinstance(value, FileModel) or value == "":
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, float):
        return f"`{value:g}s`" if any(item == KindName("duration") for item in info.metadata) else f"`{value:g}`"
    return f'`"{value}"`' if str(value).startswith("{") and value != {} else f"`{value}`"


DIALECT = "https://json-schema.org/draft/2020-12/schema"


def build_json_schema() -> dict[str, object]:
    schema: dict[str, Any] = CampaignFile.model_json_schema(by_alias=True, schema_generator=_FileSchemaGenerator)
    schema["properties"]["muster"] |= {"const": 1}
    return {"$schema": DIALECT, **schema, "title": "Muster campaign"}


def _heading(model: type[Any]) -> str:
    """A section is called `JobSection` beside the campaign's `Job`; its page speaks of jobs."""
    return model.__name__.removesuffix("Section")


class _FileSchemaGenerator(GenerateJsonSchema):
    """Optional keys are left out of a campaign, never null; and titles made from key names only repeat them."""

    def nullable_schema(self, schema: Any) -> dict[str, Any]:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: Any) -> dict[str, Any]:
        return self.generate_inner(schema["schema"])  # defaults are inner values (seconds, tuples), not as written

    def get_title_from_name(self, name: str) -> str:
        return name

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 pydantic's signature
        return False


if __name__ == "__main__":
    sys.stdout.write(build_reference_markdown())
