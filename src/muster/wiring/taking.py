"""Reads a campaign file and takes it in: the text, the cells and their hashes, the environment, the filter."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from muster.acts.axis_edits import with_configs
from muster.acts.bases import base_variants, kept, unmendable, with_mended
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
from muster.execute.orders import lacks_environment
from muster.plan import wandb
from muster.plan.grow import grown
from muster.plan.standing import describe, wanted
from muster.ports.known_secrets import learn
from muster.ports.write_files import UMASK, umask_of_caller
from muster.store import campaigns
from muster.store.environments import recording
from muster.store.fold import OUTRUN
from muster.wiring.codes import CodeReader, Slow, silent
from muster.wiring.config_files import write_configs
from muster.wiring.desk import Desk
from muster.wiring.registering import enter
from muster.wiring.rereading import reread_decisions
from muster.wiring.started_here import HANDED_ON

TRIES = 5  # rounds that may be taken in while a campaign is
MENDED = "campaign.yaml was changed since"  # why `up` ends a hold that failures brought about
RECORDED_ANEW = "the environment of `up` was gone, and is recorded anew"
OURS = (
    "MUSTER_ATTEMPT", "MUSTER_CELL", "MUSTER_OUT", "MUSTER_CRASH_AT", "MUSTER_CRASH_ONCE", "MUSTER_REVIVED_BY",
    HANDED_ON,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Read:
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


def read(file: Path, text: str | None = None) -> Read:
    """The campaign, or every mistake in it. `text`: as if it stood in the file."""
    from msgspec import to_builtins

    from muster.spec import read_campaign

    try:
        text = file.read_text(encoding="utf-8") if text is None else text
    except UnicodeDecodeError as error:
        line = file.read_bytes()[: error.start].count(b"\n") + 1
        mistake = Mistake("the file is not UTF-8 text", line, 1, "save it as UTF-8")
        raise CampaignInvalid(str(file), (mistake,)) from None
    parsed = read_campaign(text, file=str(file), folder=str(file.parent))
    learn({}, to_builtins(parsed.campaign))  # whatever is said about it from here on
    edited = with_configs(parsed.campaign, file.parent)
    bases, mistakes = base_variants(parsed.campaign.loop, file.parent) if parsed.campaign.loop else ([], [])
    mistakes += [each for each in edited.mistakes if each.level == "error"]
    if mistakes:
        raise CampaignInvalid(str(file), locate(mistakes, text))
    before = _known(file.parent) if bases else None
    known = before.loop if before else LoopRecord()
    keep = kept(bases, known, file.parent, unmendable(before) if before else {})
    noticed = [*(each for each in edited.mistakes if each.level == "warning"), *keep.warnings]
    return Read(
        text,
        grown(edited.campaign, [*with_mended(known.variants, keep.mended), *keep.variants]),
        (*parsed.warnings, *locate(noticed, text)),
        tuple(bases),
        keep.variants,
        keep.mended,
        {**edited.texts, **keep.texts},
    )


def _known(root: Path) -> CampaignState | None:
    """What was run or proposed before."""
    from muster.wiring.fitting import known_state

    return known_state(root)


def checked(file: Path) -> Read:
    """As `read`, and it can run here: its commands and folders exist, and this version knows what it asks for."""
    found = read(file)
    noticed = noticed_here(found, file.parent)
    mistakes = [each for each in noticed if each.level == "error"]
    if mistakes:
        raise CampaignInvalid(str(file), locate(mistakes, found.text))
    warnings = locate([each for each in noticed if each.level == "warning"], found.text)
    return replace(found, warnings=(*found.warnings, *warnings))


def noticed_here(found: Read, root: Path) -> list[Mistake]:
    """What a file that is right by itself names and does not find here."""
    return [
        *preflight(found.campaign, str(root), os.environ),
        *not_yet(found.campaign),
        *gate_mistakes(found.campaign),
        *missing_files(found.campaign, str(root)),
        *proposer_mistakes(found.campaign.loop, found.bases, root),
    ]


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
    return {**wandb.defaults(campaign.wandb), **own, UMASK: f"{umask_of_caller():04o}"}


def take_in(desk: Desk, found: Read, only: Only, *, rounds: int | None = None, slow: Slow = silent) -> Changes:
    """Taken in durably, under the intent `running`. A campaign that is held refuses, unless it was mended since.

    The code is looked at here, before anything starts. `slow` hears of a folder in which git takes its time.
    """
    for _ in range(TRIES):
        before = desk.store.load()
        release = _release_of(desk, found, before) if before and before.intent.kind == "held" else None
        _refuse_former_names(desk, found.campaign, before)
        with recording(desk.state):
            what, refused = _take_in(desk, up_to_date(found, before), only, before, rounds, slow, release)
        if refused != OUTRUN:
            break
    if refused == OUTRUN:
        raise MusterError(f"{refused}, and again; nothing was changed", where=str(desk.root), hint="try again")
    if refused:
        raise held(refused)
    enter(desk.state, found.campaign.name, desk.clock.wall(), moving=True)
    return what


def _release_of(desk: Desk, found: Read, before: CampaignState) -> Decision:
    """Ends the hold that failures brought about, where what they died of was mended since; a person's hold refuses.

    Whoever had to release it first would let the rest start by the file that everything died of.
    """
    last = next(each.decision for each in reversed(desk.store.events()) if each.decision.kind == "hold")
    changed = campaigns.taken(desk.state, before.campaign_hash).text != found.text
    if not (changed or lacks_environment(before)) or not last.who.startswith("controller"):
        raise held(f"the campaign is held: {before.intent.reason}")
    return desk.person("release", MENDED if changed else RECORDED_ANEW, data={"held_for": before.intent.reason})


def _refuse_former_names(desk: Desk, campaign: Campaign, before: CampaignState | None) -> None:
    """Folders of attempts that were renamed keep the old name: no other cell may have it."""
    former = {each.born: name for name, record in before.cells.items() for each in record.attempts} if before else {}
    for cell in all_cells(campaign) if any(former) else ():
        if cell.id in former:
            what = (
                f"{cell.id} was renamed to {former[cell.id]}, and its attempts keep their folders; nothing was changed"
            )
            hint = "write the new name in campaign.yaml (`muster rename` does), or choose another one"
            raise UsageError(what, where=str(desk.file), hint=hint, code="renamed")


def _take_in(
    desk: Desk,
    found: Read,
    only: Only,
    before: CampaignState | None,
    rounds: int | None,
    slow: Slow,
    release: Decision | None,
) -> tuple[Changes, str]:
    write_configs(found.configs, found.originals(desk.file))
    code = CodeReader(found.campaign, desk.root, slow)
    hashed = hashes(found.campaign, str(desk.root), code, desk.store.origin())
    code.save()
    what = changes(before, hashed) if before else Changes()
    data = taken_data(desk, found, hashed, before) | {"with_up": True}
    if found.bases:
        data["rounds"] = rounds
    decisions = [*([release] if release else []), desk.person("campaign", _describe(what), data=data)]
    if only:
        decisions.append(_filter(desk, found.campaign, only))
    decisions.append(desk.person("intent", "muster up", data={"intent": "running"}))
    read_again = reread_decisions(desk, found.campaign, hashed, before, data["hash"])
    answers = desk.decide([*decisions, *read_again])
    refused = next((why for why in answers[: len(decisions)] if why), "")
    what = replace(what, released=release is not None)
    return _with_readings(what, read_again, answers[len(decisions) :]), refused


def _with_readings(what: Changes, read_again: Sequence[Decision], answers: Sequence[str | None]) -> Changes:
    found = [(each.cell or "", each.data["holds"]) for each, why in zip(read_again, answers, strict=True) if not why]
    proven = tuple(cell for cell, holds in found if holds)
    return replace(what, proven=proven, unproven=tuple(cell for cell, holds in found if not holds))


def up_to_date(found: Read, before: CampaignState | None) -> Read:
    """With the variants that a loop has now: since the file was read a round may have been taken in, a run begun."""
    if not found.bases or before is None:
        return found
    known, stays = before.loop.variants, unmendable(before)
    names = {each.name for each in known}
    fresh = tuple(each for each in found.fresh if each.name not in names)
    mended = tuple(each for each in found.mended if each.name not in stays)
    every = [*with_mended(known, mended), *fresh]
    return replace(found, campaign=grown(found.campaign, every), fresh=fresh, mended=mended)


def taken_data(desk: Desk, found: Read, hashed: Mapping[str, str], before: CampaignState | None) -> dict[str, Any]:
    """What the decision `campaign` says, whoever takes it in."""
    name = campaigns.save(desk.state, found.text, found.campaign, hashed)
    env_file = campaigns.save_environment(desk.state, recorded_environment(found.campaign))
    data: dict[str, Any] = {"hash": name, "env_file": env_file, "money": money_of(found.campaign)}
    data["root"] = str(desk.root)  # later it may lie elsewhere
    if found.bases:
        seen = len(before.loop.variants) if before else 0
        data |= {"bases": [asdict(each) for each in found.fresh], "variants_seen": seen}
        data |= {"mended": [asdict(each) for each in found.mended]} if found.mended else {}
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
