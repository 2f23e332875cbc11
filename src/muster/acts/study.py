"""Optuna: a study of what was tried, made anew each time, and what its sampler would try next.

The decisions are the truth: a study that lived on beside them could differ from them after a kill. The same trials
and the same seed give the same answers. The package is imported only where a search is carried out.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from muster.domain.errors import UsageError
from muster.rounds.space import Knob, Point, Search

STARTUP = 5  # scores before a sampler that learns takes over: loops are short, and 10 would be a whole one
NEEDED = {"tpe": ("optuna",), "gp": ("optuna", "torch", "scipy"), "random": ("optuna",)}
INSTALL = {"optuna": "pip install 'optuna>=4.2,<6'", "torch": "pip install torch", "scipy": "pip install scipy"}


@dataclass(frozen=True, slots=True)
class Trial:
    point: Point
    value: float | None  # None: it has failed
    running: bool = False
    pruned_at: int | None = None  # the step that it had reached
    told: Mapping[str, Any] = field(default_factory=dict)  # what people want to read beside it


def missing(sampler: str) -> tuple[str, str]:
    """The first package that a sampler lacks and how to install it. Nothing is imported."""
    lacks = next((name for name in NEEDED[sampler] if importlib.util.find_spec(name) is None), "")
    return lacks, INSTALL.get(lacks, "")


def asked(search: Search, knobs: Sequence[Knob], trials: Sequence[Trial], better: str, seed: int) -> Iterator[Point]:
    """Points without end, as the sampler gives them; the ones before count as running."""
    optuna = _optuna(search.sampler)
    space = {knob.path: _distribution(optuna, knob) for knob in knobs}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about what is experimental in it
        study = optuna.create_study(direction=_direction(better), sampler=_sampler(optuna, search.sampler, seed))
        _tell(optuna, study, space, [each for each in trials if not each.running])
    while True:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            drawn = study.ask(space).params
        yield {knob.path: knob.tidy(drawn[knob.path]) for knob in knobs}


def journal(studies: Mapping[str, tuple[Sequence[Knob], Sequence[Trial]]], better: str, sampler: str) -> bytes:
    """The studies as a journal file of Optuna's, for optuna-dashboard and for optuna.load_study."""
    optuna = _optuna(sampler)
    kept = _kept_backend(optuna)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        storage = optuna.storages.JournalStorage(kept)
        for name, (knobs, trials) in studies.items():
            study = optuna.create_study(study_name=name, direction=_direction(better), storage=storage)
            _tell(optuna, study, {knob.path: _distribution(optuna, knob) for knob in knobs}, trials)
    return "".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in kept.lines).encode()


def seed_of(*parts: object) -> int:
    """32 bits that the parts alone decide."""
    text = json.dumps([str(part) for part in parts])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def _optuna(sampler: str) -> Any:
    lacks, how = missing(sampler)
    if lacks:
        raise UsageError(f"loop.search needs the package {lacks}, which is not installed", hint=how)
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def _direction(better: str) -> str:
    return "maximize" if better == "higher" else "minimize"


def _sampler(optuna: Any, name: str, seed: int) -> Any:
    if name == "tpe":
        return optuna.samplers.TPESampler(
            seed=seed, n_startup_trials=STARTUP, multivariate=False, constant_liar=True  # a round is asked for at once
        )  # fmt: skip
    if name == "gp":
        return optuna.samplers.GPSampler(seed=seed, n_startup_trials=STARTUP)
    return optuna.samplers.RandomSampler(seed=seed)


def _distribution(optuna: Any, knob: Knob) -> Any:
    of, kinds = knob.dimension, optuna.distributions
    if of.values:
        return kinds.CategoricalDistribution(of.values)
    if knob.whole:
        return kinds.IntDistribution(of.low, of.high, log=of.log, step=of.step or 1)
    return kinds.FloatDistribution(float(of.low), float(of.high), log=of.log, step=of.step)


def _tell(optuna: Any, study: Any, space: Mapping[str, Any], trials: Sequence[Trial]) -> None:
    states = optuna.trial.TrialState
    for each in trials:
        state = states.RUNNING if each.running else states.FAIL if each.value is None else states.COMPLETE
        said: dict[str, Any] = {"value": each.value}
        if each.pruned_at is not None and each.value is not None:  # samplers trust a value less that was cut short
            state, said = states.PRUNED, {"value": each.value, "intermediate_values": {each.pruned_at: each.value}}
        study.add_trial(
            optuna.trial.create_trial(
                state=state, params=each.point, distributions=dict(space), user_attrs=dict(each.told), **said
            )
        )


def _kept_backend(optuna: Any) -> Any:
    """A journal in memory: the file comes into being at once or not at all."""

    class Kept(optuna.storages.journal.BaseJournalBackend):  # type: ignore[misc]
        def __init__(self) -> None:
            self.lines: list[dict[str, Any]] = []

        def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:
            yield from self.lines[log_number_from:]

        def append_logs(self, logs: list[dict[str, Any]]) -> None:
            self.lines += logs

    return Kept()
