"""Runs one variant that a person made, in a campaign whose loop knows how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from muster.acts.bases import copied, variant_of, with_mended
from muster.acts.edit import Made
from muster.domain.cell import Cell
from muster.domain.errors import Mistake, UsageError
from muster.domain.state import CampaignState, Only
from muster.domain.variants import AXIS, PERSON, LoopRecord, Variant
from muster.plan.grow import grown
from muster.wiring.desk import FILE, Desk
from muster.wiring.fitting import fit, known_state
from muster.wiring.roots import find_root
from muster.wiring.survey import look
from muster.wiring.taking import Read, checked, take_in


@dataclass(frozen=True, slots=True)
class Ready:
    """A campaign that a variant can run in; nothing is written yet."""

    root: Path
    found: Read
    before: CampaignState | None

    @property
    def loop(self) -> LoopRecord:
        return self.before.loop if self.before else LoopRecord()

    @property
    def tried(self) -> dict[str, str]:
        """Digest -> name, of all variants that have run."""
        cells = self.before.cells.values() if self.before else ()
        ran = {value.name for each in cells if each.attempts for axis, value in each.cell.values if axis == AXIS}
        return {each.digest: each.name for each in self.loop.variants if each.name in ran}


@dataclass(frozen=True, slots=True)
class Joined:
    desk: Desk
    variant: str
    warnings: tuple[Mistake, ...]
    going_on: bool  # the campaign ran already: the variant takes its turn with the others

    def has(self, cell: Cell) -> bool:
        return any(axis == AXIS and value.name == self.variant for axis, value in cell.values)


def ready(folder: Path) -> Ready:
    """Refuses, before anything is written, where there is no loop that could run it."""
    root = find_root(folder)
    found = checked(root / FILE)
    if found.campaign.loop is None:
        hint = "declare `loop:`, whose job has {config_file} in its command; or leave --run out"
        raise UsageError("--run needs a campaign with a loop", where=str(root / FILE), hint=hint)
    return Ready(root, found, known_state(root))


def run_variant(ready: Ready, made: Made) -> Joined:
    """Takes the campaign in with the variant in it. Where nothing was going on, nothing but the variant will run."""
    known = ready.loop.variants
    variant = next((each for each in known if each.digest == made.digest), None) or _variant(ready, made)
    desk = Desk.create(ready.root)
    going_on = ready.before is not None and look(desk).going_on
    only = _also(ready.before.only, variant.name) if going_on and ready.before else ({AXIS: (variant.name,)},)
    found = ready.found
    if variant not in known:
        found = _with_variant(found, variant, made.path.read_text(encoding="utf-8"), known)
    warnings = (*found.warnings, *fit(ready.root, found, only))
    # a loop that was over stays over: the last step says so again, and its report has this run, too
    rounds = ready.loop.round if ready.loop.stopped else ready.loop.most
    take_in(desk, found, only, rounds=rounds or None)
    return Joined(desk, variant.name, warnings, going_on)


def _variant(ready: Ready, made: Made) -> Variant:
    every = (*ready.found.bases, *ready.loop.variants)
    names = {each.name for each in every if each.digest != made.digest}
    notes = tuple(f"{each.path}: {each.note}" for each in made.changes if each.note)
    found = replace(
        variant_of(made.path.absolute(), names), round=max(1, ready.loop.round), edits=made.edits, reason=made.reason,
        parent=next((each.name for each in reversed(every) if each.digest == made.parent_digest), None), by=PERSON,
        notes=notes,
    )  # fmt: skip
    return copied(found, ready.root)


def _with_variant(found: Read, variant: Variant, text: str, known: Sequence[Variant]) -> Read:
    """The campaign with one more variant, which a person made; ahead of the bases, one of which its file may be."""
    fresh = (variant, *(each for each in found.fresh if each.name != variant.name))
    configs = {**found.configs, variant.config: text}
    return replace(
        found, campaign=grown(found.campaign, [*with_mended(known, found.mended), *fresh]), fresh=fresh, configs=configs
    )


def _also(only: Only, name: str) -> Only:
    """The filter that holds, and this variant."""
    return tuple({axis: (*values, name) if axis == AXIS else values for axis, values in part.items()} for part in only)
