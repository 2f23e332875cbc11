"""TOML: tomlkit keeps comments and forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muster.rounds.config import Config, UnreadableConfig, is_too_deep
from muster.rounds.paths import Where, at_place

_TOO_DEEP = "it is no TOML: it is nested too deeply"


def read_toml(text: str) -> Config:
    import tomllib

    try:
        tree = tomllib.loads(text)
    except RecursionError:
        raise UnreadableConfig(_TOO_DEEP) from None
    except ValueError as error:
        why = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "a number has too many digits"
        raise UnreadableConfig(f"it is no TOML: {why}") from None
    if is_too_deep(tree):  # dotted keys nest without a bracket
        raise UnreadableConfig(_TOO_DEEP)
    return Config(text, "toml", tree)


def write_toml(config: Config, changed: Sequence[Where]) -> str:
    """With the values of the tree at these places. Raises UnreadableConfig where tomlkit refuses what tomllib reads."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document: Any = tomlkit.parse(config.text)
    except (TOMLKitError, ValueError, RecursionError) as error:
        raise UnreadableConfig(f"it can't be edited as TOML: {error}") from None
    for where in changed:
        holder = document
        for step in where[:-1]:
            holder = holder[step]
        holder[where[-1]] = at_place(config.tree, where)
    return tomlkit.dumps(document)
