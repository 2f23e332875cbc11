"""A criterion: bounds on what a window makes of a key, which may differ by stage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf, nextafter
from typing import Any, NamedTuple

from muster.stages.forms import Form, found
from muster.stages.windows import LAST, Window

BOUNDS = ("min", "max", "above", "below")
_ROUNDING = 1e-12  # relative: the mean of three times 0.1 is 0.1, whatever the sum says
WORDS = {"min": "at least", "max": "at most", "above": "above", "below": "below"}
OTHERWISE = {"min": "below", "max": "above", "above": "not above", "below": "not below"}


class Limits(NamedTuple):
    """What a stage may set otherwise. None: as the criterion has it."""

    min: float | None = None
    max: float | None = None
    above: float | None = None
    below: float | None = None
    window: Window | None = None

    def bounds(self) -> dict[str, float]:
        return {name: value for name in BOUNDS if (value := getattr(self, name)) is not None}

    def bound(self, *names: str) -> tuple[str, float] | None:
        """That of one side: `min` or `above`, `max` or `below`."""
        return next(((name, value) for name, value in self.bounds().items() if name in names), None)

    def mapping(self) -> dict[str, Any]:
        return dict(self.bounds()) | ({"window": str(self.window)} if self.window else {})


NONE: Mapping[str, Limits] = {}


class Criterion(NamedTuple):
    key: str
    limits: Limits
    by_stage: Mapping[str, Limits] = NONE

    def at(self, stage: str) -> Limits:
        """What holds in this stage. A bound of a stage takes the place of the same side's: `min` that of `above`."""
        own, other = self.limits, self.by_stage.get(stage)
        if other is None:
            return own if own.window else Limits(**own.bounds(), window=LAST)
        given = other.bounds()
        kept = {name: value for name, value in own.bounds().items() if not given.keys() & _SIDE[name]}
        return Limits(**(kept | given), window=other.window or own.window or LAST)

    def mapping(self) -> dict[str, Any]:
        stages = {stage: limits.mapping() for stage, limits in self.by_stage.items()}
        return {"key": self.key} | self.limits.mapping() | ({"by_stage": stages} if stages else {})


_SIDE = {"min": {"min", "above"}, "above": {"min", "above"}, "max": {"max", "below"}, "below": {"max", "below"}}


def read_criteria(form: Form, where: str, written: object) -> Iterator[Criterion]:
    if not isinstance(written, list | tuple):
        form.wrong(where, f"expected a list of criteria, found {found(written)}")
        return
    for at, each in enumerate(written):
        name = f"{where}[{at}]"
        entry = form.mapping(name, each)
        if entry is not None:
            yield _criterion(form, name, entry)


def _criterion(form: Form, name: str, entry: Mapping[str, Any]) -> Criterion:
    form.known(name, entry, ("key", *BOUNDS, "window", "by_stage"))
    key = form.text(name, entry, "key")
    limits = _limits(form, name, entry)
    by_stage, written = {}, [entry]
    for stage, other in (form.mapping(f"{name}.by_stage", entry.get("by_stage") or {}) or {}).items():
        own = form.mapping(f"{name}.by_stage.{stage}", other)
        if own is not None:
            written.append(own)
            form.known(f"{name}.by_stage.{stage}", own, (*BOUNDS, "window"))
            by_stage[str(stage)] = _limits(form, f"{name}.by_stage.{stage}", own)
    if not any(each.get(bound) is not None for each in written for bound in BOUNDS):
        form.wrong(name, "a criterion needs a bound", "add min, max, above or below")
    return Criterion(key, limits, by_stage)


def _limits(form: Form, name: str, entry: Mapping[str, Any]) -> Limits:
    bounds = {each: form.number(name, entry, each, needed=False) for each in BOUNDS}
    for strict, other in (("above", "min"), ("below", "max")):
        if bounds[strict] is not None and bounds[other] is not None:
            form.wrong(name, f"{other} and {strict} bound the same side", "leave one out")
    window = None
    if entry.get("window") is not None:
        try:
            window = Window.parse(str(entry["window"]))
        except ValueError as error:
            form.wrong(name, f"window: {error}")
    return Limits(**bounds, window=window)


def reach(window: Window, bound: str, threshold: float) -> float:
    """The least (min, above) or the greatest (max, below) number that meets a bound."""
    slack = 0.0 if window.exact else _ROUNDING * (abs(threshold) or 1.0)
    if bound == "min":
        return threshold - slack
    if bound == "max":
        return threshold + slack
    return nextafter(threshold + slack, inf) if bound == "above" else nextafter(threshold - slack, -inf)
