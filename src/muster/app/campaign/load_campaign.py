"""Loads `campaign.yaml` for `up` and friends: reads the file, hashes the cells, records environment and filter, and
checks cheaply that the campaign fits this machine.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from muster.app.campaign.campaign_code import CodeReader, SlowGitCallback, ignore_slow_git
from muster.app.campaign.campaign_handle import CAMPAIGN_FILE_NAME, CampaignHandle, load_known_state
from muster.app.campaign.cell_definitions import DefinitionChanges, find_definition_changes, hash_definitions
from muster.app.campaign.check_gates_and_loop import (
    find_gate_mistakes,
    find_missing_tail_seeds,
    find_proposer_mistakes,
)
from muster.app.campaign.preflight.check_report import MachineFacts, find_machine_mistakes
from muster.app.campaign.preflight.config_warnings import warn_of_long_periods
from muster.app.campaign.preflight.missing_programs import find_preflight_mistakes, find_unsupported_keys
from muster.app.campaign.reread_results import build_reread_decisions
from muster.app.campaign.run_configs import (
    add_axis_configs,
    copy_base_variants,
    explain_fixed_variants,
    find_base_variants,
    replace_corrected_variants,
    write_run_configs,
)
from muster.engine.plan.cell_command import wandb_default_environment
from muster.engine.plan.cell_standing import format_cell_filter, passes_filter
from muster.engine.ports.services import installed_services
from muster.files.atomic_write import UMASK_VARIABLE, umask_of_caller
from muster.files.campaign_ownership import HANDED_ON_VARIABLE, enter_register
from muster.files.campaign_snapshots import (
    load_campaign_snapshot,
    lock_environment_recording,
    save_recorded_environment,
    save_snapshot,
    why_environment_is_missing,
)
from muster.files.known_secrets import learn_secrets
from muster.model.campaign import Campaign
from muster.model.campaign_state import CampaignState, CellFilter
from muster.model.cell import list_campaign_cells
from muster.model.decision import OUTRUN_REASON, Decision
from muster.model.errors import CampaignInvalid, Mistake, MusterError, UsageError
from muster.model.variant import LoopRecord, Variant, add_variants_to_campaign
from muster.spec.read_yaml import locate_mistakes
from muster.text.phrases import join_phrases, phrase

SUBMIT_TRIES = 5  # rounds that may be taken in while a campaign is
CHANGED_FILE_CODE = "campaign.file_changed_since"  # why `up` ends a hold that failures brought about
RECORDED_ANEW_CODE = "campaign.environment_recorded_anew"
OWN_VARIABLES = (
    "MUSTER_ATTEMPT",
    "MUSTER_CELL",
    "MUSTER_OUT",
    "MUSTER_CRASH_AT",
    "MUSTER_CRASH_ONCE",
    "MUSTER_REVIVED_BY",
    HANDED_ON_VARIABLE,
)


@dataclass(frozen=True, slots=True)
class LoadedCampaign:
    text: str
    campaign: Campaign
    warnings: tuple[Mistake, ...]
    bases: tuple[Variant, ...] = ()  # of a loop: the configs it begins with, as they lie there now
    fresh: tuple[Variant, ...] = ()  # those that are not known yet, as they will run
    mended: tuple[Variant, ...] = ()  # known ones, with the config that they will run with from now on
    configs: Mapping[str, str] = field(default_factory=dict)  # edited ones by path: texts to write when it is taken in

    def originals(self, file: Path) -> dict[str, list[Path]]:
        """By the path of a config what its text was made from; `file`: the campaign's."""
        sources = {each.config: each.source for each in (*self.fresh, *self.mended) if each.source}
        return {path: [file, *([Path(sources[path])] if path in sources else [])] for path in self.configs}


def read_campaign_file(file: Path, text: str | None = None) -> LoadedCampaign:
    """The campaign, or every mistake in it. `text`: as if it stood in the file."""
    from msgspec import to_builtins

    from muster.spec import read_campaign

    try:
        text = file.read_text(encoding="utf-8") if text is None else text
    except UnicodeDecodeError as error:
        line = file.read_bytes()[: error.start].count(b"\n") + 1
        mistake = Mistake(phrase("campaign.file_not_utf8"), line, 1, phrase("campaign.save_as_utf8"))
        raise CampaignInvalid(str(file), (mistake,)) from None
    parsed = read_campaign(text, file=str(file), folder=str(file.parent))
    learn_secrets({}, to_builtins(parsed.campaign))  # whatever is said about it from here on
    edited = add_axis_configs(parsed.campaign, file.parent)
    bases, mistakes = find_base_variants(parsed.campaign.loop.base, file.parent) if parsed.campaign.loop else ([], [])
    mistakes += [each for each in edited.mistakes if each.level == "error"]
    if mistakes:
        raise CampaignInvalid(str(file), locate_mistakes(mistakes, text))
    before = _known_campaign_state(file.parent) if bases else None
    known = before.loop if before else LoopRecord()
    keep = copy_base_variants(bases, known, file.parent, explain_fixed_variants(before) if before else {})
    noticed = [*(each for each in edited.mistakes if each.level == "warning"), *keep.warnings]
    return LoadedCampaign(
        text,
        add_variants_to_campaign(
            edited.campaign, [*replace_corrected_variants(known.variants, keep.mended), *keep.variants]
        ),
        (*parsed.warnings, *locate_mistakes(noticed, text)),
        tuple(bases),
        keep.variants,
        keep.mended,
        {**edited.texts, **keep.texts},
    )


def _known_campaign_state(root: Path) -> CampaignState | None:
    """What was run or proposed before."""
    from muster.app.campaign.campaign_handle import load_known_state

    return load_known_state(root)


def read_runnable_campaign(file: Path) -> LoadedCampaign:
    """As `read`, and it can run here: its commands and folders exist, and this version knows what it asks for."""
    found = read_campaign_file(file)
    noticed = find_local_mistakes(found, file.parent)
    mistakes = [each for each in noticed if each.level == "error"]
    if mistakes:
        raise CampaignInvalid(str(file), locate_mistakes(mistakes, found.text))
    warnings = locate_mistakes([each for each in noticed if each.level == "warning"], found.text)
    return replace(found, warnings=(*found.warnings, *warnings))


def find_local_mistakes(found: LoadedCampaign, root: Path) -> list[Mistake]:
    """What a file that is right by itself names and does not find here."""
    return [
        *find_preflight_mistakes(found.campaign, str(root), os.environ),
        *find_unsupported_keys(found.campaign),
        *find_gate_mistakes(found.campaign),
        *find_missing_tail_seeds(found.campaign, str(root)),
        *find_proposer_mistakes(found.campaign.loop, found.bases, root),
    ]


def parse_only_filter(campaign: Campaign, texts: list[str]) -> CellFilter:
    """`seed=2,3`: values that exist, of axes that exist."""
    import difflib

    only = []
    for text in texts:
        axis, sign, values = text.partition("=")
        names = {a.name: [v.name for v in a.values] for a in campaign.axes} | {"job": [j.name for j in campaign.jobs]}
        if not sign or axis not in names:
            near = difflib.get_close_matches(axis, names, 1)
            hint = (
                phrase("campaign.did_you_mean", near=near[0])
                if near
                else phrase("campaign.axes_are", axes=", ".join(names))
            )
            raise UsageError(
                phrase("campaign.only_no_such_axis", text=text, axis=axis),
                hint=phrase("campaign.write_only_example", hint=hint),
            )
        chosen = tuple(value.strip() for value in values.split(","))
        for value in chosen:
            if value not in names[axis]:
                near = difflib.get_close_matches(value, names[axis], 1)
                hint = (
                    phrase("campaign.did_you_mean", near=near[0])
                    if near
                    else phrase("campaign.values_are", known=", ".join(names[axis][:10]))
                )
                raise UsageError(phrase("campaign.only_axis_no_value", text=text, axis=axis, value=value), hint=hint)
        only.append({axis: chosen})
    return tuple(only)


def build_recorded_environment(campaign: Campaign) -> dict[str, str]:
    """What every attempt gets, whoever starts it: what we were called in, and W&B's defaults beneath it."""
    own = {key: value for key, value in os.environ.items() if key not in OWN_VARIABLES}
    return {**wandb_default_environment(campaign.wandb), **own, UMASK_VARIABLE: f"{umask_of_caller():04o}"}


def submit_campaign(
    desk: CampaignHandle,
    found: LoadedCampaign,
    only: CellFilter,
    *,
    rounds: int | None = None,
    slow: SlowGitCallback = ignore_slow_git,
) -> DefinitionChanges:
    """Taken in durably, under the intent `running`. A campaign that is held refuses, unless it was fixed since.

    The code is looked at here, before anything starts. `slow` hears of a folder in which git takes its time.
    """
    for _ in range(SUBMIT_TRIES):
        before = desk.store.load()
        release = _release_decision(desk, found, before) if before and before.intent.kind == "held" else None
        _refuse_former_names(desk, found.campaign, before)
        with lock_environment_recording(desk.state):
            what, refused = _submit_once(
                desk, with_current_variants(found, before), only, before, rounds, slow, release
            )
        if refused != OUTRUN_REASON:
            break
    if refused == OUTRUN_REASON:
        raise MusterError(
            phrase("campaign.outrun_again", reason=refused),
            where=str(desk.root),
            hint=phrase("campaign.try_again"),
        )
    if refused:
        raise held_campaign_error(refused)
    enter_register(desk.state, found.campaign.name, desk.clock.wall(), moving=True)
    return what


def _release_decision(desk: CampaignHandle, found: LoadedCampaign, before: CampaignState) -> Decision:
    """Ends the hold that failures brought about, where what they died of was fixed since; a person's hold refuses.

    Whoever had to release it first would let the rest start by the file that everything died of.
    """
    last = next(each.decision for each in reversed(desk.store.events()) if each.decision.kind == "hold")
    changed = load_campaign_snapshot(desk.state, before.campaign_hash).text != found.text
    if not (changed or why_environment_is_missing(before)) or not last.who.startswith("controller"):
        raise held_campaign_error(phrase("campaign.campaign_held", reason=before.intent.reason))
    return desk.person(
        "release", phrase(CHANGED_FILE_CODE if changed else RECORDED_ANEW_CODE), data={"held_for": before.intent.reason}
    )


def _refuse_former_names(desk: CampaignHandle, campaign: Campaign, before: CampaignState | None) -> None:
    """Folders of attempts that were renamed keep the old name: no other cell may have it."""
    former = {each.born: name for name, record in before.cells.items() for each in record.attempts} if before else {}
    for cell in list_campaign_cells(campaign) if any(former) else ():
        if cell.id in former:
            what = phrase("campaign.renamed_keep_folders", id=cell.id, former=former[cell.id])
            hint = phrase("campaign.write_new_name")
            raise UsageError(what, where=str(desk.file), hint=hint, code="renamed")


def _submit_once(
    desk: CampaignHandle,
    found: LoadedCampaign,
    only: CellFilter,
    before: CampaignState | None,
    rounds: int | None,
    slow: SlowGitCallback,
    release: Decision | None,
) -> tuple[DefinitionChanges, str]:
    write_run_configs(found.configs, found.originals(desk.file))
    code = CodeReader(found.campaign, desk.root, slow)
    hashed = hash_definitions(found.campaign, str(desk.root), code, desk.store.origin())
    code.save()
    what = find_definition_changes(before, hashed) if before else DefinitionChanges()
    data = campaign_decision_data(desk, found, hashed, before) | {"with_up": True}
    if found.bases:
        data["rounds"] = rounds
    decisions = [*([release] if release else []), desk.person("campaign", _describe_changes(what), data=data)]
    if only:
        decisions.append(_filter_decision(desk, found.campaign, only))
    decisions.append(desk.person("intent", "muster up", data={"intent": "running"}))
    read_again = build_reread_decisions(desk, found.campaign, hashed, before, data["hash"])
    answers = desk.decide([*decisions, *read_again])
    refused = next((why for why in answers[: len(decisions)] if why), "")
    what = replace(what, released=release is not None)
    return _with_reread_proofs(what, read_again, answers[len(decisions) :]), refused


def _with_reread_proofs(
    what: DefinitionChanges, read_again: Sequence[Decision], answers: Sequence[str | None]
) -> DefinitionChanges:
    found = [(each.cell or "", each.data["holds"]) for each, why in zip(read_again, answers, strict=True) if not why]
    proven = tuple(cell for cell, holds in found if holds)
    return replace(what, proven=proven, unproven=tuple(cell for cell, holds in found if not holds))


def with_current_variants(found: LoadedCampaign, before: CampaignState | None) -> LoadedCampaign:
    """With the variants that a loop has now: since the file was read a round may have been taken in, a run begun."""
    if not found.bases or before is None:
        return found
    known, stays = before.loop.variants, explain_fixed_variants(before)
    names = {each.name for each in known}
    fresh = tuple(each for each in found.fresh if each.name not in names)
    mended = tuple(each for each in found.mended if each.name not in stays)
    every = [*replace_corrected_variants(known, mended), *fresh]
    return replace(found, campaign=add_variants_to_campaign(found.campaign, every), fresh=fresh, mended=mended)


def campaign_decision_data(
    desk: CampaignHandle, found: LoadedCampaign, hashed: Mapping[str, str], before: CampaignState | None
) -> dict[str, Any]:
    """What the decision `campaign` says, whoever takes it in."""
    name = save_snapshot(desk.state, found.text, found.campaign, hashed)
    env_file = save_recorded_environment(desk.state, build_recorded_environment(found.campaign))
    data: dict[str, Any] = {"hash": name, "env_file": env_file, "money": money_as_json(found.campaign)}
    data["root"] = str(desk.root)  # later it may lie elsewhere
    if found.bases:
        seen = len(before.loop.variants) if before else 0
        data |= {"bases": [asdict(each) for each in found.fresh], "variants_seen": seen}
        data |= {"mended": [asdict(each) for each in found.mended]} if found.mended else {}
    return data


def money_as_json(campaign: Campaign) -> dict[str, Any] | None:
    """So that the log alone tells which price held when."""
    return asdict(campaign.money) if campaign.money else None


def held_campaign_error(said: str) -> UsageError:
    error = UsageError(said, hint=phrase("campaign.release_goes_on"), code="held")
    error.exit = 3
    return error


def _filter_decision(desk: CampaignHandle, campaign: Campaign, only: CellFilter) -> Decision:
    left_out = [cell.id for cell in list_campaign_cells(campaign) if not passes_filter(cell, only)]
    chosen = [{axis: list(values) for axis, values in part.items()} for part in only]
    data = {"only": chosen, "left_out": left_out, "with_up": True}
    return desk.person(
        "filter",
        phrase(
            "campaign.only_leaves_out",
            filter=format_cell_filter(only),
            cells=phrase("count.cell", n=len(left_out)),
        ),
        data=data,
    )


def _describe_changes(what: DefinitionChanges) -> str:
    said = [
        phrase(code, n=len(cells)) for code, cells in zip(_CHANGE_CODES, _changed_cells(what), strict=True) if cells
    ]
    return join_phrases(": ", filter(None, (phrase("campaign.taken_in"), join_phrases(", ", said))))


_CHANGE_CODES = (
    "campaign.cells_new",
    "campaign.cells_gone",
    "campaign.cells_changed",
    "campaign.cells_changed_after_done",
)


def _changed_cells(what: DefinitionChanges) -> tuple[Sequence[str], ...]:
    return what.new, what.gone, what.changed, what.changed_done


def check_machine_fit(root: Path, found: LoadedCampaign, only: CellFilter) -> tuple[Mistake, ...]:
    """Warnings; or, where a GPU is missing that something still to run asks for, an error: nothing has started."""
    state = load_known_state(root)
    noticed = find_misfits(found.campaign, state, only)
    noticed += warn_of_long_periods(found.campaign, str(root), state.declared if state else ())
    return refuse_preflight_failures(root, locate_mistakes(noticed, found.text))


def refuse_preflight_failures(root: Path, placed: Sequence[Mistake]) -> tuple[Mistake, ...]:
    """The warnings among them; of failures an error is raised."""
    failures = [each for each in placed if each.level == "failure"]
    if failures:
        first = failures[0]
        where = (
            f"{root / CAMPAIGN_FILE_NAME}:{first.line}:{first.column}" if first.line else str(root / CAMPAIGN_FILE_NAME)
        )
        what = join_phrases("; ", [each.message for each in failures])
        raise MusterError(phrase("campaign.nothing_started", what=what), where=where, hint=first.hint, code="preflight")
    return tuple(each for each in placed if each.level == "warning")


def find_misfits(campaign: Campaign, state: CampaignState | None, only: CellFilter = ()) -> list[Mistake]:
    """What this machine lacks for the jobs that still have something to run."""
    machine = MachineFacts(_gpu_facts(campaign), None, {})
    left = find_unfinished_jobs(campaign, state, only)
    return [*find_machine_mistakes(campaign, machine, left), *(find_closed_slots() if left else ())]


def find_closed_slots() -> list[Mistake]:
    found = installed_services().machine.why_slots_are_closed()
    return [Mistake(found.why, hint=found.hint, level="failure")] if found else []


def find_unfinished_jobs(campaign: Campaign, state: CampaignState | None, only: CellFilter = ()) -> frozenset[str]:
    """Jobs with a cell that is neither done nor given up, and that the filter lets through."""
    known = state.cells if state else {}
    settled = {name for name, record in known.items() if record.done or record.given_up is not None}
    return frozenset(
        cell.job for cell in list_campaign_cells(campaign) if cell.id not in settled and passes_filter(cell, only)
    )


def _gpu_facts(campaign: Campaign) -> tuple[Mapping[str, Any], ...]:
    if campaign.slots.gpus == ():
        return ()
    return tuple({"index": gpu.index} for gpu in installed_services().machine.gpus())


def count_usable_slots(campaign: Campaign) -> int:
    """GPU slots where there are any, else CPU slots; for an estimate, not for a lease."""
    slots = campaign.slots
    gpus = [gpu for gpu in installed_services().machine.gpus() if not gpu.busy] if slots.gpus is None else slots.gpus
    return len(gpus) * slots.per_gpu or slots.cpus
