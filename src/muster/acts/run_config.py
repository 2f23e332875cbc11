"""What a run's own config file says about the cell it belongs to."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from muster.domain.campaign import Axis, AxisValue
from muster.ports.bounded_json import loads_bounded
from muster.ports.bounded_yaml import load_yaml
from muster.ports.regular_files import read_regular

FILES = (
    "config.yaml", "config.yml", "config.json", "args.json", "params.json", "train_config.json", ".hydra/config.yaml",
    "files/config.yaml",  # W&B's
)  # fmt: skip
# keys that name a variant whatever the axis is called: SafeDreamer's `method`, OmniSafe's `exp_name`
_LABELS = frozenset({"method", "label", "name", "variant", "config", "configs", "config_name", "exp_name", "experiment",
                     "experiment_name", "run_name", "algo"})  # fmt: skip
_LARGEST = 4 << 20
_DEEPEST = 12
_MOST_NODES = 20_000
_MOST_NAMES = 1000  # of configs in a list
_LARGEST_YAML = 512 << 10  # bytes: YAML is read at some 50 kB a second


@dataclass(frozen=True, slots=True)
class Claim:
    """One place in a config file that names a value of an axis."""

    value: str  # the value's name; for a number that is not declared, the number
    where: str  # "config.yaml: seed"


def configs_in(run: Path) -> list[tuple[str, Mapping[str, Any]]]:
    """The config files that can be read; a half-written one says nothing."""
    read = ((name, load(run / name)) for name in FILES)
    return [(name, config) for name, config in read if config is not None]


def claims(configs: Sequence[tuple[str, Mapping[str, Any]]], axis: Axis) -> list[Claim]:
    return [Claim(value, f"{name}: {where}") for name, config in configs for value, where in _claims_of(config, axis)]


def _claims_of(config: Mapping[str, Any], axis: Axis) -> list[tuple[str, str]]:
    """Its own key at the top; else the same key deeper down, where all agree. Labels in any case."""
    labels = [(found, key) for key, value in _labels(config) if key != axis.name and (found := _declared(value, axis))]
    top = _of_key(config.get(axis.name), axis)
    if top is not None:
        return [(top, axis.name), *labels]
    deep = [(found, path) for path, value in leaves(config) if (found := _of_leaf(path, value, axis))]
    agreed = deep[:1] if len({value for value, _ in deep}) == 1 else []  # env.seed 0 and train.seed 3 say nothing
    return [*agreed, *labels]


def _of_key(value: Any, axis: Axis) -> str | None:
    """A number that is not declared is a claim too: the run belongs to no cell of this campaign."""
    value = _unwrap(value)
    found = _declared(value, axis)
    if found is None and _is_number(value) and all(_is_number(each.value) for each in axis.values):
        return str(value)
    return found


def _of_leaf(path: str, value: Any, axis: Axis) -> str | None:
    parts = path.split(".")
    return _declared(value, axis) if axis.name in (parts[-1], ".".join(parts[-2:])) else None


def _declared(value: Any, axis: Axis) -> str | None:
    """The name of the axis value that this is; of a list of config names the last one decides."""
    if isinstance(value, list):
        plain = [each for each in value[:_MOST_NAMES] if not isinstance(each, list)]
        named = [found for each in plain if (found := _declared(each, axis))]
        return named[-1] if named else None
    return next((each.name for each in axis.values if same(value, each)), None)


def same(value: Any, declared: AxisValue) -> bool:
    if isinstance(value, bool) or isinstance(declared.value, bool):
        return value is declared.value or str(value) == declared.name
    return bool(value == declared.value) or (isinstance(value, str | int | float) and str(value) == declared.name)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _unwrap(value: Any) -> Any:
    """W&B writes `seed: {value: 3, desc: null}`."""
    return value["value"] if isinstance(value, Mapping) and "value" in value else value


def _labels(config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in config.items():
        plain = _unwrap(value)
        if key in _LABELS and isinstance(plain, str | list):
            yield key, plain


def leaves(config: Mapping[str, Any], before: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Nested keys joined by dots, with their values. YAML may hold one part many times over: not all of it is told."""
    yield from islice(_leaves(config, before, depth, [_MOST_NODES]), _MOST_NODES)


def _leaves(config: Mapping[str, Any], before: str, depth: int, left: list[int]) -> Iterator[tuple[str, Any]]:
    for key, value in config.items():
        left[0] -= 1
        if left[0] < 0:
            return
        plain = _unwrap(value)
        if isinstance(plain, Mapping) and depth < _DEEPEST:
            yield from _leaves(plain, f"{before}{key}.", depth + 1, left)
        elif not isinstance(plain, Mapping):
            yield f"{before}{key}", plain


def load(path: Path) -> Mapping[str, Any] | None:
    """A config file as a mapping; None: it is none, too large or broken."""
    try:
        parse = _PARSERS.get(path.suffix, _yaml)
        text = read_regular(path, _LARGEST_YAML if parse is _yaml else _LARGEST).decode("utf-8", "replace")
        value = parse(text)
    except (OSError, ValueError, RecursionError, MemoryError):
        return None
    return value if isinstance(value, Mapping) else None


def _yaml(text: str) -> Any:
    try:
        return load_yaml(text)
    except Exception:  # ruamel.yaml lets more through than its own errors; a broken config says nothing
        return None


def _json(text: str) -> Any:
    return loads_bounded(text.encode())


_PARSERS: dict[str, Callable[[str], Any]] = {".json": _json, ".toml": tomllib.loads}
