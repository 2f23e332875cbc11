"""The stages of a training in their order: which one an iteration belongs to, and what is left of each type. Also
curricula (a value such as 15 fish, and for how many iterations it holds) and tail seeds.

Iterations count from 1. A stage draws its hard starts ("tail seeds") from a file; each is replayed as often as it is
to be, then the next, round and round.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import accumulate
from operator import attrgetter
from typing import Any, NamedTuple

from muster.stages.notation import (
    GateError,
    NotationReader,
    SettingProblem,
    SettingsForm,
    SpecError,
    TextPiece,
    clip_text,
    iterate_mapping_entries,
    show_found_value,
    split_pieces,
)

CURRICULUM_NAME = "curriculum"
CURRICULUM_EXAMPLE = "15:9,20:10 (value:iterations)"


class Lesson(NamedTuple):
    value: int | float
    iterations: int


class Curriculum(NamedTuple):
    lessons: tuple[Lesson, ...]

    @classmethod
    def parse(cls, text: str) -> Curriculum:
        """`15:9,20:10`: value 15 for 9 iterations, then 20 for 10."""
        reader = NotationReader(CURRICULUM_NAME, text)
        found = []
        for piece in reader.parts(",", CURRICULUM_EXAMPLE):
            pair = reader.pair(piece, "VALUE:ITERATIONS")
            if pair is None:
                continue
            value, iterations = reader.number(pair[0]), reader.count(pair[1], "iterations")
            if value is not None and iterations is not None:
                found.append(Lesson(value, iterations))
        reader.done()
        return cls(tuple(found))

    @classmethod
    def of(cls, written: str | Sequence[Mapping[str, Any]]) -> Curriculum:
        """As in YAML: the notation, or a list of `{value: 15, iterations: 9}`."""
        if isinstance(written, str):
            return cls.parse(written)
        form = SettingsForm(CURRICULUM_NAME)
        found = []
        for name, entry in iterate_mapping_entries(form, written, "{value: 15, iterations: 9}"):
            form.known(name, entry, ("value", "iterations"))
            value, iterations = form.number(name, entry, "value"), form.count(name, entry, "iterations")
            if value is not None and iterations is not None:
                found.append(Lesson(value, iterations))
        form.done()
        return cls(tuple(found))

    @property
    def total(self) -> int:
        return sum(each.iterations for each in self.lessons)

    @property
    def ends(self) -> list[int]:
        """The last iteration of each."""
        return list(accumulate(each.iterations for each in self.lessons))

    def value_at(self, iteration: int) -> int | float:
        """Beyond the end: the last value."""
        if iteration < 1:
            raise ValueError(f"iterations count from 1, found {iteration}")
        return self.lessons[min(bisect_left(self.ends, iteration), len(self.lessons) - 1)].value

    def text(self) -> str:
        return ",".join(f"{each.value}:{each.iterations}" for each in self.lessons)

    def mappings(self) -> list[dict[str, int | float]]:
        return [{"value": each.value, "iterations": each.iterations} for each in self.lessons]


class Cycler:
    """`seeds`: the entries of each source file, as the script read them.

    It keeps a place for each source, so that a stage that comes back goes on where it was left.
    """

    def __init__(self, seeds: Mapping[str, Sequence[Any]], replay: int = 1) -> None:
        empty = [name for name, found in seeds.items() if not found]
        if empty:
            raise GateError(f"no tail seed in {', '.join(empty)}: a stage can't draw from an empty file")
        if replay < 1:
            raise GateError(f"each seed is handed out at least once, found replay={replay}")
        self._seeds = {name: tuple(found) for name, found in seeds.items()}
        self._replay = replay
        self._drawn = dict.fromkeys(self._seeds, 0)

    def draw(self, source: str, count: int = 1) -> list[Any]:
        if count < 0:
            raise GateError(f"it can't hand out {count} seeds")
        seeds, at = self._of(source), self._drawn[source]
        self._drawn[source] = at + count
        return [seeds[(at + k) // self._replay % len(seeds)] for k in range(count)]

    def replays(self, source: str) -> dict[int, int]:
        """How often each entry was handed out, by its place in the file."""
        size, drawn = len(self._of(source)), self._drawn[source]
        rounds, rest = divmod(drawn, size * self._replay)
        return {at: rounds * self._replay + min(max(rest - at * self._replay, 0), self._replay) for at in range(size)}

    def _of(self, source: str) -> tuple[Any, ...]:
        if source not in self._seeds:
            raise GateError(f"no tail seeds were given for {source}; given: {', '.join(self._seeds) or 'none'}")
        return self._seeds[source]

    def drawn(self) -> dict[str, int]:
        return dict(self._drawn)

    def state(self) -> dict[str, int]:
        """For the checkpoint."""
        return dict(self._drawn)

    def load(self, state: Mapping[str, Hashable]) -> None:
        """Sources that the checkpoint does not know begin at their start."""
        for name, drawn in state.items():
            if name in self._drawn and isinstance(drawn, int) and drawn >= 0:
                self._drawn[name] = drawn


SCHEDULE_NAME = "schedule"
SCHEDULE_EXAMPLE = "8:a.json|type=ne;15:b.json|type=main (iterations:path|type=NAME)"
NO_MARKS: Mapping[str, str] = {}
_RESERVED_MARKS = ("iterations", "file", "from", "to")  # of the mappings: marks can't be called so


class Stage(NamedTuple):
    length: int  # in iterations
    source: str  # the file of its tail seeds
    type: str  # ne, main, ...
    first: int  # its first iteration
    place: int  # in the schedule, from 0
    marks: Mapping[str, str] = NO_MARKS  # further `|name=value` of the notation

    @property
    def last(self) -> int:
        return self.first + self.length - 1

    def __str__(self) -> str:
        return f"{self.type} {self.first}-{self.last}"


class Schedule(NamedTuple):
    stages: tuple[Stage, ...]

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """`8:a.json|type=ne;15:b.json|type=main`"""
        reader = NotationReader(SCHEDULE_NAME, text)
        found: list[Stage] = []
        for piece in reader.parts(";", SCHEDULE_EXAMPLE):
            stage = _parse_stage(reader, piece, found)
            if stage is not None:
                found.append(stage)
        reader.done()
        return cls(tuple(found))

    @classmethod
    def of(cls, written: str | Sequence[Mapping[str, Any]]) -> Schedule:
        """As in YAML: the notation, or a list of `{iterations: 8, file: a.json, type: ne}`; `from` and `to` are
        checked where they are given, and may stand for `iterations`."""
        if isinstance(written, str):
            return cls.parse(written)
        form = SettingsForm(SCHEDULE_NAME)
        found: list[Stage] = []
        due: int | None = 1  # where the next one begins; None: the one before it can't be read
        for name, entry in iterate_mapping_entries(form, written, "{iterations: 8, file: a.json, type: ne}"):
            stage = _stage_from_mapping(form, name, entry, due, len(found))
            due = stage.last + 1 if stage else None
            found += [stage] if stage else []
        form.done()
        return cls(tuple(found))

    @property
    def total(self) -> int:
        return self.stages[-1].last

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.type for each in self.stages))

    def stage_at(self, iteration: int) -> Stage:
        """After the end: the last one."""
        if iteration < 1:
            raise ValueError(f"iterations count from 1, found {iteration}")
        return self.stages[min(bisect_left(self.stages, iteration, key=attrgetter("last")), len(self.stages) - 1)]

    def lengths(self, within: int | None = None) -> dict[str, int]:
        """Iterations of each type, in a run of so many."""
        return self.remaining(0, within)

    def remaining(self, iteration: int, within: int | None = None) -> dict[str, int]:
        """Iterations of each type that come after this one, in a run of so many; the last stage lasts until its end."""
        end = self.total if within is None else within
        left = dict.fromkeys(self.types, 0)
        for each in self.stages:
            last = min(each.last, end) if each is not self.stages[-1] else end
            left[each.type] += max(0, last - max(each.first, iteration + 1) + 1)
        return left

    def remaining_ratio(self, iteration: int, within: int | None = None) -> dict[str, float]:
        whole = self.lengths(within)
        return {
            name: left / whole[name] if whole[name] else 0.0 for name, left in self.remaining(iteration, within).items()
        }

    def reinjections(self, iteration: int) -> dict[str, int]:
        """How often a type has come back: its stages that have begun, less the first."""
        begun = dict.fromkeys(self.types, 0)
        for each in self.stages:
            begun[each.type] += each.first <= iteration
        return {name: max(0, count - 1) for name, count in begun.items()}

    def runs_out(self, within: int) -> dict[str, int]:
        """The last iteration of each type that ends before the run does."""
        found = {}
        for name in self.types:
            last = max(
                (min(each.last, within) for each in self.stages if each.type == name and each.first <= within),
                default=0,
            )
            if last < min(within, self.total):
                found[name] = last
        return found

    def beyond(self, within: int) -> Iterator[Stage]:
        """Stages that a run of so many iterations never reaches."""
        return (each for each in self.stages if each.first > within)

    def text(self) -> str:
        return ";".join(_format_stage(each) for each in self.stages)

    def mappings(self) -> list[dict[str, Any]]:
        return [
            {"iterations": each.length, "file": each.source, "type": each.type} | dict(each.marks)
            for each in self.stages
        ]


def _parse_stage(reader: NotationReader, piece: TextPiece, before: Sequence[Stage]) -> Stage | None:
    pair = reader.pair(piece, "ITERATIONS:FILE|type=NAME")
    if pair is None:
        return None
    length = reader.count(pair[0], "iterations")
    source, *marks = split_pieces(pair[1].text, "|", pair[1].at)
    if not source.text:
        reader.wrong("the file is missing", source.at, "write ITERATIONS:FILE|type=NAME")
    read: dict[str, str] = {}
    for mark in marks:
        name, equals, value = (part.strip() for part in mark.text.partition("="))
        if not equals or not name or not value or name in _RESERVED_MARKS:
            reader.wrong(f"'{clip_text(mark.text)}' is no mark", mark.at, "write |type=NAME")
        elif name in read:
            reader.wrong(f"'{clip_text(name)}' is there twice", mark.at)
        else:
            read[name] = value
    if slip := _find_mistyped_type(read):
        reader.wrong(f"'{clip_text(slip)}' gives it no type", piece.at, "did you mean 'type'?")
    if length is None or not source.text:
        return None
    return _make_stage(length, source.text, read, before[-1].last + 1 if before else 1, len(before))


def _stage_from_mapping(
    form: SettingsForm, name: str, entry: Mapping[str, Any], due: int | None, place: int
) -> Stage | None:
    marks = _read_stage_marks(form, name, entry)
    if "type" in entry:
        marks["type"] = form.text(name, entry, "type").strip()
    elif slip := _find_mistyped_type(marks):
        form.wrong(name, f"'{slip}' gives it no type", "did you mean 'type'?")
    source = form.text(name, entry, "file").strip()
    begins = form.whole(f"{name}: from", entry["from"], 1) if "from" in entry else due or 1
    if begins is None:
        return None
    if due and begins != due:
        form.wrong(name, _misplaced_message(begins, due), f"write from: {due}")
    length = _read_stage_length(form, name, entry, begins)
    return None if length is None else _make_stage(length, source, marks, begins, place)


def _read_stage_marks(form: SettingsForm, name: str, entry: Mapping[str, Any]) -> dict[str, str]:
    read = {}
    for key, value in entry.items():
        if key not in (*_RESERVED_MARKS, "type"):
            mark, text = str(key).strip(), str(value).strip()
            if not isinstance(value, str | int | float) or not text:
                form.wrong(name, f"{mark}: expected text, found {show_found_value(value)}")
            if not mark or "=" in mark:
                form.wrong(name, f"'{mark}' is no name of a mark")
            read[mark] = text
    return read


def _misplaced_message(begins: int, due: int) -> str:
    if due == 1:
        return f"it begins at {begins}, and the run at 1"
    how = "overlaps the stage before it" if begins < due else "leaves a gap behind the stage before it"
    return f"it begins at {begins} and {how}, which ends at {due - 1}"


def _read_stage_length(form: SettingsForm, name: str, entry: Mapping[str, Any], begins: int) -> int | None:
    if "to" not in entry:
        return form.count(name, entry, "iterations")
    ends = form.whole(f"{name}: to", entry["to"], 1)
    if ends is None:
        return None
    if ends < begins:
        form.wrong(name, f"it ends at {ends}, before it begins at {begins}")
        return None
    length = form.count(name, entry, "iterations") if "iterations" in entry else ends - begins + 1
    if length is not None and length != ends - begins + 1:
        form.wrong(name, f"{begins} to {ends} is {ends - begins + 1} iterations, and not {length}", "leave one out")
    return length


def _find_mistyped_type(marks: Mapping[str, str]) -> str:
    """The name of a mark that was to be the type, by the looks of it."""
    if not marks or "type" in marks:
        return ""
    from difflib import get_close_matches

    return next(iter(get_close_matches("type", list(marks), n=1)), "")


def _make_stage(length: int, source: str, marks: Mapping[str, str], first: int, place: int) -> Stage:
    """A stage without a type is called as its file is."""
    others = {name: value for name, value in marks.items() if name != "type"}
    kind = marks.get("type") or source.rpartition("/")[2].partition(".")[0] or source
    return Stage(length, source, kind, first, place, others)


def _format_stage(stage: Stage) -> str:
    marks = {"type": stage.type} | dict(stage.marks)
    for part in (stage.source, *marks, *marks.values()):
        if any(sign in part for sign in ";|"):
            raise SpecError(
                SCHEDULE_NAME, [SettingProblem(f"'{part}' can't be written in the notation: ';' and '|' part it")]
            )
    return f"{stage.length}:{stage.source}" + "".join(f"|{name}={value}" for name, value in marks.items())
