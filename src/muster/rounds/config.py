"""A config file as it was read: plain values, and where in the text each of them stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from muster.rounds.paths import Where

KINDS = {"json": "json", "yaml": "yaml", "yml": "yaml", "toml": "toml"}
DEEPEST = 90  # lists and mappings within each other; what copies, compares and writes them goes down as deep
MOST_VALUES = 200_000  # aliases of aliases make millions of a few lines


class UnreadableConfig(ValueError):
    """A text that is no config of its kind; the message says where."""


@dataclass(slots=True)
class Config:
    text: str
    kind: str  # json | yaml | toml
    tree: Any = None
    spans: dict[Where, tuple[int, int]] = field(default_factory=dict)
    shared: dict[Where, str] = field(default_factory=dict)  # values that stand elsewhere: aliases, merged keys
    notes: dict[Where, str] = field(default_factory=dict)  # values that other readers take for something else

    def elsewhere(self, where: Where) -> str:
        """Why a change there would change other values, too."""
        return next((self.shared[where[:end]] for end in range(len(where), 0, -1) if where[:end] in self.shared), "")


def is_too_deep(tree: Any) -> bool:
    inside = [tree]
    for _ in range(DEEPEST + 1):
        inside = [
            child
            for each in inside
            if isinstance(each, dict | list)
            for child in (each.values() if isinstance(each, dict) else each)
        ]
        if not inside:
            return False
    return any(isinstance(each, dict | list) for each in inside)


def kind_of(name: str) -> str:
    """By the file's ending. Raises for others."""
    ending = name.rpartition(".")[2].lower()
    if "." not in name or ending not in KINDS:
        raise UnreadableConfig(f"{name} is none of .json, .yaml, .yml and .toml")
    return KINDS[ending]
