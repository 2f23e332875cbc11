"""What stands below each picture, and what a reader must know of the files: in English and in Chinese."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from muster.app.gates.stage_bands import WrongLabel
from muster.app.gates.staged_artifacts import GateTrace, StagedArtifacts, StagedNote
from muster.locales import load_texts
from muster.text.catalogue import Catalogue


class StageCaptions(Catalogue):
    def __init__(self, language: str) -> None:
        super().__init__(language, load_texts("gates", language))

    def note(self, note: StagedNote) -> str:
        return self(note.key, **note.parts)

    def contradictions(self, wrong: Sequence[WrongLabel]) -> list[str]:
        """By iteration; what several files say alike is told once."""
        files: dict[tuple[int, str], dict[str, None]] = {}
        for each in wrong:
            files.setdefault((each.found.row.iteration, each.found.row.stage), {})[each.file] = None
        stages = {(each.found.row.iteration, each.found.row.stage): each.found.stage for each in wrong}
        return [
            self(
                "mislabelled",
                files=self.list_all(names),
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
        return self.sentences(f"{mark}{self('stop')}", caption) if mark else caption

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
            self("key", pairs=self.list_all(replaced)) if replaced else "",
        ]
        return self.sentences(*said)

    def _what(self, what: str, artifacts: StagedArtifacts) -> str:
        if what == "stage_events" and artifacts.events:
            counts = (f"{stage or '-'} {count:g}" for stage, count in artifacts.events.totals.items())
            return self(what, what=artifacts.events.what, counts=self.list_all(counts))
        if what == "stage_warnings" and artifacts.schedule:
            told = [self("warned", **_mark_unknown_parts(each._asdict())) for each in artifacts.schedule.warnings]
            return self(what, warned=self.sentences(*told) or self("no_warning"))
        if what == "survival":
            keys = dict.fromkeys(key for each in artifacts.series for key in each.values)
            return self(what, keys=self.list_all(keys))
        return ""

    def gate(self, gate: GateTrace, artifacts: StagedArtifacts, wrong: bool, names: Mapping[str, str]) -> str:
        opened = [row.iteration for row in gate.rows if row.state == "advance"]
        said = self("opened", at=self.list_all(map(str, list_first_numbers(opened)))) if opened else self("shut")
        name = "" if gate.name == "gate" else f" {gate.name}"
        frozen = any(row.state == "frozen" for row in gate.rows)
        parts = [
            self("gate_timeline", gate=name, opened=said),
            self("frozen") if frozen else "",
            self.caption("gate", artifacts, wrong, names),
        ]
        return self.sentences(*parts)


def _band_source_key(schedule: bool) -> str:
    return "by_schedule" if schedule else "by_labels"


def _mark_unknown_parts(given: Mapping[str, object]) -> dict[str, object]:
    return {name: "?" if value is None else value for name, value in given.items()}


def list_first_numbers(found: Sequence[int], most: int = 8) -> list[str]:
    return [*map(str, found[:most]), *(["..."] if len(found) > most else [])]
