"""What stands below each picture, in the campaign's language."""

from __future__ import annotations

from collections.abc import Iterable

from muster.app.facts.drawing.figure_context import FigureContext

CAPTION_TEXTS = {
    "en": {
        "learning": "Learning curves of {metric}{keys}: thick lines are means over the seeds, thin lines the seeds.",
        "single": "Learning curves of {metric}{keys}: each line is one training seed.",
        "band": "Bands: Student-t 95 % intervals of the mean, from three seeds on; only steps that all seeds reached.",
        "no_band": "No bands: fewer than three seeds.",
        "bars": "{metric} on {heads}: {mark} are means over the training seeds, dots the seeds.",
        "bar": "bars",
        "point": "large marks",
        "open": "The axis does not start at 0.",
        "trade": "{score} against {cost}: large marks are means over the training seeds, small ones the seeds.",
        "one_bar": "{metric} on {heads}: {mark} are the values of one training seed each.",
        "one_point": "{score} against {cost}: each mark is one training seed.",
        "interval": "Lines: Student-t 95 % intervals of the mean, from three seeds on.",
        "no_interval": "No intervals: fewer than three seeds.",
        "limit": "Dashed: the limit {limit} of {column}.",
        "dagger": "† infeasible: the one-sided 95 % bound of the mean {column} lies beyond the limit.",
        "undetermined": "Undetermined against the limit: {configs}.",
        "n": "{sizes}.",
        "all_n": "n = {n} for each config.",
        "coverage": "{k} of {n} cells with results are done. A square for each config and seed; filled: done.",
        "missing": "Missing: {states}.",
        "elsewhere": "Missing without a square: {cells}.",
        "more": "and {more} more",
        "left_out": "{count} further curves of the same seeds are not drawn.",
        "uneven": "Without a common step, so without a mean: {configs}.",
        "patchy": "A mean is drawn only where every seed has values, here over a part of the steps: {configs}.",
        "proxy": "{head} is a proxy: {note}",
        "split_note": "{head}: {note}",
        "key": "Names in the picture: {pairs}.",
        "invalid": "INVALID: a red flag of level ERROR was raised; see the report.",
        "list": ", ",
        "gap": " ",
        "stop": ".",
    },
    "zh": {
        "learning": "{metric}{keys} 的学习曲线：粗线为各训练种子的均值，细线为每个种子。",
        "single": "{metric}{keys} 的学习曲线：每条线为一个训练种子。",
        "band": "色带：均值的 Student-t 95 % 区间（至少 3 个种子），只画所有种子都到达的步数。",
        "no_band": "不足 3 个种子，不画色带。",
        "bars": "{heads} 上的 {metric}：{mark}为各训练种子的均值，小圆点为每个种子。",
        "bar": "条形",
        "point": "大标记",
        "open": "坐标轴不从 0 开始。",
        "trade": "{score} 与 {cost} 的对照：大标记为各训练种子的均值，小标记为每个种子。",
        "one_bar": "{heads} 上的 {metric}：{mark}为单个训练种子的值。",
        "one_point": "{score} 与 {cost} 的对照：每个标记为一个训练种子。",
        "interval": "线段：均值的 Student-t 95 % 区间（至少 3 个种子）。",
        "no_interval": "不足 3 个种子，不画区间。",
        "limit": "虚线：{column} 的限值 {limit}。",
        "dagger": "† 不可行：{column} 均值的单侧 95 % 界超出限值。",
        "undetermined": "对限值尚无定论：{configs}。",
        "n": "种子数：{sizes}。",
        "all_n": "每个配置 n = {n} 个种子。",
        "coverage": "有结果的单元共 {n} 个，已完成 {k} 个。每个方格对应一个配置和一个种子，实心为已完成。",
        "missing": "缺失：{states}。",
        "elsewhere": "缺失且图中没有方格的单元：{cells}。",
        "more": "另有 {more} 个",
        "left_out": "同一种子另有 {count} 条曲线未画出。",
        "uneven": "各种子没有共同的步数，因此没有均值：{configs}。",
        "patchy": "均值只画在所有种子都有数值之处，这里只覆盖了部分步数：{configs}。",
        "proxy": "{head} 是代理划分：{note}",
        "split_note": "{head}：{note}",
        "key": "图中名称：{pairs}。",
        "invalid": "INVALID：出现 ERROR 级别的警示，见报告。",
        "list": "、",
        "gap": "",
        "stop": "。",
    },
}
MOST_CELLS_IN_CAPTION = 12  # missing cells in a caption


class _CaptionCatalogue:
    """The sentences in one language."""

    def __init__(self, scene: FigureContext) -> None:
        self.scene = scene
        self.words = CAPTION_TEXTS[scene.facts.language]

    def __call__(self, key: str, **parts: object) -> str:
        return self.words[key].format(**parts)

    def listed(self, names: Iterable[str]) -> str:
        return self.words["list"].join(names)

    def joined(self, *sentences: str) -> str:
        """The mark first: a caption is often read no further."""
        mark = self.scene.facts.mark
        invalid = self("invalid") if self.scene.analysis.errors else ""
        found = [invalid, f"{mark}{'。' if self.scene.facts.language == 'zh' else '.'}" if mark else "", *sentences]
        return self.words["gap"].join(sentence for sentence in found if sentence)

    def sizes(self, found: dict[str, tuple[int, ...]]) -> str:
        """n of each config; on each split where they differ."""
        alike = {size for sizes in found.values() for size in sizes}
        if len(alike) == 1:
            return self("all_n", n=alike.pop())
        shown = (f"{config or '-'} n = {'/'.join(map(str, dict.fromkeys(sizes)))}" for config, sizes in found.items())
        return self("n", sizes=self.listed(shown))

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
        return self.words["gap"].join(found)

    def _ended(self, text: str) -> str:
        """With the full stop of the language."""
        return text if text.endswith((".", "。", "!", "！", "?", "？")) else f"{text}{self.words['stop']}"

    def key(self, **names: Iterable[str]) -> str:
        """What stands for a name that could not be drawn, or not in full."""
        pairs = [
            f"{shown} = {name}"
            for kind, known in names.items()
            for shown, name in self.scene.names.replaced(kind, dict.fromkeys(known))
        ]
        return self("key", pairs=self.listed(pairs)) if pairs else ""
