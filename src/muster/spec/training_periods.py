"""Save, log and evaluation periods: which words name one, what unit it counts in, what is lost if it is too long."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from muster.model.campaign import Job

PeriodKind = Literal["save", "log", "eval"]
PeriodUnit = Literal["seconds", "steps", "epochs"]

_KINDS: tuple[tuple[PeriodKind, frozenset[str]], ...] = (
    ("save", frozenset({"save", "saving", "ckpt", "checkpoint", "checkpoints", "checkpointing", "snapshot", "backup"})),
    ("eval", frozenset({"eval", "evaluate", "evaluation", "val", "validation", "test"})),
    ("log", frozenset({"log", "logging", "print", "report", "summary"})),
)
_PERIODS = frozenset({"every", "interval", "freq", "frequency", "period"})
_SECONDS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
}
_STEPS = frozenset({"step", "steps", "iter", "iters", "iteration", "iterations", "update", "updates", "batches"})
_EPOCHS = frozenset({"epoch", "epochs"})
_FREQUENCY = frozenset({"freq", "frequency"})  # of those that say no more: a count of steps, wherever it was seen
_WORD = re.compile(r"-{0,2}([A-Za-z_][\w.:/-]*?)(?:=(.*))?", re.DOTALL)
_NUMBER = re.compile(r"(\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*(s|m|h)?")
_OF_TEXT = {"s": 1.0, "m": 60.0, "h": 3600.0}
_LOGS = frozenset({"jsonl", "csv", "stdout", "wandb", "tensorboard"})
CLOCKED_TRAINERS = ("dreamer", "embodied")  # trainers whose log_every and save_every are clocks in seconds


@dataclass(frozen=True, slots=True)
class TrainingPeriod:
    name: str  # as it was written: run.save_every
    kind: PeriodKind
    value: float  # in its unit
    unit: PeriodUnit | None  # None: the name does not say
    where: str = ""  # "in its command"

    @property
    def key(self) -> str:
        """The same setting, wherever it is written: `--run.save_every`, `SAVE_EVERY`."""
        return last_name_part(self.name)


@dataclass(frozen=True, slots=True)
class ExpectedRunLength:
    """How long a run is, as far as it is known."""

    seconds: float | None = None
    finished: int = 0  # runs that it is known from; 0: it is the `timeout`, which no run outlasts
    steps: int | None = None


def option_value_pairs(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """`--key value`, `--key=value`, `key=value`."""
    for at, word in enumerate(words):
        match = _WORD.fullmatch(word)
        if match is None:
            continue
        key, value = match.groups()
        if value is None and word.startswith("-") and at + 1 < len(words):
            value = words[at + 1]
        if value is not None:
            yield key, value


def last_name_part(name: str) -> str:
    return re.split(r"[.:/]", name)[-1].lower().replace("-", "_")


def parse_period(name: str, value: object, where: str) -> TrainingPeriod | None:
    """None: the name is not that of a period, or the value is none. 0 and less switch something off."""
    parts = last_name_part(name).split("_")
    kind = next((kind for kind, words in _KINDS if words & set(parts)), None)
    if kind is None or not _names_period(kind, parts):
        return None
    number = _parse_period_number(value)
    if number is None or number[0] <= 0:
        return None
    amount, seconds = number
    if seconds:
        return TrainingPeriod(name, kind, amount, "seconds", where)
    in_seconds = next((_SECONDS[part] for part in parts if part in _SECONDS), None)
    if in_seconds is not None:
        return TrainingPeriod(name, kind, amount * in_seconds, "seconds", where)
    return TrainingPeriod(name, kind, amount, _period_unit(parts), where)


def _names_period(kind: PeriodKind, parts: Sequence[str]) -> bool:
    """`save_every`, `save_steps`; but `eval_steps` is as often the length of an evaluation."""
    if _PERIODS & set(parts):
        return True
    counted = parts[-1] in _STEPS | _EPOCHS or parts[-1] in _SECONDS
    return counted and kind != "eval" and len(parts) == 2


def _period_unit(parts: Sequence[str]) -> PeriodUnit | None:
    if _EPOCHS & set(parts):
        return "epochs"
    return "steps" if (_STEPS | _FREQUENCY) & set(parts) else None


def _parse_period_number(value: object) -> tuple[float, bool] | None:
    """(number, whether its text says that it is a time)."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value), False
    match = _NUMBER.fullmatch(str(value).strip())
    if match is None:
        return None
    amount, unit = float(match.group(1).replace("_", "")), match.group(2)
    return (amount * _OF_TEXT[unit], True) if unit else (amount, False)


def resolve_period_units(found: Iterable[TrainingPeriod], job: Job, words: Sequence[str]) -> list[TrainingPeriod]:
    """Units that the trainer or a declared `every:` tells."""
    known = list(found)
    clocked = any(name in word.lower() for word in words for name in CLOCKED_TRAINERS)
    declared = clocked or any(_matches_declared_period(each, job) for each in known)
    return [_resolve_period_unit(each, clocked, declared) for each in known]


def _resolve_period_unit(each: TrainingPeriod, clocked: bool, declared: bool) -> TrainingPeriod:
    if each.unit is not None or not each.key.endswith("every"):
        return each
    if clocked and each.kind == "eval":
        return replace(each, unit="steps")
    return replace(each, unit="seconds") if declared and each.kind != "eval" else each


def _matches_declared_period(each: TrainingPeriod, job: Job) -> bool:
    """`every: 1000s` beside `log_every 1000`: its clock counts seconds."""
    kinds = {"checkpoint"} if each.kind == "save" else _LOGS
    return each.kind != "eval" and any(
        source.every_s == each.value for source in job.progress if source.kind in kinds and source.every_s
    )


def check_period_length(
    each: TrainingPeriod, expected: ExpectedRunLength, *, clocked: bool, saved_after: float
) -> tuple[str, str] | None:
    """What is wrong with it and how to fix it; None: it fits, as far as can be told."""
    outlasts = expected.seconds is not None and each.value >= expected.seconds
    exceeds = expected.steps is not None and each.value > expected.steps
    if each.unit == "seconds":
        if outlasts:
            return _describe_period(each, "seconds", _describe_run_length(expected)) + _describe_period_loss(
                each, clocked, "seconds"
            ), _suggest_period(each, expected, saved_after)
        return _check_last_checkpoint(each, expected, saved_after) if clocked else None
    if each.unit == "steps":
        what = _describe_period(each, "steps", f"more than the run has ({expected.steps:,})" if expected.steps else "")
        return (
            (what + _describe_period_loss(each, clocked, "steps"), _suggest_period(each, expected, saved_after))
            if exceeds
            else None
        )
    outlasts = outlasts and expected.finished > 0  # a timeout alone is no reason to doubt a unit
    doubtful = outlasts and (expected.steps is None or each.kind == "save")
    if each.unit is None and (doubtful or exceeds):
        return _describe_doubtful_unit(each, expected, outlasts, exceeds), _suggest_period(each, expected, saved_after)
    return None


def _describe_period(each: TrainingPeriod, unit: str, than: str) -> str:
    where = f", {each.where}" if each.where else ""
    return f"{each.name} {_format_period_value(each.value)} ({unit}{where}) is {than}: "


def _describe_run_length(expected: ExpectedRunLength) -> str:
    seconds = f"{expected.seconds:,.0f} s"
    if expected.finished:
        return (
            f"longer than a run (about {seconds}, from {expected.finished} finished "
            f"{_plural_of_one(expected.finished)})"
        )
    return f"longer than a run can last (its timeout, {seconds})"


def _describe_doubtful_unit(each: TrainingPeriod, expected: ExpectedRunLength, outlasts: bool, exceeds: bool) -> str:
    where = f" ({each.where})" if each.where else ""
    text = (
        f"{each.name} {_format_period_value(each.value)}{where} may count seconds or steps, its name does "
        "not say which: "
    )
    if outlasts and exceeds:
        return text + f"in both it is longer than the run; {_describe_period_loss(each, False, 'seconds')}"
    if outlasts:
        fits = f"in steps it fits ({expected.steps:,}), but " if expected.steps else ""
        return (
            text + f"{fits}in seconds it is {_describe_run_length(expected)}, and "
            f"{_describe_period_loss(each, False, 'seconds')}"
        )
    return (
        text + f"in steps it is more than the run has ({expected.steps:,}), and "
        f"{_describe_period_loss(each, False, 'steps')}"
    )


def _describe_period_loss(each: TrainingPeriod, clocked: bool, unit: str) -> str:
    if each.kind == "log":
        return "nothing would be logged on the way, and a living run looks stalled"
    if each.kind == "eval":
        return "there would be no evaluation on the way, no learning curve and no best checkpoint"
    if clocked and unit == "seconds":
        return "the only checkpoint would be the one saved at the start, with untrained weights"
    return "no checkpoint would be saved between the start and the end; what dies loses all its work"


def _suggest_period(each: TrainingPeriod, expected: ExpectedRunLength, saved_after: float) -> str:
    """A tenth of the run: then the last checkpoint lies in its last tenth, whenever the run ends."""
    whole = expected.seconds if each.unit != "steps" else expected.steps
    most = f"set it to {_format_period_value(max(1.0, (whole or 10) // 10))} or less, a tenth of the run"
    if each.kind != "save" or saved_after:
        return most
    return f"{most}, and prove it with `proof: {{checkpoint: {{path: FILE, saved_after: 90%}}}}`"


def _check_last_checkpoint(
    each: TrainingPeriod, expected: ExpectedRunLength, saved_after: float
) -> tuple[str, str] | None:
    """A trainer that saves by the clock and not at its end: the last multiple of the period is the last checkpoint."""
    if each.kind != "save" or not expected.finished or not expected.seconds:
        return None
    last = expected.seconds // each.value * each.value
    if last / expected.seconds >= saved_after:
        return None
    share = last / expected.seconds
    what = (
        f"{each.name} {_format_period_value(each.value)} (seconds): of a run of about {expected.seconds:,.0f} s "
        "the last checkpoint "
        f"would be saved after {last:,.0f} s, {share:.0%} of it; the proof asks for {saved_after:.0%} and would fail"
    )
    return what, _suggest_period(each, expected, saved_after)


def _format_period_value(value: float) -> str:
    return f"{value:.0f}" if value == int(value) else f"{value:g}"


def _plural_of_one(count: int) -> str:
    return "one" if count == 1 else "ones"
