"""Two versions of examples/fish_school through Muster and its journal: the second starts from the first one's learning.

The gate stays shut in the first, opens in the second; its run is killed in the middle and goes on with the same gate.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import sys
from pathlib import Path

import pytest

from support.camp import Camp

pytestmark = pytest.mark.slow
EXAMPLE = Path(__file__).parents[2] / "examples" / "fish_school"
LEARNING = """
1. **Open the gate**: success must not begin below failure; try gate_v2.yaml, which opens in the replay.
2. **Schedule**: make it as long as the run.
"""


@pytest.fixture
def school(camp: Camp) -> Camp:
    shutil.copytree(EXAMPLE, camp.root, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    camp.environment["PATH"] = f"{Path(sys.executable).parent}:{camp.environment['PATH']}"
    return camp


def waited(camp: Camp, *where: str) -> None:
    """Until nothing runs: a call of `muster` may take no longer than a minute and a half here."""
    while camp(*where, "wait", "--timeout", "60s").returncode == 4:
        pass


def killed_in_the_middle(school: Camp) -> None:
    """Past a success of the gate, before it opens."""
    first = school.root / "v2" / ".muster" / "attempts" / "train" / "0" / "1"
    rows = first / "out" / "train.jsonl"
    while not rows.exists() or rows.read_bytes().count(b"\n") < 37:
        assert school("-C", "v2", "wait", "--timeout", "1s").returncode == 4, "it has ended"
    os.kill(json.loads((first / "identity.json").read_text())["pid"], signal.SIGKILL)


def blocks(text: str, kind: str) -> list[str]:
    return re.findall(rf"<!-- muster:begin {kind} .*?<!-- muster:end -->", text, re.DOTALL)


def test_two_versions_of_a_journal(school: Camp) -> None:
    school.environment["MUSTER_POLL_S"] = "1"
    school("up", "--detach", "--only", "seed=0", code=0)
    waited(school)
    school("journal", "new", code=0)
    school("journal", "fill", code=0)
    first = school.root / "dev_v1.md"
    text = first.read_text()
    assert "It never opened" in blocks(text, "gate")[0]
    assert "but failure wins" in blocks(text, "gate")[0]
    first.write_text(text.rstrip() + LEARNING)
    replayed = school.json("gates", "replay", "train/0", "--with", "gate_v2.yaml", code=0)
    assert replayed["opens"] is not None

    school("journal", "new", code=0)
    second = school.root / "dev_v2.md"
    assert "- [ ] P1.1 **Open the gate**" in second.read_text()
    school("-C", "v2", "up", "--detach", "--only", "seed=0", code=0)
    killed_in_the_middle(school)
    waited(school, "-C", "v2")
    school("-C", "v2", "retry", "train/0", "--because", "killed in the middle", code=0)
    waited(school, "-C", "v2")
    school("-C", "v2", "journal", "fill", "../dev_v2.md", code=0)
    text = second.read_text()
    (gate,) = blocks(text, "gate")
    assert f"at iter {replayed['opens']}" in gate, "the run with that setting opens where the replay said"
    assert "| success[first_death_p10].min | 70 | 80 |" in blocks(text, "differences")[0]
    assert "dev_v1" in blocks(text, "comparison")[0]
    for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text):
        assert (school.root / picture).read_bytes().startswith(b"\x89PNG")
    listed = re.findall(r"^\| (\S+) \| [^|]+ \| ([0-9a-f]{16}) \|$", blocks(text, "artifacts")[0], re.MULTILINE)
    assert len(listed) >= 6
    for path, digest in listed:
        assert hashlib.sha256((school.root / path).read_bytes()).hexdigest().startswith(digest)
    school("journal", "audit", code=0)
    again = second.read_bytes()
    school("-C", "v2", "journal", "fill", "../dev_v2.md", code=0)
    assert second.read_bytes() == again
