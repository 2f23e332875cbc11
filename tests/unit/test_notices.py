"""What a notify command gets: a run's last words are in it, and a terminal or a chat may show it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from muster.app.finish.run_finish import LONGEST_NOTICE, notify_people
from muster.model.campaign import Campaign
from muster.model.campaign_state import CampaignState
from muster.model.decision import Decision

TELL = 'sh -c \'printf %s "$MUSTER_NOTICE" > text; printf %s "$MUSTER_CELL" > cell; cat > told.json\''


def told(root: Path, reason: str, cell: str = "a/b/1") -> tuple[str, str, dict[str, Any]]:
    state = cast(CampaignState, SimpleNamespace(campaign=Campaign("c", (), (), notify=({"run": TELL},))))
    decision = Decision("notice", "controller", reason, cell=cell, data={"what": "death"})
    assert [each.result(20) for each in notify_people(state, str(root), decision)] == [""]
    return (root / "text").read_text(), (root / "cell").read_text(), json.loads((root / "told.json").read_text())


@pytest.mark.parametrize(
    "sign", ["\x1b]0;x\x07", "\x00", "\r", "\n", "\x9b31m", "\u202e", "\u2028", "\ud800", "\x7f", "\u200b"]
)
def test_no_control_character_is_in_a_notice(tmp_path: Path, sign: str) -> None:
    text, cell, facts = told(tmp_path, f"it died: evil{sign}words", f"a/b{sign}/1")
    for each in (text, cell, facts["text"]):
        assert each.isprintable(), each
    assert text == facts["text"]
    assert text.startswith("it died: evil")
    assert text.endswith("words")


def test_an_endless_notice_is_cut_and_told(tmp_path: Path) -> None:
    text, _, facts = told(tmp_path, "x" * 300_000)
    assert len(text) == LONGEST_NOTICE + 3
    assert facts["text"] == text
