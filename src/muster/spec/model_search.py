"""A loop's search and its entry point, in the campaign file."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, PlainValidator, WithJsonSchema, model_validator

from muster.spec.base import Model, field
from muster.spec.document import Scalar, shorten
from muster.spec.fields import Flag, Shown, Whole, choice, expected, read_number, read_text, wrong

_NEAR = 1e-8
_ENTRY = re.compile(r"(?:[^:]+\.py|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):[A-Za-z_]\w*")
_SCALAR: dict[str, Any] = {"type": ["string", "number", "boolean"]}


def _read_amount(value: object) -> int | float:
    """A number that stays an integer where it is written as one."""
    number = read_number(value)
    return value.value if isinstance(value, Scalar) and isinstance(value.value, int) else number


def _read_values(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise expected("a list of values", value)
    found: list[Any] = []
    for item in value:
        if not isinstance(item, Scalar) or item.value is None:
            raise expected("a value", item)
        if isinstance(item.value, float) and not math.isfinite(item.value):
            raise expected("a finite number", item)
        if item.value in found:
            raise wrong(f"{shorten(item.text)} is there twice", "1, 1.0 and true count as the same")
        found.append(item.value)
    if len(found) < 2:
        raise wrong("there is nothing to choose from", "give at least two values, or leave the path out")
    return found


def _read_entry(value: object) -> str:
    text = read_text(value)
    if not _ENTRY.fullmatch(text):
        raise wrong(f"{shorten(text)} names no function", "write FILE.py:FUNCTION or package.module:FUNCTION")
    return text


Amount = Annotated[
    int | float, PlainValidator(_read_amount), WithJsonSchema({"type": "number"}), Shown("number")
]  # fmt: skip
Choices = Annotated[
    list[Any], PlainValidator(_read_values),
    WithJsonSchema({"type": "array", "items": _SCALAR, "minItems": 2}), Shown("list of values"),
]  # fmt: skip
Entry = Annotated[str, BeforeValidator(_read_entry), Shown("FILE.py:FUNCTION or package.module:FUNCTION")]
Sampler = Annotated[Literal["tpe", "gp", "random"], BeforeValidator(choice("tpe", "gp", "random"))]


class Dimension(Model):
    """What one path of the config may be: a range, or values."""

    low: Amount | None = field(None, "The least.", "1e-5")
    high: Amount | None = field(None, "The most.", "1e-2")
    step: Amount | None = field(None, "Distance between the values that are drawn, counted from `low`.", "1")
    log: Flag = field(False, "Search the order of magnitude.", "true")
    values: Choices | None = field(None, "Instead of a range: one of these.", "[16, 32, 64]")

    @model_validator(mode="after")
    def _range_or_values(self) -> Dimension:
        if self.values is not None:
            if self.low is not None or self.high is not None or self.step is not None or self.log:
                raise wrong("it has both a range and values", "keep `values`, or `low` and `high`")
            return self
        if self.low is None or self.high is None:
            raise wrong("a path needs `low` and `high`, or `values`", "as in {low: 1e-5, high: 1e-2, log: true}")
        if self.low >= self.high:
            raise wrong(f"low {self.low} is not below high {self.high}", "exchange them")
        if self.log and self.low <= 0:
            raise wrong(f"with `log` low must be above 0, found {self.low}", "give it a small number: 1e-5")
        self._check_step(self.low, self.high)
        return self

    def _check_step(self, low: float, high: float) -> None:
        if self.step is None:
            return
        if self.log:
            raise wrong("`log` and `step` don't go together", "leave one of them out")
        if self.step <= 0:
            raise wrong(f"step must be above 0, found {self.step}")
        steps = (high - low) / self.step
        if abs(steps - round(steps)) > _NEAR * max(1.0, steps) or steps < 1:
            last = low + math.floor(steps) * self.step
            raise wrong(f"steps of {self.step} from {low} never reach {high}", f"the last one is {last:g}")


class Search(Model):
    """Points of a space by Optuna (extra `tune`), told every score of `keep: {by, better}`."""

    space: dict[str, Dimension] = field(
        ..., "Paths of the config, and what they may be.", '{"optimizer.lr": {low: 1e-5, high: 1e-2, log: true}}'
    )
    sampler: Sampler = field("tpe", "How points are drawn; `gp` needs torch.", "gp")
    trials_per_round: Whole = field(4, "Variants of each round.", "4", ge=1)
    seed: Whole = field(0, "What is drawn by chance is drawn from it.", "0", ge=0)
