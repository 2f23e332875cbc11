"""The secret values that this process knows: of the recorded environments and campaigns whose state it has opened.

One place for the whole process: a text that one campaign's run wrote may be told by any command. Built when it is first
asked for, and again when something else was taken in.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from muster.domain.secret_values import values_of_campaign
from muster.domain.secrets import Masker, secret_values
from muster.ports.plain_files import read_plain

MOST_STATES = 16
MOST_SNAPSHOTS = 16  # of one state, the newest first
FRESH_S = 0.1  # a folder that changed just now may change again within the same tick of its clock
Signature = tuple[tuple[str, int, int], ...]

_states: dict[str, None] = {}  # folders, oldest first
_learned: dict[str, None] = {}  # values that were told and not read
_values_of: dict[str, tuple[str, ...]] = {}  # file -> what is secret in it; files are named by their content
_known: tuple[Signature, int, Masker] | None = None


def know_state(state: Path) -> None:
    """From now on what is secret in this `.muster` is masked. Costs nothing until a text is."""
    _states[str(state)] = None
    while len(_states) > MOST_STATES:
        del _states[next(iter(_states))]


def learn(environment: Mapping[str, str], campaign: Any = None) -> None:
    """What is not recorded yet. `campaign`: as JSON has it."""
    _learned.update(dict.fromkeys([*secret_values(environment), *values_of_campaign(campaign)]))


def masker() -> Masker:
    global _known
    signature = tuple(found for state in _states for found in _signature(state))
    if _known is None or _known[:2] != (signature, len(_learned)):
        files = [path for state in _states for path in _files(state)]
        for path in files:
            if path not in _values_of:
                _values_of[path] = tuple(_read(path))
        # what was known once stays known to this process: a run that has it may still speak
        values = [*_learned, *(value for found in _values_of.values() for value in found)]
        made = Masker(values)
        if any(abs(time.time() - changed / 1e9) < FRESH_S for _, changed, _ in signature):
            return made
        _known = (signature, len(_learned), made)
    return _known[2]


def mask(text: str) -> str:
    """A text from a run, a program or a person, before it is recorded or told."""
    return masker().mask(text) if text else text


def mask_tail(text: str) -> str:
    """The same of one that was cut out of a longer one."""
    return masker().mask_tail(text) if text else text


def masking() -> Callable[[str], str]:
    """`mask`, for many texts at once."""
    return masker().mask


def mask_output(text: str) -> str:
    """What Muster itself says."""
    return masker().output(text) if text else text


def mask_json(text: str) -> str:
    """The same of JSON, which it stays."""
    return masker().json_output(text)


def mask_table(text: str, separator: str) -> str:
    """The same of a table."""
    return masker().table_output(text, separator)


def mask_written(text: str) -> str:
    """What runs logged, in a text of Muster's."""
    return masker().written(text)


def _signature(state: str) -> Iterable[tuple[str, int, int]]:
    for name in ("env", "campaigns"):
        try:
            facts = os.stat(f"{state}/{name}")  # noqa: PTH116
        except OSError:
            continue
        yield f"{state}/{name}", facts.st_mtime_ns, facts.st_ino


def _files(state: str) -> list[str]:
    found = []
    for name, most in (("env", None), ("campaigns", MOST_SNAPSHOTS)):
        try:
            with os.scandir(f"{state}/{name}") as entries:
                dated = sorted((-each.stat(follow_symlinks=False).st_mtime, each.path) for each in entries)
        except OSError:
            continue
        found += [path for _, path in dated if path.endswith(".json")][:most]
    return found


def _read(path: str) -> Iterable[str]:
    try:
        told = json.loads(read_plain(path))
    except (OSError, ValueError, RecursionError):
        return ()
    if not isinstance(told, dict):
        return ()
    if os.path.basename(os.path.dirname(path)) == "env":  # noqa: PTH119, PTH120
        return secret_values({name: value for name, value in told.items() if isinstance(value, str)})
    return values_of_campaign(told.get("campaign"))
