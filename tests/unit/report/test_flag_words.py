"""Every red flag has words in both languages."""

import ast
import inspect
import re
from typing import Any

import pytest

from muster.app.report.red_flag_text import describe_flag, describe_flag_meaning, sort_flags_by_level
from muster.locales import load_texts
from muster.stats import flags_of_provenance, flags_of_values
from muster.stats.flags_of_provenance import flag_making
from muster.stats.flags_of_values import flag_declaration, flag_values
from muster.stats.red_flags import (
    CellMaking,
    ConfigFailures,
    DeclaredMetrics,
    DefinitionMixture,
    LostCell,
    MeasuredCell,
    RedFlag,
    RedoneCell,
)
from muster.stats.samples import Sample


def codes() -> set[str]:
    """Every code that can be raised, read from the source."""
    found = set()
    for node in (
        node
        for module in (flags_of_values, flags_of_provenance)
        for node in ast.walk(ast.parse(inspect.getsource(module)))
    ):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            place = {"RedFlag": 1, "_flag_shared": 2, "_flag_mixed_field": 3, "_flag_same_settings": 3}.get(
                node.func.id
            )
            if place is not None and isinstance(node.args[place], ast.Constant):
                found.add(str(node.args[place].value))  # type: ignore[attr-defined]
    return found


def sample(config: str, values: list[float], split: str = "ood", metric: str = "score") -> Sample:
    return Sample(config, split, metric, {str(seed): value for seed, value in enumerate(values)})


def made(config: str, seed: int = 0, **facts: Any) -> CellMaking:
    return CellMaking(f"train/{config}/{seed}", config, str(seed), **facts)


VALUES = [1.21, 2.05, 1.684, 0.9, 1.333]
RAISED = [
    *flag_values(
        [sample("a", VALUES), sample("b", VALUES), sample("c", VALUES[::-1]), sample("a", VALUES, "id"), sample("d", [1.5, 1.5, 1.7]),
         sample("e", [2.0, 2.0]), sample("f", [2.0, 2.0]), sample("x", [0.2137482913, 0.25571], "id", "loss"),
         sample("y", [0.19331, 0.2137482913], "id", "loss"), sample("z", [1.0, 1.0], "id", "rate")],
        [MeasuredCell("eval/a/0/ood", "a", "0", "ood", {"score": None}), MeasuredCell("eval/a/0/ood", "a", "0", "ood", {"score": 1.0}),
         MeasuredCell("eval/b/0/ood", "b", "0", "ood", {"score": 1.0, "cost": 2.0}, {"score": 1.5}),
         MeasuredCell("eval/x/0", "x", "0", "id", {"loss": 0.2137482913}), MeasuredCell("eval/y/1", "y", "1", "id", {"loss": 0.2137482913}),
         MeasuredCell("eval/c/0/ood", "c", "0", "ood", {"success": 0.875}), MeasuredCell("eval/c/1/ood", "c", "1", "ood", {"success": 91.0})],
    ),
    *flag_making(
        [made("a", checkpoint="x", curve="x", result="x", saved_early=True, saved_share=0.01, steps=10.0, settings="x", label="other", commit="1",
              dirty="1", called="best", best_step=1.0, eval_steps=(1.0, 2.0), episodes=3, another=("eval/a/0/id",)),
         made("b", checkpoint="x", curve="x", result="x", saved_early=True, steps=20.0, settings="x", commit="2", dirty="2", called="last", best_step=2.0,
              eval_steps=(1.0, 2.0), episodes=30, written_after=("eval/b/0/id",)),
         made("e", 2, curve="y", checkpoint="y"), made("f", 2, curve="y", checkpoint="z"),
         made("c", 1, settings="y", unlabelled="u"), made("d", 1, settings="z", unlabelled="u")],
    ),
    *flag_declaration(
        DeclaredMetrics("best", "score", "score", "cost", proxies={"ood": ""}, train_metrics=frozenset({"score"}), changed_at=4,
                 redone=(RedoneCell("eval/a/1/ood", "a fault"),), recovered=("eval/a/2/ood",), picked={"score": "best", "cost": "last"}),
        [sample("a", [0.0, 0.0], metric="cost")],
    ),
    *flags_of_provenance.flag_losses(
        [LostCell("eval/a/9/ood", "a", "9", "ood", kind, "excluded", "it died of disk_full, no space was left") for kind in ("unrelated", "completed")],
        [ConfigFailures("a", 0, 5), ConfigFailures("b", 2, 5, ("eval/b/1/ood", "eval/b/2/ood"))], "a", ("eval/c/1/ood",),
    ),
    *flags_of_provenance.flag_losses([], [ConfigFailures("b", 2, 5, ("eval/b/1/ood", "eval/b/2/ood"))], "", ()),
    *flags_of_provenance.flag_sources({"train/a/0": ("model.py", "train.py"), "train/a/1": ("train.py",)}),
    *flags_of_provenance.flag_definitions(
        [DefinitionMixture("train", "command", "--lr 1", "--lr 2", ("train/a/0",), ("train/a/1",), (("a", ("0",)),), (("a", ("1",)),))],
        [DefinitionMixture("train", "contents", "cfg.yaml", "cfg.yaml", ("train/a/0",), (), (("a", ("0",)),))],
    ),
]  # fmt: skip


def test_the_flags_here_are_all_there_are() -> None:
    assert len(codes()) > 20
    assert {flag.code for flag in RAISED} == codes()


@pytest.mark.parametrize("code", sorted(codes()))
def test_every_code_has_words(code: str) -> None:
    assert f"flag.{code}" in load_texts("report", "zh")
    assert {f"flag.means.{code}"} <= load_texts("report", "en").keys() & load_texts("report", "zh").keys()


@pytest.mark.parametrize("flag", RAISED, ids=lambda flag: flag.code)
def test_a_flag_is_told_in_chinese_with_all_of_its_parts(flag: RedFlag) -> None:
    told = describe_flag(flag, "zh")
    assert re.search(r"[\u4e00-\u9fff]", told)
    assert "{" not in told
    spoken = {"what", "end", "chance"}
    spoken |= {"part"} if flag.code in ("mixed_definitions", "outdated") else set()
    for name, part in flag.parts.items():
        if name not in spoken:
            assert (part if flag.code == "lost_seeds" else part.replace(", ", "、")) in told, name
    assert describe_flag(flag, "en") == flag.message
    assert describe_flag_meaning(flag, "zh") != describe_flag_meaning(flag, "en") != ""


def test_what_counts_share_by_nature_is_not_called_proof() -> None:
    (lattice,) = [flag for flag in RAISED if flag.code == "same_values" and flag.level == "WARN"]
    proof = next(flag for flag in RAISED if flag.code == "same_values" and flag.level == "ERROR")
    assert "Most likely the same weights" in describe_flag_meaning(proof, "en")
    assert "chance is not excluded" in describe_flag_meaning(lattice, "en")
    assert "不能排除巧合" in describe_flag_meaning(lattice, "zh")


def test_a_flag_of_unknown_code_is_told_as_it_stands() -> None:
    flag = RedFlag("WARN", "brand_new", (), "something is odd")
    assert describe_flag(flag, "zh") == "something is odd"
    assert describe_flag_meaning(flag, "zh") == ""


def test_errors_come_first_and_codes_stay_together() -> None:
    a, b, c, d = (
        RedFlag(level, code, (), "") for level, code in [("WARN", "x"), ("ERROR", "y"), ("ERROR", "z"), ("ERROR", "y")]
    )  # type: ignore[arg-type]
    assert sort_flags_by_level([a, b, c, d]) == [b, d, c, a]
