"""The catalogues of journal and record, and how cells, times and other people's texts are put into their sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from muster.text.escape_markup import escape_sentence
from muster.text.locales.cost_and_journal_en import JOURNAL_EN_EN
from muster.text.locales.cost_and_journal_zh import JOURNAL_ZH_ZH
from muster.text.locales.record_en import RECORD_EN_EN
from muster.text.locales.record_zh import RECORD_ZH_ZH
from muster.text.sentences import fill_sentence, format_inline_code, split_duration

JOURNAL_TEXTS: Mapping[str, Mapping[str, str]] = {"en": JOURNAL_EN_EN, "zh": JOURNAL_ZH_ZH}


class JournalCatalogue:
    def __init__(self, language: str) -> None:
        self.language = language
        self._texts = JOURNAL_TEXTS[language]

    def __call__(self, key: str, /, **parts: object) -> str:
        return fill_sentence(self._texts[key], parts)

    def has(self, key: str) -> bool:
        return key in self._texts

    def list(self, items: Sequence[str], most: int = 12) -> str:
        shown = self._texts["comma"].join(items[:most])
        return shown if len(items) <= most else self("and_more", items=shown, n=len(items) - most)

    def sentences(self, *parts: str) -> str:
        return self._texts["between"].join(part for part in parts if part)


RECORD_TEXTS = {"en": RECORD_EN_EN, "zh": RECORD_ZH_ZH}
MOST_GROUPS = 12  # groups of cells that are named in a sentence
LONGEST_QUOTE = 300  # characters of a reason or a log line


class RecordCatalogue:
    """Of one language: `{name}` is filled in, `a|b` is one and many."""

    def __init__(self, language: str) -> None:
        self.texts = RECORD_TEXTS[language]

    def __call__(self, key: str, **parts: object) -> str:
        if "who" in parts:  # whatever somebody is called
            parts["who"] = escape_sentence(str(parts["who"]))
        return fill_sentence(self.texts[key], parts)

    def count(self, key: str, n: int) -> str:
        one, _, many = self.texts[key].partition("|")
        return (one if n == 1 or not many else many).format(n=f"{n:,}")

    def list(self, items: Sequence[str], most: int = MOST_GROUPS) -> str:
        shown = self.texts["comma"].join(items[:most])
        return shown if len(items) <= most else self("and_more", items=shown, n=len(items) - most)

    def cells(self, names: Sequence[str]) -> str:
        return self.list([format_inline_code(each) for each in group_cell_names(names)])


def group_cell_names(cells: Sequence[str]) -> list[str]:
    """Cells that differ in one value only, together: `train/v2_full/{0,1,3}`, as a shell would expand it."""
    rows: list[list[tuple[str, ...]]] = [[(part,) for part in cell.split("/")] for cell in dict.fromkeys(cells)]
    for back in range(1, max(map(len, rows), default=0)):  # the last value first; the job stays what it is
        merged: dict[object, list[tuple[str, ...]]] = {}
        for row in rows:
            at = len(row) - back
            key = (len(row), *row[:at], None, *row[at + 1 :]) if at > 0 else tuple(row)
            known = merged.get(key)
            if known is None:
                merged[key] = row
            elif at > 0:
                known[at] = (*known[at], *row[at])
        rows = list(merged.values())
    return ["/".join(part[0] if len(part) == 1 else f"{{{','.join(part)}}}" for part in row) for row in rows]


def format_moment(iso: str) -> str:
    return iso[:19].replace("T", " ")


def shorten_quote(text: str) -> str:
    line = " ".join(text.split()) if "\n" in text else text.rstrip()
    return line if len(line) <= LONGEST_QUOTE else line[: LONGEST_QUOTE - 1] + "…"


def format_record_span(seconds: float, say: RecordCatalogue) -> str:
    if seconds < 1:
        return say("span.none")
    number, unit = split_duration(seconds)
    return say(f"span.{unit}", n=number)


def format_file_size(count: int) -> str:
    amount = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def list_all_cells(names: Sequence[str], say: RecordCatalogue) -> str:
    """Every one: nothing that is missing may hide behind a number."""
    return say.list([format_inline_code(each) for each in group_cell_names(names)], most=len(names))
