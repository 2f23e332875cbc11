"""A training's own flag line, read into typed settings: `--penalty_gate_*`, `--tail_*`, `--curriculum` and so on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from muster.domain.shell_words import split
from muster.stages.alarms import Watch
from muster.stages.curriculum import Curriculum
from muster.stages.errors import Problem, SpecError, closest
from muster.stages.notation import number_of
from muster.stages.overrides import parse_counts, parse_numbers
from muster.stages.schedule import Schedule
from muster.stages.settings import GateSettings

GATE = "penalty_gate_"
_OURS = (GATE, "tail_", "multi_eval_", "eval_multi_")
# the words of the flags, and the keys of the evaluations that they are about
KEYS = {"p10": "first_death_p10", "early_death": "early_death_100", "step_one": "step_one",
        "step_one_ratio": "step_one_ratio", "min_final": "min_final", "avg_final": "avg_final"}  # fmt: skip
LONGEST = 128 << 10  # characters of a command line; the kernel takes no longer word
HIGHER = ("p10", "min_final", "avg_final")  # is better; of the others, lower


class Evaluations(NamedTuple):
    """Many episodes, every so many iterations."""

    interval: int | None = None
    probe: int | None = None  # episodes of a quick look
    full: int | None = None
    fish: int | None = None
    seed_base: int | None = None


class Tail(NamedTuple):
    replay: int = 1
    force_reset_steps: int | None = None


class Settings(NamedTuple):
    """What a flag line says of stages and gates. `others`: the flags that are about something else, as written."""

    iterations: int | None
    curriculum: Curriculum | None
    schedule: Schedule | None
    gate: GateSettings | None
    watch: Watch | None
    evaluations: Evaluations
    tail: Tail
    others: Mapping[str, str]


def words_of(text: str) -> list[str]:
    """As a shell splits them; a backslash before a line's end goes on with the next one."""
    if len(text) > LONGEST:
        raise SpecError("flags", [Problem(f"it has {len(text)} characters: no command line is as long")])
    try:
        return split(text.replace("\\\r\n", " ").replace("\\\n", " "))
    except ValueError:
        at = _unclosed(text)
        what, hint = ("this quote is not closed", "close it") if at is not None else ("it ends in a backslash", "")
        raise SpecError("flags", [Problem(what, text, len(text) - 1 if at is None else at, hint)]) from None


def _unclosed(text: str) -> int | None:
    """Where the quote begins that is open at the end."""
    opened, skip = None, False
    for at, sign in enumerate(text):
        quote = text[opened] if opened is not None else ""
        if skip:
            skip = False
        elif sign == "\\" and quote != "'":
            skip = True
        elif sign == quote:
            opened = None
        elif sign in "'\"" and not quote:
            opened = at
    return opened


def flags_of(words: Sequence[str]) -> dict[str, str]:
    """`--name value`, `--name=value` and `--switch`. What comes before the first flag is the program."""
    found: dict[str, str] = {}
    name = ""
    for word in words:
        if word.startswith("--") and len(word) > 2:
            name, equals, value = word[2:].partition("=")
            found[name] = value if equals else ""
        elif name:
            found[name] = f"{found[name]} {word}".strip()
    return found


def settings_of(line: str | Sequence[str]) -> Settings:
    """All mistakes at once: SpecError."""
    flags = flags_of(words_of(line) if isinstance(line, str) else line)
    read = _Flags(flags)
    gate = _gate(read)
    found = Settings(
        read.count("total_iterations"),
        read.taken("curriculum", Curriculum.parse),
        read.taken("tail_seed_stage_spec", Schedule.parse),
        gate,
        _watch(read),
        Evaluations(
            read.count("multi_eval_interval"),
            read.count("multi_eval_probe_episodes"),
            read.count("eval_multi_episodes"),
            read.count("eval_multi_fish"),
            read.count("multi_eval_seed_base", 0),
        ),
        Tail(read.count("tail_replay_count") or 1, read.count("tail_force_reset_steps")),
        read.rest(),
    )
    read.done()
    return found


class _Flags:
    """Takes flags one by one; what nobody took is left over."""

    def __init__(self, flags: Mapping[str, str]) -> None:
        self._flags = dict(flags)
        self._asked: list[str] = []
        self.problems: list[Problem] = []

    def taken(self, name: str, make: Callable[[str], Any]) -> Any:
        self._asked.append(name)
        if name not in self._flags:
            return None
        text = self._flags.pop(name)
        if not text:
            self.problems.append(Problem(f"--{name} has no value"))
            return None
        try:
            return make(text)
        except SpecError as error:
            self.problems += [each._replace(what=f"--{name}: {each.what}") for each in error.problems]
        except ValueError as error:
            self.problems.append(Problem(f"--{name}: {error}", text))
        return None

    def count(self, name: str, least: int = 1) -> int | None:
        def make(text: str) -> int:
            number = number_of(text)
            if not isinstance(number, int) or number < least:
                raise ValueError(f"expected a whole number from {least} on, found '{text}'")
            return number

        found: int | None = self.taken(name, make)
        return found

    def number(self, name: str) -> float | None:
        def make(text: str) -> float:
            number = number_of(text)
            if number is None:
                raise ValueError(f"expected a finite number, found '{text}'")
            return number

        found: float | None = self.taken(name, make)
        return found

    def rest(self) -> dict[str, str]:
        """A flag of the gate or of the tail that nobody knows is a mistake; any other one is the script's own."""
        for name in [each for each in self._flags if each.startswith(_OURS)]:
            del self._flags[name]
            ours = [each for each in self._asked if each.startswith(_OURS)]
            self.problems.append(Problem(f"unknown flag --{name}", hint=_near(name, ours)))
        return self._flags

    def done(self) -> None:
        if self.problems:
            raise SpecError("flags", self.problems)


def _near(name: str, known: Sequence[str]) -> str:
    hint = closest(name, known)
    return hint if hint.startswith("did") else ""


def _gate(read: _Flags) -> GateSettings | None:
    median = read.count(f"{GATE}success_median_window")
    failure_window = read.count(f"{GATE}failure_window")
    written: dict[str, Any] = {
        "success": [each for word in KEYS if (each := _criterion(read, "success", word, median))],
        "failure": [each for word in KEYS if (each := _criterion(read, "failure", word, None, failure_window))],
    }
    default = read.count(f"{GATE}failure_tolerance", 0)
    by_stage = read.taken(f"{GATE}failure_tolerance_by_stage", _failures) or {}
    freeze = read.count(f"{GATE}freeze_iterations", 0) or 0
    after_success = read.count(f"{GATE}success_freeze_iterations", 0)
    written |= {
        "required": read.count(f"{GATE}required_successes") or 1,
        "tolerance": ({"default": default} if default is not None else {}) | by_stage,
        "allowance": read.taken(f"{GATE}phase_allowance", _counts),
        "freeze": {"advance": freeze if after_success is None else after_success, "fall_back": freeze},
    }
    if not written["success"] and not written["failure"]:
        return None
    try:
        return GateSettings.of(written)
    except SpecError as error:
        read.problems += error.problems
        return None


def _criterion(
    read: _Flags, side: str, word: str, median: int | None, window: int | None = None
) -> dict[str, Any] | None:
    flag = f"{GATE}{side}_{word}"
    value = read.number(flag)
    window = read.count(f"{flag}_window") or window
    stages: dict[str, Any] = read.taken(f"{flag}_by_stage", parse_numbers) or {}
    windows: dict[str, int] = read.taken(f"{flag}_window_by_stage", _windows) or {}
    if value is None and not stages:
        return None
    bound = _bound(side, word)
    kind = "median" if word == "p10" else "mean"
    size = window or (median if word == "p10" and side == "success" else None)
    found: dict[str, Any] = {"key": KEYS[word]}
    if value is not None:
        found[bound] = value
    if size:
        found["window"] = f"{kind} {size}"
    by_stage: dict[str, dict[str, Any]] = {stage: {bound: limit} for stage, limit in stages.items()}
    for stage, many in windows.items():
        by_stage.setdefault(stage, {})["window"] = f"{kind} {many}"
    return found | ({"by_stage": by_stage} if by_stage else {})


def _bound(side: str, word: str) -> str:
    if side == "success":
        return "min" if word in HIGHER else "max"
    return "below" if word in HIGHER else "above"


def _windows(text: str) -> dict[str, int]:
    return parse_counts(text, "evaluations", 1)


def _failures(text: str) -> dict[str, int]:
    return parse_counts(text, "failures", 0)


def _counts(text: str) -> list[int]:
    found = [number_of(part.strip()) for part in text.split(",")]
    if not all(isinstance(each, int) and each >= 0 for each in found):
        raise ValueError(f"expected whole numbers such as 4,5,6,7, found '{text}'")
    return [int(each) for each in found if each is not None]


def _watch(read: _Flags) -> Watch | None:
    ratio = read.number("tail_stage_warn_ratio")
    patience = read.count("tail_stage_warn_patience")
    if ratio is None:
        return None
    try:
        return Watch(ratio, patience or 1).checked()
    except SpecError as error:
        read.problems += error.problems
        return None
