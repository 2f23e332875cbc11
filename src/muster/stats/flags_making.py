"""Red flags of the way in which cells were made: checkpoints, settings, code, episodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from muster.domain.wording import counted
from muster.stats.flag_types import Flag, Level, Made
from muster.stats.groups import grouped

FEW_EPISODES = 10


def of_making(made: Sequence[Made]) -> list[Flag]:
    """What the way they were made shows."""
    return [
        *_one_checkpoint(made),
        *_one_curve(made),
        *_one_result(made),
        *_saved_early(made),
        *_other_checkpoint(made),
        *_mixed(made, "steps", "ERROR", "mixed_steps", "step budgets differ between cells"),
        *_same_settings(made, "settings", "ERROR", "same_settings", "differ in nothing but their names"),
        *_same_settings(made, "unlabelled", "WARN", "same_but_label", "differ in nothing but a label: their own name"),
        *_labels(made),
        *_mixed(made, "commit", "WARN", "mixed_commits", "cells were made by different commits"),
        *_mixed(made, "dirty", "WARN", "mixed_code", "cells were made by different working trees"),
        *_mixed(made, "episodes", "WARN", "mixed_episodes", "cells were evaluated on different numbers of episodes"),
        *_few_episodes(made),
        *_best_at_an_end(made),
        *_mixed(made, "called", "WARN", "best_and_last", "some cells evaluated the best checkpoint, others the last"),
    ]


def _one_checkpoint(made: Sequence[Made]) -> Iterator[Flag]:
    for cells, _ in _sharing(made, "checkpoint"):
        text = f"the same checkpoint was evaluated for {', '.join(cells)}"
        yield Flag("ERROR", "one_checkpoint", cells, text, {"cells": ", ".join(cells)})


def _one_curve(made: Sequence[Made]) -> Iterator[Flag]:
    """A penalty that is 0 leaves no trace in a log, and may leave one in the weights."""
    for cells, group in _sharing(made, "curve"):
        differ = len({each.checkpoint for each in group if each.checkpoint}) > 1
        beside = "; their checkpoints differ" if differ else ""
        text = f"the same learning curve lies under {', '.join(cells)}{beside}"
        yield Flag("WARN" if differ else "ERROR", "one_curve", cells, text, {"cells": ", ".join(cells)})


def _one_result(made: Sequence[Made]) -> Iterator[Flag]:
    for cells, _ in _sharing(made, "result"):
        text = f"one and the same result file lies under {', '.join(cells)}, with more in it than equal numbers"
        yield Flag("ERROR", "one_result", cells, text, {"cells": ", ".join(cells)})


def _sharing(made: Sequence[Made], field_: str) -> Iterator[tuple[tuple[str, ...], Sequence[Made]]]:
    for _, group in grouped((each for each in made if getattr(each, field_)), lambda m: str(getattr(m, field_))):
        cells = tuple(dict.fromkeys(each.cell for each in group))
        if len(cells) > 1:
            yield cells, group


def _saved_early(made: Iterable[Made]) -> Iterator[Flag]:
    for each in made:
        if each.saved_early:
            of_steps = each.saved_steps is not None
            known = each.saved_steps if of_steps else each.saved_share
            share = "" if known is None else str(int(known * 100))
            when = f", at {share} % of {'its steps' if of_steps else 'it'}" if share else ""
            text = f"{each.cell}: its checkpoint was saved before the end of its training{when}: untrained weights?"
            parts = {"cell": each.cell, "percent": share, "steps": "steps" if of_steps else ""}
            yield Flag("ERROR", "early_checkpoint", (each.cell,), text, parts)


def _other_checkpoint(made: Iterable[Made]) -> Iterator[Flag]:
    for each in made:
        if each.another:
            cells = ", ".join(each.another)
            text = f"{each.cell}: {cells} evaluated another checkpoint than the one that is there now"
            yield Flag("ERROR", "other_checkpoint", each.another, text, {"cell": each.cell, "cells": cells})
        elif each.written_after:
            cells = ", ".join(each.written_after)
            text = f"{each.cell}: its checkpoint was written again after it had been evaluated by {cells}"
            yield Flag("ERROR", "checkpoint_changed", each.written_after, text, {"cell": each.cell, "cells": cells})


def _mixed(made: Sequence[Made], field_: str, level: Level, code: str, told: str) -> Iterator[Flag]:
    """Within a job: a fine-tuning is shorter than the training before it."""
    for _, of_job in grouped((each for each in made if getattr(each, field_) is not None), lambda m: m.job):
        groups = list(grouped(of_job, lambda m: getattr(m, field_)))
        if len(groups) > 1:
            rarest = min(groups, key=lambda item: len(item[1]))
            cells = tuple(each.cell for each in rarest[1])
            shown = ", ".join(f"{len(group)} x {str(value)[:12]}" for value, group in groups)
            yield Flag(level, code, cells, f"{told}: {shown}", {"groups": shown})


def _same_settings(made: Sequence[Made], field_: str, level: Level, code: str, words: str) -> Iterator[Flag]:
    known = (each for each in made if getattr(each, field_))
    for (_, seed), group in grouped(known, lambda m: (m.job, m.seed)):
        for _, same in grouped(group, partial(_text_of, field_)):
            configs = tuple(dict.fromkeys(each.config for each in same))
            whole = len({each.settings for each in same}) == 1  # told as the graver of the two
            if len(configs) > 1 and whole == (field_ == "settings"):
                text = f"{', '.join(configs)} (seed {seed}) {words}"
                parts = {"configs": ", ".join(configs), "seed": seed}
                yield Flag(level, code, tuple(each.cell for each in same), text, parts)


def _text_of(field_: str, made: Made) -> str:
    return str(getattr(made, field_))


def _labels(made: Iterable[Made]) -> Iterator[Flag]:
    for each in made:
        if each.label is not None and each.label != each.config:
            text = f"{each.cell}: its own config calls it {each.label}"
            yield Flag("ERROR", "label_contradicts", (each.cell,), text, {"cell": each.cell, "label": each.label})


def _few_episodes(made: Sequence[Made]) -> Iterator[Flag]:
    few = [each for each in made if each.episodes is not None and each.episodes < FEW_EPISODES]
    if few:
        least = min(each.episodes or 0 for each in few)
        cells = counted(len(few), "cell was", "cells were")
        text = f"{cells} evaluated on few episodes: {least} at the least"
        parts = {"count": str(len(few)), "least": str(least)}
        yield Flag("WARN", "few_episodes", tuple(each.cell for each in few), text, parts)


def _best_at_an_end(made: Iterable[Made]) -> Iterator[Flag]:
    for each in made:
        if each.best_step is None or len(each.eval_steps) < 2:
            continue
        for end, step in (("first", each.eval_steps[0]), ("last", each.eval_steps[-1])):
            if each.best_step == step:
                text = f"{each.cell}: the best step is the {end} evaluation"
                yield Flag("WARN", "best_at_an_end", (each.cell,), text, {"cell": each.cell, "end": end})
