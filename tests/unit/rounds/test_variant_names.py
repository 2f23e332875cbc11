"""Names of variants: short, unique, no chains, fit for a cell."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from muster.model.cell import LONGEST_VALUE, escape_cell_value
from muster.rules.edit_config import (
    digest_config,
    edit_config_text,
    make_variant_name,
    parse_config,
    stem_without_digest,
)


def test_the_same_config_has_the_same_name() -> None:
    one = parse_config('{"a": 1e-3, "b": [1, 2]}', "json").tree
    other = parse_config("# otherwise written\nb: [1, 2]\na: 0.001\n", "yaml").tree
    assert digest_config(one) == digest_config(other)
    assert make_variant_name("base", digest_config(one)) == make_variant_name("base", digest_config(other))
    assert digest_config(one) != digest_config(parse_config('{"a": 1e-3, "b": [1, 2.0]}', "json").tree)


def test_generations_do_not_chain() -> None:
    text, stem = '{"lr": 0.1}', "act_fr3_ot_99_20_baseline"
    for _ in range(5):
        variant = edit_config_text(text, "json", ["lr@mul=0.9"])
        root = stem_without_digest(stem, digest_config(parse_config(text, "json").tree))
        assert root == "act_fr3_ot_99_20_baseline"
        text, stem = variant.text, make_variant_name(root, digest_config(variant.tree))
        assert len(stem) == len("act_fr3_ot_99_20_baseline_0j57ea")


def test_a_name_that_only_looks_like_a_variant_is_a_root() -> None:
    assert stem_without_digest("run_123456", digest_config({"a": 1})) == "run_123456"
    assert stem_without_digest("run", digest_config(1)) == "run"
    assert stem_without_digest("_" + digest_config(1)[:6], digest_config(1)) == "_" + digest_config(1)[:6]


def test_a_taken_name_gets_more_digits() -> None:
    digest = "abcdef0123" + "0" * 54
    assert make_variant_name("b", digest) == "b_abcdef"
    assert make_variant_name("b", digest, {"b_abcdef"}) == "b_abcdef0"
    longer = make_variant_name("b", digest, {"b_abcdef", "b_abcdef0"})
    assert longer == "b_abcdef01"
    assert stem_without_digest(longer, digest) == "b"


@given(st.text(max_size=300))
def test_names_fit_a_cell(stem: str) -> None:
    name = make_variant_name(stem, digest_config(stem))
    assert escape_cell_value(name) == name
    assert len(name.encode()) < LONGEST_VALUE
    assert name.isascii()
    assert name.replace("_", "").replace("-", "").replace(".", "").isalnum()
    assert name[0] not in ".-"
