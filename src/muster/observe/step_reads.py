"""The newest step of one progress source, in words: for the proof."""

from __future__ import annotations

from dataclasses import dataclass, replace

from muster.observe.steps import last_step
from muster.ports.regular_files import is_certain


@dataclass(frozen=True, slots=True)
class StepRead:
    """`value` None: it has none, and `reading` says why."""

    reading: str
    value: float | None = None
    unread: bool = False
    ended: int | None = None  # the exit code that the file records
    scale: float = 1.0  # that its value was multiplied by


def rank(step: StepRead) -> tuple[bool, float, bool]:
    return (step.value is not None, step.value or 0.0, step.unread)


def read_step(path: str, kind: str, key: str, scale: float, name: str) -> StepRead:
    try:
        value = last_step(path, kind, key)
    except OSError as error:
        return _unread(name, error)
    if value is None:
        return StepRead(f"{name}: no step in it" + ("" if kind == "stdout" else f" (key '{key}')"))
    return _stepped(name, value, scale)


def read_records(path: str, kind: str, key: str | None, scale: float, name: str) -> StepRead:
    """Of W&B or TensorBoard; what their exit record says is told, too."""
    from muster.observe.metrics.record_steps import BoardSteps, WandbSteps
    from muster.observe.metrics.wandb import OWN_STEP

    reader = WandbSteps(path, key or OWN_STEP) if kind == "wandb" else BoardSteps(path)
    try:
        reader.look()
    except OSError as error:
        return _unread(name, error)
    code = reader.ended.code if reader.ended else None
    ended = "" if code is None else f"; it ends with exit code {code}"
    if reader.logged is None:
        return StepRead(f"{name}: no step in it{ended}", ended=code)
    return replace(_stepped(name, reader.logged, scale, ended), ended=code)


def step_text(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.10g}"


def _unread(name: str, error: OSError) -> StepRead:
    return StepRead(f"{name} can't be read: {error.strerror or error}", unread=not is_certain(error))


def _stepped(name: str, value: float, scale: float, more: str = "") -> StepRead:
    scaled = "" if scale == 1.0 else f" x {scale:g} = {step_text(value * scale)}"
    return StepRead(f"{name}: last step {step_text(value)}{scaled}{more}", value * scale, scale=scale)
