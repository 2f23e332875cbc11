"""How often a regular expression may try again on one line, judged by its form alone.

Python's `re` goes back and tries the next way wherever an earlier choice might have been another one. `(?:a+)+b` has as
many ways as there are cuts of a row of a's: 46 of them take hours. What is counted here is an upper bound.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import Any

LONGEST_MATCHED_LINE = 8192  # characters of a line that a pattern is ever tried on
ENDLESS_WAYS = LONGEST_MATCHED_LINE**4  # ways beyond this are as good as endless
_LATIN = 256
_WORD, _DIGIT, _SPACE, _OTHER = range(_LATIN, _LATIN + 4)  # stand for all characters beyond Latin-1, by kind
_ALL = frozenset(range(_OTHER + 1))
_BEYOND = frozenset((_WORD, _DIGIT, _SPACE, _OTHER))
_DIGITS = frozenset(code for code in range(_LATIN) if chr(code).isdecimal()) | {_DIGIT}
_SPACES = frozenset(code for code in range(_LATIN) if chr(code).isspace()) | {_SPACE}
_WORDS = frozenset(code for code in range(_LATIN) if chr(code).isalnum()) | {ord("_"), _WORD, _DIGIT}
_CATEGORIES = {
    "CATEGORY_DIGIT": _DIGITS,
    "CATEGORY_NOT_DIGIT": _ALL - _DIGITS,
    "CATEGORY_SPACE": _SPACES,
    "CATEGORY_NOT_SPACE": _ALL - _SPACES,
    "CATEGORY_WORD": _WORDS,
    "CATEGORY_NOT_WORD": _ALL - _WORDS,
}
Letters = frozenset[int]


@dataclass(frozen=True, slots=True)
class _FollowingLetters:
    """What may come behind a part: its first letters, or the end of the pattern, where nothing fails any more."""

    letters: Letters
    ends: bool = False


def count_regex_ways(regex: str) -> int:
    """In how many ways it may match from one place of a line of `LONGEST` characters, before it is known to fail.

    1 for one that never has to choose; at most EXPLODES. One that can't be judged counts as EXPLODES.
    """
    try:
        from re import _parser  # type: ignore[attr-defined]

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parsed = _parser.parse(regex)
        return _ways_of_sequence(
            list(parsed), _FollowingLetters(frozenset(), ends=True), bool(parsed.state.flags & re.IGNORECASE)
        )
    except (re.error, ImportError, AttributeError, RecursionError, OverflowError, ValueError, TypeError):
        return ENDLESS_WAYS


def regex_may_explode(regex: str) -> bool:
    """Whether some line of ordinary length may keep it busy for minutes."""
    return count_regex_ways(regex) > LONGEST_MATCHED_LINE**2


def _ways_of_sequence(nodes: list[Any], after: _FollowingLetters, ignore: bool) -> int:
    total = 1
    for node in reversed(nodes):
        total = min(ENDLESS_WAYS, total * _ways_of_node(node, after, ignore))
        letters, empty = _first_letters([node], ignore)
        after = _FollowingLetters(letters | after.letters, after.ends) if empty else _FollowingLetters(letters)
    return total


def _ways_of_node(node: Any, after: _FollowingLetters, ignore: bool) -> int:
    kind, value = str(node[0]), node[1]
    if kind in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        return _ways_of_repeat(value, after, ignore)
    if kind == "SUBPATTERN":
        return _ways_of_sequence(list(value[3]), after, ignore)
    if kind == "ATOMIC_GROUP":
        return _ways_of_sequence(list(value), after, ignore)
    if kind in ("ASSERT", "ASSERT_NOT"):
        return _ways_of_sequence(list(value[1]), _FollowingLetters(frozenset(), ends=True), ignore)
    if kind == "BRANCH":
        return _ways_of_branch([list(each) for each in value[1]], after, ignore)
    if kind == "GROUPREF_EXISTS":
        return sum(_ways_of_sequence(list(each), after, ignore) for each in value[1:] if each is not None)
    return 1


def _ways_of_repeat(value: Any, after: _FollowingLetters, ignore: bool) -> int:
    least, most, body = int(value[0]), int(value[1]), list(value[2])
    letters, empty = _first_letters(body, ignore)
    again = _FollowingLetters(letters | after.letters, after.ends) if most > 1 else after
    inner = _ways_of_sequence(body, again, ignore)
    counts = max(1, min(most, LONGEST_MATCHED_LINE) - least + 1)
    if after.ends or not (letters & after.letters or empty):
        counts = 1  # when it stops, nothing or only something else can follow
    if inner <= 1:
        return counts
    times = max(least, 1) if after.ends else min(most, LONGEST_MATCHED_LINE)
    return ENDLESS_WAYS if times > 8 else min(ENDLESS_WAYS, counts * inner**times)


def _ways_of_branch(branches: list[list[Any]], after: _FollowingLetters, ignore: bool) -> int:
    """One after the other, where a letter may begin several of them; else only one can go on."""
    each = [_ways_of_sequence(branch, after, ignore) for branch in branches]
    seen: set[int] = set()
    for branch in branches:
        letters, empty = _first_letters(branch, ignore)
        if empty or letters & seen:
            return sum(each)
        seen |= letters
    return max(each)


def _first_letters(nodes: list[Any], ignore: bool) -> tuple[Letters, bool]:
    """The letters that it may begin with, and whether it may be empty."""
    found: Letters = frozenset()
    for node in nodes:
        letters, empty = _first_letters_of_node(node, ignore)
        found |= letters
        if not empty:
            return found, False
    return found, True


def _first_letters_of_node(node: Any, ignore: bool) -> tuple[Letters, bool]:
    kind, value = str(node[0]), node[1]
    if kind in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        letters, empty = _first_letters(list(value[2]), ignore)
        return letters, empty or value[0] == 0
    if kind == "SUBPATTERN":
        return _first_letters(list(value[3]), ignore)
    if kind == "ATOMIC_GROUP":
        return _first_letters(list(value), ignore)
    if kind == "BRANCH":
        every = [_first_letters(list(each), ignore) for each in value[1]]
        return frozenset().union(*(letters for letters, _ in every)), any(empty for _, empty in every)
    if kind in ("AT", "ASSERT", "ASSERT_NOT"):
        return frozenset(), True
    if kind in ("GROUPREF", "GROUPREF_EXISTS", "FAILURE"):
        return _ALL, True
    return _letters_of_class(kind, value, ignore), False


def _letters_of_class(kind: str, value: Any, ignore: bool) -> Letters:
    if kind == "LITERAL":
        return _letters_of_both_cases({int(value)}, ignore)
    if kind == "NOT_LITERAL":
        return _ALL - ({int(value)} if value < _LATIN else frozenset())
    if kind == "RANGE":
        low, high = map(int, value)
        beyond = _BEYOND if high >= _LATIN else frozenset()
        return _letters_of_both_cases(set(range(low, min(high, _LATIN - 1) + 1)), ignore) | beyond
    if kind == "CATEGORY":
        return _CATEGORIES.get(str(value).replace("UNI_", ""), _ALL)
    if kind == "IN":
        negated = str(value[0][0]) == "NEGATE"
        found: Letters = frozenset().union(
            *(_letters_of_class(str(part), each, ignore) for part, each in value[negated:])
        )
        if not negated:
            return found
        single = any(str(part) != "CATEGORY" for part, _ in value[1:])  # takes one of a kind away, and not the kind
        return _ALL - found | (_BEYOND if single else frozenset())
    return _ALL


def _letters_of_both_cases(codes: set[int], ignore: bool) -> Letters:
    turned = {ord(turn) for code in codes for turn in chr(code).lower() + chr(code).upper()} if ignore else set()
    return frozenset(code if code < _LATIN else _letter_kind(chr(code)) for code in codes | turned)


def _letter_kind(letter: str) -> int:
    if letter.isspace():
        return _SPACE
    return _DIGIT if letter.isdecimal() else _WORD if letter.isalnum() else _OTHER
