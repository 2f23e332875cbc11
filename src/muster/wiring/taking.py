"""Reads a campaign file and takes it in: the text, the cells and their hashes, the environment, the filter."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from muster.acts.axis_edits import with_configs
from muster.acts.bases import base_variants, kept
from muster.acts.check import locate
from muster.acts.gate_check import gate_mistakes, missing_files
from muster.acts.later import not_yet
from muster.acts.preflight import preflight
from muster.acts.proposer_check import proposer_mistakes
from muster.acts.take_in import Changes, changes, hashes
from muster.domain.campaign import Campaign
from muster.domain.cell import all_cells
from muster.domain.decision import Decision
from muster.domain.errors import CampaignInvalid, Mistake, MusterError, UsageError
from muster.domain.state import CampaignState, Only
from muster.domain.variants import LoopRecord, Variant
from muster.domain.wording import counted
from muster.observe.code import code_identity
from muster.plan import wandb
from muster.plan.grow import grown
from muster.plan.standing import describe, wanted
from muster.store import campaigns
from muster.store.fold import OUTRUN
from muster.wiring.config_files import write_configs
from muster.wiring.desk import Desk

TRIES = 5  # rounds that may be taken in while a campaign is
OURS = ("MUSTER_ATTEMPT", "MUSTER_CELL", "MUSTER_OUT", "MUSTER_CRASH_AT", "MUSTER_CRASH_ONCE", "MUSTER_REVIVED_BY")


@dataclass(frozen=True, slots=True)
class Read:
    text: str
    campaign: Campaign
    warnings: tuple[Mistake, ...]
    bases: tuple[Variant, ...] = ()  # of a loop: the configs it begins with, as they lie there now
    fresh: tuple[Variant, ...] = ()  # those that are not known yet, as they will run
    configs: Mapping[str, str] = field(default_factory=dict)  # edited ones by path: texts to write when it is taken in


def read(file: Path) -> Read:
    """The campaign, or every mistake in it."""
    from muster.spec import read_campaign

    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = file.read_bytes()[: error.start].count(b"\n") + 1
        mistake = Mistake("the file is not UTF-8 text", line, 1, "save it as UTF-8")
        raise CampaignInvalid(str(file), (mistake,)) from None
    parsed = read_campaign(text, file=str(file), folder=str(file.parent))
    edited = with_configs(parsed.campaign, file.parent)
    bases, mistakes = base_variants(parsed.campaign.loop, file.parent) if parsed.campaign.loop else ([], [])
    mistakes += [each for each in edited.mistakes if each.level == "error"]
    if mistakes:
        raise CampaignInvalid(str(file), locate(mistakes, text))
    known = _known(file.parent) if bases else LoopRecord()
    keep = kept(bases, known, file.parent)
    noticed = [*(each for each in edited.mistakes if each.level == "warning"), *keep.warnings]
    return Read(
        text,
        grown(edited.campaign, [*known.variants, *keep.variants]),
        (*parsed.warnings, *locate(noticed, text)),
        tuple(bases),
        keep.variants,
        {**edited.texts, **keep.texts},
    )


def _known(root: Path) -> LoopRecord:
    """What was run or proposed before."""
    from muster.wiring.fitting import known_state

    before = known_state(root)
    return before.loop if before else LoopRecord()


def checked(file: Path) -> Read:
    """As `read`, and it can run here: its commands and folders exist, and this version knows what it asks for."""
    found = read(file)
    noticed = [
        *preflight(found.campaign, str(file.parent), os.environ),
        *not_yet(found.campaign),
        *gate_mistakes(found.campaign),
        *missing_files(found.campaign, str(file.parent)),
        *proposer_mistakes(found.campaign.loop, found.bases, file.parent),
    ]
    mistakes = [each for each in noticed if each.level == "error"]
    if mistakes:
        raise CampaignInvalid(str(file), locate(mistakes, found.text))
    warnings = locate([each for each in noticed if each.level == "warning"], found.text)
    return replace(found, warnings=(*found.warnings, *warnings))


def parse_only(campaign: Campaign, texts: list[str]) -> Only:
    """`seed=2,3`: values that exist, of axes that exist."""
    import difflib

    only = []
    for text in texts:
        axis, sign, values = text.partition("=")
        names = {a.name: [v.name for v in a.values] for a in campaign.axes} | {"job": [j.name for j in campaign.jobs]}
        if not sign or axis not in names:
            near = difflib.get_close_matches(axis, names, 1)
            hint = f"did you mean {near[0]}?" if near else f"axes are {', '.join(names)}"
            raise UsageError(f"--only {text}: there is no axis {axis!r}", hint=f"{hint} Write --only seed=2,3")
        chosen = tuple(value.strip() for value in values.split(","))
        for value in chosen:
            if value not in names[axis]:
                near = difflib.get_close_matches(value, names[axis], 1)
                hint = f"did you mean {near[0]}?" if near else f"values are {', '.join(names[axis][:10])}"
                raise UsageError(f"--only {text}: the axis {axis} has no value {value!r}", hint=hint)
        only.append({axis: chosen})
    return tuple(only)


def recorded_environment(campaign: Campaign) -> dict[str, str]:
    """What every attempt gets, whoever starts it: what we were called in, and W&B's defaults beneath it."""
    own = {key: value for key, value in os.environ.items() if key not in OURS}
    return {**wandb.defaults(campaign.wandb), **own}


def take_in(desk: Desk, found: Read, only: Only, *, rounds: int | None = None) -> Changes:
    """Taken in durably, under the intent `running`. A campaign that is held refuses."""
    for _ in range(TRIES):
        before = desk.store.load()
        if before and before.intent.kind == "held":
            raise held(f"the campaign is held: {before.intent.reason}")
        what, refused = _take_in(desk, up_to_date(found, before), only, before, rounds)
        if refused != OUTRUN:
            break
    if refused == OUTRUN:
        raise MusterError(f"{refused}, and again; nothing was changed", where=str(desk.root), hint="try again")
    if refused:
        raise held(refused)
    return what


def _take_in(
    desk: Desk, found: Read, only: Only, before: CampaignState | None, rounds: int | None
) -> tuple[Changes, str]:
    write_configs(found.configs)
    hashed = hashes(found.campaign, str(desk.root), code_identity)
    what = changes(before, hashed) if before else Changes()
    data = taken_data(desk, found, hashed, before) | {"with_up": True}
    if found.bases:
        data["rounds"] = rounds
    decisions = [desk.person("campaign", _describe(what), data=data)]
    if only:
        decisions.append(_filter(desk, found.campaign, only))
    decisions.append(desk.person("intent", "muster up", data={"intent": "running"}))
    return what, next((why for why in desk.decide(decisions) if why), "")


def up_to_date(found: Read, before: CampaignState | None) -> Read:
    """With the variants that a loop has now: a round may have been taken in since the file was read."""
    if not found.bases or before is None:
        return found
    known = before.loop.variants
    names = {each.name for each in known}
    fresh = tuple(each for each in found.fresh if each.name not in names)
    return replace(found, campaign=grown(found.campaign, [*known, *fresh]), fresh=fresh)


def taken_data(desk: Desk, found: Read, hashed: Mapping[str, str], before: CampaignState | None) -> dict[str, Any]:
    """What the decision `campaign` says, whoever takes it in."""
    name = campaigns.save(desk.state, found.text, found.campaign, hashed)
    env_file = campaigns.save_environment(desk.state, recorded_environment(found.campaign))
    data: dict[str, Any] = {"hash": name, "env_file": env_file, "money": money_of(found.campaign)}
    if found.bases:
        seen = len(before.loop.variants) if before else 0
        data |= {"bases": [asdict(each) for each in found.fresh], "variants_seen": seen}
    return data


def money_of(campaign: Campaign) -> dict[str, Any] | None:
    """So that the log alone tells which price held when."""
    return asdict(campaign.money) if campaign.money else None


def held(said: str) -> UsageError:
    error = UsageError(said, hint="`muster release` lets it go on", code="held")
    error.exit = 3
    return error


def _filter(desk: Desk, campaign: Campaign, only: Only) -> Decision:
    left_out = [cell.id for cell in all_cells(campaign) if not wanted(cell, only)]
    chosen = [{axis: list(values) for axis, values in part.items()} for part in only]
    data = {"only": chosen, "left_out": left_out, "with_up": True}
    return desk.person("filter", f"--only {describe(only)} leaves out {counted(len(left_out))}", data=data)


def _describe(what: Changes) -> str:
    named = {"new": what.new, "gone": what.gone, "changed": what.changed, "changed after DONE": what.changed_done}
    said = [f"{len(cells)} {word}" for word, cells in named.items() if cells]
    return "taken in" + (f": {', '.join(said)}" if said else "")
