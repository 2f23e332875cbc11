"""Runs one variant that a person made, in a campaign whose loop knows how."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from muster.acts.bases import copied, variant_of
from muster.acts.edit import Made
from muster.domain.cell import Cell
from muster.domain.errors import Mistake, UsageError
from muster.domain.state import CampaignState, Only
from muster.domain.variants import AXIS, LoopRecord
from muster.wiring.desk import FILE, Desk, find_root
from muster.wiring.fitting import fit, known_state
from muster.wiring.survey import look
from muster.wiring.taking import Read, checked, take_in, with_variant

BY = "a person"


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
        """Digest -> name, of all variants and bases."""
        return {each.digest: each.name for each in (*self.found.bases, *self.loop.variants)}


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
    parents = {digest: name for digest, name in ready.tried.items() if digest == made.parent_digest}
    plain = variant_of(made.path.absolute(), {each.name for each in (*known, *ready.found.bases)})
    text = made.path.read_text(encoding="utf-8")
    notes = tuple(f"{each.path}: {each.note}" for each in made.changes if each.note)
    variant = replace(
        plain, round=max(1, ready.loop.round), parent=parents.get(made.parent_digest), edits=made.edits,
        reason=made.reason, by=BY, notes=notes,
    )  # fmt: skip
    variant = copied(variant, ready.root)
    desk = Desk.create(ready.root)
    going_on = ready.before is not None and look(desk).going_on
    only = _also(ready.before.only, variant.name) if going_on and ready.before else ({AXIS: (variant.name,)},)
    found = with_variant(ready.found, variant, text, known)
    warnings = (*found.warnings, *fit(ready.root, found, only))
    take_in(desk, found, only, rounds=ready.loop.most or None)
    return Joined(desk, variant.name, warnings, going_on)


def _also(only: Only, name: str) -> Only:
    """The filter that holds, and this variant."""
    return tuple({axis: (*values, name) if axis == AXIS else values for axis, values in part.items()} for part in only)
