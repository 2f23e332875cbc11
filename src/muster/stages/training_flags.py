"""A training's own flag line, read into typed settings: `--penalty_gate_*`, `--tail_*`, `--curriculum` and so on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from muster.stages.alarms import Watch
from muster.stages.gate_settings import GateSettings
from muster.stages.notation import (
    SettingProblem,
    SpecError,
    parse_counts_by_stage,
    parse_finite_number,
    parse_numbers_by_stage,
    suggest_closest_name,
)
from muster.stages.schedule import Curriculum, Schedule
from muster.text.shell_words import split

GATE_PREFIX = "penalty_gate_"
_KNOWN_PREFIXES = (GATE_PREFIX, "tail_", "multi_eval_", "eval_multi_")
# the words of the flags, and the keys of the evaluations that they are about
KEYS_OF_FLAGS = {
    "p10": "first_death_p10",
    "early_death": "early_death_100",
    "step_one": "step_one",
    "step_one_ratio": "step_one_ratio",
    "min_final": "min_final",
    "avg_final": "avg_final",
}
LONGEST_FLAG_LINE = 128 << 10  # characters of a command line; the kernel takes no longer word
HIGHER_IS_BETTER = ("p10", "min_final", "avg_final")  # is better; of the others, lower


class EvaluationFlags(NamedTuple):
    """Many episodes, every so many iterations."""

    interval: int | None = None
    probe: int | None = None  # episodes of a quick look
    full: int | None = None
    fish: int | None = None
    seed_base: int | None = None


class TailFlags(NamedTuple):
    replay: int = 1
    force_reset_steps: int | None = None


class TrainingFlags(NamedTuple):
    """What a flag line says of stages and gates. `others`: the flags that are about something else, as written."""

    iterations: int | None
    curriculum: Curriculum | None
    schedule: Schedule | None
    gate: GateSettings | None
    watch: Watch | None
    evaluations: EvaluationFlags
    tail: TailFlags
    others: Mapping[str, str]


def split_command_words(text: str) -> list[str]:
    """As a shell splits them; a backslash before a line's end goes on with the next one."""
    if len(text) > LONGEST_FLAG_LINE:
        raise SpecError("flags", [SettingProblem(f"it has {len(text)} characters: no command line is as long")])
    try:
        return split(text.replace("\\\r\n", " ").replace("\\\n", " "))
    except ValueError:
        at = _find_unclosed_quote(text)
        what, hint = ("this quote is not closed", "close it") if at is not None else ("it ends in a backslash", "")
        raise SpecError("flags", [SettingProblem(what, text, len(text) - 1 if at is None else at, hint)]) from None


def _find_unclosed_quote(text: str) -> int | None:
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


def parse_flag_values(words: Sequence[str]) -> dict[str, str]:
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


def parse_training_flags(line: str | Sequence[str]) -> TrainingFlags:
    """All mistakes at once: SpecError."""
    flags = parse_flag_values(split_command_words(line) if isinstance(line, str) else line)
    read = _FlagReader(flags)
    gate = _read_gate_flags(read)
    found = TrainingFlags(
        read.count("total_iterations"),
        read.taken("curriculum", Curriculum.parse),
        read.taken("tail_seed_stage_spec", Schedule.parse),
        gate,
        _read_watch_flags(read),
        EvaluationFlags(
            read.count("multi_eval_interval"),
            read.count("multi_eval_probe_episodes"),
            read.count("eval_multi_episodes"),
            read.count("eval_multi_fish"),
            read.count("multi_eval_seed_base", 0),
        ),
        TailFlags(read.count("tail_replay_count") or 1, read.count("tail_force_reset_steps")),
        read.rest(),
    )
    read.done()
    return found


class _FlagReader:
    """Takes flags one by one; what nobody took is left over."""

    def __init__(self, flags: Mapping[str, str]) -> None:
        self._flags = dict(flags)
        self._asked: list[str] = []
        self.problems: list[SettingProblem] = []

    def taken(self, name: str, make: Callable[[str], Any]) -> Any:
        self._asked.append(name)
        if name not in self._flags:
            return None
        text = self._flags.pop(name)
        if not text:
            self.problems.append(SettingProblem(f"--{name} has no value"))
            return None
        try:
            return make(text)
        except SpecError as error:
            self.problems += [each._replace(what=f"--{name}: {each.what}") for each in error.problems]
        except ValueError as error:
            self.problems.append(SettingProblem(f"--{name}: {error}", text))
        return None

    def count(self, name: str, least: int = 1) -> int | None:
        def make(text: str) -> int:
            number = parse_finite_number(text)
            if not isinstance(number, int) or number < least:
                raise ValueError(f"expected a whole number from {least} on, found '{text}'")
            return number

        found: int | None = self.taken(name, make)
        return found

    def number(self, name: str) -> float | None:
        def make(text: str) -> float:
            number = parse_finite_number(text)
            if number is None:
                raise ValueError(f"expected a finite number, found '{text}'")
            return number

        found: float | None = self.taken(name, make)
        return found

    def rest(self) -> dict[str, str]:
        """A flag of the gate or of the tail that nobody knows is a mistake; any other one is the script's own."""
        for name in [each for each in self._flags if each.startswith(_KNOWN_PREFIXES)]:
            del self._flags[name]
            ours = [each for each in self._asked if each.startswith(_KNOWN_PREFIXES)]
            self.problems.append(SettingProblem(f"unknown flag --{name}", hint=_hint_closest_flag(name, ours)))
        return self._flags

    def done(self) -> None:
        if self.problems:
            raise SpecError("flags", self.problems)


def _hint_closest_flag(name: str, known: Sequence[str]) -> str:
    hint = suggest_closest_name(name, known)
    return hint if hint.startswith("did") else ""


def _read_gate_flags(read: _FlagReader) -> GateSettings | None:
    median = read.count(f"{GATE_PREFIX}success_median_window")
    failure_window = read.count(f"{GATE_PREFIX}failure_window")
    written: dict[str, Any] = {
        "success": [each for word in KEYS_OF_FLAGS if (each := _read_criterion_flags(read, "success", word, median))],
        "failure": [
            each
            for word in KEYS_OF_FLAGS
            if (each := _read_criterion_flags(read, "failure", word, None, failure_window))
        ],
    }
    default = read.count(f"{GATE_PREFIX}failure_tolerance", 0)
    by_stage = read.taken(f"{GATE_PREFIX}failure_tolerance_by_stage", _parse_failure_counts) or {}
    freeze = read.count(f"{GATE_PREFIX}freeze_iterations", 0) or 0
    after_success = read.count(f"{GATE_PREFIX}success_freeze_iterations", 0)
    written |= {
        "required": read.count(f"{GATE_PREFIX}required_successes") or 1,
        "tolerance": ({"default": default} if default is not None else {}) | by_stage,
        "allowance": read.taken(f"{GATE_PREFIX}phase_allowance", _parse_phase_allowance),
        "freeze": {"advance": freeze if after_success is None else after_success, "fall_back": freeze},
    }
    if not written["success"] and not written["failure"]:
        return None
    try:
        return GateSettings.of(written)
    except SpecError as error:
        read.problems += error.problems
        return None


def _read_criterion_flags(
    read: _FlagReader, side: str, word: str, median: int | None, window: int | None = None
) -> dict[str, Any] | None:
    flag = f"{GATE_PREFIX}{side}_{word}"
    value = read.number(flag)
    window = read.count(f"{flag}_window") or window
    stages: dict[str, Any] = read.taken(f"{flag}_by_stage", parse_numbers_by_stage) or {}
    windows: dict[str, int] = read.taken(f"{flag}_window_by_stage", _parse_window_sizes) or {}
    if value is None and not stages:
        return None
    bound = _bound_of_flag(side, word)
    kind = "median" if word == "p10" else "mean"
    size = window or (median if word == "p10" and side == "success" else None)
    found: dict[str, Any] = {"key": KEYS_OF_FLAGS[word]}
    if value is not None:
        found[bound] = value
    if size:
        found["window"] = f"{kind} {size}"
    by_stage: dict[str, dict[str, Any]] = {stage: {bound: limit} for stage, limit in stages.items()}
    for stage, many in windows.items():
        by_stage.setdefault(stage, {})["window"] = f"{kind} {many}"
    return found | ({"by_stage": by_stage} if by_stage else {})


def _bound_of_flag(side: str, word: str) -> str:
    if side == "success":
        return "min" if word in HIGHER_IS_BETTER else "max"
    return "below" if word in HIGHER_IS_BETTER else "above"


def _parse_window_sizes(text: str) -> dict[str, int]:
    return parse_counts_by_stage(text, "evaluations", 1)


def _parse_failure_counts(text: str) -> dict[str, int]:
    return parse_counts_by_stage(text, "failures", 0)


def _parse_phase_allowance(text: str) -> list[int]:
    found = [parse_finite_number(part.strip()) for part in text.split(",")]
    if not all(isinstance(each, int) and each >= 0 for each in found):
        raise ValueError(f"expected whole numbers such as 4,5,6,7, found '{text}'")
    return [int(each) for each in found if each is not None]


def _read_watch_flags(read: _FlagReader) -> Watch | None:
    ratio = read.number("tail_stage_warn_ratio")
    patience = read.count("tail_stage_warn_patience")
    if ratio is None:
        return None
    try:
        return Watch(ratio, patience or 1).checked()
    except SpecError as error:
        read.problems += error.problems
        return None
