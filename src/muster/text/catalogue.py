"""The words of the reports: one text for each key and language. `{name}` is filled in; `a|b` is one and many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from muster.text.decision_texts_en import CODE_TEXTS_EN, DECISION_TEXTS_EN
from muster.text.decision_texts_zh import CODE_TEXTS_ZH, DECISION_TEXTS_ZH
from muster.text.loop_texts_en import LOOP_TEXTS_EN
from muster.text.loop_texts_zh import LOOP_TEXTS_ZH
from muster.text.report_texts_en import DEFENCE_TEXTS_EN, FLAGS_TEXTS_EN, TABLES_TEXTS_EN
from muster.text.report_texts_zh import DEFENCE_TEXTS_ZH, FLAGS_TEXTS_ZH, TABLES_TEXTS_ZH
from muster.text.sentences import fill_sentence, split_duration

TEXTS: Mapping[str, Mapping[str, str]] = {
    "en": {
        **CODE_TEXTS_EN,
        **TABLES_TEXTS_EN,
        **DECISION_TEXTS_EN,
        **DEFENCE_TEXTS_EN,
        **FLAGS_TEXTS_EN,
        **LOOP_TEXTS_EN,
    },
    "zh": {
        **CODE_TEXTS_ZH,
        **TABLES_TEXTS_ZH,
        **DECISION_TEXTS_ZH,
        **DEFENCE_TEXTS_ZH,
        **FLAGS_TEXTS_ZH,
        **LOOP_TEXTS_ZH,
    },
}


class Catalogue:
    """Of one language."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._texts = TEXTS[language]

    def __call__(self, key: str, **parts: object) -> str:
        return fill_sentence(self._texts[key], parts)

    def has(self, key: str) -> bool:
        return key in self._texts

    def count(self, key: str, n: int) -> str:
        """`3 seeds`, `1 seed`."""
        one, _, many = self._texts[f"count.{key}"].partition("|")
        return (one if n == 1 or not many else many).format(n=n)

    def span(self, seconds: float) -> str:
        """`12 s`, `3 min`, `2.1 h`."""
        number, unit = split_duration(seconds)
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
