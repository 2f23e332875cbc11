"""muster metrics"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Annotated

import typer

from muster.app.metrics.measure_runs import (
    METRIC_COLUMNS,
    ROW_NUMBERS,
    WANDB_CLOCK_KEYS,
    MetricsTarget,
    RunMetrics,
    WantedKeys,
    find_metrics_targets,
    measure_all_targets,
    measure_online_runs,
    metric_table_rows,
    metrics_as_json,
    value_age_s,
)
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.common.terminal_output import display_width, pad_name, paint_text, print_json, print_notice
from muster.model.errors import UsageError
from muster.text.phrases import join_phrases, phrase
from muster.text.sentences import format_calendar_duration
from muster.text.terminal_text import escape_terminal_line

app = typer.Typer(add_completion=False)


@app.command(
    "metrics",
    epilog="Example:  muster metrics outputs/train --key 'train/*'   or   muster metrics train/v2_full/2 --json",
)
def metrics_command(
    ctx: typer.Context,
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CELL|DIR...]",
            help="A cell, a folder with one or more runs in it, a file of one; globs will do.",
            show_default=False,
        ),
    ] = None,
    key: Annotated[
        list[str] | None, typer.Option("--key", metavar="GLOB", help="Only these keys.", show_default=False)
    ] = None,
    wandb_online: Annotated[
        str | None,
        typer.Option(
            "--wandb-online",
            metavar="ENTITY/PROJECT",
            help="Runs on a W&B server; needs its package.",
            show_default=False,
        ),
    ] = None,
    as_json_: Annotated[bool, typer.Option("--json", help="Print one JSON object; a list for several runs.")] = False,
) -> int:
    """First, last, best, delta, % and mean of each key, from whatever the run wrote. A folder needs no campaign."""
    if not targets and not wandb_online:
        raise UsageError(
            phrase("cli.name_a_run"), hint=phrase("cli.for_example", command="muster metrics outputs/train")
        )
    keys = WantedKeys(tuple(key or ()))
    asked: list[MetricsTarget] = (
        [(wandb_online, partial(measure_online_runs, wandb_online, keys))] if wandb_online else []
    )
    for target in targets or []:
        asked += find_metrics_targets(target, folder_of_context(ctx), keys, print_notice)
    blocks = measure_all_targets(asked, keys)
    now = time.time()
    if as_json_:
        objects = [metrics_as_json(block, now) for block in blocks]
        print_json(objects if len(objects) > 1 else objects[0])
        return 0
    for number, block in enumerate(blocks):
        if number:
            print()
        _print_run_metrics(block, now, clocks=any(each in WANDB_CLOCK_KEYS for each in key or []))
    return 0


def _print_run_metrics(block: RunMetrics, now: float, *, clocks: bool) -> None:
    print(paint_text(block.name, "bold"))
    for said, why in block.sources:
        print(f"  {said.format}: {said.path} ({why})")
        if said.step == ROW_NUMBERS:
            print("    nothing in it counts steps: they are the numbers of its rows")
        for each in said.skipped:
            print(f"    {each}")
    for note in block.notes:
        print(f"  {note}")
    table = metric_table_rows(block, clocks=clocks)
    if not table:
        if block.sources and not block.others:
            print("  " + phrase("cli.no_values_yet"))
        return
    _print_metric_table([METRIC_COLUMNS, *table])
    seconds = value_age_s(block, now)
    if seconds is not None:
        age = [phrase("cli.last_value_age", age=format_calendar_duration(seconds))]
        age += [phrase("cli.run_ended_with", code=block.ended.code)] if block.ended else []
        print("  " + join_phrases("; ", age))


def _print_metric_table(table: Sequence[tuple[str, ...]]) -> None:
    widths = [max(map(display_width, column)) for column in zip(*table, strict=True)]
    for row in table:
        first, *rest = (
            pad_name(cell, size) if at == 0 else " " * (size - display_width(cell)) + escape_terminal_line(cell)
            for at, (cell, size) in enumerate(zip(row, widths, strict=True))
        )
        print("  " + "  ".join([first, *rest]).rstrip())
