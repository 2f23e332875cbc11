"""A run as the journal describes it: types for what it left behind, and its command, laid out and compared with that
of the last version. Values only.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from muster.text.shell_words import split

ITERATION_KEYS = ("iter", "iteration", "step", "epoch", "update")
STAGE_KEYS = ("stage", "stage_type", "phase_name")


@dataclass(frozen=True, slots=True)
class FileProblem:
    """Something about a file that a reader must know; `key` is one of the journal's words."""

    key: str
    parts: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evaluation:
    at: float | None  # its iteration
    stage: str
    values: Mapping[str, float]  # may hold NaN and infinities


@dataclass(frozen=True, slots=True)
class EvaluationRows:
    source: str  # relative to the journal
    rows: Sequence[Evaluation]

    @property
    def keys(self) -> list[str]:
        return list(dict.fromkeys(key for row in self.rows for key in row.values))

    def column(self, key: str, stage: str | None = None) -> list[tuple[float | None, float]]:
        return [(row.at, row.values[key]) for row in self.rows if key in row.values and stage in (None, row.stage)]


@dataclass(frozen=True, slots=True)
class RecordedGateTrace:
    source: str
    name: str
    settings: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class TrainingSeries:
    """Numbers of each iteration, as the script kept them for itself."""

    source: str
    series: Mapping[str, Sequence[float]]
    first: int = 1  # the iteration of the first value


@dataclass(frozen=True, slots=True)
class ArtifactFile:
    path: str  # relative to the journal
    size: int
    sha256: str  # whole; "" where it could not be read
    count: int = 1  # of files, where it is a folder


@dataclass(frozen=True, slots=True)
class RunScript:
    path: str  # as the command names it
    sha256: str = ""
    text: str | None = None
    newer: bool = False  # it was changed after the run had begun


@dataclass(frozen=True, slots=True)
class RunCommand:
    argv: tuple[str, ...]
    source: str  # where it is known from
    cwd: str = ""  # relative to the journal
    script: RunScript | None = None
    commit: str = ""
    dirty: bool = False
    attempt: int = 0
    resumed: bool = False
    out: str = ""  # its own folder: a flag that names it differs in every run


@dataclass(frozen=True, slots=True)
class RunPicture:
    path: str  # relative to the journal
    caption: str = ""


@dataclass(frozen=True, slots=True)
class RecordedRun:
    name: str  # as it stands in the markers: `runs/v41`, `cell:train/0`
    title: str
    folder: str  # relative to the journal
    command: RunCommand | None = None
    evaluations: EvaluationRows | None = None
    gates: Sequence[RecordedGateTrace] = ()
    schedule: Mapping[str, Any] | None = None
    schedule_source: str = ""
    summary: Mapping[str, Any] | None = None
    summary_source: str = ""
    training: TrainingSeries | None = None
    files: Sequence[ArtifactFile] = ()
    pictures: Sequence[RunPicture] = ()
    troubles: Sequence[FileProblem] = ()
    state: str = ""  # of its cell, where it is one: DONE, RUNNING, ...

    @property
    def empty(self) -> bool:
        return not (self.evaluations or self.gates or self.schedule or self.summary or self.training or self.files)


COMMAND_WIDTH = 100
LONGEST_COMMAND = 128 << 10  # characters of a command
_FLAG = re.compile(r"--?[A-Za-z][\w.\-/]*")
_SCRIPT = re.compile(r"\S+\.(?:py|sh|R|jl)")


def lay_out_command(argv: Sequence[str]) -> str:
    """As a shell takes it, flags on lines of their own where one line would be too long."""
    words = [_quote_command_word(word) for word in argv]
    lines = [""]
    for word, group in zip(words, _words_that_begin_lines(argv), strict=True):
        fits = len(lines[-1]) + len(word) + 1 <= COMMAND_WIDTH
        if lines[-1] and group and not fits:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip(" ") if lines[-1] else word
    return " \\\n  ".join(lines)


def _quote_command_word(word: str) -> str:
    if any(ord(letter) < 32 for letter in word):
        return "$'" + "".join(_escape_control_letter(letter) for letter in word) + "'"
    return shlex.quote(word)


def _escape_control_letter(letter: str) -> str:
    if letter in "'\\":
        return f"\\{letter}"
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(letter, f"\\x{ord(letter):02x}" if ord(letter) < 32 else letter)


def _words_that_begin_lines(argv: Sequence[str]) -> Iterator[bool]:
    """Whether a word may begin a line: flags may, and words that belong to none."""
    for at, word in enumerate(argv):
        yield at == 0 or bool(_FLAG.match(word)) or not _FLAG.fullmatch(argv[at - 1])


def find_script_in_command(argv: Sequence[str]) -> str | None:
    """The first word that is a script and no flag's value; None: a module is run, or none is named."""
    for at, word in enumerate(argv):
        if word == "-m":
            return None
        if _SCRIPT.fullmatch(word) and not (at and argv[at - 1].startswith("--")):
            return word
    return None


def parse_command_flags(argv: Sequence[str]) -> dict[str, str]:
    """Name -> value, `` where it has none; one that comes again counts with its last value."""
    script = find_script_in_command(argv)
    words = list(argv)[(argv.index(script) + 1 if script else 1) :]
    found: dict[str, str] = {}
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        name, equals, value = word.partition("=")
        if not _FLAG.fullmatch(name):
            continue
        if not equals:
            values = []
            while at < len(words) and not _is_command_flag(words[at]):
                values.append(words[at])
                at += 1
            value = " ".join(values)
        found[name.lstrip("-").replace("-", "_")] = value
    return found


def _is_command_flag(word: str) -> bool:
    """A negative number is a value."""
    return _FLAG.fullmatch(word.partition("=")[0]) is not None


def split_command_text(text: str) -> tuple[str, ...] | None:
    """From a script's line or a code block; None: it can't be split as a shell would split it."""
    joined = re.sub(r"\\\r?\n", " ", text).strip()
    lines = [line for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not lines:
        return None
    try:
        words = split(lines[0][:LONGEST_COMMAND].removeprefix("$ ")) if len(lines[0]) <= LONGEST_COMMAND else []
    except ValueError:
        return None
    return tuple(words) or None


def changed_settings(before: Mapping[str, str], now: Mapping[str, str]) -> list[tuple[str, str | None, str | None]]:
    """Name, value before, value now; None where it was not there. In the order of the command now."""
    names = [*now, *(name for name in before if name not in now)]
    return [(name, before.get(name), now.get(name)) for name in names if before.get(name) != now.get(name)]


def flatten_settings(settings: object, before: str = "") -> dict[str, str]:
    """Nested settings by their dotted names. Items of a list go by their key, where they have one."""
    found: dict[str, str] = {}
    if isinstance(settings, Mapping):
        for name, value in settings.items():
            found |= flatten_settings(value, f"{before}.{name}" if before else str(name))
    elif isinstance(settings, list | tuple):
        for at, value in enumerate(settings):
            name = str(value.get("key", at)) if isinstance(value, Mapping) else str(at)
            there = f"{before}[{name}]"
            while any(each == there or each.startswith(f"{there}.") for each in found):
                there += "'"
            kept = {key: each for key, each in value.items() if key != "key"} if isinstance(value, Mapping) else value
            found |= flatten_settings(kept, there)
    elif settings is not None:
        found[before] = f"{settings:g}" if isinstance(settings, float) else str(settings)
    return found
