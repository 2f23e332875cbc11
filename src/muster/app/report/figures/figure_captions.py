"""What stands below each picture, in the campaign's language."""

from __future__ import annotations

from collections.abc import Iterable

from muster.app.facts.drawing.figure_context import FigureContext
from muster.locales import load_texts
from muster.text.catalogue import Catalogue

MOST_CELLS_IN_CAPTION = 12  # missing cells in a caption


class FigureCaptions(Catalogue):
    """Of the figures of one report."""

    def __init__(self, scene: FigureContext) -> None:
        super().__init__(scene.facts.language, load_texts("figures", scene.facts.language))
        self.scene = scene

    def joined(self, *sentences: str) -> str:
        """The mark first: a caption is often read no further."""
        mark = self.scene.facts.mark
        invalid = self("invalid") if self.scene.analysis.errors else ""
        return self.sentences(invalid, f"{mark}{self('stop')}" if mark else "", *sentences)

    def sizes(self, found: dict[str, tuple[int, ...]]) -> str:
        """n of each config; on each split where they differ."""
        alike = {size for sizes in found.values() for size in sizes}
        if len(alike) == 1:
            return self("all_n", n=alike.pop())
        shown = (f"{config or '-'} n = {'/'.join(map(str, dict.fromkeys(sizes)))}" for config, sizes in found.items())
        return self("n", sizes=self.list_all(shown))

    def dagger(self, configs: Iterable[str]) -> str:
        plan = self.scene.facts.plan
        shown = plan and plan.limit and any(self.scene.infeasible(config) for config in configs)
        return self("dagger", column=plan.limit.name) if shown and plan and plan.limit else ""

    def proxies(self, heads: Iterable[str]) -> str:
        """What the splits stand for, and what people noted about them."""
        facts = self.scene.facts
        told = [("proxy", facts.proxies), ("split_note", facts.split_notes)]
        found = [
            self(key, head=head, note=self._ended(texts[split]))
            for head in dict.fromkeys(heads)
            for key, texts in told
            if (split := facts.split_of(head)) in texts
        ]
        return self.sentences(*found)

    def _ended(self, text: str) -> str:
        """With the full stop of the language."""
        return text if text.endswith((".", "。", "!", "！", "?", "？")) else f"{text}{self('stop')}"

    def key(self, **names: Iterable[str]) -> str:
        """What stands for a name that could not be drawn, or not in full."""
        pairs = [
            f"{shown} = {name}"
            for kind, known in names.items()
            for shown, name in self.scene.names.replaced(kind, dict.fromkeys(known))
        ]
        return self("key", pairs=self.list_all(pairs)) if pairs else ""
