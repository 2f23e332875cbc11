"""Mistakes in `gates:` and `loop:` that are found before a run is paid for: gates that can never open, missing tail
seeds, proposers that can't do their work.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from muster.app.campaign.run_configs import read_config_text
from muster.model.campaign import Campaign, DeclaredGate, DeclaredLoop, GateRules, LoopRule, section_as_written
from muster.model.errors import Mistake
from muster.model.variant import Variant
from muster.rules.config_paths import ParsedConfig, config_kind_of_file
from muster.rules.edit_config import (
    ConfigChange,
    apply_edits_to_config,
    is_same_config_value,
    parse_config,
    show_config_value,
)
from muster.rules.edits import describe_value_kind, parse_edit
from muster.rules.loop_settings import add_ready_rules
from muster.rules.proposal_rules import find_rule_mistakes
from muster.rules.search_space import (
    Dimension,
    SearchSettings,
    SpaceMisfit,
    fit_writable_space,
    locate_config_in_space,
    resolve_search_settings,
)
from muster.stages.contradictions import NOTE, TrainingFacts, find_contradictions
from muster.stages.gate_settings import GateSettings
from muster.stages.schedule import Curriculum, Schedule
from muster.stages.traces import EvaluationRow
from muster.text.phrases import join_phrases, phrase

_PLACES_OF_CODES = {
    "curriculum_length": "curriculum",
    "schedule_too_long": "schedule",
    "schedule_too_short": "schedule",
    "runs_out": "schedule",
    "shared_file": "schedule",
    "label": "schedule",
}
PastRows = Callable[[str], Sequence[Sequence[EvaluationRow]]]  # of the gate of this name: what each past run wrote


def find_gate_mistakes(campaign: Campaign, past: PastRows = lambda _: ()) -> Iterator[Mistake]:
    """Warnings and notes: each has a defined outcome when it runs, though hardly the one that was meant."""
    for name, gate in (campaign.gates or {}).items():
        for each in find_contradictions(facts_of_campaign_gate(campaign, gate)._replace(runs=past(name))):
            if each.code == "adds_up":
                continue
            place = _PLACES_OF_CODES.get(each.code)
            path = f"gates.{name}.{place}" if place else f"gates.{name}"
            yield Mistake(each.message, hint=each.hint, path=path, level="note" if each.level == NOTE else "warning")


def find_missing_tail_seeds(campaign: Campaign, root: str) -> Iterator[Mistake]:
    """Tail seeds that a schedule draws from, as the job would find them from its folder."""
    for name, gate in (campaign.gates or {}).items():
        job = next((each for each in campaign.jobs if each.name == gate.job), None)
        if not gate.schedule or job is None:
            continue
        base = Path(job.cwd or root)
        lacking = [
            each
            for each in dict.fromkeys(s.source for s in Schedule.of(gate.schedule).stages)
            if not (base / each).exists()
        ]
        if lacking:
            what = phrase("campaign.tail_seeds_missing", seeds=", ".join(lacking))
            yield Mistake(
                what, path=f"gates.{name}.schedule", hint=phrase("campaign.looked_in", base=base), level="warning"
            )


def facts_of_campaign_gate(campaign: Campaign, gate: DeclaredGate) -> TrainingFacts:
    steps = next((job.steps for job in campaign.jobs if job.name == gate.job), None)
    return facts_of_gate_section(gate, steps)


def facts_of_gate_section(rules: GateRules, steps: int | None = None) -> TrainingFacts:
    """A step of the job is taken for an iteration, unless the gate says how many of those there are."""
    return TrainingFacts(
        GateSettings.of(section_as_written(rules)),
        Schedule.of(rules.schedule) if rules.schedule else None,
        Curriculum.of(rules.curriculum) if rules.curriculum else None,
        rules.iterations or steps,
        rules.every,
    )


MOST_NAMED_BASES = 4
BaseConfigs = Mapping[str, ParsedConfig]  # of the bases, by name


def find_proposer_mistakes(loop: DeclaredLoop | None, bases: Sequence[Variant], root: Path) -> Iterator[Mistake]:
    if not loop:
        return
    if loop.search:
        yield from _check_search(resolve_search_settings(loop.search), bases)
    if loop.propose:
        from muster.app.campaign.proposer_function import ProposerFunction

        what, hint = ProposerFunction(loop.propose, root).mistake()
        if what:
            yield Mistake(what, path="loop.propose", hint=hint)
    settings = add_ready_rules(loop)
    if settings.rules or settings.default:
        yield from _check_rules_on_bases(loop, settings, bases)


# -- a search


def _check_search(search: SearchSettings, bases: Sequence[Variant]) -> Iterator[Mistake]:
    from muster.rules.search_space import find_missing_package

    lacks, how = find_missing_package(search.sampler)
    if lacks:
        place = "loop.search.sampler" if lacks != "optuna" else "loop.search"
        yield Mistake(phrase("campaign.search_needs_package", lacks=lacks), path=place, hint=how)
    told: set[tuple[str, str]] = set()
    for base in bases:
        for each in _find_space_misfits(search.space, base):
            if (each.path, each.message) not in told:
                told.add((each.path, each.message))
                yield each


def _find_space_misfits(space: Sequence[Dimension], base: Variant) -> Iterator[Mistake]:
    text, kind = read_config_text(Path(base.config)), config_kind_of_file(base.config)
    tree = parse_config(text, kind).tree
    try:
        knobs = fit_writable_space(space, text, kind, tree)
    except SpaceMisfit as misfit:
        for path, what in misfit.mistakes.items():
            said, _, near = what.partition("; ")
            hint = near or phrase("campaign.give_fitting_values")
            yield Mistake(join_phrases(": ", (base.name, said)), path=f"loop.search.space.{path}", hint=hint)
        return
    _, outside = locate_config_in_space(knobs, tree)
    if outside:
        path = outside.partition(" is ")[0]
        what, hint = join_phrases(": ", (base.name, outside)), phrase("campaign.search_ignores_score")
        yield Mistake(what, path=f"loop.search.space.{path}", hint=hint, level="warning")


# -- rules


@dataclass(frozen=True, slots=True)
class _EditTrial:
    """Edits of a rule or of the default, tried on the values of each base."""

    place: str  # in the campaign file; "": of the ready set
    edits: tuple[str, ...]
    wrong: Mapping[int, Mapping[str, str]]  # number of the edit -> base -> why it can't be carried out
    stays: str  # what it leaves as it is, where it changes nothing in any base
    reshapes: bool  # it makes keys or kinds that no base has: a later config may take what no base takes


def _check_rules_on_bases(loop: DeclaredLoop, settings: DeclaredLoop, bases: Sequence[Variant]) -> Iterator[Mistake]:
    own = len(loop.rules)
    yield from _check_rule_names(settings.rules, own, loop.use or "")
    configs = {
        each.name: parse_config(read_config_text(Path(each.config)), config_kind_of_file(each.config)) for each in bases
    }
    if not configs:
        return
    written = {f"loop.rules.{at}": rule.edit for at, rule in enumerate(settings.rules[:own])}
    ready = [rule.edit for rule in settings.rules[own:]]
    if settings.default and loop.default:
        written["loop.default"] = settings.default.edit
    elif settings.default:
        ready.append(settings.default.edit)
    trials = [_try_edits_on_bases(place, edits, configs) for place, edits in written.items()]
    of_ready = [_try_edits_on_bases("", edits, configs) for edits in ready]
    sure = not any(each.reshapes for each in (*trials, *of_ready))
    for each in trials:
        yield from _report_refused_edits(each, configs, sure=sure)
        yield from _report_idle_edits(each)
    yield from _report_lacking_paths(loop.use or "", of_ready, configs)


def _check_rule_names(rules: Sequence[LoopRule], own: int, use: str) -> Iterator[Mistake]:
    for each in find_rule_mistakes(rules):
        at = each.at or 0
        if at < own:
            what, _, hint = each.message.partition("; ")
            item = "" if each.item is None else f".{each.item}"
            yield Mistake(what, path=f"loop.rules.{at}.{each.field}{item}", hint=hint)
            continue
        taken = [number for number, rule in enumerate(rules[:own]) if rule.id == rules[at].id]
        for number in taken:
            what = phrase("campaign.rule_name_taken", use=use, name=rules[at].name)
            yield Mistake(what, path=f"loop.rules.{number}.name", hint=phrase("campaign.give_another_name"))


def _try_edits_on_bases(place: str, edits: tuple[str, ...], configs: BaseConfigs) -> _EditTrial:
    wrong: dict[int, dict[str, str]] = {}
    every: list[ConfigChange] = []
    moved = False
    for name, config in configs.items():
        made = replace(config, tree=copy.deepcopy(config.tree), notes=dict(config.notes))
        changes, mistakes = apply_edits_to_config(made, edits)
        every += changes
        moved = moved or not is_same_config_value(config.tree, made.tree)
        for at, why in mistakes.items():
            wrong.setdefault(at, {})[name] = why
    stays = {_describe_stay(each): None for each in every}
    return _EditTrial(
        place,
        edits,
        wrong,
        "" if moved else join_phrases(", ", list(stays)[:MOST_NAMED_BASES]),
        any(map(_changes_value_kind, every)),
    )


def _describe_stay(change: ConfigChange) -> str:
    value = show_config_value(change.new)
    if change.note:
        return phrase("campaign.path_stays_note", path=change.path, value=value, note=change.note)
    return phrase("campaign.path_stays", path=change.path, value=value)


def _changes_value_kind(change: ConfigChange) -> bool:
    return describe_value_kind(change.old) != describe_value_kind(change.new) or isinstance(change.new, dict | list)


def _report_refused_edits(trial: _EditTrial, configs: BaseConfigs, *, sure: bool) -> Iterator[Mistake]:
    for at, bases in trial.wrong.items():
        said, _, hint = next(iter(bases.values())).partition("; ")
        everywhere = len(bases) == len(configs)
        if len(configs) == 1:
            what = join_phrases(": ", (next(iter(bases)), said))
        elif everywhere:
            what = phrase("campaign.in_every_base", reason=said)
        else:
            what = phrase("campaign.in_some_bases", reason=said, bases=_name_some_bases(bases, configs))
        level = "error" if everywhere and sure else "warning"
        in_vain = "" if level == "error" else phrase("campaign.proposes_nothing_there")
        hint = join_phrases("; ", filter(None, [hint, in_vain])) or phrase("campaign.name_fitting_path_value")
        yield Mistake(what, path=f"{trial.place}.edit.{at}", hint=hint, level=level)


def _report_idle_edits(trial: _EditTrial) -> Iterator[Mistake]:
    """A rule may wait for what another one changes, but not one that never changes anything."""
    if trial.wrong or not trial.stays:
        return
    if trial.place == "loop.default" or all(map(_is_neutral_edit, trial.edits)):
        what = phrase("campaign.changes_nothing", stays=trial.stays)
        hint = phrase("campaign.proposes_same_config")
        yield Mistake(what, path=f"{trial.place}.edit", hint=hint, level="warning")


def _is_neutral_edit(written: str) -> bool:
    edit = parse_edit(written)
    return edit.least is edit.most is None and (edit.verb, edit.value) in (("mul", 1), ("add", 0))


def _report_lacking_paths(use: str, trials: Sequence[_EditTrial], configs: BaseConfigs) -> Iterator[Mistake]:
    """What a ready set edits and the bases don't have, in one warning for those that lack the same."""
    paths: dict[str, tuple[str, ...]] = {}
    for trial in trials:
        for at, bases in trial.wrong.items():
            paths[parse_edit(trial.edits[at]).path.text] = tuple(bases)
    for lacking in dict.fromkeys(paths.values()):
        lacks = [path for path, names in paths.items() if names == lacking]
        where = (
            phrase("campaign.in_any_base")
            if len(lacking) == len(configs)
            else phrase("campaign.in_bases", bases=_name_some_bases(lacking, configs))
        )
        if len(configs) == 1:
            where = phrase("campaign.in_bases", bases=lacking[0])
        what = phrase(
            "campaign.paths_cannot_be_edited",
            use=use,
            paths=phrase("count.path", n=len(lacks)),
            where=where,
            names=", ".join(lacks),
        )
        hint = phrase("campaign.rules_would_fire_in_vain")
        yield Mistake(what, path="loop.use", hint=hint, level="warning")


def _name_some_bases(bases: Sequence[str] | Mapping[str, str], configs: BaseConfigs) -> str:
    named = ", ".join(list(bases)[:MOST_NAMED_BASES]) + (", ..." if len(bases) > MOST_NAMED_BASES else "")
    return phrase("campaign.bases_of_all", named=named, bases=len(bases), configs=len(configs))
