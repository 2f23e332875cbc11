"""The words of the reports: one text for each key and language. `{name}` is filled in; `a|b` is one and many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from muster.domain.wording import filled, measured
from muster.report.words import (
    code_en,
    code_zh,
    decision_en,
    decision_zh,
    defence_en,
    defence_zh,
    flags_en,
    flags_zh,
    loop_en,
    loop_zh,
    tables_en,
    tables_zh,
)

TEXTS: Mapping[str, Mapping[str, str]] = {
    "en": {
        **code_en.TEXTS,
        **tables_en.TEXTS,
        **decision_en.TEXTS,
        **defence_en.TEXTS,
        **flags_en.TEXTS,
        **loop_en.TEXTS,
    },
    "zh": {
        **code_zh.TEXTS,
        **tables_zh.TEXTS,
        **decision_zh.TEXTS,
        **defence_zh.TEXTS,
        **flags_zh.TEXTS,
        **loop_zh.TEXTS,
    },
}


class Words:
    """Of one language."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._texts = TEXTS[language]

    def __call__(self, key: str, **parts: object) -> str:
        return filled(self._texts[key], parts)

    def has(self, key: str) -> bool:
        return key in self._texts

    def count(self, key: str, n: int) -> str:
        """`3 seeds`, `1 seed`."""
        one, _, many = self._texts[f"count.{key}"].partition("|")
        return (one if n == 1 or not many else many).format(n=n)

    def span(self, seconds: float) -> str:
        """`12 s`, `3 min`, `2.1 h`."""
        number, unit = measured(seconds)
        return self(f"span.{unit}", n=number)

    def several(self, items: Sequence[str]) -> str:
        """`a, b and c`"""
        if len(items) < 2:
            return "".join(items)
        return self._texts["and"].join([self._texts["comma"].join(items[:-1]), items[-1]])

    def some(self, items: Sequence[str], most: int = 3) -> str:
        """The first few, and how many more there are."""
        if len(items) <= most:
            return self.several(items)
        return self("and_more", items=self._texts["comma"].join(items[:most]), n=len(items) - most)

    def sentences(self, *parts: str) -> str:
        """Side by side; Chinese needs no space between."""
        return self._texts["between"].join(part for part in parts if part)
