"""The words of reports: one text for each key and language. `{name}` is filled in; `a|b` is one and many."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from muster.locales import load_texts
from muster.text.sentences import fill_sentence, format_inline_code, group_cell_names, split_duration

MOST_LISTED = 12  # items that are named in a sentence


class Catalogue:
    """Of one language. What joins its sentences and lists are texts of it, too."""

    def __init__(self, language: str, texts: Mapping[str, str]) -> None:
        self.language = language
        self._texts = texts

    def __call__(self, key: str, /, **parts: object) -> str:
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

    def list_all(self, items: Iterable[str]) -> str:
        """`a, b, c`"""
        return self._texts["comma"].join(items)

    def list(self, items: Sequence[str], most: int = MOST_LISTED) -> str:
        """`a, b, c`, and how many more there are."""
        shown = self.list_all(items[:most])
        return shown if len(items) <= most else self("and_more", items=shown, n=len(items) - most)

    def cells(self, names: Sequence[str]) -> str:
        """Cells that differ in one value are one item: `train/a/{0,1}`."""
        return self.list([format_inline_code(each) for each in group_cell_names(names)])

    def all_cells(self, names: Sequence[str]) -> str:
        """Every one: nothing that is missing may hide behind a number."""
        return self.list_all(format_inline_code(each) for each in group_cell_names(names))

    def several(self, items: Sequence[str]) -> str:
        """`a, b and c`"""
        if len(items) < 2:
            return "".join(items)
        return self._texts["and"].join([self.list_all(items[:-1]), items[-1]])

    def some(self, items: Sequence[str], most: int = 3) -> str:
        """`a, b and c`; of more than that the first few, and how many more there are."""
        return self.several(items) if len(items) <= most else self.list(items, most)

    def sentences(self, *parts: str) -> str:
        """Side by side; Chinese needs no space between."""
        return self._texts["between"].join(part for part in parts if part)


@cache
def load_catalogue(name: str, language: str) -> Catalogue:
    """Of the name that `muster.locales` gives it: report, record, cost, journal, figures, gates."""
    return Catalogue(language, load_texts(name, language))
