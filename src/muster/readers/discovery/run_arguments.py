"""What a run's own command or config declares: the last step, and periods such as `log_every: 1000`, which explain a
quiet log.

Whether a period is in seconds or steps the config does not say: they are hints, held against what is seen. Parsing
YAML is slow: read them once per run.
"""

# ruff: noqa: PTH118, PTH122
# Paths are texts here, as in the rest of this room.

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from muster.files.bounded_yaml import load_yaml
from muster.files.safe_open import read_file_start
from muster.model.foreign_run import ActionRepeat, TargetStep
from muster.readers.records.row_steps import finite_number_of
from muster.readers.records.step_counter import EPOCH_NAMES, normalize_key_name

_MOST_FILES, _LARGEST, _MOST_KEYS = 20, 1 << 20, 50
_YAML_BYTES = 64 << 10  # of all files together: its parser does about 100 kB/s; beyond that lines are searched
_MOST_NODES, _DEEPEST = 20_000, 32  # YAML may refer to itself
_PERIOD_WORDS = "(?:every|interval|freq|frequency|period)"
_HINT = re.compile(_PERIOD_WORDS, re.IGNORECASE)
_PERIOD = re.compile(rf".*\w[_-]{_PERIOD_WORDS}", re.IGNORECASE)
_PERIOD_LINE = re.compile(r"""^[ \t]*["']?([\w.-]+)["']?[ \t]*[:=][ \t]*([-+\w.]+),?[ \t]*(?:#.*)?$""", re.MULTILINE)
_PERIOD_WORD = re.compile(r"-{0,2}([A-Za-z_][\w.-]*)(?:=(.*))?", re.DOTALL)

SettingPairs = Iterator[tuple[str, Any]]


def declared_periods(output_folder: str | None, argv: Sequence[str] = ()) -> tuple[tuple[str, float], ...]:
    """Keys that look like periods, nested ones joined by dots, with their values; those of the command first."""
    found: dict[str, float] = {}
    for key, value in _all_setting_pairs(output_folder, argv):
        period = finite_number_of(value)
        if period is not None and period >= 1 and _PERIOD.fullmatch(key):
            found.setdefault(key, period)
        if len(found) == _MOST_KEYS:
            break
    return tuple(found.items())


def _all_setting_pairs(folder: str | None, argv: Sequence[str]) -> SettingPairs:
    yield from _word_pairs_of_command(argv)
    yaml_left = _YAML_BYTES
    for path in _config_files_in_folder(folder) if folder else ():
        text, kind = _config_text(path), os.path.splitext(path)[1].lower()
        if _HINT.search(text) is None:
            continue
        if kind in _YAML_ENDINGS:
            yaml_left -= len(text)
        parse = _SETTINGS_PARSERS[kind] if kind not in _YAML_ENDINGS or yaml_left >= 0 else None
        yield from _pairs_in_text(text, parse)


def _word_pairs_of_command(argv: Sequence[str]) -> SettingPairs:
    """`--log_every 1000`, `--log_every=1000`, `run.log_every=1000`."""
    words = [part for word in argv for part in word.split()]  # a shell's command is one word
    for index, word in enumerate(words):
        match = _PERIOD_WORD.fullmatch(word)
        if match is None:
            continue
        key, value = match.groups()
        if value is None and word.startswith("-") and index + 1 < len(words):
            value = words[index + 1]
        yield key, value


def _config_files_in_folder(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            found = [entry.name for entry in entries if _is_config_file(entry)]
    except OSError:
        return []
    named = sorted(found, key=lambda name: (not name.startswith("config."), name))
    return [os.path.join(folder, name) for name in named[:_MOST_FILES]]


def _is_config_file(entry: os.DirEntry[str]) -> bool:
    try:
        return (
            entry.name.lower().endswith(tuple(_SETTINGS_PARSERS))
            and entry.is_file()
            and entry.stat().st_size < _LARGEST
        )
    except OSError:
        return False


def _config_text(path: str) -> str:
    try:
        return read_file_start(path, _LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""


def _pairs_in_text(text: str, parse: Callable[[str], Any] | None) -> SettingPairs:
    try:
        tree = parse(text) if parse else None
    except Exception:  # half-written, Python's own tags, a parser's own bug: a hint is not worth an error
        tree = None
    return _pairs_in_tree(tree) if isinstance(tree, dict) else iter(_PERIOD_LINE.findall(text))


def _pairs_in_tree(tree: Any) -> SettingPairs:
    waiting: list[tuple[str, Any, int]] = [("", tree, 0)]
    for _ in range(_MOST_NODES):
        if not waiting:
            return
        name, value, depth = waiting.pop()
        if not isinstance(value, dict):
            yield name, value
        elif depth < _DEEPEST:
            below = [(f"{name}.{key}" if name else str(key), each, depth + 1) for key, each in value.items()]
            waiting += reversed(below)


_YAML_ENDINGS = (".yaml", ".yml")
_SETTINGS_PARSERS: dict[str, Callable[[str], Any]] = {
    ".yaml": load_yaml,
    ".yml": load_yaml,
    ".json": json.loads,
    ".toml": tomllib.loads,
}

_STEP_TARGETS = (
    "totalsteps",
    "maxsteps",
    "numtrainsteps",
    "trainsteps",
    "numsteps",
    "steps",
    "totaltimesteps",
    "numtimesteps",
    "timesteps",
    "totalenvsteps",
    "maxiters",
    "maxiterations",
    "numiterations",
    "iterations",
    "numiters",
    "niters",
    "totalupdates",
    "numupdates",
    "maxtimesteps",
    "nsteps",
)
_EPOCH_TARGETS = ("numtrainepochs", "numepochs", "maxepochs", "epochs", "nepochs", "totalepochs")
# of something else than the whole run
_OTHER_COUNTS = re.compile(
    r"eval|val|test|warm|log|save|decay|lr|sched|accum|env_?steps|rollout|horizon|imag|every|freq|per|update_steps"
)
# what tells runs of one trainer apart; other words of a command may be changed before they come into a config
_RUN_IDENTITY_KEYS = frozenset(
    {"seed", "method", "task", "expname", "experimentname", "runname", "algo", "variant", "envid"}
)
_REPEAT = re.compile(r"env\.[\w-]+\.(?:action_?)?repeat")
_CONFIGS = (
    "config.yaml",
    "config.yml",
    "config.json",
    "args.json",
    "params.json",
    "train_config.json",
    "hparams.yaml",
    ".hydra/config.yaml",
    "config.toml",
)
_LARGEST_TARGET_CONFIG = 1 << 20
_CONFIG_LINE = re.compile(r"""^([ \t]*)["']?([\w.-]+)["']?[ \t]*[:=][ \t]*([-+\w.,]*?),?[ \t]*(?:#.*)?$""")
_SETTING_WORD = re.compile(r"--?([A-Za-z_][\w.-]*)(?:=(.*))?|([A-Za-z_][\w.]*)=(.*)", re.DOTALL)


def target_of_run(argv: Sequence[str], folder: str, counts: str) -> TargetStep | None:
    """`counts`: the column that counts, for epochs are not steps. The command goes before the config."""
    epochs = normalize_key_name(counts) in EPOCH_NAMES
    wanted, repeat = (_EPOCH_TARGETS, None) if epochs else (_STEP_TARGETS, action_repeat_of_run(folder, argv))
    given = _best_named_number(_target_pairs_in_command(argv), wanted)
    if given:
        return TargetStep(given[1], f"`{given[0]}` in its command", repeat)
    for name in _CONFIGS:
        found = _best_named_number(_pairs_in_config_file(os.path.join(folder, name)), wanted) if folder else None
        if found:
            return TargetStep(found[1], f"`{found[0]}` in {name}", repeat)
    return None


def action_repeat_of_run(folder: str, argv: Sequence[str] = ()) -> ActionRepeat | None:
    """`env.<suite>.repeat` of the run's own task; None: there is none, it is 1, or which one counts can't be told."""
    sources = [("its command", list(_target_pairs_in_command(argv)))]
    sources += [
        (name, list(_pairs_in_config_file(os.path.join(folder, name)))) for name in (_CONFIGS if folder else ())
    ]
    tasks = [str(value).strip("\"'") for _, pairs in sources for key, value in pairs if key == "task"]
    suite = tasks[0].partition("_")[0] if tasks else ""
    for where, pairs in sources:
        found = {
            key: times
            for key, value in pairs
            if _REPEAT.fullmatch(key) and (times := finite_number_of(value)) is not None
        }
        own = {key: times for key, times in found.items() if key.split(".")[1] == suite} or found
        if own and len(set(own.values())) == 1:
            key, times = next(iter(own.items()))
            return ActionRepeat(times, f"`{key}` in {where}") if times > 1 else None
    return None


def is_config_of_other_run(argv: Sequence[str], folder: str) -> bool:
    """Whether the config in the folder is that of another run than this command: another seed, another method."""
    given = {
        normalize_key_name(key): _comparable_setting(value)
        for key, value in _target_pairs_in_command(argv)
        if "." not in key and value is not None
    }
    asked = {name: value for name, value in given.items() if name in _RUN_IDENTITY_KEYS}
    for name in _CONFIGS if asked else ():
        kept = {
            normalize_key_name(key): _comparable_setting(value)
            for key, value in _pairs_in_config_file(os.path.join(folder, name))
            if "." not in key
        }
        if any(name in kept and kept[name] != value for name, value in asked.items()):
            return True
    return False


def _comparable_setting(value: Any) -> Any:
    """3, "3" and 3.0 are one seed."""
    found = finite_number_of(value)
    return str(value).strip("\"'") if found is None else found


def _best_named_number(pairs: Iterator[tuple[str, Any]], wanted: Sequence[str]) -> tuple[str, float] | None:
    """The best name that is nearest to the top."""
    found = []
    for key, value in pairs:
        step, plain = finite_number_of(value), normalize_key_name(key)
        if (
            plain in wanted
            and step is not None
            and step >= 1
            and not _OTHER_COUNTS.search(key.lower().rpartition(".")[0])
        ):
            found.append((key.count("."), wanted.index(plain), key, step))
    return min(found)[2:] if found else None


def _target_pairs_in_command(argv: Sequence[str]) -> Iterator[tuple[str, Any]]:
    for index, word in enumerate(argv):
        match = _SETTING_WORD.fullmatch(word)
        if match is None:
            continue
        key, value = match[1] or match[3], match[2] if match[1] else match[4]
        yield key, value if value is not None else (argv[index + 1] if index + 1 < len(argv) else None)


def _pairs_in_config_file(path: str) -> Iterator[tuple[str, Any]]:
    try:
        text = read_file_start(path, _LARGEST_TARGET_CONFIG).decode("utf-8", "replace")
    except OSError:
        return
    if path.endswith(".json"):
        try:
            yield from _config_tree_leaves(json.loads(text))
        except (ValueError, RecursionError):
            return
    else:
        yield from _pairs_in_config_lines(text)


def _config_tree_leaves(tree: Any, before: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    if isinstance(tree, dict) and depth < 16:
        for key, value in tree.items():
            yield from _config_tree_leaves(value, f"{before}.{key}" if before else str(key), depth + 1)
    elif before:
        yield before, tree


def _pairs_in_config_lines(text: str) -> Iterator[tuple[str, Any]]:
    """YAML and TOML as far as lines and their depth tell: a whole parser takes seconds for a large config."""
    above: list[tuple[int, str]] = []
    for line in text.splitlines():
        match = _CONFIG_LINE.match(line)
        if match is None:
            continue
        depth, key, value = len(match[1]), match[2], match[3]
        while above and above[-1][0] >= depth:
            above.pop()
        name = ".".join([*(each for _, each in above), key])
        if value:
            yield name, value
        else:
            above.append((depth, key))
