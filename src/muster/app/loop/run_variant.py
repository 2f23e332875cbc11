"""Runs one variant that a person made, in a campaign whose loop knows how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from muster.app.campaign.campaign_handle import CAMPAIGN_FILE_NAME, CampaignHandle, load_known_state
from muster.app.campaign.campaign_status import Status
from muster.app.campaign.load_campaign import LoadedCampaign, check_machine_fit, read_runnable_campaign, submit_campaign
from muster.app.campaign.observe_campaign import observe_campaign
from muster.app.campaign.run_configs import place_variant_copy, replace_corrected_variants, variant_from_file
from muster.app.loop.edit_variant import MadeVariant
from muster.files.campaign_ownership import find_campaign_root
from muster.model.campaign_state import CampaignState, CellFilter
from muster.model.cell import Cell
from muster.model.errors import Mistake, UsageError
from muster.model.variant import PERSON, VARIANT_AXIS, LoopRecord, Variant, add_variants_to_campaign


@dataclass(frozen=True, slots=True)
class ReadyCampaign:
    """A campaign that a variant can run in; nothing is written yet."""

    root: Path
    found: LoadedCampaign
    before: CampaignState | None

    @property
    def loop(self) -> LoopRecord:
        return self.before.loop if self.before else LoopRecord()

    @property
    def tried(self) -> dict[str, str]:
        """Digest -> name, of all variants that have run."""
        cells = self.before.cells.values() if self.before else ()
        ran = {
            value.name for each in cells if each.attempts for axis, value in each.cell.values if axis == VARIANT_AXIS
        }
        return {each.digest: each.name for each in self.loop.variants if each.name in ran}


@dataclass(frozen=True, slots=True)
class AddedVariant:
    desk: CampaignHandle
    variant: str
    warnings: tuple[Mistake, ...]
    going_on: bool  # the campaign ran already: the variant takes its turn with the others

    def has(self, cell: Cell) -> bool:
        return any(axis == VARIANT_AXIS and value.name == self.variant for axis, value in cell.values)

    def exit_code(self, status: Status) -> int:
        """Of a command that waited for its cells: 0 they are done, or wait for their turn; else as `muster wait`."""
        if self.going_on or all(each.record.done for each in status.cells if self.has(each.record.cell)):
            return 0
        return 4 if status.going_on else 3


def prepare_variant_run(folder: Path) -> ReadyCampaign:
    """Refuses, before anything is written, where there is no loop that could run it."""
    root = find_campaign_root(folder)
    found = read_runnable_campaign(root / CAMPAIGN_FILE_NAME)
    if found.campaign.loop is None:
        hint = "declare `loop:`, whose job has {config_file} in its command; or leave --run out"
        raise UsageError("--run needs a campaign with a loop", where=str(root / CAMPAIGN_FILE_NAME), hint=hint)
    return ReadyCampaign(root, found, load_known_state(root))


def run_edited_variant(ready: ReadyCampaign, made: MadeVariant) -> AddedVariant:
    """Takes the campaign in with the variant in it. Where nothing was going on, nothing but the variant will run."""
    known = ready.loop.variants
    variant = next((each for each in known if each.digest == made.digest), None) or _variant_by_person(ready, made)
    desk = CampaignHandle.create(ready.root)
    going_on = ready.before is not None and observe_campaign(desk).going_on
    only = (
        _extend_filter(ready.before.only, variant.name)
        if going_on and ready.before
        else ({VARIANT_AXIS: (variant.name,)},)
    )
    found = ready.found
    if variant not in known:
        found = _add_variant_to_campaign(found, variant, made.path.read_text(encoding="utf-8"), known)
    warnings = (*found.warnings, *check_machine_fit(ready.root, found, only))
    # a loop that was over stays over: the last step says so again, and its report has this run, too
    rounds = ready.loop.round if ready.loop.stopped else ready.loop.most
    submit_campaign(desk, found, only, rounds=rounds or None)
    return AddedVariant(desk, variant.name, warnings, going_on)


def _variant_by_person(ready: ReadyCampaign, made: MadeVariant) -> Variant:
    every = (*ready.found.bases, *ready.loop.variants)
    names = {each.name for each in every if each.digest != made.digest}
    notes = tuple(f"{each.path}: {each.note}" for each in made.changes if each.note)
    found = replace(
        variant_from_file(made.path.absolute(), names),
        round=max(1, ready.loop.round),
        edits=made.edits,
        reason=made.reason,
        parent=next((each.name for each in reversed(every) if each.digest == made.parent_digest), None),
        by=PERSON,
        notes=notes,
    )
    return place_variant_copy(found, ready.root)


def _add_variant_to_campaign(
    found: LoadedCampaign, variant: Variant, text: str, known: Sequence[Variant]
) -> LoadedCampaign:
    """The campaign with one more variant, which a person made; ahead of the bases, one of which its file may be."""
    fresh = (variant, *(each for each in found.fresh if each.name != variant.name))
    configs = {**found.configs, variant.config: text}
    return replace(
        found,
        campaign=add_variants_to_campaign(found.campaign, [*replace_corrected_variants(known, found.mended), *fresh]),
        fresh=fresh,
        configs=configs,
    )


def _extend_filter(only: CellFilter, name: str) -> CellFilter:
    """The filter that holds, and this variant."""
    return tuple(
        {axis: (*values, name) if axis == VARIANT_AXIS else values for axis, values in part.items()} for part in only
    )
