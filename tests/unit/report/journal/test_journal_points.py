"""Points: taken from the Learning section, followed by their ids, carried with their count."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from journal_world import REFERENCE, journal

from muster.app.journal.journal_audit import find_point_problems
from muster.app.journal.journal_points import (
    PointId,
    points_to_carry,
    settled_points_of,
    split_observed_and_planned,
    title_of_point,
)
from muster.app.journal.journal_text import UnreadableJournal, language_of_journal, role_of_heading, scan_journal_lines
from muster.app.journal.journal_versions import PreviousVersion, compose_new_version

NOW = datetime(2025, 11, 16, 9, 30, tzinfo=timezone(timedelta(hours=-8)))


def next_of(version: int, text: str, language: str = "zh", *older: str) -> str:
    """The text of the version after this one."""
    last = journal(version, text)
    earlier = [journal(version - len(older) + at, each) for at, each in enumerate(older)]
    before = PreviousVersion(version, points_to_carry(last, earlier), settled_points_of(last))
    return compose_new_version(version + 1, before, language, NOW)


# -- the reference itself


def test_the_reference_gives_its_three_points() -> None:
    found = points_to_carry(journal(40, REFERENCE))
    assert [str(each.id) for each in found] == ["P40.1", "P40.2", "P40.3"]
    assert [each.carried for each in found] == [0, 0, 0]
    assert [title_of_point(each.planned) for each in found] == [
        "**让 gate 真正进入 stage1**",
        "**补强 main 段稳定性**",
        "**Tail warning 可视化**",
    ]


def test_what_was_seen_and_what_is_planned_are_told_apart() -> None:
    first, second, third = points_to_carry(journal(40, REFERENCE))
    assert first.observed.endswith("`median_window=4` 判为失败。")
    assert first.planned.startswith("**让 gate 真正进入 stage1**：考虑在 main 段单独设置")
    assert second.observed.endswith("tail seeds 仍包含过难样本。")
    assert "下一轮可尝试对" in second.planned
    assert third.observed == "**Tail warning 可视化**：`tail_stage_warn_duration` 已落地。"
    assert third.planned.endswith("（例如动态阈值）提供依据。")


def test_the_next_version_of_the_reference_in_chinese() -> None:
    text = next_of(40, REFERENCE)
    assert text.startswith(
        "# dev_v41\n\n## 启动\n- 2025-11-16 (UTC-8)：承接 dev_v40 的 Learning/下一步：新要点 3 个。\n- 目标：\n\n"
        "## 观察（承接 dev_v40）\n1. P40.1 **让 gate 真正进入 stage1**：目前 main 段"
    )
    assert "\n## 实验计划\n- [ ] P40.1 **让 gate" in text
    heads = [line for line in text.splitlines() if line.startswith("## ")]
    assert heads == [
        "## 启动",
        "## 观察（承接 dev_v40）",
        "## 实验计划",
        "## 观察记录",
        "## 实验记录",
        "## Learning / 下一步",
    ]
    assert language_of_journal(scan_journal_lines(text)) == "zh"


def test_the_next_version_of_the_reference_in_english() -> None:
    text = next_of(40, REFERENCE, "en")
    assert "- 2025-11-16 (UTC-8): starts from the learning of dev_v40: 3 new points.\n- Goal:\n" in text
    heads = [line for line in text.splitlines() if line.startswith("## ")]
    assert heads == [
        "## Start",
        "## Observations (from dev_v40)",
        "## Plan",
        "## Findings",
        "## Record",
        "## Learning / next",
    ]
    assert language_of_journal(scan_journal_lines(text)) == "en"


def test_a_first_journal_has_all_sections() -> None:
    for language, start in (("en", "the first journal"), ("zh", "第一份日志")):
        text = compose_new_version(1, None, language, NOW)
        assert start in text
        assert text.count("\n## ") == 6
        assert journal(1, text).fresh == ()  # its hints are no points


# -- from version to version


@pytest.mark.parametrize("language", ["en", "zh"])
def test_points_are_done_dropped_or_carried(language: str) -> None:
    first = next_of(40, REFERENCE, language)
    edited = first.replace("- [ ] P40.1", "- [x] P40.1").replace("- [ ] P40.2", "- [-] P40.2 (dropped: no budget)")
    second = next_of(41, edited + "1. look at NE\n2. and at main\n", language, REFERENCE)
    found = {str(each.id): each for each in journal(42, second).tracked}
    assert list(found) == ["P40.3", "P41.1", "P41.2"]
    assert [each.carried for each in found.values()] == [1, 0, 0]
    assert ("carried 1 time, since v40" if language == "en" else "已沿用 1 次，自 v40 起") in second
    third = next_of(42, second + "1. more\n", language, edited)
    assert [(str(each.id), each.carried) for each in journal(43, third).tracked] == [
        ("P40.3", 2), ("P41.1", 1), ("P41.2", 1), ("P42.1", 0),
    ]  # fmt: skip


def test_the_count_survives_a_person_who_deletes_it() -> None:
    first = next_of(40, REFERENCE)
    second = next_of(41, first, "zh", REFERENCE)
    bare = second.replace("（已沿用 1 次，自 v40 起）", " ")
    found = points_to_carry(journal(42, bare), [journal(41, first), journal(40, REFERENCE)])
    assert [each.carried for each in found] == [2, 2, 2]


def test_counts_are_read_in_both_languages() -> None:
    boxes = (
        "## Plan\n- [ ] P39.1 (carried 2 times, since v39) a\n- [ ] P39.2（已沿用 3 次，自 v39 起）b\n- [ ] P39.3: c\n"
    )
    assert [(each.carried, each.text) for each in journal(41, boxes).tracked] == [(2, "a"), (3, "b"), (0, "c")]


def test_a_later_word_in_the_learning_section_is_carried() -> None:
    text = "## Observations\n1. P40.1 old\n## Plan\n- [ ] P40.1 plan\n## Learning / next\n1. P40.1 newer; consider more seeds\n2. new\n"
    first, second = points_to_carry(journal(41, text))
    assert (str(first.id), first.observed, first.planned, first.carried) == (
        "P40.1",
        "newer.",
        "consider more seeds",
        1,
    )
    assert (str(second.id), second.observed) == ("P41.1", "new")


def test_more_new_points_than_anybody_writes_all_get_an_id() -> None:
    found = journal(40, "# v40\n\n## Learning\n\n" + "- a point\n" * 10_001)
    assert [id_.number for id_, _ in found.born()] == list(range(1, len(found.fresh) + 1))
    assert len(found.fresh) == 10_001


def test_ids_that_a_person_gave_are_kept() -> None:
    text = "## Learning / next\n- [ ] P41.1 given by hand\n1. another\n- [x] done at once\n- [ ] a box without id\n"
    assert [str(each.id) for each in points_to_carry(journal(41, text))] == ["P41.1", "P41.2", "P41.3"]


@pytest.mark.parametrize(("mark", "state"), [("[x]", "done"), ("[X]", "done"), ("[ ]", "open"), ("[-]", "dropped")])
def test_marks(mark: str, state: str) -> None:
    (found,) = journal(41, f"* {mark} P40.1 text (dropped: because (of this))\n").tracked
    assert found.state == state
    assert found.reason == ("because (of this)" if state == "dropped" else "")


def test_a_reason_in_chinese() -> None:
    (found,) = journal(41, "- [-] P40.1 文字（放弃：资源不足）\n").tracked
    assert (found.text, found.reason) == ("文字", "资源不足")


def test_long_points_keep_all_their_lines() -> None:
    text = "## Learning / next\n1. first\n   goes on\n   - a detail\n\n   ```\n   code # no heading\n   ```\n2. second\n\nprose behind it\n"
    first, second = journal(41, text).fresh
    assert first.text == "first\ngoes on\n- a detail\n\n```\ncode # no heading\n```"
    assert second.text == "second"
    again = next_of(41, text, "en")
    assert "1. P41.1 first\n   goes on\n   - a detail\n\n   ```\n" in again


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("- a\n- b\n", ["a", "b"]),
        ("intro\n\n1. a\n2) b\n3、c\n- a remark\n", ["a", "b", "c"]),
        ("one paragraph\nof two lines\n\nand another\n", ["one paragraph\nof two lines", "and another"]),
        ("<!-- 1. a hint -->\n", []),
        ("<!--\n1. a hint\n-->\n", []),
        ("```\n1. code\n```\n", []),
        ("1. \n2. b\n", ["b"]),
        ("### next\n1. a\n### later\n1. b\n", ["a", "b"]),
        ("<!-- muster:begin gate run=a sha= -->\n1. generated\n<!-- muster:end -->\n", []),
    ],
)
def test_what_counts_as_a_point(text: str, points: list[str]) -> None:
    assert [item.said for item in journal(41, f"## Learning / next\n{text}## Other\n1. x\n").fresh] == points


@pytest.mark.parametrize(
    ("title", "role"),
    [
        ("启动", "start"), ("观察（承接 dev_v39）", "observations"), ("观察记录", "findings"), ("实验计划", "plan"),
        ("实验记录", "record"), ("Learning / 下一步", "learning"), ("**Learning**", "learning"), ("Next steps", "learning"),
        ("3. Plan", "plan"), ("Observations (from v3)", "observations"), ("Findings", "findings"), ("Record", "record"),
        ("dev_v40", ""), ("Appendix", ""),
    ],
)  # fmt: skip
def test_headings(title: str, role: str) -> None:
    assert role_of_heading(title) == role


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("- [ ] P40.1 a\n- [x] P40.1 b\n", 2, "P40.1 has a box already in line 1"),
        ("a\n- [?] P40.1 a\n", 2, "P40.1 has the mark [?], which means nothing"),
        ("- [-] P40.1 a\n", 1, "dropped without a reason"),
        ("- [-] P40.1 a (dropped: )\n", 1, "dropped without a reason"),
        ("a\n```\nb\n", 2, "a code block begins here and is never closed"),
        ("a\n\n<!-- b\n", 3, "a comment begins here and is never closed"),
        ("<!-- muster:begin gate run=a -->\n", 1, "a generated block begins here and is never closed"),
        ("<!-- muster:end -->\n", 1, "ends here that never began"),
        ("<!-- muster:begin gate run=a -->\n<!-- muster:begin gate run=b -->\n", 2, "begins inside that of line 1"),
        ("<!-- muster:stop -->\n", 1, "there is no marker muster:stop"),
        ("<!-- muster:begin\n", 1, "damaged"),
    ],
)
def test_what_can_not_be_read_is_told_with_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(UnreadableJournal) as refused:
        journal(41, text)
    assert refused.value.line == line
    assert message in refused.value.message


@pytest.mark.parametrize(
    ("text", "observed", "planned"),
    [
        ("it fell, consider more seeds", "it fell.", "consider more seeds"),
        ("It fell. We should use more seeds.", "It fell.", "We should use more seeds."),
        ("只有一句话", "只有一句话", "只有一句话"),
        ("**题目**：看到了 `a，应b`，应该改", "**题目**：看到了 `a，应b`。", "**题目**：应该改"),
        ("应该改", "应该改", "应该改"),
        ("a" * 200, "a" * 200, "a" * 79 + "…"),
    ],
)
def test_intentions(text: str, observed: str, planned: str) -> None:
    assert split_observed_and_planned(text) == (observed, planned)


# -- over many versions


def test_points_that_are_carried_three_times_are_told() -> None:
    texts = [REFERENCE]
    for version in range(41, 45):
        texts.append(next_of(version - 1, texts[-1], "en", *texts[:-1][-2:]))
    journals = [journal(40 + at, text) for at, text in enumerate(texts)]
    assert [each.kind for each in find_point_problems(journals[:4])] == []
    found = find_point_problems(journals)
    assert [(each.kind, str(each.id), each.wrong) for each in found] == [
        ("carried", f"P40.{n}", False) for n in (1, 2, 3)
    ]
    assert "carried 3 times, since v40" in found[0].message


def test_points_that_vanished_are_told() -> None:
    first = next_of(40, REFERENCE, "en")
    lost = "".join(line for line in first.splitlines(keepends=True) if not line.startswith("- [ ] P40.2"))
    (found,) = find_point_problems([journal(40, REFERENCE), journal(41, lost)])
    assert (found.kind, found.id, found.wrong) == ("vanished", PointId(40, 2), True)
    assert "open in dev_v40" in found.message
    later = next_of(41, lost, "en")
    (found,) = find_point_problems([journal(40, REFERENCE), journal(41, lost), journal(42, later)])
    assert found.id == PointId(40, 2)
    mended = later + "- [-] P40.2 (dropped: done elsewhere)\n"
    assert find_point_problems([journal(40, REFERENCE), journal(41, lost), journal(42, mended)]) == []


def test_journals_from_before_points_had_ids_lose_nothing() -> None:
    older = REFERENCE.replace("dev_v40", "dev_v39")
    assert find_point_problems([journal(39, older), journal(40, REFERENCE)]) == []
    assert find_point_problems([journal(39, older), journal(40, REFERENCE), journal(41, next_of(40, REFERENCE))]) == []


def test_ids_of_no_version_are_told() -> None:
    text = next_of(40, REFERENCE, "en") + "1. P45.1 from the future, P40.9 never was, P12.1 of a journal that is gone\n"
    found = find_point_problems([journal(40, REFERENCE), journal(41, text)])
    assert [(each.kind, str(each.id)) for each in found] == [("unknown", "P45.1"), ("unknown", "P40.9")]
    assert found[1].message == "belongs to no version: dev_v40.md has no such point"
