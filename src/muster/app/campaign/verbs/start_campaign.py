"""A campaign file is taken in, after all that would keep its runs from starting well was looked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from muster.app.campaign.campaign_handle import CAMPAIGN_FILE_NAME, CampaignHandle, load_known_state
from muster.app.campaign.cell_definitions import DefinitionChanges
from muster.app.campaign.load_campaign import (
    check_machine_fit,
    parse_only_filter,
    read_runnable_campaign,
    submit_campaign,
)
from muster.app.campaign.unknown_runs import refuse_hand_started, refuse_left_runs
from muster.files.campaign_ownership import find_campaign_root, was_started_here
from muster.files.state_folder import refuse_copied_state
from muster.model.errors import Mistake, UsageError
from muster.text.phrases import phrase

if TYPE_CHECKING:
    from muster.app.campaign.ask_environments import OnAskingEnvironment


@dataclass(frozen=True, slots=True)
class StartListener:
    """Hears meanwhile what may take long, and what is no reason not to start."""

    warnings: Callable[[Path, Sequence[Mistake]], None]  # of this campaign file
    asking: OnAskingEnvironment
    slow_git: Callable[[str], None]  # a folder in which git takes its time


@dataclass(frozen=True, slots=True)
class SubmittedCampaign:
    desk: CampaignHandle
    changes: DefinitionChanges


def start_campaign(
    folder: Path, only: list[str], listener: StartListener, *, rounds: int | None = None, loop: bool = False
) -> SubmittedCampaign:
    """Durably under the intent `running`; its controller is not started. `loop`: one is meant, and must be declared."""
    root = find_campaign_root(folder)
    file = root / CAMPAIGN_FILE_NAME
    refuse_copied_state(root / ".muster")  # who is in the wrong folder need not fix its file first
    found = read_runnable_campaign(file)
    if loop and not found.campaign.loop:
        raise UsageError(phrase("campaign.no_loop"), where=str(file), hint=phrase("campaign.declare_loop_or_up"))
    chosen = parse_only_filter(found.campaign, only)
    listener.warnings(file, (*found.warnings, *check_machine_fit(root, found, chosen)))
    before = load_known_state(root)
    refuse_left_runs(root, found.campaign, before, chosen)
    refuse_hand_started(root, found.campaign, before, chosen)
    if found.campaign.slots.gpus != () and not was_started_here(root / ".muster"):
        from muster.app.campaign.ask_environments import check_gpu_environments

        # what is executed next anyway says whether it sees the GPUs that it takes
        listener.warnings(file, check_gpu_environments(root, found, chosen, listener.asking))
    desk = CampaignHandle.create(root)
    return SubmittedCampaign(desk, submit_campaign(desk, found, chosen, rounds=rounds, slow=listener.slow_git))
