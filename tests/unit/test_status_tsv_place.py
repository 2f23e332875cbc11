"""The status tables lie in the campaign's folder, and nobody makes that folder anew for them."""

from pathlib import Path
from unittest.mock import Mock

import pytest

from muster.app.overview.status_tsv import write_status_tsv


def test_a_campaign_that_was_moved_away_is_not_made_anew(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_status_tsv(tmp_path / "gone", Mock())
    assert not list(tmp_path.iterdir())
