"""TOML: tomlkit keeps comments and forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muster.rounds.config import Config, UnreadableConfig
from muster.rounds.paths import Where, at_place


def read_toml(text: str) -> Config:
    import tomllib

    try:
        return Config(text, "toml", tomllib.loads(text))
    except RecursionError:
        raise UnreadableConfig("it is no TOML: it is nested too deeply") from None
    except ValueError as error:
        why = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "a number has too many digits"
        raise UnreadableConfig(f"it is no TOML: {why}") from None


def write_toml(config: Config, changed: Sequence[Where]) -> str:
    """With the values of the tree at these places."""
    import tomlkit

    document: Any = tomlkit.parse(config.text)
    for where in changed:
        holder = document
        for step in where[:-1]:
            holder = holder[step]
        holder[where[-1]] = at_place(config.tree, where)
    return tomlkit.dumps(document)
