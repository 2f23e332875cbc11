"""The address of a run, as W&B prints it."""

from __future__ import annotations

from pathlib import Path

import pytest

from muster.readers.records.wandb_runs import URL_SEARCH_BYTES, logged_wandb_url, wandb_url_in_text

ONLINE = "wandb: 🚀 View run calm-sun-7 at: https://wandb.ai/me/act/runs/1a2b3c4d\n"


@pytest.mark.parametrize(
    ("text", "url"),
    [
        (ONLINE, "https://wandb.ai/me/act/runs/1a2b3c4d"),
        ("\x1b[34mwandb\x1b[0m: 🚀 View run at \x1b[4mhttps://wandb.ai/me/act/runs/x1\x1b[0m\n", "https://wandb.ai/me/act/runs/x1"),
        ("wandb: View run a at: http://gpu.lab:8080/me/act/runs/x1\n", "http://gpu.lab:8080/me/act/runs/x1"),
        ("wandb: ⭐️ View project at https://wandb.ai/me/act\n", ""),
        ("see https://example.org/runs/5 for more\n", ""),
        ("wandb: W&B syncing is set to `offline` in this directory\n", ""),
        ("", ""),
    ],
)  # fmt: skip
def test_what_is_printed(text: str, url: str) -> None:
    assert wandb_url_in_text(text.encode()) == url


def test_it_is_found_at_either_end_of_a_long_log(tmp_path: Path) -> None:
    noise = "step 1\n" * URL_SEARCH_BYTES
    (tmp_path / "stdout.log").write_text(ONLINE + noise)
    assert logged_wandb_url(str(tmp_path)) == "https://wandb.ai/me/act/runs/1a2b3c4d"
    (tmp_path / "stderr.log").write_text(noise + ONLINE.replace("1a2b3c4d", "last"))
    assert logged_wandb_url(str(tmp_path)) == "https://wandb.ai/me/act/runs/last"
    assert logged_wandb_url(str(tmp_path / "nowhere")) == ""
