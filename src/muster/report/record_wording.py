"""The record's own words, and how cells, times and other people's texts are put into its sentences."""

from __future__ import annotations

from collections.abc import Sequence

from muster.domain.wording import code, filled, measured
from muster.report import record_en, record_zh
from muster.report.escape import sentence as plain

__all__ = ["TEXTS", "Wording", "code", "grouped", "moment", "plain", "short", "size", "span"]
TEXTS = {"en": record_en.TEXTS, "zh": record_zh.TEXTS}
NAMED = 12  # groups of cells that are named in a sentence
LONGEST = 300  # characters of a reason or a log line


class Wording:
    """Of one language: `{name}` is filled in, `a|b` is one and many."""

    def __init__(self, language: str) -> None:
        self.texts = TEXTS[language]

    def __call__(self, key: str, **parts: object) -> str:
        if "who" in parts:  # whatever somebody is called
            parts["who"] = plain(str(parts["who"]))
        return filled(self.texts[key], parts)

    def count(self, key: str, n: int) -> str:
        one, _, many = self.texts[key].partition("|")
        return (one if n == 1 or not many else many).format(n=f"{n:,}")

    def list(self, items: Sequence[str], most: int = NAMED) -> str:
        shown = self.texts["comma"].join(items[:most])
        return shown if len(items) <= most else self("and_more", items=shown, n=len(items) - most)

    def cells(self, names: Sequence[str]) -> str:
        return self.list([code(each) for each in grouped(names)])


def grouped(cells: Sequence[str]) -> list[str]:
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


def moment(iso: str) -> str:
    return iso[:19].replace("T", " ")


def short(text: str) -> str:
    line = " ".join(text.split()) if "\n" in text else text.rstrip()
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def span(seconds: float, say: Wording) -> str:
    if seconds < 1:
        return say("span.none")
    number, unit = measured(seconds)
    return say(f"span.{unit}", n=number)


def size(count: int) -> str:
    amount = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"
