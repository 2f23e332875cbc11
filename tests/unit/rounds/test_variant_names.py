"""Names of variants: short, unique, no chains, fit for a cell."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from muster.domain.cell import LONGEST_VALUE, escape
from muster.rounds.names import digest_of, root_stem, variant_name
from muster.rounds.texts import edit_text, read_config


def test_the_same_config_has_the_same_name() -> None:
    one = read_config('{"a": 1e-3, "b": [1, 2]}', "json").tree
    other = read_config("# otherwise written\nb: [1, 2]\na: 0.001\n", "yaml").tree
    assert digest_of(one) == digest_of(other)
    assert variant_name("base", digest_of(one)) == variant_name("base", digest_of(other))
    assert digest_of(one) != digest_of(read_config('{"a": 1e-3, "b": [1, 2.0]}', "json").tree)


def test_generations_do_not_chain() -> None:
    text, stem = '{"lr": 0.1}', "act_fr3_ot_99_20_baseline"
    for _ in range(5):
        variant = edit_text(text, "json", ["lr@mul=0.9"])
        root = root_stem(stem, digest_of(read_config(text, "json").tree))
        assert root == "act_fr3_ot_99_20_baseline"
        text, stem = variant.text, variant_name(root, digest_of(variant.tree))
        assert len(stem) == len("act_fr3_ot_99_20_baseline_0j57ea")


def test_a_name_that_only_looks_like_a_variant_is_a_root() -> None:
    assert root_stem("run_123456", digest_of({"a": 1})) == "run_123456"
    assert root_stem("run", digest_of(1)) == "run"
    assert root_stem("_" + digest_of(1)[:6], digest_of(1)) == "_" + digest_of(1)[:6]


def test_a_taken_name_gets_more_digits() -> None:
    digest = "abcdef0123" + "0" * 54
    assert variant_name("b", digest) == "b_abcdef"
    assert variant_name("b", digest, {"b_abcdef"}) == "b_abcdef0"
    longer = variant_name("b", digest, {"b_abcdef", "b_abcdef0"})
    assert longer == "b_abcdef01"
    assert root_stem(longer, digest) == "b"


@given(st.text(max_size=300))
def test_names_fit_a_cell(stem: str) -> None:
    name = variant_name(stem, digest_of(stem))
    assert escape(name) == name
    assert len(name.encode()) < LONGEST_VALUE
    assert name.isascii()
    assert name.replace("_", "").replace("-", "").replace(".", "").isalnum()
    assert name[0] not in ".-"
