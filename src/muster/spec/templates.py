"""What `muster init` writes: campaigns to start from, and the rules for AI assistants."""

from __future__ import annotations

from importlib.resources import files

_ORDER = ("sprint", "loop", "staged", "safedreamer", "lerobot", "omnisafe")


def names() -> list[str]:
    return list(_ORDER)


def template(name: str) -> str:
    """The text of a template; KeyError for a name that is none."""
    if name not in _ORDER:
        raise KeyError(name)
    return _read(f"{name}.yaml")


def agents_md() -> str:
    return _read("AGENTS.md")


def _read(name: str) -> str:
    return (files("muster.spec") / "templates" / name).read_text(encoding="utf-8")
