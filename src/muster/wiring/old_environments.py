"""Which recorded environments are still needed: the newest, and those of attempts and steps that are not over."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from muster.domain.state import CampaignState
from muster.execute.local import read_order
from muster.execute.paths import attempt_folder
from muster.store.environments import forget_old, has_old
from muster.store.sqlite import SqliteStore
from muster.wiring.finishing import attempt_of


def forget_environments(store: SqliteStore, state_folder: Path) -> list[str]:
    """By the controller alone. A key that was rotated must not live on with the campaign."""
    if not has_old(state_folder):
        return []

    def needed() -> Collection[str] | None:
        if store.behind():
            return None  # a decision may name one, and is not folded yet
        state = store.load()
        return None if state is None else _needed(state_folder, state)

    return forget_old(state_folder, needed)


def _needed(state_folder: Path, state: CampaignState) -> set[str] | None:
    if not state.env_file:
        return None
    needed = {Path(state.env_file).name}
    for folder in _open_folders(state_folder, state):
        order = read_order(folder)
        if order is not None and order.env_file:
            needed.add(Path(order.env_file).name)
        elif (folder / "attempt.json").exists():
            return None  # it can't be read just now
    return needed


def _open_folders(state_folder: Path, state: CampaignState) -> Iterator[Path]:
    for attempt in state.open_attempts:
        yield attempt_folder(state_folder, *attempt.place)
    for record in state.finish.steps.values():
        if record.ended is None:
            cell, n = attempt_of(record).key
            yield state_folder / cell / str(n)
