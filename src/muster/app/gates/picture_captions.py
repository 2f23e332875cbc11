"""What stands below each picture, and what a reader must know of the files: in English and in Chinese."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from muster.app.gates.stage_bands import WrongLabel
from muster.app.gates.staged_artifacts import GateTrace, StagedArtifacts, StagedNote
from muster.text.sentences import fill_sentence

STAGED_CAPTION_TEXTS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "stage_events": "{what} by stage, in blocks of iterations: {counts}.",
        "gate_timeline": "The gate{gate}: values, what its windows made of them, the bounds that applied, the "
        "decisions and the phase. {opened}",
        "opened": "It opened at iteration {at}.",
        "shut": "It never opened.",
        "frozen": "While it is frozen nothing is judged, and no bound is drawn.",
        "stage_warnings": "What is left of each type of stage, and how long it has been warned of. {warned}",
        "warned": "{type}: below {threshold:g} from iteration {onset}, told at {iteration}, lasted {duration:g}.",
        "no_warning": "No warning was told.",
        "survival": "Survival and first death over the iterations: {keys}.",
        "bands": "Background: the stages, from {source}.",
        "by_schedule": "the schedule",
        "by_labels": "the rows' own labels",
        "contradicts": "Hatched: labels that contradict the schedule.",
        "key": "Names in the picture: {pairs}.",
        "unreadable": "{file} can't be read: {why}",
        "another": "{file} was left out: another file of its kind came first",
        "empty": "{file} has no rows",
        "nothing_drawn": "{file} has no survival, first death or early death",
        "no_schedule": "the schedule in {file} can't be read, so labels were not held against it: {why}",
        "sums": "{file}: its totals ({events}) are not the sums of its rows ({rows}); the rows are drawn",
        "torn": "{file}: the last line is torn and was left out",
        "skipped": "{file}: {count} {count:line is|lines are} no JSON object and {count:was|were} left out",
        "no_iteration": "{file}: {count} {count:row has|rows have} no iteration and {count:was|were} left out",
        "sampled": "{file} is large: {count} of its {total} lines were read, and only their labels were looked at",
        "thinned": "{file}: {count} of {total} rows are drawn",
        "more_labels": "{count} more {count:label contradicts|labels contradict} the schedule",
        "mislabelled": "{files}: the row of iteration {at} is labelled {label}; by the schedule it is {stage} "
        "({first}-{last})",
        "several": "{file} is there more than once, and was left out: {where}",
        "too_large": "{file} is larger than {most} MiB and was left out",
        "no_file": "{file} was left out: it is no regular file",
        "undrawn": "{name} could not be drawn: {why}",
        "list": ", ",
        "gap": " ",
        "stop": ".",
    },
    "zh": {
        "stage_events": "{what} 按阶段的分布（按迭代分块）：{counts}。",
        "gate_timeline": "门控{gate}：取值、窗口值、当时适用的阈值、每次决定以及 phase。{opened}",
        "opened": "在迭代 {at} 打开。",
        "shut": "始终没有打开。",
        "frozen": "冻结期间不作判断，也不画阈值。",
        "stage_warnings": "各类阶段的剩余比例与告警持续时长。{warned}",
        "warned": "{type}：自迭代 {onset} 起低于 {threshold:g}，迭代 {iteration} 告警，持续 {duration:g} 个迭代。",
        "no_warning": "没有告警。",
        "survival": "存活率与首次死亡随迭代的变化：{keys}。",
        "bands": "背景为各阶段，取自{source}。",
        "by_schedule": "日程",
        "by_labels": "数据行自带的标签",
        "contradicts": "斜纹处：标签与日程矛盾。",
        "key": "图中名称：{pairs}。",
        "unreadable": "{file} 无法读取：{why}",
        "another": "{file} 未使用：已有同类文件",
        "empty": "{file} 没有数据行",
        "nothing_drawn": "{file} 中没有存活率、首次死亡或早期死亡",
        "no_schedule": "{file} 中的日程无法读取，因此没有核对标签：{why}",
        "sums": "{file}：总数（{events}）不等于各行之和（{rows}）；图中按各行绘制",
        "torn": "{file}：最后一行不完整，未使用",
        "skipped": "{file}：有 {count} 行不是 JSON 对象，未使用",
        "no_iteration": "{file}：有 {count} 行没有迭代号，未使用",
        "sampled": "{file} 很大：{total} 行中读取了 {count} 行，标签也只核对了这些行",
        "thinned": "{file}：{total} 行中绘制了 {count} 行",
        "more_labels": "另有 {count} 个标签与日程矛盾",
        "mislabelled": "{files}：迭代 {at} 的行标为 {label}，而按日程应为 {stage}（{first}-{last}）",
        "several": "{file} 有多份，未使用：{where}",
        "too_large": "{file} 超过 {most} MiB，未使用",
        "no_file": "{file} 不是普通文件，未使用",
        "undrawn": "{name} 无法绘制：{why}",
        "list": "、",
        "gap": "",
        "stop": "。",
    },
}
CAPTION_LANGUAGES = tuple(STAGED_CAPTION_TEXTS)


class CaptionWords:
    """The sentences in one language."""

    def __init__(self, language: str) -> None:
        self.words = STAGED_CAPTION_TEXTS[language]

    def __call__(self, key: str, **parts: object) -> str:
        return fill_sentence(self.words[key], parts)

    def note(self, note: StagedNote) -> str:
        return self(note.key, **note.parts)

    def listed(self, names: Iterable[str]) -> str:
        return self.words["list"].join(names)

    def contradictions(self, wrong: Sequence[WrongLabel]) -> list[str]:
        """By iteration; what several files say alike is told once."""
        files: dict[tuple[int, str], dict[str, None]] = {}
        for each in wrong:
            files.setdefault((each.found.row.iteration, each.found.row.stage), {})[each.file] = None
        stages = {(each.found.row.iteration, each.found.row.stage): each.found.stage for each in wrong}
        return [
            self(
                "mislabelled",
                files=self.listed(names),
                at=at,
                label=label,
                stage=stages[at, label].type,
                first=stages[at, label].first,
                last=stages[at, label].last,
            )
            for (at, label), names in sorted(files.items())
        ]

    def marked(self, mark: str, caption: str) -> str:
        """The mark first: a caption is often read no further."""
        return f"{mark}{self.words['stop']}{self.words['gap']}{caption}" if mark else caption

    def caption(self, what: str, artifacts: StagedArtifacts, wrong: bool, names: Mapping[str, str]) -> str:
        """`names`: what stands in the picture for each name."""
        schedule = artifacts.schedule and artifacts.schedule.schedule
        labelled = schedule or any(stage for labels in artifacts.labels.values() for _, stage in labels)
        bands = (
            self("bands", source=self(_band_source_key(bool(schedule)))) if labelled and what != "stage_events" else ""
        )
        replaced = [f"{shown} = {name}" for name, shown in names.items() if name and shown != name]
        said = [
            self._what(what, artifacts),
            bands,
            self("contradicts") if wrong else "",
            self("key", pairs=self.listed(replaced)) if replaced else "",
        ]
        return self.words["gap"].join(each for each in said if each)

    def _what(self, what: str, artifacts: StagedArtifacts) -> str:
        if what == "stage_events" and artifacts.events:
            counts = (f"{stage or '-'} {count:g}" for stage, count in artifacts.events.totals.items())
            return self(what, what=artifacts.events.what, counts=self.listed(counts))
        if what == "stage_warnings" and artifacts.schedule:
            told = [self("warned", **_mark_unknown_parts(each._asdict())) for each in artifacts.schedule.warnings]
            return self(what, warned=self.words["gap"].join(told) or self("no_warning"))
        if what == "survival":
            keys = dict.fromkeys(key for each in artifacts.series for key in each.values)
            return self(what, keys=self.listed(keys))
        return ""

    def gate(self, gate: GateTrace, artifacts: StagedArtifacts, wrong: bool, names: Mapping[str, str]) -> str:
        opened = [row.iteration for row in gate.rows if row.state == "advance"]
        said = self("opened", at=self.listed(map(str, list_first_numbers(opened)))) if opened else self("shut")
        name = "" if gate.name == "gate" else f" {gate.name}"
        frozen = any(row.state == "frozen" for row in gate.rows)
        parts = [
            self("gate_timeline", gate=name, opened=said),
            self("frozen") if frozen else "",
            self.caption("gate", artifacts, wrong, names),
        ]
        return self.words["gap"].join(part for part in parts if part)


def _band_source_key(schedule: bool) -> str:
    return "by_schedule" if schedule else "by_labels"


def _mark_unknown_parts(given: Mapping[str, object]) -> dict[str, object]:
    return {name: "?" if value is None else value for name, value in given.items()}


def list_first_numbers(found: Sequence[int], most: int = 8) -> list[str]:
    return [*map(str, found[:most]), *(["..."] if len(found) > most else [])]
