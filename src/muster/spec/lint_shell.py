"""Texts that a shell reads: placeholders where no value is safe, and values that a second shell would read as code."""

from __future__ import annotations

import re
from collections.abc import Iterator

from muster.domain.errors import Mistake
from muster.domain.shell_reading import Spot
from muster.domain.shell_text import is_number, is_plain, spots
from muster.domain.template import placeholders, split_words
from muster.spec.document import Path, dotted
from muster.spec.fields import Words
from muster.spec.lint import Lint

_NUMBERS = ("steps", "attempt", "port", "gpu", "device", "seed")
_SHELL = re.compile(r"(?:.*/)?(?:ba|da|z|k)?sh")
# `sh -c`, `bash -lc` and `eval`, with nothing but a quote to come
_CODE_FOLLOWS = re.compile(
    r"(?:^|[\s;&|(!])(?:(?:[^\s;&|()]*/)?(?:ba|da|z|k)?sh(?:\s+-\w+)*\s+-\w*c|eval(?:\s[^;&|\n]*)?)\s*\Z"
)
_CHOSEN = ("last.checkpoint",)  # by a training, while it runs


def lint_shell(lint: Lint, job: str, key: str, words: Words, *, shell: bool) -> None:
    if words.is_list or not shell:
        _second_shell_of_words(lint, job, key, words)
        return
    path: Path = ("jobs", job, key)
    text = words.texts[0]
    try:
        found = spots(text)
    except ValueError as error:
        lint.add(path, str(error), "take it out")
        return
    for spot in found:
        mark = f"{{{spot.name}}}"
        place = _place(lint, path, mark, text.count(mark, 0, spot.at))
        if spot.context == "refused":
            what = f"{mark} can't be put in safely here: {spot.why}"
            lint.mistakes.append(Mistake(what, *place, spot.hint, dotted(lint.document.written(path))))
        elif spot.context == "number" and (odd := _not_number(lint, job, spot)) is not None:
            what = f"{mark} stands in $(( )), where only a whole number is safe{odd}"
            hint = "do the sum in the program, or make it an axis of whole numbers"
            lint.mistakes.append(Mistake(what, *place, hint, dotted(lint.document.written(path))))
        elif spot.before and _CODE_FOLLOWS.search(spot.before) and (why := _risky(lint, job, spot.name)):
            _warn_of_code(lint, path, mark, why)


def _place(lint: Lint, path: Path, part: str, nth: int) -> tuple[int, int]:
    """Where it stands for the nth time, also on a later line of the text."""
    line, column = lint.document.place(path)
    for number, row in enumerate(lint.document.lines[line - 1 :], line):
        at = row.find(part, column - 1 if number == line else 0)
        while at >= 0:
            if nth == 0:
                return number, at + 1
            nth -= 1
            at = row.find(part, at + 1)
    return line, column


def _not_number(lint: Lint, job: str, spot: Spot) -> str | None:
    """None: it is one, for all that is known before a run."""
    if spot.name in lint.model.axes and spot.name in lint.axes_of(job):
        odd = next((value for value in lint.values(spot.name) if not is_number(value)), None)
        return None if odd is None else f", and '{odd}' is none"
    return None if spot.name in _NUMBERS else ""


def _second_shell_of_words(lint: Lint, job: str, key: str, words: Words) -> None:
    """`bash -c 'run {config}'`: Muster's words are safe, and then bash splits the last one again."""
    try:
        split = list(words.texts) if words.is_list else list(split_words(words.texts[0]))
    except ValueError:  # an open quote was told
        return
    for at, word in enumerate(split):
        if at < 2 or not any(_SHELL.fullmatch(each) for each in split[max(0, at - 4) : at - 1]):
            continue
        if not re.fullmatch(r"-\w*c", split[at - 1]):
            continue
        for name in dict.fromkeys(placeholders(word)):
            if why := _risky(lint, job, name):
                _warn_of_code(lint, ("jobs", job, key, at) if words.is_list else ("jobs", job, key), f"{{{name}}}", why)


def _warn_of_code(lint: Lint, path: Path, mark: str, why: str) -> None:
    what = f"{mark} stands in a text that another shell reads as code: {why}"
    lint.warn(path, what, "hand it over as an argument: bash -c '... \"$1\"' _ " + mark, part=mark)


def _risky(lint: Lint, job: str, name: str) -> str:
    """Why a value may mean more to a shell than its text; "": it does not, for all that is known before a run."""
    odd = next(_odd_values(lint, job, name), None)
    if odd is not None:
        return f"'{odd}' would not be one word to it"
    return "a training chooses its name" if name in _CHOSEN else ""


def _odd_values(lint: Lint, job: str, name: str) -> Iterator[str]:
    if name in lint.model.axes and name in lint.axes_of(job):
        yield from (value for value in lint.values(name) if not is_plain(value))
