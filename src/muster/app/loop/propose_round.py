"""`muster loop propose`: reads what was tried, has the next round proposed, writes its configs, then records the
decision.

Files are named by what is in them, and the decision comes last: whoever is killed on the way and begins again writes
the same files once more and takes the round in once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from muster.app.campaign.campaign_code import CodeReader
from muster.app.campaign.campaign_handle import CAMPAIGN_FILE_NAME, CampaignHandle
from muster.app.campaign.campaign_status import CellStatus, Status
from muster.app.campaign.cell_definitions import hash_definitions
from muster.app.campaign.loop_progress import rounds_at_most
from muster.app.campaign.observe_campaign import observe_campaign
from muster.app.campaign.run_configs import LOOP_FOLDER, read_config_text
from muster.app.campaign.verbs.choose_cells import declared_names, resolve_one_cell
from muster.app.loop.next_round import NextRound, ProposedVariant, make_proposer_board, plan_next_round
from muster.app.loop.proposers import make_proposer, write_optuna_study
from muster.app.metrics.cell_history import read_cell_history
from muster.files.atomic_write import PUBLIC_FILE, mode_no_wider_than, write_atomically
from muster.files.campaign_snapshots import load_campaign_snapshot, save_snapshot, write_once_durably
from muster.files.crash_points import reach_crash_point
from muster.model.attempt import CellRecord
from muster.model.campaign import DeclaredLoop
from muster.model.errors import MusterError, UsageError
from muster.model.variant import VARIANT_AXIS, Variant, add_variants_to_campaign
from muster.rules.config_paths import UnreadableConfig, config_kind_of_file
from muster.rules.edit_config import digest_config, parse_config
from muster.rules.loop_settings import add_ready_rules
from muster.rules.proposal_rules import Ruling
from muster.rules.rank_variants import TriedVariant, VariantRun
from muster.text.phrases import phrase


def loop_settings_of_status(status: Status) -> DeclaredLoop:
    loop = status.state.campaign.loop
    if loop is None:
        hint = "declare `loop:` in campaign.yaml; `muster init loop` shows one"
        raise UsageError("this campaign has no loop", hint=hint)
    return add_ready_rules(loop)


# -- what was tried


def read_tried_variants(desk: CampaignHandle, status: Status, known: Sequence[TriedVariant] = ()) -> list[TriedVariant]:
    """`known`: variants whose runs have been read already, and are over."""
    read = {each.variant.name: each for each in known}
    settings = loop_settings_of_status(status)
    by_variant: dict[str, list[CellStatus]] = {}
    for cell in status.cells:
        if cell.record.cell.job == settings.job:
            by_variant.setdefault(cell.record.cell.value(VARIANT_AXIS).name, []).append(cell)
    return [
        read.get(variant.name) or _read_tried_variant(desk, variant, by_variant.get(variant.name, []))
        for variant in status.state.loop.variants
    ]


def _read_tried_variant(desk: CampaignHandle, variant: Variant, cells: Sequence[CellStatus]) -> TriedVariant:
    runs = tuple(_read_variant_run(desk, cell) for cell in cells)
    try:
        text, kind = read_config_text(Path(variant.config)), config_kind_of_file(variant.config)
        digest = digest_config(parse_config(text, kind).tree)
    except (OSError, UnreadableConfig) as error:
        said = error.strerror or error if isinstance(error, OSError) else error
        return TriedVariant(variant, runs, trouble=f"its config {variant.config} can't be read: {said}")
    if digest != variant.digest:
        return TriedVariant(variant, runs, trouble=f"its config {variant.config} was changed since it was taken in")
    return TriedVariant(variant, runs, text, kind)


def _read_variant_run(desk: CampaignHandle, cell: CellStatus) -> VariantRun:
    record, verdict = cell.record, cell.verdict
    why = "" if record.done else verdict.reason
    found = read_cell_history(desk.state, cell)
    if found is None:
        return VariantRun(record.cell.id, str(verdict.state), why, unread="it never ran")
    return VariantRun(
        record.cell.id, str(verdict.state), why, found.keys, found.unread, _was_run_pruned(record), found.resumed
    )


def _was_run_pruned(record: CellRecord) -> bool:
    cause = record.last.outcome.cause if record.last and record.last.outcome else None
    return not record.done and cause is not None and cause.kind == "pruned"


def explain_tried_variant(desk: CampaignHandle, status: Status, name: str) -> tuple[TriedVariant, tuple[Ruling, ...]]:
    """A variant, and what the loop's proposer makes of it."""
    settings, all_tried = loop_settings_of_status(status), read_tried_variants(desk, status)
    found = next(each for each in all_tried if each.variant.name == name)
    if found.trouble:
        raise MusterError(found.trouble, where=name)
    board = make_proposer_board(status.state.loop, all_tried, settings)
    return found, make_proposer(settings, desk.root).explain(board, found)


# -- the next round


def propose_next_round(
    desk: CampaignHandle, status: Status, told: Sequence[TriedVariant] | None = None, *, most: int | None = None
) -> NextRound:
    """`most`: rounds at most; None: as was asked for."""
    state, settings = status.state, loop_settings_of_status(status)
    all_tried = told if told is not None else read_tried_variants(desk, status)
    limit = most or rounds_at_most(state)
    found = plan_next_round(state.loop, all_tried, settings, limit, make_proposer(settings, desk.root))
    if settings.search:
        write_optuna_study(desk.state, settings, make_proposer_board(state.loop, all_tried, settings), found)
    return found


def write_round_configs(root: Path, found: NextRound, known: Sequence[Variant] = ()) -> list[Variant]:
    """The configs and the list of them; the variants with their files. `known`: those that they may be made from."""
    folder = root / LOOP_FOLDER / f"round-{found.round}"
    configs = {each.name: Path(each.config) for each in known}
    variants = [
        _write_variant_config(folder, each, root / CAMPAIGN_FILE_NAME, configs.get(each.variant.parent or ""))
        for each in found.proposed
    ]
    if variants:
        names = [os.path.relpath(each.config, root) for each in variants]
        listed = "".join(f"{name}\n" for name in names)
        write_atomically(folder.with_name(f"round-{found.round}.txt"), listed, mode=PUBLIC_FILE)
    return variants


def _write_variant_config(folder: Path, each: ProposedVariant, campaign: Path, base: Path | None) -> Variant:
    ending = {"json": "json", "yaml": "yaml", "toml": "toml"}[each.kind]
    path = folder / f"{each.variant.name}.{ending}"
    data = each.text.encode()
    if path.exists() and path.read_bytes() != data:
        raise MusterError(
            "a config with this name is there already, and it is another one",
            where=str(path),
            hint="move it away; nothing was proposed",
        )
    mode = mode_no_wider_than(campaign, *([base] if base else []))
    write_once_durably(path, data, mode, "round.config", inside=campaign.parent)
    return replace(each.variant, config=str(path))


def record_next_round(desk: CampaignHandle, status: Status, found: NextRound) -> str | None:
    """Takes the round in, or why there is none; returns why it had no effect: somebody else was first."""
    state = status.state
    data: dict[str, object] = {"round": found.round, "after": state.campaign_hash}
    if found.stopped:
        decision = desk.person("round", found.stopped, data=data | {"stopped": found.stopped})
    else:
        variants = write_round_configs(desk.root, found)
        reach_crash_point("round.written")
        taken = load_campaign_snapshot(desk.state, state.campaign_hash, desk.store.where())
        campaign = add_variants_to_campaign(taken.campaign, [*state.loop.variants, *variants])
        hashed = hash_definitions(campaign, str(desk.root), CodeReader(campaign, desk.root), desk.store.origin())
        name = save_snapshot(desk.state, taken.text, campaign, hashed)
        reach_crash_point("round.saved")
        told = f"round {found.round}: {phrase('count.variant', n=len(variants))}"
        more = {"hash": name, "variants": [asdict(each) for each in variants]}
        decision = desk.person("round", told, data=data | more)
    (void,) = desk.decide([decision])
    reach_crash_point("round.taken")
    return void


def observe_loop_campaign(desk: CampaignHandle) -> Status:
    return observe_campaign(desk)


@dataclass(frozen=True, slots=True)
class PreparedRound:
    """The next round, or why there is none; its configs are written."""

    found: NextRound
    variants: list[Variant]
    tried: list[TriedVariant]
    command: str  # that runs it, where it was not taken in


def prepare_round(desk: CampaignHandle, *, take: bool, number: int | None = None) -> PreparedRound | None:
    """`take`: it is decided, too, and its runs may start. None: round `number` was decided already.

    By hand, without a number, a round that is not over yet is refused: that is no reason to stop the loop.
    """
    desk.refuse_stranger()
    status = observe_loop_campaign(desk)
    loop = status.state.loop
    if number is not None and loop.round + 1 != number:
        return None
    tried = read_tried_variants(desk, status)
    found = propose_next_round(desk, status, tried, most=None if take else loop.round + 1)
    if not take:
        variants = write_round_configs(desk.root, found, loop.variants)
    else:
        if number is None:
            _refuse_open_round(found, status, tried)
        if void := record_next_round(desk, status, found):
            raise MusterError(f"the round was not taken in: {void}", where=str(desk.root), hint="`muster status` tells")
        variants = [each.variant for each in found.proposed]
    more = f" --rounds {found.round}" if found.round > rounds_at_most(desk.load()) else ""
    return PreparedRound(found, variants, tried, f"muster loop run{more}")


def _refuse_open_round(found: NextRound, status: Status, tried: Sequence[TriedVariant]) -> None:
    newest = [each for each in tried if each.variant.round == status.state.loop.round]
    if any(not run.over for each in newest for run in each.runs):
        error = MusterError(f"the round was not taken in: {found.stopped}", hint="`muster wait` waits for its end")
        error.exit = 3
        raise error


def find_loop_variant(status: Status, pattern: str) -> str:
    """A variant of the loop by its name, or by a run of it."""
    if pattern in [each.name for each in status.state.loop.variants]:
        return pattern
    job, names = loop_settings_of_status(status).job, declared_names(status.state)
    seeds = [name for name in names if name.startswith(f"{pattern}/")]  # `train/act` of `train/act/0`, ...
    named = [
        value.name for each in seeds for axis, value in status.state.cells[each].cell.values if axis == VARIANT_AXIS
    ]
    name = seeds[0] if len(set(named)) == 1 and pattern not in names else resolve_one_cell(pattern, names)
    cell = status.state.cells[name].cell
    if cell.job != job:
        raise UsageError(f"{name} is no run of the loop", hint=f"its runs are cells of {job}")
    return cell.value(VARIANT_AXIS).name
