"""Each section is defined once: the model that reads it, the type that it becomes, and what snapshots hold of it."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Iterator
from dataclasses import MISSING, Field, FrozenInstanceError, asdict, fields, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from muster.files.campaign_snapshots import StoredSnapshot, load_campaign_snapshot, save_snapshot
from muster.model.campaign import BestOf, Campaign, LoopStop, MetricLimit, TakenAt, section_as_written
from muster.spec import read_campaign
from muster.spec.field_kinds import FileModel, build_section
from muster.spec.model_campaign import CampaignFile
from muster.spec.reference import _models_in_order

ROOT = Path(__file__).parents[3]
SECTIONS = [each for each in (*_models_in_order(CampaignFile),) if each.builds is not None]
STORED = sorted((ROOT / "tests" / "fixtures" / "logs").glob("*/campaigns/*.json"))
SHORT = ("decision", "report", "loop", "gates", "finish")


def default_of(field: Field[Any]) -> Any:
    return field.default_factory() if field.default_factory is not MISSING else field.default


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.__name__)
def test_a_section_has_the_keys_of_the_file_with_their_defaults(section: type[FileModel]) -> None:
    assert section.builds is not None
    known = {field.name: field for field in fields(section.builds)}
    read = section.model_fields
    assert [name for name in known if name in read] == list(read), "snapshots hold them in this order"
    for name, info in read.items():
        expected = MISSING if info.is_required() else build_section(info.default)
        assert default_of(known[name]) == expected, name
    assert all(default_of(known[name]) is not MISSING for name in known.keys() - read.keys())


def test_every_section_that_is_not_put_together_by_hand_builds_a_type() -> None:
    by_hand = {"CampaignFile", "ValueSettings", "Logs", "Wandb", "JobSection", "Progress", "Result", "Retry"}
    assert {each.__name__ for each in _models_in_order(CampaignFile) if each.builds is None} == by_hand


@pytest.fixture(scope="module")
def whole() -> Campaign:
    text = (Path(__file__).parent / "interface.yaml").read_text("utf-8")
    return read_campaign(text, file="campaign.yaml", folder="/home/me/c").campaign


def test_a_snapshot_is_read_as_it_was_taken_in(whole: Campaign, tmp_path: Path) -> None:
    state = tmp_path / ".muster"
    state.mkdir()
    stored = load_campaign_snapshot(state, save_snapshot(state, "text", whole, {})).campaign
    assert [getattr(stored, name) for name in SHORT] == [getattr(whole, name) for name in SHORT]
    assert (stored.notify, stored.money, stored.slots) == (whole.notify, whole.money, whole.slots)


def values_without(told: Any) -> Iterator[Any]:
    yield told
    for each in told.values() if isinstance(told, dict) else told if isinstance(told, list) else ():
        yield from values_without(each)


@pytest.mark.parametrize("path", STORED, ids=lambda path: f"{path.parts[-3]}-{path.stem}")
def test_what_0_1_stored_is_stored_again_to_the_letter(path: Path, tmp_path: Path) -> None:
    """The name of a snapshot is its hash: whoever goes on with an older campaign takes in nothing new."""
    known = msgspec.json.decode(path.read_bytes(), type=StoredSnapshot)
    state = tmp_path / ".muster"
    state.mkdir()
    name = save_snapshot(state, known.text, known.campaign, known.hashes)
    before = json.loads(path.read_bytes())["campaign"]
    after = json.loads((state / "campaigns" / f"{name}.json").read_bytes())["campaign"]
    assert list(after)[: len(before)] == list(before)
    for key in ("jobs", "notify", *SHORT):
        assert json.dumps(after[key]) == json.dumps(before[key])


def test_the_golden_snapshots_have_all_sections() -> None:
    found = [json.loads(path.read_bytes())["campaign"] for path in STORED]
    assert {name for each in found for name in SHORT if each[name]} >= {"decision", "loop", "gates"}


def test_sections_of_0_1_without_newer_keys_are_read() -> None:
    stored: dict[str, Any] = {"name": "c", "axes": [], "jobs": [], "decision": None, "loop": {"job": "train", "base": ["a.json"]},
              "finish": {"run": ["copy"]}, "gates": {"rise": {"job": "train", "read": {"csv": "a.csv", "step": "it"}}}}  # fmt: skip
    found = msgspec.convert(stored, Campaign)
    assert found.loop is not None
    assert (found.loop.rounds, found.loop.stop.no_gain) == (1, None)
    assert found.finish is not None
    assert (found.finish.run, found.finish.countdown, found.finish.others) == (("copy",), 60.0, "wait")
    assert found.gates is not None
    assert found.gates["rise"].read.place == ("csv", "a.csv")


def test_keys_without_a_value_are_not_written(whole: Campaign) -> None:
    for name in SHORT:
        assert None not in values_without(section_as_written(getattr(whole, name)))


def test_a_section_is_a_frozen_dataclass_in_all_but_its_start() -> None:
    limit = MetricLimit("cost", split="ood", max=25.0)
    assert limit == MetricLimit(metric="cost", split="ood", max=25.0) != replace(limit, max=24.0)
    assert (repr(limit), len({limit, replace(limit)})) == (
        "MetricLimit(metric='cost', split='ood', job=None, max=25.0, min=None, cap=None)", 1
    )  # fmt: skip
    assert asdict(TakenAt(BestOf("score", "lower"))) == {"at": {"best": "score", "better": "lower"}}
    assert pickle.loads(pickle.dumps(limit)) == copy.deepcopy(limit) == limit
    with pytest.raises(FrozenInstanceError):
        limit.max = 3.0  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del limit.max
    assert limit.max == 25.0
    for wrong in ({}, {"metric": "a", "nax": 3}):
        with pytest.raises(TypeError):
            MetricLimit(**wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        MetricLimit("cost", metric="cost")  # type: ignore[misc]
    with pytest.raises(TypeError):
        LoopStop(1, "x > 1", 3)  # type: ignore[call-arg]
    first, second = (
        msgspec.json.decode(text, type=MetricLimit) for text in (b'{"metric":"a","max":1}', b'{"max":1,"metric":"a"}')
    )
    assert (first, repr(first), hash(first)) == (second, repr(second), hash(second))
