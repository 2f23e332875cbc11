"""Logs of real campaigns, as older versions wrote them, fold to the state that they folded to then. For ever.

A failure here is never fixed in the fixture: a log that people have would fold to another state.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from muster.engine.store.fold import DECISION_KINDS
from muster.model.decision import EVENT_KINDS

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from golden_logs import MADE, fold_state  # noqa: E402

LOGS = sorted((ROOT / "tests" / "fixtures" / "logs").iterdir())
PRIVATE = tuple(f"/{name}/".encode() for name in ("tmp", "home", "root", "work"))


def differences(golden: Any, found: Any, where: str = "") -> Iterator[str]:
    """A newer version may know more of a thing than was known then; what was known must be the same."""
    if isinstance(golden, dict) and isinstance(found, dict):
        for key, value in golden.items():
            yield from differences(value, found[key], f"{where}.{key}") if key in found else [f"{where}.{key} is gone"]
    elif isinstance(golden, list) and isinstance(found, list) and len(golden) == len(found):
        for at, (value, other) in enumerate(zip(golden, found, strict=True)):
            yield from differences(value, other, f"{where}[{at}]")
    elif golden != found:
        yield f"{where} was {golden!r}, is {found!r}"


@pytest.mark.parametrize("log", LOGS, ids=lambda path: path.name)
def test_it_folds_to_the_same_state(log: Path) -> None:
    golden = json.loads(gzip.decompress((log / "state.json.gz").read_bytes()))
    found = fold_state(log)
    assert list(differences(golden, found)) == []
    assert golden["tables"]["cell"].keys() == found["tables"]["cell"].keys()
    assert golden["tables"]["attempt"].keys() == found["tables"]["attempt"].keys()
    assert golden["tables"]["event"].keys() == found["tables"]["event"].keys()


def test_a_change_would_be_seen() -> None:
    golden = {"cells": [{"id": "a", "given_up": None}]}
    assert list(differences(golden, {"cells": [{"id": "a", "given_up": None, "new": 1}]})) == []
    assert list(differences(golden, {"cells": [{"id": "a", "given_up": ""}]})) != []
    assert list(differences(golden, {"cells": [{"id": "a"}]})) != []
    assert list(differences(golden, {"cells": []})) != []


def test_they_hold_most_kinds_of_decisions_and_nobody_s_paths() -> None:
    kinds: set[str] = set()
    for log in LOGS:
        for path in log.rglob("*"):
            if path.is_file():
                data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
                assert not any(each in data for each in PRIVATE), path
        lines = gzip.decompress((log / "decisions.jsonl.gz").read_bytes()).splitlines()
        kinds |= {json.loads(line)["kind"] for line in lines}
    assert {log.name.removesuffix("-0.1") for log in LOGS} >= set(MADE)
    assert kinds <= DECISION_KINDS
    expected = {"campaign", "filter", "intent", "start", "settle", "adopt", "retry", "redo", "giveup", "rename", "hold",
                "release", "budget", "round", "gate", "finish", "note", "end", "epoch"}  # fmt: skip
    assert kinds - set(EVENT_KINDS) >= expected - set(EVENT_KINDS)
