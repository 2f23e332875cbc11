"""Update changes bound numbers and nothing else; bindings are found again after edits elsewhere, or refuse."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
from document_maker import make
from document_world import ROBOT, STORY, quantities
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.app.documents.bind_numbers import decide_bindings
from muster.app.documents.document_context import DocumentContext
from muster.app.documents.number_bindings import (
    Binding,
    DamagedSidecar,
    Sidecar,
    TextUpdate,
    UpdateRefused,
    binding_from_decision,
    digest_of_text,
    find_bindings_again,
    parse_sidecar,
    prove_nothing_else_changed,
    sidecar_as_bytes,
    unified_text_diff,
    update_text,
)
from muster.app.documents.result_names import NameReader, Quantity, QuantityIndex
from muster.app.documents.text_audit import audit_numbers_of_text, seeds_it_agreed_with
from muster.app.documents.text_layout import TextSource, kind_of_text

TEXTS = Path(__file__).parent / "texts"
TABLE = """\
# Results

| config | ID score | OOD score |
|---|---|---|
| v2_baseline | 1.684±0.741 | 2.203±0.151 |
| v2_u_only | 1.684±0.741 | 2.427±1.025 |
| v2_full | 1.918±0.410 | 0.999±0.223 |

The OOD cost of v2_full is 14.5.
"""


def context(text: str, known: list[Quantity], name: str = "a.md") -> DocumentContext:
    book = QuantityIndex(known)
    return DocumentContext(TextSource(text, kind_of_text(name, text)), book, NameReader(book))


def bindings(text: str, known: list[Quantity], name: str = "a.md") -> list[Binding]:
    return [binding_from_decision(text, each) for each in decide_bindings(context(text, known, name)) if each.target]


def moved(known: list[Quantity], seed: int) -> list[Quantity]:
    """The same quantities with other values."""
    rng = random.Random(seed)
    return [replace(each, value=each.value * rng.uniform(0.2, 30) * rng.choice((1, 1, -1))) for each in known]


@pytest.mark.parametrize(
    ("written", "marked"),
    [
        (r"\num{1.117}", r"\num{1.117} (PARTIAL 3/5)"), (r"$1.117$", r"$1.117$ (PARTIAL 3/5)"),
        (r"\SI{1.117}{pt}", r"\SI{1.117}{pt} (PARTIAL 3/5)"), (r"$\mathbf{1.117}$", r"$\mathbf{1.117}$ (PARTIAL 3/5)"),
        (r"$1.117 \pm 0.214$", r"$1.117 \pm 0.214$ (PARTIAL 3/5)"), (r"\(1.117\)", r"\(1.117\) (PARTIAL 3/5)"),
        (r"\textbf{1.117}", r"\textbf{1.117 (PARTIAL 3/5)}"), ("1.117", "1.117 (PARTIAL 3/5)"),
    ],
)  # fmt: skip
def test_a_mark_stands_behind_a_formula(written: str, marked: str) -> None:
    head = "\\begin{tabular}{lr}\nConfig & OOD score \\\\ \\hline\nv2\\_full & "
    text, known = f"{head}{written} \\\\\n\\end{{tabular}}\n", quantities(STORY)
    bound = bindings(text, known, "a.tex")
    done = update_text(text, bound, QuantityIndex(known).by_key, "PARTIAL 3/5")
    assert done.text == text.replace(written, marked)
    again = bindings(done.text, known, "a.tex")
    assert (len(again), update_text(done.text, again, QuantityIndex(known).by_key, "PARTIAL 3/5").text) == (
        1,
        done.text,
    )
    assert update_text(done.text, again, QuantityIndex(known).by_key, None).text == text
    assert update_text(done.text, done.bindings, QuantityIndex(known).by_key, None).text == text


def nothing_else(old: str, new: str, bound: list[Binding]) -> bool:
    """The new text is the old one with any numeral in the place of each bound one. Knows nothing of `prove`."""
    pattern, done = "", 0
    for binding in bound:
        for part in binding.parts:
            start = binding.start + part.start
            pattern += re.escape(old[done:start]) + r"[+\-−]?[0-9.,{}\\\u2009]+(?:[eE][+\-−]?[0-9]+)?"
            done = binding.start + part.end
        pattern += re.escape(old[done : binding.end - binding.mark]) + r"(?: \(PARTIAL [0-9]+/[0-9]+\))?"
        done = binding.end
    return re.fullmatch(pattern + re.escape(old[done:]), new) is not None


def texts() -> list[tuple[str, str, list[Quantity]]]:
    """30 texts that vary: Markdown, LaTeX, plain, English, Chinese, CRLF, with a byte order mark."""
    found = []
    for path in sorted(path for path in TEXTS.iterdir() if path.suffix != ".truth"):
        text = path.read_bytes().decode("gb18030" if path.name.startswith("gbk") else "utf-8")
        found.append((path.name, text, quantities(ROBOT if path.name.startswith("robot") else STORY)))
    for seed in [seed for seed in range(60) if len(make(seed)[1].truth) > 4][:24]:
        world, made = make(seed)
        text = (
            made.text.replace("\n", "\r\n") if seed % 3 == 0 else f"\ufeff{made.text}" if seed % 3 == 1 else made.text
        )
        found.append((made.name.replace("text", f"text{seed}"), text, world.quantities()))
    return found


@pytest.mark.parametrize(
    ("name", "text", "known"), texts(), ids=lambda value: value if isinstance(value, str) and len(value) < 30 else ""
)
def test_nothing_but_bound_numbers_differs_and_twice_is_once(name: str, text: str, known: list[Quantity]) -> None:
    bound = bindings(text, known, name)
    assert name in ("hyper.md",) or bound
    for seed, partial in ((1, None), (2, "PARTIAL 16/40"), (3, None)):
        values = QuantityIndex(moved(known, seed)).by_key
        done = update_text(text, bound, values, partial)
        for encoding in ("utf-8", "gb18030"):
            prove_nothing_else_changed(text.encode(encoding), done.text.encode(encoding), done, text, encoding)
        assert nothing_else(text, done.text, bound)
        assert (text.count("\n"), text.count("\r")) == (done.text.count("\n"), done.text.count("\r"))
        assert done.text.count("(PARTIAL 16/40)") == (len(bound) if partial else 0)
        again = update_text(done.text, done.bindings, values, partial)
        assert (again.text, again.changes, again.bindings) == (done.text, (), done.bindings)
        for binding in done.bindings:
            assert done.text[binding.start : binding.end] == binding.token
        bound, text = list(done.bindings), done.text


@pytest.mark.parametrize("seed", range(40))
def test_back_to_the_old_values_is_back_to_the_old_text(seed: int) -> None:
    """Where the old numbers were those of the results: formats lose nothing."""
    world, made = make(seed)
    known = QuantityIndex(world.quantities()).by_key
    bound = bindings(made.text, list(known.values()), made.name)
    current = update_text(made.text, bound, known, None)
    away = update_text(
        current.text, current.bindings, QuantityIndex(moved(list(known.values()), seed)).by_key, "PARTIAL 1/2"
    )
    assert update_text(away.text, away.bindings, known, None).text == current.text


def test_each_number_keeps_its_own_format() -> None:
    text = (
        "| policy | success (%) | test return | latency_ms | drift |\n|--|--|--|--|--|\n"
        "| act | 83.1 ± 2.7 | 12,345 | 8.37 | -0.038 |\n| smolvla | **88.8%** | 13827 | 63.750 | −0.105 |\n"
    )
    known = quantities(ROBOT)
    done = update_text(text, bindings(text, known), QuantityIndex(known).by_key, None)
    assert done.text.splitlines()[2:] == [
        "| act | 82.7 ± 2.4 | 12,305 | 8.41 | -0.035 |", "| smolvla | **90.1%** | 13984 | 63.580 | −0.108 |",
    ]  # fmt: skip


def test_the_mark_goes_behind_and_goes_away_again() -> None:
    known = quantities(STORY)
    text = "| config | OOD score | OOD cost |\n|--|--|--|\n| v2_full | 0.999±0.223 | 14.5 |\n"
    bound = bindings(text, known)
    partial = update_text(text, bound, QuantityIndex(known).by_key, "PARTIAL 16/40")
    row = "| v2_full | 1.117±0.214 (PARTIAL 16/40) | 15.0 (PARTIAL 16/40) |"
    assert partial.text.splitlines()[2] == row
    assert (
        update_text(partial.text, partial.bindings, QuantityIndex(known).by_key, None).text.splitlines()[2]
        == "| v2_full | 1.117±0.214 | 15.0 |"
    )
    anew = bindings(partial.text, known)  # the sidecar was lost: the mark is known for what it is
    assert (
        update_text(partial.text, anew, QuantityIndex(known).by_key, None).text.splitlines()[2]
        == "| v2_full | 1.117±0.214 | 15.0 |"
    )


def test_a_quantity_that_is_gone_or_no_number_refuses() -> None:
    known = quantities(STORY)
    bound = bindings(TABLE, known)
    with pytest.raises(UpdateRefused, match="id/score/v2_full/mean is no result any more"):
        update_text(
            TABLE,
            bound,
            {key: each for key, each in QuantityIndex(known).by_key.items() if key != "id/score/v2_full/mean"},
            None,
        )
    broken = [replace(each, value=float("nan")) if each.key == "ood/score/v2_full/sd" else each for each in known]
    with pytest.raises(UpdateRefused, match="ood/score/v2_full/sd is nan"):
        update_text(TABLE, bound, QuantityIndex(broken).by_key, None)


def test_the_proof_sees_a_single_byte() -> None:
    known = quantities(STORY)
    done = update_text(TABLE, bindings(TABLE, known), QuantityIndex(known).by_key, None)
    prove_nothing_else_changed(TABLE.encode(), done.text.encode(), done, TABLE, "utf-8")
    for wrong in (done.text + " ", done.text.replace("config", "Config"), done.text.replace("±", "+", 1)):
        with pytest.raises(UpdateRefused, match="something besides"):
            prove_nothing_else_changed(
                TABLE.encode(),
                wrong.encode(),
                TextUpdate(wrong, done.bindings, done.changes, done.old_spans, done.new_spans),
                TABLE,
                "utf-8",
            )


def test_a_diff_shows_the_lines_that_change() -> None:
    assert unified_text_diff("a\nb 1\nc\n", "a\nb 2\nc\n", "x.md") == [
        "--- x.md",
        "+++ x.md",
        "@@ -1,4 +1,4 @@",
        " a",
        "-b 1",
        "+b 2",
        " c",
        " ",
    ]
    assert unified_text_diff("a\r\nb", "a\r\nb", "x.md") == []
    assert (
        len([line for line in unified_text_diff("1\n" * 50, "2\n" + "1\n" * 48 + "3\n", "x") if line.startswith("@@")])
        == 2
    )


# -- found again


def sidecar(text: str, known: list[Quantity]) -> Sidecar:
    return Sidecar("a.md", digest_of_text(text), tuple(bindings(text, known)))


def test_bindings_are_found_after_edits_elsewhere() -> None:
    known = quantities(STORY)
    before = sidecar(TABLE, known)
    edited = TABLE.replace("# Results", "# Results of the sprint\n\nSome words, 1.684±0.741 among them.\n").replace(
        "The OOD", "So the OOD"
    )
    found, lost = find_bindings_again(before, edited)
    assert not lost
    assert [(each.token, each.keys) for each in found] == [(each.token, each.keys) for each in before.bindings]
    assert all(edited[each.start : each.end] == each.token for each in found)
    assert [each.keys for each in bindings(edited, known) if each.start in {one.start for one in found}] == [
        each.keys for each in found
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("| v2_u_only | 1.684±0.741 | 2.427±1.025 |\n", ""),  # its row is gone
        ("0.999±0.223", "1.0±0.2"),  # somebody wrote another number
        (TABLE, TABLE + TABLE),  # which of the two?
        ("14.5", "**14.5**"),  # its neighbours are gone on both sides
    ],
)
def test_what_can_not_be_found_is_lost(old: str, new: str) -> None:
    before = sidecar(TABLE, quantities(STORY))
    found, lost = find_bindings_again(before, TABLE.replace(old, new))
    assert lost
    assert len(found) + len(lost) == len(before.bindings)
    for each in found:
        assert TABLE.replace(old, new)[each.start : each.end] == each.token


def test_the_same_table_twice_is_told_apart_by_order() -> None:
    known = quantities(STORY)
    twice = f"{TABLE}\n{TABLE}"
    before = sidecar(twice, known)
    found, lost = find_bindings_again(before, f"Title\n\n{twice}")
    assert (len(found), lost) == (len(before.bindings), [])
    assert [each.keys for each in found] == [each.keys for each in before.bindings]


@settings(deadline=None)
@given(st.integers(0, 11), st.text(alphabet="ab 1.4±|\n", max_size=12), st.data())
def test_an_edit_anywhere_moves_or_loses_a_binding_and_never_mistakes_it(
    seed: int, inserted: str, data: st.DataObject
) -> None:
    world, made = make(seed)
    known = world.quantities()
    before = Sidecar("a", digest_of_text(made.text), tuple(bindings(made.text, known, made.name)))
    at = data.draw(st.integers(0, len(made.text)))
    cut = data.draw(st.integers(0, 8))
    edited = made.text[:at] + inserted + made.text[at + cut :]
    shift = len(inserted) - min(cut, len(made.text) - at)
    found, lost = find_bindings_again(before, edited)
    assert len(found) + len(lost) == len(before.bindings)
    truth = {each.start + shift: each.keys for each in before.bindings if each.end > at}
    truth |= {each.start: each.keys for each in before.bindings if each.end <= at}  # what is cut out may end up there
    for each in found:
        assert truth.get(each.start) == each.keys


def test_sidecars_are_written_and_read() -> None:
    before = sidecar(TABLE, quantities(STORY))
    assert parse_sidecar(sidecar_as_bytes(before)) == before


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"version": 1}', b'{"version": 2, "file": "a", "text": "", "bindings": []}',
     b'{"version": 1, "file": "a", "text": "", "bindings": [{}]}', b'{"version": 1, "file": "a", "text": "", "bindings": 7}',
     b"[" * 100_000],
)  # fmt: skip
def test_damaged_sidecars_are_refused(data: bytes) -> None:
    with pytest.raises(DamagedSidecar):
        parse_sidecar(data)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'"mark": 0', b'"mark": 1e999'),
        (b'"decimals": 3', b'"decimals": 9999999999'),
        (b'"decimals": 3', b'"decimals": "3"'),
    ],
)
def test_numbers_that_no_binding_has_are_damage(before: bytes, after: bytes) -> None:
    data = sidecar_as_bytes(sidecar(TABLE, quantities(STORY)))
    assert before in data
    with pytest.raises(DamagedSidecar):
        parse_sidecar(data.replace(before, after))


@settings(deadline=None)
@given(st.data())
def test_a_changed_sidecar_is_read_whole_or_refused(data: st.DataObject) -> None:
    written = sidecar_as_bytes(sidecar(TABLE, quantities(STORY)))
    at = data.draw(st.integers(0, len(written) - 1))
    changed = written[:at] + data.draw(st.binary(max_size=3)) + written[at + 1 :]
    try:
        found = parse_sidecar(changed)
    except DamagedSidecar:
        return
    kept, _ = find_bindings_again(found, TABLE)
    for each in kept:
        assert TABLE[each.start : each.end] == each.token


# -- audit


def states(text: str, known: list[Quantity]) -> dict[str, str]:
    return {each.text: each.state for each in audit_numbers_of_text(context(text, known), [])}


def test_audit_tells_agreeing_stale_wrong_and_untraced_numbers_apart() -> None:
    text = (
        "| config | OOD score | OOD cost |\n|---|---|---|\n| v2_full | 1.117±0.214 | 14.5 |\n"
        "| v2_baseline | 2.203±0.151 | 99.9 |\n\nThe ID score is 1.684±0.741. Also 7.654.\n"
    )
    assert states(text, quantities(STORY)) == {
        "1.117±0.214": "agrees", "14.5": "stale", "2.203±0.151": "stale", "99.9": "disagrees", "1.684±0.741": "untraced",
        "7.654": "untraced",
    }  # fmt: skip
    told = {
        each.text: (each.should, each.because) for each in audit_numbers_of_text(context(text, quantities(STORY)), [])
    }
    assert told["2.203±0.151"] == ("2.234±0.203", "that is the value with 2 of 5 seeds")
    assert told["99.9"][0] == "83.4"
    assert "v2_cert_only" in told["1.684±0.741"][1]


def test_audit_believes_bindings() -> None:
    known = quantities(STORY)
    bound = bindings("The OOD score of v2_full is 0.999.", known)
    (finding,) = audit_numbers_of_text(context("The OOD score of v2_full is 0.999.", known), bound)
    assert (finding.state, finding.bound, finding.should) == ("stale", True, "1.117")


def test_mean_and_sd_must_be_of_the_same_seeds() -> None:
    known = quantities(STORY)
    (bound,) = bindings("The OOD score of v2_full is 0.999±0.223.", known)
    assert seeds_it_agreed_with(bound, QuantityIndex(known).by_key) == 2
    (mixed,) = bindings("| config | OOD score (mean±std) |\n|--|--|\n| v2_full | 0.999±0.214 |\n", known)
    assert seeds_it_agreed_with(mixed, QuantityIndex(known).by_key) == 0
