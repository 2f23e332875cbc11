"""Whether a loop's proposer can do its work, before anything is spent: rules, space, function, packages."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from muster.acts.bases import base_text
from muster.acts.loop_settings import LoopSettings, loop_settings
from muster.domain.errors import Mistake
from muster.domain.variants import Variant
from muster.domain.wording import counted
from muster.rounds.applying import kind as kind_of_value
from muster.rounds.config import Config, kind_of
from muster.rounds.edits import parse_edit
from muster.rounds.rules import Rule, check_rules
from muster.rounds.space import Dimension, SpaceMisfit, checked, point_of, space_of
from muster.rounds.texts import Change, carry_out, read_config, same, shown

NAMED = 4
Configs = Mapping[str, Config]  # of the bases, by name


def proposer_mistakes(loop: Mapping[str, Any] | None, bases: Sequence[Variant], root: Path) -> Iterator[Mistake]:
    if not loop:
        return
    if loop.get("search"):
        yield from _search(loop["search"], bases)
    if loop.get("propose"):
        from muster.acts.entry_point import EntryPoint

        what, hint = EntryPoint(loop["propose"], root).mistake()
        if what:
            yield Mistake(what, path="loop.propose", hint=hint)
    settings = loop_settings(loop)
    if settings.rules or settings.default:
        yield from _rules(loop, settings, bases)


# -- a search


def _search(search: Mapping[str, Any], bases: Sequence[Variant]) -> Iterator[Mistake]:
    from muster.acts.study import missing

    lacks, how = missing(search.get("sampler", "tpe"))
    if lacks:
        place = "loop.search.sampler" if lacks != "optuna" and "sampler" in search else "loop.search"
        yield Mistake(f"loop.search needs the package {lacks}, which is not installed", path=place, hint=how)
    space = space_of(search["space"])
    told: set[tuple[str, str]] = set()
    for base in bases:
        for each in _misfits(space, base):
            if (each.path, each.message) not in told:
                told.add((each.path, each.message))
                yield each


def _misfits(space: Sequence[Dimension], base: Variant) -> Iterator[Mistake]:
    text, kind = base_text(Path(base.config)), kind_of(base.config)
    tree = read_config(text, kind).tree
    try:
        knobs = checked(space, text, kind, tree)
    except SpaceMisfit as misfit:
        for path, what in misfit.mistakes.items():
            said, _, near = what.partition("; ")
            hint = near or "give it values that fit there, or another path"
            yield Mistake(f"{base.name}: {said}", path=f"loop.search.space.{path}", hint=hint)
        return
    _, outside = point_of(knobs, tree)
    if outside:
        path = outside.partition(" is ")[0]
        what, hint = f"{base.name}: {outside}", "the search does not learn from its score; widen the space?"
        yield Mistake(what, path=f"loop.search.space.{path}", hint=hint, level="warning")


# -- rules


@dataclass(frozen=True, slots=True)
class _Trial:
    """Edits of a rule or of the default, tried on the values of each base."""

    place: str  # in the campaign file; "": of the ready set
    edits: tuple[str, ...]
    wrong: Mapping[int, Mapping[str, str]]  # number of the edit -> base -> why it can't be carried out
    stays: str  # what it leaves as it is, where it changes nothing in any base
    reshapes: bool  # it makes keys or kinds that no base has: a later config may take what no base takes


def _rules(loop: Mapping[str, Any], settings: LoopSettings, bases: Sequence[Variant]) -> Iterator[Mistake]:
    own = len(loop.get("rules") or ())
    yield from _names(settings.rules, own, loop.get("use") or "")
    configs = {each.name: read_config(base_text(Path(each.config)), kind_of(each.config)) for each in bases}
    if not configs:
        return
    written = {f"loop.rules.{at}": rule.edit for at, rule in enumerate(settings.rules[:own])}
    ready = [rule.edit for rule in settings.rules[own:]]
    if settings.default and loop.get("default"):
        written["loop.default"] = settings.default.edit
    elif settings.default:
        ready.append(settings.default.edit)
    trials = [_trial(place, edits, configs) for place, edits in written.items()]
    of_ready = [_trial("", edits, configs) for edits in ready]
    sure = not any(each.reshapes for each in (*trials, *of_ready))
    for each in trials:
        yield from _refused(each, configs, sure=sure)
        yield from _idle(each)
    yield from _lacking(loop.get("use") or "", of_ready, configs)


def _names(rules: Sequence[Rule], own: int, use: str) -> Iterator[Mistake]:
    for each in check_rules(rules):
        at = each.at or 0
        if at < own:
            what, _, hint = each.message.partition("; ")
            item = "" if each.item is None else f".{each.item}"
            yield Mistake(what, path=f"loop.rules.{at}.{each.field}{item}", hint=hint)
            continue
        taken = [number for number, rule in enumerate(rules[:own]) if rule.id == rules[at].id]
        for number in taken:
            what = f"a rule of {use} is called {rules[at].name}, too"
            yield Mistake(what, path=f"loop.rules.{number}.name", hint="give it another name")


def _trial(place: str, edits: tuple[str, ...], configs: Configs) -> _Trial:
    wrong: dict[int, dict[str, str]] = {}
    every: list[Change] = []
    moved = False
    for name, config in configs.items():
        made = replace(config, tree=copy.deepcopy(config.tree), notes=dict(config.notes))
        changes, mistakes = carry_out(made, edits)
        every += changes
        moved = moved or not same(config.tree, made.tree)
        for at, why in mistakes.items():
            wrong.setdefault(at, {})[name] = why
    stays = {f"{each.path} stays {shown(each.new)}{f' ({each.note})' if each.note else ''}": None for each in every}
    return _Trial(place, edits, wrong, "" if moved else ", ".join(list(stays)[:NAMED]), any(map(_reshapes, every)))


def _reshapes(change: Change) -> bool:
    return kind_of_value(change.old) != kind_of_value(change.new) or isinstance(change.new, dict | list)


def _refused(trial: _Trial, configs: Configs, *, sure: bool) -> Iterator[Mistake]:
    for at, bases in trial.wrong.items():
        said, _, hint = next(iter(bases.values())).partition("; ")
        everywhere = len(bases) == len(configs)
        if len(configs) == 1:
            what = f"{next(iter(bases))}: {said}"
        else:
            what = f"{said} (in {'every base' if everywhere else _some(bases, configs)})"
        level = "error" if everywhere and sure else "warning"
        in_vain = "" if level == "error" else "where that is so, it proposes nothing"
        hint = "; ".join(filter(None, [hint, in_vain])) or "name a path and a value that fit the config"
        yield Mistake(what, path=f"{trial.place}.edit.{at}", hint=hint, level=level)


def _idle(trial: _Trial) -> Iterator[Mistake]:
    """A rule may wait for what another one changes, but not one that never changes anything."""
    if trial.wrong or not trial.stays:
        return
    if trial.place == "loop.default" or all(map(_neutral, trial.edits)):
        what = f"it changes nothing: {trial.stays}"
        hint = "what it proposes is the same config, which is not run again; change an edit, or leave it out"
        yield Mistake(what, path=f"{trial.place}.edit", hint=hint, level="warning")


def _neutral(written: str) -> bool:
    edit = parse_edit(written)
    return edit.least is edit.most is None and (edit.verb, edit.value) in (("mul", 1), ("add", 0))


def _lacking(use: str, trials: Sequence[_Trial], configs: Configs) -> Iterator[Mistake]:
    """What a ready set edits and the bases don't have, in one warning for those that lack the same."""
    paths: dict[str, tuple[str, ...]] = {}
    for trial in trials:
        for at, bases in trial.wrong.items():
            paths[parse_edit(trial.edits[at]).path.text] = tuple(bases)
    for lacking in dict.fromkeys(paths.values()):
        lacks = [path for path, names in paths.items() if names == lacking]
        where = "in any base" if len(lacking) == len(configs) else f"in {_some(lacking, configs)}"
        if len(configs) == 1:
            where = f"in {lacking[0]}"
        what = f"{use} edits {counted(len(lacks), 'path')} that can't be edited {where}: {', '.join(lacks)}"
        hint = "those of its rules would fire in vain; add them to the config, or write rules of your own"
        yield Mistake(what, path="loop.use", hint=hint, level="warning")


def _some(bases: Sequence[str] | Mapping[str, str], configs: Configs) -> str:
    named = ", ".join(list(bases)[:NAMED]) + (", ..." if len(bases) > NAMED else "")
    return f"{named}, {len(bases)} of {len(configs)} bases"
