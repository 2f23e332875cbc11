"""muster down"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from muster.app.campaign.campaign_handle import CampaignHandle
from muster.app.campaign.verbs.stop_cells import StoppedAttempt
from muster.app.finish.take_down import take_down
from muster.faces.cli.common.command_line import folder_of_context
from muster.faces.cli.stop import STILL_GOING_ON, print_stopped
from muster.text.phrases import phrase
from muster.text.sentences import join_few_names, parse_duration

app = typer.Typer(add_completion=False)


@app.command("down", epilog="Example:  muster down --runs --because 'the machine is needed'")
def down_command(
    ctx: typer.Context,
    runs: Annotated[bool, typer.Option("--runs", help="Stop the runs too.")] = False,
    because: Annotated[
        str | None, typer.Option(help="Why, for the record; to stop more than one run needs it.", show_default=False)
    ] = None,
    timeout: Annotated[str, typer.Option(help="With --runs: wait at most this long for their end.")] = "60s",
) -> int:
    """Ends the controller, so that nothing new starts until `muster up`. The runs live on unless you say --runs.

    Exit code: 0 down, 4 something still lives when the time is up.
    """
    limit = parse_duration(timeout)
    desk = CampaignHandle.open_to_act(folder_of_context(ctx))

    def on_stopped(stopped: Sequence[StoppedAttempt]) -> None:
        print_stopped(stopped, limit)
        if stopped:
            print(phrase("cli.retry_takes_stopped_cell_up"))

    done = take_down(desk, runs=runs, because=because, limit_s=limit, on_stopped=on_stopped)
    if done.step:
        became = phrase("cli.step_still_alive" if done.step.lives else "cli.step_stopped")
        print(phrase("cli.finish_step_is", step=done.step.name, became=became))
    print(phrase("cli.campaign_was_down" if done.was_down else "cli.campaign_goes_down"))
    _print_living_cells(done.living)
    return STILL_GOING_ON if done.late else 0


def _print_living_cells(living: Sequence[str]) -> None:
    if living:
        print(phrase("cli.runs_left_alone", n=len(living), cells=join_few_names(living)))
