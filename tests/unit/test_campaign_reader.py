"""A reader tells all and what changed, and leaves the campaign as it found it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.campaign_reader import CampaignReader
from muster.app.campaign.load_campaign import read_campaign_file, submit_campaign
from muster.model.errors import UsageError

TWO = """\
muster: 1
campaign: two
axes: {seed: [0, 1]}
slots: {gpus: 0, cpus: 1}
jobs: {train: {axes: [seed], command: /bin/true}}
"""


def tree(root: Path) -> dict[str, tuple[int, int, str]]:
    """Every file and folder: when it was changed, its mode, what is in it."""
    found = {}
    for path in sorted((root, *root.rglob("*"))):
        about = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path.relative_to(root))] = (about.st_mtime_ns, about.st_mode, content)
    return found


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    monkeypatch.setenv("MUSTER_HOME", str(home))
    return home


@pytest.fixture
def desk(tmp_path: Path, home: Path) -> Iterator[CampaignHandle]:
    """Taken in under the intent `running`, and no controller lives."""
    root = tmp_path / "two"
    root.mkdir()
    (root / "campaign.yaml").write_text(TWO)
    made = CampaignHandle.create(root)
    submit_campaign(made, read_campaign_file(made.file), ())
    yield made
    made.close()


def test_reading_writes_nothing_and_revives_nobody(desk: CampaignHandle, tmp_path: Path) -> None:
    desk.close()
    before = tree(tmp_path)
    reader = CampaignReader.open(desk.root)
    status = reader.status()
    assert status.going_on
    assert not status.controller.alive
    assert [cell.record.cell.id for cell in status.cells] == ["train/0", "train/1"]
    assert reader.changes_since(0).decisions
    reader.close()
    assert tree(tmp_path) == before
    assert not (desk.state / "controller.log").exists()


def test_what_the_log_says_and_the_database_does_not_know_is_folded_into_memory(desk: CampaignHandle) -> None:
    desk.store.log.append([desk.person("note", "a note that nobody folded yet", cell="train/1")])
    before = tree(desk.root)
    reader = CampaignReader.open(desk.root)
    assert reader.changes_since(reader.revision() - 1).decisions[0].decision.kind == "note"
    assert tree(desk.root) == before
    assert desk.store.behind()


def test_changes_since_a_revision(desk: CampaignHandle) -> None:
    reader = CampaignReader.open(desk.root)
    revision = reader.revision()
    assert reader.changes_since(revision).decisions == ()
    desk.decide([desk.person("giveup", "it diverges", cell="train/1")])
    changes = reader.changes_since(revision)
    assert changes.cells == ("train/1",)
    assert not changes.anew
    assert changes.decisions[-1].decision.reason == "it diverges"
    assert changes.revision == reader.revision() == CampaignReader.open(desk.root).revision()
    assert reader.state().cells["train/1"].given_up is not None
    assert reader.changes_since(changes.revision).decisions == ()


def test_a_decision_without_effect_is_told_with_its_reason(desk: CampaignHandle) -> None:
    reader = CampaignReader.open(desk.root)
    revision = reader.revision()
    (refused,) = desk.decide([desk.person("stop", "it does not run", cell="train/0", attempt=1)])
    assert refused
    assert reader.changes_since(revision).decisions[-1].void == refused


def test_a_revision_of_another_log_gives_all_anew(desk: CampaignHandle) -> None:
    reader = CampaignReader.open(desk.root)
    now = reader.revision()
    changes = reader.changes_since(now + 7)
    assert changes.anew
    assert len(changes.decisions) == changes.revision == now


def test_a_log_that_was_replaced_is_read_from_its_beginning(desk: CampaignHandle) -> None:
    reader = CampaignReader.open(desk.root)
    desk.decide([desk.person("note", "one more")])
    revision = reader.revision()
    log = desk.state / "decisions.jsonl"
    kept = log.read_bytes().splitlines(keepends=True)[:-1]
    log.unlink()
    log.write_bytes(b"".join(kept))
    assert reader.changes_since(revision).anew
    assert reader.revision() < revision


def test_a_reader_and_whoever_decides_do_not_wait_for_each_other(desk: CampaignHandle) -> None:
    assert desk.lock.take()
    try:
        assert CampaignReader.open(desk.root).status().going_on
    finally:
        desk.lock.give_back()
    reader = CampaignReader.open(desk.root)
    assert desk.lock.take()
    desk.lock.give_back()
    reader.close()


def test_a_campaign_that_was_never_started_has_no_reader(tmp_path: Path, home: Path) -> None:
    (tmp_path / "campaign.yaml").write_text(TWO)
    with pytest.raises(UsageError, match="has not been started"):
        CampaignReader.open(tmp_path)
