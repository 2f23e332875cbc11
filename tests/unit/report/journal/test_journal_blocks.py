"""Generated blocks go into a person's text, and not one byte of that text changes."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from journal_world import REFERENCE, run

from muster.app.journal.block_bodies import blocks_of_run
from muster.app.journal.generated_blocks import (
    BLOCK_KINDS,
    FilledText,
    GeneratedBlock,
    RunBlocks,
    fill_run_blocks,
    find_generated_blocks,
    render_generated_block,
)
from muster.app.journal.journal_text import UnreadableJournal, scan_journal_lines
from muster.text.catalogue import Catalogue, load_catalogue

EN, ZH = load_catalogue("journal", "en"), load_catalogue("journal", "zh")
ONE = RunBlocks(
    "runs/v41", "v41", {"command": "python a.py", "gate": "It never opened.", "artifacts": "| a |\n| --- |\n| b |"}
)
TWO = RunBlocks("cell:train/0", "train/0", {"evaluation": "| iter |\n| --- |\n| 8 |"})


def blocks(text: str) -> list[GeneratedBlock]:
    return find_generated_blocks(text, scan_journal_lines(text))


def outside(text: str) -> str:
    """What a person may have written."""
    parts, at = [], 0
    for block in blocks(text):
        parts.append(text[at : block.start])
        at = block.end
    return "".join([*parts, text[at:]])


def is_one_insertion(before: str, after: str) -> bool:
    """`after` is `before` with something put in at one place."""
    same = next(
        (at for at, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after))
    )
    rest = len(before) - same
    return len(after) >= len(before) and (not rest or before[same:] == after[-rest:])


PIECES = st.sampled_from([
    "# dev_v41", "## 启动", "## 实验记录", "## Record", "### v41", "### v41 (128 env)", "## Learning / 下一步", "- [ ] P40.1 text",
    "1. point", "text *with* `code`", "", "   ", "| a | b |", "|---|---|", "```\n# no heading\n<!-- muster:begin x -->\n```",
    "~~~\n```\n~~~", "<!-- a comment -->", "<!-- of\ntwo lines -->", "日志 🐟 \u2028", "\ttab", "    indented", "a<!--b-->c", "\\", "\x0c",
    "> quoted", "- item\n  ```\n  code\n  ```", "<b>", "a\u00a0b", "é", "`<!-- in code`",
])  # fmt: skip


@st.composite
def texts(draw: st.DrawFn) -> str:
    lines = draw(
        st.lists(
            PIECES | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=20),
            max_size=14,
        )
    )
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    text = "\n".join(lines).replace("\n", newline)
    text = draw(st.sampled_from(["", "\ufeff"])) + text + draw(st.sampled_from(["", newline, newline * 3]))
    try:
        blocks(text)
    except UnreadableJournal:
        assume(False)
    return text


@settings(max_examples=150, deadline=None)
@given(texts(), st.sampled_from([EN, ZH]))
def test_a_fill_only_puts_in(text: str, w: Catalogue) -> None:
    done = fill_run_blocks(text, [ONE], w)
    assert is_one_insertion(text, done.text)
    assert {block.kind for block in blocks(done.text)} == set(ONE.bodies)
    assert not any(block.edited for block in blocks(done.text))
    again = fill_run_blocks(done.text, [ONE], w)
    assert again.text == done.text
    assert len(again.same) == 3


@settings(max_examples=100, deadline=None)
@given(texts(), st.data())
def test_a_refresh_touches_nothing_outside_of_blocks(text: str, data: st.DataObject) -> None:
    """Two runs, then edits of a person between the blocks, then other contents."""
    first = fill_run_blocks(text, [ONE, TWO], EN).text
    places = sorted({len(first), *(block.start for block in blocks(first)), *(block.end for block in blocks(first))})
    at = data.draw(st.sampled_from(places))
    added = data.draw(st.sampled_from(["a remark\n", "\n\nmore\n\n", "\r\n* x\r\n", "| t |\n"]))
    edited = first[:at] + ("\n" if at in {block.end for block in blocks(first)} else "") + added + first[at:]
    before = outside(edited)
    other = RunBlocks(ONE.run, ONE.title, {kind: f"{body}\nchanged" for kind, body in ONE.bodies.items()})
    done = fill_run_blocks(edited, [other, TWO], EN)
    assert outside(done.text) == before
    assert sorted(kind for kind, _ in done.refreshed) == sorted(ONE.bodies)
    assert [block.body.count("changed") for block in blocks(done.text) if block.run == ONE.run] == [1, 1, 1]


@settings(max_examples=100, deadline=None)
@given(texts(), st.booleans())
def test_a_block_that_was_edited_by_hand_is_left_alone(text: str, force: bool) -> None:
    first = fill_run_blocks(text, [ONE], EN).text
    edited = first.replace("It never opened.", "It never opened, says a person.")
    done = fill_run_blocks(edited, [ONE], EN, force=force)
    if force:
        assert done.text == first
        assert [block.kind for block in done.forced] == ["gate"]
    else:
        assert done.text == edited
        assert [block.kind for block in done.edited] == ["gate"]


@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=60), st.text(st.characters(exclude_categories=["Cs"]))
)
@settings(max_examples=100, deadline=None)
def test_any_name_and_any_words_come_back(name: str, title: str) -> None:
    done = fill_run_blocks(REFERENCE, [RunBlocks(name or "x", " ".join(title.split()) or "t", ONE.bodies)], ZH)
    assert {block.run for block in blocks(done.text)} == {name or "x"}
    assert is_one_insertion(REFERENCE, done.text)


@pytest.mark.parametrize("title", ["<!-- x", "a\\b", "`c", "# d", "*e*", "f_g", "<b>", "[h](i)"])
def test_odd_titles(title: str) -> None:
    done = fill_run_blocks("## Record\n", [RunBlocks("r", title, ONE.bodies)], EN)
    assert fill_run_blocks(done.text, [RunBlocks("r", title, ONE.bodies)], EN).text == done.text
    bare = outside(done.text)
    assert fill_run_blocks(bare, [RunBlocks("r", title, ONE.bodies)], EN).text.count("\n### ") == 1


def test_line_ends_and_spaces_at_their_ends_are_no_edits() -> None:
    text = fill_run_blocks("# a\n", [ONE], EN).text
    for changed in (text.replace("\n", "\r\n"), text.replace("opened.\n", "opened.  \n"), text.rstrip("\n")):
        assert not any(block.edited for block in blocks(changed))
        assert fill_run_blocks(changed, [ONE], EN).text == changed


def test_a_place_that_a_person_made_is_filled() -> None:
    text = "# a\n\n<!-- muster:begin gate run=runs/v41 -->\n<!-- muster:end -->\n\nbelow\n"
    done = fill_run_blocks(text, [ONE], EN)
    first, gate, last = blocks(done.text)
    assert [first.kind, gate.kind, last.kind] == ["command", "gate", "artifacts"]  # beside it, in their order
    assert "It never opened." in gate.body
    assert outside(done.text) == "# a\n\n\n\n\n\n\n\nbelow\n"
    typed = text.replace("-->\n<!-- muster:end", "-->\nmy words\n<!-- muster:end")
    assert [block.kind for block in fill_run_blocks(typed, [ONE], EN).edited] == ["gate"]


def test_blocks_that_were_moved_are_refreshed_where_they_are() -> None:
    text = fill_run_blocks("## Record\n\n## Learning\n", [ONE], EN).text
    (gate,) = [block for block in blocks(text) if block.kind == "gate"]
    moved = text[gate.start : gate.end] + "\n\n" + text[: gate.start] + text[gate.end :]
    other = RunBlocks(ONE.run, ONE.title, {**ONE.bodies, "gate": "It opened."})
    done = fill_run_blocks(moved, [other], EN)
    assert blocks(done.text)[0].kind == "gate"
    assert outside(done.text) == outside(moved)


def test_what_has_no_artifact_any_more_is_left() -> None:
    text = fill_run_blocks("", [ONE], EN).text
    less = RunBlocks(ONE.run, ONE.title, {"command": "python a.py"})
    done = fill_run_blocks(text, [less], EN)
    assert done.text == text
    assert [block.kind for block in done.silent] == ["gate", "artifacts"]


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ("## 实验记录\n\n### v41（128 env）\ntext\n\n### other\nx\n", "text"),
        ("## 实验记录\n\n### other\nx\n\n## Learning\n", "### v41"),
        ("# a\n\n## Learning / 下一步\n1. x\n", "### v41"),
        ("# a", "### v41"),
        ("", "### v41"),
    ],
)
def test_where_blocks_go(text: str, before: str) -> None:
    """Below a heading that names the run; else below a new one at the end of the record; else before the learning."""
    done = fill_run_blocks(text, [ONE], ZH).text
    above = done[: blocks(done)[0].start].rstrip()
    assert above.endswith(before)
    assert "## 实验记录" in above
    behind = done[blocks(done)[-1].end :]
    assert "v41" not in behind
    assert (
        behind.strip()
        == (
            text.partition(before)[2]
            if before in text
            else text[text.find("## Learning") :]
            if "## Lea" in text
            else ""
        ).strip()
    )


def test_two_runs_have_blocks_of_their_own() -> None:
    done = fill_run_blocks(REFERENCE, [ONE, TWO], ZH)
    assert done.text.index("### v41") < done.text.index("### train/0") < done.text.index("## Learning / 下一步")
    assert fill_run_blocks(done.text, [TWO, ONE], ZH).text == done.text


@pytest.mark.parametrize("text", [
    f"{render_generated_block('gate', 'a', 'x')}\n\n{render_generated_block('gate', 'a', 'y')}\n",
    "<!-- muster:begin -->\n<!-- muster:end -->\n",
    "<!-- muster:begin gate nonsense -->\n<!-- muster:end -->\n",
])  # fmt: skip
def test_markers_that_say_nothing_are_refused(text: str) -> None:
    with pytest.raises(UnreadableJournal):
        fill_run_blocks(text, [ONE], EN)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_all_blocks_of_a_run(language: str) -> None:
    told = blocks_of_run(run("runs/v41"), run("runs/v40"), "dev_v40", load_catalogue("journal", language))
    assert list(told.bodies) == [kind for kind in told.bodies if kind in BLOCK_KINDS]
    assert set(told.bodies) == set(BLOCK_KINDS)
    done: FilledText = fill_run_blocks(REFERENCE, [told], load_catalogue("journal", language))
    assert is_one_insertion(REFERENCE, done.text)
    assert fill_run_blocks(done.text, [told], load_catalogue("journal", language)).text == done.text


@pytest.mark.parametrize("body", ["a\rb", "a\r\nb", "a \ud800 b", "\udcff"])
def test_what_no_text_can_hold_is_no_edit_of_a_person(body: str) -> None:
    odd = RunBlocks("runs/v\udcff", "v\udcff", {"command": body})
    filled = fill_run_blocks("# dev_v41\n", [odd], EN)
    assert filled.text.encode()
    again = fill_run_blocks(filled.text, [odd], EN)
    assert (again.same, again.edited, again.text) == ([("command", odd.run)], [], filled.text)


@pytest.mark.parametrize("text", ["# dev_v41\n", "# dev_v41", ""])
def test_two_runs_share_the_section_that_is_made_for_them(text: str) -> None:
    filled = fill_run_blocks(text, [ONE, TWO], EN).text
    assert [line for line in filled.splitlines() if line.startswith(("## ", "### "))] == [
        "## Record", "### v41", "### train/0",
    ]  # fmt: skip
