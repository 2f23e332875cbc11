"""The words of the cost report: those of the record, and its own."""

from __future__ import annotations

from collections.abc import Sequence

from muster.domain.wording import measured
from muster.report import cost_en, cost_zh
from muster.report.cost_facts import Sums
from muster.report.record_wording import Wording

_OWN = {"en": cost_en.TEXTS, "zh": cost_zh.TEXTS}


class CostWords(Wording):
    def __init__(self, language: str) -> None:
        super().__init__(language)
        self.texts = {**self.texts, **_OWN[language]}
        self._between = "" if language == "zh" else " "

    def join(self, sentences: Sequence[str]) -> str:
        """Side by side; Chinese needs no space between."""
        return self._between.join(each for each in sentences if each)

    def money(self, amount: float, sums: Sums) -> str:
        return f"{amount:.2f} {sums.currency}".rstrip()

    def span(self, hours: float) -> str:
        number, unit = measured(hours * 3600)
        return self(unit, n=number)

    def time(self, hours: float, sums: Sums, *, gpu: bool = False) -> str:
        """Of GPUs, of slots, or of the machine: what `hours` are counted in."""
        unit = "machine" if sums.per == "machine" and sums.price and not gpu else "gpu" if sums.gpu_hours else "slot"
        return self(f"time.{unit}", span=self.span(hours))

    def share(self, part: float) -> str:
        return f"{part * 100:.0f} %" if 0.005 <= part <= 0.995 or part in (0.0, 1.0) else f"{part * 100:.1f} %"
