"""What the live view draws goes past the streams that are cleaned: it is cleaned before."""

from __future__ import annotations

import pytest

from muster.faces.cli.common.live_view import _rich_text
from muster.files import known_secrets
from muster.text.secret_masking import HIDDEN_VALUE

S = "s3cr3tVALUE99"


def test_a_line_of_the_live_view_has_no_secret_and_no_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_secrets, "_learned", {})
    monkeypatch.setattr(known_secrets, "_known", None)
    known_secrets.learn_secrets({"MY_TOKEN": S})
    assert _rich_text(f"train/{S}/1 \x1b]0;title\x07 12345").plain == f"train/{HIDDEN_VALUE}/1 \\x1b]0;title\\x07 12345"
