"""Red flags of rows: runs of different definitions in one table, and seeds that are not there any more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from muster.domain.wording import counted
from muster.stats.fisher import fisher_exact
from muster.stats.flag_types import Failures, Flag, Lost, Mixture, Rows
from muster.stats.groups import grouped

REDO = "muster redo --outdated --because ..."
TOLD = 6
SEEN = 20  # cells whose values are told: who accepts that they are left out has seen them
CLEARING = ("lost_seeds", "withdrawn")  # whose cells are missing no more once a person has accepted the flag


def of_losses(lost: Sequence[Lost], failures: Sequence[Failures], baseline: str, dropped: Sequence[str]) -> list[Flag]:
    """`dropped`: cells that ran and are no longer declared, with all of their row."""
    return [*_failed(failures, baseline), *_lost(lost), *_withdrawn(lost), *_dropped(dropped)]


def _failed(failures: Sequence[Failures], baseline: str) -> Iterator[Flag]:
    """Each candidate against the baseline; without one, each config by itself. No word can clear it."""
    base = next((each for each in failures if each.config == baseline), None)
    for each in failures:
        other = base if base is not each else None
        if each is base and len(failures) > 1:
            continue
        if not each.failed and not (other and other.failed):
            continue
        worse, better = (other, each) if other and other.failed * each.of > each.failed * other.of else (each, other)
        text = f"{worse.config or 'it'} failed on {worse.failed} of {counted(worse.of, 'seed')}"
        parts = {
            "config": worse.config,
            "failed": str(worse.failed),
            "of": str(worse.of),
            "other": "",
            "rate": "",
            "p": "",
        }
        if better is not None:
            p = f"{fisher_exact(worse.failed, worse.of, better.failed, better.of):.2g}"
            rate = f"{better.failed} of {better.of}" if better.failed else "none"
            text += f", {better.config} on {rate} (Fisher exact p = {p})"
            parts |= {"other": better.config, "rate": f"{better.failed}/{better.of}", "p": p}
        text += ": a mean over the survivors is too good"
        cells = (*worse.cells, *(better.cells if better else ()))
        yield Flag("WARN", "failed_seeds", cells, text, parts, acceptable=False)


def _lost(lost: Sequence[Lost]) -> Iterator[Flag]:
    found = [each for each in lost if each.kind == "unrelated"]
    if found:
        reasons = "; ".join(f"{each.cell}: {each.reason}" for each in found[:TOLD])
        shown = reasons + (f"; and {len(found) - TOLD} more" if len(found) > TOLD else "")
        what = counted(len(found), "cell has", "cells have")
        text = f"{what} no result, by causes that have nothing to do with it: {shown}"
        parts = {"count": str(len(found)), "cells": shown}
        yield Flag("WARN", "lost_seeds", tuple(each.cell for each in found), text, parts)


def _withdrawn(lost: Sequence[Lost]) -> Iterator[Flag]:
    found = [each for each in lost if each.kind == "completed"]
    if found:
        done = counted(len(found), "cell was done and is", "cells were done and are")
        shown = [f"{each.cell} ({each.values})" if each.values else each.cell for each in found]
        listed = ", ".join(shown[:SEEN]) + (" ..." if len(shown) > SEEN else "")
        text = f"{done} taken out or lost again: {listed}"
        parts = {"count": str(len(found)), "cells": listed}
        yield Flag("WARN", "withdrawn", tuple(each.cell for each in found), text, parts)


def _dropped(cells: Sequence[str]) -> Iterator[Flag]:
    if cells:
        ran = counted(len(cells), "cell ran and is", "cells ran and are")
        text = f"{ran} no longer declared, with all of the row: {_few(cells)}"
        yield Flag("WARN", "dropped_rows", tuple(cells), text, {"count": str(len(cells)), "cells": _few(cells)})


def _few(cells: Sequence[str]) -> str:
    return ", ".join(cells[:TOLD]) + (" ..." if len(cells) > TOLD else "")


def of_definitions(mixed: Iterable[Mixture], outdated: Iterable[Mixture]) -> Iterator[Flag]:
    """`mixed` stand beside others in one table; `outdated` agree with each other, but not with the campaign file."""
    for each in mixed:
        told = f"{_where(each)} is {_quoted(each.old)} for {seeds_of(each.rows)}"
        text = f"{told}, and {_quoted(each.new)} for {seeds_of(each.other_rows)}"
        if each.part == "contents":
            text = f"{each.job}: {each.old} was changed after {seeds_of(each.rows)} had begun, and before "
            text += seeds_of(each.other_rows)
        text += f": one table, two definitions; `{REDO}` runs the older ones again"
        yield Flag("ERROR", "mixed_definitions", each.cells, text, _parts(each))
    for each in outdated:
        text = (
            f"{_where(each)} was {_quoted(each.old)} for {seeds_of(each.rows)}; campaign.yaml says {_quoted(each.new)}"
        )
        if each.part == "contents":
            text = f"{each.job}: {each.old} was changed after {seeds_of(each.rows)} had begun"
        text += f"; `{REDO}` runs them again"
        yield Flag("WARN", "outdated", each.cells, text, _parts(each))


def of_sources(sources: Mapping[str, Sequence[str]]) -> Iterator[Flag]:
    """`sources`: cell -> files of its code that are not those of most cells of its job."""
    for job, group in grouped(sources, lambda cell: cell.partition("/")[0]):
        files = tuple(dict.fromkeys(path for cell in group for path in sources[cell]))
        made = counted(len(group), "cell was", "cells were")
        differ = f"{_few(files)} {'differs' if len(files) == 1 else 'differ'}"
        text = f"{job}: {made} made by other code than the rest: {differ}"
        parts = {"job": job, "count": str(len(group)), "files": _few(files)}
        yield Flag("ERROR", "mixed_sources", tuple(group), text, parts)


def seeds_of(rows: Rows) -> str:
    """`new, seeds 0, 1, 2`"""
    told = []
    for row, seeds in rows:
        listed = [f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(seeds)}"] if seeds else []
        told.append(", ".join([row, *listed]))
    return " and ".join(told)


def _where(each: Mixture) -> str:
    return f"{each.job}: {each.part}"


def _quoted(text: str) -> str:
    return f"`{text}`" if text else "not set"


def _parts(each: Mixture) -> dict[str, str]:
    return {
        "job": each.job, "part": each.part, "old": each.old, "new": each.new,
        "olds": _short(each.rows), "news": _short(each.other_rows), "redo": REDO,
    }  # fmt: skip


def _short(rows: Rows) -> str:
    return "; ".join(" ".join([row, ", ".join(seeds)]).strip() for row, seeds in rows)
