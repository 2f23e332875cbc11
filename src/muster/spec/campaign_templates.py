"""What `muster init` writes: campaigns to start from, and the rules for AI assistants."""

from __future__ import annotations

from importlib.resources import files

_ORDER = ("sprint", "loop", "staged", "safedreamer", "lerobot", "omnisafe")
_RULES = {
    "loop": ("loop",),
    "staged": ("staged",),
    "safedreamer": ("safedreamer",),
    "lerobot": ("loop", "lerobot"),
    "omnisafe": ("omnisafe",),
}


def template_names() -> list[str]:
    return list(_ORDER)


def template_text(name: str) -> str:
    """The text of a template; KeyError for a name that is none."""
    if name not in _ORDER:
        raise KeyError(name)
    return _read_template_file(f"{name}.yaml")


def agents_md(name: str = "sprint") -> str:
    """One text for all, and before its last section what matters in campaigns of this template only."""
    before, last, after = _read_template_file("AGENTS.md").partition("## Good answers\n")
    parts = [_read_template_file(f"AGENTS-{part}.md") for part in _RULES.get(name, ())]
    return before + "".join(f"{part}\n" for part in parts) + last + after


def _read_template_file(name: str) -> str:
    return (files("muster.spec") / "templates" / name).read_text(encoding="utf-8")
