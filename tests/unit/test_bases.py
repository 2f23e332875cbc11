"""The configs that a loop begins with."""

from __future__ import annotations

from pathlib import Path

import pytest

from muster.app.campaign.run_configs import copy_base_variants, explain_fixed_variants, find_base_variants
from muster.app.loop.edit_variant import write_edited_variant
from muster.model.attempt import Attempt, CellRecord, Outcome
from muster.model.campaign import AxisValue, Campaign
from muster.model.campaign_state import CampaignState, Intent
from muster.model.cell import Cell
from muster.model.variant import LoopRecord, Variant
from muster.model.verdict import VerdictState
from muster.rules.edit_config import digest_config


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "configs").mkdir()
    for name in ("b", "a"):
        (tmp_path / "configs" / f"{name}.json").write_text(f'{{"lr": 0.1, "name": "{name}"}}')
    (tmp_path / "base.yaml").write_text("lr: 0.1\n")
    return tmp_path


def names(root: Path, *written: str) -> list[str]:
    found, mistakes = find_base_variants(written, root)
    assert mistakes == []
    return [each.name for each in found]


def said(root: Path, *written: str) -> list[str]:
    found = find_base_variants(written, root)[1]
    return [f"{each.path}: {each.message} ({each.hint})" for each in found]


def test_files_globs_and_lists_each_once(root: Path) -> None:
    (root / "next.txt").write_text("# round 2\n\nconfigs/b.json\nbase.yaml\n")
    assert names(root, "configs/b.json", "configs/*.json", "@next.txt") == ["b", "a", "base"]
    (found,), _ = find_base_variants(["base.yaml"], root)
    assert (found.config, found.round, found.parent) == (str(root / "base.yaml"), 1, None)
    assert found.digest == digest_config({"lr": 0.1})


def test_two_files_of_one_name_stay_apart(root: Path) -> None:
    (root / "a.json").write_text("{}")
    first, second = names(root, "configs/a.json", "a.json")
    assert (first, second) == ("a", f"a-{digest_config({})[:6]}")


def test_every_mistake_is_told_at_once(root: Path) -> None:
    (root / "broken.json").write_text("{")
    (root / "binary.json").write_bytes(b"\xff\xfe")
    (root / "next.txt").write_text("configs/a.json\nconfigs/aa.json\n")
    (root / "notes.text").write_text("")
    found = said(
        root, "configs/bb.json", "none/*.json", "broken.json", "binary.json", "notes.txt", "@no.txt", "@next.txt"
    )
    assert found[:2] == [
        "loop.base.0: the config configs/bb.json does not exist (did you mean configs/b.json?)",
        "loop.base.1: a file that fits none/*.json does not exist (names are relative to the campaign's folder)",
    ]
    assert "loop.base.2: broken.json: it is no JSON: line 1, column 2" in found[2]
    assert "binary.json: it is no UTF-8 text" in found[3]
    assert "the config notes.txt does not exist" in found[4]
    assert found[5] == (
        "loop.base.5: the list no.txt can't be read: No such file or directory (did you mean notes.text?)"
    )
    assert "next.txt, line 2: the config configs/aa.json does not exist (did you mean configs/" in found[6]


def test_a_list_that_is_none_is_told_with_what_it_should_be(root: Path) -> None:
    (root / "bytes.txt").write_bytes(b"\xff")
    assert said(root, "@configs", "@bytes.txt") == [
        "loop.base.0: the list configs can't be read: Is a directory "
        "(@ stands before a text file with the name of one config on each line)",
        "loop.base.1: the list bytes.txt can't be read: it is no UTF-8 text (save it as UTF-8, one name on each line)",
    ]


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("x.yaml", "x", "it is a text, not a mapping"),
        ("x.yaml", "- 1\n", "it is a list, not a mapping"),
        ("x.yaml", "# nothing\n", "it is empty"),
        ("x.json", "[1]", "it is a list, not a mapping"),
        ("x.json", "3", "it is a number, not a mapping"),
    ],
)
def test_a_config_is_a_mapping(root: Path, name: str, text: str, why: str) -> None:
    (root / name).write_text(text)
    assert said(root, name) == [f"loop.base.0: {name}: {why}: a config has keys (it must be a config file)"]


def test_a_file_that_is_no_config_is_none(root: Path) -> None:
    (root / "x.txt").write_text("lr 3")
    assert "x.txt is none of .json, .yaml, .yml and .toml" in said(root, "x.txt")[0]


# -- bases that were taken in before


def taken(root: Path, *written: str) -> LoopRecord:
    found, _ = find_base_variants(written, root)
    return LoopRecord(copy_base_variants(found, LoopRecord(), root).variants, 1)


def test_what_a_person_made_by_an_edit_keeps_its_reason_and_its_parent(root: Path) -> None:
    made = write_edited_variant(root / "configs/a.json", ["lr@mul=2"], "too slow", "2026-01-01T00:00:00Z")
    found = {each.name: each for each in taken(root, "configs/*.json").variants}[made.path.stem]
    assert (found.parent, found.edits, found.reason, found.by) == ("a", ("lr@mul=2",), "too slow", "base")
    made.path.write_text('{"lr": 0.7}')  # changed by hand since: the edits no longer tell what it is
    found = {each.name: each for each in taken(root, "configs/*.json").variants}[made.path.stem]
    assert (found.parent, found.edits, found.reason) == (None, (), "")


def test_a_base_is_mended_where_nothing_rests_on_its_config(root: Path) -> None:
    record = taken(root, "configs/*.json")
    for name in ("a", "b"):
        (root / "configs" / f"{name}.json").write_text(f'{{"lr": 0.3, "name": "{name}"}}')
    bases, _ = find_base_variants(["configs/*.json"], root)
    found = copy_base_variants(bases, record, root, {"a": "it has a good run"})
    assert [(each.name, each.digest) for each in found.mended] == [("b", digest_config({"lr": 0.3, "name": "b"}))]
    assert list(found.texts) == [found.mended[0].config]
    assert found.mended[0].config != record.variant("b").config
    stays, mended = sorted(each.message for each in found.warnings)
    assert stays == "configs/a.json has changed since it was taken in: a stays as it was"
    assert mended == "configs/b.json was fixed: b runs with it, for it never had a good run"
    assert "for it has a good run; to try the new values" in str(found.warnings[0].hint)


def test_a_base_that_was_mended_into_another_is_not_run_again(root: Path) -> None:
    record = taken(root, "configs/*.json")
    (root / "configs/b.json").write_text((root / "configs/a.json").read_text())
    bases, _ = find_base_variants(["configs/*.json"], root)
    found = copy_base_variants(bases, record, root, {})
    assert (found.mended, found.variants) == ((), ())
    assert [each.message for each in found.warnings] == [
        "configs/b.json is the same config as a now, and b stays as it was"
    ]


def test_what_keeps_a_base_as_it_is() -> None:
    variants = [Variant(name, f"/{name}", 1, name, source=f"/{name}.json") for name in ("dead", "done", "open", "root")]
    child = Variant("child", "/child", 2, "child", parent="root")

    def run(name: str, verdict: VerdictState | None) -> CellRecord:
        attempt = Attempt(
            f"train/{name}", 1, "t", 1, (), "h", "", 0.0, "b", outcome=Outcome(verdict) if verdict else None
        )
        return CellRecord(Cell(f"train/{name}", "train", (("variant", AxisValue(name, name)),)), 0, attempts=(attempt,))

    ran = {"dead": VerdictState.DEAD, "done": VerdictState.DONE, "open": None, "root": VerdictState.DEAD}
    cells = {name: run(name, verdict) for name, verdict in ran.items()}
    loop = LoopRecord((*variants, child), 2)
    assert explain_fixed_variants(
        CampaignState(Campaign("c", (), ()), "", "", Intent(), 0, cells=cells, loop=loop)
    ) == {
        "done": "it has a good run",
        "open": "a run of it is not over",
        "root": "others were made from it",
        "child": "it is no base",
    }


def test_a_list_of_names_that_do_not_exist_is_read_up_to_a_hundred(root: Path) -> None:
    """Each was looked for among its folder's files: a list of 4 MB took more than 20 s."""
    (root / "next.txt").write_text("no.yaml\n" * 3 + "".join(f"none{at}.yaml\n" for at in range(200_000)))
    found = said(root, "@next.txt")
    assert found[0].startswith("loop.base.0: next.txt, line 1: the config no.yaml does not exist")
    assert found[1].startswith("loop.base.0: next.txt, line 4: the config none0.yaml does not exist")
    assert found[-1].startswith("loop.base.0: next.txt, from line 103 on, may name more that do not exist")
    assert len(found) == 101
