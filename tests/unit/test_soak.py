"""What `make soak` keeps of its rounds."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent.parent
TOLD = "fuzz: 5000 inputs, 61 readers, 0 failures, worst 1.3 s (campaign.yaml 12), 87 MB (npz 4711)"


@pytest.fixture(scope="module")
def soak() -> ModuleType:
    spec = importlib.util.spec_from_file_location("soak", ROOT / "tools" / "soak.py")
    assert spec
    assert spec.loader
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_the_worst_input_of_a_round_is_kept(soak: ModuleType) -> None:
    counts = soak.read_counts("fuzz", f"a reader, 3.0 s\n{TOLD}\n")
    assert counts == {"inputs": 5000, "failures": 0, "worst_s": 1.3, "worst_mb": 87}


def test_the_harness_tells_it_so(soak: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "fuzz"))
    from harness import Sum, Taken

    worst = Taken("npz", 4711)
    assert soak.read_counts("fuzz", Sum(worst_s=worst, worst_mb=worst).told()).keys() >= {"worst_s", "worst_mb"}


def test_sums_have_the_worst_of_all_rounds(soak: ModuleType) -> None:
    rounds = [
        {"inputs": 5, "worst_s": 1.5, "worst_mb": 80},
        {"inputs": 7},
        {"inputs": 1, "worst_s": 0.5, "worst_mb": 90},
    ]
    assert soak.summed(rounds) == {"inputs": 13, "worst_s": 1.5, "worst_mb": 90}
    assert soak.summed([{"inputs": 5}]) == {"inputs": 5}
