"""The secret values that this process knows, and the functions that mask them: values of `env:` and words of command
lines, of every campaign whose state was opened.

One place for the whole process: a text that one campaign's run wrote may be shown by any command. Built when it is
first asked for, and again when something else was taken in.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from muster.files.safe_open import read_plain_file
from muster.text.secret_masking import (
    SHORTEST_SECRET,
    SecretMasker,
    mask_secret_shapes,
    secrets_in_environment,
    should_hide_value,
)

_COMMANDS = ("command", "within", "resume", "args", "run", "sbatch", "before", "after")
_COMMAND_WORD = re.compile(r"[^\s'\"]+")
_OPTION = re.compile(r"--?[A-Za-z][\w.-]*")
_NAMED_WORD = re.compile(r"(?:--?)?([\w.+-]+)=(.+)", re.DOTALL)


def secrets_in_campaign(told: Any) -> Iterator[str]:
    """`told`: the campaign, or a part of it, as JSON has it."""
    if isinstance(told, Mapping):
        for key, value in told.items():
            if key == "env" and isinstance(value, Mapping):
                yield from secrets_in_environment({str(name): str(each) for name, each in value.items()})
            elif key in _COMMANDS:
                yield from _secrets_in_commands(value)
            if isinstance(value, Mapping | Sequence) and not isinstance(value, str | bytes):
                yield from secrets_in_campaign(value)
    elif isinstance(told, Sequence) and not isinstance(told, str | bytes):
        for each in told:
            yield from secrets_in_campaign(each)


def _secrets_in_commands(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from _secrets_in_words(_COMMAND_WORD.findall(value))
    elif isinstance(value, Sequence) and all(isinstance(each, str) for each in value):
        yield from _secrets_in_words(
            [word for each in value for word in ([each] if " " not in each else _COMMAND_WORD.findall(each))]
        )


def _secrets_in_words(words: Sequence[str]) -> Iterator[str]:
    """Only what can hardly be anything else: the name of a metric after `--monitor-key` must stay readable."""
    for before, word in zip(["", *words], words, strict=False):
        named = _NAMED_WORD.fullmatch(word)
        if named and should_hide_value(named[1], named[2]) and _looks_random(named[2]):
            yield named[2]
        elif (
            _OPTION.fullmatch(before)
            and should_hide_value(before, word)
            and not word.startswith("-")
            and _looks_random(word)
        ):
            yield word
        yield from secrets_in_environment({"": word})  # a password in a URL
    text = " ".join(words)
    for word in _COMMAND_WORD.findall(text) if mask_secret_shapes(text) != text else ():
        if word not in mask_secret_shapes(text) and _looks_random(word):
            yield word


def _looks_random(word: str) -> bool:
    """Letters and digits mixed, no placeholder, no path."""
    mixed = any(map(str.isdigit, word)) and any(map(str.isalpha, word))
    return (
        len(word) >= SHORTEST_SECRET
        and mixed
        and "{" not in word
        and "$" not in word
        and "/" not in word
        and "://" not in word
    )


MOST_STATES = 16
MOST_SNAPSHOTS = 16  # of one state, the newest first
FRESH_S = 0.1  # a folder that changed just now may change again within the same tick of its clock
StateSignature = tuple[tuple[str, int, int], ...]

_states: dict[str, None] = {}  # folders, oldest first
_learned: dict[str, None] = {}  # values that were told and not read
_values_of: dict[str, tuple[str, ...]] = {}  # file -> what is secret in it; files are named by their content
_known: tuple[StateSignature, int, SecretMasker] | None = None


def register_state_secrets(state: Path) -> None:
    """From now on what is secret in this `.muster` is masked. Costs nothing until a text is."""
    _states[str(state)] = None
    while len(_states) > MOST_STATES:
        del _states[next(iter(_states))]


def learn_secrets(environment: Mapping[str, str], campaign: Any = None) -> None:
    """What is not recorded yet. `campaign`: as JSON has it."""
    _learned.update(dict.fromkeys([*secrets_in_environment(environment), *secrets_in_campaign(campaign)]))


def current_masker() -> SecretMasker:
    global _known
    signature = tuple(found for state in _states for found in _state_signature(state))
    if _known is None or _known[:2] != (signature, len(_learned)):
        files = [path for state in _states for path in _secret_files_of_state(state)]
        for path in files:
            if path not in _values_of:
                _values_of[path] = tuple(_read_secret_file(path))
        # what was known once stays known to this process: a run that has it may still speak
        values = [*_learned, *(value for found in _values_of.values() for value in found)]
        made = SecretMasker(values)
        if any(abs(time.time() - changed / 1e9) < FRESH_S for _, changed, _ in signature):
            return made
        _known = (signature, len(_learned), made)
    return _known[2]


def mask_secrets(text: str) -> str:
    """A text from a run, a program or a person, before it is recorded or told."""
    return current_masker().mask(text) if text else text


def mask_secrets_in_tail(text: str) -> str:
    """The same of one that was cut out of a longer one."""
    return current_masker().mask_tail(text) if text else text


def secret_mask_function() -> Callable[[str], str]:
    """`mask`, for many texts at once."""
    return current_masker().mask


def mask_secrets_in_output(text: str) -> str:
    """What Muster itself says."""
    return current_masker().output(text) if text else text


def mask_secrets_in_json(text: str) -> str:
    """The same of JSON, which it stays."""
    return current_masker().json_output(text)


def mask_secrets_in_table(text: str, separator: str) -> str:
    """The same of a table."""
    return current_masker().table_output(text, separator)


def mask_secrets_in_run_text(text: str) -> str:
    """What runs logged, in a text of Muster's."""
    return current_masker().written(text)


def _state_signature(state: str) -> Iterable[tuple[str, int, int]]:
    for name in ("env", "campaigns"):
        try:
            facts = os.stat(f"{state}/{name}")  # noqa: PTH116
        except OSError:
            continue
        yield f"{state}/{name}", facts.st_mtime_ns, facts.st_ino


def _secret_files_of_state(state: str) -> list[str]:
    found = []
    for name, most in (("env", None), ("campaigns", MOST_SNAPSHOTS)):
        try:
            with os.scandir(f"{state}/{name}") as entries:
                dated = sorted((-each.stat(follow_symlinks=False).st_mtime, each.path) for each in entries)
        except OSError:
            continue
        found += [path for _, path in dated if path.endswith(".json")][:most]
    return found


def _read_secret_file(path: str) -> Iterable[str]:
    try:
        told = json.loads(read_plain_file(path))
    except (OSError, ValueError, RecursionError):
        return ()
    if not isinstance(told, dict):
        return ()
    if os.path.basename(os.path.dirname(path)) == "env":  # noqa: PTH119, PTH120
        return secrets_in_environment({name: value for name, value in told.items() if isinstance(value, str)})
    return secrets_in_campaign(told.get("campaign"))
