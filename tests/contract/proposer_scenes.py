"""Loops as a proposer is told them, made up."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from muster.acts.loop_settings import LoopSettings
from muster.acts.next_round import board_of
from muster.domain.variants import LoopRecord, Variant
from muster.ports.proposer import Board
from muster.rounds.names import digest_of
from muster.rounds.summary import Summarizer, Summary
from muster.rounds.tried import Run, Tried

CONFIG = {"optimizer": {"lr": 0.001}, "batch_size": 32, "act": "relu", "ot": {"window": 5}}
BY = 'last("loss")'


def summary(key: str, *values: float) -> Summary:
    found = Summarizer(key)
    for step, value in enumerate(values):
        found.add(step, value)
    return found.summary()


def run(cell: str, loss: float | None = 0.5) -> Run:
    if loss is None:
        return Run(cell, "DEAD", "exit_code(1)", unread="nothing that it logged")
    return Run(cell, "DONE", summaries={"loss": summary("loss", 1.0, loss)})


def config(**changes: Any) -> dict[str, Any]:
    """`lr`, `window` and others that the config has."""
    made: dict[str, Any] = json.loads(json.dumps(CONFIG))
    for key, value in changes.items():
        place = {"lr": made["optimizer"], "window": made["ot"]}.get(key, made)
        place[key] = value
    return made


def tried(name: str, *losses: float | None, number: int = 1, made: Any = None, **more: Any) -> Tried:
    tree = made if made is not None else config()
    variant = Variant(name, f"/{name}.json", number, digest_of(tree), **more)
    runs = tuple(run(f"train/{name}/{at}", loss) for at, loss in enumerate(losses))
    return Tried(variant, runs, json.dumps(tree))


def board(*all_tried: Tried, top: int | None = None, better: str = "lower") -> Board:
    settings = LoopSettings("train", 9, top=top, by=BY, better=better)
    return board_of(record(all_tried), list(all_tried), settings)


def record(all_tried: Sequence[Tried]) -> LoopRecord:
    return LoopRecord(tuple(each.variant for each in all_tried), max(each.variant.round for each in all_tried))
