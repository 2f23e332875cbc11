"""The last step that a run is to reach, as its command or its own config names it."""

# Paths are texts here, as in the rest of this room.
# ruff: noqa: PTH118

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from muster.domain.look_facts import Repeat, Target
from muster.observe.find_columns import EPOCHS, plain_name
from muster.observe.steps import number
from muster.ports.regular_files import read_start

_STEPS = (
    "totalsteps", "maxsteps", "numtrainsteps", "trainsteps", "numsteps", "steps", "totaltimesteps", "numtimesteps",
    "timesteps", "totalenvsteps", "maxiters", "maxiterations", "numiterations", "iterations", "numiters", "niters",
    "totalupdates", "numupdates", "maxtimesteps", "nsteps",
)  # fmt: skip
_EPOCHS = ("numtrainepochs", "numepochs", "maxepochs", "epochs", "nepochs", "totalepochs")
# of something else than the whole run
_OTHERS = re.compile(
    r"eval|val|test|warm|log|save|decay|lr|sched|accum|env_?steps|rollout|horizon|imag|every|freq|per|update_steps"
)
# what tells runs of one trainer apart; other words of a command may be changed before they come into a config
_WHO = frozenset({"seed", "method", "task", "expname", "experimentname", "runname", "algo", "variant", "envid"})
_REPEAT = re.compile(r"env\.[\w-]+\.(?:action_?)?repeat")
_CONFIGS = (
    "config.yaml", "config.yml", "config.json", "args.json", "params.json", "train_config.json", "hparams.yaml",
    ".hydra/config.yaml", "config.toml",
)  # fmt: skip
_LARGEST = 1 << 20
_LINE = re.compile(r"""^([ \t]*)["']?([\w.-]+)["']?[ \t]*[:=][ \t]*([-+\w.,]*?),?[ \t]*(?:#.*)?$""")
_WORD = re.compile(r"--?([A-Za-z_][\w.-]*)(?:=(.*))?|([A-Za-z_][\w.]*)=(.*)", re.DOTALL)


def target_of(argv: Sequence[str], folder: str, counts: str) -> Target | None:
    """`counts`: the column that counts, for epochs are not steps. The command goes before the config."""
    epochs = plain_name(counts) in EPOCHS
    wanted, repeat = (_EPOCHS, None) if epochs else (_STEPS, repeat_of(folder, argv))
    given = _best(_in_words(argv), wanted)
    if given:
        return Target(given[1], f"`{given[0]}` in its command", repeat)
    for name in _CONFIGS:
        found = _best(_in_file(os.path.join(folder, name)), wanted) if folder else None
        if found:
            return Target(found[1], f"`{found[0]}` in {name}", repeat)
    return None


def repeat_of(folder: str, argv: Sequence[str] = ()) -> Repeat | None:
    """`env.<suite>.repeat` of the run's own task; None: there is none, it is 1, or which one counts can't be told."""
    sources = [("its command", list(_in_words(argv)))]
    sources += [(name, list(_in_file(os.path.join(folder, name)))) for name in (_CONFIGS if folder else ())]
    tasks = [str(value).strip("\"'") for _, pairs in sources for key, value in pairs if key == "task"]
    suite = tasks[0].partition("_")[0] if tasks else ""
    for where, pairs in sources:
        found = {key: times for key, value in pairs if _REPEAT.fullmatch(key) and (times := number(value)) is not None}
        own = {key: times for key, times in found.items() if key.split(".")[1] == suite} or found
        if own and len(set(own.values())) == 1:
            key, times = next(iter(own.items()))
            return Repeat(times, f"`{key}` in {where}") if times > 1 else None
    return None


def other_run(argv: Sequence[str], folder: str) -> bool:
    """Whether the config in the folder is that of another run than this command: another seed, another method."""
    given = {plain_name(key): _same(value) for key, value in _in_words(argv) if "." not in key and value is not None}
    asked = {name: value for name, value in given.items() if name in _WHO}
    for name in _CONFIGS if asked else ():
        kept = {plain_name(key): _same(value) for key, value in _in_file(os.path.join(folder, name)) if "." not in key}
        if any(name in kept and kept[name] != value for name, value in asked.items()):
            return True
    return False


def _same(value: Any) -> Any:
    """3, "3" and 3.0 are one seed."""
    found = number(value)
    return str(value).strip("\"'") if found is None else found


def _best(pairs: Iterator[tuple[str, Any]], wanted: Sequence[str]) -> tuple[str, float] | None:
    """The best name that is nearest to the top."""
    found = []
    for key, value in pairs:
        step, plain = number(value), plain_name(key)
        if plain in wanted and step is not None and step >= 1 and not _OTHERS.search(key.lower().rpartition(".")[0]):
            found.append((key.count("."), wanted.index(plain), key, step))
    return min(found)[2:] if found else None


def _in_words(argv: Sequence[str]) -> Iterator[tuple[str, Any]]:
    for index, word in enumerate(argv):
        match = _WORD.fullmatch(word)
        if match is None:
            continue
        key, value = match[1] or match[3], match[2] if match[1] else match[4]
        yield key, value if value is not None else (argv[index + 1] if index + 1 < len(argv) else None)


def _in_file(path: str) -> Iterator[tuple[str, Any]]:
    try:
        text = read_start(path, _LARGEST).decode("utf-8", "replace")
    except OSError:
        return
    if path.endswith(".json"):
        try:
            yield from _leaves(json.loads(text))
        except (ValueError, RecursionError):
            return
    else:
        yield from _in_lines(text)


def _leaves(tree: Any, before: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    if isinstance(tree, dict) and depth < 16:
        for key, value in tree.items():
            yield from _leaves(value, f"{before}.{key}" if before else str(key), depth + 1)
    elif before:
        yield before, tree


def _in_lines(text: str) -> Iterator[tuple[str, Any]]:
    """YAML and TOML as far as lines and their depth tell: a whole parser takes seconds for a large config."""
    above: list[tuple[int, str]] = []
    for line in text.splitlines():
        match = _LINE.match(line)
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
