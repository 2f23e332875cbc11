"""What commands write for other processes is English, whatever language they speak themselves."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from muster.app.campaign.campaign_code import CODE_BOOK, load_code_book, save_code_book
from muster.app.campaign.preflight.check_campaign import PREFLIGHT_RECORD, _save_preflight_record
from muster.app.campaign.preflight.check_report import MachineFacts
from muster.app.campaign.stamp import Stamp, StampBasis
from muster.app.campaign.stamp_files import write_stamp
from muster.app.loop.edit_variant import _append_variant_record
from muster.readers.source_code import CodeState
from muster.text.phrases import phrase, speaking


def test_the_code_book(tmp_path: Path) -> None:
    with speaking("pseudo"):
        save_code_book(tmp_path, {"/w": CodeState({"note": phrase("campaign.nothing_changed")})})
    assert "⟦" not in (tmp_path / CODE_BOOK).read_text("utf-8")
    assert load_code_book(tmp_path)["/w"].code == {"note": "nothing was changed"}


def test_the_preflight_record(tmp_path: Path) -> None:
    with speaking("pseudo"):
        record: dict[str, Any] = {"code": {}, "pythons": [{"note": phrase("campaign.environment_not_asked")}]}
        path, trouble = _save_preflight_record(
            tmp_path, MachineFacts((), None, record), cast("Any", SimpleNamespace(seen={}))
        )
    assert trouble is None
    assert path is not None
    told = json.loads((tmp_path / ".muster" / PREFLIGHT_RECORD).read_text("utf-8"))
    assert told["pythons"][0]["note"] == "not asked: `muster check --ask` executes it"


def test_a_stamp(tmp_path: Path) -> None:
    with speaking("pseudo"):
        basis = StampBasis("c", {}, {}, missing=(phrase("campaign.nothing_changed"),))
        write_stamp(tmp_path, Stamp("report", "muster report", "now", "1", basis, {}))
    assert "⟦" not in (tmp_path / "reports/stamps/report.json").read_text("utf-8")


def test_the_record_of_a_variant(tmp_path: Path) -> None:
    with speaking("pseudo"):
        _append_variant_record(tmp_path / "made.jsonl", {"reason": phrase("campaign.nothing_changed")}, 0o644)
    assert json.loads((tmp_path / "made.jsonl").read_text("utf-8")) == {"reason": "nothing was changed"}
