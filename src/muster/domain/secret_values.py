"""Which values of a campaign are secrets: those of its `env:` at every level, and words of its command lines. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from muster.domain.secrets import SHORTEST, Masker, hides, mask_shapes, secret_values

_COMMANDS = ("command", "within", "resume", "args", "run", "sbatch", "before", "after")
_WORD = re.compile(r"[^\s'\"]+")
_OPTION = re.compile(r"--?[A-Za-z][\w.-]*")
_NAMED = re.compile(r"(?:--?)?([\w.+-]+)=(.+)", re.DOTALL)


def values_of_campaign(told: Any) -> Iterator[str]:
    """`told`: the campaign, or a part of it, as JSON has it."""
    if isinstance(told, Mapping):
        for key, value in told.items():
            if key == "env" and isinstance(value, Mapping):
                yield from secret_values({str(name): str(each) for name, each in value.items()})
            elif key in _COMMANDS:
                yield from _of_commands(value)
            if isinstance(value, Mapping | Sequence) and not isinstance(value, str | bytes):
                yield from values_of_campaign(value)
    elif isinstance(told, Sequence) and not isinstance(told, str | bytes):
        for each in told:
            yield from values_of_campaign(each)


def _of_commands(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from _of_words(_WORD.findall(value))
    elif isinstance(value, Sequence) and all(isinstance(each, str) for each in value):
        yield from _of_words([word for each in value for word in ([each] if " " not in each else _WORD.findall(each))])


def _of_words(words: Sequence[str]) -> Iterator[str]:
    """Only what can hardly be anything else: the name of a metric after `--monitor-key` must stay readable."""
    for before, word in zip(["", *words], words, strict=False):
        named = _NAMED.fullmatch(word)
        if named and hides(named[1], named[2]) and _looks_random(named[2]):
            yield named[2]
        elif _OPTION.fullmatch(before) and hides(before, word) and not word.startswith("-") and _looks_random(word):
            yield word
        yield from secret_values({"": word})  # a password in a URL
    text = " ".join(words)
    for word in _WORD.findall(text) if mask_shapes(text) != text else ():
        if word not in mask_shapes(text) and _looks_random(word):
            yield word


def _looks_random(word: str) -> bool:
    """Letters and digits mixed, no placeholder, no path."""
    mixed = any(map(str.isdigit, word)) and any(map(str.isalpha, word))
    return (
        len(word) >= SHORTEST
        and mixed
        and "{" not in word
        and "$" not in word
        and "/" not in word
        and "://" not in word
    )


def masker_for(environment: Mapping[str, str], campaign: Any = None) -> Masker:
    return Masker([*secret_values(environment), *values_of_campaign(campaign)])
