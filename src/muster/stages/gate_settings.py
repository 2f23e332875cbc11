"""A gate's settings: what counts as success and as failure, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from muster.stages.criteria import Criterion, read_criteria
from muster.stages.notation import SettingsForm, show_found_value

DEFAULT_STAGE = "default"
NO_TOLERANCE: Mapping[str, int] = {}
GATE_KEYS = ("success", "failure", "required", "tolerance", "allowance", "freeze", "phases", "wins")
CAMPAIGN_KEYS = (
    "job",
    "read",
    "stage",
    "schedule",
    "curriculum",
    "iterations",
    "every",
    "act",
    "lets",
)  # of the campaign


class FreezeSettings(NamedTuple):
    """Iterations after a change in which nothing is decided, and nothing that is seen counts."""

    advance: int = 0
    fall_back: int = 0


class GateSettings(NamedTuple):
    success: tuple[Criterion, ...] = ()  # all of them must hold
    failure: tuple[Criterion, ...] = ()  # any of them is enough
    required: int = 1  # successes in a row that advance
    tolerance: Mapping[str, int] = NO_TOLERANCE  # failures in a row that are borne, by stage
    allowance: tuple[int, ...] = ()  # failures that a phase bears in all, by phase; (): as many as come
    freeze: FreezeSettings = FreezeSettings()
    phases: int | None = None  # how many there are; None: no last one
    wins: str = "failure"  # where both hold

    @classmethod
    def of(cls, written: Mapping[str, Any]) -> GateSettings:
        """As under a gate's name in a campaign file. All mistakes at once: SpecError."""
        form = SettingsForm("gate")
        if form.mapping("", written) is None:
            form.done()
        form.known("", written, (*GATE_KEYS, *CAMPAIGN_KEYS))
        success = tuple(read_criteria(form, "success", written.get("success") or ()))
        failure = tuple(read_criteria(form, "failure", written.get("failure") or ()))
        if not written.get("success") and not written.get("failure"):
            form.wrong("", "it needs success or failure criteria", "add success: [{key: ..., min: ...}]")
        wins = written.get("wins") or "failure"
        if wins not in ("failure", "success"):
            form.wrong("wins", f"expected failure or success, found {show_found_value(wins)}")
        phases = written.get("phases")
        required = form.whole("required", written.get("required", 1), 1)
        read = cls(
            success,
            failure,
            required or 1,
            _read_tolerance(form, written.get("tolerance")),
            _read_allowance(form, written.get("allowance")),
            _read_freeze(form, written.get("freeze")),
            form.whole("phases", phases, 2) if phases is not None else None,
            str(wins),
        )
        form.done()
        return read

    def borne(self, stage: str) -> int:
        return self.tolerance.get(stage, self.tolerance.get(DEFAULT_STAGE, 0))

    def allowed(self, phase: int) -> int | None:
        """The last one holds for all later phases. None: no limit."""
        return self.allowance[min(phase, len(self.allowance) - 1)] if self.allowance else None

    def watched(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.key for each in (*self.success, *self.failure)))

    def stages(self) -> tuple[str, ...]:
        """Those it names."""
        named = [stage for each in (*self.success, *self.failure) for stage in each.by_stage]
        return tuple(dict.fromkeys([*named, *(stage for stage in self.tolerance if stage != DEFAULT_STAGE)]))

    def mapping(self) -> dict[str, Any]:
        """As `of` reads it."""
        written: dict[str, Any] = {
            "success": [each.mapping() for each in self.success],
            "failure": [each.mapping() for each in self.failure],
            "required": self.required,
        }
        if self.tolerance:
            written["tolerance"] = dict(self.tolerance)
        if self.allowance:
            written["allowance"] = list(self.allowance)
        if self.freeze != FreezeSettings():
            written["freeze"] = {"advance": self.freeze.advance, "fall_back": self.freeze.fall_back}
        if self.phases is not None:
            written["phases"] = self.phases
        return written | ({"wins": self.wins} if self.wins != "failure" else {})


def _read_tolerance(form: SettingsForm, written: object) -> dict[str, int]:
    if written is None:
        return {}
    if not isinstance(written, Mapping):
        every = form.whole("tolerance", written)
        return {DEFAULT_STAGE: every} if every else {}
    read = {str(stage): form.whole(f"tolerance.{stage}", value) for stage, value in written.items()}
    return {stage: value for stage, value in read.items() if value is not None}


def _read_allowance(form: SettingsForm, written: object) -> tuple[int, ...]:
    if written is None:
        return ()
    each = list(written) if isinstance(written, list | tuple) else [written]
    read = [form.whole(f"allowance[{at}]", value) for at, value in enumerate(each)]
    return tuple(value for value in read if value is not None)


def _read_freeze(form: SettingsForm, written: object) -> FreezeSettings:
    if written is None:
        return FreezeSettings()
    if isinstance(written, Mapping):
        form.known("freeze", written, ("advance", "fall_back"))
        advance, back = (form.whole(f"freeze.{name}", written.get(name, 0)) for name in ("advance", "fall_back"))
        return FreezeSettings(advance or 0, back or 0)
    both = form.whole("freeze", written) or 0
    return FreezeSettings(both, both)
