"""`check` warns of a pattern that may take for ever, and of none that people write."""

from __future__ import annotations

import re
import time

import pytest

from muster.readers.discovery.step_columns import STEP_PATTERNS
from muster.spec import read_campaign
from muster.spec.campaign_templates import template_names, template_text
from muster.spec.lint_context import SLOW_PATTERN
from muster.text.regex_cost import LONGEST_MATCHED_LINE, count_regex_ways, regex_may_explode

EXPLODING = [
    r"(?:a+)+b([0-9]+)", r"(\w+\s*)+:(?:\d)", r"(?:a|a)*b(x)", r"(?:a|ab|b)*c(\d)", r"(?:.*)*(x)", r"(?:x+x+)+y(\d)",
    r"^(?:.*,){11}P(\d)", r".*a.*b.*c(\d+)", r"(?:\s*\w*\s*)*;(\d)", r"(?:[^,]*\s*)*!(\d)", r"(?i)(?:a|Ab)*c(\d)",
    r"(?:é+)+b(\d)", r"(?:(?:ab)*)*c(\d)",
]  # fmt: skip
HONEST = [
    r"step (\d+)", r"step[: ]+(\d+)", r".*loss=([0-9.]+)", r"step (\d+)/\d+ loss", r"score: ([\d.]+)",
    r"\|\s*global_step\s*\|\s*(\d+)", r"(\d+)%\|", r"(?:\d+,)*x(\d)", r"(?i)Epoch\s+(\d+)\s*/\s*\d+ ",
    r"(?P<step>\d+)/\d+ \[.*?loss=", r"^\S+ \S+ \S+ step (\d+)", r"(?:\w+\s+)+(\d)", r"\b(?:step|iter)s?\b\D*(\d+)",
    r"step=(\d+)(?:\.\d+)?(?:e\d+)? done", r"^\s*(\d+) (?:[\d.]+ ){12}end", r"ETA (?:\d+:)*\d+ at (\d+)",
]  # fmt: skip


@pytest.mark.parametrize("regex", EXPLODING)
def test_one_that_may_explode_is_seen(regex: str) -> None:
    assert regex_may_explode(regex)


@pytest.mark.parametrize("regex", HONEST)
def test_one_that_people_write_is_left_alone(regex: str) -> None:
    assert not regex_may_explode(regex)


@pytest.mark.parametrize("regex", [each for each in HONEST if count_regex_ways(each) <= 2 * LONGEST_MATCHED_LINE])
def test_one_that_is_tried_in_this_process_is_quick_on_hostile_lines(regex: str) -> None:
    letters = {each for each in regex if each.isalnum()} | set(" 1a/=,:|.")
    lines = [letter * LONGEST_MATCHED_LINE for letter in letters] + [
        "step 1" * 1365,
        "1 " * 4096,
        "loss=" * 1638,
        "1:1," * 2048,
    ]
    pattern = re.compile(regex)
    for line in lines:
        began = time.thread_time()
        list(pattern.finditer(line))
        assert time.thread_time() - began < 5.0, line[:8]


def test_what_the_finder_of_logs_tries_is_quick() -> None:
    assert not [each for each in STEP_PATTERNS if regex_may_explode(each)]


def warnings_of(entry: str) -> list[tuple[int | None, int | None, str]]:
    text = f"muster: 1\ncampaign: c\njobs:\n  t:\n    command: echo\n    {entry}\n"
    found = read_campaign(text, file="campaign.yaml", folder="/c").warnings
    return [(each.line, each.column, each.message) for each in found if each.message == SLOW_PATTERN]


def test_check_tells_it_with_its_place() -> None:
    assert warnings_of("progress: [{stdout: '(?:a+)+b([0-9]+)'}]") == [(6, 25, SLOW_PATTERN)]
    assert warnings_of("results: {x: {stdout: '(?:a+)+b([0-9]+)'}}") == [(6, 27, SLOW_PATTERN)]
    assert warnings_of(r"progress: [{stdout: 'step (\d+)'}]") == []


@pytest.mark.parametrize("name", template_names())
def test_no_template_is_warned_of(name: str) -> None:
    text = template_text(name).replace("NAME", "c")
    for pattern in re.findall(r"stdout: '([^']*)'", text):
        assert not regex_may_explode(pattern)
