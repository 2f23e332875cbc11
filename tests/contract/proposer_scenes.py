"""Loops as a proposer is told them, made up."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from muster.app.loop.next_round import make_proposer_board
from muster.model.campaign import DeclaredLoop, LoopKeep
from muster.model.variant import LoopRecord, Variant
from muster.rules.edit_config import digest_config
from muster.rules.metric_summary import Summarizer, Summary
from muster.rules.proposer import ProposerInput
from muster.rules.rank_variants import TriedVariant, VariantRun

CONFIG = {"optimizer": {"lr": 0.001}, "batch_size": 32, "act": "relu", "ot": {"window": 5}}
BY = 'last("loss")'


def summary(key: str, *values: float) -> Summary:
    found = Summarizer(key)
    for step, value in enumerate(values):
        found.add(step, value)
    return found.summary()


def run(cell: str, loss: float | None = 0.5) -> VariantRun:
    if loss is None:
        return VariantRun(cell, "DEAD", "exit_code(1)", unread="nothing that it logged")
    return VariantRun(cell, "DONE", summaries={"loss": summary("loss", 1.0, loss)})


def config(**changes: Any) -> dict[str, Any]:
    """`lr`, `window` and others that the config has."""
    made: dict[str, Any] = json.loads(json.dumps(CONFIG))
    for key, value in changes.items():
        place = {"lr": made["optimizer"], "window": made["ot"]}.get(key, made)
        place[key] = value
    return made


def tried(name: str, *losses: float | None, number: int = 1, made: Any = None, **more: Any) -> TriedVariant:
    tree = made if made is not None else config()
    variant = Variant(name, f"/{name}.json", number, digest_config(tree), **more)
    runs = tuple(run(f"train/{name}/{at}", loss) for at, loss in enumerate(losses))
    return TriedVariant(variant, runs, json.dumps(tree))


def board(*all_tried: TriedVariant, top: int | None = None, better: str = "lower") -> ProposerInput:
    settings = DeclaredLoop("train", (), 9, keep=LoopKeep(top=top, by=BY, better=better))
    return make_proposer_board(record(all_tried), list(all_tried), settings)


def record(all_tried: Sequence[TriedVariant]) -> LoopRecord:
    return LoopRecord(tuple(each.variant for each in all_tried), max(each.variant.round for each in all_tried))
