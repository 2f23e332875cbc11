"""What of a pack is masked, and what keeps it from being made: a pack is given to others.

What Muster kept of attempts (their logs, how they ended, their orders) is packed without secrets. A file of the user's
that holds a known one is not changed: numbers and hashes rest on it, so the pack is refused and the file is named.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from muster.acts.masking import hidden_words
from muster.acts.pack import Source
from muster.domain.errors import MusterError
from muster.domain.secrets import HIDDEN, Masker, hides
from muster.ports.known_secrets import masker

LARGEST = 64 << 20  # bytes; what is larger holds numbers
KEPT = (".muster/attempts/", ".muster/finish/", ".muster/diffs/", ".muster/controller.log")
FACTS = ("attempt.json", "exit.json", "identity.json")
LOGS = (".log", ".diff")


def without_secrets(sources: Iterable[Source], needed: Collection[str]) -> Iterator[Source]:
    """`needed`: files by whose hashes numbers are traced; they are packed as they are or not at all."""
    hide = masker()
    for source in sources:
        data = _read(source)
        told = data and _told(source, data, hide)
        if not data or told == data:
            yield source
        elif told is None or source.place in needed:
            raise MusterError(
                f"{source.path} holds a secret of the environment or the campaign, and a pack is given to others",
                where=source.place, hint="take it out of the file; or pack it all the same: --with secrets",
                code="secret",
            )  # fmt: skip
        else:
            yield replace(source, data=told)


def _read(source: Source) -> bytes:
    if source.data is not None:
        return source.data
    path = Path(source.place)
    try:
        if path.stat().st_size > LARGEST:
            return b""
        data = path.read_bytes()
    except OSError:
        return b""  # who packs it says why
    return data if source.limit is None else data[: source.limit]


def _told(source: Source, data: bytes, hide: Masker) -> bytes | None:
    """None: it has a secret and is not ours to change."""
    text = data.decode("utf-8", "surrogateescape")
    name = source.path.rpartition("/")[2]
    if source.path.startswith(KEPT) and name in FACTS and "/out/" not in source.path:
        return _facts(data, hide)
    if source.path.startswith(KEPT) and name.endswith(LOGS) and "/out/" not in source.path:
        told = hide.mask(text)
        return data if told == text else told.encode("utf-8", "surrogateescape")
    return data if hide.literals(text) == text else None


def _facts(data: bytes, hide: Masker) -> bytes | None:
    try:
        facts = json.loads(data)
    except (ValueError, RecursionError):
        return data
    try:
        told = _leaves(facts, hide)
    except RecursionError:  # no facts of ours: it may hold no secret at all
        text = data.decode("utf-8", "surrogateescape")
        return data if hide.literals(text) == text else None
    if isinstance(told, dict):
        if isinstance(argv := told.get("argv"), list) and all(isinstance(word, str) for word in argv):
            told["argv"] = hidden_words(argv)
        if isinstance(env := told.get("env"), dict):
            told["env"] = {name: HIDDEN if hides(name, str(value)) else value for name, value in env.items()}
    return data if told == facts else json.dumps(told).encode()


def _leaves(value: Any, hide: Masker) -> Any:
    if isinstance(value, str):
        return hide.mask(value)
    if isinstance(value, Mapping):
        return {key: _leaves(each, hide) for key, each in value.items()}
    return [_leaves(each, hide) for each in value] if isinstance(value, list) else value
