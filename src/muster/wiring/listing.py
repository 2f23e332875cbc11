"""Lists every file of a campaign, with hashes where they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from muster.acts.manifest import Entry, Places, began, manifest, with_hashes, with_state_file
from muster.domain.attempt import Attempt
from muster.domain.state import CampaignState
from muster.execute.local import read_order
from muster.execute.paths import attempt_folder
from muster.execute.slots import home
from muster.observe.outputs import find_output

Progress = Callable[[int, int], Callable[[int], None]]  # (files, bytes) -> what hears of the bytes that are done


def files_of(root: Path, state: CampaignState) -> list[Entry]:
    folder = root / ".muster"

    def output_of(attempt: Attempt) -> str | None:
        order = read_order(attempt_folder(folder, *attempt.place))
        return find_output(order, began(attempt)) if order else None

    return manifest(state, Places(root, folder, home() / "slots", output_of))


def hashed(root: Path, entries: list[Entry], progress: Progress) -> list[Entry]:
    """What is remembered of them is a file of the campaign too, and is listed with them."""
    from muster.observe.hashes import FILE, HashCache

    memory = root / ".muster" / FILE
    cache = HashCache(root / ".muster")
    others = [entry for entry in entries if entry.path != str(memory)]
    done = progress(len(others), sum(entry.bytes for entry in others))
    found = with_hashes(others, cache.sha256, done)
    cache.save()
    return with_state_file(found, memory)
