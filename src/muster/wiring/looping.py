"""Looks at a loop's runs, and carries the next round out: configs as files, a list of them, then the decision.

Files are named by what is in them, and the decision comes last: whoever is killed on the way and begins again writes
the same files once more and takes the round in once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from muster.acts.bases import FOLDER, base_text
from muster.acts.loop_settings import LoopSettings, loop_settings
from muster.acts.next_round import Next, Proposed, board_of, next_round
from muster.acts.rounds_due import most_rounds
from muster.acts.status import CellStatus, Status
from muster.acts.take_in import hashes
from muster.acts.tried import Run, Tried
from muster.domain.attempt import CellRecord
from muster.domain.errors import MusterError, UsageError
from muster.domain.variants import AXIS, Variant
from muster.domain.wording import counted
from muster.plan.grow import grown
from muster.ports.crash import reach
from muster.ports.write_files import PUBLIC_FILE, no_more_open_than, write_atomically
from muster.rounds.config import UnreadableConfig, kind_of
from muster.rounds.names import digest_of
from muster.rounds.rules import Ruling
from muster.rounds.texts import read_config
from muster.store import campaigns
from muster.wiring.codes import CodeReader
from muster.wiring.desk import FILE, Desk
from muster.wiring.histories import history_of
from muster.wiring.proposing import proposer_of, write_study
from muster.wiring.survey import look


def settings_of(status: Status) -> LoopSettings:
    loop = status.state.campaign.loop
    if loop is None:
        hint = "declare `loop:` in campaign.yaml; `muster init loop` shows one"
        raise UsageError("this campaign has no loop", hint=hint)
    return loop_settings(loop)


# -- what was tried


def tried(desk: Desk, status: Status, known: Sequence[Tried] = ()) -> list[Tried]:
    """`known`: variants whose runs have been read already, and are over."""
    read = {each.variant.name: each for each in known}
    settings = settings_of(status)
    by_variant: dict[str, list[CellStatus]] = {}
    for cell in status.cells:
        if cell.record.cell.job == settings.job:
            by_variant.setdefault(cell.record.cell.value(AXIS).name, []).append(cell)
    return [
        read.get(variant.name) or _tried(desk, variant, by_variant.get(variant.name, []))
        for variant in status.state.loop.variants
    ]


def _tried(desk: Desk, variant: Variant, cells: Sequence[CellStatus]) -> Tried:
    runs = tuple(_run(desk, cell) for cell in cells)
    try:
        text, kind = base_text(Path(variant.config)), kind_of(variant.config)
        digest = digest_of(read_config(text, kind).tree)
    except (OSError, UnreadableConfig) as error:
        said = error.strerror or error if isinstance(error, OSError) else error
        return Tried(variant, runs, trouble=f"its config {variant.config} can't be read: {said}")
    if digest != variant.digest:
        return Tried(variant, runs, trouble=f"its config {variant.config} was changed since it was taken in")
    return Tried(variant, runs, text, kind)


def _run(desk: Desk, cell: CellStatus) -> Run:
    record, verdict = cell.record, cell.verdict
    why = "" if record.done else verdict.reason
    found = history_of(desk.state, cell)
    if found is None:
        return Run(record.cell.id, str(verdict.state), why, unread="it never ran")
    return Run(record.cell.id, str(verdict.state), why, found.keys, found.unread, _pruned(record), found.resumed)


def _pruned(record: CellRecord) -> bool:
    cause = record.last.outcome.cause if record.last and record.last.outcome else None
    return not record.done and cause is not None and cause.kind == "pruned"


def explained(desk: Desk, status: Status, name: str) -> tuple[Tried, tuple[Ruling, ...]]:
    """A variant, and what the loop's proposer makes of it."""
    settings, all_tried = settings_of(status), tried(desk, status)
    found = next(each for each in all_tried if each.variant.name == name)
    if found.trouble:
        raise MusterError(found.trouble, where=name)
    board = board_of(status.state.loop, all_tried, settings)
    return found, proposer_of(settings, desk.root).explain(board, found)


# -- the next round


def proposed(desk: Desk, status: Status, told: Sequence[Tried] | None = None, *, most: int | None = None) -> Next:
    """`most`: rounds at most; None: as was asked for."""
    state, settings = status.state, settings_of(status)
    all_tried = told if told is not None else tried(desk, status)
    limit = most or most_rounds(state)
    found = next_round(state.loop, all_tried, settings, limit, proposer_of(settings, desk.root))
    if settings.search:
        write_study(desk.state, settings, board_of(state.loop, all_tried, settings), found)
    return found


def write(root: Path, found: Next, known: Sequence[Variant] = ()) -> list[Variant]:
    """The configs and the list of them; the variants with their files. `known`: those that they may be made from."""
    folder = root / FOLDER / f"round-{found.round}"
    configs = {each.name: Path(each.config) for each in known}
    variants = [_written(folder, each, root / FILE, configs.get(each.variant.parent or "")) for each in found.proposed]
    if variants:
        names = [os.path.relpath(each.config, root) for each in variants]
        listed = "".join(f"{name}\n" for name in names)
        write_atomically(folder.with_name(f"round-{found.round}.txt"), listed, mode=PUBLIC_FILE)
    return variants


def _written(folder: Path, each: Proposed, campaign: Path, base: Path | None) -> Variant:
    ending = {"json": "json", "yaml": "yaml", "toml": "toml"}[each.kind]
    path = folder / f"{each.variant.name}.{ending}"
    data = each.text.encode()
    if path.exists() and path.read_bytes() != data:
        raise MusterError(
            "a config with this name is there already, and it is another one", where=str(path),
            hint="move it away; nothing was proposed",
        )  # fmt: skip
    mode = no_more_open_than(campaign, *([base] if base else []))
    campaigns.write_durably(path, data, mode, "round.config", inside=campaign.parent)
    return replace(each.variant, config=str(path))


def take(desk: Desk, status: Status, found: Next) -> str | None:
    """Takes the round in, or why there is none; returns why it had no effect: somebody else was first."""
    state = status.state
    data: dict[str, object] = {"round": found.round, "after": state.campaign_hash}
    if found.stopped:
        decision = desk.person("round", found.stopped, data=data | {"stopped": found.stopped})
    else:
        variants = write(desk.root, found)
        reach("round.written")
        taken = campaigns.taken(desk.state, state.campaign_hash, desk.store.where())
        campaign = grown(taken.campaign, [*state.loop.variants, *variants])
        hashed = hashes(campaign, str(desk.root), CodeReader(campaign, desk.root), desk.store.origin())
        name = campaigns.save(desk.state, taken.text, campaign, hashed)
        reach("round.saved")
        told = f"round {found.round}: {counted(len(variants), 'variant')}"
        more = {"hash": name, "variants": [asdict(each) for each in variants]}
        decision = desk.person("round", told, data=data | more)
    (void,) = desk.decide([decision])
    reach("round.taken")
    return void


def opened(desk: Desk) -> Status:
    return look(desk)
