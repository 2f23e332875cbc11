"""Mistakes of a campaign file as a compiler shows them: file:line:column, what, how to mend it."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from muster.cli.paint import paint
from muster.domain.errors import Mistake


def show(file: str, mistakes: Sequence[Mistake]) -> None:
    for mistake in mistakes:
        place = f"{file}:{mistake.line}:{mistake.column}" if mistake.line else file
        colour = {"warning": "yellow", "note": "dim"}.get(mistake.level, "red")
        word = paint(f"{mistake.level}:", colour, stream=sys.stderr)
        print(f"{place}: {word} {mistake.message}", file=sys.stderr)
        if mistake.hint:
            print(f"    mend: {mistake.hint}", file=sys.stderr)
    errors = sum(mistake.level == "error" for mistake in mistakes)
    if errors:
        print(f"{errors} mistake{'s' if errors != 1 else ''}; nothing was changed", file=sys.stderr)
