"""Paths of a campaign's folder, wherever it lies now."""

from __future__ import annotations

import pytest

from muster.model.campaign_location import (
    CampaignLocation,
    campaign_folder_in_path,
    relativize_decision_paths,
    resolve_decision_paths,
)

HERE = CampaignLocation("/now/camp", ("/old/camp", "/old"), ("/real/camp",))


@pytest.mark.parametrize(
    ("path", "recorded"),
    [
        ("/now/camp/out/a", "out/a"),
        ("/now/camp", "."),
        ("/real/camp/out", "out"),  # the same folder by its other name
        ("/now/campus/out", "/now/campus/out"),
        ("/now/camp/../data", "/now/camp/../data"),  # it leads out again
        ("/data/out", "/data/out"),
    ],
)
def test_what_lies_inside_is_recorded_relative(path: str, recorded: str) -> None:
    assert HERE.inside(path) == recorded


@pytest.mark.parametrize(
    ("recorded", "path"),
    [
        ("out/a", "/now/camp/out/a"),
        (".", "/now/camp"),
        ("", ""),
        ("/old/camp/out", "/now/camp/out"),  # the longest former folder counts
        ("/old/out", "/now/camp/out"),
        ("/old/camp", "/now/camp"),
        ("/older/out", "/older/out"),
        ("/now/camp/out", "/now/camp/out"),
        ("/real/camp/out", "/real/camp/out"),
        ("/data/out", "/data/out"),
    ],
)
def test_what_was_recorded_is_found_here(recorded: str, path: str) -> None:
    assert HERE.here(recorded) == path


def test_a_folder_that_moved_into_its_own_parent_or_child() -> None:
    assert CampaignLocation("/a", ("/a/b",)).here("/a/b/out") == "/a/out"
    assert CampaignLocation("/a/b", ("/a",)).here("/a/b/out") == "/a/b/out"
    assert CampaignLocation("/a/b", ("/a",)).here("/a/out") == "/a/b/out"


def test_words_that_hold_such_paths() -> None:
    moved = CampaignLocation("/now", ("/old/camp",))
    assert moved.text("--out=/old/camp/x") == "--out=/now/x"
    assert moved.text("took /old/camp/x: fits") == "took /now/x: fits"
    assert moved.text("/old/camp") == "/now"
    for other in ("/old/campus/x", "/very/old/camp/x", "/old/camp-2/x", "a/old/camp"):
        assert moved.text(other) == other


def test_the_data_of_a_decision() -> None:
    data = {
        "outcome": {"output": "/now/camp/out", "reason": "/now/camp", "results": {"output": 3.0}},
        "env_file": "/now/camp/.muster/env/a.json",
        "variants": [{"config": "/now/camp/loop/a.json", "source": ""}],
        "path": "/data/run",
        "root": "/now/camp",
    }
    recorded = relativize_decision_paths(data, HERE)
    assert recorded["outcome"] == {"output": "out", "reason": "/now/camp", "results": {"output": 3.0}}
    assert recorded["variants"] == [{"config": "loop/a.json", "source": ""}]
    assert (recorded["path"], recorded["root"]) == ("/data/run", "/now/camp")
    assert resolve_decision_paths(recorded, HERE) == data


def test_the_folder_that_a_path_into_the_state_names() -> None:
    assert campaign_folder_in_path("/a b/c/.muster/env/x.json") == "/a b/c"
    assert campaign_folder_in_path("/a/.muster") == "/a"
    assert campaign_folder_in_path("/.muster/env/x") == "/"
    assert campaign_folder_in_path(".muster/env/x.json") is None
    assert campaign_folder_in_path("/a/b") is None
    assert campaign_folder_in_path("") is None


def test_what_a_pack_brought_along_from_elsewhere() -> None:
    """By the longest name that fits: an output may lie around the campaign's folder, or in it."""
    here = CampaignLocation("/now", ("/home/me/camp",), outside=("/data/runs", "/home/me"))
    assert here.here("/data/runs/a/b.json") == "/now/.muster/outside/data/runs/a/b.json"
    assert here.here("/home/me/x") == "/now/.muster/outside/home/me/x"
    assert here.here("/home/me/camp/x") == "/now/x"
    assert here.here("/data/other") == "/data/other"
    assert here.here("/now/x") == "/now/x"
    assert here.text("--from=/data/runs/a /home/me/camp/y /data/runs2") == (
        "--from=/now/.muster/outside/data/runs/a /now/y /data/runs2"
    )
    assert here.text(here.text("/data/runs/a")) == here.text("/data/runs/a")
    assert here.inside("/now/.muster/outside/data/runs/a") == ".muster/outside/data/runs/a"
    assert CampaignLocation("/data/runs/now", outside=("/data/runs",)).text("/data/runs/now/x") == "/data/runs/now/x"
