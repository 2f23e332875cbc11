"""The journal's own words, in one language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from muster.domain.wording import filled
from muster.report.journal import words_en, words_zh

TEXTS: Mapping[str, Mapping[str, str]] = {"en": words_en.TEXTS, "zh": words_zh.TEXTS}


class Wording:
    def __init__(self, language: str) -> None:
        self.language = language
        self._texts = TEXTS[language]

    def __call__(self, key: str, /, **parts: object) -> str:
        return filled(self._texts[key], parts)

    def has(self, key: str) -> bool:
        return key in self._texts

    def list(self, items: Sequence[str], most: int = 12) -> str:
        shown = self._texts["comma"].join(items[:most])
        return shown if len(items) <= most else self("and_more", items=shown, n=len(items) - most)

    def sentences(self, *parts: str) -> str:
        return self._texts["between"].join(part for part in parts if part)
