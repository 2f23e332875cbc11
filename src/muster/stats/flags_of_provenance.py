"""Red flags about how cells were made: checkpoints, settings, code, episodes, different definitions in one table,
seeds that are missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from muster.stats.red_flags import (
    CellMaking,
    ConfigFailures,
    DefinitionMixture,
    FlagLevel,
    LostCell,
    RedFlag,
    SeedRows,
)
from muster.stats.samples import fisher_exact_p, group_by_key
from muster.text.phrases import phrase
from muster.text.sentences import join_few_names

FEW_EPISODES = 10


def flag_making(made: Sequence[CellMaking]) -> list[RedFlag]:
    """What the way they were made shows."""
    return [
        *_flag_shared_checkpoint(made),
        *_flag_shared_curve(made),
        *_flag_shared_result(made),
        *_flag_early_checkpoints(made),
        *_flag_other_checkpoints(made),
        *_flag_mixed_field(made, "steps", "ERROR", "mixed_steps", "step budgets differ between cells"),
        *_flag_same_settings(made, "settings", "ERROR", "same_settings", "differ in nothing but their names"),
        *_flag_same_settings(
            made, "unlabelled", "WARN", "same_but_label", "differ in nothing but a label: their own name"
        ),
        *_flag_contradicting_labels(made),
        *_flag_mixed_field(made, "commit", "WARN", "mixed_commits", "cells were made by different commits"),
        *_flag_mixed_field(made, "dirty", "WARN", "mixed_code", "cells were made by different working trees"),
        *_flag_mixed_field(
            made, "episodes", "WARN", "mixed_episodes", "cells were evaluated on different numbers of episodes"
        ),
        *_flag_few_episodes(made),
        *_flag_best_at_an_end(made),
        *_flag_mixed_field(
            made, "called", "WARN", "best_and_last", "some cells evaluated the best checkpoint, others the last"
        ),
    ]


def _flag_shared_checkpoint(made: Sequence[CellMaking]) -> Iterator[RedFlag]:
    for cells, _ in _cells_sharing_field(made, "checkpoint"):
        text = f"the same checkpoint was evaluated for {', '.join(cells)}"
        yield RedFlag("ERROR", "one_checkpoint", cells, text, {"cells": ", ".join(cells)})


def _flag_shared_curve(made: Sequence[CellMaking]) -> Iterator[RedFlag]:
    """A penalty that is 0 leaves no trace in a log, and may leave one in the weights."""
    for cells, group in _cells_sharing_field(made, "curve"):
        differ = len({each.checkpoint for each in group if each.checkpoint}) > 1
        beside = "; their checkpoints differ" if differ else ""
        text = f"the same learning curve lies under {', '.join(cells)}{beside}"
        yield RedFlag("WARN" if differ else "ERROR", "one_curve", cells, text, {"cells": ", ".join(cells)})


def _flag_shared_result(made: Sequence[CellMaking]) -> Iterator[RedFlag]:
    for cells, _ in _cells_sharing_field(made, "result"):
        text = f"one and the same result file lies under {', '.join(cells)}, with more in it than equal numbers"
        yield RedFlag("ERROR", "one_result", cells, text, {"cells": ", ".join(cells)})


def _cells_sharing_field(
    made: Sequence[CellMaking], field_: str
) -> Iterator[tuple[tuple[str, ...], Sequence[CellMaking]]]:
    for _, group in group_by_key((each for each in made if getattr(each, field_)), lambda m: str(getattr(m, field_))):
        cells = tuple(dict.fromkeys(each.cell for each in group))
        if len(cells) > 1:
            yield cells, group


def _flag_early_checkpoints(made: Iterable[CellMaking]) -> Iterator[RedFlag]:
    for each in made:
        if each.saved_early:
            of_steps = each.saved_steps is not None
            known = each.saved_steps if of_steps else each.saved_share
            share = "" if known is None else str(int(known * 100))
            when = f", at {share} % of {'its steps' if of_steps else 'it'}" if share else ""
            text = f"{each.cell}: its checkpoint was saved before the end of its training{when}: untrained weights?"
            parts = {"cell": each.cell, "percent": share, "steps": "steps" if of_steps else ""}
            yield RedFlag("ERROR", "early_checkpoint", (each.cell,), text, parts)


def _flag_other_checkpoints(made: Iterable[CellMaking]) -> Iterator[RedFlag]:
    for each in made:
        if each.another:
            cells = ", ".join(each.another)
            text = f"{each.cell}: {cells} evaluated another checkpoint than the one that is there now"
            yield RedFlag("ERROR", "other_checkpoint", each.another, text, {"cell": each.cell, "cells": cells})
        elif each.written_after:
            cells = ", ".join(each.written_after)
            text = f"{each.cell}: its checkpoint was written again after it had been evaluated by {cells}"
            yield RedFlag("ERROR", "checkpoint_changed", each.written_after, text, {"cell": each.cell, "cells": cells})


def _flag_mixed_field(
    made: Sequence[CellMaking], field_: str, level: FlagLevel, code: str, told: str
) -> Iterator[RedFlag]:
    """Within a job: a fine-tuning is shorter than the training before it."""
    for _, of_job in group_by_key((each for each in made if getattr(each, field_) is not None), lambda m: m.job):
        groups = list(group_by_key(of_job, lambda m: getattr(m, field_)))
        if len(groups) > 1:
            rarest = min(groups, key=lambda item: len(item[1]))
            cells = tuple(each.cell for each in rarest[1])
            shown = ", ".join(f"{len(group)} x {str(value)[:12]}" for value, group in groups)
            yield RedFlag(level, code, cells, f"{told}: {shown}", {"groups": shown})


def _flag_same_settings(
    made: Sequence[CellMaking], field_: str, level: FlagLevel, code: str, words: str
) -> Iterator[RedFlag]:
    known = (each for each in made if getattr(each, field_))
    for (_, seed), group in group_by_key(known, lambda m: (m.job, m.seed)):
        for _, same in group_by_key(group, partial(_field_as_text, field_)):
            configs = tuple(dict.fromkeys(each.config for each in same))
            whole = len({each.settings for each in same}) == 1  # told as the graver of the two
            if len(configs) > 1 and whole == (field_ == "settings"):
                text = f"{', '.join(configs)} (seed {seed}) {words}"
                parts = {"configs": ", ".join(configs), "seed": seed}
                yield RedFlag(level, code, tuple(each.cell for each in same), text, parts)


def _field_as_text(field_: str, made: CellMaking) -> str:
    return str(getattr(made, field_))


def _flag_contradicting_labels(made: Iterable[CellMaking]) -> Iterator[RedFlag]:
    for each in made:
        if each.label is not None and each.label != each.config:
            text = f"{each.cell}: its own config calls it {each.label}"
            yield RedFlag("ERROR", "label_contradicts", (each.cell,), text, {"cell": each.cell, "label": each.label})


def _flag_few_episodes(made: Sequence[CellMaking]) -> Iterator[RedFlag]:
    few = [each for each in made if each.episodes is not None and each.episodes < FEW_EPISODES]
    if few:
        least = min(each.episodes or 0 for each in few)
        cells = phrase("count.cell_was", n=len(few))
        text = f"{cells} evaluated on few episodes: {least} at the least"
        parts = {"count": str(len(few)), "least": str(least)}
        yield RedFlag("WARN", "few_episodes", tuple(each.cell for each in few), text, parts)


def _flag_best_at_an_end(made: Iterable[CellMaking]) -> Iterator[RedFlag]:
    for each in made:
        if each.best_step is None or len(each.eval_steps) < 2:
            continue
        for end, step in (("first", each.eval_steps[0]), ("last", each.eval_steps[-1])):
            if each.best_step == step:
                text = f"{each.cell}: the best step is the {end} evaluation"
                yield RedFlag("WARN", "best_at_an_end", (each.cell,), text, {"cell": each.cell, "end": end})


REDO_COMMAND = "muster redo --outdated --because ..."
MOST_NAMED_CELLS = 6
MOST_SHOWN_VALUES = 20  # cells whose values are told: who accepts that they are left out has seen them
CLEARING_CODES = ("lost_seeds", "withdrawn")  # whose cells are missing no more once a person has accepted the flag


def flag_losses(
    lost: Sequence[LostCell], failures: Sequence[ConfigFailures], baseline: str, dropped: Sequence[str]
) -> list[RedFlag]:
    """`dropped`: cells that ran and are no longer declared, with all of their row."""
    return [
        *_flag_failed_seeds(failures, baseline),
        *_flag_lost_seeds(lost),
        *_flag_withdrawn_cells(lost),
        *_flag_dropped_rows(dropped),
    ]


def _flag_failed_seeds(failures: Sequence[ConfigFailures], baseline: str) -> Iterator[RedFlag]:
    """Each candidate against the baseline; without one, each config by itself. No word can clear it."""
    base = next((each for each in failures if each.config == baseline), None)
    for each in failures:
        other = base if base is not each else None
        if each is base and len(failures) > 1:
            continue
        if not each.failed and not (other and other.failed):
            continue
        worse, better = (other, each) if other and other.failed * each.of > each.failed * other.of else (each, other)
        text = f"{worse.config or 'it'} failed on {worse.failed} of {phrase('count.seed', n=worse.of)}"
        parts = {
            "config": worse.config,
            "failed": str(worse.failed),
            "of": str(worse.of),
            "other": "",
            "rate": "",
            "p": "",
        }
        if better is not None:
            p = f"{fisher_exact_p(worse.failed, worse.of, better.failed, better.of):.2g}"
            rate = f"{better.failed} of {better.of}" if better.failed else "none"
            text += f", {better.config} on {rate} (Fisher exact p = {p})"
            parts |= {"other": better.config, "rate": f"{better.failed}/{better.of}", "p": p}
        text += ": a mean over the survivors is too good"
        cells = (*worse.cells, *(better.cells if better else ()))
        yield RedFlag("WARN", "failed_seeds", cells, text, parts, acceptable=False)


def _flag_lost_seeds(lost: Sequence[LostCell]) -> Iterator[RedFlag]:
    found = [each for each in lost if each.kind == "unrelated"]
    if found:
        shown = join_few_names([f"{each.cell}: {each.reason}" for each in found], MOST_NAMED_CELLS, "; ")
        what = phrase("count.cell_has", n=len(found))
        text = f"{what} no result, by causes that have nothing to do with it: {shown}"
        parts = {"count": str(len(found)), "cells": shown}
        yield RedFlag("WARN", "lost_seeds", tuple(each.cell for each in found), text, parts)


def _flag_withdrawn_cells(lost: Sequence[LostCell]) -> Iterator[RedFlag]:
    found = [each for each in lost if each.kind == "completed"]
    if found:
        done = phrase("count.cell_was_done_and_is", n=len(found))
        shown = [f"{each.cell} ({each.values})" if each.values else each.cell for each in found]
        listed = ", ".join(shown[:MOST_SHOWN_VALUES]) + (" ..." if len(shown) > MOST_SHOWN_VALUES else "")
        text = f"{done} taken out or lost again: {listed}"
        parts = {"count": str(len(found)), "cells": listed}
        yield RedFlag("WARN", "withdrawn", tuple(each.cell for each in found), text, parts)


def _flag_dropped_rows(cells: Sequence[str]) -> Iterator[RedFlag]:
    if cells:
        ran = phrase("count.cell_ran_and_is", n=len(cells))
        text = f"{ran} no longer declared, with all of the row: {_format_first_cells(cells)}"
        yield RedFlag(
            "WARN", "dropped_rows", tuple(cells), text, {"count": str(len(cells)), "cells": _format_first_cells(cells)}
        )


def _format_first_cells(cells: Sequence[str]) -> str:
    return ", ".join(cells[:MOST_NAMED_CELLS]) + (" ..." if len(cells) > MOST_NAMED_CELLS else "")


def flag_definitions(mixed: Iterable[DefinitionMixture], outdated: Iterable[DefinitionMixture]) -> Iterator[RedFlag]:
    """`mixed` stand beside others in one table; `outdated` agree with each other, but not with the campaign file."""
    for each in mixed:
        told = (
            f"{_format_mixture_place(each)} is {_quote_definition_text(each.old)} for "
            f"{format_rows_with_seeds(each.rows)}"
        )
        text = f"{told}, and {_quote_definition_text(each.new)} for {format_rows_with_seeds(each.other_rows)}"
        if each.part == "contents":
            text = (
                f"{each.job}: {each.old} was changed after {format_rows_with_seeds(each.rows)} had begun, and before "
            )
            text += format_rows_with_seeds(each.other_rows)
        text += f": one table, two definitions; `{REDO_COMMAND}` runs the older ones again"
        yield RedFlag("ERROR", "mixed_definitions", each.cells, text, _mixture_message_parts(each))
    for each in outdated:
        text = (
            f"{_format_mixture_place(each)} was {_quote_definition_text(each.old)} for "
            f"{format_rows_with_seeds(each.rows)}; campaign.yaml says {_quote_definition_text(each.new)}"
        )
        if each.part == "contents":
            text = f"{each.job}: {each.old} was changed after {format_rows_with_seeds(each.rows)} had begun"
        text += f"; `{REDO_COMMAND}` runs them again"
        yield RedFlag("WARN", "outdated", each.cells, text, _mixture_message_parts(each))


def flag_sources(sources: Mapping[str, Sequence[str]]) -> Iterator[RedFlag]:
    """`sources`: cell -> files of its code that are not those of most cells of its job."""
    for job, group in group_by_key(sources, lambda cell: cell.partition("/")[0]):
        files = tuple(dict.fromkeys(path for cell in group for path in sources[cell]))
        made = phrase("count.cell_was", n=len(group))
        differ = f"{_format_first_cells(files)} {'differs' if len(files) == 1 else 'differ'}"
        text = f"{job}: {made} made by other code than the rest: {differ}"
        parts = {"job": job, "count": str(len(group)), "files": _format_first_cells(files)}
        yield RedFlag("ERROR", "mixed_sources", tuple(group), text, parts)


def format_rows_with_seeds(rows: SeedRows) -> str:
    """`new, seeds 0, 1, 2`"""
    told = []
    for row, seeds in rows:
        listed = [f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(seeds)}"] if seeds else []
        told.append(", ".join([row, *listed]))
    return " and ".join(told)


def _format_mixture_place(each: DefinitionMixture) -> str:
    return f"{each.job}: {each.part}"


def _quote_definition_text(text: str) -> str:
    return f"`{text}`" if text else "not set"


def _mixture_message_parts(each: DefinitionMixture) -> dict[str, str]:
    return {
        "job": each.job,
        "part": each.part,
        "old": each.old,
        "new": each.new,
        "olds": _format_rows_shortly(each.rows),
        "news": _format_rows_shortly(each.other_rows),
        "redo": REDO_COMMAND,
    }


def _format_rows_shortly(rows: SeedRows) -> str:
    return "; ".join(" ".join([row, ", ".join(seeds)]).strip() for row, seeds in rows)
