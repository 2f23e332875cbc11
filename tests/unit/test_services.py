"""What a process works with: built once, when somebody asks; a process that has not begun as it should says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from muster.bootstrap import install_local_services
from muster.engine.ports import services


@pytest.fixture(autouse=True)
def _installed_again() -> object:
    yield
    install_local_services()


def test_they_are_built_once_and_anew_after_another_install() -> None:
    install_local_services()
    first = services.installed_services()
    assert services.installed_services() is first
    install_local_services()
    assert services.installed_services() is not first


def test_a_process_that_installed_nothing_says_so(tmp_path: Path) -> None:
    code = "from muster.app.campaign.campaign_handle import CampaignHandle; from pathlib import Path; CampaignHandle.create(Path('.'))"
    (tmp_path / "campaign.yaml").touch()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert "nothing is installed: a process begins with muster.bootstrap.install_local_services()" in done.stderr


def test_to_install_loads_neither_a_host_nor_a_store() -> None:
    code = "import sys, muster.bootstrap as b; b.install_local_services(); print([m for m in sys.modules if '.hosts' in m or '.store.' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_command_begins_without_what_reports_need() -> None:
    code = "import sys, muster.faces.cli.common.entrypoint; print([m for m in ('numpy', 'scipy', 'pydantic', 'rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
