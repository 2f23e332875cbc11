"""The kinds of values in a campaign file: how each is read, what it is called, and what a message says when it is
wrong. Also what all its models share.

Scalars arrive as nodes, so that a reader sees `1e5`, `010` and `"5"` as they were written.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from muster.spec.yaml_tree import Scalar, describe_value, has_leading_zero, without_underscores

_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?[smhd])+")
_DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smhd])")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SHARE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*%")


@dataclass(frozen=True, slots=True)
class KindName:
    """What the reference calls a kind of value."""

    words: str


def value_error(what: str, hint: str = "") -> PydanticCustomError:
    return PydanticCustomError("muster", "{what}", {"what": what, "hint": hint})


def expected_error(kind: str, value: object, hint: str = "") -> PydanticCustomError:
    """The message is about the key, which whoever raises this does not know."""
    context = {"kind": kind, "found": describe_value(value), "hint": hint or hint_for_value(value)}
    return PydanticCustomError("muster_expected", "expected {kind}, found {found}", context)


def hint_for_value(value: object) -> str:
    """`output: {out}` is a mapping to YAML: the commonest slip with placeholders."""
    if isinstance(value, dict) and len(value) == 1:
        name, inner = next(iter(value.items()))
        if isinstance(inner, Scalar) and inner.value is None and not inner.text:
            return f'put it in quotes: "{{{name}}}"'
    if isinstance(value, Scalar) and value.value is None:
        return "give it a value or remove the key"
    return ""


def suggest_closest(name: str, known: list[str]) -> str:
    """`did you mean 'x'?`, or nothing."""
    found = get_close_matches(name, known, n=1) or [item for item in known if item.lower() == name.lower()]
    return f"did you mean '{found[0]}'?" if found else ""


def _require_scalar(kind: str, value: object) -> Scalar:
    if not isinstance(value, Scalar) or value.value is None:
        raise expected_error(kind, value)
    return value


def read_loose_text(value: object) -> str:
    scalar = _require_scalar("text", value)
    if isinstance(scalar.value, bool):
        raise expected_error("text", value, f'put it in quotes: "{scalar.text}"')
    return scalar.text


def read_nonempty_text(value: object) -> str:
    text = read_loose_text(value)
    if not text.strip():
        raise value_error("expected text, found an empty one")
    return text


def read_env_value(value: object) -> str:
    """As written: an environment holds text only, and `010` or `1e5` must arrive as they are."""
    scalar = _require_scalar("text or a number", value) if not _is_null_scalar(value) else None
    if scalar is None:
        raise expected_error("text or a number", value, 'write "" for an empty value')
    if isinstance(scalar.value, bool):
        raise expected_error("text or a number", value, f'put it in quotes: "{scalar.text}"')
    return scalar.text


def _is_null_scalar(value: object) -> bool:
    return isinstance(value, Scalar) and value.value is None


def read_true_or_false(value: object) -> bool:
    scalar = _require_scalar("true or false", value)
    if not isinstance(scalar.value, bool):
        other = {"yes": "true", "on": "true", "no": "false", "off": "false"}.get(scalar.text.lower())
        raise expected_error("true or false", value, f"write {other}" if other else "")
    return scalar.value


def read_whole_number(value: object) -> int:
    kind = "a whole number"
    scalar = _require_scalar(kind, value)
    number = scalar.value
    if isinstance(number, int) and not isinstance(number, bool):
        if has_leading_zero(scalar.text):
            raise value_error(f"{scalar.text} has a leading zero, which some readers take for octal", f"write {number}")
        return number
    raise expected_error(kind, value, _hint_for_whole_number(scalar))


def _hint_for_whole_number(scalar: Scalar) -> str:
    number = scalar.value
    if isinstance(number, float):
        return f"write {int(number)}" if abs(number) < 1e15 and number == int(number) else ""
    plain_number = without_underscores(scalar.text)
    if plain_number is not None:
        return f"write {plain_number}"
    return f"write {scalar.text} without quotes" if scalar.quoted and scalar.text.isdecimal() else ""


def read_finite_number(value: object) -> float:
    kind = "a number"
    scalar = _require_scalar(kind, value)
    number = scalar.value
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise expected_error(kind, value, _hint_for_whole_number(scalar))
    try:
        number = float(number)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise expected_error("a finite number", value)
    return number


def read_duration_value(value: object) -> float:
    kind = "a duration such as 30s, 45m, 12h, 2d or 1h30m"
    scalar = _require_scalar(kind, value)
    text = scalar.text.strip()
    if isinstance(scalar.value, int | float) and not isinstance(scalar.value, bool):
        raise value_error(f"{text} has no unit", f"write {text}s, {text}m, {text}h or {text}d")
    if not _DURATION.fullmatch(text):
        raise expected_error(kind, value, _hint_for_duration(text))
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in _DURATION_PART.findall(text))
    if not 0 <= seconds < 1e10:
        raise value_error(f"{text} is too long")
    return seconds


def _hint_for_duration(text: str) -> str:
    if match := re.fullmatch(r"(\d+):(\d\d)", text):
        return f"write {int(match[1])}h{int(match[2])}m or {int(match[1])}m{int(match[2])}s"
    return "no spaces, and one of the units s, m, h, d after each number"


def read_byte_size(value: object) -> int:
    kind = "a size such as 500M, 1G or 2T"
    scalar = _require_scalar(kind, value)
    text = scalar.text.strip()
    if isinstance(scalar.value, int | float) and not isinstance(scalar.value, bool):
        raise value_error(f"{text} has no unit", f"write {text}M or {text}G")
    match = _SIZE.fullmatch(text)
    if not match:
        raise expected_error(kind, value, "a number, and one of the units K, M, G, T after it")
    size = int(float(match[1]) * _BYTES[match[2]])
    if size < _BYTES["M"]:
        raise value_error(f"{text} is too little to keep a log's beginning and its end", "write at least 1M")
    return size


def read_share_value(value: object) -> float:
    kind = "a share such as 2% or 0.02"
    scalar = _require_scalar(kind, value)
    if match := _SHARE.fullmatch(scalar.text):
        share = float(match[1]) / 100
    elif isinstance(scalar.value, int | float) and not isinstance(scalar.value, bool):
        share = float(scalar.value) if abs(scalar.value) < 1e9 else math.inf
    else:
        raise expected_error(kind, value)
    if not 0 <= share <= 1:
        hint = f"write {scalar.text}%" if 1 < share <= 100 and "%" not in scalar.text else "between 0% and 100%"
        raise value_error(f"{scalar.text} is not a share of a whole", hint)
    return share


def read_zoned_time(value: object) -> str:
    kind = "a time with its zone such as 2026-02-22T02:00+08:00"
    scalar = _require_scalar(kind, value)
    try:
        moment = datetime.fromisoformat(scalar.text)
    except ValueError:
        raise expected_error(kind, value) from None
    if moment.tzinfo is None:
        raise value_error(f"{scalar.text} has no time zone", "add it: 2026-02-22T02:00+08:00, or Z for UTC")
    return scalar.text


def read_regex(value: object) -> str:
    text = read_nonempty_text(value)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about notations that a later Python may read otherwise
            groups = re.compile(text).groups
    except (re.error, OverflowError, RecursionError) as error:
        raise value_error(f"not a regular expression: {error}") from None
    if groups == 0:
        raise value_error("the regular expression has no group", r"put parentheses around the number: step (\d+)")
    return text


def read_edit_text(value: object) -> str:
    from muster.rules.edits import EditError, parse_edit

    text = read_nonempty_text(value)
    try:
        parse_edit(text)
    except EditError as error:
        what, _, hint = str(error).partition("; ")
        raise value_error(what, hint) from None
    return text


def one_of_reader(*names: str) -> Callable[[object], str]:
    def read(value: object) -> str:
        kind = "one of " + ", ".join(names)
        scalar = _require_scalar(kind, value)
        if scalar.text not in names:
            raise expected_error(kind, value, suggest_closest(scalar.text, list(names)))
        return scalar.text

    return read


def read_axis_scalar(value: object) -> Scalar:
    kind = "a value (text, a number, true or false)"
    if isinstance(value, Scalar) and value.value is None:
        raise value_error("an axis value is empty", 'write a value, or "none" in quotes')
    if isinstance(value, dict):
        raise expected_error(kind, value, "for values with settings write a mapping: {v2_full: {args: ...}}")
    return _require_scalar(kind, value)


@dataclass(frozen=True, slots=True)
class CommandWords:
    """A command line as written: one text to be split, or a list of words that are left as they are."""

    texts: tuple[str, ...]
    is_list: bool = False


def read_command_line(value: object) -> CommandWords:
    if isinstance(value, list):
        if not value:
            raise value_error("the command is empty")
        return CommandWords(tuple(read_loose_text(item) for item in value), is_list=True)
    if isinstance(value, Scalar) and isinstance(value.value, str) and not value.text.strip():
        raise value_error("the command is empty")
    return CommandWords((read_nonempty_text(value),))


_WORDS_SCHEMA = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": ["string", "number"]}}]}
_BYTES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT])B?", re.ASCII)
_SIZE_SCHEMA: dict[str, Any] = {"type": "string", "pattern": r"^\d+(\.\d+)?\s*[KMGT]B?$"}
_DURATION_SCHEMA = {"type": "string", "pattern": r"^([0-9]+(\.[0-9]+)?[smhd])+$"}
_SHARE_SCHEMA = {
    "anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, {"type": "string", "pattern": r"^[0-9.]+\s*%$"}]
}
_AXIS_SCHEMA = {"type": ["string", "number", "boolean"]}
_TEXT_SCHEMA = {"type": ["string", "number"]}

Loose = Annotated[str, BeforeValidator(read_loose_text), WithJsonSchema(_TEXT_SCHEMA), KindName("text")]
Text = Annotated[str, BeforeValidator(read_nonempty_text), WithJsonSchema(_TEXT_SCHEMA), KindName("text")]
EnvText = Annotated[str, BeforeValidator(read_env_value), WithJsonSchema(_TEXT_SCHEMA), KindName("text or number")]
Flag = Annotated[bool, BeforeValidator(read_true_or_false), KindName("true or false")]
Whole = Annotated[int, BeforeValidator(read_whole_number), KindName("whole number")]
Number = Annotated[float, BeforeValidator(read_finite_number), KindName("number")]
Duration = Annotated[
    float, BeforeValidator(read_duration_value), WithJsonSchema(_DURATION_SCHEMA), KindName("duration")
]
Share = Annotated[float, BeforeValidator(read_share_value), WithJsonSchema(_SHARE_SCHEMA), KindName("share")]
Size = Annotated[int, BeforeValidator(read_byte_size), WithJsonSchema(_SIZE_SCHEMA), KindName("size")]
Moment = Annotated[str, BeforeValidator(read_zoned_time), KindName("time with zone")]
Pattern = Annotated[str, BeforeValidator(read_regex), KindName("regular expression")]
Edit = Annotated[str, BeforeValidator(read_edit_text), KindName("edit")]
CommandLine = Annotated[
    CommandWords,
    PlainValidator(read_command_line),
    WithJsonSchema(_WORDS_SCHEMA),
    KindName("command line, or list of words"),
]
AxisScalar = Annotated[Scalar, PlainValidator(read_axis_scalar), WithJsonSchema(_AXIS_SCHEMA), KindName("value")]

LIST, MAP, ONE = "«list»", "«map»", "«one»"  # tags of the forms a key may take; never shown


def form_tag(value: Any) -> str:
    """Which of several forms a value has, so that only that one is read and only its mistakes are told."""
    if isinstance(value, dict):
        return MAP
    return LIST if isinstance(value, list) else ONE


class FileModel(BaseModel):
    """`builds`: the type of `model` that the section becomes, key by key."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=False)
    builds: ClassVar[type[Any] | None] = None

    def __init_subclass__(cls, *, builds: type[Any] | None = None, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls.builds = builds


def build_section(written: object) -> Any:
    """What `model` calls a section as it was read: the type that it builds, with its defaults filled in."""
    if isinstance(written, FileModel):
        if written.builds is None:
            raise TypeError(f"{type(written).__name__} says not what it builds")
        return written.builds(**{name: build_section(getattr(written, name)) for name in type(written).model_fields})
    if isinstance(written, dict):
        return {key: build_section(value) for key, value in written.items()}
    return tuple(map(build_section, written)) if isinstance(written, list | tuple) else written


def file_key(default: Any, meaning: str, example: str, **more: Any) -> Any:
    """A key with its meaning and an example as it would be written in the file; `...` as default: required."""
    return Field(default, description=meaning, examples=[example] if example else None, **more)


def discriminate_forms(expected: str, hint: str = "") -> Discriminator:
    """For a key that takes a text, a list or a mapping: only the form at hand is read, so there is one message."""
    # the two go together as one text: the context that pydantic offers would make the annotation unhashable
    return Discriminator(form_tag, custom_error_type="muster_form", custom_error_message=f"{expected}\n{hint}")
