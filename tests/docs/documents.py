"""The documents, and what is in them: blocks of commands with what they print, headings, links, sections.

A line that begins with `$ ` in a `console` or `sh` block is a command. It must exit with 0, or with N where it ends with
`# exit N`. The lines below it must be in its output, in order; `...` stands for anything, as a line of its own or at either
end of one. Blocks marked `no-run` are not run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
FRONT = [ROOT / name for name in ("README.md", "README.zh-CN.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
DOCS = sorted((ROOT / "docs").glob("*.md"))
DOCUMENTS = [*FRONT, *DOCS, *sorted((ROOT / "docs" / "decisions").glob("*.md"))]

_HEREDOC = re.compile(r"<<-?\s*'?\"?(\w+)")
_EXIT = re.compile(r"#\s*exit (\d+)\s*$")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@dataclass
class Step:
    """One command, and what the document says of it."""

    line: int
    command: str
    exit: int = 0
    shown: list[str] = field(default_factory=list)


@dataclass
class Block:
    line: int
    info: list[str]  # the words behind the fence
    lines: list[str]

    @property
    def commands(self) -> bool:
        return self.info[:1] in (["console"], ["sh"])

    @property
    def runs(self) -> bool:
        return self.commands and "no-run" not in self.info

    def steps(self) -> list[Step]:
        found: list[Step] = []
        rest = iter(enumerate(self.lines, self.line + 1))
        for number, line in rest:
            if not line.startswith("$ "):
                if found:
                    found[-1].shown.append(line)
                continue
            text = line[2:]
            code = _EXIT.search(text)
            here = _HEREDOC.search(text)
            while here or text.endswith("\\"):
                _, more = next(rest)
                text += f"\n{more}"
                if here and more == here.group(1):
                    break
            found.append(Step(number, text, int(code.group(1)) if code else 0))
        return found


def blocks(path: Path) -> list[Block]:
    found: list[Block] = []
    open_: Block | None = None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            if open_ is None:
                open_ = Block(number, line[3:].split(), [])
            else:
                found.append(open_)
                open_ = None
        elif open_ is not None:
            open_.lines.append(line)
    assert open_ is None, f"{name(path)}:{open_.line}: the block is not closed"
    return found


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """(number, line) of what stands outside of blocks."""
    inside = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            inside = not inside
        elif not inside:
            yield number, line


def links(path: Path) -> list[tuple[int, str]]:
    return [(number, target) for number, line in prose(path) for target in _LINK.findall(re.sub(r"`[^`]*`", "", line))]


def anchors(path: Path) -> set[str]:
    """As GitHub makes them of headings."""
    heads = [line.lstrip("#").strip() for _, line in prose(path) if re.match(r"#+ ", line)]
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def sections(path: Path, level: int = 3) -> dict[str, str]:
    """Heading -> text below it, down to the next heading of this level or above."""
    found: dict[str, str] = {}
    current = None
    for _, line in prose(path):
        head = re.match(r"(#+) (.*)", line)
        if head and len(head.group(1)) <= level:
            current = head.group(2) if len(head.group(1)) == level else None
        elif current is not None:
            found[current] = found.get(current, "") + line + "\n"
        if current is not None:
            found.setdefault(current, "")
    return found
