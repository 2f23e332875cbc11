"""The newest step of one progress source, in words: for the proof."""

from __future__ import annotations

from dataclasses import dataclass, replace

from muster.files.safe_open import is_permanent_read_error

RECORD_FILE_KINDS = ("wandb", "tensorboard")


@dataclass(frozen=True, slots=True)
class ProofStep:
    """`value` None: it has none, and `reading` says why."""

    reading: str
    value: float | None = None
    unread: bool = False
    ended: int | None = None  # the exit code that the file records
    scale: float = 1.0  # that its value was multiplied by


def rank_of_step(step: ProofStep) -> tuple[bool, float, bool]:
    return (step.value is not None, step.value or 0.0, step.unread)


def read_newest_step(path: str, kind: str, key: str | None, scale: float, name: str) -> ProofStep:
    """What the exit record of W&B says is told, too."""
    from muster.readers.records.record_steps import look_at_whole_file, open_step_reader

    reader = open_step_reader(kind, path, key)
    try:
        look_at_whole_file(reader)
    except OSError as error:
        return _unread_step(name, error)
    code = reader.ended.code if reader.ended else None
    ended = "" if code is None else f"; it ends with exit code {code}"
    if reader.logged is None:
        asked = f" (key '{key}')" if kind in ("jsonl", "csv") else ""
        return ProofStep(f"{name}: no step in it{asked}{ended}", ended=code)
    return replace(_step_with_scale(name, reader.logged, scale, ended), ended=code)


def proof_step_text(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.10g}"


def _unread_step(name: str, error: OSError) -> ProofStep:
    return ProofStep(f"{name} can't be read: {error.strerror or error}", unread=not is_permanent_read_error(error))


def _step_with_scale(name: str, value: float, scale: float, more: str = "") -> ProofStep:
    scaled = "" if scale == 1.0 else f" x {scale:g} = {proof_step_text(value * scale)}"
    return ProofStep(f"{name}: last step {proof_step_text(value)}{scaled}{more}", value * scale, scale=scale)
